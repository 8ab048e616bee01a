"""What the guides promise: a skeleton compiles, passes its tests and the lints; so it does with the guide's change.

On a workspace of the crates concerned, with the dependencies that the clone's target folder has compiled.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dragstrip.authoring.skeletons import new_algorithm, new_qdisc

ROOT = Path(__file__).parents[1]
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
LAYOUT = ("Cargo.lock", "clippy.toml", "rustfmt.toml")

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")


def workspace(folder: Path, crates: tuple[str, ...], *others: str) -> Path:
    """A workspace of these crates alone, and other files and folders of the clone."""
    for path in (*(f"crates/{name}" for name in crates), *LAYOUT, *others):
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / path).is_dir() else shutil.copy)(ROOT / path, place)
    members = ", ".join(f'"crates/{name}"' for name in crates)
    manifest = (ROOT / "Cargo.toml").read_text()
    (folder / "Cargo.toml").write_text(re.sub(r"members = \[[^]]*\]", f"members = [{members}]", manifest))
    return folder


def check(folder: Path, package: str) -> None:
    """Layout, tests and lints."""
    chosen = ["--quiet", "--offline", "-p", package, "--lib"]
    for words in (
        ["fmt", "--all", "--check"],
        ["test", *chosen],
        ["clippy", *chosen, "--tests", "--", "-D", "warnings"],
    ):
        environment = {**os.environ, "CARGO_TARGET_DIR": str(TARGET)}
        ended = subprocess.run(
            [str(shutil.which("cargo")), *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, f"cargo {words}:\n{ended.stdout}\n{ended.stderr}"


def diffs(page: str) -> list[str]:
    """The two diffs of a guide: the lines that are registered, and the change to the new file."""
    found = re.findall(r"\n```diff\n(.*?)\n```", (ROOT / page).read_text(), re.DOTALL)
    assert len(found) == 2, page
    return found


def registered(diff: str, *places: Path) -> None:
    """The lines that the guide says are added stand in these files."""
    lines = "".join(place.read_text() for place in places).splitlines()
    for line in diff.splitlines():
        if not line.startswith("+++"):
            assert line.startswith("+"), "lines are added, none goes"
            assert line[1:] in lines


def change(file: Path, diff: str) -> None:
    """Apply every hunk: what it takes away must be there once."""
    text = file.read_text()
    for hunk in diff.split("@@\n")[1:]:
        lines = hunk.splitlines()
        old, new = (
            "".join(f"{line[1:]}\n" for line in lines if not line.startswith(other)) for other in "+-"
        )
        assert text.count(old) == 1, f"the guide's hunk:\n{hunk}"
        text = text.replace(old, new)
    file.write_text(text)


def test_a_new_algorithm(tmp_path: Path) -> None:
    # Its tests read the programs and their guide.
    folder = workspace(tmp_path, ("units", "cc"), "docs/how-to/program.md", "programs", "bpf")
    new_algorithm(folder, "my-exp")
    check(folder, "dragstrip-cc")
    lines, changes = diffs("docs/how-to/new-algorithm.md")
    sources = folder / "crates/cc/src"
    registered(lines, sources / "algorithms/mod.rs", sources / "registry.rs")
    change(sources / "algorithms/my_exp.rs", changes)
    check(folder, "dragstrip-cc")


def test_a_new_discipline(tmp_path: Path) -> None:
    folder = workspace(tmp_path, ("units", "packet", "qdisc"))
    for name in ("my_queue", "pfifo_head_drop"):  # the generic model drives every registered one
        new_qdisc(folder, name)
    lines, changes = diffs("docs/how-to/new-qdisc.md")
    disciplines = folder / "crates/qdisc/src/disciplines"
    registered(lines, disciplines / "mod.rs")
    change(disciplines / "pfifo_head_drop/mod.rs", changes)
    check(folder, "dragstrip-qdisc")
