"""A worker process: reads orders line by line, makes the runs, answers in lines of JSON.

It dies with its parent, and what goes wrong in one run (a crash of the core, a memory limit) is that run's
failure alone. Started by `process.py`.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import resource
import signal
import sys
from functools import partial
from typing import IO, Any

from dragstrip.pool import work

PR_SET_PDEATHSIG = 1  # linux/prctl.h
READY = {"ready": True}
"""The first line."""


def main() -> None:
    """Makes runs until standard input ends. Arguments: the parent's process id, bytes of memory (0: all)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what it holds is removed on the way out
    die_with_parent(int(sys.argv[1]))
    # What the core or a library prints must not end up between our answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    if memory := int(sys.argv[2]):
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable()
    without_pandas()
    import pyarrow.compute  # noqa: F401  (else the first run would load it)

    from dragstrip.measures import summarise  # noqa: F401

    _say(answers, READY)
    for line in sys.stdin:
        order = work.Order.read(line)
        progress = partial(_advanced, answers) if order.watched else None
        _say(answers, work.perform(order, progress))


def die_with_parent(parent: int) -> None:
    """From now on this process ends when its parent does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        sys.exit(1)


def _advanced(answers: IO[str], now_ns: int, arrived_bytes: int = 0) -> None:
    _say(answers, {"now_ns": now_ns, "arrived_bytes": arrived_bytes})


def _say(answers: IO[str], content: dict[str, Any]) -> None:
    answers.write(json.dumps(content) + "\n")
    answers.flush()


def without_pandas() -> None:
    """Where pandas is installed, Arrow would load it for a single isinstance; that is half a second or more.

    For processes of our own only: Arrow remembers the answer.
    """
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _WithoutPandas())


class _WithoutPandas:
    """An import hook that says there is no pandas."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        """Called for every import that is not done yet."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not for a worker process", name=name)


if __name__ == "__main__":
    main()
