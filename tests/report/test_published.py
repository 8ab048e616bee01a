"""Published figures beside ours as a figure."""

from __future__ import annotations

from typing import Any

import pytest

from dragstrip.display.colours import GREEN, GREY, VERMILION
from dragstrip.experiment.types import Claim
from dragstrip.report import published
from dragstrip.report.figure import Bar, Bars
from dragstrip.results.claims import slack_of


def bars(*claims: dict[str, Any], **tolerances: Any) -> list[Bar]:
    figure = published.figure(claims, tolerances)
    if figure is None:
        return []
    assert isinstance(figure.content, Bars)
    return list(figure.content.bars)


def claim(measured: Any, value: Any, grade: str = "reproduced", name: str = "a") -> dict[str, Any]:
    return {"id": name, "measured": measured, "published": value, "grade": grade}


@pytest.mark.parametrize(
    ("entry", "tolerance", "expected"),
    [
        (claim(11.0, 10.0), "5%", (1.1, 0.95, 1.05)),
        (claim(11.0, 10.0), 2, (1.1, 0.8, 1.2)),
        (claim(11.0, 10.0), None, (1.1, 1.0, 1.0)),
        (claim(9.0, [8.0, 12.0]), None, (0.9, 0.8, 1.2)),
        (claim(9.0, [8.0, 12.0]), "10%", (0.9, 0.68, 1.32)),
        (claim(-5.0, -10.0), "10%", (0.5, 0.9, 1.1)),
        (claim(90.0, 10.0), None, (published.RATIO_MAX, 1.0, 1.0)),
    ],
)
def test_a_figure_stands_beside_its_band(
    entry: dict[str, Any], tolerance: Any, expected: tuple[float, float, float]
) -> None:
    (bar,) = bars(entry, a=tolerance)
    assert (bar.value, bar.least, bar.greatest) == pytest.approx(expected)
    assert float(bar.text) == pytest.approx(entry["measured"] / 10.0 if entry["measured"] > 0 else 0.5)


@pytest.mark.parametrize(
    "entry",
    [
        claim(None, 10.0),
        claim(1.0, None),
        claim(1.0, 0.0),
        claim(["reno", "cubic"], ["cubic", "reno"]),
        claim(True, 1.0),
        claim(-1.0, 1.0),
    ],
)
def test_a_claim_without_a_ratio_is_left_to_the_list(entry: dict[str, Any]) -> None:
    assert bars(entry) == []


def test_grades_have_colours_that_no_algorithm_hides() -> None:
    entries = [claim(1.0, 1.0, grade, grade) for grade in ("reproduced", "contradicted", "limited")]
    figure = published.figure(entries, {})
    assert figure is not None
    assert isinstance(figure.content, Bars)
    assert [bar.colour for bar in figure.content.bars] == [GREEN, VERMILION, GREY]
    assert not figure.content.fades
    assert figure.algorithms == []


@pytest.mark.parametrize("measured", [6.7, 6.9, 13.1, 13.3])
def test_the_band_is_the_one_that_grades(measured: float) -> None:
    graded = Claim(
        id="a", source="a test", metric="goodput_bps", range=[8.0, 12.0], tolerance="10%", unit="Mbit/s"
    )
    (bar,) = bars(claim(measured, graded.range), a=graded.tolerance)
    slack = slack_of(graded)
    assert (bar.least <= bar.value <= bar.greatest) == (8.0 - slack <= measured <= 12.0 + slack)


@pytest.mark.parametrize("tolerance", ["wide", "", ["5%"], {"of": 5}])
def test_a_damaged_tolerance_is_left_to_the_list(tolerance: Any) -> None:
    assert bars(claim(11.0, 10.0), a=tolerance) == []
