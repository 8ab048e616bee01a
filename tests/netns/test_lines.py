"""Links in the simulator's code on this machine's kernel, in real time."""

from __future__ import annotations

from typing import Any

import pytest

from dragstrip.engines.agent.limits import late_lines
from dragstrip.engines.netns import ENGINE
from dragstrip.engines.sim import simulate
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand

TRIES = 3
"""The machine may be busy once."""


def scenario(**options: Any) -> dict[str, Any]:
    made: dict[str, Any] = expand(compare(["reno"], duration="3s", **options))[0].scenario
    return made


@pytest.mark.usefixtures("machine")
def test_a_medium_serves_this_machine_as_it_serves_the_simulator() -> None:
    dsl = scenario(path="home DSL")
    assert ENGINE.refusals(dsl, {}) == []
    (expected,) = simulate(dsl)["flows"]["bytes_received"].to_pylist()
    for _ in range(TRIES):
        recording = ENGINE.run(dsl, {})
        (line,) = recording.provenance["verified"]["lines"]
        assert line["links"] == ["r-d", "d-r"]
        assert all(direction["packets_out"] > 100 for direction in line["directions"])
        assert "r-d" in recording["queues"]["link"].to_pylist()
        (received,) = recording["flows"]["bytes_received"].to_pylist()
        if received == pytest.approx(expected, rel=0.05) or recording.provenance["verified"]["limits"]:
            return
    pytest.fail(f"{received} bytes in 3 s on an idle machine, {expected} in the simulator")


def test_what_this_kernel_lacks_can_be_carried(machine: dict[str, Any]) -> None:
    lacking = [kind for kind in ("fq_codel", "cake", "netem") if kind in machine["lacks"]]
    if not lacking:
        pytest.skip("this kernel has fq_codel, cake and netem")
    path = scenario(rate="5mbit", rtt="40ms", queue="fq_codel")
    (refusal,) = ENGINE.missing([path], {})
    assert refusal is not None
    assert lacking[0] in refusal.expected or "netem" in refusal.expected
    options = {"lines": "lacking"}
    assert ENGINE.missing([path], options) == [None]
    verified = ENGINE.run(path, options).provenance["verified"]
    assert verified["idle_rtt_ns"]["s1 to d"] >= 40_000_000


def test_late_packets_mark_a_run() -> None:
    def direction(p99_ns: int, lost: int) -> dict[str, Any]:
        return {"lateness": {"p99_ns": p99_ns}, "device_drops": lost, "refused": 0}

    line = {"links": ["r-d", "d-r"], "directions": [direction(2_000_000, 0), direction(900_000, 3)]}
    assert list(late_lines({"lines": [line]})) == [
        "packets left link r-d up to 2.0 ms late (99th percentile)",
        "link d-r lost 3 packets that no queue saw",
    ]
    assert list(late_lines({})) == []
