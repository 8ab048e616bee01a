"""Programs behind a described path in virtual time, on an emulated kernel (crates/agent/src/programs)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragstrip.engines.agent import binaries, bpf
from dragstrip.engines.contract import Json, Say, quietly
from dragstrip.engines.kernels import kernel as kernels
from dragstrip.engines.vm import machine
from dragstrip.engines.vm.closure import ENVIRONMENT
from dragstrip.engines.vm.emulate import expect_parts, wait
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io import shape
from dragstrip.io.files import sha256
from dragstrip.io.shape import COUNT, NUMBER, TEXT, Shape, expect

if TYPE_CHECKING:
    from dragstrip.engines.agent.bpf import Loadable
    from dragstrip.engines.agent.packets import Packets
    from dragstrip.engines.vm.closure import Closure

DATE_S = 1_767_225_600
"""The guest's clock when a run begins: 2026-01-01T00:00:00Z."""
INPUT_BYTES_MAX = 16 << 20
"""Bytes of standard input."""
STREAMS = ("standard output", "standard error", "the server's output")
_DIRECTION: dict[str, Shape] = {
    "direction": TEXT,
    **dict.fromkeys(("packets_in", "bytes_in", "packets_out", "bytes_out", "marks"), COUNT),
    "drops": shape.ByName(COUNT),
}
_PART: dict[str, Shape] = {"name": TEXT, "offset": COUNT, "bytes": COUNT}
_STATUS = shape.Nullable(COUNT)
_ANSWER: Shape = {
    "run": {
        "kernel": TEXT,
        "status": _STATUS,
        "server_status": _STATUS,
        "flooded": shape.Nullable(TEXT),
        "duration_ns": COUNT,
        "address": TEXT,
        "path": [TEXT],
        "directions": [_DIRECTION],
        "cpu_idle_share": NUMBER,
        "missing_outputs": [TEXT],
    },
    "streams": [_PART],
    "outputs": [_PART],
    "captures": [dict.fromkeys(("packets", "missing", "offset", "bytes"), COUNT) | {"point": TEXT}],
}


def prepare(kernel_name: str | None = None, say: Say = quietly) -> None:
    """Compile the agent and boot the machine, once; raises `DragstripError` with what is missing."""
    machine.version()
    expect_parts()
    image = kernels.find_kernel(kernel_name)
    binaries.lockstep(say)
    machine.snapshot(image, binaries.program(say, machine.GUEST), say, machine.FOR_PROGRAMS)


@dataclass(frozen=True)
class GuestPrograms:
    """Programs at the two ends of a path, with their files."""

    closure: Closure
    command: Sequence[str]
    """At the client's end."""
    server: Sequence[str] = ()
    """Started first, at the server's end."""
    input: bytes = b""
    """The command's standard input."""
    outputs: Sequence[str] = ()
    """Files that the command leaves, to be returned."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables beside those of `ENVIRONMENT`."""


@dataclass(frozen=True)
class GuestOutcome:
    """The result of programs in a guest."""

    run: Json
    """Statuses, times, both directions, and lines on the network as it was built (`verified`)."""
    streams: Mapping[str, bytes]
    """By name (`STREAMS`)."""
    outputs: Mapping[str, bytes]
    """Contents by the name that was asked for."""
    provenance: Json
    """Kernel, emulator and files."""


def run(
    scenario: Json,
    ends: tuple[str, str],
    cc: str,
    programs: GuestPrograms,
    limit_s: float,
    *,
    date_s: int = DATE_S,
    kernel_name: str | None = None,
    load: Sequence[Loadable] = (),
    packets: Packets | None = None,
    progress: Callable[[int], object] | None = None,
) -> GuestOutcome:
    """Run programs at the hosts `ends` of a scenario (server, client); `packets` are written.

    The same scenario, programs, files, kernel, agent and emulator give the same bytes. Raises
    `BadInputError` for what the guest does not allow, `DragstripError` for anything else.
    """
    entries = programs.closure.entries()
    environment = {**ENVIRONMENT, "PATH": programs.closure.path_variable(), **programs.environment}
    request, loaded = bpf.request(scenario, load)
    request |= {
        "ends": list(ends),
        "cc": cc,
        "files": [entry.described() for entry in entries],
        "input_bytes": len(programs.input),
        "folder": str(programs.closure.folder),
        "environment": dict(sorted(environment.items())),
        "server": list(programs.server),
        "command": list(programs.command),
        "outputs": list(programs.outputs),
        "limit_ns": round(limit_s * 1e9),
        "date_s": date_s,
        **({} if packets is None else {"capture": packets.request()}),
    }
    image = kernels.find_kernel(kernel_name)
    parts = (binaries.program(machine=machine.GUEST), binaries.lockstep())
    behind = b"".join([loaded, programs.closure.contents(), programs.input])
    asked: Json = {"programs": request}
    with machine.resumed(image, *parts, asked, behind, machine.FOR_PROGRAMS) as (guest, window):
        try:
            wait(guest, window, progress)
            head, raw = window.answer()
        except BadInputError as error:
            raise bpf.at_source(error, load) from None
        try:
            expect(head, _ANSWER, "")
            contents_by_name = {
                kind: {part["name"]: bytes(_slice(raw, part)) for part in head[kind]}
                for kind in ("streams", "outputs")
            }
        except BadInputError as error:
            raise DragstripError(f"engine vm: the agent's answer is invalid: {error}") from None
        lacking = {} if packets is None else packets.write((head, raw))
    release = head["run"].pop("kernel")
    head["run"]["verified"] = head["run"].pop("path")
    provenance = {
        "kernel": {"release": release, "package": image.package, "image_sha256": sha256(image.image)},
        "emulator": machine.version(),
        "processor": machine.FOR_PROGRAMS,
        "files": programs.closure.about(),
        "loaded": {loadable.name: loadable.digest for loadable in load},
        **lacking,
    }
    return GuestOutcome(head["run"], contents_by_name["streams"], contents_by_name["outputs"], provenance)


def _slice(raw: memoryview, part: Json) -> memoryview:
    end = part["offset"] + part["bytes"]
    if end > len(raw):
        raise BadInputError(part["name"], part["bytes"], f"at most {len(raw)} bytes")
    return raw[part["offset"] : end]


def write_outputs(outputs: Mapping[str, bytes], folder: Path) -> None:
    """Write the returned files to their names below a folder."""
    from dragstrip.io.files import make_folder, write_whole

    for name, content in outputs.items():
        place = folder / name
        make_folder(place.parent)

        def write(draft: Path, content: bytes = content) -> Any:
            return draft.write_bytes(content)

        write_whole(place, write)
