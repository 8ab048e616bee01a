//! A race's options, each in one row: what `compare` and `play` take, what a form of the page holds, what
//! `dragstrip.compare` in Python accepts. The command line, Python's keywords, the page's fields and the reference
//! pages are generated from this table (`cargo xtask generate`).

use crate::problem;
use dragstrip_scenario::Problem;
use dragstrip_units::suggest;
use serde_json::{Map, Value};

/// A row: an option of a race.
#[derive(Clone, Copy, Debug)]
pub struct RaceOption {
    /// Its name in a form and in Python; on the command line `up_rate` is `--up-rate`.
    pub name: &'static str,
    /// Kind of its value.
    pub takes: Takes,
    /// Placeholder of its value in help.
    pub metavar: &'static str,
    /// Default value, as text. Empty: none.
    pub default: &'static str,
    /// One sentence for help.
    pub help: &'static str,
    /// Target of its value in the experiment.
    pub place: Place,
    /// Further fields of the experiment that messages report as this option.
    pub also: &'static [&'static str],
    /// Completion of its values on a command line.
    pub completes: &'static str,
    /// True when the page has a text field for it. Of the other options `together` is a checkbox there, and the rest
    /// is kept unchanged.
    pub on_page: bool,
}

/// Kind of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Text.
    Text,
    /// A whole number.
    Count,
    /// Nothing: it is there or not.
    Flag,
    /// Texts; it is repeatable.
    Texts,
    /// `KEY=VALUE`; it is repeatable.
    Pairs,
    /// Files, whose content is passed by their names; it is repeatable.
    Files,
}

/// Target of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Into this field, a dotted path.
    Field(&'static str),
    /// Into this field of every flow.
    Flows(&'static str),
    /// Into this sysctl of all hosts, which `--sysctl` overrides.
    Sysctl(&'static str),
    /// Into this sysctl of all hosts, with this value, where a flag is given.
    SysctlIs(&'static str, &'static str),
    /// `compare` decides.
    Rule,
}

const PLAIN: RaceOption = RaceOption {
    name: "",
    takes: Takes::Text,
    metavar: "TEXT",
    default: "",
    help: "",
    place: Place::Rule,
    also: &[],
    completes: "",
    on_page: false,
};

/// The algorithms, which are a race's arguments.
pub const ALGORITHMS: RaceOption = RaceOption {
    name: "algorithms",
    takes: Takes::Texts,
    metavar: "ALGORITHM",
    help: "Congestion controls, such as reno cubic:beta=0.8 bbr*4@20ms+5s: options, number of flows, own round-trip \
           time, own start.",
    also: &["ALGORITHM", "flows[]"],
    completes: "algorithms",
    on_page: true,
    ..PLAIN
};

/// All options, in the order of help.
pub const OPTIONS: &[RaceOption] = &[
    RaceOption {
        name: "path",
        metavar: "NAME",
        help: "A path by name, such as 'home DSL' (dragstrip list --paths).",
        place: Place::Field("path.preset"),
        completes: "paths",
        on_page: true,
        ..PLAIN
    },
    RaceOption {
        name: "rate",
        metavar: "RATE",
        help: "Rate of the bottleneck, such as 10mbit.",
        place: Place::Field("path.rate"),
        on_page: true,
        ..PLAIN
    },
    RaceOption {
        name: "medium",
        metavar: "NAME",
        help: "Medium of the bottleneck instead of a rate: adsl2, wifi-n, ... (dragstrip list --media).",
        place: Place::Field("path.medium"),
        completes: "media",
        on_page: true,
        ..PLAIN
    },
    RaceOption {
        name: "trace",
        metavar: "FILE",
        help: "Recorded link instead of a rate (mahimahi's format).",
        also: &["media.recorded.file"],
        ..PLAIN
    },
    RaceOption {
        name: "rtt",
        metavar: "TIME",
        help: "Round-trip time of the empty path, such as 40ms.",
        place: Place::Field("path.rtt"),
        on_page: true,
        ..PLAIN
    },
    RaceOption {
        name: "queue",
        metavar: "QUEUE",
        help: "Queue of the bottleneck: 1bdp (the default; of a medium pfifo), 100ms, or in tc's words: 'bfifo limit 200kb', fq_codel.",
        place: Place::Field("path.queue"),
        on_page: true,
        ..PLAIN
    },
    RaceOption {
        name: "workload",
        metavar: "NAME",
        default: "bulk",
        help: "What the flows do: bulk, web, 'poisson load=60% sizes=web-search', ... (dragstrip list --workloads).",
        also: &["flows[].arrivals", "flows[].sizes"],
        completes: "workloads",
        on_page: true,
        ..PLAIN
    },
    RaceOption {
        name: "duration",
        metavar: "TIME",
        default: "30s",
        help: "Duration of each run, such as 30s.",
        place: Place::Field("duration"),
        on_page: true,
        ..PLAIN
    },
    RaceOption {
        name: "flows",
        takes: Takes::Count,
        metavar: "N",
        default: "1",
        help: "Number of flows of each algorithm.",
        also: &["flows[].count"],
        ..PLAIN
    },
    RaceOption {
        name: "both_ways",
        takes: Takes::Flag,
        help: "Also run the same flows in the other direction.",
        ..PLAIN
    },
    RaceOption {
        name: "stagger",
        metavar: "TIME",
        help: "Time between the starts of a run's flows, such as 5s.",
        also: &["flows[].stagger"],
        on_page: true,
        ..PLAIN
    },
    RaceOption {
        name: "loss",
        metavar: "SHARE",
        help: "Random packet loss behind the bottleneck, such as 1%.",
        place: Place::Field("path.loss"),
        on_page: true,
        ..PLAIN
    },
    RaceOption {
        name: "jitter",
        metavar: "TIME",
        help: "Jitter: each packet is delayed by 0 to twice this, such as 5ms, and may be overtaken.",
        place: Place::Field("path.jitter"),
        on_page: true,
        ..PLAIN
    },
    RaceOption {
        name: "netem",
        metavar: "WORDS",
        help: "Any impairment behind the bottleneck in netem's words, such as 'slot 5ms packets 20' (packets held and \
               released together).",
        place: Place::Field("path.netem"),
        on_page: true,
        ..PLAIN
    },
    RaceOption {
        name: "up_rate",
        metavar: "RATE",
        help: "Rate of the return path, such as 1mbit; default: unlimited; with --both-ways, the forward rate.",
        place: Place::Field("path.up_rate"),
        on_page: true,
        ..PLAIN
    },
    RaceOption {
        name: "up_medium",
        metavar: "NAME",
        help: "Medium of the return path, instead of a rate.",
        place: Place::Field("path.up_medium"),
        completes: "media",
        ..PLAIN
    },
    RaceOption {
        name: "up_trace",
        metavar: "FILE",
        help: "Recorded link of the return path, instead of a rate.",
        also: &["media.recorded-up.file"],
        ..PLAIN
    },
    RaceOption {
        name: "up_queue",
        metavar: "QUEUE",
        help: "Queue of the return path.",
        place: Place::Field("path.up_queue"),
        ..PLAIN
    },
    RaceOption {
        name: "receiver_on_line",
        takes: Takes::Flag,
        help: "Uploads leave through the receiver's own interface, without a router w in front of it as the modem.",
        place: Place::Field("path.receiver_on_line"),
        ..PLAIN
    },
    RaceOption {
        name: "up_netem",
        metavar: "WORDS",
        help: "Any impairment of the return path in netem's words, such as 'slot 4ms' (ACKs held and released together) \
               or 'loss 10%'.",
        place: Place::Field("path.up_netem"),
        on_page: true,
        ..PLAIN
    },
    RaceOption {
        name: "link",
        metavar: "KIND",
        help: "Bottleneck: htb, a shaper as tc sets it up (the default), or wire, an ideal store-and-forward link.",
        place: Place::Field("path.link"),
        ..PLAIN
    },
    RaceOption {
        name: "ecn",
        takes: Takes::Flag,
        help: "Negotiate ECN. Queues that mark: fq_codel, and others with the word ecn: 'codel ecn'.",
        place: Place::SysctlIs("net.ipv4.tcp_ecn", "1"),
        ..PLAIN
    },
    RaceOption {
        name: "accurate_ecn",
        takes: Takes::Flag,
        help: "Negotiate accurate ECN (RFC 9768), which counts marks; in the simulator, and in Linux since 7.0.",
        place: Place::SysctlIs("net.ipv4.tcp_ecn", "3"),
        ..PLAIN
    },
    RaceOption {
        name: "sysctl",
        takes: Takes::Pairs,
        metavar: "KEY=VALUE",
        help: "Set a sysctl on all hosts; repeatable.",
        also: &["hosts.*.sysctl"],
        ..PLAIN
    },
    RaceOption {
        name: "notsent_lowat",
        metavar: "BYTES",
        help: "Applications write only while fewer bytes than this are unsent, such as 131072 (TCP_NOTSENT_LOWAT).",
        place: Place::Sysctl("net.ipv4.tcp_notsent_lowat"),
        ..PLAIN
    },
    RaceOption {
        name: "receiver_cc",
        metavar: "ALGORITHM",
        help: "Congestion control of the receivers' sockets: a listener that runs cubic refuses dctcp's and prague's ECN; \
               default: the sender's.",
        place: Place::Flows("receiver_cc"),
        on_page: true,
        ..PLAIN
    },
    RaceOption {
        name: "gso",
        metavar: "auto|off|whole",
        default: "auto",
        help: "Generic segmentation offload: auto, as Linux does, off, or whole: bursts are never cut; overrides --hosts.",
        place: Place::Field("hosts.*.gso"),
        ..PLAIN
    },
    RaceOption {
        name: "hosts",
        metavar: "KIND",
        help: "Kind of hosts: plain (the default), veth (containers, Mininet), card, server, paced (dragstrip list --host-kinds); all: each in turn.",
        place: Place::Field("hosts.*.preset"),
        also: &["hosts.*.interface"],
        completes: "hosts",
        ..PLAIN
    },
    RaceOption {
        name: "seed",
        takes: Takes::Count,
        metavar: "N",
        default: "1",
        help: "Seed of the random numbers, of the first repeat.",
        place: Place::Field("seed"),
        on_page: true,
        ..PLAIN
    },
    RaceOption {
        name: "repeat",
        takes: Takes::Count,
        metavar: "N",
        default: "1",
        help: "Number of repeats; their seeds count up from --seed.",
        place: Place::Field("repeat"),
        ..PLAIN
    },
    RaceOption {
        name: "together",
        takes: Takes::Flag,
        help: "Run all algorithms on the path at once.",
        ..PLAIN
    },
    RaceOption {
        name: "change",
        takes: Takes::Texts,
        metavar: "'TIME KEY=VALUE ...'",
        help: "Change the bottleneck during the run: '20s rate=2mbit delay=80ms'; keys: rate, delay, rtt, loss, limit, \
               state; repeatable.",
        also: &["changes"],
        ..PLAIN
    },
    RaceOption {
        name: "programs",
        takes: Takes::Files,
        metavar: "FILE.cc",
        help: "An algorithm as a text (FILE.cc) or a policy (FILE.json, FILE.onnx), for the simulator, by the file's name; repeatable.",
        also: &["programs"],
        ..PLAIN
    },
    RaceOption {
        name: "no_rtts",
        takes: Takes::Flag,
        help: "Record RTTs once an interval, not with every ACK, so that memory does not grow with packets: for 10^8 \
               packets and more.",
        also: &["record.rtts"],
        ..PLAIN
    },
];

impl RaceOption {
    /// Its word on a command line, with hyphens.
    #[must_use]
    pub fn word(&self) -> String {
        match self.name {
            "algorithms" => "ALGORITHM".to_owned(),
            "programs" => "--program".to_owned(),
            name => format!("--{}", name.replace('_', "-")),
        }
    }

    /// Dotted path under which `vary` and `sweep` vary it; none where it has no single field.
    #[must_use]
    pub fn varies(&self) -> Option<String> {
        match self.place {
            Place::Field(field) if !matches!(self.name, "duration" | "seed" | "repeat") => {
                Some(if self.name == "path" { "path".to_owned() } else { field.to_owned() })
            }
            Place::Flows(field) => Some(format!("flows.{field}")),
            Place::Sysctl(key) | Place::SysctlIs(key, _) => {
                Some(format!("hosts.*.sysctl.\"{key}\""))
            }
            Place::Field(_) | Place::Rule => None,
        }
    }

    /// Length of the longest prefix of a field of the experiment that this option sets, if any.
    fn behind(&self, field: &str) -> Option<usize> {
        let placed = match self.place {
            Place::Field(own) => Some(own.to_owned()),
            Place::Flows(own) => Some(format!("flows[].{own}")),
            Place::Sysctl(_) | Place::SysctlIs(..) | Place::Rule => None,
        };
        let name_itself = std::iter::once(self.name.to_owned()).filter(|name| name == field);
        let prefixes =
            self.also.iter().map(|name| (*name).to_owned()).chain(placed).chain(name_itself);
        prefixes
            .filter(|prefix| field.starts_with(prefix.as_str()))
            .map(|prefix| prefix.len())
            .max()
    }
}

/// The option that sets a field of the experiment of a race; none if no option sets the field.
#[must_use]
pub fn option_of(field: &str) -> Option<&'static RaceOption> {
    let mut plain = String::new();
    let mut inside = false;
    for letter in field.chars() {
        inside = if inside { letter != ']' } else { letter == '[' };
        if !inside || letter == '[' {
            plain.push(letter);
        }
    }
    // Sysctls are set per host; one may have a separate option.
    let sets_sysctl =
        |option: &&RaceOption| matches!(option.place, Place::Sysctl(key) if plain.contains(key));
    if let Some(option) = OPTIONS.iter().find(sets_sysctl) {
        return Some(option);
    }
    if plain.starts_with("hosts.") && plain.contains(".sysctl") {
        "hosts.*.sysctl".clone_into(&mut plain);
    }
    if let Some(rest) = plain.strip_prefix("hosts.") {
        let setting = rest.rsplit('.').next().unwrap_or(rest);
        plain = format!("hosts.*.{setting}");
    }
    std::iter::once(&ALGORITHMS)
        .chain(OPTIONS)
        .filter_map(|option| Some((option.behind(&plain)?, option)))
        .max_by_key(|(length, _)| *length)
        .map(|(_, option)| option)
}

/// The options of one race, by their names; values are as they were given, and judged where they are placed.
#[derive(Clone, Debug)]
pub struct RaceForm {
    /// The algorithms, in their order.
    pub algorithms: Vec<String>,
    values: Map<String, Value>,
}

impl RaceForm {
    /// The form that a JSON document describes. `null` is as good as nothing.
    ///
    /// # Errors
    /// A name that no option has, and a value of a kind that the option does not take.
    pub fn from_json(text: &str) -> Result<Self, Problem> {
        let broken = |error| dragstrip_scenario::json_problem(String::new(), &error);
        Self::new(serde_json::from_str(text).map_err(broken)?)
    }

    /// The form with these options; `null` is as good as nothing.
    ///
    /// # Errors
    /// A name that no option has, and a value of a kind that the option does not take.
    pub fn new(mut values: Map<String, Value>) -> Result<Self, Problem> {
        let algorithms = texts("ALGORITHM", values.shift_remove(ALGORITHMS.name))?;
        values.retain(|_, value| !value.is_null());
        for (name, value) in &values {
            let Some(option) = OPTIONS.iter().find(|option| option.name == name) else {
                let names = OPTIONS.iter().map(|option| option.name);
                let expected = suggest(name, names, "is not an option of a race");
                return Err(problem(name, "", &expected));
            };
            let right = match option.takes {
                Takes::Flag => value.is_boolean(),
                Takes::Pairs | Takes::Files => value.is_object(),
                Takes::Texts => texts(name, Some(value.clone())).is_ok(),
                Takes::Text | Takes::Count => true,
            };
            if !right {
                let expected = match option.takes {
                    Takes::Flag => "true or false",
                    Takes::Pairs | Takes::Files => "a table of texts",
                    Takes::Texts | Takes::Text | Takes::Count => "a list of texts",
                };
                return Err(problem(name, &value.to_string(), expected));
            }
        }
        Ok(Self { algorithms, values })
    }

    /// Value given for an option.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Value> {
        debug_assert!(OPTIONS.iter().any(|option| option.name == name), "{name}");
        self.values.get(name)
    }

    /// A text, its default where nothing was given; none where neither is a text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        let option = OPTIONS.iter().find(|option| option.name == name)?;
        match self.values.get(name) {
            Some(value) => value.as_str(),
            None => Some(option.default).filter(|default| !default.is_empty()),
        }
    }

    /// A whole number: a number, or the text of one; otherwise what was given.
    ///
    /// # Errors
    /// A value other than a whole number, unchanged.
    pub fn count(&self, name: &str) -> Result<i64, Value> {
        match self.values.get(name) {
            None => Ok(1),
            Some(value) => number_of(value).as_i64().ok_or_else(|| value.clone()),
        }
    }

    /// True when a flag is given.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.value(name).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Each option that was given, in the order of the table, with what was given.
    pub fn all(&self) -> impl Iterator<Item = (&'static RaceOption, &Value)> {
        OPTIONS.iter().filter_map(|option| Some((option, self.values.get(option.name)?)))
    }
}

/// The number that a text writes in decimal digits, as people type it into a field; anything else as it is.
pub(crate) fn number_of(value: &Value) -> Value {
    let digits = value.as_str().map(str::trim).filter(|text| !text.starts_with('+'));
    match digits.and_then(|text| text.parse::<i64>().ok()) {
        Some(number) => Value::from(number),
        None => value.clone(),
    }
}

fn texts(name: &str, value: Option<Value>) -> Result<Vec<String>, Problem> {
    let listed = match value {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(listed)) => listed,
        Some(other) => return Err(problem(name, &other.to_string(), "a list of texts")),
    };
    let text = |value: Value| {
        let wrong = || problem(name, &value.to_string(), "a text");
        value.as_str().map(str::to_owned).ok_or_else(wrong)
    };
    listed.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_is_complete() {
        let mut names = BTreeSet::new();
        for option in OPTIONS {
            assert!(names.insert(option.name), "{}", option.name);
            assert!(option.help.ends_with('.') && option.help.len() < 160, "{}", option.name);
            let flag = option.takes == Takes::Flag;
            assert_eq!(flag, option.metavar == "TEXT", "{}", option.name);
            assert!(!(flag && option.on_page), "{}: a flag is no field of text", option.name);
        }
    }

    #[test]
    fn a_field_is_its_options() {
        for (field, option) in [
            ("path.rate", Some("rate")),
            ("path.queue.limit", Some("queue")),
            ("media.recorded-up.file", Some("up_trace")),
            ("flows[0].cc", Some("algorithms")),
            ("flows[0].cc_options.beta", Some("algorithms")),
            ("flows[10].count", Some("flows")),
            ("flows[10].stagger", Some("stagger")),
            ("hosts.*.sysctl.net.x", Some("sysctl")),
            ("hosts.s1.sysctl.net.ipv4.tcp_sack", Some("sysctl")),
            ("hosts.s1.sysctl.\"net.ipv4.tcp_notsent_lowat\"", Some("notsent_lowat")),
            ("hosts.s1.gso", Some("gso")),
            ("changes[2].rate", Some("change")),
            ("ALGORITHM", Some("algorithms")),
            ("probes[0].interval", None),
        ] {
            assert_eq!(option_of(field).map(|option| option.name), option, "{field}");
        }
    }

    #[test]
    fn unknown_options_and_values_are_refused() {
        let problem_text = |text: &str| {
            let Problem { field, value, expected } = RaceForm::from_json(text).unwrap_err();
            format!("{field}|{value}|{expected}")
        };
        assert_eq!(
            problem_text(r#"{"rat": "1mbit"}"#),
            "rat||is not an option of a race; did you mean \"rate\"?"
        );
        assert_eq!(problem_text(r#"{"ecn": "yes"}"#), "ecn|\"yes\"|true or false");
        assert_eq!(problem_text(r#"{"change": [3]}"#), "change|[3]|a list of texts");
        assert_eq!(problem_text(r#"{"algorithms": [3]}"#), "ALGORITHM|3|a text");
        let form = RaceForm::from_json(r#"{"flows": "3", "seed": "x", "rate": null}"#).unwrap();
        assert_eq!(form.count("flows"), Ok(3));
        assert_eq!(form.count("seed"), Err(Value::from("x")));
        assert_eq!(form.value("rate"), None);
    }
}
