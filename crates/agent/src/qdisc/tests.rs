//! Installation, comparison, change and removal of disciplines, against a table in place of the kernel.

use super::*;
use dragstrip_qdisc::{Change, KINDS};
use std::collections::BTreeMap;

/// Number of the table's interface.
pub const VETH: i32 = 7;

/// A kernel's disciplines, classes and filters on one interface: it reports options as they were sent.
#[derive(Default)]
pub struct Table {
    /// By handle: parent, kind and options.
    queues: BTreeMap<u32, (u32, String, Vec<u8>)>,
    classes: BTreeMap<u32, Vec<u8>>,
    filter: Option<Vec<u8>>,
    /// Filters of what goes out that give marks.
    of_clsact: Vec<Vec<u8>>,
    /// Filters of a tree.
    of_tree: Vec<Vec<u8>>,
    /// Types of the requests so far.
    requests: Vec<u16>,
    /// Statistics that every discipline reports (`TCA_STATS2`).
    pub statistics: Vec<u8>,
}

impl Rtnetlink for Table {
    fn ask_all(&mut self, message: Message) -> Result<Vec<Vec<u8>>, Fault> {
        let bytes = message.finish(1);
        let number = |at: usize| word(&bytes, at).unwrap();
        let short = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let (request, creates) = (short(4), short(6) & flag::CREATE != 0);
        assert_eq!(number(20), VETH as u32, "the interface");
        let (family, handle, parent) = (bytes[16..36].to_vec(), number(24), number(28));
        let attributes = Attributes(&bytes[36..]);
        let options = attributes.get(TCA_OPTIONS).unwrap_or_default().to_vec();
        let kind = attributes.get(TCA_KIND).unwrap_or_default();
        let kind = String::from_utf8_lossy(kind).trim_end_matches('\0').to_owned();
        self.requests.push(request);
        let report = |kind: &str, options: &[u8]| {
            let mut answer = Writer::behind(&family);
            answer.text(TCA_KIND, kind).bytes(TCA_OPTIONS, options);
            answer.bytes(TCA_STATS2, &self.statistics);
            vec![answer.into_bytes()]
        };
        match request {
            RTM_NEWQDISC if creates => {
                // Bands are there without being added.
                let of_handle = self.queues.contains_key(&(parent & 0xffff_0000));
                let is_class = self.classes.contains_key(&parent) || of_handle;
                assert!(parent >= TC_H_CLSACT || is_class, "the parent");
                self.queues.insert(handle, (parent, kind, options));
            }
            RTM_NEWQDISC => {
                let Some((_, present, before)) = self.queues.get_mut(&handle) else {
                    return fault("No such file or directory");
                };
                assert_eq!(*present, kind, "a change keeps the kind");
                // The first attribute of a kind counts: the kernel keeps what a change does not name.
                *before = [options, before.clone()].concat();
            }
            RTM_GETQDISC => match self.queues.get(&handle) {
                Some((_, kind, options)) => return Ok(report(kind, options)),
                None => return fault("No such file or directory"),
            },
            RTM_DELQDISC if parent == TC_H_ROOT => {
                self.queues.retain(|_, (parent, ..)| *parent == TC_H_CLSACT);
                self.classes.clear();
                self.of_tree.clear();
            }
            RTM_DELQDISC => {
                self.queues.remove(&handle);
                self.filter = None;
            }
            RTM_NEWTCLASS => {
                self.classes.insert(handle, options);
            }
            RTM_GETTCLASS => return Ok(report("", &self.classes[&handle])),
            RTM_NEWTFILTER if parent < TC_H_CLSACT => {
                assert!(self.queues.contains_key(&(parent & 0xffff_0000)), "the discipline");
                self.of_tree.push(options);
            }
            RTM_NEWTFILTER if kind == "u32" => {
                assert!(self.queues.contains_key(&CLSACT) && parent == EGRESS);
                self.of_clsact.push(options);
            }
            RTM_NEWTFILTER => {
                assert!(self.queues.contains_key(&CLSACT) && self.filter.is_none());
                self.filter = Some(options);
            }
            RTM_GETTFILTER => match &self.filter {
                Some(options) => return Ok(report("matchall", options)),
                None => return fault("No such file or directory"),
            },
            RTM_DELTFILTER => self.filter = None,
            other => panic!("request {other}"),
        }
        Ok(Vec::new())
    }
}

fn parsed(text: &str) -> QdiscSpec {
    QdiscSpec::parse(text).unwrap()
}

/// A table with this discipline.
pub fn installed(spec: &QdiscSpec) -> Table {
    let mut table = Table::default();
    install(&mut table, VETH, spec, None).unwrap();
    table.requests.clear();
    table
}

/// Every example that can be on an interface.
fn examples() -> impl Iterator<Item = QdiscSpec> {
    let texts = KINDS.iter().flat_map(|kind| kind.examples);
    texts.map(|text| parsed(text)).filter(|spec| *spec != QdiscSpec::NOQUEUE)
}

#[test]
fn every_discipline_is_installed_and_reads_back_as_configured() {
    for spec in examples() {
        let text = spec.print();
        let mut table = installed(&spec);
        assert_eq!(compare(&mut table, VETH, &spec).unwrap(), text);
        remove(&mut table, VETH).unwrap();
        assert!(table.queues.is_empty() && table.classes.is_empty(), "{text}");
        assert_eq!(table.filter, None, "{text}");
    }
}

#[test]
fn another_discipline_than_the_configured_one_is_a_fault() {
    let mut table = installed(&parsed("pfifo limit 9"));
    let kind = compare(&mut table, VETH, &parsed("bfifo limit 9")).unwrap_err();
    assert_eq!(kind.to_string(), "the queue is \"pfifo\", not \"bfifo\"");
    let limit = compare(&mut table, VETH, &parsed("pfifo limit 10")).unwrap_err();
    assert_eq!(limit.to_string(), "pfifo: limit is 9, not 10");
    let mut table = installed(&parsed("htb rate 8mbit leaf pfifo limit 9"));
    let leaf = compare(&mut table, VETH, &parsed("htb rate 8mbit leaf pfifo limit 8")).unwrap_err();
    assert_eq!(leaf.to_string(), "pfifo: limit is 9, not 8");
    let rate = compare(&mut table, VETH, &parsed("htb rate 4mbit leaf pfifo limit 9")).unwrap_err();
    assert_eq!(rate.to_string(), "htb class: rate in bytes per second is 1000000, not 500000");
}

#[test]
fn a_change_sends_what_differs_and_is_read_back() {
    let changes = [
        Change::RateBps(3_000_000),
        Change::LimitBytes(70_000),
        Change::LimitPackets(70),
        Change::Loss(0.25),
    ];
    let mut count = 0;
    for (from, wish) in examples().flat_map(|spec| changes.map(|change| (spec.clone(), change))) {
        let Some(to) = from.changed(wish) else { continue };
        count += 1;
        let mut table = installed(&from);
        change(&mut table, VETH, &from, &to)
            .unwrap_or_else(|fault| panic!("{fault}: {}", to.print()));
        compare(&mut table, VETH, &to).unwrap();
    }
    assert!(count > KINDS.len(), "{count}");
    let [from, to] =
        ["10", "11"].map(|limit| parsed(&format!("htb rate 8mbit leaf pfifo limit {limit}")));
    let mut table = installed(&from);
    change(&mut table, VETH, &from, &to).unwrap();
    let sent =
        table.requests.iter().filter(|request| [RTM_NEWQDISC, RTM_NEWTCLASS].contains(request));
    assert_eq!(sent.collect::<Vec<_>>(), [&RTM_NEWQDISC], "neither htb nor its class");
}

#[test]
fn a_discipline_takes_the_place_of_another() {
    let [htb, fifo] = ["htb rate 8mbit leaf pfifo limit 9", "bfifo limit 9000"].map(parsed);
    let mut table = installed(&htb);
    replace(&mut table, VETH, &htb, &fifo).unwrap();
    assert_eq!(table.queues.len(), 1);
    replace(&mut table, VETH, &fifo, &QdiscSpec::NOQUEUE).unwrap();
    assert!(table.queues.is_empty());
    replace(&mut table, VETH, &QdiscSpec::NOQUEUE, &htb).unwrap();
    assert_eq!(table.queues.len(), 2, "htb and its leaf");
}

/// `TCA_STATS2` with these counters, but marks: struct gnet_stats_basic (bytes, packets), struct gnet_stats_queue
/// (qlen, backlog, drops, requeues, overlimits).
pub fn statistics(counters: &Counters) -> Vec<u8> {
    let &Counters { backlog_bytes, backlog_packets, sent, dropped, marked: _, sent_bytes } =
        counters;
    let basic = [sent_bytes.to_ne_bytes(), sent.to_ne_bytes()].concat();
    let queue = [backlog_packets as u32, backlog_bytes as u32, dropped as u32, 0, 0];
    let queue: Vec<u8> = queue.into_iter().flat_map(u32::to_ne_bytes).collect();
    Writer::value(|inside| {
        inside.bytes(1, &basic).bytes(3, &queue);
    })
}

#[test]
fn counters_are_those_of_the_leaves() {
    let expected = Counters {
        backlog_bytes: 4_500,
        backlog_packets: 3,
        sent: 4,
        dropped: 2,
        marked: 0,
        sent_bytes: 5_000,
    };
    let statistics = statistics(&expected);
    for text in ["pfifo limit 9", "htb rate 8mbit leaf pfifo limit 9"] {
        let spec = parsed(text);
        let mut table = Table { statistics: statistics.clone(), ..installed(&spec) };
        assert_eq!(read(&mut table, VETH, &spec).unwrap(), expected, "{text}: each once");
    }
}

#[test]
fn only_a_netem_has_a_seed_after_its_options() {
    let netem = parsed("netem delay 10ms loss 1%");
    let (plain, seeded) = (options(&netem, None).unwrap(), options(&netem, Some(7)).unwrap());
    assert!(seeded.starts_with(&plain));
    let behind = Attributes(&seeded[plain.len()..]);
    assert_eq!(behind.get(14).and_then(|value| long(value, 0)), Some(7));
    let fifo = parsed("pfifo limit 9");
    assert_eq!(options(&fifo, Some(7)), options(&fifo, None));
}

#[test]
fn a_tree_stands_in_a_class_whose_handles_it_does_not_have() {
    let tree = parsed(
        "tc qdisc add root handle 1: prio; tc qdisc add parent 1:1 handle 7fff: tbf rate 1mbit burst 3kb limit 30kb; \
         tc qdisc add parent 7fff:1 pfifo limit 9; tc qdisc add parent 1:2 pfifo limit 8; \
         tc filter add parent 1: prio 1 matchall classid 1:2",
    );
    let QdiscSpec::Htb(mut line) = parsed("htb rate 8mbit leaf pfifo limit 9") else { panic!() };
    line.leaf = Box::new(tree);
    let spec = QdiscSpec::Htb(line);
    let mut table = installed(&spec);
    assert_eq!(compare(&mut table, VETH, &spec).unwrap(), spec.print());
    // The line, prio, and tbf with what is in it, which has a handle of its own; two further bands.
    let handles: Vec<u32> = table.queues.keys().map(|handle| handle >> 16).collect();
    assert_eq!(handles, [1, 0x7ffb, 0x7ffc, 0x7ffd, 0x7ffe, 0x7fff]);
    let pfifo = table.queues.values().filter(|(_, kind, _)| kind == "pfifo").count();
    assert_eq!(pfifo, 3);
    let first = *table.queues.iter().find(|(_, (_, kind, _))| kind == "pfifo").unwrap().0;
    table.queues.get_mut(&first).unwrap().1 = "sfq".to_owned();
    let other = compare(&mut table, VETH, &spec).unwrap_err().to_string();
    assert!(other.contains("pfifo in") && other.contains("the queue is \"sfq\""), "{other}");
}

#[test]
fn a_class_of_a_tree_that_differs_is_a_fault() {
    let tree = |ceil: &str| {
        parsed(&format!(
            "tc qdisc add root handle 1: htb default 1; tc class add parent 1: classid 1:1 htb rate 1mbit ceil {ceil}"
        ))
    };
    let mut table = installed(&tree("2mbit"));
    let ceil = compare(&mut table, VETH, &tree("3mbit")).unwrap_err();
    assert_eq!(
        ceil.to_string(),
        "htb class 1:1: ceiling in bytes per second is 250000, not 375000"
    );
}

#[test]
fn marks_are_given_by_ports_in_both_directions() {
    let marking = Marking { protocol: 6, ports: (5001, 30_001), mark: 7 };
    let mut table = Table::default();
    mark(&mut table, VETH, &[]).unwrap();
    assert!(table.requests.is_empty(), "nothing is set up for no mark");
    mark(&mut table, VETH, &[marking]).unwrap();
    assert_eq!(table.requests, [RTM_NEWQDISC, RTM_NEWTFILTER, RTM_NEWTFILTER]);
    let ports = table.of_clsact.iter().map(|options| {
        let selector = Attributes(options).get(5).unwrap();
        u32::from_be_bytes(selector[36..40].try_into().unwrap())
    });
    assert_eq!(ports.collect::<Vec<_>>(), [5001 << 16 | 30_001, 30_001 << 16 | 5001]);
    let skbedit = Attributes(&table.of_clsact[0]).inside(7).and_then(|actions| actions.inside(1));
    assert_eq!(skbedit.and_then(|action| action.inside(2)?.number(5)), Some(7));
}
