"""Every figure as CSV: the points that are drawn."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from dragstrip.report import embed, rows
from dragstrip.report.figure import Axis, Distribution, Figure, Line, Panel, Stroke, TimeLines
from dragstrip.report.paper import Paper
from dragstrip.report.series import Curve
from dragstrip.report.write import write_report

from . import synthetic


def parsed(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_a_folder_of_figures_as_csv(tmp_path: Path) -> None:
    synthetic.write(synthetic.together({"reno": 0.7, "cubic": 0.3}, duration_s=10.0), tmp_path)
    write_report(tmp_path, Paper(("csv",)))
    names = {path.stem for path in (tmp_path / "figures").iterdir()}
    assert names >= {"goodput", "rtt", "cdf-rtt", "shares", "pie", "jain", "overlay", "delay-throughput"}
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".csv"}
    for path in (tmp_path / "figures").iterdir():
        head, *body = parsed(path.read_text())
        assert body, path
        assert {len(row) for row in body} == {len(head)}, path
    shares = parsed((tmp_path / "figures" / "pie.csv").read_text())[1:]
    assert sum(float(row[2]) for row in shares) == pytest.approx(1.0)
    assert [row[0] for row in shares] == ["reno", "cubic"]


def test_rows_are_the_points_that_are_drawn() -> None:
    y = np.array([1.0, np.nan, 3.0])
    stroke = Stroke([Curve(np.array([0.0, 1.0, 2.0]), y)], "#000000", 1, label='a "name", b', main=True)
    lines = TimeLines(Axis("Time (s)", 0, 2, "s"), [Panel(Axis("RTT (ms)", 0, 3, "ms"), [stroke])])
    text = rows.csv_text(Figure("f", "F", "f", lines))
    assert parsed(text) == [
        ["panel", "name", "Time (s)", "value"],
        ["RTT (ms)", 'a "name", b', "0", "1"],
        ["RTT (ms)", 'a "name", b', "2", "3"],
    ]
    curve = Curve(np.array([1.5, 2.5]), np.array([0.5, 1.0]))
    line = Line("reno", "2 ms", "#000000", curve)
    content = Distribution(Axis("RTT (ms)", 0, 3, "ms"), [line])
    assert parsed(rows.csv_text(Figure("c", "C", "c", content)))[1:] == [
        ["reno", "1.5", "0.5"],
        ["reno", "2.5", "1"],
    ]
    assert embed.table(Figure("c", "C", "c", content)).rows


@pytest.mark.parametrize("label", ["=1+1", "+1", "-1", "@sum", "\tx"])
def test_a_text_that_a_spreadsheet_takes_for_a_formula_is_none(label: str) -> None:
    curve = Curve(np.array([-1.5]), np.array([-0.5]))
    stroke = Stroke([curve], "#000000", 1, label=label, main=True)
    lines = TimeLines(Axis("Time (s)", 0, 2, "s"), [Panel(Axis("RTT (ms)", 0, 3, "ms"), [stroke])])
    _, row = csv.reader(io.StringIO(rows.csv_text(Figure("f", "F", "f", lines)), newline=""))
    assert row == ["RTT (ms)", f"'{label}", "-1.5", "-0.5"], "numbers stay numbers"
