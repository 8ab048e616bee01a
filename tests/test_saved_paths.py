"""Paths that a user keeps: `--save-path` writes them, `--path` takes them."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dragstrip
from dragstrip.errors import BadInputError
from dragstrip.experiment import lists, saved_paths
from dragstrip.experiment.saved_paths import Knowledge, SavedPath
from dragstrip.studies.attack import finds
from dragstrip.studies.passport import command
from dragstrip.studies.sweep import plan

CASES = Path(__file__).parent / "recordings"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAGSTRIP_PATHS", str(tmp_path / "own"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "own"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dragstrip", *words], capture_output=True, text=True, check=False
    )


def test_a_path_is_written_and_read_again() -> None:
    path = SavedPath(
        "home",
        {"rate": "48mbit", "rtt": "23ms", "queue": "fq_codel"},
        "a test",
        {"rate": Knowledge("47mbit", "49mbit", "x")},
    )
    file = saved_paths.write(path, "home.toml")
    assert file == Path("home.toml")
    assert saved_paths.read(file) == path


def test_a_described_path_races_as_its_options_do() -> None:
    described = ["--rate", "20mbit", "--rtt", "30ms", "--up-rate", "2mbit", "--queue", "fq_codel"]
    kept = run("compare", *described, "--show", "--save-path", "home.toml", "cubic")
    assert (kept.returncode, kept.stderr) == (0, "path: home.toml (--path home.toml)\n")
    again = run("compare", "--path", "home.toml", "--show", "cubic")
    assert again.stdout == kept.stdout
    other = run("compare", "--path", "home.toml", "--queue", "1bdp", "--show", "cubic")
    assert tomllib.loads(other.stdout)["path"] == {**tomllib.loads(kept.stdout)["path"], "queue": "1bdp"}
    replaced = run("compare", *described, "--show", "--save-path", "home.toml", "cubic")
    assert replaced.stderr == "path: home.toml (--path home.toml), in place of the one of that name\n"


def test_a_name_stands_for_a_file_of_the_users_folder(own_folder: Path) -> None:
    kept = run("compare", "--path", "cable", "--queue", "fq_codel", "--show", "--save-path", "mine", "cubic")
    assert kept.returncode == 0, kept.stderr
    assert list(own_folder.iterdir()) == [own_folder / "mine.toml"]
    race = dragstrip.compare(["cubic"], path="mine")
    assert race.path == dragstrip.compare(["cubic"], path="cable", queue="fq_codel").path
    listed = run("list", "--paths")
    assert "mine" in listed.stdout


def test_a_rate_replaces_that_of_the_path() -> None:
    saved_paths.write(SavedPath("", {"rate": "48mbit", "rtt": "23ms"}), "home.toml")
    assert saved_paths.expanded({"path": "home.toml", "rate": "1mbit"}) == {"rate": "1mbit", "rtt": "23ms"}
    assert saved_paths.expanded({"path": "home.toml", "medium": "adsl2"}) == {
        "medium": "adsl2",
        "rtt": "23ms",
    }
    assert saved_paths.expanded({"path": "cable"}) == {"path": "cable"}


def test_diagnose_keeps_what_its_options_and_files_show() -> None:
    done = run("diagnose", "--rate", "10mbit", "--rtt", "20ms", "--save-path", "d.toml")
    assert done.returncode == 0, done.stderr
    assert tomllib.loads(Path("d.toml").read_text())["path"] == {"rate": "10mbit", "rtt": "20ms"}


def test_inspect_keeps_the_path_of_a_capture_with_intervals() -> None:
    race = run(
        "compare",
        "--rate",
        "8mbit",
        "--rtt",
        "30ms",
        "--queue",
        "bfifo limit 60kb",
        "--duration",
        "15s",
        "--capture",
        "s1",
        "--out",
        "o",
        "--no-report",
        "--",
        "reno",
    )
    assert race.returncode == 0, race.stderr
    (capture,) = Path("o").rglob("*.pcap*")
    done = run("inspect", str(capture), "--save-path", "found.toml")
    assert done.returncode == 0, done.stderr
    document = tomllib.loads(Path("found.toml").read_text())
    rate = document["path"]["rate"]
    assert int(rate.removesuffix("bit")) == pytest.approx(8e6, rel=0.03)
    ends = [int(document["known"]["rate"][end].removesuffix("bit")) for end in ("low", "high")]
    assert ends[0] <= int(rate.removesuffix("bit")) <= ends[1]
    assert capture.name in document["known"]["rate"]["source"]
    assert run("compare", "--path", "found.toml", "--show", "cubic").returncode == 0


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("x = 1", "x"),
        ("name = 1\n[path]\nrate = '1mbit'", "name"),
        ("[path]", "path"),
        ("[path]\nrate = 8", "path.rate"),
        ("[path]\nflows = '3'", "path.flows"),
        ("[path]\npath = 'other.toml'", "path.path"),
        ("[path]\nrate = '1mbit'\n[known.rate]\nmean = '1'", "known.rate"),
        ("[path]\nrate = '1mbit'\n[known.bucket]\nunknown = 'x'", "known.bucket"),
        ("[path]\nrate = '1mbit'\n[known.queue]\nunknown = 3", "unknown"),
        ("[path]\nrate = '1mbit'\n[known.queue]\nunknown = 'x'", "path.queue"),
        ("[path", ""),
    ],
)
def test_a_file_that_is_none_is_refused(text: str, field: str) -> None:
    Path("bad.toml").write_text(text)
    with pytest.raises(BadInputError) as refused:
        saved_paths.expanded({"path": "bad.toml"})
    assert refused.value.field.startswith(field)
    assert "bad.toml" in str(refused.value)


@pytest.mark.parametrize("name", ["cable", "CABLE", "DSL", "", "..", "-x"])
def test_a_name_that_is_taken_or_none_is_refused(name: str, own_folder: Path) -> None:
    with pytest.raises(BadInputError, match="--save-path"):
        saved_paths.write(SavedPath("", {"rate": "1mbit"}), name)
    assert not own_folder.exists()


def test_a_missing_file_is_named() -> None:
    done = run("compare", "--path", "nowhere.toml", "cubic")
    assert (done.returncode, done.stderr) == (2, "error: nowhere.toml: no such file\n")


MEASURED = SavedPath(
    "home",
    {"rate": "8mbit", "rtt": "30ms", "queue": "bfifo limit 60kb", "loss": "0.01%"},
    "dragstrip inspect",
    {"rate": Knowledge("7.9mbit", "8.1mbit", "inferred from s.pcapng"), "rtt": Knowledge(source="described")},
)
FIGURES = "path home.toml: rate 8mbit (7.9mbit to 8.1mbit; inferred from s.pcapng)\n"
"""Line on standard error: the measured figures alone."""


@pytest.fixture
def measured_path() -> None:
    saved_paths.write(MEASURED, "home.toml")


@pytest.mark.usefixtures("measured_path")
def test_compare_shows_interval_and_source() -> None:
    shown = run("compare", "--path", "home.toml", "--show", "cubic")
    assert (shown.returncode, shown.stderr) == (0, FIGURES)


@pytest.mark.usefixtures("measured_path")
def test_sweep_takes_a_saved_path_in_place_of_the_experiments() -> None:
    Path("my.toml").write_text(run("compare", "--path", "cable", "--duration", "2s", "--show", "reno").stdout)
    swept = run("sweep", "my.toml", "--path", "home.toml", "--out", "s", "--no-report", "--json")
    assert swept.returncode == 0, swept.stderr
    assert swept.stderr.startswith(FIGURES)
    experiment = json.loads(Path("s/sweep.json").read_text())["experiment"]
    assert experiment["path"] == dict(MEASURED.options)
    assert experiment["title"] == "reno on cable (on the path home.toml)"


@pytest.mark.usefixtures("measured_path")
def test_sweep_varies_over_saved_and_built_in_paths() -> None:
    experiment = dragstrip.compare(["reno"], path="LTE", duration="2s")
    sweep = plan.describe(experiment, "my.toml", vary=["path=home.toml,cable"])
    saved, built_in = (json.loads(sweep.run(number).text) for number in range(2))
    direct = dragstrip.compare(["reno"], path="home.toml", duration="2s")
    assert saved["links"] == json.loads(plan.describe(direct, "direct").run(0).text)["links"]
    assert saved["links"] != built_in["links"]
    assert [level.label for level in sweep.axes[-1].levels] == ["home.toml", "cable"]


@pytest.mark.usefixtures("measured_path")
def test_attack_takes_rate_rtt_and_queue_of_a_path() -> None:
    figures, omitted = finds.on_path("home.toml", {})
    assert (figures, omitted) == ({"rate": "8mbit", "rtt": "30ms", "queue": "bfifo limit 60kb"}, ["loss"])
    words = [
        "attack",
        "reno",
        "--goal",
        "utilisation",
        "--with",
        "loss",
        "--evaluations",
        "2",
        "--workers",
        "1",
    ]
    searched = run(*words, "--path", "home.toml", "--rtt", "20ms", "--out", "finds", "--json")
    assert searched.returncode == 0, searched.stderr
    assert searched.stderr.startswith(
        FIGURES + "path home.toml: an attack takes rate, rtt and queue, not loss\n"
    )
    (goal,) = json.loads(searched.stdout)["goals"]
    assert (goal["rate"], goal["rtt"], goal["queue"]) == ("8mbit", "20ms", "bfifo limit 60kb")


@pytest.mark.usefixtures("measured_path")
def test_passport_has_a_chapter_of_a_saved_path() -> None:
    request = command.read_request(
        "bbr", {}, [], quick=False, only=None, path="home.toml", baseline_file=None
    )
    assert request.chapters == ("path",)
    assert [row.id.rpartition("-")[2] for row in request.rows][:2] == ["goodput", "p95"]
    for row in request.rows:
        assert {**row.scenario.options, **MEASURED.options} == row.scenario.options
        assert "home.toml" in row.title
        assert "--rate 8mbit" in row.scenario.command(request.subject)
    both = command.read_request("bbr", {}, [], quick=True, only="rtt", path="cable", baseline_file=None)
    assert both.chapters == ("rtt", "path")
    default = command.read_request("bbr", {}, [], quick=True, only="path", baseline_file=None)
    assert {**default.rows[0].scenario.options, **saved_paths.DEFAULT_PATH} == default.rows[
        0
    ].scenario.options
    ids = [{row.id for row in made.rows if row.chapter == "path"} for made in (request, both, default)]
    assert ids[0].isdisjoint(ids[1] | ids[2])
    assert ids[1].isdisjoint(ids[2])


@pytest.mark.parametrize("words", [("sweep", "e.toml"), ("attack", "reno"), ("passport", "reno")])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nope", 'command line: --path: got "nope", expected one of home DSL, cable'),
        ("nope.toml", "nope.toml: no such file"),
        ("bad.toml", "bad.toml:2: path.flows: got '3'"),
    ],
)
def test_each_command_refuses_a_path_that_is_none(words: tuple[str, ...], name: str, message: str) -> None:
    Path("bad.toml").write_text("[path]\nflows = '3'\n")
    Path("e.toml").write_text(
        'duration = "2s"\n[path]\nrate = "1mbit"\nrtt = "9ms"\n[[flows]]\ncc = "reno"\n'
    )
    refused = run(*words, "--path", name, "--out", "o")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert message in refused.stderr
    assert not Path("o").exists()


def test_attack_refuses_a_path_without_a_rate() -> None:
    refused = run("attack", "reno", "--path", "home DSL")
    assert refused.returncode == 2
    assert "--path: got 'home DSL', expected a path with a constant rate" in refused.stderr


def test_sweep_refuses_a_path_for_an_experiment_that_varies_it() -> None:
    experiment = dragstrip.compare(["reno"], path="LTE").changed(vary={"path": ["cable", "LTE"]})
    with pytest.raises(BadInputError, match="an experiment with one path"):
        plan.describe(experiment, "my.toml", path="cable")


@pytest.mark.parametrize("name", ["a\nb", "c\rd", "e\x1b[31mred"])
def test_a_name_with_control_characters_is_refused(name: str) -> None:
    with pytest.raises(BadInputError, match="--save-path"):
        saved_paths.write(saved_paths.SavedPath("x", {"rate": "1mbit", "rtt": "1ms"}), name)


def test_a_damaged_file_does_not_hide_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGSTRIP_PATHS", str(tmp_path))
    (tmp_path / "broken.toml").write_text("no toml")
    saved_paths.write(saved_paths.SavedPath("x", {"rate": "1mbit", "rtt": "1ms"}), "mine")
    own = {row["name"]: row["about"] for row in lists.LISTS["paths"]()}
    assert own["broken"].startswith("cannot be read")
    assert own["mine"].startswith("your own")
