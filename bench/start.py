"""The first answer of the command line and of Python, in multiples of the import of two libraries.

    python bench/start.py [--runs 10]

Processor time (user and system, minimum of the runs, which take turns), since it depends little on the load
of the machine; the ratio to `import numpy, pyarrow` depends little on the machine either. The last line is
the memory of a result of ten flows beside its Arrow tables. `bench/latency.py` gives the wall clock.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = str(Path(sys.executable).with_name("dragstrip"))
PATH = ["--rate", "10mbit", "--rtt", "40ms", "--queue", "bfifo limit 200kb"]
COMPARE = [PROGRAM, "compare", *PATH, "--duration", "30s", "reno", "cubic", "vegas", "cdg", "bbr"]
LIBRARIES = "import numpy, pyarrow"
CASES = {
    LIBRARIES: [sys.executable, "-c", LIBRARIES],
    "dragstrip compare (five algorithms, 30 s)": COMPARE,
    "dragstrip compare --no-report": [*COMPARE, "--no-report"],
    "dragstrip --help": [PROGRAM, "--help"],
}

PYTHON = """
import json, time
start = time.process_time()
import dragstrip
imported = time.process_time()
path = {"rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 200kb"}
dragstrip.race("cubic", "bbr", duration="5s", **path)
first = time.process_time()
further = []
for seed in range(1, 21):
    before = time.process_time()
    dragstrip.race("cubic", "bbr", duration="5s", seed=seed, **path)
    further.append(time.process_time() - before)
before = time.process_time()
for seed in range(1, 1001):
    dragstrip.race("cubic", duration="1s", seed=seed, **path)
loop = time.process_time() - before
print(json.dumps([imported - start, first - imported, sorted(further)[10], loop]))
"""
PYTHON_CASES = {
    "`import dragstrip`": 0.030,
    "first `race` of two runs of 5 s": 0.250,
    "each further one": 0.008,
    "1,000 races of 1 s": 3.0,
}
"""What is measured within one process → target in seconds."""

MEMORY = """
import json
from pathlib import Path
import dragstrip
from dragstrip.model.recording import TABLES
from dragstrip.report.load import recording_of

def kib(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))

dragstrip.race("cubic", rate="10mbit", rtt="40ms", queue="1bdp", duration="1s").table("samples")
resident = kib("VmRSS:")
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
result = dragstrip.race(
    "cubic*10", rate="1gbit", rtt="40ms", queue="1bdp", duration="60s", workers=1
)
recordings = [recording_of(run).recording for run in result._bundle.runs]
arrow = sum(recording[name].nbytes for recording in recordings for name in TABLES)
print(json.dumps([arrow, (kib("VmHWM:") - resident) * 1024, (kib("VmRSS:") - resident) * 1024]))
"""

# Python keeps compiled modules unless it is told not to.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def processor_s(command: list[str], folder: str) -> float:
    """Seconds of processor time that a command takes."""
    before = os.times()
    subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
    )
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def numbers(program: str, folder: str) -> list[float]:
    """The numbers that a program in Python prints."""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    values: list[float] = json.loads(ended.stdout.splitlines()[-1])
    return values


def main() -> None:
    """Prints three tables in Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    seconds: dict[str, list[float]] = {name: [] for name in CASES}
    python: list[list[float]] = []
    with tempfile.TemporaryDirectory(prefix="dragstrip-start-") as folder:
        for command in CASES.values():
            processor_s(command, folder)  # files into memory, modules compiled
        for _ in range(runs):
            for name, command in CASES.items():
                seconds[name].append(processor_s(command, folder))
        python = [numbers(PYTHON, folder) for _ in range(max(1, runs // 3))]
        arrow, peak, resident = numbers(MEMORY, folder)
    libraries = min(seconds[LIBRARIES])
    print(f"| command | processor s | times `{LIBRARIES}` |")
    print("|---|---|---|")
    for name, times in seconds.items():
        print(f"| `{name}` | {min(times):.2f} | {min(times) / libraries:.1f} |")
    print("\n| in Python | processor time | target |")
    print("|---|---|---|")
    for (name, target_s), repeats in zip(PYTHON_CASES.items(), zip(*python, strict=True), strict=True):
        print(f"| {name} | {_time(min(repeats))} | {_time(target_s)} |")
    print(
        f"\nA result of {arrow / 1e6:.1f} MB of Arrow tables: peak {peak / arrow:.2f} times, afterwards ",
        end="",
    )
    print(f"{resident / arrow:.2f} times that memory.")


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.0f} ms"


if __name__ == "__main__":
    main()
