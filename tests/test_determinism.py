"""The compiled extension gives the golden recording too, from one worker or two, however often.

The hash is `crates/sim/tests/determinism.rs`'s, which says how to renew it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragstrip import _core
from dragstrip.engines.sim import simulate
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment
from dragstrip.model.recording import read
from dragstrip.runs import Task, run_all

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def scenario() -> dict[str, Any]:
    made: dict[str, Any] = json.loads((GOLDEN / "recording.scenario.json").read_text())
    return made


@pytest.fixture(scope="module")
def golden() -> str:
    return (GOLDEN / "recording.sha256").read_text().strip()


def test_the_extension_gives_the_golden_recording_twice_in_a_row(
    scenario: dict[str, Any], golden: str
) -> None:
    text = json.dumps(scenario)
    assert [_core.Scenario(text).run()["sha256"] for _ in range(2)] == [golden, golden]


def test_progress_reports_change_nothing(scenario: dict[str, Any], golden: str) -> None:
    heard: list[int] = []
    recording = simulate(scenario, heard.append)
    assert recording.provenance["recording_sha256"] == golden
    assert len(heard) >= 9, "about once a simulated second"


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_give_the_golden_recording(
    scenario: dict[str, Any], golden: str, workers: int, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c")]
    outcomes = run_all([Task(scenario, folder) for folder in folders], workers=workers)
    assert [outcome.failure for outcome in outcomes] == ["", "", ""]
    hashes = [read(folder).provenance["recording_sha256"] for folder in folders]
    assert hashes == [golden] * 3


def test_another_seed_gives_another_recording(scenario: dict[str, Any], golden: str) -> None:
    assert _core.Scenario({**scenario, "seed": 1}).run()["sha256"] != golden


SUBSCRIBERS = [f"s{number}" for number in range(20)]
CROWD = {
    "duration": "300ms",
    "nodes": [
        {"name": "server", "kind": "host"},
        {"name": "core", "kind": "router"},
        {"name": "edge", "kind": "router"},
        *({"name": name, "kind": "host"} for name in SUBSCRIBERS),
    ],
    "links": [
        {"from": "server", "to": "core"},
        {"from": "core", "to": "edge", "rate": "10gbit", "delay": "5ms", "queue": "bfifo limit 6mb"},
        *(
            {"from": "edge", "to": name, "rate": "50mbit", "delay": "5ms", "queue": "fq_codel"}
            for name in SUBSCRIBERS
        ),
    ],
    "flows": [{"cc": "cubic", "count": 50, "sender": "server", "receiver": name} for name in SUBSCRIBERS],
    "probes": [{"from": "s3", "target": "server", "interval": "20ms"}],
}
"""A thousand flows, of which the simulator makes several parts where there are cores for them."""


@pytest.fixture(scope="module")
def crowd() -> str:
    return json.dumps(expand(Experiment.build(CROWD))[0].scenario)


def test_cores_change_nothing(crowd: str) -> None:
    hashes = [_core.Scenario(crowd).run(None, None, cores)["sha256"] for cores in (1, 2, 3, 4)]
    assert hashes == hashes[:1] * 4


def test_a_run_in_parts_reports_progress_and_can_be_ended(crowd: str) -> None:
    heard: list[int] = []
    whole = _core.Scenario(crowd).run(heard.append, None, 2)
    assert heard
    assert heard == sorted(heard)
    ended = _core.Scenario(crowd).run(lambda _: False, None, 2)
    assert ended["sha256"] != whole["sha256"]


def test_all_parts_of_a_run_stop_at_the_same_instant(crowd: str) -> None:
    def ended() -> str:
        answers = iter((True, True, False))
        sha256: str = _core.Scenario(crowd).run(lambda _: next(answers), None, 2)["sha256"]
        return sha256

    assert len({ended() for _ in range(20)}) == 1
