//! Placement of the two halves of a link, and the changes at each when the link changes.

use super::*;
use serde_json::json;

/// right - center - left, as the GENI exercise has them.
fn lab() -> Lab {
    let cable = |name: &str, address: &str, to: &str| json!({"name": name, "address": address, "length": 24, "to": to});
    let host = |name: &str, role: &str, interfaces| json!({"name": name, "ssh": name, "role": role, "management": "m", "rights": "root", "interfaces": interfaces});
    let center = [cable("eth1", "10.0.2.2", "right"), cable("eth2", "10.0.1.2", "left")];
    serde_json::from_value(json!({
        "name": "course", "revert_after_ns": 0, "prefixes": [], "ssh": [], "control": "", "owner": "",
        "allow": {"sysctl": ["net.ipv4.tcp_*"], "offloads": true, "replace_qdisc": false, "programs": false},
        "nodes": {"s": "right", "r": "center", "d": "left"},
        "hosts": [
            host("right", "sender", json!([cable("eth1", "10.0.2.1", "center")])),
            host("center", "router", json!(center)),
            host("left", "receiver", json!([cable("eth1", "10.0.1.1", "center")])),
        ],
    }))
    .unwrap()
}

fn placed(bottleneck: &str, changes: &str) -> Placement {
    let text = format!(
        r#"{{"name": "t", "duration_ns": 1000000000, "nodes": [
            {{"kind": "host", "name": "s"}}, {{"kind": "router", "name": "r"}}, {{"kind": "host", "name": "d"}}],
          "links": [{{"name": "s-r", "from": "s", "to": "r"}}, {{"name": "r-s", "from": "r", "to": "s"}},
            {{"name": "r-d", "from": "r", "to": "d"{bottleneck}}}, {{"name": "d-r", "from": "d", "to": "r"}}],
          "flows": [{{"label": "f", "sender": "s", "receiver": "d",
            "transport": {{"protocol": "tcp", "cc": "reno"}}, "application": {{"kind": "bulk"}}}}],
          "changes": {changes}}}"#
    );
    place(&serde_json::from_str(&text).unwrap(), &lab(), &BTreeMap::new()).unwrap()
}

/// (interface, place, discipline) of one host's queues.
fn queues(placement: &Placement, host: &str) -> Vec<(String, Place, &'static str)> {
    let queues = placement.parts[host].queues.iter();
    queues.map(|queue| (queue.interface.clone(), queue.place, queue.qdisc.kind())).collect()
}

/// (when, the queue's number, whether it begins anew) of one host's changes.
fn steps(placement: &Placement, host: &str) -> Vec<(u64, usize, bool)> {
    let plan = placement.plan_of(host);
    plan.steps.iter().map(|step| (step.at_ns, step.hop, step.anew)).collect()
}

#[test]
fn a_change_goes_to_the_host_whose_queue_it_concerns() {
    let wire = r#", "rate_bps": 8000000, "qdisc": {"kind": "pfifo", "limit_packets": 9}"#;
    let changes = r#"[{"at_ns": 5, "link": "r-d", "rate_bps": 4000000}, {"at_ns": 6, "link": "r-d", "delay_ns": 9},
        {"at_ns": 7, "link": "r-d", "up": false}, {"at_ns": 8, "link": "r-d", "up": true}]"#;
    let placement = placed(wire, changes);
    let shaper = ("eth2".to_owned(), Place::Egress, "htb");
    assert_eq!(queues(&placement, "center"), [shaper]);
    assert_eq!(steps(&placement, "center"), [(5, 0, false), (7, 0, true), (8, 0, true)]);
    let behind = ("eth1".to_owned(), Place::Ingress, "netem");
    assert_eq!(queues(&placement, "left"), [behind]);
    assert_eq!(steps(&placement, "left"), [(6, 0, false)]);
    assert!(queues(&placement, "right").is_empty());
}

#[test]
fn a_plain_cable_that_goes_down_has_a_place_for_it() {
    let placement = placed("", r#"[{"at_ns": 7, "link": "r-d", "up": false}]"#);
    let cable = ("eth2".to_owned(), Place::Egress, "noqueue");
    assert_eq!(queues(&placement, "center"), [cable]);
    assert_eq!(steps(&placement, "center"), [(7, 0, true)]);
    assert!(queues(&placement, "left").is_empty());
}

#[test]
fn without_changes_a_delay_without_a_queue_stands_where_packets_leave() {
    let placement = placed(r#", "delay_ns": 9000000"#, "[]");
    assert_eq!(queues(&placement, "center"), [("eth2".to_owned(), Place::Egress, "netem")]);
    assert!(queues(&placement, "left").is_empty());
}
