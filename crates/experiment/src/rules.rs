//! Constraints between the fields of an experiment, for every source: a file, a command line, Python or the page. The
//! first violation is reported, with the field, its value and what would be right.

use crate::applications::ApplicationForm;
use crate::arrivals::sizes_of;
use crate::claims::ClaimForm;
use crate::parts::emulation;
use crate::problem;
use crate::senders::SendersForm;
use crate::tables::value_text;
use crate::types::{ChangeForm, Experiment, FlowForm, LinkForm, PathForm, TransmitterKind};
use crate::words::{FlowWord, check_queue, is_scream};
use dragstrip_scenario::{Dscp, Problem};
use dragstrip_units::{Duration, suggest, tc};
use serde_json::Value;
use std::collections::BTreeSet;

/// The greatest seed: JavaScript's numbers, JSON's in many programs, hold whole numbers below 2^53.
pub const SEED_MAX: u64 = (1 << 53) - 1;
/// Flows, senders, receivers or repeats of one description.
pub(crate) const ALIKE_MAX: u64 = 100_000;

/// Checks an experiment that was read from `content`. Its flows may name `algorithms` and its own programs.
///
/// # Errors
/// The first field that is wrong.
pub(crate) fn check(
    experiment: &Experiment,
    content: &Value,
    algorithms: &[String],
) -> Result<(), Problem> {
    let rules = Rules { content };
    rules.whole(experiment)?;
    if let Some(path) = &experiment.path {
        rules.path(path)?;
    }
    for (index, link) in experiment.links.iter().enumerate() {
        rules.link(link, index)?;
    }
    let program_names = experiment.programs.keys();
    let names: Vec<&str> = algorithms.iter().chain(program_names).map(String::as_str).collect();
    for (index, flow) in experiment.flows.iter().enumerate() {
        rules.flow(flow, index, &names)?;
    }
    for (index, change) in experiment.changes.iter().enumerate() {
        rules.change(change, index)?;
    }
    for (index, claim) in experiment.claims.iter().enumerate() {
        rules.claim(claim, index)?;
    }
    rules.texts(experiment)
}

/// Refuses the name of an algorithm that is none of these.
fn one_of(name: &str, names: &[&str], field: &str) -> Result<(), Problem> {
    if names.contains(&name) {
        return Ok(());
    }
    let expected = format!("one of {}", names.join(", "));
    let expected = suggest(name, names.iter().copied(), &expected);
    Err(problem(field, &format!("{name:?}"), &expected))
}

/// The experiment as it was written, for what an error shows.
struct Rules<'a> {
    content: &'a Value,
}

impl Rules<'_> {
    /// The problem of a field that holds what would not be right.
    fn wrong(&self, field: &str, expected: &str) -> Problem {
        let value = value_text(self.content, field).unwrap_or_default();
        problem(field, &value, expected)
    }

    fn must(&self, holds: bool, field: &str, expected: &str) -> Result<(), Problem> {
        if holds { Ok(()) } else { Err(self.wrong(field, expected)) }
    }

    /// Checks a number of copies.
    fn count(&self, field: &str, count: u64) -> Result<(), Problem> {
        let expected = format!("a whole number from 1 to {ALIKE_MAX}");
        self.must((1..=ALIKE_MAX).contains(&count), field, &expected)
    }

    fn whole(&self, experiment: &Experiment) -> Result<(), Problem> {
        let above_zero = "a time above zero, such as \"30s\"";
        self.must(experiment.duration.0 > 0, "duration", above_zero)?;
        let seeds = format!("a whole number from 0 to {SEED_MAX}");
        self.must(experiment.seed <= SEED_MAX, "seed", &seeds)?;
        self.count("repeat", experiment.repeat)?;
        let either = "either [path] or [[nodes]] and [[links]]";
        match (&experiment.path, experiment.nodes.is_empty()) {
            (None, true) => return Err(problem("path", "neither", either)),
            (Some(_), false) => return Err(problem("path", "both", either)),
            (None, false) | (Some(_), true) => {}
        }
        if experiment.path.is_some() {
            let only = "none: links and routes stand with [[nodes]]";
            let table = |field| problem(field, "entries beside [path]", only);
            if !experiment.links.is_empty() {
                return Err(table("links"));
            }
            if !experiment.routes.is_empty() {
                return Err(table("routes"));
            }
        }
        self.must(!experiment.flows.is_empty(), "flows", "at least one flow")
    }

    fn path(&self, path: &PathForm) -> Result<(), Problem> {
        let either = "either rate or medium";
        match (&path.rate, &path.medium) {
            (None, None) => return Err(problem("path", "neither", either)),
            (Some(_), Some(_)) => return Err(self.wrong("path.medium", "no medium beside a rate")),
            (None, Some(_)) | (Some(_), None) => {}
        }
        let none =
            |present: bool, field: &str, expected: &str| self.must(!present, field, expected);
        none(
            path.up_medium.is_some() && path.up_rate.is_some(),
            "path.up_medium",
            "no up_medium beside an up_rate",
        )?;
        let carried = path.medium.is_some();
        none(
            carried && path.overhead.0 > 0,
            "path.overhead",
            "none beside a medium, which has its own overhead",
        )?;
        none(carried && path.atm, "path.atm", "none beside a medium, which has its own cells")?;
        let split = path.delay.0 > 0 || path.up_delay.0 > 0;
        none(path.rtt.is_some() && split, "path.rtt", "either rtt or delay and up_delay")?;
        let plain = path.loss.0 > 0.0 || path.jitter.0 > 0;
        none(path.netem.is_some() && plain, "path.netem", "either netem or loss and jitter")?;
        none(
            path.ahead_netem.is_some() && path.ahead_loss.0 > 0.0,
            "path.ahead_netem",
            "either ahead_netem or ahead_loss",
        )?;
        self.cells(path.atm, path.link, "path.atm")?;
        match &path.senders {
            None => {}
            Some(SendersForm::Count(count)) => self.count("path.senders", u64::from(*count))?,
            Some(SendersForm::Links(links)) => {
                self.count("path.senders", links.len() as u64)?;
                for (index, access) in links.iter().enumerate() {
                    let field = format!("path.senders[{index}].queue");
                    self.queue(&field, access.queue.as_deref())?;
                }
            }
        }
        self.count("path.receivers", u64::from(path.receivers))?;
        self.queue("path.queue", Some(&path.queue))?;
        self.queue("path.up_queue", path.up_queue.as_deref())?;
        for (field, words) in [
            ("path.netem", &path.netem),
            ("path.ahead_netem", &path.ahead_netem),
            ("path.up_netem", &path.up_netem),
        ] {
            emulation(words.as_deref(), field)?;
        }
        Ok(())
    }

    fn cells(&self, atm: bool, link: TransmitterKind, field: &str) -> Result<(), Problem> {
        let shaped = link == TransmitterKind::Htb;
        self.must(!atm || shaped, field, "atm = true only with link = \"htb\"")
    }

    fn queue(&self, field: &str, words: Option<&str>) -> Result<(), Problem> {
        let Some(words) = words else { return Ok(()) };
        check_queue(words).map_err(|problem| Problem { field: field.to_owned(), ..problem })
    }

    fn link(&self, link: &LinkForm, index: usize) -> Result<(), Problem> {
        let at = format!("links[{index}]");
        let has_both = link.rate.is_some() && link.medium.is_some();
        self.must(!has_both, &format!("{at}.medium"), "no medium beside a rate")?;
        self.cells(link.atm, link.link, &format!("{at}.atm"))?;
        self.queue(&format!("{at}.queue"), link.queue.as_deref())?;
        emulation(link.netem.as_deref(), &format!("{at}.netem")).map(|_| ())
    }

    fn flow(&self, flow: &FlowForm, index: usize, algorithms: &[&str]) -> Result<(), Problem> {
        let at = |field: &str| format!("flows[{index}].{field}");
        let word = flow.cc.as_deref().filter(|word| is_scream(word));
        let udp = flow.application.is_datagrams() || word.is_some();
        match &flow.cc {
            None if !udp => {
                let expected = "is missing: a congestion control, such as cc = \"cubic\"";
                return Err(problem(&at("cc"), "", expected));
            }
            None => {}
            Some(text) if word.is_some() => self.scream(text, flow, &at("cc"))?,
            Some(_) if udp => {
                let expected = "none for a flow of datagrams (constant_rate, rtp): it is UDP";
                return Err(self.wrong(&at("cc"), expected));
            }
            Some(word) => {
                let name = FlowWord::parse(word, &at("cc"))?.name;
                let has_quic = algorithms.iter().any(|known| known.contains('/'));
                if name.contains('/') && has_quic {
                    use dragstrip_scenario::quic::{Control, find};
                    let wrong =
                        |expected: String| problem(&at("cc"), &format!("{name:?}"), &expected);
                    match find(name).map_err(wrong)? {
                        Control::Own(own) => one_of(own, algorithms, &at("cc"))?,
                        // A stack's library may be missing.
                        Control::Stack(..) => one_of(name, algorithms, &at("cc"))?,
                    }
                } else {
                    one_of(name, algorithms, &at("cc"))?;
                }
            }
        }
        if let Some(name) = &flow.receiver_cc {
            self.must(!udp, &at("receiver_cc"), "none: it is for a flow with a cc, over TCP")?;
            one_of(name, algorithms, &at("receiver_cc"))?;
        }
        if let Some(dscp) = &flow.dscp
            && Dscp::named(dscp).is_none()
        {
            let expected = "a DSCP: a name such as EF, AF41 or CS1, or a number from 0 to 63";
            return Err(problem(&at("dscp"), &format!("{dscp:?}"), expected));
        }
        self.count(&at("count"), flow.count)?;
        let bulk = matches!(*flow.application, ApplicationForm::Bulk {});
        self.must(flow.bytes.is_none() || bulk, &at("bytes"), "none: bytes are for a bulk flow")?;
        if flow.arrivals.is_some() {
            self.must(bulk, &at("arrivals"), "none: only flows of bulk data arrive")?;
            self.must(flow.stagger.0 == 0, &at("stagger"), "none beside arrivals")?;
            sizes_of(flow).map_err(|fault| fault.within(&format!("flows[{index}]")))?;
        } else {
            self.must(
                flow.sizes.is_none(),
                &at("sizes"),
                "none: sizes are for flows with arrivals",
            )?;
        }
        if matches!(*flow.application, ApplicationForm::Program { .. }) {
            let given = [
                ("cc_options", !flow.cc_options.is_empty()),
                ("receiver_cc", flow.receiver_cc.is_some()),
                ("send_buffer", flow.send_buffer.is_some()),
                ("receive_buffer", flow.receive_buffer.is_some()),
                ("dscp", flow.dscp.is_some()),
                ("mark", flow.mark != 0),
            ];
            for (field, is_given) in given {
                self.must(!is_given, &at(field), "none: a program opens its sockets itself")?;
            }
        }
        let tcp = "none: buffers are for a flow with a cc, over TCP";
        self.must(!udp || flow.send_buffer.is_none(), &at("send_buffer"), tcp)?;
        self.must(!udp || flow.receive_buffer.is_none(), &at("receive_buffer"), tcp)
    }

    /// The word `scream` in the place of a congestion control: a video over RTP, without options.
    fn scream(&self, text: &str, flow: &FlowForm, at: &str) -> Result<(), Problem> {
        let word = FlowWord::parse(text, at)?;
        let expected =
            "no options: scream's settings are those of application = { kind = \"rtp\" }";
        self.must(word.options.is_empty() && flow.cc_options.is_empty(), at, expected)?;
        let fits =
            matches!(*flow.application, ApplicationForm::Bulk {} | ApplicationForm::Rtp { .. });
        self.must(
            fits && flow.bytes.is_none(),
            at,
            "a TCP congestion control: scream sends live video only",
        )
    }

    fn change(&self, change: &ChangeForm, index: usize) -> Result<(), Problem> {
        let ChangeForm { at, link: _, rate, delay, rtt, loss, limit, state, file } = change;
        let field = |name: &str| format!("changes[{index}].{name}");
        let settings = [
            rate.is_some(),
            delay.is_some(),
            rtt.is_some(),
            loss.is_some(),
            limit.is_some(),
            state.is_some(),
        ];
        let has_setting = settings.contains(&true);
        if file.is_some() {
            return self.must(
                !has_setting,
                &field("file"),
                "either a file or settings of the link",
            );
        }
        if at.is_none() {
            return Err(problem(&field("at"), "", "is missing: a time, such as at = \"20s\""));
        }
        let expected = "at least one of rate, delay, rtt, loss, limit and state";
        if has_setting { Ok(()) } else { Err(problem(&format!("changes[{index}]"), "", expected)) }
    }

    fn claim(&self, claim: &ClaimForm, index: usize) -> Result<(), Problem> {
        let at = format!("claims[{index}]");
        let ClaimForm { value, range, order, asked, .. } = claim;
        let present = [value.is_some(), range.is_some(), order.is_some(), asked.is_some()];
        let given_count = present.into_iter().filter(|is_present| *is_present).count();
        if given_count != 1 {
            let expected = "one of value, range, order and asked";
            return Err(problem(&at, &format!("{given_count} of them"), expected));
        }
        if range.is_some_and(|[low, high]| low > high) {
            return Err(self.wrong(&format!("{at}.range"), "a range from low to high"));
        }
        if value.is_some() && claim.tolerance.is_none() && claim.not_testable.is_none() {
            let expected = "is missing: a single value has one, such as \"5%\"";
            return Err(problem(&format!("{at}.tolerance"), "", expected));
        }
        if claim.until.is_some_and(|until| until.0 <= claim.after.0) {
            let after = tc::format_time(Duration::from_nanos(claim.after.0));
            let expected = format!("an end later than after ({after})");
            return Err(self.wrong(&format!("{at}.until"), &expected));
        }
        Ok(())
    }

    /// Names that must differ, and texts that must not be empty.
    fn texts(&self, experiment: &Experiment) -> Result<(), Problem> {
        let distinct = |kind: &str, field: &str, names: Vec<&str>| {
            let mut unique = BTreeSet::new();
            match names.iter().position(|name| !unique.insert(*name)) {
                None => Ok(()),
                Some(at) => {
                    let expected = format!("every entry of {kind} under a name of its own");
                    Err(self.wrong(&format!("{kind}[{at}].{field}"), &expected))
                }
            }
        };
        distinct(
            "claims",
            "id",
            experiment.claims.iter().map(|claim| claim.id.as_str()).collect(),
        )?;
        let names =
            experiment.alternatives.iter().map(|alternative| alternative.name.as_str()).collect();
        distinct("alternatives", "name", names)?;
        for (index, ablation) in experiment.ablations.iter().enumerate() {
            let at = |field: &str| format!("ablations[{index}].{field}");
            self.must(!ablation.claims.is_empty(), &at("claims"), "at least one claim's id")?;
            self.must(!ablation.about.is_empty(), &at("about"), "what the ablation shows")?;
        }
        for (index, table) in experiment.flow_tables.iter().enumerate() {
            let field = format!("flow_tables[{index}].published");
            self.must(!table.published.is_empty(), &field, "at least one flow's throughput")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::{algorithms, checked, planned};
    use dragstrip_scenario::Problem;
    use serde_json::{Value, json};

    fn outcome_text(changes: &Value) -> String {
        let mut content = json!({
            "duration": "3s", "path": {"rate": "10mbit", "rtt": "40ms"}, "flows": [{"cc": "reno"}],
        });
        for (field, value) in changes.as_object().into_iter().flatten() {
            content[field] = value.clone();
        }
        if let Some(table) = content.as_object_mut() {
            table.retain(|_, value| !value.is_null());
        }
        let outcome = checked(content, &algorithms())
            .and_then(|content| planned(content, &algorithms(), true));
        match outcome {
            Ok(_) => "right".to_owned(),
            Err(Problem { field, value, expected }) => format!("{field}|{value}|{expected}"),
        }
    }

    fn path(fields: &Value) -> Value {
        let mut path = json!({"rate": "10mbit", "queue": "bfifo limit 200kb"});
        for (field, value) in fields.as_object().into_iter().flatten() {
            path[field] = value.clone();
        }
        if let Some(table) = path.as_object_mut() {
            table.retain(|_, value| !value.is_null());
        }
        json!({"path": path})
    }

    /// Rejects invalid combinations and values, in the words of every form that users write.
    #[test]
    fn rejects_invalid_fields() {
        let medium = json!({"air": {"kind": "wifi_g", "rate": "54mbit"}});
        let node = |name: &str, kind: &str| json!({"name": name, "kind": kind});
        let graph = |links: Value| {
            json!({
                "path": null, "links": links,
                "nodes": [node("a", "host"), node("r", "router"), node("b", "host")],
                "flows": [{"cc": "reno", "sender": "a", "receiver": "b"}],
            })
        };
        let joined = |more: &Value| {
            let mut links = vec![
                json!({"from": "a", "to": "r", "delay": "1ms"}),
                json!({"from": "r", "to": "b"}),
            ];
            links.extend(more.as_array().cloned().unwrap_or_default());
            graph(Value::from(links))
        };
        for (changes, expected) in [
            (json!({}), "right"),
            (path(&json!({"rtt": "9ms", "delay": "1ms"})), "path.rtt|\"9ms\"|either rtt or delay"),
            (
                path(&json!({"netem": "loss 1%", "loss": "1%"})),
                "path.netem|\"loss 1%\"|either netem",
            ),
            (
                path(&json!({"ahead_netem": "loss 1%", "ahead_loss": "1%"})),
                "path.ahead_netem|\"loss 1%\"|either ahead_netem",
            ),
            (path(&json!({"atm": true, "link": "wire"})), "path.atm|true|atm = true only with"),
            (path(&json!({"rate": null})), "path|neither|either rate or medium"),
            (
                json!({"path": {"rate": "1mbit", "medium": "air"}, "media": medium}),
                "path.medium|\"air\"|no medium beside a rate",
            ),
            (
                path(&json!({"up_rate": "1mbit", "up_medium": "adsl2"})),
                "path.up_medium|\"adsl2\"|no up_medium beside an up_rate",
            ),
            (path(&json!({"senders": 0})), "path.senders|0|a whole number from 1"),
            (path(&json!({"senders": -1})), "path.senders|-1|a number of senders"),
            (path(&json!({"receivers": 0})), "path.receivers|0|a whole number from 1"),
            (path(&json!({"queue": "bfifo limt 3"})), "path.queue|"),
            (path(&json!({"queue": "bfifo limit 1000"})), "path.queue"),
            (path(&json!({"netem": "los 1%"})), "path.netem|"),
            (path(&json!({"rate": "0mbit"})), "path.rate|\"0mbit\"|"),
            (json!({"nodes": [node("a", "host")]}), "path|both|either [path] or"),
            (json!({"path": null}), "path|neither|either [path] or"),
            (
                json!({"links": [{"from": "s1", "to": "d"}]}),
                "links|entries beside [path]|none: links and routes stand with [[nodes]]",
            ),
            (json!({"repeat": 0}), "repeat|0|a whole number from 1 to 100000"),
            (json!({"repeat": 1.5}), "repeat|1.5|a whole number"),
            (json!({"seed": 1_u64 << 60}), "seed|1152921504606846976|a whole number from 0 to"),
            (json!({"seed": -1}), "seed|-1|a whole number"),
            (json!({"seed": "one"}), "seed|\"one\"|a whole number"),
            (json!({"duration": "0s"}), "duration|\"0s\"|a time above zero"),
            (json!({"duration": "400000s"}), "duration|\"400000s"),
            (json!({"flows": []}), "flows|[]|at least one flow"),
            (json!({"flows": [{"cc": "rneo"}]}), "flows[0].cc|\"rneo\"|one of "),
            (json!({"flows": [{}]}), "flows[0].cc||is missing"),
            (
                json!({"flows": [{"cc": "reno", "count": 0}]}),
                "flows[0].count|0|a whole number from 1",
            ),
            (
                json!({"flows": [{"cc": "reno", "bytes": "1mb", "application": {"kind": "on_off", "on": "1s", "off": "1s"}}]}),
                "flows[0].bytes|\"1mb\"|none: bytes are for a bulk flow",
            ),
            (
                json!({"flows": [{"cc": "reno", "application": {"kind": "constant_rate", "rate": "1mbit"}}]}),
                "flows[0].cc|\"reno\"|none for a flow of datagrams (constant_rate, rtp): it is UDP",
            ),
            (
                json!({"flows": [{"send_buffer": "9kb", "application": {"kind": "constant_rate", "rate": "1mbit"}}]}),
                "flows[0].send_buffer|\"9kb\"|none: buffers are",
            ),
            (json!({"flows": [{"cc": "reno", "sender": "s9"}]}), "flows[0].sender|\"s9\"|"),
            (json!({"hosts": {"s9": {}}}), "hosts|\"s9\"|a host or a pattern: s1, d"),
            (
                json!({"hosts": {"*": {"sysctl": {"net.ipv4.tcp_sak": 1}}}}),
                "hosts.s1.sysctl.\"net.ipv4.tcp_sak\"|",
            ),
            (json!({"hosts": {"*": {"mtu": "9b"}}}), "hosts.s1.mtu|\"9b\"|from 68"),
            (json!({"media": medium}), "media.air|used by no link|a medium that a link names"),
            (
                json!({"path": {"medium": "air"}, "media": {"air": {"kind": "wifi_g", "rate": "11mbit"}}}),
                "media.air.rate|\"11mbit\"|a rate of 802.11g",
            ),
            (json!({"changes": [{"rate": "1mbit"}]}), "changes[0].at||is missing"),
            (json!({"changes": [{"at": "1s"}]}), "changes[0]||at least one of rate"),
            (
                json!({"changes": [{"at": "1s", "rate": "1mbit", "rtt": "80ms"}, {"at": "1s", "link": "x", "delay": "1s"}]}),
                "changes[1].link|\"x\"|",
            ),
            (
                json!({"changes": [{"file": "x.csv", "rate": "1mbit"}]}),
                "changes[0].file|\"x.csv\"|either a file",
            ),
            (joined(&json!([])), "right"),
            (joined(&json!([{"from": "r", "to": "x"}])), "links[2].to|\"x\"|the name of a node"),
            (
                joined(
                    &json!([{"from": "r", "to": "a", "name": "x", "rate": "1mbit", "medium": "y"}]),
                ),
                "links[2].medium|\"y\"|no medium beside a rate",
            ),
            (
                json!({"claims": [{"id": "a", "source": "s", "metric": "jain", "value": 1}]}),
                "claims[0].tolerance||is missing",
            ),
            (
                json!({"claims": [{"id": "a", "source": "s", "metric": "jain"}]}),
                "claims[0]|0 of them|one of value",
            ),
            (
                json!({"claims": [{"id": "a", "source": "s", "metric": "jain", "value": 1, "tolerance": "wide"}]}),
                "claims[0].tolerance|\"wide\"|a share such as",
            ),
            (
                json!({"claims": [{"id": "a", "source": "s", "metric": "m", "range": [2, 1]}]}),
                "claims[0].range|[2,1]|a range from low to high",
            ),
            (
                json!({"claims": [{"id": "a", "source": "s", "metric": "m", "asked": "?", "after": "2s", "until": "1s"}]}),
                "claims[0].until|\"1s\"|an end later than after (2s)",
            ),
            (
                json!({"alternatives": [{"name": "a", "set": {}}, {"name": "a", "set": {}}]}),
                "alternatives[1].name|\"a\"|every entry of alternatives",
            ),
            (
                json!({"ablations": [{"claims": [], "about": "x"}]}),
                "ablations[0].claims|[]|at least one",
            ),
        ] {
            let message = outcome_text(&changes);
            assert!(message.starts_with(expected), "{changes}\n{message}\n{expected}");
        }
    }
}
