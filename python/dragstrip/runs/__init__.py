"""Runs in parallel on this machine, on threads of this process or in worker processes.

Three entries. `run_all` (`pool`) makes a list of runs, records and measures each, and decides between threads
and worker processes; a run that fails is an outcome. `run_parallel` (`parallel`) is the only place with
threads: it calls a function with each item, for callers whose unit of work is more than a run or whose
recording is not kept, and an error ends it. `Local` (`local`) keeps worker processes busy for callers whose
runs are not a list yet (sweeps).

Below them: `process` is a worker process as its parent sees it, `answer` checks what it answers, `child` is
the process itself, and `work` makes one run in any of these places. There is one protocol: one line per
order, lines of JSON back. Out of scope: experiments, claims and reports.
"""

from __future__ import annotations

from dragstrip.runs.parallel import run_parallel, worker_count
from dragstrip.runs.pool import Outcome, Task, Watcher, in_this_process, raise_failure, run_all
from dragstrip.runs.process import UNLIMITED, Limits

__all__ = [
    "UNLIMITED",
    "Limits",
    "Outcome",
    "Task",
    "Watcher",
    "in_this_process",
    "raise_failure",
    "run_all",
    "run_parallel",
    "worker_count",
]
