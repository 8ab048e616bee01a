"""The gallery of races: its page, its pictures, its claims."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dragstrip.experiment.comparison import command
from dragstrip.report import paper
from tools import gallery

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "gallery.md").read_text()
RACES = {race.name: race for race in gallery.races()}
ALIKE = gallery.Figures(goodput=9e6, rtt=40.0, ping=41.0, share=0.5, resent=0.0, jain=1.0)


def test_the_page_has_each_race_and_no_other() -> None:
    assert len(RACES) == 30
    for race in RACES.values():
        assert race.holds
        assert f"## {race.title}\n" in PAGE
        assert f"\n    {command(race.algorithms, race.race)}\n" in PAGE
        assert f"{gallery.PLAYGROUND}{gallery.fragment(race.algorithms, race.race)})" in PAGE
    assert PAGE.count("\n## ") == len(RACES)
    assert PAGE.startswith("\n".join(gallery._head(len(RACES))))
    assert {file.stem for file in (DOCS / "images/gallery").iterdir()} == RACES.keys()


def test_the_fields_of_a_link_are_those_of_the_page() -> None:
    options = (DOCS.parent / "playground/src/options.ts").read_text()
    (names,) = re.findall(r"TEXTS: readonly TextField\[\] = \[(.*)\];", options)
    assert tuple(re.findall(r"\w+", names)) == gallery.FIELDS


@pytest.mark.skipif(not paper.draws(), reason="no vl-convert")
@pytest.mark.parametrize("name", ["fq-codel", "parallel-flows", "outage"])
def test_a_race_gives_the_same_picture_and_text_again(name: str) -> None:
    picture, text = gallery.run(RACES[name])
    assert picture == (DOCS / f"images/gallery/{name}.svg").read_text()
    assert f"\n{text} [Open](" in PAGE


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("a.rtt > 39", True),
        ("a.rtt > 41", False),
        ("a.share < 51", True),
        ("a.goodput > 0.9 * b.goodput", True),
        ("a.goodput < b.goodput", False),
    ],
)
def test_a_claim_is_true_or_false(claim: str, expected: bool) -> None:
    assert gallery.holds(claim, {"a": ALIKE, "b": ALIKE}) is expected


def test_what_is_no_claim_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a\.rtt is low: expected a claim such as"):
        gallery.holds("a.rtt is low", {"a": ALIKE})
