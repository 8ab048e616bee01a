"""Rows of a passport on a real kernel."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dragstrip.cli import app
from dragstrip.errors import BadInputError
from dragstrip.studies.passport import page
from dragstrip.studies.passport.command import PassportRequest, make
from dragstrip.studies.passport.figures import GOODPUT
from dragstrip.studies.passport.rows import On, PassportRow, RowRule, Subject
from dragstrip.studies.passport.rows import PassportPath as Line

from .test_bpf import _clang, source  # noqa: F401 - a fixture

pytestmark = pytest.mark.usefixtures("linux")


def test_a_row_replays_on_the_kernel_and_stands_beside_the_simulator(tmp_path: Path) -> None:
    row = PassportRow(
        "alone-a", "alone", "a", Line(2, 20, duration_s=2).scenario(), GOODPUT, RowRule("K", "a comparison")
    )
    asked = PassportRequest(Subject("cubic", on=On("vm")), ("alone",), False, (row,), second_engine=On())
    found = make(asked, None, quiet=True)
    (told,) = found["rows"]
    assert found["kernel"] in page.page(found)
    words = [*shlex.split(told["replay"])[1:], "--json", "--no-report", "--out", str(tmp_path / "again")]
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == 0, ended.output
    assert [row.figure.of(run, row.scenario) for run in json.loads(ended.stdout)["runs"]] == told["values"]
    assert found["beside"]["rows"] == 1


ROW = PassportRow(
    "alone-a", "alone", "a", Line(2, 20, duration_s=2).scenario(), GOODPUT, RowRule("P", "a limit", least=1.0)
)


def passport(file: str) -> dict[str, Any]:
    """The passport of one row of an algorithm in C."""
    on = On("vm", load=(file,))
    return make(PassportRequest(Subject("mine", on=on), ("alone",), False, (ROW,)), 1, quiet=True)


@pytest.mark.usefixtures("_clang")
def test_an_algorithm_in_c_that_does_not_compile_is_bad_input(tmp_path: Path) -> None:
    file = source(tmp_path, body="nonsense;")
    words = ["passport", "mine", "--only", "alone", "--quick", "--engine", "vm", "--load", file]
    ended = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out")])
    assert isinstance(ended.exception, BadInputError)
    assert "mine.bpf.c:5:" in str(ended.exception)
    assert "use of undeclared identifier 'nonsense'" in str(ended.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("_clang")
def test_what_the_verifier_refuses_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(
        BadInputError, match=r"load: got .* expected a program that this kernel takes: .*no write"
    ):
        passport(source(tmp_path, body="tcp_sk(sk)->snd_nxt = 0;"))


@pytest.mark.usefixtures("_clang")
@pytest.mark.parametrize("body", ["tcp_sk(sk)->snd_cwnd = 0; return;", "tcp_sk(sk)->snd_cwnd = 1; return;"])
def test_a_window_that_does_not_grow_misses_what_reno_holds(tmp_path: Path, body: str) -> None:
    (row,) = passport(source(tmp_path, body=body))["rows"]
    assert row["verdict"] in ("missed", "failed")
    assert row["baselines"]["reno"]["value"] > 1
