"""Class trees of validation/trees on a real kernel beside the simulator."""

from __future__ import annotations

from typing import Any

import pytest

from dragstrip.engines import named
from dragstrip.engines.sim import simulate
from dragstrip.engines.vm import emulate as vm
from dragstrip.studies.validation.both import lengthened
from tools.tree_agreement import figures_of, trees

from .conftest import race

pytestmark = pytest.mark.usefixtures("linux")


def of(name: str, seconds: int) -> dict[str, Any]:
    """The first seconds of a tree's scenario."""
    (tree,) = [tree for tree in trees(name) if tree.name == name]
    return {**tree.scenario, "duration_ns": seconds * 10**9}


def test_a_tree_that_drops_arp_knows_its_neighbours() -> None:
    """drr has no class for what no filter takes: `compare` begins with unknown neighbours elsewhere."""
    queue = (
        "tc qdisc add root handle 1: drr; tc class add classid 1:1 drr; "
        "tc filter add parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff classid 1:1"
    )
    recording = vm.emulate(race("reno", queue=queue))
    assert "idle_rtt_ns" in recording.provenance["verified"], "pings were dropped, which is no fault"
    assert not recording.provenance["verified"]["idle_rtt_ns"]
    assert recording["flows"]["bytes_received"].to_pylist()[0] > 1_000_000


@pytest.mark.parametrize(
    ("name", "seconds", "tolerance"),
    [
        ("htb-three-levels", 4, 0.01),  # borrowing through inner classes; datagrams
        ("prio-tos", 4, 0.02),  # in the line's own htb; priomap
        ("openwrt-qos-scripts", 6, 0.05),  # hfsc, filters by mark
        ("police-continue", 4, 0.03),  # a policer that asks the next filter
    ],
)
def test_a_tree_shares_as_in_the_simulator(name: str, seconds: int, tolerance: float) -> None:
    scenario = of(name, seconds)
    for refusal in named("vm").refusals(scenario, {}):
        pytest.skip(refusal.expected)  # a kernel that an earlier version took in
    recording = vm.emulate(scenario)
    kernel = figures_of(recording)
    path = lengthened(scenario, recording.provenance["verified"]["idle_rtt_ns"])
    simulator = figures_of(simulate(path))
    assert simulator.goodputs == pytest.approx(kernel.goodputs, rel=tolerance, abs=0.02)
    assert simulator.drops == pytest.approx(kernel.drops, rel=0.15, abs=5)
