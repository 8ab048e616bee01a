"""Publications and ablations: a catalogue of two small publications, run by one command."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

from dragstrip import cli
from dragstrip.errors import BadInputError
from dragstrip.experiment import catalogue
from dragstrip.experiment.types import Experiment
from dragstrip.results.ablations import ablated
from dragstrip.results.claims import CONTRADICTED, OPEN, REPRODUCED
from dragstrip.studies.execution.runner import plan
from tools import catalogue as pages

ROOT = Path(__file__).parents[1]

SLOW = """
title = "A slow line"
source = "nobody, nowhere"
description = "Two flows."
duration = "4s"
repeat = 2

[path]
rate = "2mbit"
rtt = "20ms"
queue = "bfifo limit 20kb"
jitter = "1us"   # repeats differ

[[flows]]
cc = "reno"
count = 2

[vary]
"flows.cc" = ["reno", "cubic"]

[[claims]]
id = "total"
source = "page 1: \\"1.9\\""
metric = "goodput_bps_total"
where = { cc = "reno" }
value = 1.9
tolerance = "3%"
unit = "Mbit/s"

[[claims]]
id = "lowest"
source = "page 1: \\"1.8\\""
metric = "goodput_bps"
where = { cc = "reno" }
across = "min"
value = 1.8
tolerance = "3%"
unit = "Mbit/s"

[[claims]]
id = "left-open"
source = "page 2: \\"TBD\\""
metric = "rtt_ms_p50"
where = { cc = "cubic" }
asked = "the delay"
unit = "ms"

[[ablations]]
claims = ["tot*", "left-open"]
vary = { "path.rate" = ["1mbit", "2mbit"] }
about = "Half of the rate."

[[flow_tables]]
source = "page 3"
where = { cc = "reno" }
published = [0.5, 1.4]
"""

FAST = """
title = "A fast line"
source = "nobody, nowhere"
duration = "2s"

[path]
rate = "4mbit"
rtt = "10ms"
queue = "bfifo limit 20kb"

[[flows]]
cc = "vegas"
"""

PUBLICATION = """
title = "A publication"
source = "Nobody."
question = "How fast?"
verdict = "As fast as {slow/total}."
"""


@pytest.fixture
def publications(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalogue of two publications."""
    root = tmp_path / "experiments"
    for name, text in (("first/slow", SLOW), ("second/fast", FAST)):
        file = root / f"{name}.toml"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    (root / "first" / catalogue.PUBLICATION).write_text(PUBLICATION)
    (root / "second" / catalogue.PUBLICATION).write_text(PUBLICATION.replace("{slow/total}", "light"))
    monkeypatch.setattr(catalogue, "FOLDER", root)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def command(line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["dragstrip", *shlex.split(line)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def valid(document: dict[str, Any]) -> None:
    result, own = (
        json.loads((ROOT / "docs" / "reference" / f"{name}.schema.json").read_text())
        for name in ("result", "catalogue")
    )
    registry = Registry().with_resource("result.schema.json", Resource.from_contents(result))
    jsonschema.Draft202012Validator(own, registry=registry).validate(document)


def test_seeds_ends_with_one_table_and_one_document(
    publications: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("run all --out out", monkeypatch) == 0
    told = capsys.readouterr()
    assert (
        "[12/12]" not in told.err
    )  # 4 + 1 runs, and 4 at half of the rate; those at 2 Mbit/s are the same again
    assert "[9/9]" in told.err
    rows = {line.split()[0]: line for line in told.out.splitlines() if line.strip()}
    assert REPRODUCED in rows["total"]
    assert "1.9 Mbit/s" in rows["total"]
    assert CONTRADICTED in rows["lowest"]  # two flows share 1.9
    assert OPEN in rows["left-open"]
    assert "1 reproduced, 1 contradicted, 0 not testable here, 1 open question: 50 %" in told.out
    document = json.loads(Path("out/catalogue.json").read_text())
    valid(document)
    assert [part["name"] for part in document["experiments"]] == ["first/slow", "second/fast"]
    # Each experiment's folder is as if it had been run alone.
    result = json.loads(Path("out/first/slow/result.json").read_text())
    assert len(result["runs"]) == 4
    assert document["experiments"][0]["claims"] == result["claims"]
    (table,) = result["flow_tables"]
    assert table["published"] == [1.4, 0.5]
    assert [len(own) for own in table["ours"].values()] == [2]
    assert not Path("out/PARTIAL").exists()


def test_json_is_the_document_and_nothing_else(
    publications: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("run second --json --out out", monkeypatch) == 0
    told = capsys.readouterr()
    assert told.err == ""
    document = json.loads(told.out)
    valid(document)
    assert document["publication"] == "second"


def test_an_ablation_says_what_the_figure_would_be(
    publications: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("run first/slow --no-report --json --out out", monkeypatch) == 0
    lines = {line["id"]: line for line in json.loads(capsys.readouterr().out)["claims"]}
    half, same = lines["total"]["ablations"]
    assert half["setting"] == {"path.rate": "1mbit"}
    assert half["measured"] == pytest.approx(lines["total"]["measured"] / 2, rel=0.05)
    assert half["grade"] == CONTRADICTED
    assert same["measured"] == lines["total"]["measured"]
    assert [other["grade"] for other in lines["left-open"]["ablations"]] == [OPEN, OPEN]
    assert "ablations" not in lines["lowest"]
    # What it has in common with the experiment is not run again, and only its own claims' runs are.
    assert len(list(Path("out/ablations").iterdir())) == 4


def test_the_terminal_says_which_grades_an_ablation_changes(
    publications: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("run first/slow --no-report --out out", monkeypatch) == 0
    told = capsys.readouterr().out
    claims, ablations = told.split("ablations")
    assert re.search(r"total +1\.90 Mbit/s +1\.\d+ Mbit/s +reproduced", claims)
    assert "path.rate" not in claims
    assert re.search(r"path.rate = 1mbit +total contradicted \(0\.\d+ Mbit/s\)", ablations)
    assert re.search(r"path.rate = 2mbit +none", ablations)


def test_docs_are_written_and_current(
    publications: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("run all --out out", monkeypatch) == 0
    pages.main("out", "catalogue.md")
    page = Path("experiments/first/README.md").read_text()
    measured = re.search(r"\| total \| 1.9 \| ([\d.]+) \|", page)
    assert measured is not None
    assert f"As fast as {measured[1]} Mbit/s." in page
    assert "1 of 2 figures that can be tested here are reproduced (50 %)" in page
    assert "`path.rate = 1mbit`" in page
    assert "![The path](slow.svg)" in page
    assert Path("experiments/first/slow.svg").read_text().startswith("<svg")
    assert "| left-open | – | " in Path("catalogue.md").read_text()


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("run frist", "EXPERIMENT: got 'frist'"),
        ("run frist", 'did you mean "first"?'),
        ("run alll", 'did you mean "all"?'),
        ("run all --duration 0s", "duration"),
        ("show first", "not a whole publication"),
        ("sweep first", "not a whole publication"),
    ],
)
def test_bad_input(
    publications: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: str,
    hint: str,
) -> None:
    assert command(line, monkeypatch) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert hint in told.err
    assert [file.name for file in publications.iterdir()] == ["experiments"]


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (
            '"tot*"',
            '"totl"',
            "ablations[0].claims: got 'totl', expected the id of a claim; did you mean \"total\"?",
        ),
        (
            '"path.rate" = ["1mbit", "2mbit"]',
            "",
            "ablations[0]: is empty: vary a field, or name another metric",
        ),
        ('["1mbit", "2mbit"]', '"1mbit"', 'ablations[0].vary.path.rate: got "1mbit", expected a list'),
        ('["1mbit", "2mbit"]', '["1mbit", 2]', "ablations[0]: path.rate: got 2"),
        ('"path.rate" = ["1', '"path.rat" = ["1', "ablations[0]: path.rat"),
        ('asked = "the delay"', "", "one of value, range, order and asked"),
        ('asked = "the delay"', 'asked = "the delay"\nvalue = 3', "one of value, range, order and asked"),
        (
            'about = "Half of the rate."',
            'about = "x"\nmetric = "goodputs"',
            "metric: got 'goodputs', expected a measure",
        ),
        ('across = "min"', 'across = "least"', "across"),
        (
            'where = { cc = "reno" }\npublished',
            'where = { cc = "rneo" }\npublished',
            "flow_tables[0].where.cc",
        ),
        ("published = [0.5, 1.4]", "published = []", "flow_tables[0].published"),
        ('about = "Half of the rate."', "", "ablations[0].about: is missing"),
    ],
)
def test_bad_experiments_name_the_field(publications: Path, old: str, new: str, hint: str) -> None:
    file = publications / "experiments" / "first" / "slow.toml"
    assert old in SLOW
    file.write_text(SLOW.replace(old, new, 1))
    with pytest.raises(BadInputError) as raised:
        plan(Experiment.read(file), str(file))
    assert str(raised.value).startswith(str(file))
    assert hint in str(raised.value)


def test_a_shelf_without_its_words_and_a_verdict_about_nothing(
    publications: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = publications / "experiments" / "first" / catalogue.PUBLICATION
    assert command("run all --no-report --out out", monkeypatch) == 0
    words.write_text(PUBLICATION.replace("total", "totl"))
    with pytest.raises(
        BadInputError, match=r"verdict: got \{slow/totl\}, expected an experiment and a claim"
    ):
        pages.main("out", "x.md")
    words.unlink()
    with pytest.raises(BadInputError, match=re.escape(str(words))):
        pages.main("out", "x.md")
    assert sorted(file.name for file in publications.iterdir()) == ["experiments", "out"]


def test_pages_need_a_whole_run_without_failures(
    publications: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("run second --no-report --out out", monkeypatch) == 0
    with pytest.raises(BadInputError, match="publication: got 'second', expected the output of `run all`"):
        pages.main("out", "x.md")
    file = Path("out/catalogue.json")
    document = json.loads(file.read_text())
    failure = {"experiment": "second/one", "scenario": "x", "reason": "y"}
    file.write_text(json.dumps({**document, "publication": "all", "failed": [failure]}))
    with pytest.raises(BadInputError, match="failed: got 1, expected a run without failures"):
        pages.main("out", "x.md")
    assert not Path("x.md").exists()


def test_an_ablation_goes_before_what_alternatives_set() -> None:
    content = {
        "duration": "1s",
        "path": {"rate": "1mbit", "queue": "bfifo limit 20kb"},
        "flows": [{"cc": "reno"}],
        "alternatives": [
            {"name": "slow", "set": {"path.rate": "1mbit"}},
            {"name": "vegas", "set": {"path.rate": "2mbit", "flows.cc": "vegas"}},
        ],
        "claims": [
            {
                "id": "c",
                "source": "1",
                "metric": "goodput_bps",
                "where": {"alternative": "vegas"},
                "asked": "?",
                "unit": "Mbit/s",
            }
        ],
        # Means nothing to the alternative that the claim is not about.
        "ablations": [
            {
                "claims": ["*"],
                "vary": {"path.rate": ["8mbit"], "flows.cc_options": [{"alpha": 5}]},
                "about": "a",
            }
        ],
    }
    (part,) = ablated(Experiment.build(content))
    (run,) = part.runs
    assert "8000000" in json.dumps(run.scenario["links"])
    assert run.scenario["flows"][0]["transport"]["cc_options"] == {"alpha": 5}


def test_expanding_leaves_the_experiment_as_it_was() -> None:
    """What an alternative sets as a whole, an ablation may change a part of."""
    experiment = Experiment.build(
        {
            "duration": "1s",
            "path": {"rate": "1mbit", "queue": "bfifo limit 20kb"},
            "flows": [{"cc": "reno"}],
            "alternatives": [{"name": "a", "set": {"hosts.d.sysctl": {"net.ipv4.tcp_sack": 0}}}],
            "claims": [{"id": "c", "source": "1", "metric": "jain", "asked": "?"}],
            "ablations": [
                {"claims": ["c"], "vary": {'hosts.d.sysctl."net.ipv4.tcp_ecn"': [1]}, "about": "a"}
            ],
        }
    )
    first, again = (plan(experiment) for _ in range(2))
    assert [job.run for job in first.jobs] == [job.run for job in again.jobs]
    assert [json.dumps(job.run.scenario).count("tcp_ecn") for job in first.jobs] == [0, 1]


def test_an_interrupt_leaves_nothing_half_done(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "dragstrip", "run", "geni-tcp", "--out", "out"]
    child = subprocess.Popen(program, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stderr is not None
    assert any("done" in line for line in child.stderr)  # up to the first one
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=120)
    assert child.returncode == 130
    assert errors.splitlines()[-1] == "error: interrupted"
    assert (tmp_path / "out" / "PARTIAL").exists()
    assert not list((tmp_path / "out").rglob("*.partial"))
