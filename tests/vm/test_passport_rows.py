"""Rows of a passport on a real kernel."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragstrip.cli import app
from dragstrip.passport import page
from dragstrip.passport.command import Asked, make
from dragstrip.passport.figures import GOODPUT
from dragstrip.passport.rows import On, Row, Rule, Subject
from dragstrip.passport.rows import Path as Line

pytestmark = pytest.mark.usefixtures("linux")


def test_a_row_replays_on_the_kernel_and_stands_beside_the_simulator(tmp_path: Path) -> None:
    row = Row(
        "alone-a", "alone", "a", Line(2, 20, duration_s=2).scenario(), GOODPUT, Rule("K", "a comparison")
    )
    asked = Asked(Subject("cubic", on=On("vm")), ("alone",), False, (row,), beside=On())
    found = make(asked, None, quiet=True)
    (told,) = found["rows"]
    assert found["kernel"] in page.page(found)
    words = [*shlex.split(told["replay"])[1:], "--json", "--no-report", "--out", str(tmp_path / "again")]
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == 0, ended.output
    assert [row.figure.of(run, row.scenario) for run in json.loads(ended.stdout)["runs"]] == told["values"]
    assert found["beside"]["rows"] == 1
