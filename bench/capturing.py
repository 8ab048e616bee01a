"""What `--capture` costs: runs with and without captures, as a table in docs/how-to/captures.md.

    python bench/capturing.py --write-docs docs/how-to/captures.md

Processor time of this process, user's and system's, the least of nine. The last columns are the files' bytes
alone, written in pieces as large as the core's: the part that no way of making them can save. It takes a
minute, and wants a core that is built as wheels are.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import marked

from dragstrip import _core
from dragstrip.engines.capture import usual_points

CASES = {
    "one CUBIC flow, 100 Mbit/s": "--rate 100mbit --queue 1bdp cubic",
    "four CUBIC flows, 10 Mbit/s": "--rate 10mbit --queue 1bdp --flows 4 cubic",
    "one BBR flow, 20 Mbit/s, fq_codel": "--rate 20mbit --queue fq_codel bbr",
    "twenty CUBIC flows, 50 Mbit/s": "--rate 50mbit --queue 1bdp --flows 20 cubic",
}
COMMON = "--rtt 40ms --duration 60s --repeat 1"
SNAPLEN = 96
PIECE = 256 << 10
TIMES = 9
MARKS = ("<!-- from bench/capturing.py -->", "<!-- end of bench/capturing.py -->")


def cost_s(work: Callable[[], object]) -> float:
    """Processor time of `work`."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def scenario_of(options: str, folder: Path) -> str:
    """The scenario that `dragstrip compare` makes of its options."""
    command = [sys.executable, "-m", "dragstrip", "compare", *options.split(), *COMMON.split()]
    subprocess.run([*command, "--out", folder], check=True, capture_output=True)  # noqa: S603
    return next(folder.rglob("scenario.json")).read_text(encoding="utf-8")


def captured(scenario: str, points: list[str], folder: Path) -> tuple[float, float, int]:
    """Cost of the run with captures and of their bytes alone, s; and how many bytes."""
    files = [(point, str(folder / f"{number}.pcapng")) for number, point in enumerate(points)]

    def clear() -> None:
        for _, file in files:
            Path(file).unlink(missing_ok=True)

    def bytes_alone() -> None:
        for (_, file), size in zip(files, sizes, strict=True):
            with Path(file).open("wb", buffering=0) as to:
                for _ in range(size // PIECE):
                    to.write(piece)
                to.write(piece[: size % PIECE])

    runs, alone, sizes, piece = [], [], [], bytes(PIECE)
    for _ in range(TIMES):
        clear()
        runs.append(cost_s(lambda: _core.Scenario(scenario).run(None, (files, (SNAPLEN, SNAPLEN), "bench"))))
    sizes = [Path(file).stat().st_size for _, file in files]
    for _ in range(TIMES):
        clear()
        alone.append(cost_s(bytes_alone))
    clear()
    return min(runs), min(alone), sum(sizes)


def rows(folder: Path) -> list[str]:
    """The table."""
    table = [
        "| 60 s | without | one host | its bytes alone | all hosts and the bottleneck | their bytes alone |",
        "|---|---|---|---|---|---|",
    ]
    for number, (name, options) in enumerate(CASES.items()):
        scenario = scenario_of(options, folder / str(number))
        points = usual_points(json.loads(scenario))
        without = min(cost_s(lambda text=scenario: _core.Scenario(text).run()) for _ in range(TIMES))
        cells = [name, f"{without:.3f} s"]
        for some in (points[:1], points):
            run, alone, size = captured(scenario, some, folder)
            cells.append(f"{run / without:.1f} times ({size / 1e6:.0f} MB)")
            cells.append(f"{alone / without:.1f} times")
        table.append(f"| {' | '.join(cells)} |")
    return table


def main() -> None:
    """Prints the table or writes it into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write-docs", type=Path, metavar="FILE")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = rows(Path(folder))
    print("\n".join(table))  # noqa: T201
    if asked.write_docs is not None:
        marked.write(asked.write_docs, MARKS, "\n".join(table))


if __name__ == "__main__":
    main()
