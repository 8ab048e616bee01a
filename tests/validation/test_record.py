"""Cells by name, and a recording of ours in the exchange format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dragstrip.engines.sim import simulate
from dragstrip.errors import BadInputError
from dragstrip.validation import record as record_module
from dragstrip.validation.kernel import KernelRun, load_all
from dragstrip.validation.record import BOTTLENECK, cell, content
from dragstrip.validation.traces import of_kernel, of_recording
from dragstrip.validation.translate import machine, scenario

RECORDINGS = Path(__file__).parents[2] / "validation" / "linux-6.1" / "recordings"


def test_a_name_says_what_was_recorded_under_it() -> None:
    for run in load_all(RECORDINGS):
        made = cell(run.case, run.seed)
        for field in ("duration_s", "rtt_ms", "bottleneck", "fwd_netem", "sysctl"):
            assert made.get(field) == run.scenario.get(field), f"{run.name}: {field}"
        assert [flow["cc"] for flow in made["flows"]] == [flow["cc"] for flow in run.flows]


def test_two_flows_have_hosts_of_their_own() -> None:
    assert [flow["src"] for flow in cell("b-10m-40ms-1bdp-cubic+reno")["flows"]] == ["s1", "s2"]


@pytest.mark.parametrize("name", ["", "10m-40ms", "b-10m-40ms-1bdp", "b-10m-40ms-1bdp-red-reno"])
def test_another_name_is_refused(name: str) -> None:
    with pytest.raises(BadInputError, match="a cell"):
        cell(name)


def test_the_exchange_format_holds_what_a_recording_holds() -> None:
    told = {**cell("b-2m-10ms-1bdp-reno"), "duration_s": 5}
    empty = {"scenario": told, "flows": [], "ping_series": {"t_s": [], "rtt_ms": []}}
    made = simulate(scenario(KernelRun("x", empty), nominal=True))
    counters = {"s1": {"TCPSackRecovery": 3, "TCPHPAcks": 9}}
    made.provenance.update(
        kernel={"package": "", "release": "6.1"},
        emulator="none",
        verified={"netstat": counters, "idle_rtt_ns": {"s1 to d": 10_019_000}, "cpu_idle_share": 1},
    )
    run = KernelRun("x", content(told, made))
    theirs, ours = of_kernel(run), of_recording(made, BOTTLENECK)
    for name in ("cwnd", "ssthresh", "srtt_ms", "retransmits"):
        np.testing.assert_allclose(getattr(theirs.flows[0], name), getattr(ours.flows[0], name))
    np.testing.assert_allclose(theirs.ping_ms, ours.ping_ms)
    np.testing.assert_allclose(theirs.queue_bytes, ours.queue_bytes)
    assert theirs.goodput_bps == pytest.approx(ours.goodput_bps)
    assert theirs.recoveries == 3
    assert run.content["netstat"] == {"s1": {"TCPSackRecovery": 3}}
    # Its own pings tell what the idle path adds, where they met one: nothing in a simulator.
    assert machine(run).idle_ns == 0
    silent = KernelRun("x", {**run.content, "ping_series": {"t_s": [], "rtt_ms": []}})
    assert machine(silent).idle_ns == 19_000
    assert machine(run).late_ns == 0


def test_a_recording_that_is_there_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def recorded(run: KernelRun) -> KernelRun:
        made.append(run.name)
        return KernelRun(run.name, {**run.content, "queue_series": {}})

    monkeypatch.setattr(record_module, "recorded", recorded)
    monkeypatch.setattr("dragstrip.engines.vm.engine.VirtualMachine.prepare", lambda *_: None)
    cells = ["b-2m-10ms-1bdp-reno"]
    first = record_module.record(cells, 2, tmp_path, workers=1)
    before = first[0].read_bytes()
    again = record_module.record(cells, 3, tmp_path, workers=1)
    assert made == ["b-2m-10ms-1bdp-reno", "b-2m-10ms-1bdp-reno-seed2", "b-2m-10ms-1bdp-reno-seed3"]
    assert again[:2] == first
    assert again[0].read_bytes() == before
    assert sorted(tmp_path.iterdir()) == sorted(again)
