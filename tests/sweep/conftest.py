"""A small sweep, from the command line, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragstrip.experiment.types import Experiment
from dragstrip.studies.sweep.plan import Sweep, describe

EXPERIMENT = """
title = "One flow on a path"
duration = "2s"

[path]
rate = "2mbit"
rtt = "20ms"
queue = "bfifo limit 30kb"
loss = "0.1%"

[[flows]]
cc = "cubic"

[[probes]]
from = "d"
target = "s1"
"""

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """The file of an experiment whose runs take a few milliseconds."""
    file = tmp_path / "path.toml"
    file.write_text(EXPERIMENT)
    return file


def command(*words: str) -> list[str]:
    """The words that start `dragstrip sweep` in this interpreter."""
    return [sys.executable, "-m", "dragstrip", "sweep", *words]


def environment(**more: str) -> dict[str, str]:
    """The tests' own environment, and more."""
    return {**os.environ, **more}


@pytest.fixture
def sweep(experiment: Path) -> Command:
    """Runs `dragstrip sweep` on the experiment, in its folder."""

    def run(*words: str, status: int | None = 0, **given: Any) -> subprocess.CompletedProcess[str]:
        given.setdefault("timeout", 120)
        ended = subprocess.run(
            command(str(experiment), *words),
            cwd=experiment.parent,
            text=True,
            capture_output=True,
            check=False,
            **given,
        )
        assert status is None or ended.returncode == status, ended.stderr + ended.stdout
        return ended

    return run


def plan(*vary: str, **given: Any) -> Sweep:
    """The sweep over these axes of the same experiment."""
    import tomllib

    experiment = Experiment.build(tomllib.loads(EXPERIMENT))
    return describe(experiment, "", vary=vary, **given)
