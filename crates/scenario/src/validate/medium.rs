//! Media: their settings, and the links that name them.

use super::tunnel;
use crate::media::{MediumSpec, ModemProtocol};
use crate::routing::Topology;
use crate::types::Scenario;
use dragstrip_units::suggest;
use dragstrip_units::{DURATION_MAX_NS, Report};

/// A full packet's 32 cells in a second: an ADSL line below that is a mistake.
const ADSL_BPS_MIN: u64 = 32 * 53 * 8;
/// The first HomePlug AV adapters' raw rate.
const HOMEPLUG_BPS_MAX: u64 = 200_000_000;
/// One packet of 1500 bytes within the longest burst needs at least this.
const HOMEPLUG_BPS_MIN: u64 = 1_000_000;
/// The block ACK's bitmap.
const AGGREGATE_MAX: u32 = 64;
/// V.34 in its last version.
const MODEM_BPS_MAX: u64 = 33_600;
const MODEM_BPS_STEP: u64 = 2_400;
/// The fastest and the slowest setting of a 16550's serial port.
const DTE_BPS: std::ops::RangeInclusive<u64> = 1_200..=115_200;
/// V.42's N401 and MNP 4's block in their largest forms.
const BLOCK_BYTES: std::ops::RangeInclusive<u32> = 8..=1_024;
/// No text compresses better.
const COMPRESSION_MAX: f64 = 20.0;
/// A segment with more would be several.
const BACKGROUND_STATIONS_MAX: u32 = 1_000;
const BACKGROUND_LOAD_MAX: f64 = 10.0;
/// More would be no driver's.
const RING_MAX: u32 = 10_000;
/// The rates of ERP-OFDM (IEEE 802.11-2007, clause 17.3.2.2).
const WIFI_G_MBPS: [u64; 8] = [6, 9, 12, 18, 24, 36, 48, 54];
const MBPS: u64 = 1_000_000;
/// Two streams' highest modulation and coding scheme (IEEE 802.11n-2009, clause 20.6).
const MCS_MAX: u32 = 15;

pub(super) fn check(scenario: &Scenario, topology: &Topology, report: &mut Report) {
    for (index, link) in scenario.links.iter().enumerate() {
        let Some(name) = &link.medium else { continue };
        if !scenario.media.contains_key(name) {
            let names: Vec<&str> = scenario.media.keys().map(String::as_str).collect();
            let expected = suggest(name, names.iter().copied(), "the name of an entry of media");
            report.add(format!("links[{index}].medium"), format!("{name:?}"), expected);
        }
        if let Some(bps) = link.rate_bps {
            let expected = "no rate beside a medium, which has its own";
            report.add(format!("links[{index}].rate_bps"), bps, expected);
        }
        if link.overhead_bytes > 0 {
            let expected = "0 beside a medium, which has its own overhead";
            report.add(format!("links[{index}].overhead_bytes"), link.overhead_bytes, expected);
        }
    }
    for (name, medium) in &scenario.media {
        if !scenario.links.iter().any(|link| link.medium.as_ref() == Some(name)) {
            report.add(format!("media.{name}"), "used by no link", "a medium that a link names");
        }
        check_one(scenario, name, medium, &format!("media.{name}"), report);
        if let MediumSpec::Tunnel { flow, near } = medium {
            tunnel::check(scenario, topology, (name, flow, near), report);
        }
    }
    tunnel::check_flows(scenario, report);
}

fn check_one(scenario: &Scenario, name: &str, medium: &MediumSpec, at: &str, report: &mut Report) {
    match medium {
        MediumSpec::Adsl { rate_bps, encapsulation: _, interleaving_ns } => {
            report.rate(format!("{at}.rate_bps"), *rate_bps);
            if *rate_bps > 0 {
                report.at_least(format!("{at}.rate_bps"), *rate_bps, ADSL_BPS_MIN);
            }
            report.time(format!("{at}.interleaving_ns"), *interleaving_ns, 0);
        }
        MediumSpec::WifiG { rate_bps, slot: _, protection: _, frame_error, ring_packets } => {
            if !WIFI_G_MBPS.iter().any(|mbps| mbps * MBPS == *rate_bps) {
                let expected = "a rate of 802.11g: 6, 9, 12, 18, 24, 36, 48 or 54 Mbit/s";
                report.add(format!("{at}.rate_bps"), rate_bps, expected);
            }
            check_error(*frame_error, at, report);
            check_ring(*ring_packets, at, report);
        }
        MediumSpec::WifiN { .. } => check_wifi_n(medium, at, report),
        MediumSpec::HomeplugAv { .. } => check_homeplug(medium, at, report),
        MediumSpec::Modem { .. } => check_modem(medium, at, report),
        MediumSpec::EthernetHub { .. } => check_hub(scenario, name, medium, at, report),
        MediumSpec::Trace { opportunities_ms } => check_trace(opportunities_ms, at, report),
        // It needs the whole picture.
        MediumSpec::Tunnel { .. } => {}
    }
}

fn check_modem(medium: &MediumSpec, at: &str, report: &mut Report) {
    let MediumSpec::Modem {
        rate_bps,
        protocol,
        block_bytes,
        compression_ratio,
        van_jacobson: _,
        dte_bps,
        buffer_bytes,
        processing_ns,
    } = medium
    else {
        return;
    };
    if !(MODEM_BPS_STEP..=MODEM_BPS_MAX).contains(rate_bps) || rate_bps % MODEM_BPS_STEP != 0 {
        let expected = "a rate of V.34: 2400, 4800 ... 33600 bit/s, in steps of 2400";
        report.add(format!("{at}.rate_bps"), rate_bps, expected);
    }
    if !BLOCK_BYTES.contains(block_bytes) {
        report.add(format!("{at}.block_bytes"), block_bytes, "from 8 to 1024");
    }
    let compresses = match protocol {
        ModemProtocol::Mnp5 | ModemProtocol::V42bis => true,
        ModemProtocol::Async | ModemProtocol::Mnp4 | ModemProtocol::V42 => false,
    };
    if !(1.0..=COMPRESSION_MAX).contains(compression_ratio) {
        report.add(format!("{at}.compression_ratio"), compression_ratio, "a number from 1 to 20");
    } else if *compression_ratio > 1.0 && !compresses {
        let expected = "1, or a protocol that compresses: mnp5 or v42bis";
        report.add(format!("{at}.compression_ratio"), compression_ratio, expected);
    }
    if !DTE_BPS.contains(dte_bps) {
        report.add(format!("{at}.dte_bps"), dte_bps, "from 1200 to 115200 bit/s");
    }
    report.at_least(format!("{at}.buffer_bytes"), *buffer_bytes, 1);
    report.time(format!("{at}.processing_ns"), *processing_ns, 0);
}

fn check_hub(scenario: &Scenario, name: &str, medium: &MediumSpec, at: &str, report: &mut Report) {
    let MediumSpec::EthernetHub { background_stations, background_load, full_duplex, ring_packets } =
        medium
    else {
        return;
    };
    let stations = format!("{at}.background_stations");
    report.at_most(stations.clone(), *background_stations, BACKGROUND_STATIONS_MAX);
    if !(0.0..=BACKGROUND_LOAD_MAX).contains(background_load) {
        report.add(format!("{at}.background_load"), background_load, "a number from 0 to 10");
    } else if (*background_load > 0.0) != (*background_stations > 0) {
        let value = format!("{background_stations} with a load of {background_load}");
        report.add(stations, value, "stations and a load above 0, or neither");
    }
    if let Some(node) = full_duplex {
        let mut links = scenario.links.iter().filter(|link| link.medium.as_deref() == Some(name));
        if !links.any(|link| link.from == *node) {
            let expected = "a node that sends on this hub";
            report.add(format!("{at}.full_duplex"), format!("{node:?}"), expected);
        }
    }
    check_ring(*ring_packets, at, report);
}

fn check_trace(opportunities_ms: &[u64], at: &str, report: &mut Report) {
    let at = format!("{at}.opportunities_ms");
    let Some(last) = opportunities_ms.last() else {
        report.add(at, "an empty list", "at least one opportunity");
        return;
    };
    let decreasing = opportunities_ms.windows(2).position(|pair| pair[0] > pair[1]);
    if let Some(before) = decreasing {
        let expected = format!("at least {}, the one before", opportunities_ms[before]);
        report.add(format!("{at}[{}]", before + 1), opportunities_ms[before + 1], expected);
    } else if *last == 0 {
        let expected = "above 0 at the end, where the trace begins again";
        report.add(format!("{at}[{}]", opportunities_ms.len() - 1), last, expected);
    } else {
        report.at_most(at, *last, DURATION_MAX_NS / 1_000_000);
    }
}

fn check_wifi_n(medium: &MediumSpec, at: &str, report: &mut Report) {
    let MediumSpec::WifiN {
        mcs,
        width_mhz,
        short_guard: _,
        band: _,
        aggregate_packets,
        aggregate_bytes,
        air_time_ns,
        frame_error,
        ring_packets,
    } = medium
    else {
        return;
    };
    report.at_most(format!("{at}.mcs"), *mcs, MCS_MAX);
    if ![20, 40].contains(width_mhz) {
        report.add(format!("{at}.width_mhz"), width_mhz, "20 or 40");
    }
    report.at_least(format!("{at}.aggregate_packets"), *aggregate_packets, 1);
    report.at_most(format!("{at}.aggregate_packets"), *aggregate_packets, AGGREGATE_MAX);
    report.at_least(format!("{at}.aggregate_bytes"), *aggregate_bytes, 1);
    report.at_most(format!("{at}.aggregate_bytes"), *aggregate_bytes, u32::from(u16::MAX));
    report.time(format!("{at}.air_time_ns"), *air_time_ns, 1);
    check_error(*frame_error, at, report);
    check_ring(*ring_packets, at, report);
}

fn check_homeplug(medium: &MediumSpec, at: &str, report: &mut Report) {
    let MediumSpec::HomeplugAv {
        phy_bps,
        efficiency,
        burst_ns,
        beacon_ns,
        beacon_period_ns,
        ring_packets,
    } = medium
    else {
        return;
    };
    report.at_least(format!("{at}.phy_bps"), *phy_bps, HOMEPLUG_BPS_MIN);
    report.at_most(format!("{at}.phy_bps"), *phy_bps, HOMEPLUG_BPS_MAX);
    if !(0.01..=1.0).contains(efficiency) {
        report.add(format!("{at}.efficiency"), efficiency, "a number from 0.01 to 1");
    }
    report.time(format!("{at}.burst_ns"), *burst_ns, 46_520);
    report.time(format!("{at}.beacon_ns"), *beacon_ns, 0);
    // A burst, an access and the beacons have to fit.
    let least = beacon_ns.saturating_add(*burst_ns).saturating_add(3_000_000);
    report.time(format!("{at}.beacon_period_ns"), *beacon_period_ns, least);
    check_ring(*ring_packets, at, report);
}

fn check_error(share: f64, at: &str, report: &mut Report) {
    if !(0.0..1.0).contains(&share) {
        report.add(format!("{at}.frame_error"), share, "a number from 0 to below 1");
    }
}

fn check_ring(packets: u32, at: &str, report: &mut Report) {
    report.at_least(format!("{at}.ring_packets"), packets, 1);
    report.at_most(format!("{at}.ring_packets"), packets, RING_MAX);
}
