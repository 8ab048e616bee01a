"""A path as options of `compare`: one maker, and the same figures from whichever study states it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragstrip import _core
from dragstrip.analysis.inference.estimate import Estimate, unknown
from dragstrip.analysis.whatif.network import CandidatePath
from dragstrip.errors import BadInputError
from dragstrip.experiment.bottleneck import Bottleneck
from dragstrip.model.scenario.paths import FRAME_OVER_IP
from dragstrip.studies.attack.scene import AttackPath
from dragstrip.studies.passport.rows import PassportPath as PassportPath

PACKAGE = Path(__file__).parents[1] / "python/dragstrip"


def makers(text: str) -> Iterator[int]:
    """Lines at which a rate and a round trip are formatted as options, except in a call of `Bottleneck`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Dict):
            options = {
                key.value: value
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant)
            }
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") != "Bottleneck":
            options = {keyword.arg: keyword.value for keyword in node.keywords}
        else:
            continue
        if all(isinstance(options.get(name), ast.JoinedStr) for name in ("rate", "rtt")):
            yield node.lineno


def test_a_second_maker_would_be_found() -> None:
    assert list(makers('{"rate": f"{bps}bit", "rtt": f"{ms}ms"}')) == [1]
    assert list(makers('compare(rate=f"{bps}bit", rtt=f"{ms}ms")')) == [1]
    assert not list(makers('Bottleneck(rate=f"{bps}bit", rtt=f"{ms}ms")'))


def test_one_place_writes_a_path_as_options_of_compare() -> None:
    places = [
        f"{file.relative_to(PACKAGE)}:{line}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for line in makers(file.read_text())
    ]
    assert not places


def test_properties_that_are_not_stated_are_no_options_and_further_ones_replace() -> None:
    path = Bottleneck(rate="10mbit", rtt="40ms").with_options({"rtt": "20ms", "medium": "adsl2"})
    assert path.options() == {"rate": "10mbit", "rtt": "20ms", "medium": "adsl2"}


def test_studies_state_the_same_path_alike() -> None:
    passport = PassportPath(mbit=12, rtt_ms=40, bdp=1, duration_s=10).options
    assert passport == AttackPath("12mbit", "40ms", "1bdp", "10s").options()
    network = CandidatePath(rate_bps=12e6 / FRAME_OVER_IP, rtt_ms=40, buffer_bytes=60_000).options(10)
    for name, parse in (
        ("rate", _core.parse_rate),
        ("rtt", _core.parse_time),
        ("duration", _core.parse_time),
    ):
        assert parse(network[name]) == parse(passport[name]), name


def test_a_multiple_of_the_bdp_in_packets() -> None:
    assert AttackPath("12mbit", "40ms", "2bdp", "10s").discipline == "pfifo limit 80"
    assert AttackPath("12mbit", "40ms", "fq_codel", "10s").discipline == "fq_codel"
    with pytest.raises(BadInputError, match="--rate"):
        _ = Bottleneck(rate="fast").rate_bps


def test_an_estimate_in_another_unit_keeps_what_is_unknown() -> None:
    assert Estimate(2.0, 1.0, None).times(3) == Estimate(6.0, 3.0, None)
    assert unknown("why", high=1.0).times(2) == unknown("why", high=2.0)
