//! Curves and strips of a run's tables, as wide as a picture.

use dragstrip_recording::{Data, Samples, Text, Writer};
use std::borrow::Cow;
use std::collections::VecDeque;

/// Nanoseconds of a stretch of a run, both ends included.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub from_ns: i64,
    pub to_ns: i64,
}

/// A curve: a series and its subject.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub series: &'a str,
    /// A flow's, link's or probe's number.
    pub subject: u32,
    /// The window of a rate, ns; at least an interval of the recording.
    pub window_ns: i64,
    /// The start of the subject, ns.
    pub start_ns: i64,
}

/// Four values of each pixel: first, least, greatest, last; NaN where there is no value.
struct Pixels {
    span: Span,
    values: Vec<f64>,
}

impl Pixels {
    fn new(span: Span, count: usize) -> Self {
        Self { span, values: vec![f64::NAN; 4 * count] }
    }

    fn add(&mut self, at_ns: i64, value: f64) {
        let Span { from_ns, to_ns } = self.span;
        if at_ns < from_ns || at_ns > to_ns {
            return;
        }
        let count = self.values.len() / 4;
        let share = (at_ns - from_ns) as f64 / (to_ns - from_ns).max(1) as f64;
        let place = 4 * ((share * count as f64) as usize).min(count - 1);
        let [first, least, greatest, last] = &mut self.values[place..place + 4] else { return };
        if first.is_nan() {
            (*first, *least, *greatest) = (value, value, value);
        }
        *least = least.min(value);
        *greatest = greatest.max(value);
        *last = value;
    }
}

/// The rows of a span in a table that is in the order of time.
pub fn rows(times: &[i64], span: Span) -> std::ops::Range<usize> {
    let first = times.partition_point(|at| *at < span.from_ns);
    first..times.partition_point(|at| *at <= span.to_ns).max(first)
}

/// The series in so many pixels; none if there is no such series.
pub fn pixels(tables: &Writer, request: Request<'_>, span: Span, count: usize) -> Option<Vec<f64>> {
    let mut pixels = Pixels::new(span, count);
    if count == 0 {
        return Some(pixels.values);
    }
    let Writer { samples, received, rtts, probes, queues, .. } = tables;
    let subject = request.subject;
    let is_flow = |number: i64| number == i64::from(subject);
    let mut plain = |times: &[i64], is_subject: &dyn Fn(usize) -> bool, values: &[i64]| {
        for row in rows(times, span).filter(|row| is_subject(*row)) {
            if values[row] != Data::NULL {
                pixels.add(times[row], values[row] as f64);
            }
        }
    };
    if let Some(values) = sampled(samples, request.series) {
        let flows = samples.flow.values();
        plain(&samples.time_ns.values(), &|row| is_flow(flows[row]), &values);
        return Some(pixels.values);
    }
    let links = queues.link.index();
    let of_link = |row: usize| links[row] as u32 == subject;
    let flows = received.flow.values();
    let of_flow = |row: usize| is_flow(flows[row]);
    let (arrivals, ticks) = (received.time_ns.values(), queues.time_ns.values());
    match request.series {
        "backlog_bytes" => plain(ticks, &of_link, queues.backlog_bytes.values()),
        "backlog_packets" => plain(ticks, &of_link, queues.backlog_packets.values()),
        "rtts" => {
            let flows = rtts.flow.values();
            plain(&rtts.time_ns.values(), &|row| is_flow(flows[row]), &rtts.rtt_ns.values());
        }
        "probe" => {
            let labels = probes.probe.index();
            let is_subject = |row: usize| labels[row] as u32 == subject;
            plain(probes.time_ns.values(), &is_subject, probes.rtt_ns.values());
        }
        "goodput" => rates(arrivals, &of_flow, received.new_bytes.values(), request, &mut pixels),
        "throughput" => {
            rates(arrivals, &of_flow, received.wire_bytes.values(), request, &mut pixels);
        }
        "sent" => {
            let sent = steps(links, subject, queues.sent_bytes.values());
            rates(ticks, &of_link, &sent, request, &mut pixels);
        }
        "dropped" | "marked" => {
            let marked = request.series == "marked";
            let counter = if marked { &queues.marked } else { &queues.dropped };
            let more = steps(links, subject, counter.values());
            plain(ticks, &of_link, &more);
        }
        _ => return None,
    }
    Some(pixels.values)
}

/// The column of `samples` behind a series.
fn sampled<'a>(samples: &'a Samples, series: &str) -> Option<Cow<'a, [i64]>> {
    Some(match series {
        "cwnd" => samples.cwnd_bytes.values(),
        "ssthresh" => samples.ssthresh_bytes.values(),
        "in_flight" => samples.bytes_in_flight.values(),
        "srtt" => samples.srtt_ns.values(),
        "rtt" => samples.rtt_ns.values(),
        "min_rtt" => samples.min_rtt_ns.values(),
        "pacing" => samples.pacing_bps.values(),
        "delivery" => samples.delivery_bps.values(),
        "acked" => samples.bytes_acked.values(),
        "written" => samples.bytes_written.values(),
        "retransmits" => samples.retransmits.values(),
        _ => return None,
    })
}

/// By how much a link's counter grew in each of its rows.
fn steps(links: &[i32], link: u32, counter: &[i64]) -> Vec<i64> {
    let mut before = 0;
    let step = |(at, now): (&i32, &i64)| {
        if *at as u32 != link {
            return 0;
        }
        now - std::mem::replace(&mut before, *now)
    };
    links.iter().zip(counter).map(step).collect()
}

/// Bytes of intervals as bit/s over the window that ends with each.
fn rates(
    times: &[i64],
    is_subject: &dyn Fn(usize) -> bool,
    bytes: &[i64],
    request: Request<'_>,
    pixels: &mut Pixels,
) {
    let Span { from_ns, to_ns } = pixels.span;
    // An interval more than the window: where it begins must be known.
    let lead = request.window_ns.saturating_mul(2).saturating_add(2_000_000_000);
    let early = Span { from_ns: from_ns.saturating_sub(lead), to_ns };
    let mut sum = 0;
    // Where the window begins: an instant, and the bytes until then.
    let mut before: VecDeque<(i64, i64)> = VecDeque::new();
    if early.from_ns <= request.start_ns {
        before.push_back((request.start_ns, 0));
    }
    for row in rows(times, early).filter(|row| is_subject(*row)) {
        let at = times[row];
        sum += bytes[row];
        while before.get(1).is_some_and(|(then, _)| at - then >= request.window_ns) {
            before.pop_front();
        }
        if let Some((then, less)) = before.front()
            && at > *then
        {
            pixels.add(at, (sum - less) as f64 * 8e9 / (at - then) as f64);
        }
        before.push_back((at, sum));
    }
}

/// The column of `samples` behind a strip.
pub fn texts<'a>(samples: &'a Samples, series: &str) -> Option<&'a Text> {
    match series {
        "limit" => Some(&samples.limit),
        "state" => Some(&samples.state),
        _ => None,
    }
}

/// The states of a flow as triples of start, end and word. A sample stands for the time since the one before.
pub fn strip(samples: &Samples, series: &str, flow: u32, span: Span) -> Option<Vec<f64>> {
    let words = texts(samples, series)?.index();
    let (times, flows) = (samples.time_ns.values(), samples.flow.values());
    let mut pieces: Vec<f64> = Vec::new();
    let mut from = span.from_ns as f64;
    for row in rows(&times, span).filter(|row| flows[*row] == i64::from(flow)) {
        let (at, word) = (times[row] as f64, f64::from(words[row]));
        let length = pieces.len();
        match pieces.last() {
            Some(last) if *last == word => pieces[length - 2] = at,
            Some(_) | None => pieces.extend([from, at, word]),
        }
        from = at;
    }
    Some(pieces)
}
