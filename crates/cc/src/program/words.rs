//! The words of the language that stand for something of the connection, and its hooks.

/// A moment at which a program is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// `init`.
    Start,
    /// `cong_avoid`.
    Ack,
    /// `cong_control`.
    Control,
    /// After `Ack` or `Control`, once per round trip.
    Round,
    /// `ssthresh`.
    Loss,
    /// `set_state` to `Loss`.
    Timeout,
    /// `cwnd_event` with `TxStart`, but for the first.
    Idle,
}

/// A hook's row.
#[derive(Clone, Copy, Debug)]
pub struct HookRow {
    pub(crate) hook: Hook,
    /// As a text has it behind `on`.
    pub name: &'static str,
    /// Condition under which it is called.
    pub meaning: &'static str,
}

const fn hook(hook: Hook, name: &'static str, meaning: &'static str) -> HookRow {
    HookRow { hook, name, meaning }
}

/// All hooks, in the order of [`Hook`].
pub const HOOKS: &[HookRow] = &[
    hook(Hook::Start, "start", "the connection is open"),
    hook(Hook::Ack, "ack", "packets were delivered and the window may grow"),
    hook(
        Hook::Control,
        "control",
        "every ACK, also in recovery: window and pacing are the program's",
    ),
    hook(Hook::Round, "round", "a round trip has ended: after `ack` or `control` of its last ACK"),
    hook(Hook::Loss, "loss", "a reduction begins, after a loss, an ECN echo or a timeout"),
    hook(Hook::Timeout, "timeout", "the retransmission timer has expired, after `loss`"),
    hook(Hook::Idle, "idle", "something is sent again after nothing was in flight"),
];

/// Meaning of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Cwnd,
    Ssthresh,
    Count,
    Pacing,
    Acked,
    Limited,
    SlowStart,
    Recovering,
    Now,
    Rtt,
    Srtt,
    MinRtt,
    InFlight,
    Delivered,
    Marked,
    Mss,
    DeliveryRate,
    AppLimited,
    Lost,
}

/// A word's row.
#[derive(Clone, Copy, Debug)]
pub struct WordRow {
    pub(crate) word: Word,
    /// As a text has it.
    pub name: &'static str,
    /// It is true or false, not a number.
    pub truth: bool,
    /// A program may set it.
    pub set: bool,
    /// Only a program with `on control` has it.
    pub control: bool,
    /// Unit of the value.
    pub unit: &'static str,
    /// Meaning: no sentence, no full stop.
    pub meaning: &'static str,
}

const fn number(
    word: Word,
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
) -> WordRow {
    WordRow { word, name, truth: false, set: false, control: false, unit, meaning }
}

const fn truth(word: Word, name: &'static str, meaning: &'static str) -> WordRow {
    WordRow { truth: true, ..number(word, name, "", meaning) }
}

const fn set(row: WordRow) -> WordRow {
    WordRow { set: true, ..row }
}

const fn of_control(row: WordRow) -> WordRow {
    WordRow { control: true, ..row }
}

/// All words, in the order of [`Word`].
pub const WORDS: &[WordRow] = &[
    set(number(Word::Cwnd, "cwnd", "packets", "congestion window")),
    set(number(Word::Ssthresh, "ssthresh", "packets", "slow-start threshold")),
    set(number(Word::Count, "count", "packets", "counted towards the next packet of the window")),
    of_control(set(number(Word::Pacing, "pacing", "packets/s", "pacing rate"))),
    number(Word::Acked, "acked", "packets", "delivered by this ACK"),
    truth(Word::Limited, "limited", "the window was the limit, so that growth is justified"),
    truth(Word::SlowStart, "slow_start", "the window is below the threshold"),
    truth(Word::Recovering, "recovering", "losses are being repaired, or a reduction is under way"),
    number(Word::Now, "now", "s", "time since the run began"),
    number(Word::Rtt, "rtt", "s", "last sample of the round-trip time"),
    number(Word::Srtt, "srtt", "s", "smoothed round-trip time"),
    number(Word::MinRtt, "min_rtt", "s", "least round-trip time of the last minutes"),
    number(Word::InFlight, "in_flight", "packets", "in the network"),
    number(Word::Delivered, "delivered", "packets", "delivered since the connection began"),
    number(Word::Marked, "marked", "packets", "of those, reported as marked"),
    number(Word::Mss, "mss", "bytes", "payload of a packet"),
    of_control(number(
        Word::DeliveryRate,
        "delivery_rate",
        "packets/s",
        "last sample of the delivery rate",
    )),
    of_control(truth(
        Word::AppLimited,
        "app_limited",
        "the application, not the window, was the limit of that sample",
    )),
    of_control(number(Word::Lost, "lost", "packets", "newly found lost")),
];
