//! The measures by name.

use crate::arithmetic::{mean, percentile, total};
use crate::measure::{Figure, Level, Measure, measure};
use crate::measured::{Flow, Measured, Of};
use crate::transfers::Transfer;
use crate::video::Watched;
use crate::{recovery, rtp};
use dragstrip_recording::TCPSTAT_NS;
use dragstrip_recording::column::{queues, samples, spp, video};

/// A figure that follows from a flow's row alone.
macro_rules! of_row {
    ($figure:expr) => {
        Figure::WholeFlow(|run, place| {
            let figure: fn(&Flow) -> Option<f64> = $figure;
            Ok(figure(&run.flows()[place]))
        })
    };
}

/// A figure of a flow's video.
macro_rules! of_video {
    ($figure:expr) => {
        Figure::WholeFlow(|run, place| {
            let figure: fn(Watched) -> Option<f64> = $figure;
            Ok(run.watched(place)?.and_then(figure))
        })
    };
}

/// All measures, in the order of the page.
pub const MEASURES: &[Measure] = &[
    measure(
        Level::Flow,
        "goodput_bps",
        "bit/s",
        "new bytes that reached the receiving application's socket, over the flow's life",
        Figure::FlowFigure(Measured::goodput_bps),
    ),
    measure(
        Level::Flow,
        "goodput_bps_steady",
        "bit/s",
        "the same without the first 5 s or 20 round trips (of the smallest RTT), whichever is longer",
        Figure::WholeFlow(Measured::steady_bps),
    ),
    measure(
        Level::Flow,
        "written_bps",
        "bit/s",
        "bytes accepted by the sending socket, sent or not, in each whole second of the flow's life: iperf's figure at the sender",
        Figure::OfFlow(Measured::written_bps),
    ),
    measure(
        Level::Flow,
        "throughput_bps",
        "bit/s",
        "Ethernet frames that arrived, retransmissions included, in each whole second of the flow's life",
        Figure::OfFlow(Measured::throughput_bps),
    ),
    measure(
        Level::Flow,
        "tcpstat_bps",
        "bit/s",
        "bytes of IP packets in the receiver's capture, by the rules of tcpstat, in each whole interval of 5 s, its default (`record.captures`)",
        Figure::OfFlow(|run, place, window| run.tcpstat_bps(place, window, 5 * TCPSTAT_NS)),
    ),
    measure(
        Level::Flow,
        "tcpstat_1s_bps",
        "bit/s",
        "the same in each whole second",
        Figure::OfFlow(|run, place, window| run.tcpstat_bps(place, window, TCPSTAT_NS)),
    ),
    measure(
        Level::Flow,
        "datagrams_lost",
        "packets",
        "UDP datagrams that were sent and did not arrive",
        of_row!(|flow| flow.datagrams_lost.map(|lost| lost as f64)),
    ),
    measure(
        Level::Flow,
        "rtt_ms",
        "ms",
        "the sender's RTT samples; if none were recorded, its latest RTT at each interval in which something was acknowledged; with `state`, its latest RTT at each interval in that state",
        Figure::OfFlow(Measured::rtts_ms),
    ),
    measure(
        Level::Flow,
        "spp_ms",
        "ms",
        "round trips between captures at both ends, by the rules of SPP (`record.captures`; [how](../how-to/captures.md#as-caia-measured))",
        Figure::OfFlow(|run, place, window| run.present(Of::Spp, &spp::rtt_ns, place, window, 1e6)),
    ),
    measure(
        Level::Flow,
        "srtt_ms",
        "ms",
        "smoothed RTT at each interval",
        Figure::OfFlow(|run, place, window| {
            run.present(Of::Samples, &samples::srtt_ns, place, window, 1e6)
        }),
    ),
    measure(
        Level::Flow,
        "cwnd_packets",
        "packets",
        "congestion window at each interval, in full segments",
        Figure::OfFlow(|run, place, window| run.segments(&samples::cwnd_bytes, place, window)),
    ),
    measure(
        Level::Flow,
        "cwnd_bytes",
        "B",
        "congestion window at each interval",
        Figure::OfFlow(|run, place, window| {
            run.present(Of::Samples, &samples::cwnd_bytes, place, window, 1.0)
        }),
    ),
    measure(
        Level::Flow,
        "flight_packets",
        "packets",
        "in flight at each interval, in full segments",
        Figure::OfFlow(|run, place, window| run.segments(&samples::bytes_in_flight, place, window)),
    ),
    measure(
        Level::Flow,
        "stalls",
        "1",
        "number of times that nothing was acknowledged for a second or more",
        Figure::FlowFigure(|run, place, window| {
            Ok(Some(run.stalls_s(place, window)?.len() as f64))
        }),
    ),
    measure(
        Level::Flow,
        "stall_s_longest",
        "s",
        "the longest time in which nothing was acknowledged; 0 below a second",
        Figure::FlowFigure(|run, place, window| {
            Ok(Some(run.stalls_s(place, window)?.into_iter().fold(0.0, f64::max)))
        }),
    ),
    measure(
        Level::Flow,
        "share",
        "1",
        "share of the new bytes of all flows that it competes with, while all of them live",
        Figure::WholeFlow(Measured::share),
    ),
    measure(
        Level::Flow,
        "retransmits",
        "segments",
        "segments retransmitted",
        of_row!(|flow| Some(flow.retransmits as f64)),
    ),
    measure(
        Level::Flow,
        "segments_sent",
        "segments",
        "segments sent, retransmissions included",
        of_row!(|flow| Some(flow.segments_sent as f64)),
    ),
    measure(
        Level::Flow,
        "timeouts",
        "1",
        "expiries of the retransmission timer",
        of_row!(|flow| flow.rto_count.map(|count| count as f64)),
    ),
    measure(
        Level::Flow,
        "reductions",
        "1",
        "number of window reductions",
        of_row!(|flow| Some(flow.reductions as f64)),
    ),
    measure(
        Level::Flow,
        "cwnd_limited_s",
        "s",
        "time in which the congestion window limits the sender",
        Figure::FlowFigure(|run, place, window| run.limited_by_s(place, window, "cwnd")),
    ),
    measure(
        Level::Flow,
        "pacing_limited_s",
        "s",
        "time in which the pacer does",
        Figure::FlowFigure(|run, place, window| run.limited_by_s(place, window, "pacing")),
    ),
    measure(
        Level::Flow,
        "small_queue_limited_s",
        "s",
        "time in which TCP small queues do: enough of the flow's data waits in its host's own queue",
        Figure::FlowFigure(|run, place, window| run.limited_by_s(place, window, "small_queue")),
    ),
    measure(
        Level::Flow,
        "rwnd_limited_s",
        "s",
        "time in which the receiver's window does",
        Figure::FlowFigure(|run, place, window| run.limited_by_s(place, window, "rwnd")),
    ),
    measure(
        Level::Flow,
        "sndbuf_limited_s",
        "s",
        "time in which the send buffer does",
        Figure::FlowFigure(|run, place, window| run.limited_by_s(place, window, "sndbuf")),
    ),
    measure(
        Level::Flow,
        "app_limited_s",
        "s",
        "time in which the application has nothing to send",
        Figure::FlowFigure(|run, place, window| run.limited_by_s(place, window, "app")),
    ),
    measure(
        Level::Flow,
        "handshake_s",
        "s",
        "time without a connection",
        Figure::FlowFigure(|run, place, window| run.limited_by_s(place, window, "handshake")),
    ),
    measure(
        Level::Flow,
        "slow_start_s",
        "s",
        "time in the states `slow_start` and `startup`",
        Figure::FlowFigure(Measured::slow_start_s),
    ),
    measure(
        Level::Flow,
        "recovery_s",
        "s",
        "time in the states `cwr` and `recovery`",
        Figure::FlowFigure(|run, place, window| {
            run.in_state_s(place, window, &["cwr", "recovery"])
        }),
    ),
    measure(
        Level::Flow,
        "loss_s",
        "s",
        "time in the state `loss`: after a timeout, until the losses are repaired",
        Figure::FlowFigure(|run, place, window| run.in_state_s(place, window, &["loss"])),
    ),
    measure(
        Level::Flow,
        "completion_s",
        "s",
        "from start to stop",
        of_row!(|flow| Some(flow.duration_s())),
    ),
    measure(
        Level::Flow,
        "slowdown",
        "1",
        "of a flow with a size: its time from start to stop over what its bytes take alone, which is a round trip for \
         the handshake, the bytes at the bottleneck's rate and the way there",
        Figure::WholeFlow(|run, place| Ok(run.transfer(place).and_then(|it| it.slowdown))),
    ),
    measure(
        Level::Flow,
        "ecn_negotiated",
        "1",
        "1 if both ends agreed on ECN",
        of_row!(|flow| Some(f64::from(u8::from(flow.ecn_negotiated)))),
    ),
    measure(
        Level::Flow,
        "video_startup_s",
        "s",
        "time from the flow's start until the player plays; the flow's life if it never does",
        of_video!(|video| Some(video.startup_s)),
    ),
    measure(
        Level::Flow,
        "video_stalls",
        "1",
        "number of times that playback stands still because the buffer is empty",
        of_video!(|video| Some(video.stalls as f64)),
    ),
    measure(
        Level::Flow,
        "video_stall_s",
        "s",
        "time in which playback stands still after it has begun",
        of_video!(|video| Some(video.stall_s)),
    ),
    measure(
        Level::Flow,
        "video_bps",
        "bit/s",
        "mean bit rate of the segments that arrived",
        of_video!(|video| video.bps),
    ),
    measure(
        Level::Flow,
        "video_switches",
        "1",
        "number of times that a segment's bit rate differs from that of the one before",
        of_video!(|video| Some(video.switches as f64)),
    ),
    measure(
        Level::Flow,
        "video_buffer_s",
        "s",
        "the player's buffer whenever a segment has arrived, in seconds to play",
        Figure::OfFlow(|run, place, window| {
            if run.watched(place)?.is_none() {
                return Ok(Vec::new());
            }
            run.present(Of::Video, &video::buffer_ns, place, window, 1e9)
        }),
    ),
    rtp::TARGET,
    rtp::RATE,
    rtp::FRAME,
    rtp::LATE_100,
    rtp::LATE_200,
    rtp::LOST,
    rtp::BREAKER,
    measure(
        Level::Probe,
        "probe_ms",
        "ms",
        "answered pings while some flow lives",
        Figure::OfName(|run, label| run.probe_ms(label, false)),
    ),
    measure(
        Level::Probe,
        "probe_idle_ms",
        "ms",
        "answered pings while no flow lives",
        Figure::OfName(|run, label| run.probe_ms(label, true)),
    ),
    measure(
        Level::Probe,
        "probe_lost",
        "1",
        "pings without an answer, in the whole run; excludes those whose answer may still be in flight at the end (ping(8) waits for two round trips)",
        Figure::NameFigure(|run, label| Ok(Some(run.probes_lost(label)? as f64))),
    ),
    measure(
        Level::Queue,
        "backlog_bytes",
        "B",
        "bytes in the queue at each interval while some flow lives",
        Figure::OfName(Measured::backlog_bytes),
    ),
    measure(
        Level::Queue,
        "dropped",
        "packets",
        "packets dropped, at the end of the run",
        Figure::NameFigure(|run, link| Ok(Some(run.queue_total(link, &queues::dropped)? as f64))),
    ),
    measure(
        Level::Queue,
        "marked",
        "packets",
        "packets marked by ECN, at the end of the run",
        Figure::NameFigure(|run, link| Ok(Some(run.queue_total(link, &queues::marked)? as f64))),
    ),
    measure(
        Level::Queue,
        "idle_s",
        "s",
        "time in which the link has nothing to send while some flow lives; undefined for a medium whose rate varies",
        Figure::NameFigure(Measured::idle_s),
    ),
    measure(
        Level::Run,
        "jain",
        "1",
        "Jain's index (Σx)²/(n·Σx²) of the flows' goodput while all of them live, if all flows compete; where their max-min fair \
         rates differ (several bottlenecks), of the ratio to these",
        Figure::RunFigure(Measured::jain),
    ),
    measure(
        Level::Run,
        "goodput_bps_total",
        "bit/s",
        "goodput of all flows together, each over its own life",
        Figure::RunFigure(|run| Ok(Some(total(&run.goodputs())))),
    ),
    measure(
        Level::Run,
        "carried_bps",
        "bit/s",
        "new bytes of all flows over the duration of the run",
        Figure::RunFigure(|run| Ok(Some(run.carried_bps()))),
    ),
    recovery::RECOVERY,
    measure(
        Level::Transfers,
        "fct_s",
        "s",
        "flow completion times: from each flow's start until its last byte arrives; of an unfinished one, the time so far",
        Figure::OfTransfers(|transfer| Some(transfer.completion_s)),
    ),
    measure(
        Level::Transfers,
        "fct_slowdown",
        "1",
        "the measure `slowdown` of each flow",
        Figure::OfTransfers(|transfer| transfer.slowdown),
    ),
    measure(
        Level::Transfers,
        "fct_unfinished",
        "1",
        "number of flows whose last byte has not arrived by the end of the run",
        Figure::TransfersFigure(|transfers| {
            (!transfers.is_empty())
                .then(|| transfers.iter().filter(|transfer| !transfer.finished).count() as f64)
        }),
    ),
];

/// Reduction of a series to the figure of a claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// The value below which so many per cent lie.
    Percentile(f64),
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The mean.
    Mean,
    /// The first.
    First,
    /// The last.
    Last,
}

impl Statistic {
    /// `p5`, `p99.9`, `min` and the like.
    fn parse(word: &str) -> Option<Self> {
        match word {
            "min" => return Some(Self::Min),
            "max" => return Some(Self::Max),
            "mean" => return Some(Self::Mean),
            "first" => return Some(Self::First),
            "last" => return Some(Self::Last),
            _ => {}
        }
        let share = word.strip_prefix('p')?;
        let (whole, part) = share.split_once('.').unwrap_or((share, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !(digits(whole) && whole.len() <= 2 && digits(part)) {
            return None;
        }
        share.parse().ok().map(Self::Percentile)
    }

    /// It, of these values; none of no values.
    #[must_use]
    pub fn of(self, values: Vec<f64>) -> Option<f64> {
        match self {
            Self::Percentile(share) => percentile(values, share),
            Self::Min => values.into_iter().min_by(f64::total_cmp),
            Self::Max => values.into_iter().max_by(f64::total_cmp),
            Self::Mean => mean(&values),
            Self::First => values.first().copied(),
            Self::Last => values.last().copied(),
        }
    }
}

/// The measure called `name`: of a series with the statistic that the name ends with; none if there is no such name.
#[must_use]
pub fn find(name: &str) -> Option<(&'static Measure, Option<Statistic>)> {
    let called = |name: &str, series| {
        MEASURES.iter().find(|measure| measure.name == name && measure.is_series() == series)
    };
    if let Some(measure) = called(name, false) {
        return Some((measure, None));
    }
    let (series, statistic) = name.rsplit_once('_')?;
    Some((called(series, true)?, Some(Statistic::parse(statistic)?)))
}

/// A figure of transfers by its whole name, such as `fct_s_p99`, and its unit; none if no measure of transfers has that
/// name. The figure is none where there is nothing to measure.
#[must_use]
pub fn of_transfers(name: &str, transfers: &[Transfer]) -> Option<(Option<f64>, &'static str)> {
    let (measure, statistic) = find(name)?;
    let figure = match (measure.figure, statistic) {
        (Figure::OfTransfers(value), Some(statistic)) => {
            statistic.of(transfers.iter().filter_map(value).collect())
        }
        (Figure::TransfersFigure(figure), None) => figure(transfers),
        _ => return None,
    };
    Some((figure, measure.unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (index, measure) in MEASURES.iter().enumerate() {
            assert!(MEASURES[..index].iter().all(|other| other.name != measure.name));
            let named = matches!(measure.figure, Figure::OfName(_) | Figure::NameFigure(_));
            assert_eq!(named, matches!(measure.level, Level::Probe | Level::Queue));
        }
    }

    #[test]
    fn a_series_is_named_with_its_statistic() {
        let statistic = |name| find(name).and_then(|(_, statistic)| statistic);
        assert_eq!(statistic("rtt_ms_p50"), Some(Statistic::Percentile(50.0)));
        assert_eq!(statistic("rtt_ms_p99.9"), Some(Statistic::Percentile(99.9)));
        assert_eq!(statistic("cwnd_packets_first"), Some(Statistic::First));
        assert_eq!(statistic("fct_s_p99"), Some(Statistic::Percentile(99.0)));
        assert!(find("fct_unfinished").is_some_and(|(measure, _)| !measure.has_window()));
        assert!(find("goodput_bps_steady").is_some_and(|(_, statistic)| statistic.is_none()));
        for wrong in [
            "rtt",
            "rtt_ms",
            "rtt_ms_p",
            "rtt_ms_p500",
            "rtt_ms_p5.",
            "rtt_ms_p.5",
            "rtt_ms_p+5",
            "goodput_bps_p50",
            "",
            "_",
        ] {
            assert!(find(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn statistics_of_nothing_are_nothing() {
        for word in ["p50", "min", "max", "mean", "first", "last"] {
            let statistic = Statistic::parse(word).unwrap();
            assert_eq!(statistic.of(vec![]), None);
            assert_eq!(statistic.of(vec![4.0]), Some(4.0));
        }
        assert_eq!(Statistic::Mean.of(vec![1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(Statistic::Last.of(vec![1.0, 2.0, 6.0]), Some(6.0));
        assert_eq!(Statistic::Min.of(vec![3.0, 2.0, 6.0]), Some(2.0));
    }
}
