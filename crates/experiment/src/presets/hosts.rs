//! Hosts by name: what happens to TCP's bursts between its socket and the path, and back.

use crate::types::{HostForm, InterfaceForm};

/// A kind of host that `preset = "..."` in `[hosts]` and `--hosts` name.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct NamedHost {
    /// Its name.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Kernel functions, drivers and defaults that it follows.
    pub source: &'static str,
    /// The equivalent fields of `[hosts]`, as JSON.
    pub form: &'static str,
}

impl NamedHost {
    /// Its fields of `[hosts]`. A test checks that the table is valid.
    #[must_use]
    pub fn settings(&self) -> HostForm {
        serde_json::from_str(self.form).unwrap_or_default()
    }
}

impl InterfaceForm {
    /// Takes over what `form` sets.
    pub(crate) fn take(&mut self, form: &Self) {
        let Self { rate, queue, interrupts, gro } = form.clone();
        self.rate = rate.or(self.rate);
        self.queue = queue.or_else(|| self.queue.take());
        self.interrupts = interrupts.or(self.interrupts);
        self.gro = gro.or(self.gro);
    }
}

const fn row([name, about, source, form]: [&'static str; 4]) -> NamedHost {
    NamedHost { name, about, source, form }
}

/// All kinds, in the order in which they are listed: name, description, source, form.
#[rustfmt::skip]
pub const HOSTS: &[NamedHost] = &[
    row(["plain", "the default of `compare`: bursts as TCP builds them, cut into single frames as they leave, at once; each frame is \
        received by itself",
        "`tcp_tso_autosize`; veth with TSO, GSO and GRO off, as testbeds set them with `ethtool -K`",
        r#"{"gso": "auto"}"#]),
    row(["veth", "containers, network namespaces, Mininet: a burst stays one packet through every queue on the way, is dropped whole, and \
        gets one ACK; nothing waits for an interrupt",
        "`veth_xmit` hands on what it gets: veth has TSO and GSO on by default and no line to cut for; `__tcp_ack_snd_check` acknowledges \
        more than one segment at once; `tcp_retransmit_skb` sends bursts too",
        r#"{"gso": "whole"}"#]),
    row(["card", "a PC with a gigabit card: TSO cuts a burst at line rate, 20,000 interrupts per second at most, GRO merges what one \
        interrupt finds",
        "e1000e and igb: `e1000_set_itr` and `igb_set_itr` (20,000 per second, low_latency, is what their conservative mode, the default, \
        settles at for a full gigabit of received frames); `tcp_gro_receive`; `napi_gro_flush` at the end of each poll, as with \
        `gro_flush_timeout` 0, the default; pfifo_fast with a txqueuelen of 1000",
        r#"{"gso": "auto", "interface": {"rate": "1gbit", "interrupts": "50us", "gro": true}}"#]),
    row(["server", "a server with a card of 10 Gbit/s and fq, which paces every connection; otherwise as `card`",
        "ixgbe: `IXGBE_20K_ITR` (`ixgbe_alloc_q_vector`); sch_fq on each hardware queue of mq: `fq_classify` sets `sk_pacing_status`, TCP \
        then spaces its bursts by `sk_pacing_rate` (`tcp_update_skb_after_send`)",
        r#"{"gso": "auto", "interface": {"rate": "10gbit", "queue": "fq", "interrupts": "50us", "gro": true}}"#]),
    row(["paced", "fq at the host's interface and nothing else of a card: every connection is paced, by whatever algorithm",
        "`net.core.default_qdisc = fq`: `fq_classify`, `tcp_update_pacing_rate` (200 % of the window per round trip in slow start, 120 % \
        afterwards), `tcp_update_skb_after_send`",
        r#"{"gso": "auto", "interface": {"queue": "fq"}}"#]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Experiment, build};
    use dragstrip_scenario::{GsoMode, InterruptSpec, Problem, Scenario};
    use serde_json::json;

    #[test]
    fn each_kind_is_made_of_settings_that_stand_alone() {
        for kind in HOSTS {
            let form: HostForm = serde_json::from_str(kind.form).expect(kind.name);
            let rest = HostForm { gso: None, interface: None, ..form.clone() };
            assert_eq!(json!(rest), json!(HostForm::default()), "{}", kind.name);
            assert!(form.gso.is_some(), "{}", kind.name);
        }
    }

    /// The scenario of a comparison with these fields of `[hosts."*"]`.
    fn scenario(fields: &serde_json::Value) -> Result<Scenario, Problem> {
        let content = json!({"duration": "1s", "path": {"rate": "10mbit", "rtt": "40ms"},
            "hosts": {"*": fields}, "flows": [{"cc": "cubic"}]});
        let scenario = build(&Experiment::from_json(&content.to_string())?, "x", 1)?;
        assert_eq!(scenario.validate(), Ok(()), "{fields}");
        Ok(scenario)
    }

    #[test]
    fn a_kind_sets_the_bursts_and_the_interface_of_its_hosts() {
        let veth = scenario(&json!({"preset": "veth"})).unwrap();
        assert_eq!(veth.nodes[0].host().unwrap().gso, GsoMode::Whole);
        assert_eq!(veth, scenario(&json!({"gso": "whole"})).unwrap());
        let card = scenario(&json!({"preset": "card"})).unwrap();
        let interrupts = InterruptSpec { gap_ns: 50_000, gro: true };
        assert_eq!(card.nodes[0].host().unwrap().interrupts, Some(interrupts));
        let access = card.links.iter().find(|link| link.from == "s1").unwrap();
        assert_eq!((access.rate_bps, access.qdisc.kind()), (Some(1_000_000_000), "pfifo"));
        let bottleneck = card.links.iter().find(|link| link.from == "r" && link.to == "d").unwrap();
        assert_eq!((bottleneck.rate_bps, bottleneck.qdisc.kind()), (None, "htb"));
        for (kind, paced) in [("plain", false), ("card", false), ("server", true), ("paced", true)]
        {
            let scenario = scenario(&json!({"preset": kind})).unwrap();
            assert_eq!(scenario.paced_hosts().contains("s1"), paced, "{kind}");
        }
    }

    #[test]
    fn what_stands_beside_a_kind_overrides_it() {
        let fields = json!({"preset": "card", "gso": "off", "interface": {"interrupts": "250us"}});
        let scenario = scenario(&fields).unwrap();
        let host = scenario.nodes[0].host().unwrap();
        assert_eq!(host.gso, GsoMode::Off);
        assert_eq!(host.interrupts, Some(InterruptSpec { gap_ns: 250_000, gro: true }));
        assert_eq!(scenario.links[0].rate_bps, Some(1_000_000_000));
    }

    #[test]
    fn a_wrong_kind_and_gro_without_interrupts_are_refused() {
        let problem = scenario(&json!({"preset": "crad"})).unwrap_err();
        assert_eq!(problem.field, "hosts.*.preset");
        assert!(problem.expected.contains("card"), "{}", problem.expected);
        let problem = scenario(&json!({"interface": {"gro": true}})).unwrap_err();
        assert_eq!(problem.field, "hosts.s1.interface.gro");
    }
}
