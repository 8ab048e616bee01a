"""Fifty runs in network namespaces, killed at random moments, many at once: nothing of them is left.

`python tests/torture/namespaces.py` kills 200 of the whole program, one after the other.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from common import CannotRunError
from namespaces import GONE_WITHIN_S, agent, differences, everybody, held, listing

from dragstrip.engines.agent.client import HEAD
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand

KILLS, AT_ONCE = 50, 25
WITHIN_S = 5.0
"""Of its start: a run builds its path, waits for it to settle, checks it, and has its traffic by then."""


def request() -> bytes:
    """For a run whose traffic lasts longer than it lives."""
    race = compare(
        ["reno", "cubic"],
        rate="5mbit",
        rtt="0ms",
        queue="bfifo limit 30kb",
        duration="60s",
        together=True,
        engine="netns",
    )
    asked = {"scenario": expand(race)[0].scenario, "load": [], "real_time": True}
    content = json.dumps(asked).encode() + b"\n"
    return HEAD.pack(b"q", len(content)) + content


class Run:
    """An agent at work, as a child of ours or of a process of its own."""

    def __init__(self, content: bytes, folder: Path, dice: random.Random) -> None:
        self.adopted = dice.random() < 0.5
        self.at_s = dice.uniform(0, WITHIN_S)
        adopting = f'exec 3<&0; "{agent()}" run exchange=- parent=$$ <&3 & echo $! >&2; wait'
        own = [str(agent()), "run", "exchange=-", f"parent={os.getpid()}"]
        folder.mkdir()
        self.folder = folder
        self.process = subprocess.Popen(
            ["sh", "-c", adopting] if self.adopted else own,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(folder)},
            cwd=folder,
        )
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        number = int(self.process.stderr.readline()) if self.adopted else self.process.pid
        self.agent = Path("/proc") / str(number)
        self.process.stdin.write(content)
        self.process.stdin.flush()

    def kill(self) -> set[str]:
        """Kills the agent, or the process that started it; gives the namespaces that it held."""
        theirs = held([self.agent]) - held([Path("/proc/self")])
        self.process.kill()
        self.process.communicate()
        return theirs

    def gone(self) -> bool:
        """No process of it is left but one that nobody has waited for."""
        try:
            state = (self.agent / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        return state in "ZX"


def test_of_fifty_that_are_killed_nothing_is_left(tmp_path: Path) -> None:
    try:
        agent()
    except CannotRunError as error:
        pytest.skip(str(error))
    before, content, dice = listing(), request(), random.Random(17)
    seen: Counter[str] = Counter()
    namespaces: set[str] = set()
    for wave in range(KILLS // AT_ONCE):
        runs = [Run(content, tmp_path / f"{wave}-{number}", dice) for number in range(AT_ONCE)]
        began = time.monotonic()
        for run in sorted(runs, key=lambda one: one.at_s):
            time.sleep(max(0.0, began + run.at_s - time.monotonic()))
            theirs = run.kill()
            namespaces |= theirs
            seen["in its namespaces" if theirs else "before"] += 1
        until = time.monotonic() + GONE_WITHIN_S
        while not all(run.gone() for run in runs) or namespaces & held(everybody()):
            assert time.monotonic() < until, f"still there: {namespaces & held(everybody())}"
            time.sleep(0.05)
        assert not [file for run in runs for file in run.folder.iterdir()], "files are left"
    assert sum(seen.values()) == KILLS
    assert seen["in its namespaces"] > KILLS // 2, dict(seen)
    assert _settles(before) == []


def _settles(before: dict[str, str]) -> list[Any]:
    """What is another than before, once the kernel has taken the last namespace apart."""
    until = time.monotonic() + GONE_WITHIN_S
    while (changed := differences(before)) and time.monotonic() < until:
        time.sleep(0.1)
    return changed
