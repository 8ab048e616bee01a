//! Media by name. A line that is not the same both ways has a form for each direction.

/// A medium that `medium = "..."` names without an entry in `[media]`.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct NamedMedium {
    /// Its name.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Source of its figures.
    pub source: &'static str,
    /// The equivalent entry of `[media]`, as JSON.
    pub form: &'static str,
    /// That of the return direction, where it differs.
    pub up: Option<&'static str>,
}

/// A line's return direction, which every ADSL here has.
const ADSL_UP: Option<&str> = Some(r#"{"kind": "adsl", "rate": "1mbit"}"#);
const MODEM: &str = r#"{"kind": "modem", "rate": "33600bit"}"#;

const fn row(
    [name, about, source, form]: [&'static str; 4],
    up: Option<&'static str>,
) -> NamedMedium {
    NamedMedium { name, about, source, form, up }
}

/// All named media, in the order in which they are listed: name, description, source, form; return direction.
#[rustfmt::skip]
pub const MEDIA: &[NamedMedium] = &[
    row(["adsl", "ADSL, synchronised at 8 and 1 Mbit/s",
        "ITU-T G.992.1 (1999): up to about 8 Mbit/s down and 1 Mbit/s up",
        r#"{"kind": "adsl", "rate": "8mbit"}"#], ADSL_UP),
    row(["adsl2", "ADSL2, synchronised at 12 and 1 Mbit/s",
        "ITU-T G.992.3: up to about 12 Mbit/s down and 1 Mbit/s up",
        r#"{"kind": "adsl", "rate": "12mbit"}"#], ADSL_UP),
    row(["adsl2+", "ADSL2+ on a short loop, synchronised at 24 and 1 Mbit/s",
        "ITU-T G.992.5 (2003): up to 24 Mbit/s down; 1 Mbit/s up is chosen, the standard reaches 1.4",
        r#"{"kind": "adsl", "rate": "24mbit"}"#], ADSL_UP),
    row(["modem", "a V.34 telephone modem at 33.6 kbit/s with V.42",
        "ITU-T V.34, V.42", MODEM], Some(MODEM)),
    row(["wifi-g", "802.11g at 54 Mbit/s, both directions contend",
        "IEEE 802.11-2007, clause 19", r#"{"kind": "wifi_g", "rate": "54mbit"}"#], None),
    row(["wifi-n", "802.11n with two streams at 20 MHz (MCS 15, 130 Mbit/s), both directions contend",
        "IEEE 802.11n-2009, clause 20", r#"{"kind": "wifi_n", "mcs": 15}"#], None),
    row(["homeplug-av", "HomePlug AV at a raw rate of 100 Mbit/s, both directions contend",
        "IEEE 1901-2010; the rate is chosen", r#"{"kind": "homeplug_av", "phy": "100mbit"}"#], None),
    row(["ethernet-hub", "half-duplex Ethernet at 100 Mbit/s, both directions contend",
        "IEEE 802.3, clause 4", r#"{"kind": "ethernet_hub"}"#], None),
];
