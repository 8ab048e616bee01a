"""Algorithms as texts (docs/how-to/program.md), from the command line to the recording."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dragstrip import cli
from dragstrip.engines.sim.engine import simulate
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.experiment.programs import of_files
from dragstrip.experiment.types import Experiment

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "programs").glob("*.cc"))
PATH = {"rate": "10mbit", "rtt": "20ms", "queue": "1bdp", "duration": "3s"}
REST = "on ack { } on loss { ssthresh = 2 }"


def test_the_examples_are_those_of_the_page() -> None:
    page = (ROOT / "docs" / "how-to" / "program.md").read_text()
    assert len(FILES) == 4
    for file in FILES:
        assert f"(../../programs/{file.name})" in page


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_example_runs(file: Path) -> None:
    programs = of_files([str(file)])
    (run,) = expand(compare([file.stem], programs=programs, **PATH))
    assert run.scenario["programs"] == {file.stem: file.read_text()}
    recording = simulate(run.scenario)
    assert recording.tables["flows"].column("cc").to_pylist() == [file.stem]
    received = recording.tables["received"].column("new_bytes").to_pylist()
    assert sum(received) * 8 / 3 > 7e6, "it does not fill the path"


def test_the_first_text_of_the_page_is_a_program(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "program.md").read_text()
    found = re.search(r"^```\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    file = tmp_path / "first.cc"
    file.write_text(found[1])
    assert "param keep" in of_files([str(file)])["first"]


def test_a_run_carries_only_the_programs_that_it_uses() -> None:
    programs = {file.stem: file.read_text() for file in FILES if file.stem in ("my-exp", "my-vegas")}
    words = ["reno", "my-exp:keep=0.6*2", "my-vegas"]
    reno, exp, vegas = expand(compare(words, programs=programs, **PATH))
    assert "programs" not in reno.scenario
    assert (list(exp.scenario["programs"]), list(vegas.scenario["programs"])) == (["my-exp"], ["my-vegas"])
    assert [flow["transport"]["cc_options"] for flow in exp.scenario["flows"]] == [{"keep": 0.6}] * 2


def test_an_experiment_names_files_or_has_the_text(tmp_path: Path) -> None:
    (tmp_path / "beside.cc").write_text(REST)
    (tmp_path / "mine.toml").write_text(
        'duration = "1s"\n[path]\nrate = "10mbit"\nrtt = "40ms"\nqueue = "1bdp"\n'
        f'[programs]\nown = "beside.cc"\nother = """\n{REST}\n"""\n'
        '[[flows]]\ncc = "own"\n[[flows]]\ncc = "other*2"\n'
    )
    experiment = Experiment.read(tmp_path / "mine.toml")
    assert experiment.programs == {"own": REST, "other": f"{REST}\n"}
    assert Experiment.build(experiment.content()).programs == experiment.programs
    (run,) = expand(experiment)
    assert run.scenario["programs"] == experiment.programs
    assert len(run.scenario["flows"]) == 3


def test_show_prints_an_experiment_that_runs_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = f"compare --rate 10mbit --rtt 20ms --queue 1bdp --duration 1s --show --program {FILES[0]} my-bbr"
    monkeypatch.setattr("sys.argv", ["dragstrip", *words.split()])
    with pytest.raises(SystemExit):
        cli.main()
    (tmp_path / "shown.toml").write_text(capsys.readouterr().out)
    (run,) = expand(Experiment.read(tmp_path / "shown.toml"))
    assert run.scenario["programs"] == {"my-bbr": FILES[0].read_text()}


def test_arithmetic_that_fails_is_one_line_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.cc").write_text("on ack { cwnd = 1 / (cwnd - cwnd) } on loss { ssthresh = 2 }")
    words = "compare --rate 10mbit --rtt 40ms --queue 1bdp --duration 2s --out out --program mine.cc mine"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["dragstrip", *words.split()])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr().err.splitlines()[-1]
    assert (ended.value.code, said) == (
        2,
        "error: mine.cc:1:19: gives infinity at 0.119999 s, in ACK 1 of flow mine; "
        "a number is needed, and for a word none below 0",
    )
    assert not (tmp_path / "out").exists()


def test_the_form_of_the_page_carries_the_text() -> None:
    from dragstrip.cli.play import _described

    options = {**PATH, "programs": of_files([str(FILES[0])])}
    race = _described([FILES[0].stem], options)
    assert json.loads(json.dumps(race))["form"]["programs"] == {FILES[0].stem: FILES[0].read_text()}


@pytest.mark.parametrize(
    "words",
    [
        "passport mine.cc --quick",
        "evidence mine.cc --quick",
        "attack mine.cc:keep=0.6",
        "compare --rate 10mbit --rtt 40ms mine.cc",
    ],
)
def test_a_file_in_the_place_of_an_algorithm_is_told_how_to_name_it(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.cc").write_text(REST)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["dragstrip", *words.split()])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert (ended.value.code, capsys.readouterr().err) == (
        2,
        "error: command line: ALGORITHM: mine.cc is a file: name it with --program mine.cc, and its "
        "algorithm mine\n",
    )
    assert [file.name for file in tmp_path.iterdir()] == ["mine.cc"]
