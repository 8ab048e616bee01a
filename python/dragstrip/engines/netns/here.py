"""Runs on the machine itself: the agent as a process of its own.

It is asked and answers by frames on its standard input and output (crates/agent/src/exchange.rs). Its
namespaces end with it, and it ends with whoever started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import select
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from dragstrip import _core
from dragstrip.cache import cache
from dragstrip.engines.agent import compiled
from dragstrip.engines.agent.locking import locked
from dragstrip.engines.agent.tables import tables_of
from dragstrip.engines.contract import Json, Progress, Say, quietly
from dragstrip.engines.netns.limits import limits, services
from dragstrip.errors import BadInputError, DragstripError, Raw
from dragstrip.outside import one_line
from dragstrip.recording import Recording
from dragstrip.shape import COUNT, NUMBER, OBJECT, TEXT, Shape, expect

NAME = "netns"
PROTOCOL = 1
SILENCE_S = 60
"""A run that has not moved for so long hangs."""
ANSWER_BYTES_MAX = 1 << 30
HEAD = struct.Struct("<cQ")
ANSWER: Shape = {
    "hashes": OBJECT,
    "tables": [{"name": TEXT, "columns": [{"name": TEXT, "kind": TEXT, "offset": COUNT, "bytes": COUNT}]}],
    "run": {
        "kernel": TEXT,
        "cpu_idle_share": NUMBER,
        "cpu_steal_share": NUMBER,
        "softnet": {"dropped": COUNT, "squeezed": COUNT},
        "samples": {"taken": COUNT, "late": COUNT, "worst_ns": COUNT},
    },
}
"""The line of JSON in an answer, as far as it is used here."""


def program(say: Say = quietly) -> Path:
    """The agent; raises `DragstripError` where it cannot be compiled."""
    return compiled.program(say)


def about(say: Say = quietly) -> Json:
    """What this machine's kernel has; raises `DragstripError` without the rights, or without the agent."""
    asked = subprocess.run([program(say), "about"], capture_output=True, text=True, check=False)  # noqa: S603
    if asked.returncode:
        raise refused(asked.stderr)
    found: Json = json.loads(asked.stdout)
    return found


def refused(said: str) -> DragstripError:
    """The agent's last word, where it could not begin."""
    return DragstripError(f"engine {NAME}: {one_line(said.removeprefix('dragstrip-agent: ').strip())}")


def run(scenario: Json, progress: Progress | None = None, *, strict: bool = False) -> Recording:
    """Runs one scenario; if `progress` answers `False` it ends there with an error.

    Raises `BadInputError` for one that this kernel cannot run, `DragstripError` for anything else.
    """
    with locked(cache() / f"{NAME}.lock"):  # two at a time would share the processors
        started, begun = datetime.now(UTC), time.monotonic()
        head, raw = ask({"scenario": scenario, "load": []}, progress)
    wall_s = time.monotonic() - begun
    tables = tables_of(head, memoryview(raw))
    seen = head["run"]
    served = services(scenario, tables["queues"])
    found = limits(served, seen)
    if strict and found:
        raise DragstripError(f"engine {NAME}: the machine limited this run: {'; '.join(found)}")
    provenance = {
        "engine": NAME,
        "version": _core.__version__,
        "seed": scenario["seed"],
        "started": started.isoformat(timespec="seconds"),
        **head["hashes"],
        "kernel": {"release": seen.pop("kernel"), "package": platform.version()},
        "wall_s": round(wall_s, 3),
        "verified": {**seen, "service": served, "limits": found},
    }
    return Recording(scenario, tables, provenance)


def ask(request: Json, progress: Progress | None = None) -> tuple[Json, bytes]:
    """The agent's answer: the line of JSON, and the bytes that it speaks of."""
    with _started() as (process, said):
        assert process.stdin is not None
        content = json.dumps(request).encode()
        try:
            frames = _frames(process, said)
            spoken = json.loads(_content(frames, b"h")).get("protocol")
            if spoken != PROTOCOL:
                raise DragstripError(f"engine {NAME}: the agent speaks protocol {spoken}, not {PROTOCOL}")
            process.stdin.write(HEAD.pack(b"q", len(content)) + content)
            process.stdin.flush()
            for kind, body in frames:
                if kind == b"p":
                    (now_ns,) = struct.unpack("<Q", body)
                    if progress is not None and progress(now_ns) is False:
                        raise DragstripError("stopped")
                    continue
                return _answer(kind, body)
        except BrokenPipeError:
            pass
        except (ValueError, KeyError, struct.error) as error:
            raise _not_taken(str(error)) from None
        raise _gone(process, said)


def _answer(kind: bytes, body: bytes) -> tuple[Json, bytes]:
    if kind == b"r":
        field, value, expected = body.decode(errors="replace").split("\n")
        raise BadInputError(field, Raw(value), expected, f"engine {NAME}")
    if kind == b"f":
        raise DragstripError(f"engine {NAME}: {one_line(body.decode(errors='replace'))}")
    if kind != b"a":
        raise _not_taken(f"it begins with {kind!r}")
    end = body.index(b"\n")
    head = json.loads(body[:end])
    try:
        expect(head, ANSWER, "")
    except BadInputError as error:
        raise _not_taken(str(error)) from None
    return head, body[end + 1 :]


def _not_taken(reason: str) -> DragstripError:
    return DragstripError(f"engine {NAME}: the agent's answer cannot be taken: {one_line(reason)}")


@contextlib.contextmanager
def _started() -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    command = [str(program()), "run", "exchange=-", f"parent={os.getpid()}"]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said
        )
        try:
            yield process, said
        finally:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            process.wait()


def _frames(process: subprocess.Popen[bytes], said: IO[bytes]) -> Iterator[tuple[bytes, bytes]]:
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    while True:
        kind, size = HEAD.unpack(_exactly(descriptor, HEAD.size, lambda: _gone(process, said)))
        if size > ANSWER_BYTES_MAX:
            raise DragstripError(f"engine {NAME}: the agent's answer has {size} bytes")
        yield kind, _exactly(descriptor, size, lambda: _gone(process, said))


def _exactly(descriptor: int, size: int, gone: Callable[[], DragstripError]) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        if not select.select([descriptor], [], [], SILENCE_S)[0]:
            raise DragstripError(f"engine {NAME}: no word from the agent for {SILENCE_S} s")
        part = os.read(descriptor, min(size - len(parts), 1 << 20))
        if not part:
            raise gone()
        parts += part
    return bytes(parts)


def _content(frames: Iterator[tuple[bytes, bytes]], wanted: bytes) -> bytes:
    kind, body = next(frames)
    if kind != wanted:
        raise DragstripError(f"engine {NAME}: the agent began with {kind!r}")
    return body


def _gone(process: subprocess.Popen[bytes], said: IO[bytes]) -> DragstripError:
    status = process.wait()
    said.seek(0)
    words = said.read()[-2000:].decode(errors="replace")
    if words.strip():
        return refused(words)
    return DragstripError(f"engine {NAME}: the agent has gone (status {status})")
