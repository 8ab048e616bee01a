//! Named workloads of a comparison: everyday applications, and the tests that flent introduced.

use crate::problem;
use dragstrip_scenario::Problem;
use serde_json::{Map, Value, json};

/// A workload that `--workload` names.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Workload {
    /// Its name. `N` is a placeholder for a number, or literal: then `--flows` gives the number.
    pub name: &'static str,
    /// Description of the flows.
    pub about: &'static str,
    /// Source of its figures.
    pub source: &'static str,
    /// Entries of `[[flows]]` for each algorithm, without its name.
    pub flows: &'static [Part],
}

/// Flows that are alike.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Part {
    /// Number of flows for each of `--flows`.
    pub count: u64,
    /// From the receiver's side to the senders'.
    pub reverse: bool,
    /// Each further one starts this much later.
    pub stagger: Option<&'static str>,
    /// Amount to send.
    pub bytes: Option<&'static str>,
    /// DSCP of its packets.
    pub dscp: Option<&'static str>,
    /// The application, as JSON; none: bulk.
    pub application: Option<&'static str>,
    /// Datagrams, which have no congestion control of TCP's.
    pub without_cc: bool,
}

/// Flows that come at random.
const POISSON: &str = "poisson";

const DOWN: Part = Part {
    count: 1,
    reverse: false,
    stagger: None,
    bytes: None,
    dscp: None,
    application: None,
    without_cc: false,
};
const UP: Part = Part { reverse: true, ..DOWN };
const PLAYER: Part = Part { application: Some(r#"{"kind": "video"}"#), ..UP };
const LIVE: Part = Part { application: Some(r#"{"kind": "rtp"}"#), without_cc: true, ..DOWN };
const FOUR_DOWN: Part = Part { count: 4, ..DOWN };
const FOUR_UP: Part = Part { count: 4, ..UP };
/// One flow of each class, as flent's rrul.conf marks them: best effort, bulk, video and voice, each way.
const MARKED: [Part; 8] = [
    Part { dscp: Some("CS0"), ..DOWN },
    Part { dscp: Some("CS1"), ..DOWN },
    Part { dscp: Some("CS5"), ..DOWN },
    Part { dscp: Some("EF"), ..DOWN },
    Part { dscp: Some("CS0"), ..UP },
    Part { dscp: Some("CS1"), ..UP },
    Part { dscp: Some("CS5"), ..UP },
    Part { dscp: Some("EF"), ..UP },
];
const FLENT: &str = "flent's test of this name";

/// All workloads, in the order in which they are listed.
pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "bulk",
        about: "sends as fast as it can for the whole run",
        source: "",
        flows: &[DOWN],
    },
    Workload {
        name: "file",
        about: "sends 10 MB and stops",
        source: "",
        flows: &[Part { bytes: Some("10mb"), ..DOWN }],
    },
    Workload {
        name: "web",
        about: "fetches a page of 2652 kB over one connection, reads for 5 s, fetches the next",
        source: "HTTP Archive, Web Almanac 2024, Page Weight: 2652 KB is the median page on the desktop; the pause is ours",
        flows: &[Part {
            application: Some(
                r#"{"kind": "request_response", "request": "1kb", "response": "2652kb", "think": "5s"}"#,
            ),
            ..UP
        }],
    },
    Workload {
        name: "video",
        about: "plays a video in segments of 4 s from 235 kbit/s to 5.8 Mbit/s; its buffer of 30 s chooses the bit rate",
        source: "BBA-0: Huang et al., SIGCOMM 2014; Netflix's ladder until 2015; the buffer's size is ours",
        flows: &[PLAYER],
    },
    Workload {
        name: "video-throughput",
        about: "plays the same video; the throughput of the last five segments chooses the bit rate",
        source: "FESTIVE, CoNEXT 2012; Yin et al., SIGCOMM 2015; dash.js's margin of 10 %",
        flows: &[Part {
            application: Some(r#"{"kind": "video", "adaptation": "throughput"}"#),
            ..UP
        }],
    },
    Workload {
        name: "video-bulk",
        about: "plays such a video beside a bulk flow",
        source: "as `video`",
        flows: &[PLAYER, DOWN],
    },
    Workload {
        name: "rtp-bulk",
        about: "sends a live video over RTP beside a bulk flow: SCReAMv2 chooses its bit rate, from 150 kbit/s to 5 Mbit/s",
        source: "draft-johansson-ccwg-rfc8298bis-screamv2; the range and 30 frames a second are ours",
        flows: &[LIVE, DOWN],
    },
    Workload {
        name: "rpc",
        about: "sends a request of 100 bytes, gets a response of 10 kB, and asks again at once",
        source: "",
        flows: &[Part {
            application: Some(
                r#"{"kind": "request_response", "request": "100b", "response": "10kb"}"#,
            ),
            ..UP
        }],
    },
    Workload {
        name: "on-off",
        about: "sends as fast as it can for 5 s, then nothing for 5 s",
        source: "",
        flows: &[Part {
            application: Some(r#"{"kind": "on_off", "on": "5s", "off": "5s"}"#),
            ..DOWN
        }],
    },
    Workload {
        name: POISSON,
        about: "flows that arrive at random (Poisson), with sizes from a distribution: 'poisson load=60% \
                sizes=web-search'. Instead of load: every=TIME; as sizes also one size, or a file; until=TIME",
        source: "web search: DCTCP, SIGCOMM 2010",
        flows: &[DOWN],
    },
    Workload {
        name: "rrul",
        about: "four flows each way, marked CS0, CS1, CS5 and EF, and pings: Realtime Response Under Load",
        source: "flent's rrul, without its UDP pings and 5 s of silence before and after",
        flows: &MARKED,
    },
    Workload {
        name: "rrul_be",
        about: "the same without marks: best effort",
        source: "flent's rrul_be, without its UDP pings and 5 s of silence before and after",
        flows: &[FOUR_DOWN, FOUR_UP],
    },
    Workload { name: "tcp_download", about: "one flow down", source: FLENT, flows: &[DOWN] },
    Workload { name: "tcp_upload", about: "one flow up", source: FLENT, flows: &[UP] },
    Workload {
        name: "tcp_bidirectional",
        about: "one flow each way",
        source: FLENT,
        flows: &[DOWN, UP],
    },
    Workload {
        name: "tcp_2up_delay",
        about: "two flows up, the second 5 s later",
        source: FLENT,
        flows: &[Part { count: 2, stagger: Some("5s"), ..UP }],
    },
    Workload { name: "tcp_Ndown", about: "N flows down", source: FLENT, flows: &[DOWN] },
    Workload { name: "tcp_Nup", about: "N flows up", source: FLENT, flows: &[UP] },
];

impl Workload {
    /// Parses `text`: a workload, the multiplier of its flows, and the fields that its options add to an entry of
    /// `[[flows]]`.
    ///
    /// # Errors
    /// A name or an option that is not known.
    pub fn parse(text: &str) -> Result<(&'static Self, u64, Map<String, Value>), Problem> {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
        let (workload, times) = Self::find(name)?;
        let wrong = |expected: &str| problem("workload", &format!("{text:?}"), expected);
        let mut options = Map::new();
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            if name != POISSON {
                return Err(wrong(&format!("no options: {name} has none")));
            }
            if !matches!(key, "load" | "every" | "sizes" | "until") || value.is_empty() {
                return Err(wrong("load=SHARE or every=TIME, sizes=NAME and until=TIME"));
            }
            if options.insert(key.to_owned(), json!(value)).is_some() {
                return Err(wrong("every option once"));
            }
        }
        let mut entry = Map::new();
        if name == POISSON {
            let sizes = options.shift_remove("sizes").unwrap_or_else(|| json!("web-search"));
            if !options.contains_key("every") {
                options.entry("load").or_insert_with(|| json!("60%"));
            }
            options.insert("kind".to_owned(), json!("poisson"));
            entry.insert("sizes".to_owned(), sizes);
            entry.insert("arrivals".to_owned(), Value::Object(options));
        }
        Ok((workload, times, entry))
    }

    /// The workload of this name, and by how much its flows are multiplied.
    ///
    /// # Errors
    /// A name that is not known.
    fn find(name: &str) -> Result<(&'static Self, u64), Problem> {
        for workload in WORKLOADS {
            if workload.name == name {
                return Ok((workload, 1));
            }
            let Some((before, after)) = workload.name.split_once('N') else { continue };
            let number = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            match number {
                Some("n") => return Ok((workload, 1)),
                Some(number) => {
                    if let Some(count) = number.parse().ok().filter(|count| *count > 0) {
                        return Ok((workload, count));
                    }
                }
                None => {}
            }
        }
        let names: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
        let expected = format!("one of {} (dragstrip list --workloads)", names.join(", "));
        Err(problem("workload", &format!("{name:?}"), &expected))
    }
}

impl Part {
    /// The entry of `[[flows]]` without algorithm, count and start.
    #[must_use]
    pub fn entry(&self) -> Map<String, Value> {
        let mut entry = Map::new();
        if self.reverse {
            entry.insert("reverse".to_owned(), json!(true));
        }
        if let Some(bytes) = self.bytes {
            entry.insert("bytes".to_owned(), json!(bytes));
        }
        if let Some(dscp) = self.dscp {
            entry.insert("dscp".to_owned(), json!(dscp));
        }
        if let Some(application) = self.application {
            let application = serde_json::from_str(application).unwrap_or_default();
            entry.insert("application".to_owned(), application);
        }
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_has_options() {
        let entry = |text| Workload::parse(text).map(|(_, _, entry)| Value::Object(entry));
        let plain = json!({"sizes": "web-search", "arrivals": {"load": "60%", "kind": "poisson"}});
        assert_eq!(entry("poisson"), Ok(plain));
        let expected_entry =
            json!({"sizes": "9kb", "arrivals": {"every": "1s", "until": "5s", "kind": "poisson"}});
        assert_eq!(entry("poisson every=1s sizes=9kb  until=5s"), Ok(expected_entry));
        assert_eq!(entry("rrul"), Ok(json!({})));
        for (text, expected) in [
            ("poisson load", "load=SHARE or"),
            ("poisson lod=1%", "load=SHARE or"),
            ("poisson load=1% load=2%", "every option once"),
            ("web load=1%", "no options"),
            ("poison", "one of bulk"),
        ] {
            assert!(entry(text).unwrap_err().expected.starts_with(expected), "{text}");
        }
    }

    #[test]
    fn a_number_in_the_name_multiplies() {
        let parsed = |name| Workload::find(name).map(|(workload, count)| (workload.name, count));
        assert_eq!(parsed("tcp_12up"), Ok(("tcp_Nup", 12)));
        assert_eq!(parsed("tcp_nup"), Ok(("tcp_Nup", 1)));
        assert_eq!(parsed("tcp_2up_delay"), Ok(("tcp_2up_delay", 1)));
        assert_eq!(parsed("rrul"), Ok(("rrul", 1)));
        for name in ["tcp_0up", "tcp_-1up", "tcp_up", "rul", ""] {
            assert_eq!(parsed(name).unwrap_err().field, "workload", "{name}");
        }
    }
}
