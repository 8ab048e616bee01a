"""Runs side by side on this machine: on threads of this process, or in worker processes.

`runs.py` makes a list of runs, `local.py` keeps worker processes busy for whoever has more of them than a
list (a sweep), `process.py` is a worker process as its parent sees it, `answer.py` checks what it answers,
`child.py` is the process itself, and `work.py` what is done for a run wherever it is done. There is one
protocol: a line for a run, lines of JSON back.
"""

from __future__ import annotations

from dragstrip.pool.process import UNLIMITED, Limits
from dragstrip.pool.runs import Outcome, Task, Watcher, complain, run_all, worker_count

__all__ = ["UNLIMITED", "Limits", "Outcome", "Task", "Watcher", "complain", "run_all", "worker_count"]
