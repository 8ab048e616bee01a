"""The examples of docs/examples/learning: they train, the same seed gives the same policy, and the policies race."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import dragstrip
from tools import learning_study as study

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples" / "learning"
PATH = {"rate": "10mbit", "rtt": "40ms", "queue": "1bdp", "duration": "2s"}


def trained(folder: Path, script: str, *words: str) -> str:
    """The text that a script writes."""
    out = folder / "mine.json"
    command = [sys.executable, str(EXAMPLES / script), str(out), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return out.read_text()


def test_our_ppo_gives_the_same_policy_for_the_same_seed(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    steps = ("--steps", "16384")
    first = trained(tmp_path, "ppo.py", *steps)
    assert trained(tmp_path, "ppo.py", *steps) == first
    assert trained(tmp_path, "ppo.py", *steps, "--seed", "2") != first
    log = json.loads((tmp_path / "mine.log.json").read_text())
    assert log["rewards"][-1]["steps"] == 16384
    assert dragstrip.race(dragstrip.program("mine", first), **PATH)["mine"].goodput_bps > 1e5


@pytest.mark.parametrize("count", ["1", "8"])
def test_stable_baselines3_trains_on_an_environment_and_on_a_batch(tmp_path: Path, count: str) -> None:
    pytest.importorskip("stable_baselines3")
    text = trained(tmp_path, "sb3.py", "--batch", count, "--steps", "4096")
    assert dragstrip.race(dragstrip.program("mine", text), **PATH)["mine"].goodput_bps > 1e5


def test_the_ppo_is_one_short_file() -> None:
    assert len((EXAMPLES / "ppo.py").read_text().splitlines()) <= 300


@pytest.mark.parametrize("name", study.TRAINED)
def test_a_stored_policy_is_that_of_its_log(name: str) -> None:
    text = (EXAMPLES / f"{name}.json").read_text()
    log = json.loads((EXAMPLES / f"{name}.log.json").read_text())
    assert log["rivals"] == list(study.TRAINED[name])
    assert log["rewards"][-1]["reward"] > log["rewards"][0]["reward"] + 0.5
    assert len(text) < 20_000
    assert dragstrip.race(dragstrip.program(name, text), **PATH)[name].goodput_bps > 1e6


def test_the_page_of_the_study_has_the_figures_of_the_stored_policies() -> None:
    """One path on the simulator; the kernel's figures are those of `make learning-study`."""
    page = (EXAMPLES.parents[1] / "reference" / "learning-study.md").read_text()
    path = "3 Mbit/s, 300 ms, 1 BDP"
    (row,) = [line for line in page.splitlines() if line.startswith(f"| {path} | ") and "%" in line]
    for name in study.TRAINED:
        policy = dragstrip.program(name, (EXAMPLES / f"{name}.json").read_text())
        result = dragstrip.race(policy, duration=f"{study.SECONDS}s", **study.PATHS[path])
        assert study.cell(study.figures_of(result.flows[0])) in row
