//! The first packet of a flow in few bytes: most flows of a scan have no second one.

use dragstrip_capture::read::Packet;

const HAS_ID: u8 = 1;
const HAS_STAMPS: u8 = 2;
const HAS_MSS: u8 = 4;
const HAS_SCALE: u8 = 8;
const SACK: u8 = 16;
const TURNED: u8 = 32;
const CUT: u8 = 64;

/// No option: a subtype has four bits, a cookie at most 38 bytes.
const NONE: u8 = 255;

/// A packet without its addresses, ports, layers and SACK blocks.
#[derive(Clone, Copy, Debug)]
pub struct Lone {
    time_ns: i64,
    seq: u32,
    ack: u32,
    stamps: (u32, u32),
    payload: u32,
    ip_bytes: u32,
    flags: u16,
    window: u16,
    ip_id: u16,
    mss: u16,
    file: u16,
    ttl: u8,
    ecn: u8,
    scale: u8,
    bits: u8,
    /// [`NONE`] without the option.
    mptcp: u8,
    /// [`NONE`] without the option.
    fast_open: u8,
}

impl Lone {
    /// Packs a file's packet; `turned`: it goes from the key's second end to the first.
    pub fn new(packet: &Packet, turned: bool, file: usize) -> Self {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        Self {
            time_ns: packet.time_ns,
            seq: packet.seq,
            ack: packet.ack,
            stamps: packet.stamps.unwrap_or_default(),
            payload: packet.payload,
            ip_bytes: packet.ip_bytes,
            flags: packet.flags,
            window: packet.window,
            ip_id: packet.ip_id.unwrap_or_default(),
            mss: packet.mss.unwrap_or_default(),
            file: file as u16,
            ttl: packet.ttl,
            ecn: packet.ecn,
            scale: packet.window_scale.unwrap_or_default(),
            bits: bit(packet.ip_id.is_some(), HAS_ID)
                | bit(packet.stamps.is_some(), HAS_STAMPS)
                | bit(packet.mss.is_some(), HAS_MSS)
                | bit(packet.window_scale.is_some(), HAS_SCALE)
                | bit(packet.sack_permitted, SACK)
                | bit(packet.options_cut, CUT)
                | bit(turned, TURNED),
            mptcp: packet.mptcp.unwrap_or(NONE),
            fast_open: packet.fast_open.unwrap_or(NONE),
        }
    }

    /// The packet, the direction and the file.
    pub fn packet(&self) -> (Packet, bool, usize) {
        let has = |bit: u8| self.bits & bit != 0;
        let packet = Packet {
            time_ns: self.time_ns,
            seq: self.seq,
            ack: self.ack,
            stamps: has(HAS_STAMPS).then_some(self.stamps),
            payload: self.payload,
            ip_bytes: self.ip_bytes,
            flags: self.flags,
            window: self.window,
            ip_id: has(HAS_ID).then_some(self.ip_id),
            mss: has(HAS_MSS).then_some(self.mss),
            ttl: self.ttl,
            ecn: self.ecn,
            window_scale: has(HAS_SCALE).then_some(self.scale),
            sack_permitted: has(SACK),
            options_cut: has(CUT),
            mptcp: Some(self.mptcp).filter(|subtype| *subtype != NONE),
            fast_open: Some(self.fast_open).filter(|cookie| *cookie != NONE),
            ..Packet::default()
        };
        (packet, has(TURNED), usize::from(self.file))
    }
}
