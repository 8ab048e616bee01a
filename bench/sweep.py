"""What a sweep costs beside its runs: `uv run --locked bench/sweep.py [time|dask|memory|report] [--runs N]`.

time    1,000 scenarios of 30 s at 10 Mbit/s on two processes: wall clock against the sum of their own
        processor time, and what is left for each run (dispatch, writing, bookkeeping)
dask    the same on a scheduler and two workers on loopback
memory  the coordinator's peak at 100,000 runs: real plan, store and dataset, answers out of thin air
report  the peak of everything, the map of 100,000 runs included

Each prints one JSON line. docs/how-to/sweeps.md has the figures and the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import deque
from pathlib import Path
from typing import Any

from dragstrip.experiment.types import Experiment
from dragstrip.runs.child import without_pandas
from dragstrip.runs.local import Event
from dragstrip.runs.work import Order
from dragstrip.studies.sweep import dataset
from dragstrip.studies.sweep.coordinate import Coordinator, missing
from dragstrip.studies.sweep.map import COLUMNS, write_map
from dragstrip.studies.sweep.plan import Index, Sweep, describe
from dragstrip.studies.sweep.progress import SweepProgress, Tally
from dragstrip.studies.sweep.stats import judge
from dragstrip.studies.sweep.store import Store

WORKERS = 2


PATHS = [
    "path.rtt=10ms..200ms:log:10",
    "path.queue=bfifo limit 50kb,bfifo limit 200kb",
    "flow.cc=reno,cubic,vegas,cdg,bbr",
]
MANY = ["path.rate=1mbit..1gbit:log:20", "path.rtt=1ms..300ms:log:50", *PATHS[1:]]
MANY[2] = "path.queue=bfifo limit 50kb,bfifo limit 200kb,codel,fq_codel"


EXPERIMENT = """\
name = "bench"
duration = "30s"
[path]
rate = "10mbit"
rtt = "40ms"
queue = "bfifo limit 50kb"
loss = "0.01%"
[[flows]]
cc = "cubic"
[[probes]]
from = "d"
target = "s1"
"""


def scenarios(count: int, vary: list[str]) -> Sweep:
    """30 s on these paths, with as many seeds as make `count` runs."""
    experiment = Experiment.build(tomllib.loads(EXPERIMENT))
    combinations = describe(experiment, "", vary=vary).points
    return describe(experiment, "", vary=vary, repeat=max(1, count // combinations))


def timed(count: int, on: str | None = None) -> dict[str, Any]:
    """Makes the runs by the command; what they took, and what everything around them took."""
    repeat = max(1, count // scenarios(1, PATHS).points)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        experiment, out = Path(folder) / "bench.toml", Path(folder) / "out"
        experiment.write_text(EXPERIMENT)
        words = ["sweep", str(experiment), "--repeat", str(repeat), "--workers", str(WORKERS), "--no-report"]
        words += ["--json", "--out", str(out), *(word for path in PATHS for word in ("--vary", path))]
        words += ["--on", on] if on else []
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "dragstrip", *words], check=True, stdout=subprocess.PIPE
        )
        whole_s = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        disk = sum(file.stat().st_size for file in out.rglob("*.parquet"))
    document = json.loads(done.stdout)
    own_s, wall_s, runs = document["cpu_s"], document["wall_s"], document["made"]
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "runs": runs,
        "workers": WORKERS,
        "load_before": load,
        "own_cpu_s": own_s,
        "runs_wall_s": wall_s,
        "command_wall_s": round(whole_s, 3),
        "wall_over_half_of_own": round(wall_s / (own_s / WORKERS), 3),
        "command_over_half_of_own": round(whole_s / (own_s / WORKERS), 3),
        "overhead_ms_per_run_wall": round((WORKERS * wall_s - own_s) / runs * 1e3, 3),
        # Children on a cluster are not ours to count.
        "cpu_overhead_ms_per_run": round((used_s - (0 if on else own_s)) / runs * 1e3, 3),
        "disk_bytes_per_run": round(disk / runs),
    }


def on_dask(count: int) -> dict[str, Any]:
    """The same on loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{free.getsockname()[1]}"
    port = where.partition(":")[2]
    with tempfile.TemporaryDirectory() as folder, Path(os.devnull).open("w") as nothing:
        common = ["--host", "127.0.0.1", "--no-dashboard"]
        worker = [f"tcp://{where}", *common, "--no-nanny", "--nthreads", "1", "--local-directory", folder]
        commands = [["dask_scheduler", *common, "--port", port]] + [["dask_worker", *worker]] * WORKERS
        started = [
            subprocess.Popen(  # noqa: S603 - our own interpreter
                [sys.executable, "-m", f"distributed.cli.{words[0]}", *words[1:]],
                stdout=nothing,
                stderr=nothing,
            )
            for words in commands
        ]
        try:
            from distributed import Client

            with Client(f"tcp://{where}", timeout=60) as client:
                client.wait_for_workers(WORKERS, timeout=60)
            timed(20, f"dask://{where}")  # the workers' children load their libraries
            return timed(count, f"dask://{where}")
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait()


class ThinAir:
    """A place where runs cost nothing."""

    def __init__(self) -> None:
        self.orders: deque[Order] = deque()
        rtt_ms = {"p5": 18.0, "p50": 20.0, "p95": 24.0}
        flow = {"flow": 0, "label": "x", "cc": "x", "rtt_ms": rtt_ms, "retransmits": 3, "share": 1.0}
        queue = {"backlog_bytes": {"p50": 1e4, "p95": 2e4, "max": 3e4}, "dropped": 1, "marked": 0}
        self.flow = {**flow, "throughput_bps_p50": 1e7, "segments_sent": 24_000}
        self.summary = {"queues": [queue], "probes": [], "jain": 1.0}

    def describe(self) -> str:
        """For people."""
        return "thin air"

    def room(self) -> int:
        """Always some."""
        return 8 - len(self.orders)

    def submit(self, order: Order) -> None:
        """Takes a run."""
        self.orders.append(order)

    def poll(self, timeout_s: float | None) -> list[Event]:
        """All of them are done."""
        events = []
        while self.orders:
            order = self.orders.popleft()
            flow = {**self.flow, "goodput_bps": 9e6 + order.number % 1000}
            summary = {**self.summary, "flows": [flow]}
            answer = {"status": "ok", "cpu_s": 0.01, "summary": summary, "sha256": "0" * 64}
            events.append(Event(order, answer))
        return events

    def close(self) -> None:
        """Nothing to end."""


def memory(count: int, report: bool) -> dict[str, Any]:
    """The coordinator's peak."""
    sweep = scenarios(count, MANY if count >= 20_000 else PATHS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.monotonic()
        before = resource.getrusage(resource.RUSAGE_SELF)
        index = Index(sweep)
        planned_s = time.monotonic() - began
        store = Store(folder / "store")
        store.open()
        numbers, _ = missing(index, store.keys(), (1, 1))
        tally = Tally(total=len(numbers))
        Coordinator(sweep, index, store, ThinAir(), SweepProgress()).work(numbers, tally)
        store.compact()
        dataset.write(sweep, index, store, folder / dataset.FOLDER)
        again, _ = missing(index, store.keys(), (1, 1))
        assert not again
        if report:
            data = dataset.read(folder, COLUMNS)
            write_map(sweep, folder, data, judge(sweep, data), [])
        usage = resource.getrusage(resource.RUSAGE_SELF)
        disk = sum(file.stat().st_size for file in folder.rglob("*.parquet"))
    cpu_s = usage.ru_utime + usage.ru_stime - before.ru_utime - before.ru_stime
    return {
        "runs": len(numbers),
        "report": report,
        "peak_mb": round(usage.ru_maxrss * 1024 / 1e6, 1),
        "at_start_mb": round(before.ru_maxrss * 1024 / 1e6, 1),
        "planning_s": round(planned_s, 2),
        "cpu_ms_per_run": round(cpu_s / len(numbers) * 1e3, 3),
        "disk_bytes_per_run": round(disk / len(numbers)),
    }


def main() -> None:
    """One measurement, or each in a process of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=["time", "dask", "memory", "report"])
    parser.add_argument("--runs", type=int)
    given = parser.parse_args()
    without_pandas()  # as the command line does
    if given.what is None:
        for what in ("time", "dask", "memory", "report"):
            subprocess.run([sys.executable, __file__, what], check=True)  # noqa: S603
        return
    made = {
        "time": lambda: timed(given.runs or 1000),
        "dask": lambda: on_dask(given.runs or 1000),
        "memory": lambda: memory(given.runs or 100_000, report=False),
        "report": lambda: memory(given.runs or 100_000, report=True),
    }[given.what]()
    sys.stdout.write(json.dumps({"what": given.what, **made}) + "\n")


if __name__ == "__main__":
    main()
