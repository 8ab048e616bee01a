"""A sweep's map as it looks: fills the page, shows its numbers, and no text is hidden or cut."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .browser import Browser, Page
from .texts import texts

EXPERIMENT = """
title = "A sweep"
duration = "1s"
[path]
rate = "5mbit"
rtt = "10ms"
queue = "1bdp"
loss = "0.5%"
[[flows]]
cc = "reno"
"""
PLANS = {
    "two axes": "--vary path.rate=2mbit,5mbit,10mbit --vary path.rtt=10ms,20ms --vary flow.cc=reno,cubic "
    "--competitor cubic",
    "many levels": "--vary path.rate=1mbit..1gbit:log:12 --vary path.queue=1bdp,fq_codel "
    "--vary path.loss=0.1%,1% --vary flow.cc=reno,vegas",
    "one axis": "--vary path.rate=2mbit,5mbit,10mbit --vary flow.cc=reno,cubic:beta=0.8,cubic",
    "names": "--vary path.queue=1bdp,fq_codel,codel --vary flow.cc=reno,cubic",
    "sampled": "--vary path.rate=1mbit..20mbit:log --vary path.rtt=5ms..80ms --sample lhs:9 "
    "--vary flow.cc=reno,cubic",
}
MapOf = Callable[[str], Path]
SIZES = [(1300, 900), (800, 900), (390, 844)]


@pytest.fixture(scope="module")
def map_of(tmp_path_factory: pytest.TempPathFactory):  # noqa: ANN201 - a function from name to the page
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            folder = tmp_path_factory.mktemp("sweep")
            (folder / "race.toml").write_text(EXPERIMENT)
            words = [
                "sweep",
                folder / "race.toml",
                *PLANS[name].split(),
                "--repeat",
                "3",
                "--out",
                folder / "map",
            ]
            subprocess.run([sys.executable, "-m", "dragstrip", *words], check=True, capture_output=True)
            made[name] = folder / "map" / "report.html"
        return made[name]

    return get


def opened(page: Page) -> Page:
    """Opens all that is folded away."""
    page.value("document.querySelectorAll('details').forEach((it) => { it.open = true; })")
    return page


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("name", PLANS)
def test_no_text_of_a_map_overlaps_another_or_leaves_its_picture(
    browser: Browser,
    map_of: MapOf,
    name: str,
    width: int,
    height: int,
) -> None:
    page = opened(browser.page(map_of(name), width, height))
    pictures, faults = page.value(texts(".maps svg"))
    assert pictures >= 3
    assert faults == []
    assert page.value("document.documentElement.scrollWidth") <= width
    page.close()


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_maps_fill_the_width_and_one_is_on_the_first_screen(
    browser: Browser,
    map_of: MapOf,
    width: int,
    height: int,
) -> None:
    page = browser.page(map_of("many levels"), width, height)
    left, right, bottom = page.value("""(() => {
      const boxes = [...document.querySelectorAll("section .maps:first-of-type figure svg")]
        .filter((svg) => svg.checkVisibility()).map((svg) => svg.getBoundingClientRect());
      return [Math.min(...boxes.map((b) => b.left)), Math.max(...boxes.map((b) => b.right)), boxes[0].bottom];
    })()""")
    assert right - left >= 0.97 * min(width - 2 * 14, 1240 - 2 * 20)
    assert bottom <= height
    page.close()


def test_a_cell_has_its_number_and_axes_have_units(browser: Browser, map_of: MapOf) -> None:
    page = browser.page(map_of("two axes"))
    words = page.value("""[...document.querySelector(".maps .wide svg").querySelectorAll("text")]
      .map((text) => text.textContent)""")
    assert {"path.rate (Mbit/s)", "path.rtt (ms)", "2", "5", "10", "20"} <= set(words)
    numbers = [float(word) for word in words if "." in word and word.replace(".", "").isdigit()]
    assert len(numbers) == 3 * 2  # the best goodput of each path, below its rate
    assert all(0 < number < 10 for number in numbers)
    scale = page.value("""[...document.querySelectorAll("section.whole > .maps > svg text")]
      .map((text) => text.textContent)""")
    assert scale[1:] == ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]
    page.close()


def test_intervals_can_be_read_on_a_phone_without_a_pointer(browser: Browser, map_of: MapOf) -> None:
    page = opened(browser.page(map_of("two axes"), 390, 844))
    table = "document.querySelector('section details table')"
    assert page.value(f"{table}.querySelectorAll('tbody tr').length") == 3 * 2
    assert page.value(f"[...{table}.querySelectorAll('td small')].some((it) => it.checkVisibility())")
    assert page.value(f"{table}.parentElement.scrollWidth <= {table}.parentElement.clientWidth")
    page.close()


def test_headings_of_the_ranking_take_one_line(browser: Browser, map_of: MapOf) -> None:
    page = browser.page(map_of("two axes"))
    heights = page.value("""[...document.querySelectorAll("#ranking ~ .scroll thead th")]
      .map((head) => head.getBoundingClientRect().height)""")
    assert len(heights) == 1 + 4
    assert max(heights) < 34
    page.close()
