from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from dragstrip.errors import BadInputError
from dragstrip.recording import NULL, Recording, appearing, from_core, read, write


def test_a_recording_comes_back_as_it_was_written(recording: Recording, tmp_path: Path) -> None:
    write(recording, tmp_path / "deep" / "run")
    again = read(tmp_path / "deep" / "run")
    assert again.scenario == recording.scenario
    assert again.provenance == recording.provenance
    for name, table in recording.tables.items():
        assert again[name].equals(table)
    assert [entry.name for entry in (tmp_path / "deep").iterdir()] == ["run"]


def test_the_same_recording_gives_the_same_bytes(recording: Recording, tmp_path: Path) -> None:
    write(recording, tmp_path / "a")
    write(recording, tmp_path / "b")
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), appearing(tmp_path / "run") as draft:
        (draft / "half").write_text("x")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", None])
def test_a_damaged_table_is_named(recording: Recording, tmp_path: Path, damage: bytes | None) -> None:
    write(recording, tmp_path / "run")
    table = tmp_path / "run" / "rtts.parquet"
    if damage is None:
        table.unlink()
    else:
        table.write_bytes(damage)
    with pytest.raises(BadInputError, match=r"rtts\.parquet"):
        read(tmp_path / "run")


def test_columns_of_the_core_become_arrow() -> None:
    columns = {
        "probes": {
            "rtt_ns": ("int", np.array([5, NULL, -1], dtype="<i8").tobytes()),
            "target": ("text", (["a", "b"], np.array([1, 0, 1], dtype="<i4").tobytes())),
            "lost": ("bool", b"\x00\x01\x00"),
        }
    }
    table = from_core(columns)["probes"]
    assert table["rtt_ns"].to_pylist() == [5, None, -1]
    assert table["target"].to_pylist() == ["b", "a", "b"]
    assert table["lost"].to_pylist() == [False, True, False]


def test_a_draft_that_a_killed_process_left_is_removed_after_a_day(tmp_path: Path) -> None:
    old, young, other = (tmp_path / name for name in (".run.1.partial", ".run.2.partial", ".ran.1.partial"))
    for draft in (old, young, other):
        draft.mkdir()
    for draft in (old, other):
        os.utime(draft, (0, 0))
    with appearing(tmp_path / "run") as draft:
        (draft / "file").touch()
    assert sorted(tmp_path.iterdir()) == sorted([young, other, tmp_path / "run"])
