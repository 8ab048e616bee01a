//! From the media of a scenario to transmitters and channels.

use crate::network::{Channel, Station};
use crate::world::Layout;
use dragstrip_link::{
    Adsl, Dcf, Ethernet, HomePlug, Medium, Modem, Trace, Transmitter, adsl, ethernet, homeplug,
    modem, wifi_g, wifi_n,
};
use dragstrip_scenario::{
    AdslEncapsulation, Application, LinkSpec, MediumSpec, ModemProtocol, Scenario, WifiBand,
    WifiProtection, WifiSlot,
};
use dragstrip_units::{Duration, Rate};
use std::collections::BTreeMap;

/// Server of a link's queue.
pub(crate) enum Place {
    /// A separate line.
    Own(Transmitter),
    /// A station of a channel.
    Station { channel: usize, station: usize, ring_packets: u32 },
    /// The stream that a flow's client or server sends; each packet has a header in it.
    Stream { flow: usize, from_server: bool, header_bytes: u32 },
}

/// A channel under construction.
struct Draft<'a> {
    number: usize,
    /// With the node each belongs to.
    stations: Vec<(&'a str, Station)>,
}

/// Channels under construction, by medium.
pub(crate) struct Media<'a> {
    scenario: &'a Scenario,
    channels: BTreeMap<&'a str, Draft<'a>>,
}

impl<'a> Media<'a> {
    pub fn new(scenario: &'a Scenario) -> Self {
        Self { scenario, channels: BTreeMap::new() }
    }

    /// The place of a link whose queue will be the stage of this number; none for a plain wire.
    pub fn place(&mut self, link: &'a LinkSpec, stage: u32) -> Option<Place> {
        let (name, medium) = self.scenario.media.get_key_value(link.medium.as_ref()?)?;
        let ring_packets = match medium {
            MediumSpec::Tunnel { flow, near } => {
                return stream(self.scenario, flow, link.from != *near);
            }
            MediumSpec::Adsl { .. } | MediumSpec::Modem { .. } | MediumSpec::Trace { .. } => {
                return own_transmitter(medium).map(Place::Own);
            }
            MediumSpec::WifiG { ring_packets, .. }
            | MediumSpec::WifiN { ring_packets, .. }
            | MediumSpec::HomeplugAv { ring_packets, .. }
            | MediumSpec::EthernetHub { ring_packets, .. } => *ring_packets,
        };
        let number = self.channels.len();
        let Draft { number: channel, stations } =
            self.channels.entry(name).or_insert_with(|| Draft { number, stations: Vec::new() });
        let station =
            stations.iter().position(|(node, _)| *node == link.from).unwrap_or_else(|| {
                let station = Station { stages: Vec::new(), turn: 0, transmitted: false };
                stations.push((&link.from, station));
                stations.len() - 1
            });
        stations[station].1.stages.push(stage);
        Some(Place::Station { channel: *channel, station, ring_packets })
    }

    /// Number of channels.
    pub fn count(&self) -> usize {
        self.channels.len()
    }

    /// The channels, in the order of their numbers.
    pub fn finish(self, layout: &Layout) -> Vec<Channel> {
        let seed = self.scenario.seed;
        let mut channels: Vec<(usize, Channel)> = Vec::with_capacity(self.channels.len());
        for (name, Draft { number, stations }) in self.channels {
            let (nodes, stations): (Vec<&str>, Vec<Station>) = stations.into_iter().unzip();
            let Some(medium) = shared(&self.scenario.media[name], &nodes, seed, name) else {
                continue;
            };
            let source = layout.channel_source(number);
            channels.push((number, Channel { medium, stations, outcomes: Vec::new(), source }));
        }
        channels.sort_by_key(|(number, _)| *number);
        channels.into_iter().map(|(_, channel)| channel).collect()
    }
}

/// A direction of a medium of the kinds that are not shared.
fn own_transmitter(medium: &MediumSpec) -> Option<Transmitter> {
    match medium {
        MediumSpec::Adsl { rate_bps, encapsulation, interleaving_ns } => {
            let config = adsl::Config {
                rate: Rate::from_bits_per_second(*rate_bps)?,
                encapsulation: match encapsulation {
                    AdslEncapsulation::PppoeLlc => adsl::Encapsulation::PppoeLlc,
                    AdslEncapsulation::PppoeVcMux => adsl::Encapsulation::PppoeVcMux,
                    AdslEncapsulation::PppoaVcMux => adsl::Encapsulation::PppoaVcMux,
                },
                interleaving: Duration::from_nanos(*interleaving_ns),
            };
            Some(Transmitter::Adsl(Adsl::new(&config)))
        }
        MediumSpec::Modem {
            rate_bps,
            protocol,
            block_bytes,
            compression_ratio,
            van_jacobson,
            dte_bps,
            buffer_bytes,
            processing_ns,
        } => {
            let config = modem::Config {
                rate: Rate::from_bits_per_second(*rate_bps)?,
                dte: Rate::from_bits_per_second(*dte_bps)?,
                protocol: match protocol {
                    ModemProtocol::Async => modem::Protocol::Async,
                    ModemProtocol::Mnp4 => modem::Protocol::Mnp4,
                    ModemProtocol::Mnp5 => modem::Protocol::Mnp5,
                    ModemProtocol::V42 => modem::Protocol::V42,
                    ModemProtocol::V42bis => modem::Protocol::V42bis,
                },
                block_bytes: *block_bytes,
                compression_ratio: *compression_ratio,
                van_jacobson: *van_jacobson,
                buffer_bytes: *buffer_bytes,
                processing: Duration::from_nanos(*processing_ns),
            };
            Some(Transmitter::Modem(Box::new(Modem::new(&config))))
        }
        MediumSpec::Trace { opportunities_ms } => {
            Some(Transmitter::Trace(Trace::new(opportunities_ms)))
        }
        MediumSpec::WifiG { .. }
        | MediumSpec::WifiN { .. }
        | MediumSpec::HomeplugAv { .. }
        | MediumSpec::EthernetHub { .. }
        | MediumSpec::Tunnel { .. } => None,
    }
}

/// The place in front of a tunnel's stream.
fn stream(scenario: &Scenario, label: &str, from_server: bool) -> Option<Place> {
    let flow = scenario.flows.iter().position(|flow| flow.label == label)?;
    let Application::Tunnel { header_bytes } = scenario.flows[flow].application else {
        return None;
    };
    Some(Place::Stream { flow, from_server, header_bytes })
}

/// A medium of the shared kinds, for stations at these nodes.
fn shared(medium: &MediumSpec, nodes: &[&str], seed: u64, name: &str) -> Option<Medium> {
    let stations = nodes.len();
    match *medium {
        MediumSpec::Adsl { .. }
        | MediumSpec::Modem { .. }
        | MediumSpec::Trace { .. }
        | MediumSpec::Tunnel { .. } => None,
        MediumSpec::EthernetHub {
            background_stations,
            background_load,
            ref full_duplex,
            ring_packets: _,
        } => {
            let station = |node: &String| nodes.iter().position(|name| name == node);
            let config = ethernet::Config {
                background_stations: background_stations as usize,
                background_load,
                full_duplex: full_duplex.as_ref().and_then(station),
            };
            Some(Medium::Ethernet(Box::new(Ethernet::new(&config, stations, seed, name))))
        }
        MediumSpec::WifiG { rate_bps, slot, protection, frame_error, ring_packets: _ } => {
            let config = wifi_g::Config {
                rate_mbps: rate_bps / 1_000_000,
                slot: match slot {
                    WifiSlot::Short => wifi_g::Slot::Short,
                    WifiSlot::Long => wifi_g::Slot::Long,
                },
                protection: match protection {
                    WifiProtection::Off => wifi_g::Protection::Off,
                    WifiProtection::ShortPreamble => wifi_g::Protection::ShortPreamble,
                    WifiProtection::LongPreamble => wifi_g::Protection::LongPreamble,
                },
                frame_error,
            };
            Some(Medium::Dcf(Box::new(Dcf::wifi_g(&config, stations, seed, name))))
        }
        MediumSpec::WifiN {
            mcs,
            width_mhz,
            short_guard,
            band,
            aggregate_packets,
            aggregate_bytes,
            air_time_ns,
            frame_error,
            ring_packets: _,
        } => {
            let config = wifi_n::Config {
                mcs: mcs.min(u32::from(wifi_n::MCS_MAX)) as u8,
                wide_40mhz: width_mhz == 40,
                short_guard,
                band: match band {
                    WifiBand::Ghz2 => wifi_n::Band::Ghz2,
                    WifiBand::Ghz5 => wifi_n::Band::Ghz5,
                },
                frames_max: aggregate_packets as usize,
                bytes_max: u64::from(aggregate_bytes),
                air_time_max: Duration::from_nanos(air_time_ns),
                frame_error,
            };
            Some(Medium::Dcf(Box::new(Dcf::wifi_n(&config, stations, seed, name))))
        }
        MediumSpec::HomeplugAv {
            phy_bps,
            efficiency,
            burst_ns,
            beacon_ns,
            beacon_period_ns,
            ring_packets: _,
        } => {
            let config = homeplug::Config {
                phy_bps,
                efficiency,
                payload_max: Duration::from_nanos(burst_ns),
                beacon: Duration::from_nanos(beacon_ns),
                beacon_period: Duration::from_nanos(beacon_period_ns),
            };
            Some(Medium::HomePlug(Box::new(HomePlug::new(&config, stations, seed, name))))
        }
    }
}
