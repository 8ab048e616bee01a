"""A policy is an algorithm like any other: every study takes it, and a kernel refuses it by name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import dragstrip
from dragstrip.errors import BadInputError

ROOT = Path(__file__).parents[1]
FILE = ROOT / "programs/my-delay.json"
TEXT = FILE.read_text()
PATH = ["--rate", "10mbit", "--rtt", "40ms", "--queue", "1bdp", "--duration", "4s"]


def ended(folder: Path, *words: str, status: int = 0) -> str:
    command = [sys.executable, "-m", "dragstrip", *words]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert result.returncode == status, result.stderr
    return result.stdout if status == 0 else result.stderr


def test_a_sweep_of_a_policy_makes_its_runs(tmp_path: Path) -> None:
    experiment = ended(tmp_path, "compare", "--policy", str(FILE), *PATH, "my-delay", "cubic", "--show")
    (tmp_path / "race.toml").write_text(experiment)
    printed = ended(tmp_path, "sweep", "race.toml", "--vary", "path.rtt=10ms,40ms", "--out", "out", "--json")
    document = json.loads(printed)
    assert (document["runs"], document["failed"]) == (4, 0)


def test_a_policy_is_the_competitor_of_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "race.toml").write_text(ended(tmp_path, "compare", *PATH, "cubic", "--show"))
    words = ["--policy", str(FILE), "--vary", "flow.cc=cubic,my-delay", "--competitor", "my-delay"]
    document = json.loads(ended(tmp_path, "sweep", "race.toml", *words, "--out", "out", "--json"))
    assert document["failed"] == 0
    assert document["runs"] >= 2


def test_a_policy_is_judged_as_a_file_and_as_a_text() -> None:
    file, text, named = dragstrip.judge([FILE, TEXT, dragstrip.program("mine", TEXT)], hidden=3, scenarios=2)
    assert file.error is None
    assert file.rows == text.rows == named.rows


def test_an_attack_on_a_policy_has_an_answer() -> None:
    answer = dragstrip.attack("my-delay", programs={"my-delay": TEXT}, goal=["stall"], evaluations=6)
    assert answer["evaluations"] >= 6
    assert answer["algorithm"] == "my-delay"


@pytest.mark.parametrize("chapter", ["mixed", "alone"])
@pytest.mark.parametrize("program", ["my-delay.json", "my-exp.cc"])
def test_every_row_of_a_passport_runs_and_is_written(chapter: str, program: str, tmp_path: Path) -> None:
    file = ROOT / "programs" / program
    words = ["--policy", str(file), "--only", chapter, "--quick", "--json", "--out", "out"]
    result = subprocess.run(
        [sys.executable, "-m", "dragstrip", "passport", file.stem, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert result.returncode in (0, 3), result.stderr  # 3: rows that miss a limit
    rows = json.loads(result.stdout)["rows"]
    assert rows
    assert [row["id"] for row in rows if row["verdict"] == "failed"] == []
    assert (tmp_path / "out/passport.html").exists()


def test_the_evidence_for_a_policy_has_every_clause() -> None:
    answer = dragstrip.evidence("my-delay", programs={"my-delay": TEXT}, quick=True)
    assert answer["algorithm"] == "my-delay"
    assert len(answer.clauses) == len(dragstrip.evidence("reno", quick=True).clauses)


@pytest.mark.parametrize("engine", ["vm", "netns"])
def test_a_kernel_refuses_a_policy_by_name(engine: str, tmp_path: Path) -> None:
    error = ended(tmp_path, "compare", "--policy", str(FILE), "--engine", engine, *PATH, "my-delay", status=2)
    assert error.count("\n") == 1
    assert "my-delay" in error


def test_a_policy_that_nothing_names_is_refused(tmp_path: Path) -> None:
    error = ended(tmp_path, "compare", "--policy", str(FILE), *PATH, "cubic", status=2)
    assert "--program: got my-delay, which nothing names" in error


def test_a_policy_with_a_fault_names_file_and_place(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(TEXT.replace('"rate_factor"', '"rate_facto"'))
    for command in ("compare", "passport", "evidence", "attack"):
        words = [*PATH, "bad"] if command == "compare" else ["bad"]
        error = ended(tmp_path, command, "--policy", "bad.json", *words, status=2)
        assert error.startswith("error: bad.json:4:"), error
    with pytest.raises(BadInputError, match=r"got unknown variant `rate_facto`"):
        dragstrip.program("bad", tmp_path / "bad.json")


WITHOUT_MODEL = {name: value for name, value in json.loads(TEXT).items() if name != "model"}
NEEDED = "needs a `model`: without one nobody acts outside dragstrip.gym"


@pytest.mark.parametrize("command", ["compare", "passport", "evidence", "attack", "policy-bpf"])
def test_a_file_without_a_model_is_refused(command: str, tmp_path: Path) -> None:
    (tmp_path / "idle.json").write_text(json.dumps(WITHOUT_MODEL))
    words = ["idle", "--policy", "idle.json", *(PATH if command == "compare" else [])]
    if command == "policy-bpf":
        words = ["idle.json", "--out", "idle.bpf.c"]
    error = ended(tmp_path, command, *words, status=2)
    assert error.startswith(f"error: idle.json: {NEEDED}"), error
    assert error.count("\n") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["idle.json"]


@pytest.mark.parametrize("fields", [{}, {"model": "outside"}])
def test_a_text_without_a_model_is_refused(fields: dict[str, str], tmp_path: Path) -> None:
    text = json.dumps({**WITHOUT_MODEL, **fields})
    programs = {"idle": text}
    for verb in (
        lambda: dragstrip.race("idle", programs=programs, rate="10mbit", rtt="40ms", duration="1s"),
        lambda: dragstrip.attack("idle", programs=programs, goal=["stall"], evaluations=6),
        lambda: dragstrip.passport("idle", programs=programs, quick=True),
        lambda: dragstrip.program("idle", text),
    ):
        with pytest.raises(BadInputError, match=NEEDED):
            verb()
    file = tmp_path / "idle.json"
    file.write_text(text)
    for judgement in dragstrip.judge([text, file], hidden=1, scenarios=1):
        assert NEEDED in str(judgement.error)
    experiment = ended(tmp_path, "compare", *PATH, "cubic", "--show").replace('"cubic"', '"idle"')
    (tmp_path / "race.toml").write_text(f'{experiment}\n[programs]\nidle = "idle.json"\n')
    assert NEEDED in ended(tmp_path, "run", "race.toml", status=2)
