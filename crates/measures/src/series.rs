//! Series and figures of flows, probes, queues and runs.

use crate::arithmetic::{self, rates_bps};
use crate::measured::{Measured, MissingColumn, Of, Window, number_of};
use dragstrip_recording::{ColumnDef, Data, TCPSTAT_NS, column};

/// Throughput is counted in spans of a second (of a recording interval, if that is longer).
pub const THROUGHPUT_NS: u64 = 1_000_000_000;

/// A flow counts as steady after 5 s or 20 round trips, whichever comes later.
const STEADY_NS_MIN: i64 = 5_000_000_000;
const STEADY_RTTS: f64 = 20.0;
/// A shorter pause is no stall to somebody who watches.
const STALL_S_MIN: f64 = 1.0;
/// Flows whose lives differ by a smaller part than this are compared by all of their lives.
const APART_MIN: f64 = 0.1;

type Values = Result<Vec<f64>, MissingColumn>;

/// A value as a number; NaN where there is none.
fn number(value: i64) -> f64 {
    if value == Data::NULL { f64::NAN } else { value as f64 }
}

impl Measured {
    /// A column's values in a flow's rows, those that are there, divided by `divide`.
    pub(crate) fn present(
        &self,
        of: Of,
        def: &'static ColumnDef,
        place: usize,
        window: &Window,
        divide: f64,
    ) -> Values {
        self.present_in(def, self.rows(of, place, window)?, divide)
    }

    /// A column's values in these rows, those that are there, divided by `divide`.
    fn present_in(
        &self,
        def: &'static ColumnDef,
        rows: impl IntoIterator<Item = usize>,
        divide: f64,
    ) -> Values {
        let values = self.ints(def)?;
        let values = rows.into_iter().map(|row| values[row]).filter(|value| *value != Data::NULL);
        Ok(values.map(|value| value as f64 / divide).collect())
    }

    /// The same of `samples`, in full segments.
    pub(crate) fn segments(
        &self,
        def: &'static ColumnDef,
        place: usize,
        window: &Window,
    ) -> Values {
        self.present(Of::Samples, def, place, window, f64::from(self.segment_bytes(place)))
    }

    /// Packet-level RTT samples. Where none were recorded: the sender's latest RTT at the end of each interval in which
    /// something was acknowledged, for the RTT of a silent flow is an old one.
    pub(crate) fn rtts_ms(&self, place: usize, window: &Window) -> Values {
        if window.state.is_some() {
            return self.present(Of::Samples, &column::samples::rtt_ns, place, window, 1e6);
        }
        let rtts = self.present(Of::Rtts, &column::rtts::rtt_ns, place, window, 1e6)?;
        if !rtts.is_empty() {
            return Ok(rtts);
        }
        let rows = self.rows(Of::Samples, place, window)?;
        // A recording of another program may not tell what was acknowledged.
        let acked = self.ints(&column::samples::bytes_acked).ok();
        let is_fresh = |at: usize| {
            let (Some(acked), Some(before)) = (acked, at.checked_sub(1)) else { return true };
            acked[rows[at]] == Data::NULL || acked[rows[at]] > acked[rows[before]]
        };
        let fresh = (0..rows.len()).filter(|at| is_fresh(*at)).map(|at| rows[at]);
        self.present_in(&column::samples::rtt_ns, fresh, 1e6)
    }

    /// Ethernet frames that arrived, retransmissions included, in each whole second.
    ///
    /// A recording interval holds few packets of a slow link: 12 or 13 in 100 ms at 1.5 Mbit/s, and the
    /// median would be above the link's rate. A flow that lives less than a second gives one figure.
    pub(crate) fn throughput_bps(&self, place: usize, window: &Window) -> Values {
        let sizes = self.arrivals(&column::received::wire_bytes, place, window)?;
        Ok(rates_bps(&sizes, self.scenario.record.interval_ns, THROUGHPUT_NS))
    }

    /// Bytes of IP packets in each whole interval of so many nanoseconds, from the first packet at the receiver on.
    ///
    /// As tcpstat's `%b` has it, but for the last interval: that of a file ends where its packets do, and is divided by all of it.
    pub(crate) fn tcpstat_bps(&self, place: usize, window: &Window, span_ns: u64) -> Values {
        let def = &column::tcpstat::ip_bytes;
        let sizes = self.present(Of::Tcpstat, def, place, window, 1.0)?;
        Ok(rates_bps(&sizes, TCPSTAT_NS, span_ns))
    }

    fn arrivals(&self, def: &'static ColumnDef, place: usize, window: &Window) -> Values {
        let values = self.ints(def)?;
        let rows = self.rows(Of::Received, place, window)?;
        Ok(rows.into_iter().map(|row| number(values[row])).collect())
    }

    /// Rate at which the sending socket took data, sent or not, in each whole second: iperf's figure at the sender.
    pub(crate) fn written_bps(&self, place: usize, window: &Window) -> Values {
        let rows = self.rows(Of::Samples, place, &Window::default())?;
        let times = self.ints(&column::samples::time_ns)?;
        let written = self.ints(&column::samples::bytes_written)?;
        let flow = &self.flows()[place];
        let first = flow.start_ns + window.after_ns;
        let mut so_far = Vec::new();
        for second in (first..=flow.end_ns(window)).step_by(THROUGHPUT_NS as usize) {
            let behind = rows.partition_point(|row| times[*row] <= second);
            // What was taken at once at the flow's start belongs to its first second.
            let behind = if so_far.is_empty() && window.after_ns == 0 { 0 } else { behind };
            let last = behind.checked_sub(1).map(|last| number(written[rows[last]]));
            so_far.push(last.unwrap_or(0.0));
        }
        let rates = so_far.windows(2).map(|pair| (pair[1] - pair[0]) * 8e9 / THROUGHPUT_NS as f64);
        Ok(rates.collect())
    }

    /// New bytes over time; over whole recording intervals where a part is left out.
    pub(crate) fn goodput_bps(
        &self,
        place: usize,
        window: &Window,
    ) -> Result<Option<f64>, MissingColumn> {
        if window.after_ns == 0 && window.until_ns.is_none() {
            return Ok(Some(self.flows()[place].goodput_bps()));
        }
        let new = self.arrivals(&column::received::new_bytes, place, window)?;
        let time_ns = (self.scenario.record.interval_ns * new.len() as u64) as f64;
        Ok((!new.is_empty()).then(|| arithmetic::sum(&new) * 8e9 / time_ns))
    }

    /// Goodput without what counts as the flow's start.
    pub(crate) fn steady_bps(&self, place: usize) -> Result<Option<f64>, MissingColumn> {
        let after_ns = self.steady_after_ns(place)?;
        self.goodput_bps(place, &Window { after_ns, ..Window::default() })
    }

    /// Time at the flow's start that `steady` leaves out.
    ///
    /// # Errors
    /// A column that is needed is missing.
    pub fn steady_after_ns(&self, place: usize) -> Result<i64, MissingColumn> {
        let rtts = self.rtts_ms(place, &Window::default())?;
        let shortest_ns = rtts.into_iter().min_by(f64::total_cmp).unwrap_or(0.0) * 1e6;
        Ok(STEADY_NS_MIN.max((STEADY_RTTS * shortest_ns).round_ties_even() as i64))
    }

    /// Each time of a second or more in which no byte was acknowledged: the stream stood still.
    pub(crate) fn stalls_s(&self, place: usize, window: &Window) -> Values {
        let times = self.ints(&column::samples::time_ns)?;
        let acked = self.ints(&column::samples::bytes_acked)?;
        let rows = self.rows(Of::Samples, place, window)?;
        let grown = rows.windows(2).filter(|pair| acked[pair[1]] > acked[pair[0]]);
        let seconds: Vec<f64> = grown.map(|pair| times[pair[1]] as f64 / 1e9).collect();
        let pauses = seconds.windows(2).map(|pair| pair[1] - pair[0]);
        Ok(pauses.filter(|pause| *pause >= STALL_S_MIN).collect())
    }

    /// Answered pings while some flow lives, or (idle) while none does.
    pub(crate) fn probe_ms(&self, label: &str, idle: bool) -> Values {
        let rtts = self.ints(&column::probes::rtt_ns)?;
        let times = self.ints(&column::probes::time_ns)?;
        let (names, index) = self.texts(&column::probes::probe)?;
        let busy = self.busy();
        let rows = rows_of(names, index, label).filter(|row| within(busy, times[*row]) != idle);
        let rtts = rows.map(|row| rtts[row]).filter(|rtt| *rtt != Data::NULL);
        Ok(rtts.map(|rtt| rtt as f64 / 1e6).collect())
    }

    /// Pings of the whole run without an answer; those whose answer may still be on its way at the end do not count.
    ///
    /// An answer is awaited as ping(8) does: for twice the longest round trip that was seen, or twice that of the
    /// empty path if that is longer.
    pub(crate) fn probes_lost(&self, label: &str) -> Result<u64, MissingColumn> {
        let lost = self.flags(&column::probes::lost)?;
        let rtts = self.ints(&column::probes::rtt_ns)?;
        let times = self.ints(&column::probes::time_ns)?;
        let (names, index) = self.texts(&column::probes::probe)?;
        let rows = || rows_of(names, index, label);
        let seen = rows().map(|row| rtts[row]).filter(|rtt| *rtt != Data::NULL).max();
        let wait_ns = seen.unwrap_or(0).max(self.idle_ping_ns(label)).saturating_mul(2);
        let until_ns = (self.scenario.duration_ns as i64).saturating_sub(wait_ns);
        Ok(rows().filter(|row| lost[*row] && times[*row] <= until_ns).count() as u64)
    }

    /// Round trip of a probe on the empty path; 0 where its packets have no path.
    fn idle_ping_ns(&self, label: &str) -> i64 {
        /// IP's and Ethernet's headers.
        const HEADERS: u32 = 34;
        let probe = self.scenario.probes.iter().find(|probe| probe.label == label);
        let facts = probe.and_then(|probe| {
            let pair = (probe.from.as_str(), probe.target.as_str());
            let facts = self.scenario.path_facts([pair], probe.size_bytes.saturating_add(HEADERS));
            facts.ok()?.pop()
        });
        facts.map_or(0, |facts| i64::try_from(facts.base_rtt_ns).unwrap_or(i64::MAX))
    }

    /// A queue's bytes at each interval while some flow lives.
    pub(crate) fn backlog_bytes(&self, link: &str) -> Values {
        let backlog = self.ints(&column::queues::backlog_bytes)?;
        let times = self.ints(&column::queues::time_ns)?;
        let (names, index) = self.texts(&column::queues::link)?;
        let busy = self.busy();
        let rows = rows_of(names, index, link).filter(|row| within(busy, times[*row]));
        let values = rows.map(|row| backlog[row]).filter(|value| *value != Data::NULL);
        Ok(values.map(|value| value as f64).collect())
    }

    /// A cumulative counter of a queue at the end of the run.
    pub(crate) fn queue_total(
        &self,
        link: &str,
        counter: &'static ColumnDef,
    ) -> Result<i64, MissingColumn> {
        let counts = self.ints(counter)?;
        let (names, index) = self.texts(&column::queues::link)?;
        Ok(rows_of(names, index, link).map(|row| counts[row]).max().unwrap_or(0))
    }

    /// The rows of `queues` of a link.
    pub(crate) fn queue_rows(&self, link: &str) -> Result<Vec<usize>, MissingColumn> {
        let (names, index) = self.texts(&column::queues::link)?;
        Ok(rows_of(names, index, link).collect())
    }

    /// Goodput of every flow.
    pub(crate) fn goodputs(&self) -> Vec<f64> {
        self.flows().iter().map(crate::Flow::goodput_bps).collect()
    }

    /// Period in which all flows of a set live, if they are compared in it: their times differ, and it is at least half of
    /// the shortest life.
    pub(crate) fn together(&self, set: &[usize]) -> Option<(i64, i64)> {
        let flows = || set.iter().map(|place| &self.flows()[*place]);
        let lives = || flows().map(|flow| flow.stop_ns - flow.start_ns);
        let from = flows().map(|flow| flow.start_ns).max()?;
        let until = flows().map(|flow| flow.stop_ns).min()?;
        let together = (until - from) as f64;
        let apart = together < (1.0 - APART_MIN) * lives().max()? as f64;
        (apart && together > 0.0 && together >= 0.5 * lives().min()? as f64)
            .then_some((from, until))
    }

    /// The goodput of flows that compete, in their order: while all of them live, or of each one's whole life where
    /// [`Self::together`] has no such time.
    pub(crate) fn rates(&self, set: &[usize]) -> Result<Vec<f64>, MissingColumn> {
        let together = self.together(set);
        let rate = |place: &usize| {
            let flow = &self.flows()[*place];
            let Some((from, until)) = together else { return Ok(flow.goodput_bps()) };
            let after_ns = from - flow.start_ns;
            let until_ns = Some(until - flow.start_ns);
            let found =
                self.goodput_bps(*place, &Window { after_ns, until_ns, ..Window::default() });
            Ok(found?.unwrap_or(0.0))
        };
        set.iter().map(rate).collect()
    }

    /// A flow's part of the new bytes of all flows that it competes with; none where nothing arrived.
    pub(crate) fn share(&self, place: usize) -> Result<Option<f64>, MissingColumn> {
        let Some(set) = self.competing().iter().find(|set| set.binary_search(&place).is_ok())
        else {
            return Ok(None);
        };
        let shares = self.shares(set)?;
        Ok(shares.map(|shares| shares[set.partition_point(|other| *other < place)]))
    }

    /// The shares of flows that compete, in their order; none where nothing arrived.
    pub(crate) fn shares(&self, set: &[usize]) -> Result<Option<Vec<f64>>, MissingColumn> {
        let parts: Vec<f64> = if self.together(set).is_some() {
            self.rates(set)?
        } else {
            set.iter().map(|place| self.flows()[*place].bytes_received as f64).collect()
        };
        let all = arithmetic::sum(&parts);
        Ok((all > 0.0).then(|| parts.iter().map(|part| part / all).collect()))
    }

    /// By what flows that compete are compared, in their order: their shares as rates, over the time that these are of.
    pub(crate) fn rival_rates(&self, set: &[usize]) -> Result<Vec<f64>, MissingColumn> {
        if self.together(set).is_some() {
            return self.rates(set);
        }
        let flows = || set.iter().map(|place| &self.flows()[*place]);
        let from = flows().map(|flow| flow.start_ns).min().unwrap_or(0);
        let until = flows().map(|flow| flow.stop_ns).max().unwrap_or(0);
        let seconds = (until - from).max(1) as f64 / 1e9;
        Ok(flows().map(|flow| flow.bytes_received as f64 * 8.0 / seconds).collect())
    }

    /// Jain's index of the goodput of flows that compete; of its ratio to the max-min fair rates where these differ.
    pub(crate) fn jain_of(&self, set: &[usize]) -> Result<Option<f64>, MissingColumn> {
        let mut rates = self.rates(set)?;
        if let Some(fair) = self.max_min_bps(set) {
            rates.iter_mut().zip(fair).for_each(|(rate, fair)| *rate /= fair);
        }
        Ok(arithmetic::jain(&rates))
    }

    /// Jain's index of all flows; none where they do not all compete.
    pub(crate) fn jain(&self) -> Result<Option<f64>, MissingColumn> {
        match self.competing() {
            [set] => self.jain_of(set),
            _ => Ok(None),
        }
    }

    /// New bytes of all flows over the run's duration.
    pub(crate) fn carried_bps(&self) -> f64 {
        let bytes: i64 = self.flows().iter().map(|flow| flow.bytes_received).sum();
        bytes as f64 * 8e9 / self.scenario.duration_ns as f64
    }
}

fn within(span: Option<(i64, i64)>, time_ns: i64) -> bool {
    span.is_some_and(|(start, stop)| (start..=stop).contains(&time_ns))
}

/// The rows where a text column has this value.
fn rows_of<'a>(
    names: &[String],
    index: &'a [i32],
    text: &str,
) -> impl Iterator<Item = usize> + use<'a> {
    let wanted = number_of(names, text);
    let rows = index.iter().enumerate().filter(move |(_, number)| Some(**number) == wanted);
    rows.map(|(row, _)| row)
}
