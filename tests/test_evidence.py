"""Evidence for RFC 9743: every clause once, its rows, verdicts, and the four documents."""

from __future__ import annotations

import json
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

import dragstrip
from dragstrip.errors import BadInputError
from dragstrip.studies.evidence import command, of_passport
from dragstrip.studies.evidence.clauses import CLAUSES
from dragstrip.studies.evidence.text import appendix, markdown
from dragstrip.studies.passport import suite

SECTIONS = [f"5.1.{n}" for n in range(1, 6)] + ["5.2.1", "5.2.2", "5.2.3", "5.3.1", "5.3.2"]
SECTIONS += [f"6.{n}" for n in range(1, 5)] + [f"7.{n}" for n in range(1, 12)]


def row(**changed: Any) -> dict[str, Any]:
    """A row of a passport as the evidence reads it."""
    return {
        "id": "loss-outage-30s-timeouts",
        "title": "30 s without a link",
        "measure": "timeouts",
        "unit": "count",
        "kind": "P",
        "verdict": "held",
        "value": 5.0,
        "values": [4.0, 6.0],
        "baselines": {"cubic": {"value": 7.0, "difference": [-3.0, -1.0]}},
        "rule": "at most 8",
        "source": "RFC 6298",
        "replay": "dragstrip compare mine",
        **changed,
    }


def passport(*rows: dict[str, Any]) -> dict[str, Any]:
    head = {
        "version": "0",
        "suite": suite.VERSION,
        "build": "",
        "engine": "sim",
        "kernel": None,
        "quick": False,
    }
    return {**head, "passport": 1, "algorithm": "mine", "rows": list(rows)}


def test_every_clause_is_there_once_and_in_order() -> None:
    assert [clause.number for clause in CLAUSES] == SECTIONS


def test_every_pattern_has_rows_and_every_row_of_the_chapters_a_clause() -> None:
    """A row that is renamed, or a new one that no clause has, is noticed here."""
    ids = {row.id for row in suite.rows("bbr", suite.NAMES, quick=False)}
    patterns = [pattern for clause in CLAUSES for pattern in clause.rows]
    assert [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in ids)] == []
    free = {name for name in ids if not any(fnmatchcase(name, pattern) for pattern in patterns)}
    assert {name for name in free if not name.startswith(("theory-", "bbr-"))} == WITHOUT_CLAUSE


WITHOUT_CLAUSE: set[str] = set()
"""Rows that no clause of RFC 9743 asks for."""


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, "supported in part"),
        ({"verdict": "missed"}, "contradicted"),
        ({"verdict": "missed, as by CUBIC"}, "to be justified"),
        ({"verdict": "missed", "kind": "T"}, "to be justified"),
        ({"verdict": "worse", "kind": "K"}, "to be justified"),
        ({"verdict": "failed", "value": None, "values": [], "failure": "a crash"}, "contradicted"),
        ({"verdict": "failed", "kind": "R", "value": None, "values": []}, "to be justified"),
        ({"id": "other"}, "not answered"),
    ],
)
def test_a_clause_is_judged_by_its_worst_row(changed: dict[str, Any], verdict: str) -> None:
    clauses = {clause["number"]: clause for clause in of_passport(passport(row(**changed)))["clauses"]}
    assert clauses["5.1.1"]["verdict"] == verdict
    assert clauses["5.3.1"]["verdict"] == "for the authors"
    assert clauses["7.2"]["verdict"] == "not answered"
    assert clauses["7.4"]["lacks"][0] == "its rows were not run"


def test_documents_name_figure_interval_and_replay() -> None:
    document = of_passport(passport(row(verdict="missed")))
    text = markdown(document)
    assert "timeouts 5 count (4 to 6 over 2 seeds); cubic 7; **missed** (at most 8; RFC 6298)" in text
    assert "differs from cubic by -3 to -1 count" in text
    assert "`dragstrip compare mine`" in text
    assert text.count("Acceptable, because:") == 1
    lines = appendix(document).splitlines()
    assert max(map(len, lines)) <= 72
    assert appendix(document).isascii()


def test_the_command_writes_what_the_function_returns(tmp_path: Path) -> None:
    """From a passport that is there; of the quick suite of a whole algorithm, `dragstrip evidence` is tried by hand."""
    file = tmp_path / "passport.json"
    file.write_text(json.dumps(passport({**row(), "recordings": [], "more_is_better": False, "floor": 0.0})))
    out = tmp_path / "evidence"
    words = [
        sys.executable,
        "-m",
        "dragstrip",
        "evidence",
        "--passport",
        str(file),
        "--out",
        str(out),
        "--json",
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == command.read(file) == json.loads((out / "evidence.json").read_text())
    assert sorted(path.name for path in out.iterdir()) == [
        f"evidence.{end}" for end in ("html", "json", "md", "txt")
    ]


def test_bad_input_names_the_field(tmp_path: Path) -> None:
    file = tmp_path / "passport.json"
    file.write_text(json.dumps({**passport(row()), "suite": 1}))
    with pytest.raises(BadInputError, match=r"suite: got 1, expected \d+, as of this version"):
        command.read(file)
    words = [sys.executable, "-m", "dragstrip", "evidence"]
    for more in ([], ["bbr", "--passport", str(file)], ["--passport", str(file), "--quick"]):
        done = subprocess.run([*words, *more], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), more
    assert sorted(path.name for path in tmp_path.iterdir()) == ["passport.json"]
    with pytest.raises(BadInputError, match=r"^algorithm: got"):
        dragstrip.evidence("nothing")
