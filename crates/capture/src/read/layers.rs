//! The layers around a segment's IP packet: link tags and tunnels.

/// A kind of encapsulation, by its bit in [`Layers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Layer {
    /// Two VLAN tags or more (IEEE 802.1ad).
    QinQ = 1,
    /// PPP over Ethernet (RFC 2516).
    Pppoe = 1 << 1,
    /// MPLS labels (RFC 3032).
    Mpls = 1 << 2,
    /// GRE (RFC 2784), PPTP's variant too (RFC 2637).
    Gre = 1 << 3,
    /// A mirror's copy in GRE (draft-foschiano-erspan).
    Erspan = 1 << 4,
    /// VXLAN (RFC 7348).
    Vxlan = 1 << 5,
    /// Geneve (RFC 8926).
    Geneve = 1 << 6,
    /// GTP-U (3GPP TS 29.281).
    GtpU = 1 << 7,
    /// IPv4 in IPv4 (RFC 2003).
    Ipip = 1 << 8,
    /// IPv6 in IPv4 (RFC 4213).
    SixInFour = 1 << 9,
    /// IPv4 in IPv6 (RFC 2473).
    FourInSix = 1 << 10,
    /// IPv6 in IPv6 (RFC 2473).
    SixInSix = 1 << 11,
    /// Ethernet in IP (RFC 3378).
    EtherIp = 1 << 12,
}

const NAMES: [(Layer, &str); 13] = [
    (Layer::QinQ, "QinQ"),
    (Layer::Pppoe, "PPPoE"),
    (Layer::Mpls, "MPLS"),
    (Layer::Gre, "GRE"),
    (Layer::Erspan, "ERSPAN"),
    (Layer::Vxlan, "VXLAN"),
    (Layer::Geneve, "Geneve"),
    (Layer::GtpU, "GTP-U"),
    (Layer::Ipip, "IPIP"),
    (Layer::SixInFour, "6in4"),
    (Layer::FourInSix, "4in6"),
    (Layer::SixInSix, "6in6"),
    (Layer::EtherIp, "EtherIP"),
];

/// Link-layer tags, which differ between the two ends of a path: a packet with and without them is the same packet.
const TAGS: u16 = Layer::QinQ as u16 | Layer::Pppoe as u16 | Layer::Mpls as u16;

/// The encapsulations around an IP packet, and the virtual network that VXLAN or Geneve name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Layers {
    kinds: u16,
    network: Option<u32>,
}

impl Layers {
    /// Adds an encapsulation.
    pub(super) fn add(&mut self, layer: Layer) {
        self.kinds |= layer as u16;
    }

    /// Adds one with a virtual network's number of 24 bits.
    pub(super) fn add_network(&mut self, layer: Layer, network: u32) {
        self.add(layer);
        self.network = Some(network);
    }

    /// A number of the tunnel, the same in both directions; 0: there is none but the tags of a line. Two of the same number are as good
    /// as impossible: kinds and virtual network take 34 bits.
    #[must_use]
    pub fn tunnel(self) -> u32 {
        let network = self.network.map_or(0, |network| network + 1);
        let kinds = u64::from(self.kinds & !TAGS);
        let word = (kinds << 32 | u64::from(network)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((word >> 32) as u32).max(u32::from(kinds != 0))
    }

    /// True when there is no encapsulation.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.kinds == 0
    }

    /// `GRE`, `VXLAN 42`, `6in4, GRE`.
    #[must_use]
    pub fn text(self) -> String {
        let names = NAMES.iter().filter(|(layer, _)| self.kinds & *layer as u16 != 0);
        let words = names.map(|(layer, name)| match (layer, self.network) {
            (Layer::Vxlan | Layer::Geneve, Some(network)) => format!("{name} {network}"),
            _ => (*name).to_owned(),
        });
        words.collect::<Vec<String>>().join(", ")
    }
}
