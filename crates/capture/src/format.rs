//! Numbers of the pcapng format (draft-ietf-opsawg-pcapng), in the order of that document.

/// Types of blocks.
pub mod block {
    /// Section header; the same in either byte order.
    pub const SECTION_HEADER: u32 = 0x0a0d_0d0a;
    /// Interface description.
    pub const INTERFACE: u32 = 1;
    /// Interface statistics.
    pub const STATISTICS: u32 = 5;
    /// Enhanced packet.
    pub const PACKET: u32 = 6;
    /// Decryption secrets.
    pub const SECRETS: u32 = 10;
}

/// Codes of options; what they mean depends on the block.
pub mod option {
    /// The end of the options of any block.
    pub const END: u16 = 0;
    /// A comment, UTF-8, in any block, more than once if need be.
    pub const COMMENT: u16 = 1;
    /// Section header: the name of the program that wrote it.
    pub const USER_APPLICATION: u16 = 4;
    /// Interface: its name.
    pub const NAME: u16 = 2;
    /// Interface: what it is, in words.
    pub const DESCRIPTION: u16 = 3;
    /// Interface: the unit of its stamps; 10 to the power of minus this, when the upper bit is 0.
    pub const RESOLUTION: u16 = 9;
    /// Packet: direction in the lowest two bits ([`super::INBOUND`], [`super::OUTBOUND`]).
    pub const FLAGS: u16 = 2;
    /// Packet: a number that it has wherever it is seen.
    pub const PACKET_ID: u16 = 5;
    /// Statistics: when they begin.
    pub const START_TIME: u16 = 2;
    /// Statistics: when they end.
    pub const END_TIME: u16 = 3;
    /// Statistics: packets seen.
    pub const RECEIVED: u16 = 4;
    /// Statistics: packets dropped by the interface.
    pub const DROPPED: u16 = 5;
    /// Statistics: packets that the operating system had no room for.
    pub const MISSING: u16 = 7;
}

/// Type of decryption secrets: a log of TLS's keys.
pub const TLS_KEY_LOG: u32 = 0x544c_534b;

/// Beginning of the comment on a packet that the queue at a captured link dropped; a reason follows.
pub const QUEUE_DROP: &str = "dropped by the queue: ";

/// Magic number by which a section header shows its byte order.
pub const BYTE_ORDER: u32 = 0x1a2b_3c4d;

/// The version of the format.
pub const VERSION: (u16, u16) = (1, 0);

/// Link type: Ethernet.
pub const ETHERNET: u16 = 1;

/// Stamps in nanoseconds, as encoded in [`option::RESOLUTION`].
pub const NANOSECONDS: u8 = 9;

/// A packet received by the interface.
pub const INBOUND: u32 = 1;

/// A packet sent by it.
pub const OUTBOUND: u32 = 2;
