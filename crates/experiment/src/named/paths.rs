//! Whole paths by everyday names. Each says which of its figures were published, and which we chose.

/// A path that `path = "..."` names.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct NamedPath {
    /// Its name.
    pub name: &'static str,
    /// Other names of it.
    pub aliases: &'static [&'static str],
    /// What it is.
    pub about: &'static str,
    /// Fields of `[path]`.
    pub fields: &'static [(&'static str, &'static str)],
    /// Entries of `[media]`, as JSON.
    pub media: &'static [(&'static str, &'static str)],
    /// What was published, and where.
    pub sources: &'static [&'static str],
    /// What was not, and why it is as it is.
    pub chosen: &'static str,
}

/// All of them, in the order in which they are listed.
pub const PATHS: &[NamedPath] = &[
    NamedPath {
        name: "home DSL",
        aliases: &["DSL", "ADSL"],
        about: "ADSL2+ at a medium distance, with the deep buffers of older DSL routers",
        fields: &[
            ("medium", "dsl-down"),
            ("up_medium", "dsl-up"),
            ("queue", "300ms"),
            ("up_queue", "1s"),
            ("delay", "5ms"),
            ("up_delay", "5ms"),
        ],
        media: &[
            ("dsl-down", r#"{"kind": "adsl", "rate": "12mbit", "interleaving": "8ms"}"#),
            ("dsl-up", r#"{"kind": "adsl", "rate": "1mbit", "interleaving": "8ms"}"#),
        ],
        sources: &[
            "ITU-T G.992.5 (ADSL2+): up to about 24 Mbit/s down and 1 Mbit/s up, falling with the length of the loop",
            "ITU-T G.992.1: interleaving takes 2 to 20 ms (fast path to depth 64)",
        ],
        chosen: "the loop (12 and 1 Mbit/s), interleaving of 8 ms, 10 ms to the server and back, buffers of 300 ms down and 1 s up",
    },
    NamedPath {
        name: "cable",
        aliases: &["DOCSIS"],
        about: "DOCSIS 3.0 without AQM",
        fields: &[
            ("rate", "200mbit"),
            ("rtt", "20ms"),
            ("queue", "100ms"),
            ("up_rate", "10mbit"),
            ("up_queue", "250ms"),
        ],
        media: &[],
        sources: &[
            "FCC, Eleventh Measuring Broadband America Fixed Broadband Report (2021): 193.9 Mbit/s is the weighted average \
             advertised speed; cable delivers 114 % of what is advertised",
            "RFC 8034 (2017), and Right-Sizing Cable Modem Buffers (NCTA 2011): the modem's upstream buffer was about ten times \
             what TCP needs",
        ],
        chosen: "20 ms to the server, 10 Mbit/s up, buffers of 100 ms down and 250 ms up (about ten BDP); for a modem with AQM: \
                 --up-queue 'codel target 10ms'",
    },
    NamedPath {
        name: "LTE",
        aliases: &["4G"],
        about: "a mobile network of 2020 with deep per-user buffers, at a constant rate",
        fields: &[
            ("rate", "30mbit"),
            ("rtt", "40ms"),
            ("queue", "500ms"),
            ("up_rate", "6mbit"),
            ("up_queue", "500ms"),
        ],
        media: &[],
        sources: &[
            "Ookla, Speedtest United States Market Report Q2 2020: medians of 29 Mbit/s down and 5.74 Mbit/s up over mobile, \
             latencies of 31 to 39 ms by operator",
            "Jiang et al., Tackling Bufferbloat in 3G/4G Mobile Networks (IMC 2012): buffers deep enough for extremely long delays",
        ],
        chosen: "buffers of 500 ms. The rate of a real cell changes from moment to moment: --trace FILE replays a recorded one",
    },
    NamedPath {
        name: "5G",
        aliases: &["NR"],
        about: "a mid-band mobile network of 2024, at a constant rate",
        fields: &[
            ("rate", "250mbit"),
            ("rtt", "50ms"),
            ("queue", "200ms"),
            ("up_rate", "15mbit"),
            ("up_queue", "200ms"),
        ],
        media: &[],
        sources: &[
            "Ookla, Speedtest Connectivity Report United States 1H 2024: T-Mobile's 5G has medians of 265.80 Mbit/s down, \
             14.56 Mbit/s up (all technologies) and 47 ms",
        ],
        chosen: "buffers of 200 ms. The rate of a real cell changes from moment to moment: --trace FILE replays a recorded one",
    },
    NamedPath {
        name: "Starlink",
        aliases: &["LEO"],
        about: "a low-orbit satellite link between two handovers, at a constant rate",
        fields: &[
            ("rate", "180mbit"),
            ("rtt", "50ms"),
            ("queue", "100ms"),
            ("loss", "0.1%"),
            ("up_rate", "15mbit"),
            ("up_queue", "100ms"),
        ],
        media: &[],
        sources: &[
            "Michel et al., A First Look at Starlink Performance (IMC 2022; summary on blog.apnic.net, 28 November 2022): RTT to \
             European servers 50 ms in the median, 40 to 60 ms between quartiles, 20 ms at least; 100 to 200 Mbit/s promised and more reached; \
             delay and loss rise slightly under load",
            "Mohan et al., A Multifaceted Look at Starlink Performance (arXiv 2310.09242): links are reconfigured every 15 s",
        ],
        chosen: "180 and 15 Mbit/s, random loss of 0.1 %, buffers of 100 ms. Not in it: the reconfiguration every 15 s and its bursts of \
                 loss, and the rate's variation",
    },
    NamedPath {
        name: "office Wi-Fi",
        aliases: &["Wi-Fi", "WiFi"],
        about: "one 802.11n station near its access point, which has FQ-CoDel",
        fields: &[
            ("medium", "office-wifi"),
            ("queue", "fq_codel"),
            ("up_queue", "fq_codel"),
            ("delay", "5ms"),
            ("up_delay", "5ms"),
        ],
        media: &[("office-wifi", r#"{"kind": "wifi_n", "mcs": 15}"#)],
        sources: &[
            "IEEE 802.11n-2009: MCS 15 at 20 MHz is 130 Mbit/s",
            "RFC 8290 and Høiland-Jørgensen et al., Ending the Anomaly (USENIX ATC 2017): FQ-CoDel in Linux's Wi-Fi stack",
        ],
        chosen: "one station, no damaged frames, 10 ms to the server and back",
    },
    NamedPath {
        name: "transatlantic",
        aliases: &["New York-London"],
        about: "New York to London over a leased 1 Gbit/s",
        fields: &[("rate", "1gbit"), ("rtt", "65ms"), ("queue", "1bdp")],
        media: &[],
        sources: &[
            "Hibernia Express (2015): 58.95 ms from New York to London and back, the shortest cable; AC-1 before it: about 65 ms",
            "Villamizar and Song, High Performance TCP in ANSNET (CCR 1994): a buffer of one bandwidth-delay product",
        ],
        chosen: "1 Gbit/s",
    },
    NamedPath {
        name: "data centre",
        aliases: &["data center", "datacentre", "datacenter"],
        about: "10 Gbit/s through one shallow-buffered switch; a second of it takes long enough",
        fields: &[("rate", "10gbit"), ("rtt", "100us"), ("queue", "bfifo limit 512kb")],
        media: &[],
        sources: &[
            "Linux, Kconfig of tcp_dctcp: switches are shallow-buffered, and mark at 65 packets (about 100 kB) at 10 Gbit/s",
            "Alizadeh et al., Data Center TCP (SIGCOMM 2010)",
        ],
        chosen: "100 µs, 512 KiB of buffer for the port",
    },
];
