"""A worker process: reads orders line by line, makes the runs and answers in lines of JSON.

It ends with its parent. A failure in one run (a crash of the core, the memory limit) fails that run alone.
`process.py` starts it.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import resource
import signal
import sys
import time
from typing import IO, Any

from dragstrip.engines.contract import Progress
from dragstrip.runs import work

PR_SET_PDEATHSIG = 1  # linux/prctl.h
READY = {"ready": True}
"""The first line that a worker sends."""


def main() -> None:
    """Make runs until standard input ends.

    Arguments: the parent's process id, and the memory limit in bytes (0: none).
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what it holds is removed on the way out
    die_with_parent(int(sys.argv[1]))
    # Output of the core or of a library must not end up between our answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    if memory := int(sys.argv[2]):
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable()
    without_pandas()
    import pyarrow.compute  # noqa: F401  (else the first run would load it)

    from dragstrip.results.measures import summarise  # noqa: F401

    _say(answers, READY)
    for line in sys.stdin:
        order = work.Order.read(line)
        progress = _reports(answers) if order.watched else None
        _say(answers, work.perform(order, progress))


def die_with_parent(parent: int) -> None:
    """Make this process end when its parent does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        sys.exit(1)


REPORT_S = 0.1
"""Least seconds of real time between two reports of a run's progress, since nobody sees more of them."""


def _reports(answers: IO[str]) -> Progress:
    """Return a `Progress` that passes on a run's first report and then ten a second."""
    due_at = 0.0

    def advanced(now_ns: int, arrived_bytes: int = 0, /) -> None:
        nonlocal due_at
        if (now := time.monotonic()) >= due_at:
            due_at = now + REPORT_S
            _say(answers, {"now_ns": now_ns, "arrived_bytes": arrived_bytes})

    return advanced


def _say(answers: IO[str], content: dict[str, Any]) -> None:
    answers.write(json.dumps(content) + "\n")
    answers.flush()


def without_pandas() -> None:
    """Keep Arrow from importing pandas for a single isinstance check, which takes half a second or more.

    For the package's own processes only, because Arrow remembers the result.
    """
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _WithoutPandas())


class _WithoutPandas:
    """An import hook that reports pandas as not installed."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        """Raise `ModuleNotFoundError` for pandas; the import system calls this for every new import."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not for a worker process", name=name)


if __name__ == "__main__":
    main()
