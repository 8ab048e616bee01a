"""Links that no kernel has, in the simulator's code between a kernel's hosts."""

from __future__ import annotations

from typing import Any

import pytest

from dragstrip.engines import named
from dragstrip.engines.sim import simulate
from dragstrip.engines.vm import emulate as vm
from dragstrip.errors import BadInputError
from dragstrip.model.recording import Recording
from tools.media_agreement import cases
from tools.tree_agreement import figures_of

from .conftest import race

pytestmark = pytest.mark.usefixtures("linux")


def case(key: str, seconds: int) -> dict[str, Any]:
    """The first seconds of a case of validation/media."""
    (one,) = [one for one in cases(key.split()[0]) if one.key == key]
    return {**one.scenario, "duration_ns": seconds * 10**9}


def last_rows(recording: Recording) -> dict[str, dict[str, Any]]:
    """Each queue's last row."""
    return {row["link"]: row for row in recording["queues"].to_pylist()}


@pytest.mark.parametrize(
    ("key", "seconds", "tolerance"),
    [
        ("home-dsl cubic", 8, 0.01),
        ("adsl cubic", 12, 0.01),
        ("wifi-g cubic", 4, 0.03),
        ("cellular cubic", 6, 0.02),
        ("every reno", 5, 0.03),
        ("two-stations cubic", 6, 0.15),
    ],
)
def test_a_medium_serves_a_kernel_as_it_serves_the_simulator(
    key: str, seconds: int, tolerance: float
) -> None:
    scenario = case(key, seconds)
    assert named("vm").refusals(scenario, {}) == []
    kernel, simulator = vm.emulate(scenario), simulate(scenario)
    assert sum(figures_of(kernel).goodputs) == pytest.approx(
        sum(figures_of(simulator).goodputs), rel=tolerance
    )
    rows, model = last_rows(kernel), last_rows(simulator)
    assert set(rows) >= {name for name in model if name.startswith(("r-d", "ap-"))}
    verified = kernel.provenance["verified"]
    for line in verified["lines"]:
        assert set(line["links"]) <= {link["name"] for link in scenario["links"]}
        for link, direction in zip(line["links"], line["directions"], strict=True):
            assert direction["device_drops"] == direction["refused"] == 0
            assert 0 < direction["lateness"]["p99_ns"] < 1_000_000, link
            waiting = rows[link]["backlog_packets"] if link in rows else 0
            drops = sum(direction["drops"].values())
            assert direction["packets_in"] >= direction["packets_out"] + drops + waiting
            if link in rows:
                # The queue's own count and that of the packets that went in are of the same packets.
                assert rows[link]["enqueued"] <= direction["packets_in"]
                assert rows[link]["dropped"] <= drops


def test_the_same_request_gives_the_same_bytes() -> None:
    scenario = case("wifi-g cubic", 2)
    shas = {vm.emulate(scenario).provenance["recording_sha256"] for _ in range(2)}
    assert len(shas) == 1


def test_a_change_of_a_carried_link_takes_place_at_its_time() -> None:
    """40 ms, of 4 and later 1 Mbit/s, both by the kernel's own links and by the simulator's."""
    scenario = race("cubic", duration="6s", rate="4mbit")
    scenario["changes"] = [{"at_ns": 3_000_000_000, "link": "r-d", "rate_bps": 1_000_000}]
    recordings = [vm.emulate(scenario), vm.emulate(scenario, words={"lines": "all"})]
    for recording in recordings:
        rows = recording["received"].to_pylist()
        second = [
            sum(row["wire_bytes"] for row in rows if at < row["time_ns"] / 1e9 <= at + 1) for at in (1, 4)
        ]
        assert second[0] * 8e-6 == pytest.approx(4, rel=0.03)
        assert second[1] * 8e-6 == pytest.approx(1, rel=0.05)
    own, carried = recordings
    assert "lines" not in own.provenance["verified"]
    assert [line["links"] for line in carried.provenance["verified"]["lines"]] == [["r-d", "d-r"]]


def test_marks_of_a_carried_queue_reach_the_sender() -> None:
    scenario = race("cubic", duration="4s", queue="fq_codel ecn")
    for node in scenario["nodes"]:
        if node["kind"] == "host":
            node["sysctl"] = {**node.get("sysctl", {}), "net.ipv4.tcp_ecn": "1"}
    recording = vm.emulate(scenario, words={"lines": "all"})
    (flow,) = recording["flows"].to_pylist()
    assert last_rows(recording)["r-d"]["marked"] > 0
    assert (flow["retransmits"], flow["ecn_negotiated"]) == (0, True)
    assert flow["reductions"] > 0


def test_what_a_line_cannot_be_is_refused_by_the_link_s_name() -> None:
    tree = (
        "tc qdisc add root handle 1: drr; tc class add classid 1:1 drr; "
        "tc filter add parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff classid 1:1"
    )
    scenario = race("reno", queue=tree)
    options = {"lines": "all"}
    (refusal, *_) = named("vm").refusals(scenario, options)
    assert (refusal.field, refusal.value) == ("link r-d: queue", "a class tree")
    with pytest.raises(BadInputError, match="--engine-option lines"):
        named("vm").refusals(scenario, {"lines": "some"})
