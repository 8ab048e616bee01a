"""Programs behind a described path in real time, forwarded by the agent (crates/agent/src/shell)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragstrip.engines.agent import binaries
from dragstrip.engines.contract import Json, Refusal, Say, quietly
from dragstrip.errors import DragstripError
from dragstrip.io.shape import COUNT, TEXT, Shape, expect

SERVER, SERVER6 = "198.18.0.2", "2001:2::2"
"""Addresses of the server's end (`addresses` in crates/agent/src/shell/mod.rs)."""
LATE_NS = 1_000_000
"""A run whose packets left later than this, one in a hundred, is marked."""
ANSWER_BYTES_MAX = 1 << 20
_DIRECTION: dict[str, Shape] = {
    "direction": TEXT,
    **dict.fromkeys(("packets_in", "bytes_in", "packets_out", "bytes_out", "marks", "copies"), COUNT),
    **dict.fromkeys(("refused", "device_drops"), COUNT),
    "lateness": dict.fromkeys(("packets", "median_ns", "p99_ns", "worst_ns"), COUNT),
}
_ANSWER: Shape = {"rights": TEXT, "duration_ns": COUNT, "directions": [_DIRECTION]}


@dataclass(frozen=True)
class Programs:
    """Programs at the two ends of a path."""

    command: Sequence[str]
    """At the client's end; for an interactive shell the shell."""
    server: Sequence[str] = ()
    """Started first, at the server's end."""
    interactive: bool = False
    environment: Json = field(default_factory=dict)
    """Variables beside those of this process."""
    output_to_errors: bool = False
    """The command's standard output goes to standard error."""
    network: bool = True
    """The command reaches the real network through the path."""


def run(
    scenario: Json, ends: tuple[str, str], cc: str, programs: Programs, limit_s: float, say: Say = quietly
) -> Json:
    """Run programs at the hosts `ends` of a scenario (server, client), and return their outcome.

    Everything that was started ends with the command, and with this process.
    Raises `BadInputError` for what this machine does not allow, `DragstripError` for anything else.
    """
    addresses = {"DRAGSTRIP_SERVER": SERVER, "DRAGSTRIP_SERVER6": SERVER6}
    request = {
        "scenario": scenario,
        "ends": list(ends),
        "cc": cc,
        "server": list(programs.server),
        "command": list(programs.command),
        "interactive": programs.interactive,
        "environment": {**addresses, **programs.environment},
        "limit_ns": round(limit_s * 1e9),
        "network": programs.network,
    }
    agent = binaries.program(say)
    with _memory("request", json.dumps(request).encode()) as asked, _memory("answer") as answer:
        words = [str(agent), "shell", f"request={asked}", f"answer={answer}", f"parent={os.getpid()}"]
        with _patient():
            process = subprocess.Popen(  # noqa: S603
                words,
                pass_fds=(asked, answer),
                stdout=sys.stderr.fileno() if programs.output_to_errors else None,
            )
            try:
                process.wait()
            finally:
                process.kill()
                process.wait()
        text = os.pread(answer, ANSWER_BYTES_MAX, 0)
    if process.returncode or not text:
        raise DragstripError(f"shell: the agent ended (status {process.returncode})")
    content: dict[str, Any] = json.loads(text)
    if "refused" in content:
        name, value, expected = content["refused"]
        raise Refusal(name, value, expected).error("shell")
    expect(content, _ANSWER, "")
    return content


@contextlib.contextmanager
def _memory(name: str, content: bytes = b"") -> Iterator[int]:
    """A file in memory, which goes with its last descriptor."""
    descriptor = os.memfd_create(name)
    try:
        if content:
            os.write(descriptor, content)
            os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _patient() -> Iterator[None]:
    """Ctrl-C is for the command alone."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def reasons(outcome: Json) -> list[str]:
    """Return reasons why figures are not those of the path: the machine was late, or lost packets itself."""
    marks = []
    for direction in outcome["directions"]:
        name, lateness = direction["direction"], direction["lateness"]
        if lateness["p99_ns"] > LATE_NS:
            late_ms = lateness["p99_ns"] / 1e6
            marks.append(f"{name}: one packet in a hundred left {late_ms:.2f} ms late or later")
        for key, who in (("device_drops", "before"), ("refused", "behind")):
            if direction[key]:
                marks.append(f"{name}: {direction[key]} packets were lost {who} the path")
    return marks
