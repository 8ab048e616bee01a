"""Many small runs: cells of a sweep and rows of a quick passport per minute, and where a cell's time goes.

    python bench/cells.py [--cells 600] [--runs 5]

A cell is one CUBIC or Reno flow for 5 s at 10 Mbit/s. The first table has the command's elapsed time on two
workers, start of the interpreter and dataset included, and the processor time of it and its processes.
Elapsed time means something on an idle machine only; processor time, and the parts of a cell in the second
table (minimum of the runs), depend little on the load. One worker must give the same dataset as two.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

from dragstrip import _core
from dragstrip.engines.sim import simulate
from dragstrip.experiment.types import Experiment
from dragstrip.model.recording import write
from dragstrip.results.measures import summarise
from dragstrip.studies.sweep.plan import Sweep, describe

PROGRAM = str(Path(sys.executable).with_name("dragstrip"))
EXPERIMENT = """\
name = "cells"
duration = "5s"
[path]
rate = "10mbit"
rtt = "40ms"
queue = "bfifo limit 1bdp"
[[flows]]
cc = "cubic"
"""
LIMIT_MISSED = 3
"""Exit status of a passport in which a limit of a document is missed."""
TARGET_CELLS, TARGET_ROWS = 3000, 1000
"""A minute, on two cores."""


def vary(cells: int) -> list[str]:
    """The axes of about this many cells."""
    return [f"path.rtt=10ms..100ms:lin:{cells // 30}", "path.loss=0.001%..0.1%:lin:15", "flow.cc=cubic,reno"]


def spent(command: list[str], cache: Path) -> tuple[float, float]:
    """Elapsed and processor seconds of a command, with its cache of results in this folder."""
    before, began = os.times(), time.monotonic()
    ended = subprocess.run(
        command,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if ended.returncode not in {0, LIMIT_MISSED}:
        sys.exit(ended.stderr)
    elapsed_s, after = time.monotonic() - began, os.times()
    user_s = after.children_user - before.children_user
    return elapsed_s, user_s + after.children_system - before.children_system


def sweep_lines(cells: int, folder: Path) -> list[str]:
    """Rows of the first table: the sweep without and with recordings. Exits if workers change a byte."""
    experiment = folder / "cells.toml"
    experiment.write_text(EXPERIMENT)
    words = [PROGRAM, "sweep", str(experiment), "--no-report"]
    words += [word for axis in vary(cells) for word in ("--vary", axis)]
    lines, hashes = [], set()
    for name, more in (("cells", []), ("cells, recordings kept", ["--keep-recordings"])):
        for workers in ("2", "1"):
            out = folder / f"{name}-{workers}"
            elapsed_s, processor_s = spent([*words, *more, "--workers", workers, "--out", str(out)], folder)
            hashes.add(hashlib.sha256((out / "dataset" / "sweep.parquet").read_bytes()).hexdigest())
            if workers == "2":
                lines.append(line(name, describe_cells(cells).points, elapsed_s, processor_s, TARGET_CELLS))
    if len(hashes) != 1:
        sys.exit("error: the dataset depends on the number of workers or on the recordings")
    return lines


def passport_line(algorithm: str, folder: Path) -> str:
    """A row of the first table: a quick passport, nothing of it in the cache."""
    out = folder / f"passport-{algorithm}"
    words = [PROGRAM, "passport", algorithm, "--quick", "--workers", "2", "--out", str(out)]
    elapsed_s, processor_s = spent(words, folder / f"cache-{algorithm}")
    rows = len(json.loads((out / "passport.json").read_text())["rows"])
    return line(f"rows of `passport {algorithm} --quick`", rows, elapsed_s, processor_s, TARGET_ROWS)


def line(name: str, count: int, elapsed_s: float, processor_s: float, target: int) -> str:
    """A row of the first table."""
    minute, idle = 60 * count / elapsed_s, 60 * count / (processor_s / 2)
    figures = f"{count} | {elapsed_s:.1f} | {processor_s:.1f} | {minute:,.0f} | {idle:,.0f} | {target:,}"
    return f"| {name} | {figures} |"


def describe_cells(cells: int) -> Sweep:
    """The sweep."""
    return describe(Experiment.build(tomllib.loads(EXPERIMENT)), "", vary=vary(cells))


def parts(runs: int, folder: Path) -> dict[str, float]:
    """Milliseconds of processor time that each part of a cell takes."""
    sweep = describe_cells(60)
    scenario = json.loads(sweep.at(0, checked=True)[0].text)
    short = {**scenario, "duration_ns": 1}
    recording = simulate(scenario)
    places = (folder / f"recording-{number}" for number in range(1_000_000))
    points = iter(range(1_000_000))

    def least_ms(work: Callable[[], object]) -> float:
        times = []
        for _ in range(runs):
            began = time.process_time()
            for _ in range(20):
                work()
            times.append((time.process_time() - began) / 20)
        return min(times) * 1e3

    whole_ms, set_up_ms = least_ms(lambda: simulate(scenario)), least_ms(lambda: simulate(short))
    return {
        "planning: the scenario of the cell, checked": least_ms(
            lambda: sweep.at(next(points) % sweep.points, checked=True)
        ),
        "reading the scenario": least_ms(lambda: _core.Scenario(scenario)),
        "set-up, and tables without rows": set_up_ms,
        "the packets and their rows": whole_ms - set_up_ms,
        "the figures": least_ms(lambda: summarise(recording)),
        "writing the recording, where it is kept": least_ms(lambda: write(recording, next(places))),
    }


def main() -> None:
    """Prints two tables in Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=600)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dragstrip-cells-") as name:
        folder = Path(name)
        print(f"load {os.getloadavg()[0]:.1f}\n")
        print("| what | number | elapsed s | processor s | a minute | a minute, two idle cores | target |")
        print("|---|---|---|---|---|---|---|")
        for text in sweep_lines(given.cells, folder):
            print(text, flush=True)
        for algorithm in ("cubic", "bbr"):
            print(passport_line(algorithm, folder), flush=True)
        print("\n| part of a cell | processor ms |\n|---|---|")
        for part, milliseconds in parts(given.runs, folder).items():
            print(f"| {part} | {milliseconds:.2f} |")


if __name__ == "__main__":
    main()
