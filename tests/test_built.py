"""A checkout whose Rust sources have changed since the core was built is noticed, at once."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from dragstrip import _core, built, cli


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The sources of the core, to be changed."""
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(built.ROOT / name, tmp_path)
    for name in _core.BUILT_CRATES.split():
        shutil.copytree(built.ROOT / "crates" / name, tmp_path / "crates" / name)
    return tmp_path


def test_the_core_under_test_is_built_of_this_checkout() -> None:
    assert built.sources(built.ROOT) == _core.BUILT_OF


@pytest.mark.parametrize("file", ["crates/cc/src/algorithms/exp.rs", "crates/sim/src/lib.rs", "Cargo.lock"])
def test_every_edit_is_noticed(file: str, checkout: Path) -> None:
    before = built.sources(checkout)
    with (checkout / file).open("a") as opened:
        opened.write("\n")
    assert built.sources(checkout) != before


def test_files_that_come_and_go_are_noticed_and_tests_are_not(checkout: Path) -> None:
    before = built.sources(checkout)
    (checkout / "crates/cc/src/algorithms/tests.rs").write_text("// only a test\n")
    assert built.sources(checkout) == before == built.sources(built.ROOT)
    new = checkout / "crates/cc/src/algorithms/new.rs"
    new.write_text("// part of it\n")
    assert built.sources(checkout) != before
    new.unlink()
    (checkout / "crates/cc/src/algorithms/exp.rs").rename(new)
    assert built.sources(checkout) != before


def test_it_takes_no_time() -> None:
    def once() -> float:
        before = time.process_time()
        built.sources(built.ROOT)
        return time.process_time() - before

    assert min(once() for _ in range(5)) < 0.010


def test_a_stale_core_is_told_in_one_line_and_in_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(built, "stale", lambda: True)
    path = "--rate 10mbit --rtt 40ms --queue pfifo --duration 100ms"
    line = f"dragstrip compare {path} --no-report --out {tmp_path / 'out'} reno"
    monkeypatch.setattr("sys.argv", line.split())
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: the Rust")]
    assert len(notes) == 1
    assert '"sources_changed_since": true' in next((tmp_path / "out").rglob("provenance.json")).read_text()
