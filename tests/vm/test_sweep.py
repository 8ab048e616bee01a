"""A sweep on the kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
from typer.testing import CliRunner

from dragstrip.cli import app

EXPERIMENT = """
duration = "2s"
[path]
rate = "5mbit"
rtt = "20ms"
queue = "bfifo limit 50000"
[[flows]]
cc = "reno"
"""


def test_a_sweep_on_the_kernel_is_made_once_and_agrees_with_the_simulator(linux: str, tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    file.write_text(EXPERIMENT)
    words = ["sweep", str(file), "--vary", "flows.cc=reno,vegas", "--json", "--no-report"]
    goodput = {}
    for engine in ("vm", "sim", "vm"):
        out = tmp_path / engine
        ended = CliRunner().invoke(app, [*words, "--engine", engine, "--out", str(out)])
        assert ended.exit_code == 0, ended.output
        document = json.loads(ended.stdout)
        assert (document["runs"], document["failed"]) == (2, 0)
        table = pq.read_table(out / "dataset")
        assert set(table["engine"].to_pylist()) == {engine}
        assert table["status"].to_pylist() == ["ok", "ok"]
        goodput[engine] = table["goodput_bps"].to_pylist()
    assert document["made"] == 0, "the second sweep on the kernel found both runs done"
    for ours, kernels in zip(goodput["sim"], goodput["vm"], strict=True):
        assert abs(ours - kernels) < 0.03 * kernels
