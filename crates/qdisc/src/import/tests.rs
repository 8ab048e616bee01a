//! Scripts as people write them, what they mean, and what is refused.

use super::{Imported, import};
use crate::QdiscSpec;

/// The queues of a script.
fn queues(script: &str) -> Vec<Imported> {
    import(script).unwrap_or_else(|wrong| panic!("{wrong}\n{script}")).queues
}

/// The only queue of a script is that of these words.
fn import_as(script: &str, words: &str) -> Imported {
    let mut imports = queues(script);
    assert_eq!(imports.len(), 1, "{script}");
    let imported = imports.remove(0);
    assert_eq!(imported.queue, QdiscSpec::parse(words).unwrap(), "{script}");
    imported
}

/// The line and the text of a refusal.
fn refusal(script: &str) -> (usize, String) {
    let wrong = import(script).expect_err(script);
    (wrong.line, wrong.problem.to_string())
}

const HTB: &str = "tc qdisc add dev eth0 root handle 1: htb default 10\n";

#[test]
fn a_class_and_its_discipline_are_a_shaper_and_its_queue() {
    let script = format!(
        "{HTB}sudo tc class add dev eth0 parent 1: classid 1:10 htb rate 10mbit\n\
         /sbin/tc qdisc add dev eth0 parent 1:10 fq_codel limit 600\n"
    );
    let imported = import_as(&script, "htb rate 10mbit leaf fq_codel limit 600");
    assert_eq!(
        (imported.device.as_str(), imported.ingress, imported.lines.as_slice()),
        ("eth0", false, &[1, 2, 3][..])
    );
    let leaf = QdiscSpec::parse("fq_codel limit 600").unwrap().print();
    assert_eq!(imported.path(), [("rate", "10mbit".to_owned()), ("queue", leaf)]);
}

/// More than a rate stays in the queue.
#[test]
fn buckets_and_ceilings_stay_where_they_are() {
    for words in [
        "rate 10mbit burst 15k",
        "rate 10mbit ceil 20mbit",
        "rate 10mbit overhead -4",
        "rate 10mbit mpu 64",
    ] {
        let script = format!("{HTB}tc class add dev eth0 parent 1: classid 1:10 htb {words}");
        let imported = import_as(&script, &format!("htb {words}"));
        assert_eq!(imported.path(), [("queue", imported.queue.print())]);
    }
    let script = format!(
        "{HTB}tc class add dev eth0 parent 1: classid 1:10 htb rate 10mbit ceil 10mbit overhead 18 linklayer atm"
    );
    let fields = import_as(&script, "htb rate 10mbit ceil 10mbit overhead 18 linklayer atm").path();
    let queue = QdiscSpec::parse("pfifo limit 1000").unwrap().print();
    let wanted = [("rate", "10mbit"), ("queue", &queue), ("overhead", "18b"), ("atm", "true")];
    assert_eq!(fields, wanted.map(|(field, text)| (field, text.to_owned())));
}

/// Comments, continued lines, quotes, several commands on a line, what a shell does with output.
#[test]
fn a_script_is_read_as_a_shell_reads_it() {
    let script = "#!/bin/sh\nset -e\n\n# packets\n\
        modprobe ifb; ip link set dev eth0 up\n\
        tc qdisc del dev eth0 root 2>/dev/null || true\n\
        tc qdisc add dev \"eth0\" root \\\n  handle 1: tbf rate '8mbit' \\\n burst 10kb latency 50ms > /dev/null 2>&1\n";
    let imported = import_as(script, "tbf rate 8mbit burst 10kb latency 50ms");
    assert_eq!(imported.lines, [8, 9]);
    import_as(
        "root@OpenWrt:~# tc qdisc add dev eth0 root cake bandwidth 20mbit",
        "cake bandwidth 20mbit",
    );
    import_as("$ tc q a dev eth0 root sfq && tc -s qdisc show dev eth0", "sfq");
    import_as("qdisc add dev eth0 root handle 8001: fq_codel ecn\r\n", "fq_codel ecn");
}

#[test]
fn commands_are_replayed_in_their_order() {
    let first = "tc qdisc add dev eth0 root fq_codel target 9ms limit 500\n";
    let all = |rest: &str| format!("{first}{rest}");
    import_as(
        &all("tc qdisc change dev eth0 root fq_codel limit 600"),
        "fq_codel target 9ms limit 600",
    );
    import_as(
        &all("tc qdisc replace dev eth0 root fq_codel limit 600"),
        "fq_codel target 9ms limit 600",
    );
    import_as(&all("tc qdisc replace dev eth0 root pfifo limit 9"), "pfifo limit 9");
    import_as(&all("tc qdisc del dev eth0 root\ntc qdisc add dev eth0 root sfq"), "sfq");
    assert_eq!(queues(&all("tc qdisc del dev eth0 root")), []);
    // The kernel takes the options of a tbf whole.
    let script = "tc qdisc add dev x root netem delay 10ms loss 1%\ntc qdisc change dev x root netem delay 20ms\n";
    import_as(script, "netem delay 20ms");
    // A class with what is in it, and the tree with its root.
    let script = format!(
        "{HTB}tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
         tc qdisc add dev eth0 parent 1:10 handle 10: sfq\n\
         tc class change dev eth0 parent 1: classid 1:10 htb rate 2mbit\n"
    );
    import_as(&script, "htb rate 2mbit leaf sfq");
    let lost = format!("{script}tc qdisc del dev eth0 root\n{HTB}");
    assert!(refusal(&lost).1.contains("class 1:10"), "{:?}", refusal(&lost));
    import_as(&format!("{script}tc qdisc del dev eth0 parent 1:10"), "htb rate 2mbit");
}

/// Traffic that enters eth0 is led through ifb0, the usual way to shape a downlink.
#[test]
fn an_ifb_is_the_queue_of_what_comes_in() {
    let script = "ip link add name ifb0 type ifb\nip link set ifb0 up\n\
        tc qdisc add dev eth0 root cake bandwidth 8mbit\n\
        tc qdisc add dev eth0 handle ffff: ingress\n\
        tc filter add dev eth0 parent ffff: protocol all prio 10 u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev ifb0\n\
        tc qdisc add dev ifb0 root cake bandwidth 40mbit\n";
    let [up, down] = queues(script).try_into().unwrap();
    assert_eq!((up.device.as_str(), up.ingress, up.through), ("eth0", false, None));
    assert_eq!(
        (down.device.as_str(), down.ingress, down.through.as_deref()),
        ("eth0", true, Some("ifb0"))
    );
    assert_eq!(down.queue, QdiscSpec::parse("cake bandwidth 40mbit").unwrap());
    assert_eq!(down.lines, [4, 5, 6]);
    let bare = script.replace("tc qdisc add dev ifb0 root cake bandwidth 40mbit\n", "");
    assert_eq!(refusal(&bare).0, 5);
}

/// As wondershaper polices the downlink; what exceeds must be dropped.
#[test]
fn a_policer_of_what_comes_in_is_a_queue() {
    let script = "tc qdisc add dev ppp0 handle ffff: ingress\n\
        tc filter add dev ppp0 parent ffff: protocol ip prio 50 u32 match ip src 0.0.0.0/0 police rate 3mbit \\\n burst 10k drop flowid :1\n";
    let imported = import_as(script, "police rate 3mbit burst 10k");
    assert_eq!(
        (imported.ingress, imported.lines.as_slice(), imported.notes.len()),
        (true, &[1, 2, 3][..], 1)
    );
    let words = "action police rate 3mbit burst 10k mtu 1514 peakrate 4mbit conform-exceed drop";
    let matchall =
        format!("tc qdisc add dev x clsact\ntc filter add dev x ingress matchall {words}");
    import_as(&matchall, "police rate 3mbit burst 10k mtu 1514 peakrate 4mbit");
    for (from, to, said) in [
        (" conform-exceed drop", "", "\"drop\" behind it"),
        ("exceed drop", "exceed pipe", "\"pipe\""),
        ("peakrate", "avrate", "\"avrate\""),
        ("rate 3mbit burst 10k", "pkts_rate 9 pkts_burst 2", "\"pkts_rate\""),
    ] {
        let (line, text) = refusal(&matchall.replace(from, to));
        assert_eq!(line, 2);
        assert!(text.contains(said), "{text}");
    }
}

/// Inner classes count, and siblings without a filter carry nothing: the notes say so.
#[test]
fn the_class_that_all_packets_go_to_is_found() {
    let classes = "tc class add dev eth0 parent 1: classid 1:1 htb rate 20mbit\n\
        tc class add dev eth0 parent 1:1 classid 1:10 htb rate 10mbit prio 1 quantum 1514\n\
        tc class add dev eth0 parent 1:1 classid 1:20 htb rate 5mbit ceil 20mbit\n\
        tc qdisc add dev eth0 parent 1:20 sfq\n";
    let imported = import_as(&format!("{HTB}{classes}"), "htb rate 10mbit");
    let begins =
        ["prio 1 (line 3)", "quantum 1514 (line 3)", "class 1:1 (line 2)", "class 1:20 (line 4)"];
    assert_eq!(imported.notes.len(), begins.len(), "{:?}", imported.notes);
    assert!(imported.notes.iter().zip(begins).all(|(note, begin)| note.starts_with(begin)));
    // A class that borrows is one of a tree.
    let led = "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 0.0.0.0/0 flowid 1:20";
    import_as(
        &format!("{HTB}{classes}{led}"),
        "tc qdisc add root handle 1: htb default 10; tc class add parent 1: classid 1:1 htb rate 20mbit; \
         tc class add parent 1:1 classid 1:10 htb rate 10mbit prio 1 quantum 1514; \
         tc class add parent 1:1 classid 1:20 htb rate 5mbit ceil 20mbit; tc qdisc add parent 1:20 sfq; \
         tc filter add parent 1: protocol ip prio 1 matchall classid 1:20",
    );
    let later = "tc filter add dev eth0 parent 1: protocol ip prio 9 matchall classid 1:10\n";
    import_as(&format!("{HTB}{classes}{}", later), "htb rate 10mbit");
}

#[test]
fn what_cannot_be_is_refused_with_its_line() {
    let class = "tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n";
    let htb = format!("{HTB}{class}");
    for (script, line, said) in [
        ("", 1, "no command of tc"),
        ("# tc qdisc add dev eth0 root sfq", 1, "no command of tc"),
        ("\nwondershaper eth0 1000 500", 2, "\"wondershaper\""),
        ("iptables -F", 1, "no command of tc"),
        ("tc qdisc add dev eth0 root", 1, "the name of a discipline"),
        ("tc qdisc add root sfq", 1, "no \"dev\""),
        ("tc qdisc add dev eth0 sfq", 1, "\"root\""),
        ("tc qdisk add dev eth0 root sfq", 1, "qdisc, class or filter"),
        ("tc qdisc ad dev eth0 root fq_codle", 1, "fq_codel"),
        ("tc qdisc add dev eth0 root mq", 1, "one that the simulator models"),
        ("tc qdisc add dev eth0 root codel\\\n  target 5ms\\\n  limt 9", 3, "\"limt\""),
        ("tc qdisc add dev eth0 root sfq perturb x", 1, "\"perturb x\""),
        ("tc qdisc add dev eth0 root pfifo limit 0x", 1, "\"limit 0x\""),
        ("tc qdisc add dev eth0 root stab overhead 18 cake bandwidth 1mbit", 1, "\"stab\""),
        ("tc qdisc add dev eth0 root stab linklayer vdsl sfq", 1, "\"vdsl\""),
        ("tc qdisc add dev eth0 root htb rate 1mbit leaf sfq", 1, "\"rate\""),
        ("tc qdisc add dev eth0 root sfq leaf pfifo", 1, "\"leaf\""),
        (
            "tc qdisc add dev eth0 root sfq\ntc qdisc add dev eth0 root sfq",
            2,
            "\"replace\": line 1",
        ),
        ("tc qdisc change dev eth0 root sfq", 1, "\"add\""),
        (
            "tc qdisc add dev eth0 root fq_codel\ntc qdisc change dev eth0 root codel",
            2,
            "\"fq_codel\"",
        ),
        ("tc qdisc add dev eth0 parent 1:1 sfq", 1, "\"parent 1:1\""),
        ("tc qdisc add dev $IF root sfq", 1, "\"$IF\""),
        ("tc qdisc add dev $(ip -o link) root sfq", 1, "the value itself"),
        ("tc qdisc add dev 'eth0 root sfq", 1, "the quote's end"),
        (
            "tc qdisc add dev eth0 root handle 1: red limit 60kb avpkt 1000\ntc qdisc add dev eth0 parent 1:1 sfq",
            2,
            "nothing in red",
        ),
        (
            "tc qdisc add dev x root handle 1: netem delay 9ms 1ms\ntc qdisc add dev x parent 1: sfq",
            1,
            "\"delay TIME\"",
        ),
        (
            "tc qdisc add dev x root netem delay 9ms 1ms 25%\ntc qdisc change dev x root netem delay 9ms",
            2,
            "\"del\"",
        ),
        ("tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit", 1, "\"handle 1:\""),
        (HTB, 1, "class 1:10"),
        (&format!("tc qdisc add dev eth0 root handle 1: htb\n{class}"), 1, "no \"default\""),
        (&format!("{htb}{class}"), 3, "not there yet"),
        (&htb.replace("htb rate", "hfsc rate"), 2, "\"hfsc\""),
        (&htb.replace("1mbit", "1mbit mtu x"), 2, "\"mtu x\""),
        ("tc qdisc add dev x root tbf rate `a b`bit", 1, "\"`a b`\""),
        ("tc qdisc add dev x root tbf rate $((8 * 2))mbit", 1, "\"$((8 * 2))\""),
        (
            "tc qdisc add dev eth0 root sfq\n\nqdisc sfq 8001: dev eth0 root refcnt 2",
            3,
            "a listing of `tc qdisc show`",
        ),
        ("tc -s qdisc show <<EOF", 1, "\"<<EOF\""),
        (&htb.replace("1mbit", "1mbt"), 2, "\"rate 1mbt\""),
        (&htb.replace("1mbit", "1mbit r2q 9"), 2, "\"r2q\""),
        (&htb.replace("parent 1:", "parent 1:9"), 2, "\"parent 1:9\""),
        (&htb.replace("1:10", "1:xyz"), 2, "\"1:xyz\""),
        (
            &format!("{htb}tc filter add dev eth0 parent 1: u32 match ip ttl 80 0xff flowid 1:10"),
            3,
            "\"ttl\"",
        ),
        (
            &format!("{htb}tc filter add dev eth0 parent 1: flower ip_ttl 9 classid 1:10"),
            3,
            "\"ip_ttl\"",
        ),
        (&format!("{htb}tc filter add dev eth0 parent 1: basic match x classid 1:10"), 3, "\"x\""),
    ] {
        let (at, text) = refusal(script);
        assert_eq!(at, line, "{script}: {text}");
        assert!(text.contains(said), "{script}: {text}");
    }
}

/// A script whose filters choose classes is a tree; filters of other protocols take nothing.
#[test]
fn a_script_with_filters_is_a_tree() {
    let script = format!(
        "\n\n{}\
         tc class add dev eth0 parent 1: classid 1:1 htb rate 10000kbit\n\
         tc class add dev eth0 parent 1:1 classid 1:10 htb rate 6mbit ceil 10mbit prio 2\n\
         tc class add dev eth0 parent 1:1 classid 1:11 htb rate 1mbit ceil 3mbit prio 1 mtu 1514\n\
         tc qdisc add dev eth0 parent 1:10 handle 100: fq_codel\n\
         tc filter add dev eth0 parent 1:0 protocol ip prio 1 handle 1/0xff fw classid 1:11\n\
         tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip tos 0xb8 0xfc flowid 1:11\n\
         tc filter add dev eth0 parent 1: protocol ipv6 prio 3 matchall classid 1:11\n",
        HTB
    );
    let tree = "tc qdisc add root handle 1: htb default 10; tc class add parent 1: classid 1:1 htb rate 10mbit; \
                tc class add parent 1:1 classid 1:10 htb rate 6mbit ceil 10mbit prio 2; \
                tc class add parent 1:1 classid 1:11 htb rate 1mbit ceil 3mbit prio 1; \
                tc qdisc add parent 1:10 fq_codel; \
                tc filter add parent 1: protocol ip prio 1 handle 0x1/0xff fw classid 1:11; \
                tc filter add parent 1: protocol ip prio 2 u32 match ip dsfield 0xb8 0xfc classid 1:11";
    let imported = import_as(&script, tree);
    assert_eq!(imported.lines, [3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(imported.notes.len(), 2, "{:?}", imported.notes);
    assert_eq!(imported.path(), [("queue", imported.queue.print())]);
    // A queue that no line limits is as long as its interface's.
    let ifb = script.replace("eth0", "ifb0");
    let [on_ifb] = queues(&ifb).try_into().unwrap();
    assert!(on_ifb.queue.print().contains("tc qdisc add parent 1:11 pfifo limit 32"));
    let size = script.replace("root handle 1:", "root handle 1: stab overhead 18 linklayer atm");
    let [sized] = queues(&size).try_into().unwrap();
    assert_eq!(sized.queue.print().matches("overhead 18 linklayer atm").count(), 3);
}

/// Words that change nothing are named in a note.
#[test]
fn words_that_change_nothing_are_noted() {
    let class = "tc class add dev eth0 parent 1: classid 1:10 htb rate 8mbit overhead 18 mtu 2047";
    let imported = import_as(&format!("{HTB}{class}"), "htb rate 8mbit overhead 18");
    assert!(
        imported.notes[0].starts_with("mtu 2047 (line 2) changes nothing:"),
        "{:?}",
        imported.notes
    );
    let cake = "tc qdisc add dev eth0 root cake bandwidth 8mbit nat fwmark 0xff ack-filter";
    assert_eq!(import_as(cake, "cake bandwidth 8mbit ack-filter").notes.len(), 2);
    assert_eq!(
        import_as("tc qdisc add dev eth0 root fq buckets 1024 horizon_drop", "fq").notes.len(),
        2
    );
    let fast = import_as("tc qdisc replace dev eth0 root pfifo_fast", "pfifo limit 1000");
    assert!(fast.notes[0].starts_with("pfifo_fast (line 1)"), "{:?}", fast.notes);
    for length in [
        "ip link set dev eth0 txqueuelen 50",
        "sudo ip link set eth0 txqueuelen 50",
        "ifconfig eth0 txqueuelen 50",
    ] {
        import_as(&format!("{length}\ntc qdisc add dev eth0 root pfifo_fast"), "pfifo limit 50");
    }
}

/// A namespace in front of tc, behind it, and two interfaces of one name.
#[test]
fn namespaces_are_told_apart() {
    let words = "qdisc add dev eth0 root tbf rate 10mbit burst 32kbit latency 400ms";
    for script in [
        format!("ip netns exec r1 tc {words}"),
        format!("sudo ip netns exec r1 sudo /sbin/tc {words}"),
        format!("tc -n r1 {words}"),
        format!("tc -s -netns r1 {words}"),
    ] {
        let imported = import_as(&script, "tbf rate 10mbit burst 32kbit latency 400ms");
        assert_eq!(imported.device, "eth0", "{script}");
    }
    let two = queues(&format!("tc -n a {words}\ntc -n b {words}"));
    assert_eq!(
        two.iter().map(|imported| imported.device.as_str()).collect::<Vec<_>>(),
        ["eth0 in a", "eth0 in b"]
    );
    let led = "tc -n a qdisc add dev eth0 ingress\ntc -n b qdisc add dev ifb0 root sfq\n\
        tc -n a filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0";
    assert!(refusal(led).1.contains("ifb0 in a"), "{:?}", refusal(led));
}

/// Other programs' commands are listed, whatever a shell would make of their words.
#[test]
fn other_programs_are_skipped_and_listed() {
    let script = "#!/bin/bash\nset -euo pipefail\n\n\
        echo \"$(date) for $1, `uname -r`\"; ethtool -K eth0 tso off\nip netns exec r1 sysctl -w net.ipv4.tcp_ecn=1\n\
        sleep 1 && tc qdisc add dev eth0 root sfq\ntc -s qdisc ls dev eth0\nip addr flush dev ${IF}\n";
    let found = import(script).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(found.queues[0].device, "eth0");
    let lines: Vec<usize> = found.skipped.iter().map(|imported| imported.line).collect();
    assert_eq!(lines, [2, 4, 4, 5, 6, 8]);
    assert_eq!(found.skipped[2].command, "ethtool -K eth0 tso off");
}

/// 144 Mbit/s times 300 ms are 3,600 packets: netem's limit is what drops, and stays with the delay.
#[test]
fn a_netem_that_its_delay_fills_keeps_its_limit() {
    let script = |limit: &str, rate: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: netem delay 300ms {limit}\n\
             tc qdisc add dev eth0 parent 1: handle 10: tbf rate {rate} burst 128kb limit 10mb"
        )
    };
    for (limit, packets) in [("", 1000), ("limit 3000", 3000), ("limit 20", 20)] {
        let words = "tbf rate 144mbit burst 128kb limit 10mb";
        let imported = import_as(&script(limit, "144mbit"), words);
        let netem = format!("limit {packets} delay 300ms");
        let kept = imported.front.iter().find(|(field, _)| *field == "netem").map(|(_, text)| text);
        let kept = QdiscSpec::parse(&format!("netem {}", kept.expect("a netem"))).unwrap();
        assert_eq!(kept, QdiscSpec::parse(&format!("netem {netem}")).unwrap());
        assert_eq!(imported.front[0], ("rtt", "0ms".to_owned()));
        assert!(
            imported.notes[0].contains(&format!("at most {packets} packets")),
            "{:?}",
            imported.notes
        );
    }
    // 3,600 packets fit into 4,000; at 30 Mbit/s 744 into the default of 1,000.
    for (limit, rate) in [("limit 4000", "144mbit"), ("", "30mbit")] {
        let words = format!("tbf rate {rate} burst 128kb limit 10mb");
        assert_eq!(import_as(&script(limit, rate), &words).front, [("rtt", "300ms".to_owned())]);
    }
    // The rate of the line is unknown.
    let sfq = "tc qdisc add dev x root handle 1: netem delay 9ms\ntc qdisc add dev x parent 1: sfq";
    assert_eq!(import_as(sfq, "sfq").front[1].0, "netem");
}

/// One discipline within another, as tutorials have it.
#[test]
fn a_discipline_within_another_is_one_queue() {
    let tbf = "tc qdisc add dev x root handle 1: tbf rate 1mbit burst 4kb latency 400ms\n";
    let netem = "tc qdisc add dev x parent 1:1 handle 10: netem delay 100ms";
    let bucket = "htb rate 1mbit burst 4kb cburst 4kb";
    import_as(&format!("{tbf}{netem}"), &format!("{bucket} leaf netem delay 100ms"));
    let netem = "tc qdisc add dev x root handle 1:0 netem delay 100ms loss 0.5%\n";
    let inner = tbf.replace("root handle 1:", "parent 1:1 handle 10:");
    let imported = import_as(&format!("{netem}{inner}"), "tbf rate 1mbit burst 4kb latency 400ms");
    let front = [("rtt", "100ms".to_owned()), ("loss", "0.5%".to_owned())];
    assert_eq!(imported.front, front);
    assert_eq!(imported.path()[1..], front);
    let prio = "tc qdisc add dev x root handle 1: prio\ntc qdisc add dev x parent 1:3 handle 30: netem delay 9ms\n";
    import_as(prio, "pfifo limit 1000");
    let led = "tc filter add dev x parent 1: protocol ip u32 match ip dst 0/0 flowid 1:3";
    import_as(&format!("{prio}{led}"), "netem delay 9ms");
    let hfsc = "tc qdisc add dev x root handle 1: hfsc default 12\n\
        tc class add dev x parent 1: classid 1:1 hfsc sc rate 1mbit ul rate 1mbit\n\
        tc class add dev x parent 1:1 classid 1:12 hfsc sc umax 1500b dmax 53ms rate 400kbit ul rate 2mbit\n\
        tc qdisc add dev x parent 1:12 sfq";
    import_as(hfsc, "htb rate 1mbit leaf sfq");
}

/// A size table is what a link adds to each packet.
#[test]
fn a_size_table_is_an_overhead() {
    let table = "stab linklayer adsl overhead 40 mpu 64 mtu 2047 tsize 512";
    let class = "tc class add dev eth0 parent 1: classid 1:10 htb rate 8mbit";
    let script = format!("{}{class}", HTB.replace("htb", &format!("{table} htb")));
    import_as(&script, "htb rate 8mbit overhead 40 mpu 64 linklayer atm");
    assert!(refusal(&format!("{script} overhead 4")).1.contains("both count"));
    let tbf = format!("tc qdisc add dev x root {table} tbf rate 1mbit burst 4kb limit 9kb");
    import_as(
        &tbf,
        "htb rate 1mbit burst 4kb cburst 4kb overhead 40 mpu 64 linklayer atm leaf bfifo limit 9kb",
    );
    assert_eq!(import_as(&format!("tc qdisc add dev x root {table} sfq"), "sfq").notes.len(), 1);
}

/// cbq by its rates: a bounded class has its rate as ceiling, another that of the class above it.
#[test]
fn cbq_is_an_htb_of_its_rates() {
    let root = "tc qdisc add dev x root handle 1: cbq avpkt 1000 bandwidth 10mbit\n";
    let classes = "tc class add dev x parent 1: classid 1:1 cbq rate 200kbit allot 1500 prio 5 bounded isolated\n\
        tc class add dev x parent 1:1 classid 1:10 cbq rate 200kbit allot 1600 prio 1 avpkt 1000\n\
        tc class add dev x parent 1:1 classid 1:20 cbq rate 180kbit allot 1600 prio 2 avpkt 1000\n\
        tc class add dev x parent 1:1 classid 1:30 cbq rate 60kbit allot 1600 prio 2 avpkt 1000 bounded\n\
        tc qdisc add dev x parent 1:30 handle 30: sfq perturb 10\n";
    let filters = "tc filter add dev x parent 1:0 protocol ip prio 10 u32 match ip tos 0x10 0xff flowid 1:10\n\
        tc filter add dev x parent 1: protocol ip prio 18 u32 match ip dst 0.0.0.0/0 flowid 1:20";
    let imported = import_as(
        &format!("{root}{classes}{filters}"),
        // Turns of 1600 bytes in the mean of a priority: 180 and 60 of 120 kbit/s.
        "tc qdisc add root handle 1: htb; tc class add parent 1: classid 1:1 htb rate 200kbit prio 4 quantum 1500; \
         tc class add parent 1:1 classid 1:10 htb rate 200kbit ceil 200kbit prio 0 quantum 1600; \
         tc class add parent 1:1 classid 1:20 htb rate 180kbit ceil 200kbit prio 1 quantum 2400; \
         tc class add parent 1:1 classid 1:30 htb rate 60kbit ceil 60kbit prio 1 quantum 800; \
         tc qdisc add parent 1:10 pfifo; tc qdisc add parent 1:20 pfifo; tc qdisc add parent 1:30 sfq perturb 10; \
         tc filter add parent 1: protocol ip prio 10 u32 match ip tos 0x10 0xff flowid 1:10; \
         tc filter add parent 1: protocol ip prio 18 u32 match ip dst 0/0 flowid 1:20",
    );
    assert!(imported.notes[0].starts_with("cbq (line 1) is read as htb"), "{:?}", imported.notes);
    // One that is not bounded borrows up to the line's rate, from a class that stands for the discipline.
    let free = "tc class add dev x parent 1: classid 1:2 cbq rate 1mbit weight 100kbit prio 3\n\
        tc class add dev x parent 1: classid 1:3 cbq rate 3mbit weight 300kbit prio 3\n\
        tc filter add dev x parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:3\n\
        tc filter add dev x parent 1: protocol ip prio 2 u32 match u32 0 0 flowid 1:2";
    import_as(
        &format!("{root}{free}"),
        "tc qdisc add root handle 1: htb; tc class add parent 1: classid 1:fffe htb rate 10mbit; \
         tc class add parent 1:fffe classid 1:2 htb rate 1mbit ceil 10mbit prio 2 quantum 757; \
         tc class add parent 1:fffe classid 1:3 htb rate 3mbit ceil 10mbit prio 2 quantum 2271; \
         tc qdisc add parent 1:2 pfifo; tc qdisc add parent 1:3 pfifo; \
         tc filter add parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:3; \
         tc filter add parent 1: protocol ip prio 2 matchall flowid 1:2",
    );
    for (class, word) in [
        ("cbq rate 1mbit split 1:0 defmap c0", "\"split\""),
        ("cbq bounded", "without \"rate\""),
        ("cbq rate fast", "\"fast\""),
        ("cbq rate 1mbit prio 9", "\"9\""),
    ] {
        let script = format!("{root}tc class add dev x parent 1: classid 1:2 {class}");
        let (line, text) = refusal(&script);
        assert!(line == 2 && text.contains(word), "{text}");
    }
    assert!(refusal("tc qdisc add dev x root handle 1: cbq avpkt 1000").1.contains("bandwidth"));
}

/// CeroWrt's discipline has defaults of its own; what is given stays.
#[test]
fn nfq_codel_is_fq_codel_with_its_limit_and_quantum() {
    let root = "tc qdisc add dev x root nfq_codel";
    let imported = import_as(root, "fq_codel limit 1024 quantum 300");
    assert!(imported.notes[0].starts_with("nfq_codel (line 1)"), "{:?}", imported.notes);
    import_as(&format!("{root} noecn quantum 1500"), "fq_codel limit 1024 quantum 1500 noecn");
}

/// A time without a unit is in microseconds to tc, and a note says so.
#[test]
fn a_plain_time_of_a_curve_is_in_microseconds() {
    let tree = "tc qdisc add dev x root handle 1: hfsc default 1\n\
        tc class add dev x parent 1: classid 1:1 hfsc sc umax 1500b dmax 50 rate 1mbit\n\
        tc filter add dev x parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:1";
    let words = tree.replace(" dev x", "").replace("dmax 50", "dmax 50us").replace('\n', "; ");
    assert_eq!(
        import_as(tree, &words).notes,
        ["dmax 50 (line 2) is in microseconds, as tc takes it"]
    );
}

/// `tc filter del` takes a filter by its handle, or all of a priority.
#[test]
fn a_filter_is_deleted_by_its_handle() {
    let tree = "tc qdisc add dev x root handle 1: htb default 2\n\
        tc class add dev x parent 1: classid 1:1 htb rate 1mbit\n\
        tc class add dev x parent 1: classid 1:2 htb rate 2mbit\n\
        tc filter add dev x parent 1: protocol ip prio 1 handle 6 fw classid 1:1\n\
        tc filter add dev x parent 1: protocol ip prio 1 handle 7 fw classid 1:1\n";
    let words = tree.replace(" dev x", "").replace('\n', "; ");
    let left =
        words.replace("tc filter add parent 1: protocol ip prio 1 handle 6 fw classid 1:1; ", "");
    import_as(&format!("{tree}tc filter del dev x parent 1: prio 1 handle 6 fw"), &left);
    import_as(&format!("{tree}tc filter del dev x parent 1: prio 1"), "htb rate 2mbit");
}

/// Tables of u32 and conditions of basic are read in the classes that they lead to.
#[test]
fn tables_and_conditions_lead_to_classes() {
    let tree = "tc qdisc add dev x root handle 1: htb default 2\n\
        tc class add dev x parent 1: classid 1:1 htb rate 1mbit\n\
        tc class add dev x parent 1: classid 1:2 htb rate 2mbit\n";
    let words = tree.replace(" dev x", "").replace('\n', "; ");
    let tables = "tc filter add dev x parent 1:0 prio 1 handle 101: u32 divisor 1\n\
        tc filter add dev x parent 1:0 prio 1 u32 match mark 0x0001 0xffff match ip protocol 6 0xff link 101:0: \
        offset at 0 mask 0x0f00 shift 6 plus 0 eat\n\
        tc filter add dev x parent 1:0 prio 1 u32 ht 101:0: match tcp dst 22 0xffff flowid 1:1\n";
    let imported = import_as(
        &format!("{tree}{tables}"),
        &format!(
            "{words}tc filter add parent 1: prio 1 basic match 'meta(nf_mark mask 0xffff eq 1) and \
             cmp(u32 at 8 layer 1 mask 0xff0000 eq 0x60000) and cmp(u32 at 20 layer 1 mask 0xffff eq 22)' flowid 1:1"
        ),
    );
    assert!(imported.notes[0].contains("by their mark"), "{:?}", imported.notes);
    let basic = "tc filter add dev x parent 1: basic match 'meta(priority eq 6)' classid 1:1";
    import_as(
        &format!("{tree}{basic}"),
        &format!("{words}tc filter add parent 1: basic match meta(priority eq 6) classid 1:1"),
    );
}
