"""`dragstrip.load`: an output folder's figures as a table."""

from __future__ import annotations

import json
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
    with pytest.raises(dragstrip.DragstripError, match=r"pip install 'dragstrip\[polars\]'"):
        dragstrip.load(folder, kind="polars")
