"""`dragstrip.testing`, programs as objects, and the pytest plugin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dragstrip
from dragstrip import testing
from dragstrip.errors import BadInputError
from dragstrip.experiment.programs import ProgramError

OPTIONS: dict[str, Any] = {"rate": "10mbit", "rtt": "40ms", "queue": "1bdp", "duration": "5s"}
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
        "-p",
        "dragstrip.pytest_plugin",
        "-p",
        "no:cacheprovider",
        ".",
    ]
    for _ in range(2):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
        assert [entry.name for entry in (tmp_path / "dragstrip-failures").iterdir()] == ["test-bad-1"]
        assert "report: " in done.stdout
    assert (tmp_path / "dragstrip-failures" / "test-bad-1" / "report.html").is_file()
