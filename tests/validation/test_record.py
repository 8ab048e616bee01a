"""Cells by name, and a recording of ours in the exchange format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragstrip.engines.sim import simulate
from dragstrip.errors import BadInputError
from dragstrip.studies.validation import command, grid
from dragstrip.studies.validation import record as record_module
from dragstrip.studies.validation.cells import cell, held_out
from dragstrip.studies.validation.kernel import KernelRun, load_all
from dragstrip.studies.validation.record import BOTTLENECK, content
from dragstrip.studies.validation.traces import of_kernel, of_recording
from dragstrip.studies.validation.translate import machine, scenario

RECORDINGS = Path(__file__).parents[2] / "validation" / "linux-6.1" / "recordings"


def test_a_name_says_what_was_recorded_under_it() -> None:
    for run in load_all(RECORDINGS):
        made = cell(run.case, run.seed)
        for field in ("duration_s", "rtt_ms", "bottleneck", "fwd_netem", "sysctl", "gso"):
            assert made.get(field) == run.scenario.get(field), f"{run.name}: {field}"
        for wanted, was in zip(made["flows"], run.scenario["flows"], strict=True):
            for field in ("start_s", "extra_rtt_ms"):
                assert wanted.get(field, 0) == was.get(field, 0), f"{run.name}: {field}"
        assert [flow["cc"] for flow in made["flows"]] == [flow["cc"] for flow in run.flows]


def test_two_flows_have_hosts_of_their_own() -> None:
    assert [flow["src"] for flow in cell("b-10m-40ms-1bdp-cubic+reno")["flows"]] == ["s1", "s2"]


def test_a_cell_of_the_wider_grid_says_the_rest() -> None:
    plain, bare = cell("w-10m-20ms-1bdp-cubic"), cell("w-10m-20ms-1bdp-nosack-norack-nots-nogso-7s-cubic")
    changed = {"tcp_sack": 0, "tcp_recovery": 0, "tcp_timestamps": 0}
    assert bare["sysctl"] == {**plain["sysctl"], **{f"net.ipv4.{name}": off for name, off in changed.items()}}
    assert (plain.get("gso"), bare["gso"]) == (None, "off")
    assert (plain["duration_s"], bare["duration_s"]) == (30, 7)
    stock = cell("w-10m-20ms-1bdp-stockbuf-cubic")["sysctl"]
    assert stock["net.ipv4.tcp_wmem"] == "4096 16384 4194304"
    assert [f.get("start_s", 0) for f in cell("w-10m-20ms-1bdp-late5-reno+bbrx2")["flows"]] == [0, 5, 10]
    ten = cell("w-10m-20ms-1bdp-spread10-renox10")
    assert [flow["src"] for flow in ten["flows"]] == [f"s{n}" for n in range(1, 11)]
    assert [flow.get("extra_rtt_ms", 0) for flow in ten["flows"]] == [10 * n for n in range(10)]


def test_a_cell_says_its_discipline() -> None:
    def leaf(words: str) -> str:
        return str(cell(f"w-10m-40ms-4bdp-{words}-20s-reno")["bottleneck"]["qdisc"])

    assert leaf("red") == "red limit 200000 avpkt 1000 bandwidth 10000kbit"
    assert leaf("red-ecn") == "red limit 200000 avpkt 1000 bandwidth 10000kbit ecn"
    assert leaf("choke") == "choke limit 132 bandwidth 10000kbit"
    assert (leaf("fqpie-ecn"), leaf("cake-ecn"), leaf("sfq")) == ("fq_pie ecn", "cake", "sfq")
    asked = [cell(f"w-10m-40ms-4bdp-cake{ecn}-reno")["sysctl"]["net.ipv4.tcp_ecn"] for ecn in ("", "-ecn")]
    assert asked == [0, 1]


def test_repeats_behind_a_discipline_that_draws_have_one_path() -> None:
    drawn, not_drawn = "w-10m-40ms-4bdp-pie-cubic+reno", "w-10m-40ms-4bdp-cake-cubic+reno"
    assert cell(drawn, 3)["rtt_ms"] == cell(drawn)["rtt_ms"]
    assert cell(not_drawn, 3)["rtt_ms"] == cell(not_drawn)["rtt_ms"] + 0.04


def test_the_rest_reaches_the_path() -> None:
    def made(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        empty = {"scenario": cell(name), "flows": [], "ping_series": {"t_s": [], "rtt_ms": []}}
        spec = scenario(KernelRun(name, empty), nominal=True)
        return spec, {part["name"]: part for part in (*spec["nodes"], *spec["links"])}

    spec, parts = made("w-10m-20ms-1bdp-nogso-late5-spread10-reno+cubic+reno")
    assert [parts[name]["delay_ns"] for name in ("d-r", "r-s1", "r-s2", "r-s3", "s3-r")] == [
        20_000_000,
        0,
        10_000_000,
        20_000_000,
        0,
    ]
    assert [flow["start_ns"] for flow in spec["flows"]] == [0, 5_000_000_000, 10_000_000_000]
    assert {parts[name]["gso"] for name in ("s1", "d")} == {"off"}
    assert {made("w-10m-20ms-1bdp-reno")[1][name]["gso"] for name in ("s1", "d")} == {"auto"}


def test_a_third_of_the_wider_grid_is_held_out_by_its_names() -> None:
    described = grid.read(None)[0].described
    held = [name for name in described if held_out(name)]
    assert 0.28 < len(held) / len(described) < 0.39
    # Which they are was settled before any was recorded.
    assert not held_out("w-1m-20ms-4bdp-bbr")
    assert held_out("w-1m-20ms-4bdp-reno")
    assert not any(held_out(run.case) for run in load_all(RECORDINGS, "b-*"))


def test_what_is_described_is_four_hundred_cases_and_again_only_for_more_recordings() -> None:
    described: dict[str, int] = {}
    for part in grid.read(None)[0].cells:
        for name in part.names:
            assert part.seeds > described.get(name, 0), f"{part.what}: {name}"
            described[name] = part.seeds
    assert len(described) + len({run.case for run in load_all(RECORDINGS, "b-*")}) >= 400


@pytest.mark.parametrize("name", ["", "10m-40ms", "b-10m-40ms-1bdp", "b-10m-40ms-1bdp-hfsc-reno"])
def test_another_name_is_refused(name: str) -> None:
    with pytest.raises(BadInputError, match="a cell"):
        cell(name)


def test_the_exchange_format_holds_what_a_recording_holds() -> None:
    told = {**cell("w-2m-10ms-1bdp-nots-reno"), "duration_s": 5}
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
    assert run.content["flows"][0]["snd_mss"] == 1460
    assert run.idle_share == 1
    # Its own pings tell what the idle path adds, where they met one: nothing in a simulator.
    assert machine(run).idle_ns == 0
    silent = KernelRun("x", {**run.content, "ping_series": {"t_s": [], "rtt_ms": []}})
    assert machine(silent).idle_ns == 19_000
    assert machine(run).late_ns == 0


def test_a_recording_that_is_there_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def recorded(run: KernelRun, _: object, progress: object) -> KernelRun:
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


def test_what_is_described_is_recorded_in_its_order_and_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def recorded(run: KernelRun, _: object, progress: object) -> KernelRun:
        if len(made) == 3:
            raise KeyboardInterrupt
        made.append(run.name)
        return KernelRun(run.name, {**run.content, "queue_series": {}})

    monkeypatch.setattr(record_module, "recorded", recorded)
    monkeypatch.setattr("dragstrip.engines.vm.engine.VirtualMachine.prepare", lambda *_: None)
    described = tmp_path / "grid.toml"
    described.write_text(
        'title = "t"\nkernel = "k"\nrecordings = "recordings"\n'
        '[[cells]]\nwhat = "two"\npaths = ["1m-20ms-4bdp"]\nalgorithms = ["reno", "bbr"]\nseeds = 2\n'
        '[[cells]]\nwhat = "one"\npaths = ["1m-20ms-1bdp"]\nalgorithms = ["reno"]\n'
    )
    folder = tmp_path / "recordings"
    with pytest.raises(KeyboardInterrupt):
        command.record_described(described, folder, 1, lambda _: None)
    assert len(list(folder.iterdir())) == 3
    # A case that lacks a seed is not compared, and named.
    its = command.stored(described, None)
    assert {run.case for run in (*its.open, *its.held_out)} == {"w-1m-20ms-4bdp-reno"}
    assert its.missing == {"w-1m-20ms-4bdp-bbr": (1, 2), "w-1m-20ms-1bdp-reno": (0, 1)}
    before, made[:] = made[:], []
    command.record_described(described, folder, 1, lambda _: None)
    assert [*before, *made] == [
        "w-1m-20ms-4bdp-reno",
        "w-1m-20ms-4bdp-reno-seed2",
        "w-1m-20ms-4bdp-bbr",
        "w-1m-20ms-4bdp-bbr-seed2",
        "w-1m-20ms-1bdp-reno",
    ]
    assert not command.stored(described, None).missing


def test_a_described_cell_that_is_none_is_refused(tmp_path: Path) -> None:
    described = tmp_path / "grid.toml"
    described.write_text(
        'title = "t"\nkernel = "k"\nrecordings = "r"\n[[cells]]\nwhat = "x"\npaths = ["10m-fast"]\n'
    )
    with pytest.raises(BadInputError, match="w-10m-fast-bbr"):
        grid.read(described)
