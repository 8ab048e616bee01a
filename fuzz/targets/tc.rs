//! tc(8)'s words: rates, sizes, times, shares, queue disciplines, and scripts of its commands. What is read is printed and
//! read again.
#![no_main]

use dragstrip_qdisc::import;
use dragstrip_scenario::{NetemSpec, QdiscSpec};
use dragstrip_units::tc;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = tc::parse_rate(text);
    let _ = tc::parse_size(text);
    let _ = tc::parse_time(text);
    let _ = tc::parse_percent(text);
    let _ = NetemSpec::parse_text(text);
    for queue in import::import(text).unwrap_or_default().queues {
        let printed = queue.queue.print();
        assert_eq!(QdiscSpec::parse(&printed).as_ref(), Ok(&queue.queue), "{printed}");
        let fields = queue.path();
        let (_, words) = fields.iter().find(|(field, _)| *field == "queue").expect("a queue");
        assert!(QdiscSpec::parse(words).is_ok(), "{words}");
    }
    if let Ok(qdisc) = QdiscSpec::parse(text) {
        let printed = qdisc.print();
        let again = QdiscSpec::parse(&printed).unwrap_or_else(|problem| panic!("{printed}: {problem:?}"));
        assert_eq!(again.print(), printed);
    }
});
