//! Carrier sense with collision avoidance: who transmits next, and when.
//!
//! Common parts of 802.11's DCF (IEEE 802.11-2007 clause 9.2) and HomePlug AV's CSMA/CA (IEEE 1901-2010): after the
//! channel has become free every station waits an inter-frame space, then counts down a random number of slots; a
//! station that reaches zero transmits; the others keep the rest of their count. Two that reach zero in the same slot
//! collide.
//!
//! ```text
//! ──busy──┤ inter-frame space ├─┬─┬─┬─┬── transmission ──
//!         epoch                 slots
//! ```
//!
//! Left out: propagation inside the cell (below 1 µs), hidden stations, capture. A station that transmits into an idle
//! channel outside the slots is heard by the others at once.

use dragstrip_units::{Duration, Instant, Stream};

/// A stage of the backoff.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// The number of slots is drawn from 0 up to, but not including, this.
    pub slots: u32,
    /// HomePlug's deferral counter: so many times may the channel be found busy before the next stage.
    pub deferrals: Option<u32>,
}

/// Contention parameters of a medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// From the channel's becoming free to the first slot.
    pub inter_frame: Duration,
    pub slot: Duration,
    /// By stage; the last one stays.
    pub windows: &'static [Window],
    /// 802.11: a backoff follows every transmission, so that a frame that arrives after it, on an idle
    /// channel, is sent at once. Without: every frame waits for its slots.
    pub after_every_transmission: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Contender {
    stage: usize,
    /// Slots still to count; none: no backoff in progress.
    slots: Option<u32>,
    deferrals: u32,
    /// Since when it has had something to send.
    since: Option<Instant>,
}

/// The contenders for one channel.
#[derive(Clone, Debug)]
pub(crate) struct Contention {
    rules: Rules,
    contenders: Vec<Contender>,
    /// The channel is free from here on ...
    free: Instant,
    /// ... and the inter-frame space begins here.
    epoch: Instant,
    stream: Stream,
}

impl Contention {
    pub fn new(rules: Rules, stations: usize, stream: Stream) -> Self {
        Self {
            rules,
            contenders: vec![Contender::default(); stations],
            free: Instant::ZERO,
            epoch: Instant::ZERO,
            stream,
        }
    }

    fn draw(&mut self, station: usize) {
        let contender = &mut self.contenders[station];
        let windows = self.rules.windows;
        let window = windows[contender.stage.min(windows.len() - 1)];
        contender.slots = Some(self.stream.below(window.slots));
        contender.deferrals = window.deferrals.unwrap_or(0);
    }

    fn first_slot(&self) -> Instant {
        self.epoch + self.rules.inter_frame
    }

    /// Whole slots that have passed before `now`.
    fn elapsed(&self, now: Instant) -> u32 {
        let past = now.as_nanos().saturating_sub(self.first_slot().as_nanos());
        (past / self.rules.slot.as_nanos()) as u32
    }

    /// `station` has something to send.
    pub fn offered(&mut self, station: usize, now: Instant) {
        if self.contenders[station].since.is_some() {
            return;
        }
        if self.rules.after_every_transmission {
            // "Medium idle for longer than a DIFS": at once; otherwise with a backoff (802.11-2007 9.2.5.1).
            if self.contenders[station].slots.is_none() && now < self.first_slot() {
                self.draw(station);
            }
        } else {
            if self.contenders.iter().all(|contender| contender.since.is_none()) {
                self.epoch = self.free.max(now);
            }
            if self.contenders[station].slots.is_none() {
                self.draw(station);
                self.join_late(station, now);
            }
        }
        self.contenders[station].since = Some(now);
    }

    /// Whoever joins a contention in progress counts from the next slot on.
    fn join_late(&mut self, station: usize, now: Instant) {
        let past = now.as_nanos().saturating_sub(self.first_slot().as_nanos());
        let missed = past.div_ceil(self.rules.slot.as_nanos()) as u32;
        if let Some(slots) = &mut self.contenders[station].slots {
            *slots += missed;
        }
    }

    fn ready(&self, contender: &Contender) -> Instant {
        let Some(since) = contender.since else { return Instant::NEVER };
        let slots = u64::from(contender.slots.unwrap_or(0));
        let countdown_end =
            self.first_slot() + Duration::from_nanos(slots * self.rules.slot.as_nanos());
        countdown_end.max(since)
    }

    /// Time at which the next transmission begins.
    pub fn due(&self) -> Instant {
        self.contenders
            .iter()
            .map(|contender| self.ready(contender))
            .min()
            .unwrap_or(Instant::NEVER)
    }

    /// The stations that begin to transmit at `now`; the others have counted down that far and find the channel busy.
    pub fn begin(&mut self, now: Instant, transmitting: &mut Vec<usize>) {
        let elapsed = self.elapsed(now);
        transmitting.clear();
        for station in 0..self.contenders.len() {
            if self.ready(&self.contenders[station]) <= now {
                transmitting.push(station);
                self.contenders[station].since = None;
                self.contenders[station].slots = None;
            } else {
                self.found_busy(station, elapsed);
            }
        }
    }

    fn found_busy(&mut self, station: usize, elapsed: u32) {
        let windows = self.rules.windows;
        let contender = &mut self.contenders[station];
        let Some(slots) = contender.slots else { return };
        let waiting = contender.since.is_some();
        contender.slots = (waiting || slots > elapsed).then(|| slots.saturating_sub(elapsed));
        if windows[contender.stage.min(windows.len() - 1)].deferrals.is_none() {
            return;
        }
        // 1901: a busy slot counts in both counters; with no deferral left the next stage begins.
        if contender.deferrals == 0 {
            contender.stage += 1;
            self.draw(station);
        } else {
            contender.deferrals -= 1;
            contender.slots = contender.slots.map(|slots| slots.saturating_sub(1));
        }
    }

    /// The channel is busy until `free`.
    pub fn busy_until(&mut self, free: Instant) {
        self.free = free;
        self.epoch = free;
    }

    /// `station` has got its frame through, or has given it up.
    pub fn finished(&mut self, station: usize) {
        self.contenders[station].stage = 0;
        if self.rules.after_every_transmission {
            self.draw(station);
        }
    }

    /// `station` has to try again.
    pub fn failed(&mut self, station: usize) {
        self.contenders[station].stage += 1;
        self.draw(station);
    }
}
