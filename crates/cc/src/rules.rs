//! The rules in which the congestion controls of different kernels differ.
//!
//! A stack profile chooses one value of each ([`Rules`]). No algorithm asks which kernel it is in: what holds for
//! every algorithm is in the [`Window`](crate::Window) and in the [`View`](crate::View), what holds for one of them
//! it is given when it is made.

/// One value of each rule: a kernel's congestion controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Unit of growth.
    pub growth: Growth,
    /// Unit of congestion avoidance in BIC, Scalable, Veno and YeAH, which went on to count ACKs until 5.7 ("fix stretch ACK
    /// bugs", Yang, March 2020).
    pub module_growth: Growth,
    /// Slow start holds while `cwnd <= ssthresh`, not `<`.
    pub slow_start_at_threshold: bool,
    /// Criterion for a used window.
    pub limited: CwndLimited,
    /// HyStart's clock.
    pub hystart: HyStartClock,
    /// CUBIC's curve.
    pub cubic: CubicCurve,
    /// Vegas' decision.
    pub vegas: VegasRule,
    /// FreeBSD's own algorithms.
    pub bsd: BsdHost,
}

/// Unit that slow start and additive increase count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Growth {
    /// Packets delivered (Linux since 3.18). FreeBSD's algorithms count bytes of their own.
    #[default]
    Packets,
    /// ACKs, however many packets they cover; a step of congestion avoidance takes one more than the window
    /// (2.2 and 2.6, without ABC).
    Acks,
}

/// Criterion for a used window, which may then grow (`tcp_is_cwnd_limited`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CwndLimited {
    /// Used if the last transmissions were held back by it; in slow start also if it is less than twice the packets in
    /// use (since 3.16).
    #[default]
    Recently,
    /// Used if but for one burst it was full before this ACK (2.6).
    WithinBurst,
    /// Used if the endpoint says so for this ACK (FreeBSD: unless the receiver's window is less).
    AsTold,
    /// Always (2.2).
    Always,
}

/// End of CUBIC's slow start before a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HyStartClock {
    /// It does not (before 2.6.29).
    None,
    /// HyStart on a clock of jiffies (2.6.29 to 2.6.38).
    Jiffies,
    /// HyStart in microseconds (since 5.5).
    Microseconds,
}

/// Computation of CUBIC's curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CubicCurve {
    /// Computed once per jiffy; growth has bounds; idle times do not advance it; delays are in µs (Linux 6.1).
    PerJiffy,
    /// Computed whenever the window has changed; ACKs are turned into packets by the ratio between them; delays are
    /// whole jiffies; an undone reduction goes back to W_max (2.6.27 to 2.6.38).
    PerWindow,
}

/// Vegas's decision once per round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VegasRule {
    /// The module `tcp_vegas` (since 2.6.13).
    Module,
    /// The patch of 1999 for 2.2, and 2.6 before the module.
    Patch,
}

/// Host in which FreeBSD's algorithms run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BsdHost {
    /// A FreeBSD: RTTs are in the host's ticks, and at a timeout the endpoint itself sets NewReno's threshold.
    Native,
    /// Another kernel: RTTs are in ticks of 1 ms, and the threshold is the algorithm's at a timeout too.
    Foreign,
}
