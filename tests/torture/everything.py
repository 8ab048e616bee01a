"""`make torture`: every torture script and every fuzz target, one table, status 1 if anything failed.

Works in temporary folders. As many run at a time as there are processors.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WHOLE_MINUTES = 60
EXECUTIONS = 10_000_000
"""Of each fuzz target in an hour."""
RECORDINGS = 200_000
"""Damaged recordings, which Python reads: a thousand times slower than a target in Rust."""
FOREIGN = 200_000
"""Damaged files of other programs, for each of their readers in Python."""
NO_SCRIPTS = {"common", "disciplines", "everything", "conftest"}

SCRIPTS = sorted(
    file
    for file in HERE.glob("*.py")
    if file.stem not in NO_SCRIPTS and not file.stem.startswith(("_", "test_"))
)

FUZZ = ("cargo", "xtask", "fuzz")
TARGETS = sorted(file.stem for file in (ROOT / "fuzz/targets").glob("*.rs"))


@dataclass(frozen=True)
class Kind:
    """Something that `make torture` runs: its name, and the command whose last line is the summary."""

    name: str
    command: tuple[str, ...]


def kinds(minutes: float) -> list[Kind]:
    """All of them; with less than an hour, proportionally fewer trials."""
    share, seconds = min(1.0, minutes / WHOLE_MINUTES), round(60 * minutes)
    words = ("--share", f"{share:g}", "--seconds", str(seconds))
    found = [Kind(file.stem, (sys.executable, str(file), *words)) for file in SCRIPTS]
    recordings = ("--count", str(round(share * RECORDINGS)), "--seconds", str(seconds), "--summary")
    found.append(Kind("fuzz-recording", (sys.executable, "fuzz/recording.py", *recordings)))
    foreign = ("--count", str(round(share * FOREIGN)), "--seconds", str(seconds), "--summary")
    found.append(Kind("fuzz-foreign", (sys.executable, "fuzz/foreign.py", *foreign)))
    if shutil.which("c++"):
        count = str(max(1, round(share * EXECUTIONS)))
        limits = ("--executions", count, "--seconds", str(seconds))
        found += [Kind(f"fuzz-{name}", (*FUZZ, name, "--summary", *limits)) for name in TARGETS]
    else:
        print("Skipped: fuzz targets need a C++ compiler: apt-get install g++", flush=True)
    return found


def only(found: list[Kind], names: str) -> list[Kind]:
    """Those of the names, separated by commas; all for none."""
    asked = [name for name in names.split(",") if name]
    known = [kind.name for kind in found]
    for name in asked:
        if name not in known:
            raise SystemExit(f"{name}: no such kind; one of {', '.join(known)}")
    return [kind for kind in found if not asked or kind.name in asked]


def run(kind: Kind) -> dict[str, Any]:
    """The summary of a kind; one that gives none has failed."""
    began = time.monotonic()
    ended = subprocess.run(
        kind.command, cwd=ROOT, capture_output=True, text=True, errors="backslashreplace", check=False
    )
    lines = ended.stdout.splitlines()
    try:
        summary: dict[str, Any] = json.loads(lines[-1] if lines else "")
    except ValueError:
        what = f"no summary, status {ended.returncode}: {ended.stderr[-2000:]}"
        failure = {"replay": " ".join(kind.command), "what": what}
        seconds = round(time.monotonic() - began, 1)
        none = {"wanted": 0, "tried": 0, "outcomes": {}, "skipped": None}
        return {**none, "kind": kind.name, "failures": [failure], "seconds": seconds}
    return {**summary, "kind": kind.name}


def row(summary: dict[str, Any]) -> str:
    """A line of the table."""
    outcomes = ", ".join(f"{word} {n:,}" for word, n in summary["outcomes"].items())
    if summary["skipped"]:
        outcomes = f"skipped: {summary['skipped']}"
    counts = f"{summary['wanted']:>12,} {summary['tried']:>12,} {len(summary['failures']):>8,}"
    return f"{summary['kind']:<20} {counts} {summary['seconds']:>8,.0f}  {outcomes}"


def checkout() -> str:
    """What git says of the files here; nothing where they are no checkout."""
    command = ["git", "status", "--porcelain", "--ignored=no"]
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def main() -> int:
    """1 if a trial failed or the checkout is no longer as it was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=WHOLE_MINUTES)
    parser.add_argument("--only", default="", metavar="KIND,...")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    before = checkout()
    print(f"{'kind':<20} {'wanted':>12} {'tried':>12} {'failures':>8} {'seconds':>8}  outcomes", flush=True)
    failed: list[dict[str, str]] = []
    with ThreadPoolExecutor(asked.jobs) as jobs:
        for future in as_completed(
            [jobs.submit(run, kind) for kind in only(kinds(asked.minutes), asked.only)]
        ):
            summary = future.result()
            print(row(summary), flush=True)
            failed += summary["failures"]
    for failure in failed:
        print(f"\n{failure['what']}\nagain: {failure['replay']}")
    if checkout() != before:
        print(f"\nthe checkout was changed:\n{checkout()}")
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
