"""A checkout whose Rust sources have changed since the core was built is noticed, and looked at once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from dragstrip import _core, cli
from dragstrip.model.recording import core_build


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The sources of the core, to be changed."""
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(core_build.ROOT / name, tmp_path)
    for name in _core.BUILT_CRATES.split():
        shutil.copytree(core_build.ROOT / "crates" / name, tmp_path / "crates" / name)
    return tmp_path


def test_the_core_under_test_is_built_of_this_checkout() -> None:
    assert core_build.sources(core_build.ROOT) == _core.BUILT_OF


@pytest.mark.parametrize("file", ["crates/cc/src/algorithms/exp.rs", "crates/sim/src/lib.rs", "Cargo.lock"])
def test_every_edit_is_noticed(file: str, checkout: Path) -> None:
    before = core_build.sources(checkout)
    with (checkout / file).open("a") as opened:
        opened.write("\n")
    assert core_build.sources(checkout) != before


def test_files_that_come_and_go_are_noticed_and_tests_are_not(checkout: Path) -> None:
    before = core_build.sources(checkout)
    (checkout / "crates/cc/src/algorithms/tests.rs").write_text("// only a test\n")
    assert core_build.sources(checkout) == before == core_build.sources(core_build.ROOT)
    new = checkout / "crates/cc/src/algorithms/new.rs"
    new.write_text("// part of it\n")
    assert core_build.sources(checkout) != before
    new.unlink()
    (checkout / "crates/cc/src/algorithms/exp.rs").rename(new)
    assert core_build.sources(checkout) != before


def test_each_source_is_read_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    listed: list[str] = []

    def opened(name: str, *args: object, **named: object) -> object:
        read.append(name)
        return open(name, *args, **named)  # type: ignore[call-overload]  # noqa: PTH123 - as in core_build

    def scanned(folder: str) -> object:
        listed.append(folder)
        return os.scandir(folder)

    monkeypatch.setattr(core_build, "open", opened, raising=False)
    monkeypatch.setattr(core_build, "os", SimpleNamespace(scandir=scanned))
    core_build.stale.cache_clear()
    assert core_build.stale() is core_build.stale() is False
    assert len(read) == len(set(read)) > len(_core.BUILT_CRATES.split())
    assert {Path(name).suffix for name in read} == {".rs", ".toml", ".lock"}
    assert len(listed) == len(set(listed)), "a folder is listed once"


def test_a_stale_core_is_told_in_one_line_and_in_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(core_build, "stale", lambda: True)
    path = "--rate 10mbit --rtt 40ms --queue pfifo --duration 100ms"
    line = f"dragstrip compare {path} --no-report --out {tmp_path / 'out'} reno"
    monkeypatch.setattr("sys.argv", line.split())
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: the Rust")]
    assert len(notes) == 1
    assert '"sources_changed_since": true' in next((tmp_path / "out").rglob("provenance.json")).read_text()
