"""`dragstrip.testing`, programs as objects, and the pytest plugin."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

import dragstrip
from dragstrip import testing
from dragstrip.errors import BadInputError
from dragstrip.experiment.programs import ProgramError

OPTIONS: dict[str, Any] = {"rate": "10mbit", "rtt": "40ms", "queue": "1bdp", "duration": "5s"}
INSTALLED = any(entry.value == "dragstrip.pytest_plugin" for entry in entry_points(group="pytest11"))
PLUGIN = [] if INSTALLED else ["-p", "dragstrip.pytest_plugin"]
"""Words that load the plugin where the installation is older than its entry point."""
RENO = (Path(__file__).parents[1] / "programs" / "my-reno.cc").read_text()


@pytest.fixture(scope="module")
def together() -> dragstrip.Result:
    return dragstrip.race("cubic", "vegas", together=True, **OPTIONS)


def test_assertions_hold_and_fail(together: dragstrip.Result) -> None:
    share = together["cubic"].share
    assert share is not None
    testing.assert_share(together, "cubic", at_least=share, at_most=share)
    testing.assert_goodput(together, "cubic", at_least="1mbit", at_most="10mbit")
    testing.assert_rtt(together, "vegas", at_least="40ms", at_most=200)
    testing.assert_fair(together, at_least=0.4)
    testing.assert_retransmits(together, "cubic", at_most=0.2)
    with pytest.raises(
        AssertionError, match=rf"share of cubic: {share:.3f}, wanted at most 0\.100\nReplay: dragstrip"
    ):
        testing.assert_share(together, "cubic", at_most=0.1)
    with pytest.raises(AssertionError, match=r"goodput of cubic: .* Mbit/s, wanted at least 9\.99 Mbit/s"):
        testing.assert_goodput(together, "cubic", at_least="9.99mbit")
    with pytest.raises(AssertionError, match=r"RTT of vegas \(95 %\)"):
        testing.assert_rtt(together, "vegas", at_most="40ms", percentile=95)
    with pytest.raises(AssertionError, match="Jain's index"):
        testing.assert_fair(together, at_least=0.999)


def test_the_replay_repeats_the_race(together: dragstrip.Result, tmp_path: Path) -> None:
    words = together.command.split()[1:]
    command = [sys.executable, "-m", "dragstrip", *words, "--out", str(tmp_path / "out")]
    subprocess.run(command, check=True, capture_output=True)
    again = dragstrip.Result.read(tmp_path / "out")
    assert [flow.goodput_bps for flow in again.flows] == [flow.goodput_bps for flow in together.flows]


def test_an_interval_of_repeats_is_in_the_message() -> None:
    result = dragstrip.race("reno", loss="1%", repeat=4, **OPTIONS)
    with pytest.raises(AssertionError, match=r"goodput of reno: .* \(.* to .* over 4\), wanted at least"):
        testing.assert_goodput(result, "reno", at_least="9.9mbit")


def test_harm_is_held_against_the_flows_own() -> None:
    testing.assert_harmless("cubic", "cubic", at_most=0.001, **OPTIONS)
    with pytest.raises(AssertionError, match="harm of scalable to vegas beyond that of vegas itself"):
        testing.assert_harmless("scalable", "vegas", at_most=0.05, **{**OPTIONS, "duration": "20s"})


def test_bounds_that_cannot_be_right(together: dragstrip.Result) -> None:
    with pytest.raises(BadInputError, match="a bound: at_least or at_most"):
        testing.assert_share(together, "cubic")
    with pytest.raises(BadInputError, match="a rate"):
        testing.assert_goodput(together, "cubic", at_least="fast")
    with pytest.raises(BadInputError, match="one of cubic, vegas"):
        testing.assert_share(together, "bbr", at_least=0.1)
    with pytest.raises(BadInputError, match="5, 50 or 95"):
        testing.assert_rtt(together, "vegas", at_most=1, percentile=99)
    with pytest.raises(BadInputError, match="together=True"):
        testing.assert_fair(dragstrip.race("reno", **OPTIONS), at_least=0.1)


def test_a_program_is_an_algorithm() -> None:
    mine = dragstrip.program("mine", RENO)
    result = dragstrip.race(mine, "reno", **OPTIONS)
    assert result["mine"].goodput_bps == result["reno"].goodput_bps
    assert result.command == ""
    with pytest.raises(BadInputError, match="another name"):
        dragstrip.race(mine, dragstrip.program("mine", RENO + "# other"), **OPTIONS)


def test_a_fault_in_a_program_is_marked() -> None:
    with pytest.raises(ProgramError) as error:
        dragstrip.program("mine", "on ack {\n    cwnd = cwnd + foo\n}\n")
    lines = str(error.value).splitlines()
    assert lines[0].startswith('mine:2:19: got "foo"')
    assert lines[1] == "        cwnd = cwnd + foo"
    assert lines[2].index("^") == lines[1].index("foo")


def test_a_result_in_memory_is_written_whole(together: dragstrip.Result, tmp_path: Path) -> None:
    together.write(tmp_path / "out")
    assert (tmp_path / "out" / "report.html").is_file()
    assert not (tmp_path / "out" / "PARTIAL").exists()
    stored = dragstrip.Result.read(tmp_path / "out")
    assert stored == together
    with pytest.raises(BadInputError, match="a folder that is empty"):
        together.write(tmp_path / "out")
    with pytest.raises(BadInputError, match="a result in memory"):
        stored.write(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_the_plugin_keeps_the_report_of_a_failure(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "from dragstrip.testing import assert_goodput\n"
        "def test_good(race):\n"
        "    assert_goodput(race('cubic', rate='10mbit', rtt='40ms', duration='1s'), 'cubic', at_least=1)\n"
        "def test_bad(race):\n"
        "    assert_goodput(race('cubic', rate='10mbit', rtt='40ms', duration='1s'), 'cubic', at_most=1)\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        *PLUGIN,
        "-p",
        "no:cacheprovider",
        ".",
    ]
    for _ in range(2):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
        (place,) = (tmp_path / "dragstrip-failures").iterdir()
        assert re.fullmatch("test-bad-[0-9a-f]{8}", place.name)
        assert "report: " in done.stdout
    assert (place / "1" / "report.html").is_file()


def test_the_plugin_keeps_the_report_of_a_failure_in_a_fixture(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "import pytest\n"
        "@pytest.fixture\n"
        "def share(race):\n"
        "    result = race('cubic', rate='10mbit', rtt='40ms', duration='1s')\n"
        "    return result['bbr'].share\n"
        "def test_share(share):\n"
        "    assert share\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", *PLUGIN, "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 error" in done.stdout, done.stdout + done.stderr
    (place,) = (tmp_path / "dragstrip-failures").iterdir()
    assert (place / "1" / "report.html").is_file()


def test_repeats_have_the_same_seeds_where_some_races_draw_nothing() -> None:
    testing.assert_harmless("bbr", repeat=2, at_most=1, **{**OPTIONS, "duration": "2s"})
    testing.assert_harmless("mine", programs={"mine": RENO}, at_most=1, **{**OPTIONS, "duration": "2s"})
    with pytest.raises(BadInputError, match="an algorithm alone"):
        testing.assert_harmless("bbr", "cubic*2", **OPTIONS)


def test_a_share_without_competition_is_no_share() -> None:
    with pytest.raises(BadInputError, match="together=True"):
        testing.assert_share(dragstrip.race("cubic", "bbr", **OPTIONS), "cubic", at_least=0.9)


@pytest.mark.parametrize("blocked", ["file", "foreign", "kept"])
def test_a_report_that_cannot_be_written_is_a_line(tmp_path: Path, blocked: str) -> None:
    """The session goes on; nothing that is the user's is removed."""
    if blocked == "file":
        (tmp_path / "dragstrip-failures").write_text("mine")
    folder = "tmp_path / 'out'" if blocked == "kept" else "None"
    (tmp_path / "test_mine.py").write_text(
        "OPTIONS = dict(rate='10mbit', rtt='40ms', duration='1s')\n"
        "def test_one(race, tmp_path):\n"
        f"    race('cubic', out={folder}, **OPTIONS)\n"
        "    assert 0\n"
        "def test_two(race):\n"
        "    race('cubic', **OPTIONS)\n"
    )
    (tmp_path / "test_other.py").write_text((tmp_path / "test_mine.py").read_text())
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        *PLUGIN,
        "-p",
        "no:cacheprovider",
        ".",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "2 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert ("could not be written" in done.stdout) == (blocked == "file")
    if blocked == "foreign":
        places = list((tmp_path / "dragstrip-failures").iterdir())
        assert len(places) == 2
        (places[0] / "notes").write_text("mine")
        subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
        assert (places[0] / "notes").read_text() == "mine"
        assert (places[0] / "1" / "report.html").is_file()
