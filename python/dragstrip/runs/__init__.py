"""Runs in parallel on this machine, on threads of this process or in worker processes.

Belongs here: `runs` makes a list of runs, `local` keeps worker processes busy for callers with more runs than
a list (sweeps), `process` is a worker process as its parent sees it, `answer` checks what it answers, `child`
is the process itself, and `work` makes one run in any of these places. There is one protocol: one line per
order, lines of JSON back. Does not belong here: experiments, claims and reports.
"""

from __future__ import annotations

from dragstrip.runs.pool import Outcome, Task, Watcher, raise_failure, run_all, worker_count
from dragstrip.runs.process import UNLIMITED, Limits

__all__ = ["UNLIMITED", "Limits", "Outcome", "Task", "Watcher", "raise_failure", "run_all", "worker_count"]
