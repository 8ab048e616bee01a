"""A worker process as its parent sees it: a pipe for orders, a pipe for answers, and its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dragstrip.errors import BadInputError, Raw
from dragstrip.io.untrusted import size_text
from dragstrip.runs.answer import ANSWER_MAX, parsed
from dragstrip.runs.child import READY
from dragstrip.runs.work import OUTPUT_CHARACTERS, Answer

MODULE = "dragstrip.runs.child"
"""The module that a worker process runs; tests replace it."""

START_S = 60.0
"""Seconds allowed for loading the libraries: half a second usually, much more on a busy machine with a cold
disk."""


@dataclass(frozen=True)
class Limits:
    """Limits of one run."""

    time_s: float = 600.0
    """Seconds on the clock of the machine that makes the run."""
    memory_bytes: int = 4 << 30
    """Address space of the process in bytes (RLIMIT_AS); 0 means no limit."""


UNLIMITED = Limits(float("inf"), 0)


class Process:
    """A worker process, its pipes and its partial answer."""

    def __init__(self, limits: Limits) -> None:
        self.output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self.process = subprocess.Popen(  # noqa: S603 - our own interpreter, our own module
            [sys.executable, "-P", "-m", MODULE, str(os.getpid()), str(limits.memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.output,
            env=_environment(),
            bufsize=0,
        )
        self._partial: list[bytes] = []
        """Pieces of a line whose end has not arrived."""
        self._partial_bytes = 0
        self.ready_at: float | None = None
        """Time on the monotonic clock when its libraries were loaded, from which its first run's time
        counts."""

    def fileno(self) -> int:
        """Return the file descriptor of its answers, for a selector."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def send(self, line: str) -> None:
        """Send an order (`Order.line`) to a process that may be dead already."""
        assert self.process.stdin is not None
        unsent = memoryview(line.encode())
        with contextlib.suppress(BrokenPipeError):  # seen as an end of file
            while unsent:  # an unbuffered pipe may take a part only
                unsent = unsent[self.process.stdin.write(unsent) :]

    def answers(self) -> list[Answer] | None:
        """Return the messages received (answers, and `now_ns` of watched runs), or None after its end.

        Raises `BadInputError` for anything else; nothing after it can be trusted.
        """
        piece = os.read(self.fileno(), 1 << 20)
        if not piece:
            return None
        self._partial.append(piece)
        self._partial_bytes += len(piece)
        if self._partial_bytes > ANSWER_MAX:
            expected = f"at most {size_text(ANSWER_MAX)}"
            raise BadInputError("", Raw(size_text(self._partial_bytes)), expected, "a worker's answer")
        if b"\n" not in piece:
            return []
        *lines, rest = b"".join(self._partial).split(b"\n")
        self._partial, self._partial_bytes = [rest], len(rest)
        answers = [parsed(line) for line in lines]
        for answer in answers:
            if not isinstance(answer, dict):
                raise BadInputError("", answer, "an object", "a worker's answer")
        if answers and answers[0] == READY:
            self.ready_at = time.monotonic()
            del answers[0]
        return answers

    def overdue(self, since: float, limits: Limits) -> bool:
        """Return whether the run handed over at `since` has reached its time limit, start-up excepted."""
        now = time.monotonic()
        if self.ready_at is None:
            return now - since > limits.time_s + START_S
        return now - max(since, self.ready_at) > limits.time_s

    def end(self) -> tuple[str, str]:
        """Return how a dead process ended, and its last output."""
        status = self.process.wait()
        self.output.seek(0, os.SEEK_END)
        self.output.seek(max(0, self.output.tell() - OUTPUT_CHARACTERS))
        last_output = self.output.read().decode(errors="replace").strip()
        self.close()
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        return f"its process ended with {how}", last_output

    def ask_to_end(self) -> None:
        """Ask the process to end after removing its temporary folders; `close` does not wait for that."""
        self.process.terminate()

    def ended_within(self, seconds: float) -> bool:
        """Return whether the process ends within `seconds`."""
        try:
            self.process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            return False
        return True

    def close(self) -> None:
        """Kill the process if it is alive, and wait for its end."""
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.output):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self.process.wait()


def _environment() -> dict[str, str]:
    """Return an environment in which a worker finds this process's modules, but none in the current folder.

    A file there may be called `queue.py` by chance, or `numpy.py` on purpose (`-P` does the same for what
    `-m` would add). If this package itself is in the current folder, that folder comes last.
    """
    current_folder, package = Path.cwd(), Path(__file__).resolve().parents[2]
    places = [part for part in sys.path if part and Path(part).resolve() != current_folder]
    if str(package) not in places:
        places.append(str(package))
    # One thread each: there is a worker per core.
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {**os.environ, "PYTHONPATH": os.pathsep.join(places), **threads}


def out_of_memory(output: str) -> bool:
    """Return whether a dead process's last output is that of a failed allocation."""
    return "memory allocation of" in output or "MemoryError" in output or "bad_alloc" in output
