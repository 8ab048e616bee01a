"""Instructions and cache misses that a packet costs, counted under valgrind, against the stored table.

    bench/instructions                 # counts everything; status 1 if anything costs over 2 % more
    bench/instructions --only cubic    # only what has this word in its name
    bench/instructions --write         # stores the counts, for the commit that says what they were spent on

Misses are those of the dumbbells with 100 flows and more, in caches that are simulated too and the same
everywhere: 32 KiB near the core (L1) and 1 MiB behind it (L2).

Counts are the same on every machine, but not with every compiler: the table names its own, and with another
one nothing is judged.
"""

# ruff: noqa: S603, S607, T201 -- starting programs that are on the PATH and printing a table is the point

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cases import CASES, Case

from dragstrip import _core
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_suffix(".json")
GROWTH_MAX = 0.02
MISSES_MAX = 0.1
"""Misses per packet more that are no growth: by so many they differ with the place of the stack, which the
length of the folder's name moves."""
CACHES = ("--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,8,64")
"""Sizes, ways and lines of the simulated caches, bytes: those of a core of AMD's Zen 4
(its Software Optimization Guide)."""
MANY_FLOWS = 100
"""The state of so many flows does not fit the near cache: their misses are counted."""
PATH = {"rate": "20mbit", "rtt": "40ms", "queue": "pfifo limit 66", "duration": "3s"}
"""The path of algorithms and disciplines: the queue holds one bandwidth-delay product."""
SECONDS = {1: 4, 10: 4, 30: 6, 100: 1, 1000: 1}
"""Simulated time of a case of `make bench`, by its flows."""
ALGORITHM_WORDS = {"fixed": "fixed:window=100"}
"""Words other than an algorithm's name: ten packets a round trip would mostly count the start of the run."""
QUEUE_WORDS = {"tc": "tc qdisc add root handle 1: prio; tc filter add parent 1: prio 1 matchall classid 1:2"}
"""Words other than the first example of a discipline, where nothing would pass that."""
RATED = {"tbf", "htb", "police"}
"""Disciplines whose example has a rate of its own, 1 Mbit/s: they need longer for as many packets."""


@dataclass(frozen=True)
class Count:
    """Something to count: its name, and the arguments of the bench program."""

    name: str
    arguments: tuple[str, ...]
    misses: bool = False
    """Count cache misses too."""


def dumbbell(case: Case) -> Count:
    """A case of `make bench`, shorter."""
    sizes = {"flows": case.flows, "mbps": case.mbps, "rtt-ms": case.rtt_ms, "seconds": SECONDS[case.flows]}
    words = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
    return Count(
        f"case {case.name}",
        ("sim", *words, "--cc", case.cc, "--layout", case.layout),
        case.flows >= MANY_FLOWS,
    )


def scenarios(folder: Path) -> Iterator[Count]:
    """An algorithm or a discipline at a time: one flow alone, four flows of CUBIC; and a capture."""

    def stored(name: str, algorithms: list[str], **options: object) -> Count:
        (run,) = expand(compare(algorithms, **{**PATH, **options}))  # type: ignore[arg-type]
        file = folder / f"{name}.json".replace(" ", "-")
        file.write_text(run.text)
        return Count(name, ("scenario", str(file)))

    for name in _core.ALGORITHMS:
        yield stored(f"algorithm {name}", [ALGORITHM_WORDS.get(name, name)])
    for row in _core.names()["queues"]:
        name = row["name"]
        example = QUEUE_WORDS.get(name, row["example"])
        options: dict[str, object] = {"queue": example, "flows": 4}
        if name in RATED:
            options |= {"rate": "1mbit", "duration": "30s"}
        yield stored(f"queue {name}", ["cubic"], **options)


def captured(folder: Path) -> Count:
    """The capture that is inspected: what a host sees of four flows that lose packets."""
    command = [
        sys.executable,
        "-m",
        "dragstrip",
        "compare",
        "cubic",
        "--flows",
        "4",
        "--loss",
        "1%",
        "--capture",
        "d",
    ]
    words = [word for name, value in PATH.items() for word in (f"--{name}", value)]
    done = subprocess.run(
        [*command, *words, "--out", str(folder / "captured")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"bench/instructions: {done.stderr.strip()}")
    (file,) = (folder / "captured").rglob("d.pcapng")
    return Count("inspect", ("inspect", str(file)))


def figures(program: Path, count: Count) -> dict[str, float]:
    """Figures per packet of one run, by name: instructions, and data's misses in both caches if counted."""
    patterns = {count.name: r"I\s+refs:\s+([\d,]+)"}
    if count.misses:
        patterns |= {f"{count.name}, L1 misses": r"D1\s+misses:\s+([\d,]+)"}
        patterns |= {f"{count.name}, L2 misses": r"LLd\s+misses:\s+([\d,]+)"}
    caches = CACHES if count.misses else ("--cache-sim=no",)
    with tempfile.NamedTemporaryFile("r") as log:
        valgrind = (
            str(shutil.which("valgrind")),
            "--tool=cachegrind",
            *caches,
            "--cachegrind-out-file=/dev/null",
        )
        command = [*valgrind, f"--log-file={log.name}", str(program), *count.arguments]
        # Nothing of this shell's environment, which would shift the stack.
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={})
        if done.returncode:
            raise SystemExit(f"bench/instructions: {count.name}: {done.stderr.strip()}")
        text = log.read()
    result: dict[str, int] = json.loads(done.stdout)
    packets = max(1, result.get("data_packets") or result["packets"])
    per_packet = {}
    for name, pattern in patterns.items():
        total = re.search(pattern, text)
        if total is None:
            raise SystemExit(f"bench/instructions: {name}: valgrind printed no count")
        figure = int(total[1].replace(",", "")) / packets
        per_packet[name] = round(figure, 2) if name.endswith("misses") else round(figure)
    return per_packet


def built() -> Path:
    """The bench program, optimised as a release is."""
    subprocess.run(
        ["cargo", "build", "--locked", "--quiet", "--release", "-p", "dragstrip-bench"], cwd=ROOT, check=True
    )
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    return ROOT / target / "release/dragstrip-bench"


def compiler() -> str:
    """rustc's version and machine, on which counts depend."""
    text = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    found = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    return f"rustc {found['release']}, {found['host']}"


def main() -> int:
    """1 if anything costs more than the table allows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", metavar="WORD", help="count only what has WORD in its name")
    parser.add_argument("--write", action="store_true", help="store what was counted")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    asked = parser.parse_args()
    if not shutil.which("valgrind"):
        print("Skipped: instructions: valgrind is missing: apt-get install valgrind")
        return 0
    table = json.loads(TABLE.read_text())
    known: dict[str, float] = table["instructions"] | table.get("misses", {})
    judged = table["compiler"] == compiler()
    if not judged and not asked.write:
        print(f"Skipped: instructions: the table is of {table['compiler']}, and this is {compiler()}")
        return 0
    program = built()
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(asked.jobs) as jobs:
        folder = Path(name)
        counts = [*map(dumbbell, CASES), *scenarios(folder), captured(folder)]
        counts = [count for count in counts if asked.only in count.name]
        costs = {
            name: figure
            for run in jobs.map(lambda count: figures(program, count), counts)
            for name, figure in run.items()
        }
    grown = []
    print(f"{'per packet':<36} {'stored':>8} {'now':>8} {'change':>8}")
    for name, now in costs.items():
        before = known.get(name)
        change = f"{now / before - 1:+8.1%}" if before else "     new"
        print(f"{name:<36} {before or '':>8} {now:>8} {change}")
        slack = MISSES_MAX if name.endswith("misses") else 0.0
        if not before or now > max(before * (1 + GROWTH_MAX), before + slack):
            grown.append(name)
    if asked.write:
        stored = {**known, **costs} if asked.only and judged else costs
        misses = {name: figure for name, figure in stored.items() if name.endswith("misses")}
        instructions = {name: figure for name, figure in stored.items() if name not in misses}
        content = {"compiler": compiler(), "instructions": instructions, "misses": misses}
        text = json.dumps(content, indent=2)
        TABLE.write_text(text + "\n")
        return 0
    if grown:
        print(f"More than {GROWTH_MAX:.0%} dearer, or not in the table: {', '.join(grown)}.")
        print("If that is worth it: bench/instructions --write, and say in the commit what it buys.")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
