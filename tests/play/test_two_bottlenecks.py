"""The playground with several bottlenecks: each flow is marked at the link where the recording has it wait longest."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dragstrip import playground
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment
from play.test_page import PAGE, settled
from play.test_page_more import text
from viewer.browser import Browser, Page

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="no page of the playground: make play")
CASES = Path(__file__).parents[1] / "report" / "two-bottlenecks"
READING = "document.querySelector('.charts .cursor').ariaValueText"
WORDS = ".lens-words"


def opened(browser: Browser, case: str, folder: Path) -> Page:
    (run,) = expand(Experiment.read(CASES / case))
    race = playground.of_runs("two", [(run.name, json.dumps(run.scenario), None)])
    file = folder / "race.html"
    file.write_text(playground.page(race, "0"))
    page = browser.page(file)
    settled(page)
    page.wait_for(lambda: text(page, WORDS))
    return page


def plane(page: Page) -> list[str]:
    paths: list[str] = page.value(
        "[...document.querySelectorAll('.plane path.rule')].map((it) => it.getAttribute('d'))"
    )
    return paths


def ends(line: str) -> tuple[tuple[float, float], tuple[float, float]]:
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", line)]
    return (numbers[0], numbers[1]), (numbers[2], numbers[3])


def test_two_flows_with_two_bottlenecks_have_two_queues(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, "apart.toml", tmp_path)
    queues = re.findall(r"in the queue of (\S+) (\d+)", text(page, WORDS))
    assert [link for link, _ in queues] == ["r1-r2", "r2-x"]
    page.value("document.querySelector('.charts .cursor').focus()")
    page.key("End")
    page.key("ArrowLeft")
    page.wait_for(lambda: "r1-r2: near" in page.value(READING))
    assert "r2-x: far" in page.value(READING)
    # Each flow's goodput is bounded by its own link: an upright and a level line.
    _, upright, level = map(ends, plane(page))
    assert upright[0][0] == upright[1][0]
    assert level[0][1] == level[1][1]
    assert page.complaints() == []
    page.close()


def test_the_faster_link_is_marked_where_both_wait_there(browser: Browser, tmp_path: Path) -> None:
    """The slowest link, r2-x, holds no packet back."""
    page = opened(browser, "park.toml", tmp_path)
    packets = re.search(r"in the queue (\d+)", text(page, WORDS))
    assert packets, text(page, WORDS)
    assert int(packets[1]) > 10
    _, full = map(ends, plane(page))
    (x1, y1), (x2, y2) = full
    assert x1 != x2
    assert y1 != y2
    assert page.complaints() == []
    page.close()
