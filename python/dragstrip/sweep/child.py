"""A child process that makes runs, one after another: the process itself, below, and its handle.

A run's fault, a crash of the core or a memory limit included, ends with its child; the coordinator starts
another one. Children die with their parent. Tasks and answers are lines on pipes.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

MODULE = "dragstrip.sweep.child"
"""What a child runs; tests put another one in its place."""

PR_SET_PDEATHSIG = 1  # linux/prctl.h
READY = {"ready": True}
"""A child's first line."""
START_S = 60.0
"""Loading the libraries takes half a second, on a busy machine with a cold disk much more."""
OUTPUT_BYTES = 2000
"""Of a dead child's last output that is kept."""


@dataclass(frozen=True)
class Limits:
    """What one run may take."""

    time_s: float = 600.0
    """On the clock of the machine it runs on."""
    memory_bytes: int = 4 << 30
    """Address space of the child (RLIMIT_AS)."""


class Child:
    """The handle of a child process."""

    def __init__(self, limits: Limits) -> None:
        self.output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
        # One thread each: there is a child per core.
        environment.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        self.process = subprocess.Popen(  # noqa: S603 - our own interpreter, our own module
            [sys.executable, "-m", MODULE, str(os.getpid()), str(limits.memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.output,
            env=environment,
            bufsize=0,
        )
        self._partial = b""
        self.ready_at: float | None = None
        """When its libraries were loaded, on the monotonic clock; a run's time counts from here."""

    def fileno(self) -> int:
        """For select."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def send(self, text: str, engine: str, recording: str = "") -> None:
        """Gives it a run; where its full recording goes, if it is kept. The child may be dead already."""
        assert self.process.stdin is not None
        line = memoryview(f"{json.dumps([engine, recording])}\t{text}\n".encode())
        with contextlib.suppress(BrokenPipeError):  # seen as an end of file
            while line:  # an unbuffered pipe may take a part only
                line = line[self.process.stdin.write(line) :]

    def answers(self) -> list[dict[str, Any]] | None:
        """The answers that have arrived; none when the child is gone."""
        piece = os.read(self.fileno(), 1 << 20)
        if not piece:
            return None
        *lines, self._partial = (self._partial + piece).split(b"\n")
        answers = [json.loads(line) for line in lines]
        if answers and answers[0] == READY:
            self.ready_at = time.monotonic()
            del answers[0]
        return answers

    def overdue(self, since: float, limits: Limits) -> bool:
        """Whether the run it was given then has had its time (its own start has some too)."""
        now = time.monotonic()
        if self.ready_at is None:
            return now - since > limits.time_s + START_S
        return now - max(since, self.ready_at) > limits.time_s

    def end(self) -> tuple[str, str]:
        """How a dead child ended, and its last output."""
        status = self.process.wait()
        self.output.seek(0, os.SEEK_END)
        self.output.seek(max(0, self.output.tell() - OUTPUT_BYTES))
        said = self.output.read().decode(errors="replace").strip()
        self.close()
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        return f"its process ended with {how}", said

    def close(self) -> None:
        """Kills it, if it lives, and waits for its end."""
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.output):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self.process.wait()


def out_of_memory(output: str) -> bool:
    """Whether a dead child's last words are those of an allocation that failed."""
    return "memory allocation of" in output or "MemoryError" in output or "bad_alloc" in output


# --- the process itself -----------------------------------------------------------------------


def main() -> None:
    """Makes runs until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the coordinator decides
    _die_with_parent(int(sys.argv[1]))
    # What the core or a library prints must not end up between our answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    memory = int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable()
    without_pandas()
    import pyarrow.compute  # noqa: F401  (else the first run would load it)

    from dragstrip.engines import sim  # noqa: F401
    from dragstrip.measures import summarise  # noqa: F401

    answers.write(json.dumps(READY) + "\n")
    answers.flush()
    for line in sys.stdin:
        head, _, text = line.partition("\t")
        engine, recording = json.loads(head)
        answers.write(json.dumps(answer(text.rstrip("\n"), engine, recording)) + "\n")
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
            raise ModuleNotFoundError("pandas is not for a sweep's child", name=name)


def _die_with_parent(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        sys.exit(1)


def answer(text: str, engine: str, recording: str) -> dict[str, Any]:
    """Makes one run: its figures, or why there are none."""
    from dragstrip.errors import DragstripError

    wall, cpu = time.monotonic(), time.process_time()
    try:
        made = _run(text, engine, recording)
    except MemoryError:
        made = {"status": "memory limit", "reason": "it needed more memory than a run may take"}
    except (DragstripError, OSError) as error:
        made = {"status": "failed", "reason": str(error) or type(error).__name__}
    except Exception as error:  # noqa: BLE001 - any other fault is this run's failure, told in full
        import traceback

        made = {
            "status": "failed",
            "reason": f"{type(error).__name__}: {error}",
            "output": traceback.format_exc()[-OUTPUT_BYTES:],
        }
    made["cpu_s"] = time.process_time() - cpu
    made["wall_s"] = time.monotonic() - wall
    return made


def _run(text: str, engine: str, folder: str) -> dict[str, Any]:
    from dragstrip.engines import named
    from dragstrip.measures import summarise
    from dragstrip.recording import write

    recording = named(engine).run(json.loads(text), {})
    if folder:
        write(recording, Path(folder))
    return figures(summarise(recording), recording.provenance["recording_sha256"])


def figures(summary: dict[str, Any], sha256: str) -> dict[str, Any]:
    """A run's summary (measures.summarise) as columns of the store."""
    queue = next(iter(summary["queues"]), None)
    probe = next(iter(summary["probes"]), None)
    run: dict[str, Any] = {
        "goodput_bps_total": sum(flow["goodput_bps"] for flow in summary["flows"]),
        "jain": summary["jain"],
    }
    if queue is not None:
        run.update({f"queue_bytes_{part}": value for part, value in queue["backlog_bytes"].items()})
        run.update(dropped=queue["dropped"], marked=queue["marked"])
    if probe is not None:
        run.update(
            probe_ms_p50=probe["rtt_ms"]["p50"],
            probe_ms_p95=probe["rtt_ms"]["p95"],
            probe_lost=probe["lost"],
        )
    return {
        "status": "ok",
        "sha256": sha256,
        "run": run,
        "flows": [_flow(flow) for flow in summary["flows"]],
    }


def _flow(flow: dict[str, Any]) -> dict[str, Any]:
    kept = ("flow", "label", "cc", "goodput_bps", "throughput_bps_p50")
    made = {name: flow[name] for name in (*kept, "retransmits", "segments_sent", "share")}
    made.update({f"rtt_ms_{part}": value for part, value in flow["rtt_ms"].items()})
    delay_ms = flow["rtt_ms"]["p50"]
    # Kleinrock's power: throughput over delay (L. Kleinrock, Power and deterministic rules of thumb for
    # probabilistic problems in computer communications, ICC 1979).
    made["power_bps_per_ms"] = flow["goodput_bps"] / delay_ms if delay_ms else None
    return made


if __name__ == "__main__":
    main()
