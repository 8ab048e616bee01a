"""What is compiled for the engines with a kernel: the agent, and the library preloaded into the emulator.

Both come from this checkout, once per state of their sources; DRAGSTRIP_AGENT and DRAGSTRIP_LOCKSTEP name
files to use instead.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragstrip.engines.agent.locking import locked
from dragstrip.engines.contract import Say, quietly
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io import checksums, untrusted
from dragstrip.io.cache import cache
from dragstrip.io.files import DamagedError, replacing, warn


@dataclass(frozen=True)
class Part:
    """Something that is compiled."""

    package: str
    file: str
    variable: str
    crates: tuple[str, ...]
    """Whose sources it is made of."""
    target: str | None = None
    """For which machine, if not this one."""


AGENT = Part(
    "dragstrip-agent",
    "dragstrip-agent",
    "DRAGSTRIP_AGENT",
    ("agent", "recording", "conformance", "scenario", "units", "cc", "qdisc", "packet"),
    "x86_64-unknown-linux-musl",
)
LOCKSTEP = Part("dragstrip-lockstep", "libdragstrip_lockstep.so", "DRAGSTRIP_LOCKSTEP", ("lockstep",))


def program(say: Say = quietly) -> Path:
    """The agent, a static program. Raises `DragstripError` when it cannot be compiled."""
    return made(AGENT, say)


def lockstep(say: Say = quietly) -> Path:
    """The library that keeps the emulator's threads in step. Raises `DragstripError` likewise."""
    return made(LOCKSTEP, say)


def made(part: Part, say: Say = quietly) -> Path:
    """The file; compiles it if need be."""
    own = os.environ.get(part.variable)
    if own:
        if not Path(own).is_file():
            raise BadInputError(part.variable, own, f"the compiled {part.package}")
        return Path(own)
    root = Path(__file__).resolve().parents[4]
    if not (root / "crates" / part.crates[0] / "Cargo.toml").is_file():
        raise DragstripError(
            f"{part.package} is missing; {part.variable} names one compiled from the sources"
        )
    place = cache() / "made" / _fingerprint(root, part.crates)
    if checksums.whole(place):
        return place / part.file
    with locked(cache() / "made" / "lock"):
        if not checksums.whole(place, made_again):
            say(f"compiling {part.package}, once ...")
            built = _build(root, part)
            with replacing(place) as draft:
                shutil.copyfile(built, draft / part.file)
                (draft / part.file).chmod(0o755)
                checksums.write(draft, [part.file])
    return place / part.file


def made_again(error: DamagedError) -> None:
    """Tells of something compiled that is not what was written."""
    warn(DamagedError(error.path, error.reason, "it is compiled again"))


def _fingerprint(root: Path, crates: Sequence[str]) -> str:
    hashed = hashlib.sha256()
    files = [file for crate in crates for file in (root / "crates" / crate).rglob("*") if file.is_file()]
    for file in sorted([*files, root / "Cargo.toml"]):
        hashed.update(
            str(file.relative_to(root)).encode()
            + b"\0"
            + untrusted.content(file, untrusted.SOURCE_MAX, "a source")
        )
    return hashed.hexdigest()[:16]


def _build(root: Path, part: Part) -> Path:
    if shutil.which("cargo") is None:
        raise DragstripError(f"compiling {part.package} needs cargo (https://rustup.rs)")
    # A folder for each checkout: cargo tells the packages of two apart by their place in it alone.
    place = hashlib.sha256(str(root).encode()).hexdigest()[:8]
    target = cache() / "made" / f"target-{place}"
    command = ["cargo", "build", "--quiet", "--release", "--locked", "--package", part.package]
    command += ["--target", part.target] if part.target else []
    done = subprocess.run(  # noqa: S603
        command,
        cwd=root,
        env={**os.environ, "CARGO_TARGET_DIR": str(target)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        wanting = "target may not be installed" in done.stderr
        advice = (
            f"`rustup target add {part.target}` is needed once" if wanting else done.stderr.strip()[-2000:]
        )
        raise DragstripError(f"{part.package} does not compile: {advice}")
    return target / (part.target or "") / "release" / part.file
