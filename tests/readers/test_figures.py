"""Figures of other programs' files, to the digit: one file or more of every reader, and a run's own figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dragstrip.interop import readers
from dragstrip.model.recording import Recording
from dragstrip.model.recording.columns import grouped
from dragstrip.results import measures

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus"
EXPECTED: dict[str, Any] = json.loads((Path(__file__).parent / "figures.json").read_text())
"""Figures of each file, by its path in `CORPUS`, computed with NumPy (percentiles, pairwise means)."""


@pytest.mark.parametrize("name", EXPECTED)
def test_figures_of_a_file(name: str) -> None:
    kind, measurements = readers.parsed((CORPUS / name).read_bytes(), name)
    recording = measurements.recording({"engine": kind})
    flows, probes = measures.flow_figures(recording), measures.probe_figures(recording)
    assert {"flows": flows, "probes": probes} == EXPECTED[name]


def test_the_files_cover_every_source_of_round_trips_but_the_latest() -> None:
    rows = [row for figures in EXPECTED.values() for row in (*figures["flows"], *figures["probes"])]
    assert {row["rtt_ms"]["method"] for row in rows} == {"samples", "srtt", "echo", "summary", None}


def test_round_trips_are_numpy_s_percentiles_and_mean() -> None:
    chance = np.random.default_rng(1)
    for count in (1, 2, 7, 8, 19, 20, 129, 1000, 5001):
        values_ns = chance.integers(1, 10**9, count).astype(np.float64)
        figures = measures.round_trips(values_ns)
        low, middle, high = (float(value) / 1e6 for value in np.percentile(values_ns, (5, 50, 95)))
        tails = (low, high) if count >= 20 else (None, None)
        assert (figures["p5"], figures["p95"]) == tails
        assert figures["p50"] == middle
        assert figures["mean"] == float(np.mean(values_ns)) / 1e6
        assert (figures["min"], figures["max"]) == (values_ns.min() / 1e6, values_ns.max() / 1e6)
        assert (figures["samples"], figures["method"]) == (count, "echo")
    assert measures.round_trips(np.empty(0))["method"] is None


def test_a_null_flag_is_unknown_and_missing_tables_are_ordinary() -> None:
    flows = pa.table(
        {"flow": [0, 1], "label": ["a", None], "protocol": ["tcp"] * 2, "ecn_negotiated": [None, True]}
    )
    first, second = measures.flow_figures(Recording({}, {"flows": flows}))
    assert (first["ecn"], second["ecn"]) == (None, True)
    assert (first["label"], second["label"]) == ("a", None)
    assert (first["bytes"], first["goodput_bps"], first["limited_s"]) == (None, None, None)
    assert measures.probe_figures(Recording({}, {"flows": flows})) == []
    assert measures.flow_figures(Recording({}, {})) == []


def test_figures_of_a_run_are_its_measures(recording: Recording) -> None:
    summary = measures.Measured(recording).summary()
    figures = measures.flow_figures(recording)
    assert len(figures) == len(summary["flows"]) == 2
    for row, flow in zip(figures, summary["flows"], strict=True):
        assert row["goodput_bps"] == flow["goodput_bps"]
        assert row["bytes"] == flow["bytes_received"]
        assert row["duration_s"] == flow["stop_s"] - flow["start_s"]
        assert sum(row["limited_s"].values()) == pytest.approx(sum(flow["limited_s"].values()), abs=1e-9)


def test_groups_keep_the_order_of_the_table(recording: Recording) -> None:
    groups = grouped(recording, "samples", "flow", ("time_ns", "limit"))
    rows = recording["samples"].to_pylist()
    for flow in (0, 1):
        expected = [row["time_ns"] for row in rows if row["flow"] == flow]
        assert groups[flow]["time_ns"].tolist() == expected
