"""The agent as a process: asked and answering by frames on its standard input and output.

As crates/agent/src/exchange.rs has them: a byte that says what it is, the content's size, the content. Its
namespaces end with it, and it ends with whoever started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from dragstrip.engines.agent import binaries
from dragstrip.engines.contract import Json, Progress
from dragstrip.errors import BadInputError, DragstripError, Raw
from dragstrip.io.shape import COUNT, NUMBER, TEXT, Shape, expect
from dragstrip.io.untrusted import one_line

PROTOCOL = 3
SILENCE_S = 60
"""A run that has not moved for so long hangs."""
SILENCE_OF_HOSTS_S = 600
"""The silence limit of a lab's conductor: it copies the agent (23 MB) to each host, over any line."""
ANSWER_BYTES_MAX = 1 << 30
HEAD = struct.Struct("<cQ")
_RECORDED: dict[str, Shape] = {
    "sha256": TEXT,
    "tables": [{"name": TEXT, "columns": [{"name": TEXT, "kind": TEXT, "offset": COUNT, "bytes": COUNT}]}],
    "captures": [dict.fromkeys(("packets", "missing", "offset", "bytes"), COUNT) | {"point": TEXT}],
}
_RUN: dict[str, Shape] = {
    "kernel": TEXT,
    "cpu_idle_share": NUMBER,
    "cpu_steal_share": NUMBER,
    "softnet": {"dropped": COUNT, "squeezed": COUNT},
    "samples": {"taken": COUNT, "late": COUNT, "worst_ns": COUNT},
}
_CHECK: dict[str, Shape] = {
    **dict.fromkeys(("path", "what", "unit"), TEXT),
    **dict.fromkeys(("asked", "measured", "least", "most"), NUMBER),
}
ANSWER: Shape = {**_RECORDED, "run": _RUN}
"""The line of JSON in the answer to a run, as far as it is used here."""
CHECKED: Shape = {**_RECORDED, "run": {**_RUN, "checks": [_CHECK]}}
"""The line of JSON of a run in real time, whose path was checked with streams of the agent's own."""


@dataclass(frozen=True)
class AgentClient:
    """Starts the agent for an engine in one mode, and exchanges a request and its answer."""

    engine: str
    mode: str = "run"
    grant: str = ""
    """Parts of the machine that it may change (crates/agent/src/machine/grant.rs)."""
    shape: Shape | None = None
    """The shape of the answer's line of JSON; None means that of a run."""
    silence_s: int = SILENCE_S

    def ask(self, request: Json, progress: Progress | None = None, raw: bytes = b"") -> tuple[Json, bytes]:
        """The answer: the line of JSON, and the bytes that it speaks of. `raw` stands behind the request.

        Raises `BadInputError` for what this machine cannot do, `DragstripError` for anything else.
        """
        with self._started() as (process, errors):
            assert process.stdin is not None
            content = json.dumps(request).encode() + (b"\n" + raw if raw else b"")
            try:
                frames = self._frames(process, errors)
                spoken = json.loads(self._content(frames, b"h")).get("protocol")
                if spoken != PROTOCOL:
                    raise self._fault(f"the agent speaks protocol {spoken}, not {PROTOCOL}")
                process.stdin.write(HEAD.pack(b"q", len(content)) + content)
                process.stdin.flush()
                for kind, body in frames:
                    if kind == b"p":
                        now_ns, arrived_bytes = struct.unpack("<QQ", body)
                        if progress is not None and progress(now_ns, arrived_bytes) is False:
                            raise DragstripError("stopped")
                        continue
                    return self._answer(kind, body)
            except BrokenPipeError:
                pass
            except (ValueError, KeyError, struct.error) as error:
                raise self._not_taken(str(error)) from None
            raise self._exit_error(process, errors)

    def refused(self, message: str) -> DragstripError:
        """The error for an agent that could not begin, with its message."""
        return self._fault(message.removeprefix("dragstrip-agent: ").strip())

    def _fault(self, reason: str) -> DragstripError:
        return DragstripError(f"engine {self.engine}: {one_line(reason)}")

    def _answer(self, kind: bytes, body: bytes) -> tuple[Json, bytes]:
        if kind == b"r":
            field, value, expected = body.decode(errors="replace").split("\n")
            raise BadInputError(field, Raw(value), expected, f"engine {self.engine}")
        if kind == b"f":
            raise self._fault(body.decode(errors="replace"))
        if kind != b"a":
            raise self._not_taken(f"it begins with {kind!r}")
        end = body.index(b"\n")
        head = json.loads(body[:end])
        try:
            expect(head, ANSWER if self.shape is None else self.shape, "")
        except BadInputError as error:
            raise self._not_taken(str(error)) from None
        return head, body[end + 1 :]

    def _not_taken(self, reason: str) -> DragstripError:
        return self._fault(f"the agent's answer is invalid: {reason}")

    @contextlib.contextmanager
    def _started(self) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
        words = ["exchange=-", f"grant={self.grant}", f"parent={os.getpid()}"]
        command = [str(binaries.program()), self.mode, *words]
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(  # noqa: S603
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
            try:
                yield process, errors
            finally:
                process.kill()
                for pipe in (process.stdin, process.stdout):
                    if pipe is not None:
                        with contextlib.suppress(OSError):
                            pipe.close()
                process.wait()

    def _frames(self, process: subprocess.Popen[bytes], errors: IO[bytes]) -> Iterator[tuple[bytes, bytes]]:
        while True:
            kind, size = HEAD.unpack(self._exactly(process, errors, HEAD.size))
            if size > ANSWER_BYTES_MAX:
                raise self._fault(f"the agent's answer has {size} bytes")
            yield kind, self._exactly(process, errors, size)

    def _exactly(self, process: subprocess.Popen[bytes], errors: IO[bytes], size: int) -> bytes:
        assert process.stdout is not None
        descriptor, parts = process.stdout.fileno(), bytearray()
        while len(parts) < size:
            if not select.select([descriptor], [], [], self.silence_s)[0]:
                raise self._fault(f"the agent has been silent for {self.silence_s} s")
            part = os.read(descriptor, min(size - len(parts), 1 << 20))
            if not part:
                raise self._exit_error(process, errors)
            parts += part
        return bytes(parts)

    def _content(self, frames: Iterator[tuple[bytes, bytes]], expected_kind: bytes) -> bytes:
        kind, body = next(frames)
        if kind != expected_kind:
            raise self._fault(f"the agent began with {kind!r}")
        return body

    def _exit_error(self, process: subprocess.Popen[bytes], errors: IO[bytes]) -> DragstripError:
        status = process.wait()
        errors.seek(0)
        words = errors.read()[-2000:].decode(errors="replace")
        if words.strip():
            return self.refused(words)
        return self._fault(f"the agent ended (status {status})")
