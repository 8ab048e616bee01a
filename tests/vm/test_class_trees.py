"""Class trees of validation/trees on a real kernel beside the simulator."""

from __future__ import annotations

from typing import Any

import pytest

from dragstrip.engines.sim import simulate
from dragstrip.engines.vm import emulate as vm
from dragstrip.studies.validation.both import lengthened
from tools.tree_agreement import figures_of, trees

pytestmark = pytest.mark.usefixtures("linux")


def of(name: str, seconds: int) -> dict[str, Any]:
    """The first seconds of a tree's scenario."""
    (tree,) = [tree for tree in trees(name) if tree.name == name]
    return {**tree.scenario, "duration_ns": seconds * 10**9}


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
    recording = vm.emulate(scenario)
    kernel = figures_of(recording)
    path = lengthened(scenario, recording.provenance["verified"]["idle_rtt_ns"])
    simulator = figures_of(simulate(path))
    assert simulator.goodputs == pytest.approx(kernel.goodputs, rel=tolerance, abs=0.02)
    assert simulator.drops == pytest.approx(kernel.drops, rel=0.15, abs=5)
