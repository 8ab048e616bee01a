//! The sentences: each cause's wording and its figures. Nothing is decided here.

use super::Finding;
use super::facts::Buffers;
use super::rivals::Mechanism;
use crate::numbers::{count, digits, ms, percent, rate, seconds, size, times};
use dragstrip_scenario::BufferSizes;
use std::collections::BTreeMap;

/// A buffer of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// The sender's.
    Send,
    /// The receiver's, which its window announces.
    Receive,
}

/// Cause that a rule established.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    Unconnected {
        who: String,
        flows: Vec<String>,
        life_s: f64,
    },
    Timeouts {
        who: String,
        flows: Vec<String>,
        timeouts: f64,
        loss_s: f64,
        life_s: f64,
    },
    Application {
        who: String,
        flows: Vec<String>,
        app_limited_s: f64,
        life_s: f64,
    },
    Buffer {
        which: Buffer,
        who: String,
        flows: Vec<String>,
        goodput_bps: f64,
        limited_s: f64,
        life_s: f64,
        bdp_bytes: Option<f64>,
        buffers: Option<Buffers>,
    },
    SmallQueue {
        who: String,
        flows: Vec<String>,
        small_queue_limited_s: f64,
        life_s: f64,
        delay_ms: Option<f64>,
    },
    UnfairShare {
        most: String,
        least: String,
        flows: Vec<String>,
        most_bps: f64,
        least_bps: f64,
        /// The max-min fair rates of both, where they differ.
        fair_bps: Option<(f64, f64)>,
        together_s: Option<(f64, f64)>,
        jain: f64,
        mechanism: Mechanism,
    },
    RandomLoss {
        who: String,
        flows: Vec<String>,
        loss: f64,
        rtt_ms: f64,
        law_bps: Option<f64>,
        goodput_bps: f64,
        rate_bps: Option<f64>,
    },
    EcnMarks {
        link: String,
        flows: Vec<String>,
        marked: f64,
        dropped: f64,
        delay_ms: Option<f64>,
    },
    Aqm {
        kind: &'static str,
        link: String,
        flows: Vec<String>,
        delay_ms: f64,
        target_ms: f64,
        dropped: f64,
        marked: f64,
    },
    StandingQueue {
        who: String,
        shared: bool,
        /// The link, where it needs its name.
        at: Option<String>,
        /// The mean wait at that link, where the flow waits at others too.
        there_ms: Option<f64>,
        flows: Vec<String>,
        queueing_ms: f64,
        rtt_ms: f64,
        never_empty: bool,
    },
    SlowStart {
        who: String,
        flows: Vec<String>,
        slow_start_s: f64,
        life_s: f64,
        goodput_bps: f64,
    },
    Overshoot {
        who: String,
        flows: Vec<String>,
        early: f64,
        retransmits: f64,
        since_s: f64,
    },
    IdleLink {
        who: Option<String>,
        link: String,
        flows: Vec<String>,
        idle_s: f64,
        busy_s: f64,
        after: &'static str,
        after_s: f64,
        buffer_and_bdp_bytes: Option<(f64, f64)>,
    },
    Pacing {
        who: String,
        flows: Vec<String>,
        pacing_limited_s: f64,
        life_s: f64,
        delay_ms: Option<f64>,
    },
    Filled {
        who: Option<String>,
        link: String,
        flows: Vec<String>,
        used: f64,
        delay_ms: f64,
    },
}

/// The cause in words.
pub fn finding(cause: Cause) -> Finding {
    let of_flows = match &cause {
        Cause::Unconnected { .. }
        | Cause::Timeouts { .. }
        | Cause::Application { .. }
        | Cause::Buffer { .. }
        | Cause::SmallQueue { .. }
        | Cause::RandomLoss { .. }
        | Cause::SlowStart { .. }
        | Cause::Overshoot { .. }
        | Cause::Pacing { .. } => true,
        Cause::StandingQueue { .. }
        | Cause::UnfairShare { .. }
        | Cause::EcnMarks { .. }
        | Cause::Aqm { .. }
        | Cause::IdleLink { .. }
        | Cause::Filled { .. } => false,
    };
    let mut finding = in_words(cause);
    match finding.flows.len() {
        2 if of_flows => finding.sentence += "; the same holds of another flow",
        3.. if of_flows => {
            finding.sentence += &format!("; the same holds of {} others", finding.flows.len() - 1);
        }
        _ => {}
    }
    finding
}

#[allow(clippy::too_many_lines, reason = "one arm per cause: all wording in one place")]
fn in_words(cause: Cause) -> Finding {
    match cause {
        Cause::Unconnected { who, flows, life_s } => Finding {
            sentence: format!(
                "{} never connected: no handshake ended within {}",
                who,
                seconds(life_s)
            ),
            rule: "unconnected",
            flows,
            figures: figures([("life_s", life_s)]),
        },
        Cause::Timeouts { who, flows, timeouts, loss_s, life_s } => Finding {
            sentence: format!(
                "Timeouts slow {}: the retransmission timer expired {}, {} of the time was spent in loss recovery",
                who,
                times(timeouts),
                percent(loss_s / life_s)
            ),
            rule: "timeouts",
            flows,
            figures: figures([
                ("timeouts", timeouts),
                ("loss_s", loss_s),
                ("loss_share", loss_s / life_s),
            ]),
        },
        Cause::Application { who, flows, app_limited_s, life_s } => Finding {
            sentence: format!(
                "The application limits {}: for {} of the time it had nothing to send",
                who,
                percent(app_limited_s / life_s)
            ),
            rule: "application",
            flows,
            figures: figures([
                ("app_limited_s", app_limited_s),
                ("app_limited_share", app_limited_s / life_s),
            ]),
        },
        Cause::Buffer { which, who, flows, goodput_bps, limited_s, life_s, bdp_bytes, buffers } => {
            let (rule, what, name) = match which {
                Buffer::Send => ("send_buffer", "send buffer", "sndbuf_limited_s"),
                Buffer::Receive => ("receive_window", "receive window", "rwnd_limited_s"),
            };
            let mut figures = figures([
                ("goodput_bps", goodput_bps),
                (name, limited_s),
                ("limited_share", limited_s / life_s),
            ]);
            let mut sentence = format!(
                "The {what} limits {} to {} for {} of the time",
                who,
                rate(goodput_bps),
                percent(limited_s / life_s)
            );
            if let Some((bdp, buffers)) = bdp_bytes.zip(buffers) {
                let advice = match buffers {
                    Buffers::Kernel(sizes) => {
                        let options = advice(which, bdp, sizes);
                        (!options.is_empty()).then(|| format!("`{}`", options.join(" ")))
                    }
                    Buffers::Streams => {
                        Some("more `streams`, or a larger `stream_window`".to_owned())
                    }
                };
                if let Some(advice) = advice {
                    sentence += &format!(": the BDP is {}; try {advice}", size(bdp));
                    figures.insert("bdp_bytes", bdp);
                }
            }
            Finding { sentence, rule, flows, figures }
        }
        Cause::SmallQueue { who, flows, small_queue_limited_s, life_s, delay_ms } => {
            let mut shares = figures([
                ("small_queue_limited_s", small_queue_limited_s),
                ("small_queue_limited_share", small_queue_limited_s / life_s),
            ]);
            shares.extend(delay_ms.map(|delay| ("delay_ms", delay)));
            let queue = delay_ms.map_or_else(String::new, |delay| {
                format!(", and leaves {} of queueing there", ms(delay))
            });
            Finding {
                sentence: format!(
                    "TCP small queues limit {} for {} of the time: it sends as fast as its host's own interface{queue}",
                    who,
                    percent(small_queue_limited_s / life_s)
                ),
                rule: "small_queue",
                flows,
                figures: shares,
            }
        }
        Cause::UnfairShare {
            most,
            least,
            flows,
            most_bps,
            least_bps,
            fair_bps,
            together_s,
            jain,
            mechanism,
        } => {
            let begins = together_s.map_or_else(String::new, |(from, until)| {
                format!("From {} to {}, ", seconds(from), seconds(until))
            });
            let ratio = most_bps / least_bps;
            let times = if ratio.is_finite() && ratio < 100.0 {
                format!("{} times", digits(ratio))
            } else {
                "more than 100 times".to_owned()
            };
            let mut values =
                figures([("most_bps", most_bps), ("least_bps", least_bps), ("jain", jain)]);
            if ratio.is_finite() {
                values.insert("ratio", ratio);
            }
            if let Some((from, until)) = together_s {
                values.extend([("from_s", from), ("until_s", until)]);
            }
            let fair = fair_bps.map_or_else(String::new, |(most, least)| {
                values.extend([("most_fair_bps", most), ("least_fair_bps", least)]);
                format!("; max-min fair would be {} and {}", rate(most), rate(least))
            });
            let (by, more) = mechanism.told();
            values.extend(more);
            Finding {
                sentence: format!(
                    "{begins}{most} gets {times} the goodput of {least} ({} and {}{fair}): {by}",
                    rate(most_bps),
                    rate(least_bps)
                ),
                rule: "unfair_share",
                flows,
                figures: values,
            }
        }
        Cause::RandomLoss { who, flows, loss, rtt_ms, law_bps, goodput_bps, rate_bps } => {
            let mut values =
                figures([("loss_share", loss), ("rtt_ms", rtt_ms), ("goodput_bps", goodput_bps)]);
            let of = rate_bps.map_or_else(String::new, |bps| format!(" of {}", rate(bps)));
            values.extend(rate_bps.map(|bps| ("rate_bps", bps)));
            let law = law_bps.map_or_else(String::new, |law| {
                values.insert("law_bps", law);
                format!("; at {} the square-root law allows {}", ms(rtt_ms), rate(law))
            });
            Finding {
                sentence: format!(
                    "Loss on the path, not in the queue, limits {}: {} of the segments are lost and {} moved{of}{law}",
                    who,
                    percent(loss),
                    rate(goodput_bps)
                ),
                rule: "random_loss",
                flows,
                figures: values,
            }
        }
        Cause::EcnMarks { link, flows, marked, dropped, delay_ms } => {
            let mut values = figures([("marked", marked), ("dropped", dropped)]);
            values.extend(delay_ms.map(|delay| ("delay_ms", delay)));
            let queue = delay_ms.map_or_else(String::new, |delay| {
                format!(", and the queue stays at {}", ms(delay))
            });
            Finding {
                sentence: format!(
                    "Marks stand for drops at {link}: {} marks, {} drops{queue}",
                    count(marked),
                    count(dropped)
                ),
                rule: "ecn_marks",
                flows,
                figures: values,
            }
        }
        Cause::Aqm { kind, link, flows, delay_ms, target_ms, dropped, marked } => {
            let acts = match (dropped > 0.0, marked > 0.0) {
                (true, true) => format!("{} drops and {} marks", count(dropped), count(marked)),
                (false, true) => format!("{} marks", count(marked)),
                _ => format!("{} drops", count(dropped)),
            };
            Finding {
                sentence: format!(
                    "{kind} holds the queue of {link} at {} (target {}) with {acts}",
                    ms(delay_ms),
                    ms(target_ms)
                ),
                rule: "aqm",
                flows,
                figures: figures([
                    ("delay_ms", delay_ms),
                    ("target_ms", target_ms),
                    ("dropped", dropped),
                    ("marked", marked),
                ]),
            }
        }
        Cause::StandingQueue {
            who,
            shared,
            at,
            there_ms,
            flows,
            queueing_ms,
            rtt_ms,
            never_empty,
        } => {
            let at = at.map_or_else(String::new, |link| format!(" at {link}"));
            let subject =
                if shared { format!("The queue{at}") } else { format!("{who}'s queue{at}") };
            let mut values = figures([("queueing_ms", queueing_ms), ("rtt_ms", rtt_ms)]);
            let wait_text = there_ms.map_or_else(String::new, |wait| {
                values.insert("wait_ms", wait);
                format!(", {} of it (mean) there", ms(wait))
            });
            let does = if never_empty { "is almost never empty" } else { "is rarely empty" };
            let of = if shared { format!(" of {who}") } else { String::new() };
            Finding {
                sentence: format!(
                    "{subject} {does}: {} of the {}{of} (median RTT) is queueing delay{wait_text}",
                    ms(queueing_ms),
                    ms(rtt_ms)
                ),
                rule: "standing_queue",
                flows,
                figures: values,
            }
        }
        Cause::SlowStart { who, flows, slow_start_s, life_s, goodput_bps } => Finding {
            sentence: format!(
                "{} hardly ever left slow start: {} of its {}, at {}",
                who,
                seconds(slow_start_s),
                seconds(life_s),
                rate(goodput_bps)
            ),
            rule: "slow_start_not_left",
            flows,
            figures: figures([
                ("slow_start_s", slow_start_s),
                ("life_s", life_s),
                ("goodput_bps", goodput_bps),
            ]),
        },
        Cause::Overshoot { who, flows, early, retransmits, since_s } => Finding {
            sentence: format!(
                "Slow start overshoots: {} of {}'s {} retransmissions are in its first {}",
                count(early),
                who,
                count(retransmits),
                seconds(since_s)
            ),
            rule: "slow_start_overshoot",
            flows,
            figures: figures([
                ("early_retransmits", early),
                ("retransmits", retransmits),
                ("since_s", since_s),
            ]),
        },
        Cause::IdleLink {
            who,
            link,
            flows,
            idle_s,
            busy_s,
            after,
            after_s,
            buffer_and_bdp_bytes,
        } => {
            let subject =
                who.map_or_else(|| "The flows leave".to_owned(), |who| format!("{who} leaves"));
            let mut values = figures([
                ("idle_s", idle_s),
                ("idle_share", idle_s / busy_s),
                ("after_share", after_s / idle_s),
            ]);
            let buffer = buffer_and_bdp_bytes.map_or_else(String::new, |(buffer, bdp)| {
                values.extend([("buffer_bytes", buffer), ("bdp_bytes", bdp)]);
                format!("; the buffer ({}) is smaller than the BDP ({})", size(buffer), size(bdp))
            });
            Finding {
                sentence: format!(
                    "{subject} {link} idle for {} of the time, {} of that {after}{buffer}",
                    percent(idle_s / busy_s),
                    percent(after_s / idle_s)
                ),
                rule: "idle_link",
                flows,
                figures: values,
            }
        }
        Cause::Pacing { who, flows, pacing_limited_s, life_s, delay_ms } => {
            let mut values = figures([
                ("pacing_limited_s", pacing_limited_s),
                ("pacing_limited_share", pacing_limited_s / life_s),
            ]);
            values.extend(delay_ms.map(|delay| ("delay_ms", delay)));
            let queue = delay_ms.map_or_else(String::new, |delay| {
                format!(", which leaves {} of queueing", ms(delay))
            });
            Finding {
                sentence: format!(
                    "Pacing limits {} for {} of the time: it sends at the rate that it has measured{queue}",
                    who,
                    percent(pacing_limited_s / life_s)
                ),
                rule: "pacing",
                flows,
                figures: values,
            }
        }
        Cause::Filled { who, link, flows, used, delay_ms } => Finding {
            sentence: format!(
                "{} {link}: busy for {} of the time, with {} of queueing",
                who.map_or_else(|| "The flows fill".to_owned(), |who| format!("{who} fills")),
                percent(used),
                ms(delay_ms)
            ),
            rule: "filled",
            flows,
            figures: figures([("used_share", used), ("delay_ms", delay_ms)]),
        },
    }
}

fn figures<const N: usize>(pairs: [(&'static str, f64); N]) -> BTreeMap<&'static str, f64> {
    pairs.into_iter().collect()
}

/// Buffers that let a window of the BDP through. A writer sleeps until a third of `tcp_wmem` is free, and memory is counted with
/// its overhead (up to 1.9 bytes a byte); half of `tcp_rmem` is announced, and memory is counted likewise.
fn advice(limit: Buffer, bdp_bytes: f64, sizes: [BufferSizes; 2]) -> Vec<String> {
    let [send, receive] = sizes;
    let option = |name: &str, sizes: BufferSizes, wanted: f64| {
        let bytes = (wanted as u64).next_power_of_two().min(1 << 30);
        let larger = bytes > u64::from(sizes.max);
        larger.then(|| {
            format!("--sysctl net.ipv4.{name}=\"{} {} {bytes}\"", sizes.min, sizes.default)
        })
    };
    let send = option("tcp_wmem", send, 3.0 * bdp_bytes);
    let receive = option("tcp_rmem", receive, 4.0 * bdp_bytes);
    match limit {
        Buffer::Send if send.is_none() => Vec::new(),
        Buffer::Receive if receive.is_none() => Vec::new(),
        Buffer::Send => send.into_iter().chain(receive).collect(),
        Buffer::Receive => receive.into_iter().chain(send).collect(),
    }
}
