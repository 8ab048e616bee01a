//! The stack profiles: one row per kernel, in a file of its family. Nothing about a profile stands anywhere else.

mod freebsd_9;
mod linux_2_2;
mod linux_2_6;
mod linux_6;

pub use freebsd_9::{FREEBSD_9, bsd_initial_window};
pub use linux_2_2::LINUX_2_2;
pub use linux_2_6::{LINUX_2_6_27, LINUX_2_6_38};
pub use linux_6::{LINUX_4_15, LINUX_6};

use crate::profile::Settings;

/// Description of a kernel's TCP.
#[derive(Clone, Copy, Debug)]
pub struct StackRow {
    /// Name in messages.
    pub kernel: &'static str,
    /// Its stack, the variants of its rules, its ticks per second and the defaults of its settings.
    pub settings: fn() -> Settings,
    /// Its initial window, for segments of so many bytes.
    pub initial_window: fn(u32) -> u32,
    /// The congestion controls that it has in its version of them; `None`: all.
    pub algorithms: Option<&'static [&'static str]>,
    /// System whose names its settings have.
    pub sysctls: Sysctls,
    /// Why it sends no bursts for an interface to cut; `None`: it does.
    pub no_bursts: Option<&'static str>,
    /// A history of thresholds may be given to it, which it ignores. Those that keep metrics ([`Settings::metrics_cache`]) begin with
    /// all of a history; others take none.
    pub tolerates_threshold: bool,
}

/// System whose names a kernel's settings have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sysctls {
    /// Linux 6.1's, but for those that came later than this kernel: without `net.ipv4.`.
    Linux {
        /// Lists of them.
        lacks: &'static [&'static [&'static str]],
    },
    /// FreeBSD's.
    Freebsd,
}

impl Sysctls {
    /// Lists of Linux 6.1's settings that came later, without `net.ipv4.`; `None` where the names are others.
    #[must_use]
    pub const fn lacks(self) -> Option<&'static [&'static [&'static str]]> {
        match self {
            Self::Linux { lacks } => Some(lacks),
            Self::Freebsd => None,
        }
    }
}

/// Calls `callback!` with the profiles: description, name of a variant, name, row. The order is that of the
/// reference page.
#[macro_export]
macro_rules! stack_profiles {
    ($callback:ident) => {
        $callback! {
            /// A stock Linux 6.1.
            Linux6 "linux-6" LINUX_6,
            /// Linux 4.15 (2018): as 6.1, but a segment takes 4352 bytes of the send buffer, 20 are offered at first, SACKs are not
            /// compressed, a pushed full segment is not acknowledged by itself, and probe and reordering timers have two ticks on top.
            Linux415 "linux-4.15" LINUX_4_15,
            /// Linux 2.2 (1999): growth per ACK, fast retransmit with an inflated window, everything again after a
            /// timeout and nothing new before that, timeouts a quarter longer, ACKs delayed by the data's spacing, buffers of 64 KiB and
            /// windows of 32. Its vegas is the patch of 1999.
            Linux22 "linux-2.2" LINUX_2_2,
            /// Linux 2.6.27 (Fedora 10): growth per ACK, FACK and rate halving, no RACK, no pacing, 8 bits
            /// of reordering, receive window 3/4 of the buffer. Its cubic is 2.2.
            Linux2627 "linux-2.6.27" LINUX_2_6_27,
            /// Linux 2.6.38 (early 2011): as 2.6.27, but CUBIC has HyStart, in jiffies, and Vegas is there.
            Linux2638 "linux-2.6.38" LINUX_2_6_38,
            /// FreeBSD 9 as of May 2011: byte counting, NewReno and SACK recovery, timeouts with 200 ms of slop, every second
            /// segment acknowledged, clocks that advance with `tick_hz` (100 in a virtual machine, where FreeBSD so
            /// detects it).
            Freebsd9 "freebsd-9" FREEBSD_9,
        }
    };
}
