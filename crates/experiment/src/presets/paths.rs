//! Whole paths by everyday names. Each states which of its figures were published, and which we chose.

/// A path that `path = "..."` names.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct NamedPath {
    /// Its name.
    pub name: &'static str,
    /// Other names of it.
    pub aliases: &'static [&'static str],
    /// Description.
    pub about: &'static str,
    /// Fields of `[path]`.
    pub fields: &'static [(&'static str, &'static str)],
    /// Entries of `[media]`, as JSON.
    pub media: &'static [(&'static str, &'static str)],
    /// Published figures and their sources.
    pub sources: &'static [&'static str],
    /// Unpublished figures that we chose, with the reasons.
    pub chosen: &'static str,
}

/// All named paths, in the order in which they are listed.
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
            "ITU-T G.992.5 (ADSL2+, 2003): twice the downstream band of ADSL2; up to 24 Mbit/s, less the longer the loop",
        ],
        chosen: "12 and 1 Mbit/s, 8 ms of interleaving (operators set none to about 20 ms), 10 ms to the server and back, buffers of 300 ms \
                 down and 1 s up",
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
            "FCC, Eleventh Measuring Broadband America Fixed Broadband Report (2021): a weighted average of 193.9 Mbit/s advertised, \
             of which cable delivered 114 %",
            "White et al., Right-Sizing Cable Modem Buffers for Maximum Application Performance (NCTA 2011): modems had about ten \
             times the upstream buffer that TCP needs; RFC 8034 (2017) is the AQM that followed",
        ],
        chosen: "20 ms to the server and back, 10 Mbit/s up, buffers of 100 ms down and 250 ms up (about ten BDP); for a modem with AQM: \
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
             latencies of 31 to 39 ms by operator (RCR Wireless News, 9 July 2020)",
            "Jiang et al., Tackling Bufferbloat in 3G/4G Networks (IMC 2012): operators' buffers are deep, and delays under load long",
        ],
        chosen: "rates and round trip rounded; buffers of 500 ms. The rate of a real cell changes from moment to moment: --trace FILE replays a recorded one",
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
             14.56 Mbit/s up and 47 ms (RCR Wireless News, 17 July 2024)",
        ],
        chosen: "rates and round trip rounded; buffers of 200 ms. The rate of a real cell changes from moment to moment: --trace FILE replays a recorded one",
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
            "Michel et al., A First Look at Starlink Performance (IMC 2022; summary on blog.apnic.net, 28 November 2022): a median RTT of \
             50 ms to European servers, quartiles of 40 and 60 ms, a minimum of 20 ms; 100 to 200 Mbit/s advertised, more \
             measured; delay and loss rise slightly under load",
            "Mohan et al., A Multifaceted Look at Starlink Performance (arXiv 2310.09242): links are reconfigured every 15 s, which changes latency and throughput",
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
        about: "New York to London over a leased line of 1 Gbit/s",
        fields: &[("rate", "1gbit"), ("rtt", "65ms"), ("queue", "1bdp")],
        media: &[],
        sources: &[
            "Trans-Atlantic Network Latency Reduced (The Broadcast Bridge, 2015): 58.95 ms from New York to London and back over Hibernia \
             Express, the shortest cable; New Fibre Optic Cable To Boost Transatlantic Comms (silicon.co.uk, 2011): 65 ms over AC-1 before it",
            "Villamizar and Song, High Performance TCP in ANSNET (CCR 1994): a buffer of one bandwidth-delay product",
        ],
        chosen: "1 Gbit/s, no other traffic",
    },
    NamedPath {
        name: "data centre",
        aliases: &["data center", "datacentre", "datacenter"],
        about: "10 Gbit/s through one switch with shallow buffers; --duration 1s is plenty",
        fields: &[("rate", "10gbit"), ("rtt", "100us"), ("queue", "bfifo limit 512kb")],
        media: &[],
        sources: &[
            "Linux, net/ipv4/Kconfig, TCP_CONG_DCTCP: shallow-buffered switches, marking from 65 packets (about 100 kB) at 10 Gbit/s",
            "Alizadeh et al., Data Center TCP (SIGCOMM 2010): commodity switches with shallow buffers, at 1 and 10 Gbit/s",
        ],
        chosen: "100 us, 512 KiB of buffer for the port",
    },
];
