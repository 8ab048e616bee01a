"""Programs behind a described path in real time, forwarded by the agent (crates/agent/src/shell)."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from dragstrip.engines.agent import binaries
from dragstrip.engines.agent.answers import Answer
from dragstrip.engines.agent.packets import Packets
from dragstrip.engines.contract import Json, Refusal, Say, quietly
from dragstrip.errors import DragstripError
from dragstrip.io.shape import COUNT, TEXT, Shape, expect

SERVER, SERVER6 = "198.18.0.2", "2001:2::2"
"""Addresses of the server's end (`addresses` in crates/agent/src/shell/mod.rs)."""
LATE_NS = 1_000_000
"""A run whose packets left later than this, one in a hundred, is marked."""
STREAM_BYTES_MAX = 16 << 20
"""Bytes of a stream that are kept, as in a guest (crates/agent/src/commands/live.rs)."""
PIECE = 1 << 16
STREAMS = OUTPUT, ERRORS, SERVER_OUTPUT = ("standard output", "standard error", "the server's output")
"""Names of the streams, as a guest's answer has them (engines/vm/programs.py)."""
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
    input: bytes | None = None
    """The command's standard input, whose streams are returned then; None: all are this process's own."""
    folder: Path | None = None
    """Folder in which the programs start; None: that of this process."""


@dataclass
class ShellRecorder:
    """Recording of a run, and the line that shows it meanwhile."""

    packets: Packets | None = None
    """Captures at one host or both."""
    live: Callable[[Json], object] | None = None
    """Called every second with how things stand (crates/agent/src/shell/recorder)."""
    answer: Answer | None = None
    """The tables, after the run."""

    def request(self, scenario: Json, ends: tuple[str, str], files: contextlib.ExitStack) -> Json:
        """Return what the agent is asked for; `files` are open until it has ended."""
        probe = next(iter(scenario["probes"]), None)
        keys = ("interval_ns", "size_bytes", "label", "target")
        request: Json = {
            "interval_ns": scenario["record"]["interval_ns"],
            "ping": None if probe is None else {key: probe[key] for key in keys},
            "captures": None,
            "live": None,
        }
        if self.packets is not None:
            paths = self.packets.files()
            opened = [files.enter_context(paths[end].open("wb")) if end in paths else None for end in ends]
            request["captures"] = {
                **self.packets.request(),
                "points": list(ends),
                "files": [None if file is None else file.fileno() for file in opened],
            }
        return request


def run(
    scenario: Json,
    ends: tuple[str, str],
    cc: str,
    programs: Programs,
    limit_s: float,
    say: Say = quietly,
    recorder: ShellRecorder | None = None,
) -> Json:
    """Run programs at the hosts `ends` of a scenario (server, client), and return their outcome.

    Everything that was started ends with the command, and with this process. The `recorder` gets its
    tables. With an `input` the outcome has `streams` by name and `flooded`, the name of one that was closed
    because it had more than `STREAM_BYTES_MAX`; there is no live line then.
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
        "recorder": None,
    }
    agent = binaries.program(say).resolve()
    kept: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        streams = None
        if programs.input is not None:
            streams = _Streams(stack.enter_context(_memory("input", programs.input)), stack)
            request["server_output"] = streams.end(SERVER_OUTPUT)
        if recorder is not None:
            request["recorder"] = recorder.request(scenario, ends, stack)
        live = recorder.live if recorder is not None and streams is None else None
        status, answer = _ask([str(agent), "shell"], request, programs, streams, live, kept)
    last = _last_line(kept)
    if status or not answer:
        raise DragstripError(f"shell: the agent ended (status {status}){last}")
    line, _, raw = answer.partition(b"\n")
    head: Json = json.loads(line)
    if "refused" in head:
        name, value, expected = head["refused"]
        raise Refusal(name, value, expected + (last if name == "--server" else "")).error("shell")
    outcome: Json = head["run"]
    expect(outcome, _ANSWER, "")
    if recorder is not None:
        recorder.answer = head, raw
    return {**outcome, **kept}


def _ask(
    words: list[str],
    request: Json,
    programs: Programs,
    streams: _Streams | None,
    live: Callable[[Json], object] | None,
    kept: dict[str, Any],
) -> tuple[int, bytes]:
    """Run the agent; returns its status and its answer. `kept` gets the programs' streams."""
    with contextlib.ExitStack() as files:
        lines = None
        numbers = list(_files(request))
        if streams is not None:
            numbers.append(streams.end(SERVER_OUTPUT))
        if live is not None:
            source, target = os.pipe()
            lines = files.enter_context(os.fdopen(source, "rb"))
            closing = files.enter_context(os.fdopen(target, "wb"))
            request["recorder"]["live"] = target
            numbers.append(target)
        request_file = files.enter_context(_memory("request", json.dumps(request).encode()))
        answer = files.enter_context(_memory("answer"))
        words = [*words, f"request={request_file}", f"answer={answer}", f"parent={os.getpid()}"]
        if streams is None:
            files.enter_context(_patient())
        places = _places(programs, streams)
        process = subprocess.Popen(  # noqa: S603
            words,
            pass_fds=(request_file, answer, *numbers),
            cwd=programs.folder,
            stdin=places[0],
            stdout=places[1],
            stderr=places[2],
        )
        try:
            if streams is not None:
                kept.update(streams.collected())
            if live is not None and lines is not None:
                closing.close()
                for line in lines:
                    live(json.loads(line))
            process.wait()
        finally:
            process.kill()
            process.wait()
        return process.returncode, os.pread(answer, os.fstat(answer).st_size, 0)


def _files(request: Json) -> Iterator[int]:
    """Yield the numbers of the files that the agent writes captures into."""
    captures = (request["recorder"] or {}).get("captures") or {}
    yield from (file for file in captures.get("files", ()) if file is not None)


def _places(programs: Programs, streams: _Streams | None) -> tuple[int | None, int | None, int | None]:
    """Return what the command's three streams are; None: this process's own."""
    if streams is None:
        return None, sys.stderr.fileno() if programs.output_to_errors else None, None
    return streams.input, streams.end(OUTPUT), streams.end(ERRORS)


def _last_line(kept: Mapping[str, Any]) -> str:
    """Return the last line that programs printed, for an error."""
    printed = b"\n".join(kept.get("streams", {}).values()).decode(errors="replace")
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    return f", its last line: {lines[-1][:200]}" if lines else ""


class _Streams:
    """The programs' streams: descriptors for them, and pipes that are read here."""

    def __init__(self, given: int, stack: contextlib.ExitStack) -> None:
        self.input = given
        self._read: dict[str, BinaryIO] = {}
        self._written: dict[str, BinaryIO] = {}
        for name in STREAMS:
            read, written = os.pipe()
            self._read[name] = stack.enter_context(os.fdopen(read, "rb", buffering=0))
            self._written[name] = stack.enter_context(os.fdopen(written, "wb", buffering=0))

    def end(self, name: str) -> int:
        """Return the descriptor that a program writes to."""
        return self._written[name].fileno()

    def collected(self) -> dict[str, Any]:
        """Read all streams until nobody has them open any more."""
        for file in self._written.values():
            file.close()
        printed = {name: bytearray() for name in STREAMS}
        flooded: str | None = None
        with selectors.DefaultSelector() as selector:
            for name, file in self._read.items():
                selector.register(file, selectors.EVENT_READ, name)
            while selector.get_map():
                for key, _ in selector.select():
                    file, stream = self._read[key.data], printed[key.data]
                    piece = file.read(PIECE)
                    room = STREAM_BYTES_MAX - len(stream)
                    stream += piece[:room]
                    if not piece or len(piece) > room:
                        selector.unregister(file)
                        file.close()
                        flooded = flooded or (key.data if piece else None)
        return {"streams": {name: bytes(content) for name, content in printed.items()}, "flooded": flooded}


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


def reasons(outcome: Mapping[str, Any]) -> list[str]:
    """Return reasons why figures are not those of the path: the machine was late, or lost packets itself."""
    marks = []
    for direction in outcome["directions"]:
        name, lateness = direction["direction"], direction["lateness"]
        if lateness["p99_ns"] > LATE_NS:
            late_ms = lateness["p99_ns"] / 1e6
            marks.append(f"{name}: one packet in a hundred left {late_ms:.2f} ms late or later")
        for key, side in (("device_drops", "before"), ("refused", "behind")):
            if direction[key]:
                marks.append(f"{name}: {direction[key]} packets were lost {side} the path")
    return marks
