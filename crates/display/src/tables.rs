//! The tables.

/// A colour on white pages and on dark pages, as `#rrggbb`.
#[derive(Clone, Copy, Debug)]
pub struct Colour {
    /// The name by which rules and tables refer to it.
    pub name: &'static str,
    /// On white pages.
    pub light: &'static str,
    /// On dark pages.
    pub dark: &'static str,
}

const fn colour(name: &'static str, light: &'static str, dark: &'static str) -> Colour {
    Colour { name, light, dark }
}

/// All colours: those of curves, then those of shared curves, text, secondary text and grid lines.
pub const COLOURS: &[Colour] = &[
    colour("blue", "#02387a", "#57a9ff"),
    colour("vermilion", "#b04204", "#dd5902"),
    colour("green", "#09745c", "#3d916f"),
    colour("rose", "#dc5c91", "#a8709f"),
    colour("brown", "#492600", "#f7ba29"),
    colour("sky", "#0591f1", "#b3e6fe"),
    colour("olive", "#a48d3f", "#f2f6bf"),
    colour("black", "#161616", "#afafaf"),
    colour("grey", "#7f7f7f", "#9aa2ab"),
    colour("ink", "#1f2328", "#e6edf3"),
    colour("muted", "#59636e", "#9ba5b0"),
    colour("grid", "#dfe3e8", "#2b323b"),
];

/// The colours of curves in the order of use: the five of the demonstration first, since they differ most.
pub const PALETTE: &[&str] =
    &["blue", "vermilion", "green", "rose", "brown", "sky", "olive", "black"];

/// Algorithms with a colour of their own.
pub const RESERVED: &[(&str, &str)] = &[
    ("reno", "blue"),
    ("newreno", "blue"),
    ("cubic", "vermilion"),
    ("vegas", "green"),
    ("bbr", "rose"),
    ("cdg", "brown"),
    ("exp", "sky"),
    ("udp", "grey"),
];

/// A colour of strips, and the phases and limits that have it.
#[derive(Clone, Copy, Debug)]
pub struct Strip {
    /// The colour, which no curve has.
    pub colour: Colour,
    /// Phases of an algorithm and states of a sender (`samples.state`).
    pub phases: &'static [&'static str],
    /// Limits of a sender (`samples.limit`).
    pub limits: &'static [&'static str],
}

const fn strip(
    colour: Colour,
    phases: &'static [&'static str],
    limits: &'static [&'static str],
) -> Strip {
    Strip { colour, phases, limits }
}

/// The colours of strips over time. Words of one kind share a colour: what grows, what keeps its rate, what reduces it.
pub const STRIPS: &[Strip] = &[
    strip(colour("lime", "#10d058", "#28d010"), &["slow_start", "startup"], &["app"]),
    strip(
        colour("aqua", "#10d0d0", "#70d0b8"),
        &["congestion_avoidance", "probe_bw", "probe_bw_cruise", "default", "below_target"],
        &["cwnd"],
    ),
    strip(colour("maroon", "#701040", "#a02840"), &["loss"], &["handshake"]),
    strip(
        colour("violet", "#a010e8", "#1040e8"),
        &["probe_bw_up", "probe_bw_refill", "competitive", "control"],
        &["pacing"],
    ),
    strip(
        colour("salmon", "#e8a088", "#e88888"),
        &["recovery", "congestion_recovery", "cwr"],
        &["sndbuf"],
    ),
    strip(colour("lilac", "#b8a0e8", "#e8b8e8"), &["probe_rtt"], &["small_queue"]),
    strip(colour("moss", "#585810", "#705810"), &["disorder"], &["rwnd"]),
    strip(colour("petrol", "#107088", "#107088"), &["drain", "probe_bw_down", "above_target"], &[]),
];

/// Dash patterns (dash, gap and so on, in pixels) that distinguish curves of the same colour.
pub const DASHES: &[&[u32]] = &[&[1, 0], &[6, 2], &[2, 2], &[8, 2, 2, 2], &[1, 2], &[12, 3]];

/// The dash pattern of a slow-start threshold.
pub const THRESHOLD: &[u32] = &[3, 2];

/// Units of a kind of quantity: sizes in base units and names, from the smallest up.
pub type Units = &'static [(f64, &'static str)];

/// Rates in bit/s, sizes in bytes, round trips over time in ms, shares of 1.
pub const UNITS: &[(&str, Units)] = &[
    ("rate", &[(1.0, "bit/s"), (1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s")]),
    ("size", &[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")]),
    ("ms", &[(1.0, "ms")]),
    ("share", &[(1.0, "")]),
];

/// A panel over time.
#[derive(Clone, Copy, Debug)]
pub struct Panel {
    /// The name by which figures refer to it.
    pub name: &'static str,
    /// The title of its axis, without the unit.
    pub title: &'static str,
    /// The kind of its quantity in [`UNITS`].
    pub units: &'static str,
}

const fn panel(name: &'static str, title: &'static str, units: &'static str) -> Panel {
    Panel { name, title, units }
}

/// All panels over time.
pub const PANELS: &[Panel] = &[
    panel("cwnd", "Window", "size"),
    panel("rtt", "RTT", "ms"),
    panel("throughput", "Throughput", "rate"),
    panel("goodput", "Goodput", "rate"),
    panel("queue", "Queue", "size"),
    panel("flight", "In flight", "size"),
    panel("share", "Share of the goodput", "share"),
];

/// The end of an axis as a multiple of its greatest value.
pub const HEADROOM: f64 = 1.05;
