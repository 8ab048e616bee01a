"""`dragstrip play`: what it puts into the page, where it writes it, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dragstrip import playground
from dragstrip.cli import app
from dragstrip.experiment import saved_paths

PATH = ("--rate", "5mbit", "--rtt", "20ms", "--queue", "bfifo limit 60kb", "--duration", "1s")
POLICY = "default-src 'none'; script-src 'sha256-abc'"
TEMPLATE = f"""<!doctype html>
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
{playground.EMPTY}
"""


ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page to put a race in, and an empty folder to be in."""
    (tmp_path / "page.html").write_text(TEMPLATE)
    monkeypatch.setattr(playground, "PAGE", tmp_path / "page.html")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)


def said(*words: str) -> str:
    done = CliRunner().invoke(app, ["play", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def race(file: str = "play.html") -> Any:
    text = Path(file).read_text()
    before, after = TEMPLATE.split("null")
    assert text.startswith(before)
    assert text.endswith(after)
    return json.loads(text.removeprefix(before).removesuffix(after))


def test_without_a_word_the_page_begins_with_its_own_race() -> None:
    assert said() == "play.html\n"
    assert race() is None


def test_a_race_is_a_form_with_what_was_said() -> None:
    said("cubic", "bbr*2@40ms", *PATH, "--together", "--loss", "1%", "--sysctl", "net.ipv4.tcp_sack=0")
    made = race()
    assert made["kind"] == "form"
    assert made["form"] == {
        "algorithms": ["cubic", "bbr*2@40ms"],
        "rate": "5mbit",
        "rtt": "20ms",
        "queue": "bfifo limit 60kb",
        "duration": "1s",
        "loss": "1%",
        "sysctl": {"net.ipv4.tcp_sack": "0"},
        "together": True,
        "seed": 1,
    }


def test_algorithms_alone_race_on_the_page_s_own_path() -> None:
    said("cubic", "bbr", "--queue", "fq_codel")
    form = race()["form"]
    assert (form["rate"], form["rtt"], form["queue"]) == ("10mbit", "40ms", "fq_codel")
    first = (ROOT / "playground/src/form.ts").read_text().partition("FIRST: Form = {")[2].partition("}")[0]
    own = dict(re.findall(r'(\w+): "([^"]*)"', first))
    assert saved_paths.DEFAULT_PATH.items() <= own.items()


def test_an_experiment_brings_its_scenarios(tmp_path: Path) -> None:
    said("linux-vegas-1999/lan", "--out", str(tmp_path / "a.html"))
    made = race(str(tmp_path / "a.html"))
    assert made["kind"] == "runs"
    assert len(made["runs"]) > 1
    assert all(json.loads(run["scenario"])["name"] == run["name"] for run in made["runs"])


def test_a_run_brings_the_hashes_that_it_was_recorded_with() -> None:
    done = CliRunner().invoke(app, ["compare", "reno", "cubic", *PATH, "--out", "out", "--no-report"])
    assert done.exit_code == 0, done.output
    said("out")
    from dragstrip import _core

    runs = race()["runs"]
    assert len(runs) == 2
    assert [_core.Scenario(run["scenario"]).run()["sha256"] for run in runs] == [
        run["sha256"] for run in runs
    ]


def test_a_name_with_markup_stays_data(tmp_path: Path) -> None:
    content = playground.page(playground.of_runs("</script><b>", []), "1")
    assert content.count("</script>") == TEMPLATE.count("</script>")


def test_an_earlier_page_is_replaced_and_nothing_else() -> None:
    said()
    said("reno", *PATH)
    assert race()["form"]["algorithms"] == ["reno"]
    Path("play.html").write_text("mine")
    refused = CliRunner().invoke(app, ["play"])
    assert isinstance(refused.exception, playground.BadInputError)
    assert Path("play.html").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--rate", "5mbit"), "ALGORITHM"),
        (("linux-vegas-1999/lan", "--loss", "1%"), "--loss"),
        (("--port", "80"), "--port"),
        (("cubic", *PATH[2:]), "--rate"),
        (("cubik", *PATH), "ALGORITHM"),
    ],
)
def test_what_is_wrong_is_refused_by_name(words: tuple[str, ...], field: str) -> None:
    refused = CliRunner().invoke(app, ["play", *words])
    assert isinstance(refused.exception, playground.BadInputError), refused.output
    assert refused.exception.field == field
    assert not list(Path().iterdir())


def test_without_the_page_it_says_how_to_build_it(tmp_path: Path) -> None:
    (tmp_path / "page.html").unlink()
    refused = CliRunner().invoke(app, ["play"])
    assert isinstance(refused.exception, playground.DragstripError)
    assert "make play" in str(refused.exception)
