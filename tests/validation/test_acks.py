"""The simulator's ACKs against packet captures of the kernel, one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragstrip.studies.validation.acks import captures, compare
from dragstrip.studies.validation.kernel import Json, load

DATA = Path(__file__).parents[2] / "validation" / "linux-6.1"
CAPTURES = captures(DATA / "acks")


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda capture: capture["case"])
def test_every_ack_is_the_kernels(capture: Json) -> None:
    found = compare(capture, load(DATA / "recordings" / f"{capture['case']}.json.xz"))
    assert found.first is None, f"ACK {found.first} of {found.acks} is the first that differs"
    assert abs(len(capture["steps"]) - found.acks) <= 4


def test_there_are_captures() -> None:
    assert len(CAPTURES) >= 3


def test_a_difference_is_found() -> None:
    capture = {**CAPTURES[0], "steps": list(CAPTURES[0]["steps"])}
    capture["steps"][1000] += 1
    assert compare(capture, load(DATA / "recordings" / f"{capture['case']}.json.xz")).first == 1000
