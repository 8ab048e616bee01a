"""The core of the page gives the bytes that the native one gives: the golden recording, every form of `compare`, random
experiments. Without Node or the compiled core these are skipped (`cargo page`).

DRAGSTRIP_IDENTITY=1000 tries so many random experiments.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragstrip import _core
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import PlannedRun, expand
from torture.pages.experiments import experiment

ROOT = Path(__file__).parents[2]
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "play"
COUNT = int(os.environ.get("DRAGSTRIP_IDENTITY", "40"))

BASE = {"rate": "5mbit", "rtt": "20ms", "queue": "bfifo limit 60kb", "duration": "2s"}
PROGRAMS = {file.stem: file.read_text() for file in (ROOT / "programs").glob("*.cc")}
# Every function that a machine might compute in a way of its own.
PROGRAMS["curved"] = """
state last = 0
on ack {
    let grown = log(1 + cwnd) * sqrt(acked) + cbrt(now + rtt) + exp(-srtt) + pow(1 + min_rtt, 3.7)
    if limited { cwnd = cwnd + acked * abs(grown - last) / (3 + cwnd) }
    last = grown
}
on loss { ssthresh = max(pow(cwnd, 0.9), 2) }
"""
FORMS: dict[str, dict[str, Any]] = {
    "each-alone": {**BASE, "algorithms": ["reno", "cubic", "vegas", "cdg", "bbr"]},
    "together": {**BASE, "algorithms": ["cubic", "bbr*2@40ms", "cubic:beta=0.8"], "together": True},
    "flows": {**BASE, "algorithms": ["cubic"], "flows": 3, "stagger": "300ms"},
    "both-ways": {**BASE, "algorithms": ["cubic"], "both_ways": True},
    "loss": {**BASE, "algorithms": ["bbr", "reno"], "loss": "1%", "jitter": "2ms", "seed": 7},
    "repeat": {**BASE, "algorithms": ["reno"], "loss": "0.5%", "repeat": 3},
    "up": {**BASE, "algorithms": ["cubic"], "up_rate": "256kbit", "up_queue": "pfifo limit 20"},
    "ecn": {**BASE, "algorithms": ["cubic", "dctcp"], "queue": "fq_codel ecn", "ecn": True},
    "queue": {**BASE, "algorithms": ["cubic", "vegas"], "queue": "2bdp"},
    "pie": {**BASE, "algorithms": ["cubic"], "queue": "pie"},
    "sysctl": {**BASE, "algorithms": ["cubic"], "sysctl": {"net.ipv4.tcp_sack": "0"}},
    "gso": {**BASE, "algorithms": ["bbr"], "gso": "off"},
    "path": {"algorithms": ["cubic", "bbr"], "path": "home DSL", "duration": "2s"},
    "medium": {
        "algorithms": ["cubic"],
        "medium": "adsl2",
        "rtt": "30ms",
        "queue": "pfifo limit 60",
        "duration": "2s",
    },
    "workload": {**BASE, "algorithms": ["cubic", "reno"], "workload": "rrul"},
    "link": {**BASE, "algorithms": ["cubic"], "link": "wire"},
    "programs": {
        **BASE,
        "algorithms": [*PROGRAMS, "my-exp:keep=0.9*2@50ms"],
        "programs": PROGRAMS,
        "loss": "0.5%",
    },
    "programs-together": {**BASE, "algorithms": ["cubic", *PROGRAMS], "programs": PROGRAMS, "together": True},
}


def command() -> list[str]:
    """Node with the compiled core."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node: apt-get install nodejs")
    if not (BUILT / "core.wasm").exists():
        pytest.skip("no core for a page: rustup target add wasm32-unknown-unknown; cargo page")
    return [node, str(Path(__file__).with_name("core.mjs"))]


def in_node(asked: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """What the core says to each."""
    # As a module, whatever the version of Node.
    script = folder / "core.mjs"
    words = command()
    shutil.copy(BUILT / "core.js", script)
    lines = "".join(json.dumps(one) + "\n" for one in asked)
    done = subprocess.run(
        [*words, str(script), str(BUILT / "core.wasm")],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_golden_recording(tmp_path: Path) -> None:
    golden = ROOT / "tests/golden"
    (said,) = in_node([{"scenario": (golden / "recording.scenario.json").read_text()}], tmp_path)
    assert said["runs"][0]["sha256"] == (golden / "recording.sha256").read_text().strip()


@pytest.mark.parametrize("name", FORMS)
def test_a_form_of_compare(name: str, tmp_path: Path) -> None:
    """The same scenarios, as text too, in the same order."""
    form = FORMS[name]
    (said,) = in_node([{"form": form}], tmp_path)
    assert "refused" not in said, said
    native = [run.scenario for run in expand(compare(**form))]
    assert [json.loads(run["scenario"]) for run in said["runs"]] == native
    hashes = [_core.Scenario(run["scenario"]).run()["sha256"] for run in said["runs"]]
    assert [run["sha256"] for run in said["runs"]] == hashes
    assert len(set(hashes)) == len(hashes), "no run stands for another"


def valid() -> Iterator[list[PlannedRun]]:
    """The runs of random experiments; a few are none, such as one whose flow stops as it starts."""
    for number in itertools.count():
        with contextlib.suppress(BadInputError):
            yield expand(experiment(number))


def test_random_experiments(tmp_path: Path) -> None:
    asked = [json.dumps(run.scenario) for runs in itertools.islice(valid(), COUNT) for run in runs]
    answers = in_node([{"scenario": text} for text in asked], tmp_path)
    # A page runs nothing beyond its bounds.
    beyond = [problem for said in answers for problem in said.get("refused", [])]
    assert all("command line" in problem["expected"] for problem in beyond), beyond
    ran = [
        (said["runs"][0]["sha256"], text) for said, text in zip(answers, asked, strict=True) if "runs" in said
    ]
    assert len(ran) >= COUNT
    assert [found for found, _ in ran] == [_core.Scenario(text).run()["sha256"] for _, text in ran]


def test_a_wrong_form_is_refused_by_field(tmp_path: Path) -> None:
    (said,) = in_node([{"form": {**FORMS["together"], "rate": "fast"}}], tmp_path)
    assert [problem["field"] for problem in said["refused"]] == ["rate"]
