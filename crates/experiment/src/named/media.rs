//! Media by name. A line that is not the same both ways has a form for each direction.

/// A medium that `medium = "..."` names without an entry in `[media]`.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct NamedMedium {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Where its figures are from.
    pub source: &'static str,
    /// The entry of `[media]` that it stands for, as JSON.
    pub form: &'static str,
    /// That of the return direction, where it differs.
    pub up: Option<&'static str>,
}

/// All of them, in the order in which they are listed.
pub const MEDIA: &[NamedMedium] = &[
    NamedMedium {
        name: "adsl",
        about: "ADSL, synchronised at 8 and 1 Mbit/s",
        source: "ITU-T G.992.1: 6.144 Mbit/s down and 640 kbit/s up at least, up to about 8 and 1 in use",
        form: r#"{"kind": "adsl", "rate": "8mbit"}"#,
        up: Some(r#"{"kind": "adsl", "rate": "1mbit"}"#),
    },
    NamedMedium {
        name: "adsl2",
        about: "ADSL2, synchronised at 12 and 1 Mbit/s",
        source: "ITU-T G.992.3: 8 Mbit/s down and 800 kbit/s up at least, up to about 12 and 1 in use",
        form: r#"{"kind": "adsl", "rate": "12mbit"}"#,
        up: Some(r#"{"kind": "adsl", "rate": "1mbit"}"#),
    },
    NamedMedium {
        name: "adsl2+",
        about: "ADSL2+ on a short loop, synchronised at 24 and 1 Mbit/s",
        source: "ITU-T G.992.5: 16 Mbit/s down and 800 kbit/s up at least, up to about 24 and 1 in use",
        form: r#"{"kind": "adsl", "rate": "24mbit"}"#,
        up: Some(r#"{"kind": "adsl", "rate": "1mbit"}"#),
    },
    NamedMedium {
        name: "modem",
        about: "a V.34 telephone modem at 33.6 kbit/s with V.42",
        source: "ITU-T V.34, V.42",
        form: r#"{"kind": "modem", "rate": "33600bit"}"#,
        up: Some(r#"{"kind": "modem", "rate": "33600bit"}"#),
    },
    NamedMedium {
        name: "wifi-g",
        about: "802.11g at 54 Mbit/s, both directions contend",
        source: "IEEE 802.11-2007, clause 19",
        form: r#"{"kind": "wifi_g", "rate": "54mbit"}"#,
        up: None,
    },
    NamedMedium {
        name: "wifi-n",
        about: "802.11n with two streams at 20 MHz (MCS 15, 130 Mbit/s), both directions contend",
        source: "IEEE 802.11n-2009, clause 20",
        form: r#"{"kind": "wifi_n", "mcs": 15}"#,
        up: None,
    },
    NamedMedium {
        name: "homeplug-av",
        about: "HomePlug AV at a raw rate of 100 Mbit/s, both directions contend",
        source: "IEEE 1901-2010",
        form: r#"{"kind": "homeplug_av", "phy": "100mbit"}"#,
        up: None,
    },
    NamedMedium {
        name: "ethernet-hub",
        about: "half-duplex Ethernet at 100 Mbit/s, both directions contend",
        source: "IEEE 802.3, clause 4",
        form: r#"{"kind": "ethernet_hub"}"#,
        up: None,
    },
];
