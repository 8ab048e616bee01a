"""`dragstrip conform`: the same scripts on both stacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragstrip.errors import BadInputError
from dragstrip.studies.validation import conformance

RIGHT = "# t\nopen client 99\n99 write 10\n99 > 0..10\n198 < ack 10\n198 ? cwnd 20\n"


def test_all_scripts_on_the_simulator() -> None:
    played = conformance.play(conformance.scripts(), "sim")
    assert len(played) >= 60
    assert [one.script for one in played if not one.fine] == []


def test_a_wrong_figure_fails_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "own.script"
    file.write_text(RIGHT.replace("cwnd 20", "cwnd 21"))
    (played,) = conformance.play(conformance.scripts([str(file)]), "sim")
    assert (played.verdict, played.failures[0].line, played.failures[0].got) == ("fail", 6, "cwnd 20")
    assert "line 6: 198 ? cwnd 21" in conformance.table([played])


def test_a_known_gap_is_told_and_a_closed_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "own.script"
    verdicts = []
    for text in (RIGHT, RIGHT.replace("cwnd 20", "cwnd 21")):
        file.write_text(text.replace("open", "known gap of the test\nopen", 1))
        verdicts += [
            (one.verdict, one.fine) for one in conformance.play(conformance.scripts([str(file)]), "sim")
        ]
    (played,) = conformance.play(conformance.scripts([str(file)]), "sim")
    assert played.known_gap == "of the test"
    assert verdicts == [("gap closed", False), ("known gap", True)]


def test_a_script_that_cannot_be_read_is_bad_input(tmp_path: Path) -> None:
    file = tmp_path / "own.script"
    file.write_text("# t\n0 jump\n")
    with pytest.raises(BadInputError, match=r"own\.script: line 2: jump"):
        conformance.play(conformance.scripts([str(file)]), "sim")
    with pytest.raises(BadInputError):
        conformance.scripts(["no-such"])


def test_a_script_that_needs_more_than_the_kernel_has_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "dragstrip.engines.kernels.kernel.kernels", list
    )  # as if none were fetched: Debian 12's is meant
    expected = (
        r"accecn-ace-wraps.*accurate ECN \(RFC 9768\) can be set in Linux since 7\.0, and this kernel is 6\.1"
    )
    with pytest.raises(BadInputError, match=expected):
        conformance.play(conformance.scripts(["accecn-ace-wraps"]), "vm")


@pytest.mark.usefixtures("linux")
def test_all_scripts_on_the_kernel() -> None:
    played = conformance.play(conformance.scripts(), "vm")
    assert [(one.script, one.failures) for one in played if not one.fine] == []
