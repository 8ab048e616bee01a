//! Configuration of cake.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Mapping of DSCPs to tins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Diffserv {
    /// One tin.
    Besteffort,
    /// Eight, by the three bits of IP precedence.
    Precedence,
    /// Bulk, best effort and voice.
    #[default]
    Diffserv3,
    /// Bulk, best effort, video and voice.
    Diffserv4,
    /// Eight.
    Diffserv8,
}

/// Whom a queue of its own is for, and between whom the rate is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// One queue.
    Flowblind,
    /// A queue for each source address.
    Srchost,
    /// A queue for each destination address.
    Dsthost,
    /// A queue for each pair of addresses.
    Hosts,
    /// A queue for each flow.
    Flows,
    /// A queue for each flow; flows of a source share what is its own.
    DualSrchost,
    /// A queue for each flow; flows to a destination share what is its own.
    DualDsthost,
    /// A queue for each flow, whose share is that of the busier of its hosts.
    #[default]
    TripleIsolate,
}

impl Isolation {
    /// The busy flows of a source are counted (`cake_dsrc`).
    pub(super) const fn by_source(self) -> bool {
        matches!(self, Self::DualSrchost | Self::TripleIsolate)
    }

    /// The busy flows to a destination are counted (`cake_ddst`).
    pub(super) const fn by_destination(self) -> bool {
        matches!(self, Self::DualDsthost | Self::TripleIsolate)
    }
}

/// Acknowledgements in the queue that a newer one removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AckFilter {
    /// None.
    #[default]
    NoAckFilter,
    /// The oldest, where there are at least two.
    AckFilter,
    /// A single one in front of it too.
    AckFilterAggressive,
}

/// Framing of packets on the line after the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LinkLayer {
    /// As they are.
    #[default]
    Noatm,
    /// In cells of 53 bytes, 48 of them payload.
    Atm,
    /// With a byte more for every 64 (VDSL2).
    Ptm,
}

/// Number of bytes that the shaper charges for a packet (`cake_calc_overhead`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// Count the frame, not the IP packet in it.
    pub raw: bool,
    /// Bytes added.
    pub overhead: i32,
    /// Least bytes.
    pub mpu: u32,
    /// Framing of the line.
    pub link_layer: LinkLayer,
}

/// Ethernet's header, which a frame's length counts.
const HEADER: i64 = 14;

impl Charge {
    /// Bytes charged for a frame of `len`.
    pub(super) fn of(self, len: u32) -> u32 {
        let header = if self.raw { 0 } else { HEADER };
        let bytes = i64::from(len) - header + i64::from(self.overhead);
        let bytes = (bytes.max(0) as u32).max(self.mpu);
        match self.link_layer {
            LinkLayer::Noatm => bytes,
            LinkLayer::Atm => bytes.div_ceil(48) * 53,
            LinkLayer::Ptm => bytes + bytes.div_ceil(64),
        }
    }
}

/// A cake as `tc qdisc add ... cake` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes per second; zero: as fast as they are asked for.
    pub rate: u64,
    /// Tins.
    pub diffserv: Diffserv,
    /// Queues and shares.
    pub isolation: Isolation,
    /// COBALT's interval, microseconds.
    pub rtt_us: u64,
    /// Bytes of `truesize` that may wait; none: by rate and interval.
    pub memory: Option<u32>,
    /// The shaper's arithmetic.
    pub charge: Charge,
    /// Superfluous acknowledgements.
    pub ack_filter: AckFilter,
    /// Dropped packets have used the line already and are charged for.
    pub ingress: bool,
    /// Clear the DSCP.
    pub wash: bool,
}

impl Config {
    /// COBALT's target, microseconds: tc's twentieth of the interval.
    pub(super) const fn target_us(&self) -> u64 {
        let twentieth = self.rtt_us / 20;
        if twentieth == 0 { 1 } else { twentieth }
    }

    /// Bytes of `truesize` that may wait (`cake_reconfigure`): four intervals at the rate, at least 4 MiB, at most 10240 frames.
    #[must_use]
    pub fn memory_limit(&self) -> u32 {
        const LEAST: u32 = 4 << 20;
        const MOST: u32 = 10_240 * crate::disciplines::FRAME;
        match self.memory {
            Some(limit) if limit > 0 => limit,
            Some(_) | None if self.rate == 0 => MOST,
            Some(_) | None => {
                // The kernel multiplies in 64 bits and keeps 32 of the quotient.
                let bytes = self.rate.wrapping_mul(self.rtt_us) / 250_000;
                (bytes as u32).clamp(LEAST, MOST)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Charge, LinkLayer};

    /// Named framings of tc(8) and what they charge for a full frame and a pure acknowledgement.
    #[test]
    fn framings_charge_headers_minimum_and_cells() {
        use LinkLayer::{Atm, Noatm, Ptm};
        let charge = |raw, overhead, mpu, link_layer| {
            let charge = Charge { raw, overhead, mpu, link_layer };
            [1514, 66].map(|len| charge.of(len))
        };
        assert_eq!(charge(true, 0, 0, Noatm), [1514, 66]);
        assert_eq!(charge(false, 0, 0, Noatm), [1500, 52]);
        assert_eq!(charge(false, 18, 64, Noatm), [1518, 70], "docsis");
        assert_eq!(charge(false, 38, 84, Noatm), [1538, 90], "ethernet");
        assert_eq!(charge(false, 30, 0, Ptm), [1554, 84], "pppoe-ptm");
        assert_eq!(charge(false, 32, 0, Atm), [1696, 106], "pppoe-vcmux");
        assert_eq!(charge(false, 48, 0, Atm), [1749, 159], "conservative");
        assert_eq!(charge(false, -20, 0, Noatm), [1480, 32]);
    }
}
