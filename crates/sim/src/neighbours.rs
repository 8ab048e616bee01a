//! Neighbours whose addresses are not known yet: which ARP exchanges a run begins with.

use crate::network::Resolution;
use dragstrip_scenario::{NetemSpec, Scenario, Topology};
use dragstrip_units::Duration;
use std::collections::BTreeMap;

/// The ARP exchanges that the first packets will wait for; those that take no time are left out.
pub(crate) fn resolutions(
    scenario: &Scenario,
    topology: &Topology<'_>,
    of_link: &[Vec<u32>],
) -> BTreeMap<u32, Resolution> {
    let mut resolutions = BTreeMap::new();
    if !scenario.cold_arp {
        return resolutions;
    }
    let delay = |index: usize| {
        let link = &scenario.links[index];
        // A single answer in flight waits for a slot.
        let netem = |netem: &NetemSpec| netem.delay_ns + netem.slot_wait_ns();
        link.delay_ns + link.netem.as_deref().map_or(0, netem)
    };
    for index in 0..scenario.links.len() {
        let (from, to) = topology.ends(index);
        let back = topology.link_between(to, from);
        let round_trip = delay(index) + back.map_or(0, delay);
        if round_trip > 0 {
            let resolution = Resolution {
                back: back.map(|link| of_link[link][0]),
                round_trip: Duration::from_nanos(round_trip),
            };
            resolutions.insert(of_link[index][0], resolution);
        }
    }
    resolutions
}
