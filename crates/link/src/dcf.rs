//! The distributed coordination function of IEEE 802.11: stations that contend frame by frame, or aggregate by aggregate.
//!
//! One exchange is `[CTS-to-self, SIFS] data, SIFS, ACK`. What differs between 802.11g and 802.11n is in
//! [`Timing`], which `wifi_g.rs` and `wifi_n.rs` fill in. A frame without an ACK is retransmitted with a larger contention window, and given
//! up after the retry limit. Of an aggregate only the subframes that failed are retransmitted; the receiver holds back
//! what arrived after them (IEEE 802.11n-2009 clause 9.10.7), so that TCP sees delay and never reordering.
//!
//! After a collision everyone waits EIFS, the colliding stations their ACK timeout, which lasts about as long. Left out: rate
//! adaptation, power save, beacons, RTS/CTS.

use crate::contention::{Contention, Rules, Window};
use crate::shared::{Air, SharedMedium};
use dragstrip_units::{Duration, Instant, Stream};

const fn window(slots: u32) -> Window {
    Window { slots, deferrals: None }
}

/// aCWmin 15 (ERP-OFDM), aCWmax 1023: a number of slots from 0 to CW.
pub(crate) const WINDOWS: &[Window] =
    &[window(16), window(32), window(64), window(128), window(256), window(512), window(1024)];

/// dot11ShortRetryLimit: a frame below the RTS threshold is sent at most this many times.
const ATTEMPTS: u8 = 7;

/// IEEE 802.11-2007 clause 9.2, in numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub slot: Duration,
    /// DIFS or AIFS.
    pub inter_frame: Duration,
    /// Preamble, PLCP header and signal extension.
    pub preamble: Duration,
    pub symbol_ns: u64,
    /// Data bits in a symbol.
    pub bits_per_symbol: u64,
    /// SERVICE field and tail.
    pub service_bits: u64,
    /// MAC header, LLC/SNAP and FCS, over the IP packet.
    pub mac_bytes: u64,
    /// Subframes of an aggregate have a delimiter and are padded to four bytes.
    pub delimiter_bytes: u64,
    /// CTS-to-self and the SIFS behind it; zero without protection.
    pub protection: Duration,
    /// SIFS and the (block) ACK.
    pub response: Duration,
    /// From the end of a lost frame to the channel's being free again: EIFS less the inter-frame space, which is
    /// SIFS and an ACK at the lowest rate.
    pub recovery: Duration,
    /// An aggregate's frames, bytes and air time.
    pub frames_max: usize,
    pub bytes_max: u64,
    pub air_time_max: Duration,
}

/// Ethernet's header, which `Item::len` counts and which 802.11 replaces.
const ETHERNET_BYTES: u64 = 14;

impl Timing {
    /// The bytes of a frame, or subframe, on the air.
    pub fn frame_bytes(&self, len: u32) -> u64 {
        let bytes = u64::from(len) - ETHERNET_BYTES + self.mac_bytes;
        if self.delimiter_bytes == 0 {
            bytes
        } else {
            (bytes + self.delimiter_bytes).next_multiple_of(4)
        }
    }

    /// Air time of a transmission of so many bytes, without protection and ACK.
    pub fn air_time(&self, bytes: u64) -> Duration {
        let symbols = (self.service_bits + 8 * bytes).div_ceil(self.bits_per_symbol);
        self.preamble + Duration::from_nanos(symbols * self.symbol_ns)
    }
}

/// A cell.
#[derive(Clone, Debug)]
pub struct Dcf {
    timing: Timing,
    contention: Contention,
    transmitting: Vec<usize>,
    /// Probability, of 2^32, that a frame or subframe arrives damaged.
    error: u64,
    noise: Stream,
}

impl Dcf {
    pub(crate) fn new(
        timing: Timing,
        stations: usize,
        frame_error: f64,
        seed: u64,
        name: &str,
    ) -> Self {
        let rules = Rules {
            inter_frame: timing.inter_frame,
            slot: timing.slot,
            windows: WINDOWS,
            after_every_transmission: true,
        };
        let stream = Stream::named(seed, &format!("medium/{name}/backoff"));
        Self {
            timing,
            contention: Contention::new(rules, stations, stream),
            transmitting: Vec::new(),
            error: (frame_error * 4_294_967_296.0) as u64,
            noise: Stream::named(seed, &format!("medium/{name}/noise")),
        }
    }

    /// Returns the number of frames of `ring`, from the first, in the next transmission, and their bytes on the air.
    fn aggregate<A: Air>(&self, air: &mut A, station: usize) -> (usize, u64) {
        let timing = &self.timing;
        let mut count = 0;
        let mut bytes = 0;
        let waiting = air.ring(station).frames.iter().enumerate();
        for (position, frame) in waiting.take(timing.frames_max) {
            let more = if frame.received { 0 } else { timing.frame_bytes(frame.item.len) };
            let fits = bytes + more <= timing.bytes_max
                && timing.air_time(bytes + more) <= timing.air_time_max;
            if count > 0 && !fits {
                break;
            }
            count = position + 1;
            bytes += more;
        }
        (count, bytes)
    }

    fn damaged(&mut self) -> bool {
        self.error > 0 && u64::from(self.noise.next_u32()) < self.error
    }

    /// `station` has the channel for itself.
    fn exchange<A: Air>(&mut self, station: usize, now: Instant, air: &mut A) {
        let (count, bytes) = self.aggregate(air, station);
        let end = now + self.timing.protection + self.timing.air_time(bytes);
        let mut arrived = 0;
        for position in 0..count {
            let damaged = !air.ring(station).frames[position].received && self.damaged();
            let frame = &mut air.ring(station).frames[position];
            frame.received |= !damaged;
            if damaged {
                frame.retries += 1;
            } else {
                arrived += 1;
            }
        }
        self.release(station, end, air);
        if arrived > 0 {
            self.contention.finished(station);
            self.contention.busy_until(end + self.timing.response);
        } else {
            self.retry(station, air);
            self.contention.busy_until(end + self.timing.recovery);
        }
    }

    /// Hands up what has arrived in order; gives up what has been tried too often.
    fn release<A: Air>(&mut self, station: usize, at: Instant, air: &mut A) {
        while let Some(head) = air.ring(station).frames.front().copied() {
            if !head.received && head.retries < ATTEMPTS {
                return;
            }
            let Some(item) = air.ring(station).pop() else { return };
            if head.received {
                air.delivered(station, item, at);
            } else {
                air.on_lost(station, item);
            }
        }
    }

    /// Nothing has been acknowledged: once more with a larger window, or with a fresh one for the next frame.
    fn retry<A: Air>(&mut self, station: usize, air: &mut A) {
        let given_up = air.ring(station).frames.front().is_none_or(|frame| frame.retries == 0);
        if given_up {
            self.contention.finished(station);
        } else {
            self.contention.failed(station);
        }
    }

    /// Several transmit at once: nobody understands anything.
    fn collision<A: Air>(&mut self, stations: &[usize], now: Instant, air: &mut A) {
        let mut longest = Duration::ZERO;
        for &station in stations {
            let (count, bytes) = self.aggregate(air, station);
            // Nobody answers a CTS-to-self, so its sender does not learn that it has collided: the data follow.
            longest = longest.max(self.timing.protection + self.timing.air_time(bytes));
            for frame in air.ring(station).frames.iter_mut().take(count) {
                frame.retries += u8::from(!frame.received);
            }
            self.release(station, now + longest, air);
            self.retry(station, air);
        }
        self.contention.busy_until(now + longest + self.timing.recovery);
    }
}

impl SharedMedium for Dcf {
    fn offered(&mut self, station: usize, now: Instant) {
        self.contention.offered(station, now);
    }

    fn due(&self) -> Instant {
        self.contention.due()
    }

    fn transmit<A: Air>(&mut self, now: Instant, air: &mut A) {
        let mut stations = std::mem::take(&mut self.transmitting);
        self.contention.begin(now, &mut stations);
        match stations[..] {
            [] => {}
            [station] => self.exchange(station, now, air),
            _ => self.collision(&stations, now, air),
        }
        self.transmitting = stations;
    }
}
