"""Binaries for the engines with a kernel: the agent, and the library preloaded into the emulator.

In a clone both come from its sources, once per state of them. A wheel has them in `shipped` (`make wheel`).
DRAGSTRIP_AGENT and DRAGSTRIP_LOCKSTEP name files to use instead.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from dragstrip.engines import cargo
from dragstrip.engines.agent.locking import locked
from dragstrip.engines.contract import Say, quietly
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io import checksums, untrusted
from dragstrip.io.cache import cache
from dragstrip.io.files import DamagedError, replacing, sha256, warn

PROFILE = "kernel"
"""Cargo's profile of both (Cargo.toml)."""
SHIPPED = Path(__file__).with_name("shipped")
"""Binaries of a wheel: a folder for each machine, which `.ci/shipped` fills."""
ROOT = Path(__file__).resolve().parents[4]
"""The clone, if this package is in one."""
MACHINES = ("x86_64", "aarch64")
"""Machines that the agent is compiled for, in uname(1)'s and Rust's word."""


@dataclass(frozen=True)
class AgentBinary:
    """A binary to compile."""

    package: str
    file: str
    variable: str
    crates: tuple[str, ...]
    """Crates whose sources it is made of."""
    machine: str
    """Machine that it runs on."""
    target: str | None = None
    """Rust's name of that machine, if cargo would choose another."""


_CRATES = (
    *("agent", "capture", "conformance", "player", "recording", "scenario"),
    *("cc", "inspect", "link", "ngtcp2", "packet", "qdisc", "quic", "rtp", "sim", "tcp", "units"),
)


def agent(machine: str | None = None) -> AgentBinary:
    """The agent for a machine; for this one without an argument. Raises `DragstripError` for others."""
    machine = platform.machine() if machine is None else machine
    if machine not in MACHINES:
        raise DragstripError(f"the agent runs on {' and '.join(MACHINES)}, and this machine is {machine}")
    target = f"{machine}-unknown-linux-musl"
    return AgentBinary("dragstrip-agent", "dragstrip-agent", "DRAGSTRIP_AGENT", _CRATES, machine, target)


LOCKSTEP = AgentBinary(
    "dragstrip-lockstep",
    "libdragstrip_lockstep.so",
    "DRAGSTRIP_LOCKSTEP",
    ("lockstep",),
    platform.machine(),
)


def program(say: Say = quietly, machine: str | None = None) -> Path:
    """The agent, a static program, for this machine or another.

    Raises `DragstripError` where it is neither at hand nor can be compiled.
    """
    return binary(agent(machine), say)


def lockstep(say: Say = quietly) -> Path:
    """The library that keeps the emulator's threads in step. Raises `DragstripError` likewise."""
    return binary(LOCKSTEP, say)


def binary(part: AgentBinary, say: Say = quietly) -> Path:
    """The binary's file, in a folder named by a hash of its sources; compiles it if need be."""
    override = os.environ.get(part.variable)
    if override:
        if not Path(override).is_file():
            raise BadInputError(part.variable, override, f"the compiled {part.package}")
        return Path(override)
    expect(part)
    shipped = None if _in_clone(part) else SHIPPED / part.machine / part.file
    place = cache() / "made" / (sha256(shipped)[:16] if shipped else _fingerprint(ROOT, part))
    if checksums.whole(place):
        return place / part.file
    with locked(cache() / "made" / "lock"):
        if not checksums.whole(place, warn_of_rebuild):
            if shipped is None:
                say(f"compiling {part.package}, once ...")
            built_file = shipped or _build(ROOT, part)
            with replacing(place) as draft:
                shutil.copyfile(built_file, draft / part.file)
                (draft / part.file).chmod(0o755)
                checksums.write(draft, [part.file])
    return place / part.file


def expect(part: AgentBinary) -> None:
    """Raise `DragstripError` if the part is neither at hand nor can be compiled here. It compiles nothing."""
    if os.environ.get(part.variable):
        return
    if not _in_clone(part):
        if not (SHIPPED / part.machine / part.file).is_file():
            raise DragstripError(
                f"{part.package} for {part.machine} is missing: this package was built without it. A "
                f"clone of the sources compiles it; {part.variable} names one that is compiled"
            )
    elif shutil.which("cargo") is None:
        raise DragstripError(f"compiling {part.package} needs cargo (https://rustup.rs)")
    elif part.target and not _has_target(part.target):
        raise DragstripError(
            f"{part.package} does not compile: `rustup target add {part.target}` is needed once"
        )


def _in_clone(part: AgentBinary) -> bool:
    return (ROOT / "crates" / part.crates[0] / "Cargo.toml").is_file()


def _has_target(target: str) -> bool:
    """Return whether rustc has the target's standard library; where rustc cannot say, that it has."""
    command = ["rustc", "--print", "target-libdir", "--target", target]
    with contextlib.suppress(OSError):
        query = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        return query.returncode != 0 or Path(query.stdout.strip()).is_dir()
    return True


def warn_of_rebuild(error: DamagedError) -> None:
    """Warns of a compiled file that differs from its checksum and is compiled again."""
    warn(DamagedError(error.path, error.reason, "it is compiled again"))


def _fingerprint(root: Path, part: AgentBinary) -> str:
    hashed = hashlib.sha256((part.target or "").encode())
    folders = [root / "crates" / crate for crate in part.crates]
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    for file in sorted([*files, root / "Cargo.toml", root / "Cargo.lock"]):
        hashed.update(
            str(file.relative_to(root)).encode()
            + b"\0"
            + untrusted.content(file, untrusted.SOURCE_MAX, "a source")
        )
    return hashed.hexdigest()[:16]


def _build(root: Path, part: AgentBinary) -> Path:
    # A folder for each checkout: cargo tells the packages of two apart by their place in it alone.
    place = hashlib.sha256(str(root).encode()).hexdigest()[:8]
    target = cache() / "made" / f"target-{place}"
    words = ["--profile", PROFILE, "--package", part.package]
    words += ["--target", part.target] if part.target else []
    ended = cargo.build(words, part.package, root, target)
    if not ended.ok:
        raise DragstripError(f"{part.package} does not compile: {' '.join(ended.messages)[-2000:]}")
    return target / (part.target or "") / PROFILE / part.file
