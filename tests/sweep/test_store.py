from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dragstrip.io import files
from dragstrip.io.files import DamagedError
from dragstrip.studies.sweep import dataset, store
from dragstrip.studies.sweep.build import run_key
from dragstrip.studies.sweep.plan import Index
from dragstrip.studies.sweep.store import Store, result_rows

from .conftest import plan

"""A store as version 0.1.0 wrote it: `--vary flow.cc=reno,cubic --repeat 2` of conftest's experiment."""


def row(number: int, goodput_bps: float = 1e6, status: str = "ok") -> list[store.Row]:
    text = json.dumps({"number": number})
    key = run_key(text, "sim", "0.1.0")
    flows = [{"flow": 0, "label": "reno", "cc": "reno", "goodput_bps": goodput_bps}]
    answer = {"status": status, "cpu_s": 0.1, "flows": flows if status == "ok" else None}
    return result_rows(key, text, 1, "sim", "0.1.0", answer)


def filled(folder: Path, parts: int, rows: int) -> Store:
    made = Store(folder)
    made.open()
    for part in range(parts):
        for number in range(rows):
            made.waiting += row(part * rows + number)
        made.flush()
    return made


def test_fewer_parts_hold_the_same_rows(tmp_path: Path) -> None:
    kept = filled(tmp_path, parts=70, rows=3)
    before = kept.keys()
    assert len(kept.parts()) == 70
    kept.compact()
    assert len(kept.parts()) == 1
    assert kept.keys() == before
    assert len(before) == 210
    assert sum(table.num_rows for table in kept.tables(["key"])) == 210


def test_merging_that_is_cut_short_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = filled(tmp_path, parts=70, rows=3)
    before = kept.keys()

    def refuse(self: Path, missing_ok: bool = False) -> None:
        if not self.name.startswith("."):
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(KeyboardInterrupt):
        kept.compact()
    assert kept.keys() == before
    assert sum(table.num_rows for table in kept.tables(["key"])) == 420  # all stand twice, and count once


def test_a_damaged_part_is_named_and_left_out(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kept = filled(tmp_path, parts=2, rows=3)
    broken = kept.parts()[0]
    broken.write_bytes(broken.read_bytes()[:100])
    assert len(kept.keys()) == 3
    assert str(broken) in capfd.readouterr().err
    kept.compact(least=1)
    assert broken.exists()  # not ours to throw away


def test_a_success_counts_where_a_run_also_failed(tmp_path: Path) -> None:
    sweep = plan("flow.cc=reno,cubic", repeat=1)
    index = Index(sweep)
    kept = Store(tmp_path / "store")
    kept.open()
    flows = [{"flow": 0, "label": "reno", "goodput_bps": 1e6}]
    for answer in (
        {"status": "failed", "reason": "no"},
        {"status": "ok", "flows": flows},
        {"status": "failed"},
    ):
        kept.waiting += result_rows(index.key(0), "{}", 1, "sim", "0.1.0", answer)
    kept.flush()
    table = pq.read_table(dataset.write(sweep, index, kept, tmp_path / "dataset"))
    assert table["status"].to_pylist() == ["ok"]


def test_what_a_dead_process_left_goes_and_what_a_living_one_writes_stays(tmp_path: Path) -> None:
    import os
    import socket
    import subprocess
    import sys

    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    dead = tmp_path / f".draft-{socket.gethostname()}-{gone.pid}-0"
    mine = tmp_path / f".draft-{socket.gethostname()}-{os.getpid()}-0"
    elsewhere = tmp_path / f".draft-another-host-{gone.pid}-0"
    for draft in (dead, mine, elsewhere):
        draft.touch()
    files.remove_drafts(tmp_path)
    assert [draft.exists() for draft in (dead, mine, elsewhere)] == [False, True, True]


def test_a_part_of_another_format_is_refused_and_does_not_count(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    kept = filled(tmp_path, parts=1, rows=2)
    (part,) = kept.parts()
    table = pq.read_table(part).replace_schema_metadata({"dragstrip_format": "1"})
    part.unlink()
    files.write_by_hash(kept.folder, store.ENDING, lambda draft: pq.write_table(table, draft))
    assert not kept.keys()
    reason = "its format is '1', and this version reads '3' alone"
    assert reason in capfd.readouterr().err
    with pytest.raises(files.DamagedError, match=reason):
        list(kept.tables(["key"]))


def test_a_part_without_a_column_or_under_another_name_is_refused(tmp_path: Path) -> None:
    kept = filled(tmp_path, parts=1, rows=2)
    (part,) = kept.parts()
    content, table = part.read_bytes(), pq.read_table(part).drop_columns(["jain"])
    part.unlink()
    shorter = files.write_by_hash(kept.folder, store.ENDING, lambda draft: pq.write_table(table, draft))
    with pytest.raises(files.DamagedError, match="it lacks the column jain"):
        list(kept.tables(["key", "jain"]))
    shorter.unlink()
    (kept.folder / "part.parquet").write_bytes(content)
    with pytest.raises(files.DamagedError, match="its SHA-256 is not the one in its name"):
        list(kept.tables(["key"]))


def test_a_part_that_has_changed_by_one_bit_is_not_read(tmp_path: Path) -> None:
    kept = filled(tmp_path, parts=2, rows=3)
    part = kept.parts()[0]
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    with pytest.raises(DamagedError, match=rf"{part.name}: damaged: its SHA-256"):
        list(kept.tables(["key"]))
    assert len(kept.keys(damaged=kept.set_aside)) == 3
    assert not part.exists()
    assert len(list(kept.tables(["key"]))) == 1


def test_a_key_that_is_not_its_scenarios_is_no_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kept = Store(tmp_path)
    kept.open()
    kept.waiting += [{**line, "key": "zz" * 32} for line in row(1)]
    kept.flush()
    assert not kept.keys()
    assert "is not that of the scenario beside it" in capfd.readouterr().err


def test_sixty_flipped_bits_change_no_row_without_a_word(tmp_path: Path) -> None:
    """The sample of tests/torture/bit_flips.py that needs no process."""
    whole = filled(tmp_path / "whole", parts=3, rows=5)
    known = {line["key"]: line for table in whole.tables(store.SCHEMA.names) for line in table.to_pylist()}
    draws = random.Random(14)  # noqa: S311
    for number in range(60):
        copy = tmp_path / str(number)
        shutil.copytree(tmp_path / "whole", copy)
        part = draws.choice(sorted(copy.iterdir()))
        content = bytearray(part.read_bytes())
        bit = draws.randrange(8 * len(content))
        content[bit // 8] ^= 1 << bit % 8
        part.write_bytes(content)
        told: list[DamagedError] = []
        found = Store(copy)
        done = found.keys(damaged=lambda error, told=told: told.append(error))  # type: ignore[misc]
        assert [error.path for error in told] == [part]
        assert len(done) == 10
        with pytest.raises(DamagedError, match=part.name):
            list(found.tables(["key"]))
        found.set_aside(told[0])
        rows = [line for table in found.tables(store.SCHEMA.names) for line in table.to_pylist()]
        assert {line["key"] for line in rows} == {key.hex() for key in done}
        assert all(line == known[line["key"]] for line in rows)
