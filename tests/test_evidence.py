"""Evidence for RFC 9743: every clause once, its rows, verdicts, and the four documents."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

import dragstrip
from dragstrip.errors import BadInputError
from dragstrip.studies.evidence import command, console, of_passport
from dragstrip.studies.evidence.clauses import CLAUSES
from dragstrip.studies.evidence.page import page
from dragstrip.studies.evidence.text import appendix, markdown
from dragstrip.studies.passport import suite

SECTIONS = [f"5.1.{n}" for n in range(1, 6)] + ["5.2", "5.2.1", "5.2.2", "5.2.3", "5.3.1", "5.3.2"]
SECTIONS += ["6"] + [f"6.{n}" for n in range(1, 5)] + [f"7.{n}" for n in range(1, 12)]


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
        "least": None,
        "most": 8.0,
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
    assert text.count("Acceptable, because:") == 2, "clauses 5.1.1 and 5.2 have the row"
    assert "Verdict: **not answered**.\n" in text, "no number of rows where there is none"
    lines = appendix(document).splitlines()
    assert max(map(len, lines)) <= 72
    assert appendix(document).isascii()


def test_a_missed_figure_is_told_from_its_limit() -> None:
    """A figure that rounds to the limit has as many digits as tell the two apart."""
    missed = row(verdict="missed", value=0.9596, values=[0.9596], least=0.96, most=None, rule="at least 0.96")
    assert "timeouts 0.9596 count; cubic 7; **missed** (at least 0.96" in markdown(
        of_passport(passport(missed))
    )


def test_supported_clauses_show_rows_with_limits_first() -> None:
    reported = row(id="loss-slow-1-goodput", kind="R", title="another")
    clause = of_passport(passport(reported, row()))["clauses"][0]
    assert [shown["id"] for shown in clause["telling"]] == ["loss-outage-30s-timeouts", "loss-slow-1-goodput"]
    assert of_passport(passport(row(verdict="missed")))["clauses"][0]["telling"] == []


def test_rows_furthest_from_the_baselines_come_first() -> None:
    near = row(id="loss-slow-1-goodput", kind="K", verdict="worse", value=6.9, most=None)
    far = row(id="loss-slow-30-goodput", kind="K", verdict="worse", value=0.7, most=None)
    none = row(id="loss-slow-10-goodput", kind="K", verdict="worse", value=0.0, most=None)
    against = of_passport(passport(near, far, none))["clauses"][0]["against"]
    assert [entry["value"] for entry in against] == [0.0, 0.7, 6.9]


def test_all_rows_and_the_range_of_their_paths_are_in_the_documents() -> None:
    slow = row(id="alone-64k-1ms-goodput")
    document = of_passport(passport(row(), slow))
    assert set(document["rows"]) == {"loss-outage-30s-timeouts", "alone-64k-1ms-goodput"}
    general = next(clause for clause in document["clauses"] if clause["number"] == "6")
    assert general["ranges"]["rate_bps"] == [64e3, 10e6]
    assert general["ranges"]["rtt_ms"] == [1.0, 50.0]
    sentence = "Rates of 64 kbit/s to 10 Mbit/s, round trips of 1 ms to 50 ms, drop-tail queues of"
    assert sentence in " ".join(appendix(document).split())
    assert markdown(document).count("| `alone-64k-1ms-goodput` |") == 1


def test_a_clause_about_ranges_counts_the_rows_that_it_rests_on() -> None:
    """Clause 6 has no rows of its own, but a verdict."""
    document = of_passport(passport(row(), row(id="alone-64k-1ms-goodput")))
    assert re.search(r"^6 General use +SHOULD +supported +2 +0 *$", console.text(document), re.MULTILINE)
    assert "| 6 General use | SHOULD | **supported** | 2 |" in markdown(document)
    assert "supported, 2 rows." in " ".join(appendix(document).partition("Section 6,")[2].split())
    clause = page(document).partition(">6 General use</a>")[2].partition("</tr>")[0]
    assert '<td class="number">2</td>' in clause


@pytest.mark.parametrize(("algorithm", "noted"), [("cubic:beta=0.8", True), ("mine", False)])
def test_a_baseline_cannot_be_worse_than_itself(algorithm: str, noted: bool) -> None:
    document = of_passport({**passport(row()), "algorithm": algorithm})
    assert ("no figure of its own can be worse than both" in markdown(document)) == noted


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
    for more, expected in (
        ([], "ALGORITHM: is missing: name an algorithm"),
        (["bbr", "--passport", str(file)], "ALGORITHM: got 'bbr', expected no algorithm beside --passport"),
        (["--passport", str(file), "--quick"], "--passport: makes no run: leave out --quick"),
        (["--passport", str(file), "--workers", "3"], "--passport: makes no run: leave out --quick"),
        (["--passport", str(file), "--out", "/proc/x"], "--out: got '/proc/x', expected a folder that can"),
        (["cubic", "--out", "/proc/x"], "--out: got '/proc/x', expected a folder that can be written"),
    ):
        done = subprocess.run([*words, *more], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), more
        assert expected in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["passport.json"]
    with pytest.raises(BadInputError, match=r"^algorithm: got"):
        dragstrip.evidence("nothing")


def test_a_folder_keeps_the_evidence_of_its_own_passport(tmp_path: Path) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for number, file in enumerate(files):
        rows = passport({**row(), "recordings": [], "more_is_better": False, "floor": float(number)})
        file.write_text(json.dumps(rows))
    out = tmp_path / "out"
    out.mkdir()
    (out / "passport.json").write_bytes(files[0].read_bytes())
    words = [sys.executable, "-m", "dragstrip", "evidence", "--out", str(out), "--passport"]
    done = subprocess.run([*words, str(files[1])], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "expected a folder without another passport" in done.stderr
    assert [file.name for file in out.iterdir()] == ["passport.json"]
    done = subprocess.run([*words, str(files[0])], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (out / "evidence.html").is_file()


@pytest.mark.parametrize("damaged", [None, {}, {"value": "a"}, {"value": 1.0, "difference": ["a", 2]}])
def test_a_damaged_baseline_is_bad_input(damaged: Any, tmp_path: Path) -> None:
    file = tmp_path / "passport.json"
    head = {"recordings": [], "more_is_better": False, "floor": 0.0}
    file.write_text(json.dumps(passport({**row(), **head, "baselines": {"cubic": damaged}})))
    with pytest.raises(BadInputError, match="baselines"):
        command.read(file)


@pytest.mark.parametrize("study", ["evidence", "passport"])
def test_a_live_video_has_no_passport(study: str) -> None:
    with pytest.raises(BadInputError, match="a congestion control; a live video is a neighbour"):
        getattr(dragstrip, study)("scream")
