"""What the engines with a kernel have compiled: from a clone's sources, from a wheel, or named."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from dragstrip.engines.agent import binaries
from dragstrip.errors import DragstripError
from dragstrip.io import cache

ROOT = Path(__file__).parents[2]
CARGO = """#!{python}
import os, pathlib, sys
words = sys.argv[1:]
sys.stderr.write("   Compiling one v1.0.0\\n")
for number in range(3):
    sys.stderr.write(f"\\x1b[K    Building [==>    ] {{number}}/3: one, two\\r")
if {fails}:
    sys.stderr.write("error: no such\\nthing\\n")
    sys.exit(101)
target = pathlib.Path(os.environ["CARGO_TARGET_DIR"], words[words.index("--target") + 1], words[words.index("--profile") + 1])
target.mkdir(parents=True)
(target / "dragstrip-agent").write_bytes(b"compiled")
"""


@pytest.fixture(autouse=True)
def _own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGSTRIP_CACHE", str(tmp_path / "cache"))
    for variable in ("DRAGSTRIP_AGENT", "DRAGSTRIP_LOCKSTEP"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a package that is in no clone has what it brings, and no program to be found."""
    monkeypatch.setattr(binaries, "ROOT", tmp_path)
    monkeypatch.setattr(binaries, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setenv("PATH", "")
    return tmp_path / "shipped"


def test_a_wheel_brings_an_agent_for_each_machine(wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for machine in binaries.MACHINES:
        (wheel / machine).mkdir(parents=True)
        (wheel / machine / "dragstrip-agent").write_text(machine)
    made = {machine: binaries.program(machine=machine) for machine in binaries.MACHINES}
    for machine, file in made.items():
        assert (file.read_text(), os.access(file, os.X_OK)) == (machine, True)
    assert len({file.parent.name for file in made.values()}) == 2  # which tells recordings apart
    made["x86_64"].write_text("x86-64")
    assert binaries.program(machine="x86_64").read_text() == "x86_64"
    assert capsys.readouterr().err.startswith(f"warning: {made['x86_64']}: damaged: ")
    (wheel / "x86_64/dragstrip-agent").write_text("of the next version")
    assert binaries.program(machine="x86_64").read_text() == "of the next version"


@pytest.mark.parametrize("ask", [binaries.program, binaries.lockstep])
def test_a_wheel_without_them_names_what_is_missing(wheel: Path, ask: Callable[[], Path]) -> None:
    with pytest.raises(DragstripError, match=r"dragstrip-\w+ for \w+ is missing: .*DRAGSTRIP_\w+ names one"):
        ask()
    assert not cache.cache().exists()


def test_of_an_unknown_machine_there_is_no_agent() -> None:
    with pytest.raises(DragstripError, match="x86_64 and aarch64, and this machine is mips"):
        binaries.agent("mips")


def cargo(folder: Path, monkeypatch: pytest.MonkeyPatch, *, fails: bool = False) -> list[str]:
    """Stands in for cargo; gives what is said when it has ended."""
    program = folder / "programs" / "cargo"
    program.parent.mkdir()
    program.write_text(CARGO.format(python=sys.executable, fails=fails))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    said: list[str] = []

    class Heard:
        def doing(self, what: Callable[[], str]) -> None:
            self.what = what

        def close(self) -> None:
            said.append(self.what())

    monkeypatch.setattr("dragstrip.engines.cargo.ProgressMessages", Heard)
    return said


def test_a_clone_compiles_once_and_counts_the_crates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = cargo(tmp_path, monkeypatch)
    first: list[str] = []
    made = binaries.program(first.append, "aarch64")
    assert made.read_bytes() == b"compiled"
    assert first == ["compiling dragstrip-agent, once ..."]
    assert said == ["compiling dragstrip-agent: 2 of 3 crates ..."]
    assert binaries.program(first.append, "aarch64") == made
    assert len(first) == 1


def test_what_does_not_compile_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cargo(tmp_path, monkeypatch, fails=True)
    with pytest.raises(DragstripError) as raised:
        binaries.program()
    assert str(raised.value).splitlines() == [str(raised.value)]
    assert "dragstrip-agent does not compile: " in str(raised.value)
    assert str(raised.value).endswith("error: no such thing")


def test_without_cargo_a_clone_says_so_before_it_does_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DragstripError, match=r"needs cargo \(https://rustup.rs\)"):
        binaries.expect(binaries.agent("x86_64"))


@pytest.mark.parametrize("part", [binaries.agent("x86_64"), binaries.LOCKSTEP])
def test_a_change_of_any_crate_in_it_compiles_it_again(part: binaries.AgentBinary) -> None:
    reached, new = set(), {part.crates[0]}
    while new:
        reached |= new
        tables = [tomllib.loads((ROOT / f"crates/{name}/Cargo.toml").read_text()) for name in new]
        needs = {name for table in tables for name in table.get("dependencies", {})}
        new = {name.removeprefix("dragstrip-") for name in needs if name.startswith("dragstrip-")} - reached
    assert set(part.crates) == reached
