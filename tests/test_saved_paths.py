"""Paths that a user keeps: `--save-path` writes them, `--path` takes them."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dragstrip
from dragstrip.errors import BadInputError
from dragstrip.experiment import saved_paths
from dragstrip.experiment.saved_paths import Knowledge, SavedPath

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
