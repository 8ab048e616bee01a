"""The agent's program: from DRAGSTRIP_AGENT, or compiled from this checkout when its sources changed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from dragstrip.engines.vm_locking import locked
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.kernel import cache

TARGET = "x86_64-unknown-linux-musl"
CRATES = ("agent", "scenario", "units", "cc", "qdisc")
"""Whose sources the agent is made of."""


def program() -> Path:
    """The static program; compiles it if need be. Raises `DragstripError` when that cannot be done."""
    own = os.environ.get("DRAGSTRIP_AGENT")
    if own:
        if not Path(own).is_file():
            raise BadInputError("DRAGSTRIP_AGENT", own, "the agent's program")
        return Path(own)
    root = Path(__file__).resolve().parents[3]
    if not (root / "crates" / "agent" / "Cargo.toml").is_file():
        raise DragstripError(
            "engine vm: the agent's program is missing; DRAGSTRIP_AGENT names one compiled from the sources"
        )
    kept = cache() / "agent" / _fingerprint(root) / "dragstrip-agent"
    with locked(cache() / "agent" / "lock"):
        if not kept.exists():
            built = _build(root)
            kept.parent.mkdir(parents=True, exist_ok=True)
            draft = kept.with_suffix(".partial")
            shutil.copyfile(built, draft)
            draft.chmod(0o755)
            draft.replace(kept)
    return kept


def _fingerprint(root: Path) -> str:
    hashed = hashlib.sha256()
    files = [file for crate in CRATES for file in (root / "crates" / crate).rglob("*") if file.is_file()]
    for file in sorted([*files, root / "Cargo.lock", root / "Cargo.toml"]):
        hashed.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return hashed.hexdigest()[:16]


def _build(root: Path) -> Path:
    if shutil.which("cargo") is None:
        raise DragstripError("engine vm: compiling its agent needs cargo (https://rustup.rs)")
    target = cache() / "agent" / "target"
    command = ["cargo", "build", "--quiet", "--release", "--package", "dragstrip-agent", "--target", TARGET]
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
        advice = f"`rustup target add {TARGET}` is needed once" if wanting else done.stderr.strip()[-2000:]
        raise DragstripError(f"engine vm: its agent does not compile: {advice}")
    return target / TARGET / "release" / "dragstrip-agent"
