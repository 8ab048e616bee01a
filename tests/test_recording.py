from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from dragstrip import _core
from dragstrip.engines.sim import simulate
from dragstrip.errors import BadInputError
from dragstrip.io.files import DamagedError, appearing, remove_drafts
from dragstrip.model.recording import FORMAT, LATER, NULL, SCHEMA, TABLES, CoreTables, Recording, read, write
from dragstrip.report.load import RunRecording
from dragstrip.results.measures import summarise


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


def test_integers_are_stored_as_differences(recording: Recording, tmp_path: Path) -> None:
    write(recording, tmp_path / "run")
    for name in ("samples", "rtts", "queues"):
        group = pq.ParquetFile(tmp_path / "run" / f"{name}.parquet").metadata.row_group(0)
        chunks = [group.column(column) for column in range(group.num_columns)]
        integers = [chunk for chunk in chunks if chunk.physical_type == "INT64"]
        assert integers
        assert all("DELTA_BINARY_PACKED" in chunk.encodings for chunk in integers)


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
    expected = BadInputError if damage is None else DamagedError
    with pytest.raises(expected, match=r"rtts\.parquet"):
        read(tmp_path / "run")
    (tmp_path / "run" / "SHA256SUMS").unlink()  # as by an earlier version
    with pytest.raises(BadInputError, match=r"rtts\.parquet"):
        read(tmp_path / "run")


def test_a_column_under_a_wrong_name_is_named(recording: Recording, tmp_path: Path) -> None:
    write(recording, tmp_path / "run")
    file = tmp_path / "run" / "rtts.parquet"
    table = pq.read_table(file)
    pq.write_table(table.rename_columns(["time_ns", "flow", "rut_ns"]), file)
    (tmp_path / "run" / "SHA256SUMS").unlink()  # as by an earlier version
    with pytest.raises(BadInputError, match=r"rtts\.parquet: rtt_ns: the table `rtts` lacks this column"):
        read(tmp_path / "run")


def test_columns_of_the_core_become_arrow() -> None:
    columns = {
        "probes": {
            "rtt_ns": ("int", np.array([5, NULL, -1], dtype="<i8").tobytes()),
            "target": ("text", (["a", "b"], np.array([1, 0, 1], dtype="<i4").tobytes())),
            "lost": ("bool", b"\x00\x01\x00"),
        }
    }
    table = CoreTables(columns)["probes"]
    assert table["rtt_ns"].to_pylist() == [5, None, -1]
    assert table["target"].to_pylist() == ["b", "a", "b"]
    assert table["lost"].to_pylist() == [False, True, False]


KILLED = """
import os, sys
from pathlib import Path
from dragstrip.io.files import appearing
with appearing(Path(sys.argv[1])) as draft:
    (draft / "half").touch()
    os.kill(os.getpid(), 9)
"""


def test_drafts_of_a_killed_process_are_removed_and_those_of_a_living_one_stay(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "one")], check=False).returncode == -9
    assert next(tmp_path.iterdir()).name.endswith(".partial")
    with appearing(tmp_path / "two") as living:
        (living / "file").touch()
        remove_drafts(tmp_path)
        assert list(tmp_path.iterdir()) == [living]
    assert [entry.name for entry in tmp_path.iterdir()] == ["two"]


def test_a_draft_whose_number_another_process_has_today_is_removed_by_its_lock(tmp_path: Path) -> None:
    """Process numbers come round again, after a restart of the machine at once."""
    draft = tmp_path / f".run.{socket.gethostname()}-{os.getpid()}-0.partial"
    draft.mkdir()
    remove_drafts(tmp_path)
    assert draft.exists(), "it may be somebody's who has not locked it yet"
    os.utime(draft, (0, 0))
    remove_drafts(tmp_path)
    assert not draft.exists()


def test_the_hash_is_the_one_that_the_reference_page_describes(scenario: dict[str, Any]) -> None:
    """Lengths and parts of all columns; the kernel's agent hashes with the same code."""
    scenario["record"] |= {"interval_ns": 100_000_000, "cc_state": True, "captures": True}
    scenario["duration_ns"] = 2_000_000_000
    outcome = _core.Scenario(scenario).run()
    assert not outcome["tables"]["video"]["time_ns"][1]
    assert outcome["sha256"] == digest(
        {name: columns for name, columns in outcome["tables"].items() if name not in LATER}
    )


def digest(tables: dict[str, dict[str, tuple[str, Any]]]) -> str:
    hashed = hashlib.sha256()

    def feed(part: bytes) -> None:
        hashed.update(len(part).to_bytes(8, "little"))
        hashed.update(part)

    for table, its in tables.items():
        for name, (kind, data) in its.items():
            feed(table.encode())
            feed(name.encode())
            if kind == "text":
                names, data = data
                for text in names:
                    feed(text.encode())
            feed(data)
    return hashed.hexdigest()


def test_a_run_records_what_its_congestion_control_shows(scenario: dict[str, Any]) -> None:
    scenario["flows"][0]["transport"]["cc"] = "cubic"
    scenario["flows"][1]["transport"]["cc"] = "bbr"
    scenario["record"]["interval_ns"] = 100_000_000
    quiet = simulate(scenario)
    assert quiet["cc_state"].num_rows == 0
    scenario["record"]["cc_state"] = True
    told = simulate(scenario)
    for table in set(TABLES) - {"cc_state"}:
        assert told[table].equals(quiet[table])
    assert told.provenance["recording_sha256"] != quiet.provenance["recording_sha256"]
    rows = told["cc_state"].to_pylist()
    sampled = {(row["time_ns"], row["flow"]) for row in told["samples"].to_pylist()}
    assert {(row["time_ns"], row["flow"]) for row in rows} <= sampled
    bandwidth = [row["value"] for row in rows if row["flow"] == 1 and row["name"] == "bandwidth"]
    assert len(bandwidth) == sum(flow == 1 for _, flow in sampled)
    assert 1e6 < max(bandwidth) < 10e6, "less than the bottleneck's rate, because the path is shared"
    assert {row["name"] for row in rows if row["flow"] == 0} >= {"w_max", "k", "t"}


FORMAT_1 = Path(__file__).parent / "recordings" / "format-1"


def test_a_recording_of_format_1_is_read() -> None:
    """Stored, so that it holds what was written, whatever the simulator of today gives for its scenario."""
    stored = read(FORMAT_1)
    again = simulate(stored.scenario)
    for table in TABLES:
        assert stored[table].column_names == list(SCHEMA[table])
        assert again[table].schema.equals(stored[table].schema.remove_metadata()), table
    assert stored["samples"].num_rows == 60
    totals = {
        name: sum(value or 0 for value in stored["samples"][name].to_pylist())
        for name in ("bytes_acked", "cwnd_bytes", "rtt_ns")
    }
    assert totals == {"bytes_acked": 10_002_784, "cwnd_bytes": 1_169_984, "rtt_ns": 5_616_377_000}
    assert [set(flow["limited_s"]) for flow in summarise(stored)["flows"]] == [{"cwnd"}, {"cwnd", "pacing"}]
    page = RunRecording(FORMAT_1, stored.scenario, stored.provenance)
    assert page.samples.column("rtt_ns", 0).size == 30
    assert page.cc_state.column("value", 0).size == 0


def test_a_recording_says_its_format(recording: Recording, tmp_path: Path) -> None:
    write(recording, tmp_path / "run")
    provenance = json.loads((tmp_path / "run" / "provenance.json").read_text())
    assert provenance["format"] == FORMAT
    (tmp_path / "run" / "SHA256SUMS").unlink()
    assert pq.read_schema(tmp_path / "run" / "rtts.parquet").metadata[b"dragstrip.format"] == b"%d" % FORMAT
    for wrong in (FORMAT + 1, 0, "2", True, None):
        (tmp_path / "run" / "provenance.json").write_text(json.dumps(provenance | {"format": wrong}))
        with pytest.raises(
            BadInputError, match=rf"provenance\.json: format: .*expected format {FORMAT}; .*another"
        ):
            read(tmp_path / "run")
