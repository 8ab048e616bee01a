"""How long a person waits: `dragstrip compare` to its first table and to its end, beside two libraries.

    python bench/latency.py [--runs 10]

Medians of the wall clock over runs that take turns, on a machine with nothing else to do. The first line is
what no program can be faster than that reads and writes Arrow tables with numpy.
"""

from __future__ import annotations

import argparse
import os
import selectors
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("dragstrip")
PATH = ["--rate", "10mbit", "--rtt", "40ms", "--queue", "bfifo limit 200kb"]
COMPARE = [str(PROGRAM), "compare", *PATH, "--duration", "30s", "reno", "cubic", "vegas", "cdg", "bbr"]
CASES = {
    "python -c 'import numpy, pyarrow'": [sys.executable, "-c", "import numpy, pyarrow"],
    "dragstrip --help": [str(PROGRAM), "--help"],
    "compare, a misspelt algorithm": [str(PROGRAM), "compare", *PATH, "rneo"],
    "compare (five algorithms, 30 s)": COMPARE,
    "compare --no-report": [*COMPARE, "--no-report"],
}


# Python keeps compiled modules unless it is told not to.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def timed(command: list[str], folder: str) -> tuple[float, float, float]:
    """Seconds to the first output, to the end, and of processor time."""
    before, began = os.times(), time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.select()
    first = time.perf_counter() - began
    process.stdout.read()
    process.wait()
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return first, time.perf_counter() - began, cpu


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in CASES}
    with tempfile.TemporaryDirectory(prefix="dragstrip-latency-") as folder:
        for command in CASES.values():
            timed(command, folder)  # files into memory, modules compiled
        for _ in range(runs):
            for name, command in CASES.items():
                found[name].append(timed(command, folder))
    print("| command | first output s | whole s | processor s |")
    print("|---|---|---|---|")
    for name, times in found.items():
        cells = " | ".join(f"{statistics.median(values):.2f}" for values in zip(*times, strict=True))
        print(f"| `{name}` | {cells} |")


if __name__ == "__main__":
    main()
