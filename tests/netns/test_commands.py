"""The commands on the engine in real time: sweep, and what `--strict` says."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dragstrip.errors import BadInputError
from dragstrip.experiment.types import Experiment
from dragstrip.studies.sweep.plan import Sweep, describe

from .test_runs import WORDS, main

SWEPT = """
title = "Two rates"
duration = "1s"
engine = "netns"
[path]
rate = "5mbit"
rtt = "0ms"
queue = "bfifo limit 30kb"
[[flows]]
cc = "cubic"
[vary]
"path.rate" = ["5mbit", "10mbit"]
"""


def swept(**options: Any) -> Sweep:
    return describe(Experiment.build(tomllib.loads(SWEPT)), "", **options)


def test_a_sweep_is_made_one_run_at_a_time(
    machine: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "two.toml"
    file.write_text(SWEPT)
    assert (
        main(
            ["sweep", str(file), "--engine", "netns", "--out", str(tmp_path / "map"), "--json", "--no-report"]
        )
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    assert (document["made"], document["failed"]) == (2, 0)
    rows = pq.read_table(tmp_path / "map" / "dataset").to_pylist()
    assert [row["engine"] for row in rows] == ["netns", "netns"]
    slow, fast = (row["goodput_bps"] for row in sorted(rows, key=lambda row: row["path_rate_bps"]))
    assert 0 < slow < 5e6
    assert fast < 10e6
    reasons = [row["reason"] for row in rows]
    assert all(reason is None or "limited" in reason for reason in reasons), reasons


def test_strict_is_part_of_a_sweep(machine: dict[str, Any], tmp_path: Path) -> None:
    plain, strict = swept(), swept(engine_options={"strict": "yes"})
    assert (plain.options, strict.options) == ({}, {"strict": "yes"})
    assert plain.version != strict.version, "what it let through is not taken for what it did not"
    assert Sweep.read(strict.document(), "").options == {"strict": "yes"}


def test_a_cluster_is_no_place_for_real_time(
    machine: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "two.toml"
    file.write_text(SWEPT)
    words = [
        "sweep",
        str(file),
        "--engine",
        "netns",
        "--out",
        str(tmp_path / "map"),
        "--on",
        "dask://127.0.0.1:9",
    ]
    assert main(words) == 2
    assert "engine netns is for this machine alone" in capsys.readouterr().err
    assert not (tmp_path / "map").exists()


def test_strict_is_an_option_of_the_engine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "cubic", *WORDS, "--strict", "--show"]) == 0
    shown = tomllib.loads(capsys.readouterr().out)
    assert shown["engine_options"] == {"strict": "yes"}
    assert main(["compare", "cubic", *WORDS[:-2], "--strict", "--show"]) == 2
    assert "engine netns" in capsys.readouterr().err
    with pytest.raises(BadInputError, match="engine netns"):
        swept(engine="sim", engine_options={"strict": "yes"})
