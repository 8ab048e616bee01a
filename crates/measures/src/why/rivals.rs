//! Why flows that compete get different shares: the mechanism, chosen by what each takes for congestion and by what the recording shows
//! of both, with its words and figures.

use super::facts::{Facts, Flow};
use crate::hops::Hop;
use crate::numbers::{MATHIS, count, digits, ms, packets, percent, seconds, times};
use dragstrip_cc::Signal;
use std::collections::BTreeMap;

/// The least ratio of idle RTTs that counts as different paths.
const RTT_RATIO_MIN: f64 = 1.25;
/// Queueing that a delay-based algorithm sees.
const QUEUEING_MS_MIN: f64 = 2.0;
/// A window that falls by less than this from its peak has not been given up.
const FALL_MIN: f64 = 1.5;
/// A later start counts from this part of the run on.
const LATER_MIN: f64 = 0.1;
/// A window below this part of what the square-root law gives for its losses is kept small by something else.
const LAW_PART_MIN: f64 = 0.5;
/// Lost segments from which on their share is worth a number.
const RESENT_MIN: f64 = 0.001;

/// Mechanism by which one flow gets more than another.
#[derive(Clone, Debug, PartialEq)]
pub struct Mechanism {
    words: String,
    figures: BTreeMap<&'static str, f64>,
}

impl Mechanism {
    /// In words that follow a colon, and the figures in them.
    pub fn told(self) -> (String, BTreeMap<&'static str, f64>) {
        (self.words, self.figures)
    }
}

/// One flow that gets more, and one that gets less.
struct Pair<'a> {
    most: &'a Flow,
    least: &'a Flow,
    /// Their names.
    one: &'a str,
    other: &'a str,
    figures: BTreeMap<&'static str, f64>,
}

/// Member of a pair.
#[derive(Clone, Copy)]
enum Which {
    Most,
    Least,
}

/// Why `most` gets more than `least`; `names`: what they are called.
pub fn mechanism(facts: &Facts, most: &Flow, least: &Flow, names: (&str, &str)) -> Mechanism {
    let mut pair = Pair { most, least, one: names.0, other: names.1, figures: BTreeMap::new() };
    let later_s = least.start_s - most.start_s;
    let late = later_s.abs() >= LATER_MIN * facts.duration_s;
    let (near, far) = (most.base_rtt_ms, least.base_rtt_ms);
    let apart = near.max(far) >= RTT_RATIO_MIN * near.min(far);
    let by_cause = pair.lost_elsewhere(facts).or_else(|| pair.by_signal(facts));
    let mut words = match by_cause {
        Some(words) => words,
        None if pair.second_queue().is_some() => pair.by_second_queue(),
        None if apart && least.company.rtt_ms > most.company.rtt_ms => pair.by_round_trip(),
        None if late => pair.by_start(facts, later_s),
        None => pair.by_chance(),
    };
    if pair.differs() {
        let mut besides = Vec::new();
        if apart {
            pair.figures.extend([("most_rtt_ms", near), ("least_rtt_ms", far)]);
            besides.push(format!("idle RTTs are {} and {}", ms(near), ms(far)));
        }
        if late {
            besides.push(pair.started(later_s));
        }
        if !besides.is_empty() {
            words += &format!("; besides, {}", besides.join(", and "));
        }
    }
    Mechanism { words, figures: pair.figures }
}

impl Pair<'_> {
    /// They run different algorithms, or one with different options.
    fn differs(&self) -> bool {
        (&self.most.cc, &self.most.options) != (&self.least.cc, &self.least.options)
    }

    /// The one with less loses where the other does not pass.
    fn lost_elsewhere(&mut self, facts: &Facts) -> Option<String> {
        let name = self.least.loss_link.as_ref()?;
        let heeds_loss = !matches!(self.least.signal, Signal::Delay | Signal::Model);
        if !heeds_loss || self.least.reductions == 0.0 || self.most.crosses.contains(name) {
            return None;
        }
        let dropped = facts.links.iter().find(|link| link.name == *name)?.dropped;
        self.figures.insert("dropped", dropped);
        self.figures.insert("least_reductions", self.least.reductions);
        let (more, less) = self.windows(Which::Least);
        let (one, other) = (self.one, self.other);
        Some(format!(
            "{other} loses at {name} ({} drops), which {one} does not cross: its window is cut {}, to a median of {less}, beside \
             {one}'s {more}",
            count(dropped),
            times(self.least.reductions)
        ))
    }

    fn by_signal(&mut self, facts: &Facts) -> Option<String> {
        if !self.differs() {
            return None;
        }
        let marked = facts.link_of(self.most).map_or(0.0, |link| link.marked);
        if marked > 0.0 && self.most.ecn != self.least.ecn {
            return Some(self.marks_and_drops(facts, marked));
        }
        Some(match (self.least.signal, self.most.signal) {
            (Signal::Delay, Signal::Delay) => self.gives_way_sooner(),
            (Signal::Delay, _) if self.queueing_ms() >= QUEUEING_MS_MIN => self.yields_to_delay(),
            (Signal::Loss, Signal::Model) => self.keeps_its_rate(),
            (Signal::Model, Signal::Loss | Signal::Marks | Signal::Nothing)
                if self.queueing_ms() >= QUEUEING_MS_MIN =>
            {
                self.caps_in_flight()
            }
            (Signal::Nothing, _) if self.yields_without_loss() => self.gives_way(),
            (Signal::Loss, Signal::Nothing) if self.most.reductions == 0.0 => {
                self.keeps_its_window()
            }
            (Signal::Loss, Signal::Marks) if marked > 0.0 => self.reduces_by_share(marked),
            (Signal::Loss, Signal::Loss) => self.regains_faster(),
            _ => self.reductions_and_windows(""),
        })
    }

    fn queueing_ms(&self) -> f64 {
        self.least.company.rtt_ms - self.least.base_rtt_ms
    }

    /// The median windows of both: a sentence names the unit once, of the one that it has first.
    fn windows(&mut self, first: Which) -> (String, String) {
        let (most, least) = (self.most.company.packets, self.least.company.packets);
        self.figures.extend([("most_packets", most), ("least_packets", least)]);
        match first {
            Which::Most => (packets(most), digits(least)),
            Which::Least => (digits(most), packets(least)),
        }
    }

    fn reductions(&mut self) -> (String, String) {
        let (most, least) = (self.most.reductions, self.least.reductions);
        self.figures.extend([("most_reductions", most), ("least_reductions", least)]);
        (times(most), times(least))
    }

    /// Words on the queueing delay in the median RTT of the flow with less.
    fn queueing(&mut self) -> String {
        let (queueing, rtt) = (self.queueing_ms(), self.least.company.rtt_ms);
        self.figures.extend([("queueing_ms", queueing), ("rtt_ms", rtt)]);
        format!("{} of its {} (median RTT) is queueing delay", ms(queueing), ms(rtt))
    }

    fn yields_to_delay(&mut self) -> String {
        let queueing = self.queueing();
        let (more, less) = self.windows(Which::Least);
        let (one, other) = (self.one, self.other);
        let (peak, at_s) = self.least.peak;
        let falls = if peak >= FALL_MIN * self.least.company.packets {
            self.figures.extend([("peak_packets", peak), ("peak_s", at_s)]);
            format!("falls from {} at {} to {less}", digits(peak), seconds(at_s))
        } else {
            format!("stays at {less}")
        };
        format!(
            "{other} backs off from the queue that {one} builds: {queueing}, and its window {falls} (median), beside {one}'s {more}"
        )
    }

    /// An algorithm of which nothing is said has, beside a queue, a smaller window than its losses explain by the square-root law.
    fn yields_without_loss(&self) -> bool {
        let lost = self.least.retransmits / self.least.segments_sent.max(1.0);
        let window = self.least.company.packets;
        let falls = self.least.peak.0 >= FALL_MIN * window;
        let explained = window * lost.sqrt() >= LAW_PART_MIN * MATHIS;
        falls && !explained && self.queueing_ms() >= QUEUEING_MS_MIN
    }

    fn gives_way(&mut self) -> String {
        let queueing = self.queueing();
        let (more, less) = self.windows(Which::Least);
        let (peak, at_s) = self.least.peak;
        let resent = self.least.retransmits;
        self.figures.extend([("peak_packets", peak), ("peak_s", at_s), ("resent", resent)]);
        let (one, other) = (self.one, self.other);
        format!(
            "{other} gives way to the queue that {one} builds, more than its losses explain ({} segments retransmitted): {queueing}, and its window \
             falls from {} at {} to {less} (median), beside {one}'s {more}",
            count(resent),
            digits(peak),
            seconds(at_s)
        )
    }

    fn keeps_its_window(&mut self) -> String {
        let (_, cuts) = self.reductions();
        let (more, less) = self.windows(Which::Most);
        let (one, other) = (self.one, self.other);
        format!(
            "{one} keeps its window of {more} (median) whatever is lost; {other} cuts its window {cuts}, to a median of {less}"
        )
    }

    fn gives_way_sooner(&mut self) -> String {
        let queueing = self.queueing();
        let (more, less) = self.windows(Which::Least);
        let (one, other) = (self.one, self.other);
        format!(
            "both back off from delay, {other} from less of it: {queueing}, and its window is {less} (median), {one}'s {more}"
        )
    }

    fn keeps_its_rate(&mut self) -> String {
        let (_, cuts) = self.reductions();
        let (more, less) = self.windows(Which::Most);
        let (one, other) = (self.one, self.other);
        let share = self.most.retransmits / self.most.segments_sent.max(1.0);
        let lost = if share >= RESENT_MIN {
            self.figures.insert("resent_share", share);
            format!("{one} does not slow down for losses: it resends {}", percent(share))
        } else {
            format!("{one} keeps to the rate that it measures, whatever is lost")
        };
        format!(
            "{lost}, with a window of {more} (median); {other} cuts its window {cuts}, to a median of {less}"
        )
    }

    fn caps_in_flight(&mut self) -> String {
        let queueing = self.queueing();
        let (more, less) = self.windows(Which::Least);
        let (one, other) = (self.one, self.other);
        format!(
            "{one} fills the buffer, and {other} keeps no more in flight than a multiple of the rate and the RTT that it \
             measures: {queueing}, and its window is {less} (median), {one}'s {more}"
        )
    }

    fn reduces_by_share(&mut self, marked: f64) -> String {
        self.figures.insert("marked", marked);
        let (more, less) = self.windows(Which::Most);
        let (one, other) = (self.one, self.other);
        format!(
            "{one} reduces its window by the share of its packets that is marked, {other} by a fixed part for any mark: {} \
             marks leave them {more} and {less} (medians)",
            count(marked)
        )
    }

    fn marks_and_drops(&mut self, facts: &Facts, marked: f64) -> String {
        let link = facts.link_of(self.most);
        let dropped = link.map_or(0.0, |link| link.dropped);
        let (hears, deaf, who) = if self.most.ecn {
            (self.one, self.other, self.least)
        } else {
            (self.other, self.one, self.most)
        };
        let resent = who.retransmits;
        self.figures.extend([("marked", marked), ("dropped", dropped), ("resent", resent)]);
        let (more, less) = self.windows(Which::Most);
        format!(
            "the queue marks packets of {hears} ({} marks) and drops those of {deaf} ({} drops), which resends {} segments: \
             windows of {more} and {less} (medians)",
            count(marked),
            count(dropped),
            count(resent)
        )
    }

    fn regains_faster(&mut self) -> String {
        let one = self.one;
        self.reductions_and_windows(&format!(
            "both give way to loss, and {one} regains its window faster: "
        ))
    }

    fn reductions_and_windows(&mut self, because: &str) -> String {
        let (cuts, cuts_of_other) = self.reductions();
        let (more, less) = self.windows(Which::Most);
        let (one, other) = (self.one, self.other);
        format!(
            "{because}{one}'s window is cut {cuts} and has {more} (median), {other}'s {cuts_of_other} and {less}"
        )
    }

    /// Hop at which the flow with less waits longest on links that the other does not cross, if it waits for
    /// [`QUEUEING_MS_MIN`].
    fn second_queue(&self) -> Option<&Hop> {
        let apart = |hop: &&Hop| !self.most.crosses.contains(&hop.link);
        let longest = self.least.hops.iter().filter(apart);
        let longest = longest.max_by(|a, b| a.wait_ms.total_cmp(&b.wait_ms))?;
        (longest.wait_ms >= QUEUEING_MS_MIN).then_some(longest)
    }

    fn by_second_queue(&mut self) -> String {
        let Some((link, wait_ms)) = self.second_queue().map(|hop| (hop.link.clone(), hop.wait_ms))
        else {
            return self.by_chance();
        };
        self.figures.insert("wait_ms", wait_ms);
        let (cuts, cuts_of_other) = self.reductions();
        let (more, less) = self.windows(Which::Least);
        let (one, other) = (self.one, self.other);
        format!(
            "{other} also waits {} (mean) at {link}, which {one} does not cross; its window is cut {cuts_of_other}, to a median of \
             {less}, {one}'s {cuts}, to {more}",
            ms(wait_ms)
        )
    }

    fn by_round_trip(&mut self) -> String {
        let (near, far) = (self.most.company.rtt_ms, self.least.company.rtt_ms);
        self.figures.extend([("most_rtt_ms", near), ("least_rtt_ms", far)]);
        let (more, less) = self.windows(Which::Most);
        let (one, other) = (self.one, self.other);
        format!(
            "a window is sent once per round trip, and {one}'s takes {}, {other}'s {} (median RTTs): windows of {more} and \
             {less}",
            ms(near),
            ms(far)
        )
    }

    fn started(&mut self, later_s: f64) -> String {
        self.figures.insert("later_s", later_s);
        let order = if later_s > 0.0 { "later" } else { "earlier" };
        format!("{} started {} {order}", self.other, seconds(later_s.abs()))
    }

    fn by_start(&mut self, facts: &Facts, later_s: f64) -> String {
        let started = self.started(later_s);
        let (more, less) = self.windows(Which::Most);
        let rate = facts.link_of(self.least).and_then(|link| link.rate_bps);
        let found = rate.zip(self.least.queue_at_start_bytes).filter(|_| later_s > 0.0);
        let into = found.map_or_else(String::new, |(rate, bytes)| {
            let delay = bytes * 8e3 / rate;
            self.figures.insert("queue_at_start_ms", delay);
            format!(", into a queue of {}", ms(delay))
        });
        format!("{started}{into}: windows of {more} and {less} (medians)")
    }

    fn by_chance(&mut self) -> String {
        let words = self.reductions_and_windows("");
        format!("nothing but the packets that were dropped distinguishes them: {words}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::Company;
    use super::*;

    /// A flow whose median window and largest window are so many packets.
    fn flow(signal: Signal, packets: f64, peak: f64) -> Flow {
        Flow {
            label: String::new(),
            cc: String::new(),
            is_tcp: true,
            start_s: 0.0,
            life_s: 20.0,
            goodput_bps: 0.0,
            rival_bps: 0.0,
            together_s: None,
            received: 0,
            segments_sent: 0.0,
            retransmits: 0.0,
            timeouts: None,
            segment_bytes: 1448.0,
            limited_s: BTreeMap::new(),
            slow_start_s: 0.0,
            loss_s: 0.0,
            rtt_p50_ms: None,
            overshoot: None,
            base_rtt_ms: 40.0,
            rate_bps: None,
            bdp_bytes: None,
            link: None,
            loss_link: None,
            crosses: Vec::new(),
            hops: Vec::new(),
            fair_bps: None,
            signal,
            options: BTreeMap::new(),
            ecn: false,
            reductions: 0.0,
            peak: (peak, 2.0),
            company: Company { packets, rtt_ms: 60.0 },
            queue_at_start_bytes: None,
            buffers: None,
        }
    }

    fn sentence(peak: f64) -> (String, BTreeMap<&'static str, f64>) {
        let (most, least) = (flow(Signal::Loss, 100.0, 100.0), flow(Signal::Delay, 10.0, peak));
        let mut pair = Pair {
            most: &most,
            least: &least,
            one: "cubic",
            other: "vegas",
            figures: BTreeMap::new(),
        };
        let words = pair.yields_to_delay();
        (words, pair.figures)
    }

    #[test]
    fn a_window_falls_if_its_peak_was_half_as_large_again() {
        let (words, figures) = sentence(15.0);
        assert!(
            words.contains("its window falls from 15 at 2 s to 10 packets (median)"),
            "{words}"
        );
        assert_eq!((figures["peak_packets"], figures["peak_s"]), (15.0, 2.0));
        let (words, figures) = sentence(14.9);
        assert!(
            words.contains("its window stays at 10 packets (median), beside cubic's 100"),
            "{words}"
        );
        assert!(!figures.contains_key("peak_packets"));
    }
}
