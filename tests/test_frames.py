"""`dragstrip.load`: an output folder's figures as a table."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import dragstrip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("frames") / "out"
    race = dragstrip.compare(["cubic", "bbr*2"], path="LTE", duration="2s")
    dragstrip.run(race, out, report=False)
    return out


def test_a_run_has_a_row_per_flow(folder: Path) -> None:
    table = dragstrip.load(folder, kind="pyarrow")
    runs = json.loads((folder / "result.json").read_text())["runs"]
    flows = [(number, flow) for number, run in enumerate(runs) for flow in run["flows"]]
    assert table.num_rows == len(flows) == 3
    for row, (number, flow) in zip(table.to_pylist(), flows, strict=True):
        assert (row["run"], row["label"], row["goodput_bps"]) == (number, flow["label"], flow["goodput_bps"])
        assert row["rtt_ms_p50"] == flow["rtt_ms"]["p50"]
        assert row["probe_rtt_ms_p50"] == runs[number]["probes"][0]["rtt_ms"]["p50"]


def test_a_recordings_table_has_the_rows_of_all_runs(folder: Path) -> None:
    table = dragstrip.load(folder, "samples", kind="pyarrow")
    assert table.column_names[:2] == ["run", "scenario"]
    assert set(table["scenario"].to_pylist()) == {"cubic", "bbr*2"}


def test_what_varied_has_a_column(tmp_path: Path) -> None:
    """In base units, as in a sweep; in the figures and in each of the recordings' tables."""
    varied = {"path.rtt": ["20ms", "40ms"], "path.queue": ["1bdp", "fq_codel"]}
    race = dragstrip.compare(["cubic", "bbr"], rate="10mbit", rtt="40ms", duration="1s")
    race = race.changed(vary={**race.vary, **varied})
    out = tmp_path / "out"
    dragstrip.run(race, out, report=False)
    for table in ("figures", "samples", "queues"):
        found = dragstrip.load(out, table)
        assert isinstance(found, pa.Table)
        rows = {
            (row["flows_cc"], row["path_rtt_ns"], row["path_queue"], row["repeat"])
            for row in found.to_pylist()
        }
        assert rows == {
            (cc, rtt, queue, 0)
            for cc in ("cubic", "bbr")
            for rtt in (20_000_000, 40_000_000)
            for queue in ("1bdp", "fq_codel")
        }


def test_a_column_that_only_some_runs_have_is_there(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    document = json.loads((copy / "result.json").read_text())
    document["runs"][-1]["flows"][-1]["made_up"] = 5
    (copy / "result.json").write_text(json.dumps(document))
    (copy / "SHA256SUMS").unlink()
    assert dragstrip.load(copy)["made_up"].to_pylist() == [None, None, 5]


def test_a_sweep_is_its_dataset(tmp_path: Path) -> None:
    from dragstrip.cli import app

    file = tmp_path / "mine.toml"
    file.write_text('duration = "1s"\npath = "LTE"\n[[flows]]\ncc = "cubic"\n')
    vary = ["--vary", "path.queue=1bdp,fq_codel", "--vary", "flow.cc=cubic,reno"]
    app(["sweep", str(file), *vary, "--out", str(tmp_path / "map"), "--no-report"], standalone_mode=False)
    table = dragstrip.load(tmp_path / "map", kind="pyarrow")
    assert table.num_rows == 4
    assert set(table["path_queue"].to_pylist()) == {"1bdp", "fq_codel"}
    with pytest.raises(dragstrip.BadInputError, match="no recordings"):
        dragstrip.load(tmp_path / "map", "samples")


def test_what_is_no_folder_or_table_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(dragstrip.BadInputError, match="not the output folder"):
        dragstrip.load(tmp_path)
    with pytest.raises(dragstrip.BadInputError, match="table: got 'sample'"):
        dragstrip.load(folder, "sample")
    with pytest.raises(dragstrip.BadInputError, match="kind"):
        dragstrip.load(folder, kind="excel")


def test_a_library_that_is_missing_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    assert isinstance(dragstrip.load(folder), pa.Table)
    with pytest.raises(dragstrip.DragstripError, match="pip install polars"):
        dragstrip.load(folder, kind="polars")
