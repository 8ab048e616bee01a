"""The layout of the playground: what the first screen shows, what stands beside what, and no canvas that is scaled."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from dragstrip import playground
from dragstrip.display.colours import KNOWN
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from play.test_page import HASH, PAGE, go, settled
from play.test_page_more import choose, fill, press, text
from viewer.browser import Browser, Page

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="no page of the playground: make play")

ROOT = Path(__file__).parents[2]
RENO = (ROOT / "programs" / "my-reno.cc").read_text()
EDITED = f"#1&cc=reno,mine&rate=10mbit&rtt=40ms&queue=pfifo+limit+50&duration=5s&seed=1&together=1&more={quote(json.dumps({'programs': {'mine': RENO}}))}"
BOX = "(() => { const { left, right, top, bottom } = %s.getBoundingClientRect(); return [left, right, top, bottom]; })()"
SCALED = """[...document.querySelectorAll("canvas")].map((it) => [it.width, it.height, it.getBoundingClientRect()])
    .filter(([width, height, box]) => Math.abs(width - box.width) > 0.6 || Math.abs(height - box.height) > 0.6)
    .map(([width, height, box]) => [width, height, box.width, box.height])"""
PANELS_SCALED = """[...document.querySelectorAll(".charts svg.plot")].filter((it) =>
    Math.abs(it.getBoundingClientRect().width - Number(it.getAttribute("width"))) > 0.6).length"""
WORDS = """[...document.querySelectorAll("%s")].map((it) => [it.textContent, it.getBoundingClientRect()])
    .filter(([words, box]) => words.trim() && box.width > 1).map(([words, { left, right, top, bottom }]) => [words, left, right, top, bottom])"""


def box(page: Page, selector: str) -> tuple[float, float, float, float]:
    """Left, right, top and bottom edge of an element, px."""
    left, right, top, bottom = page.value(BOX % f"document.querySelector({json.dumps(selector)})")
    return left, right, top, bottom


def overlaps(page: Page, selector: str) -> list[tuple[str, str]]:
    """The pairs of texts among the elements that cover each other by more than a pixel."""
    words: list[list[Any]] = page.value(WORDS % selector)

    def cover(one: list[Any], other: list[Any]) -> bool:
        wide = min(one[2], other[2]) - max(one[1], other[1])
        high = min(one[4], other[4]) - max(one[3], other[3])
        return wide > 1 and high > 1

    return [(one[0], other[0]) for one, other in combinations(words, 2) if cover(one, other)]


def wide(page: Page) -> None:
    """Waits until the charts are as wide as their place."""
    page.wait_for(
        lambda: (
            page.value(
                "document.querySelector('.charts').clientWidth - document.querySelector('.charts svg.plot').clientWidth"
            )
            in range(2)
        )
    )


def test_a_phones_first_screen_holds_a_chart(browser: Browser) -> None:
    page = browser.page(PAGE, 390, 800)
    settled(page)
    page.value("scrollTo(0, 0)")
    _, _, sheet, bottom = box(page, ".layout > form")
    assert bottom == 800
    assert bottom - sheet <= 0.12 * 800
    _, _, top, below = page.value(BOX % "document.querySelector('.charts g.panel')")
    assert top > 0
    assert below < sheet
    left, right, _, end = box(page, ".flows")
    assert (left >= 0, right <= 390, end < top) == (True, True, True)
    lines = page.value(
        "[...document.querySelectorAll('.flows li b')].map((it) => it.getClientRects().length)"
    )
    assert lines == [1, 1]
    page.close()


def test_all_settings_unfold_on_a_phone(browser: Browser) -> None:
    page = browser.page(PAGE, 390, 800)
    settled(page)
    assert page.value("document.querySelector('#seed').checkVisibility()") is False
    press(page, "All settings")
    page.wait_for(lambda: page.value("document.querySelector('#seed').checkVisibility()"))
    press(page, "Fewer settings")
    page.wait_for(lambda: not page.value("document.querySelector('#seed').checkVisibility()"))
    page.close()


@pytest.mark.parametrize("width", [390, 800, 1300])
def test_no_text_overlaps(browser: Browser, width: int) -> None:
    page = browser.page(PAGE, width, 900)
    settled(page)
    assert overlaps(page, ".flows li > :is(b, span)") == []
    assert overlaps(page, ".strips span") == []
    assert overlaps(page, ".tradeoff svg text") == []
    assert overlaps(page, ".plane svg text") == []
    assert overlaps(page, "form label, form legend") == []
    page.close()


def test_no_canvas_is_scaled_when_a_lesson_opens(browser: Browser) -> None:
    page = browser.page(PAGE)
    settled(page)
    watch = f"""(() => {{
        window.scaled = [];
        const look = () => {{ window.scaled.push(...{SCALED}); if ({PANELS_SCALED}) window.scaled.push("svg"); requestAnimationFrame(look); }};
        requestAnimationFrame(look);
    }})()"""
    page.value(watch)
    choose(page, 6)
    wide(page)
    page.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.value("window.scaled") == []
    page.ask("Emulation.setDeviceMetricsOverride", width=760, height=900, deviceScaleFactor=1, mobile=False)
    wide(page)
    assert page.value("document.querySelector('.lens canvas').width") == page.value(
        "document.querySelector('.lens .view').clientWidth"
    )
    page.close()


def test_the_editor_stands_beside_the_charts(browser: Browser) -> None:
    page = browser.page(PAGE, 1300, 900)
    go(page, EDITED)
    page.wait_for(lambda: page.value("document.querySelector('.program') !== null"))
    settled(page)
    _, right, top, _ = box(page, ".programs")
    left, _, beside, _ = box(page, ".figures-of-run")
    assert right <= left
    assert abs(top - beside) < 40
    assert box(page, ".charts")[2] < 900
    page.close()


def test_colours_names_and_figures_stand_together_above_the_charts(browser: Browser) -> None:
    page = browser.page(PAGE)
    settled(page)
    rows = page.value("[...document.querySelectorAll('.flows li')].map((it) => it.textContent)")
    assert re.match(r"cubic ?[0-9.]+ Mbit/s ?RTT [0-9.]+ ms$", rows[0])
    assert rows[1].startswith("vegas")
    strokes = page.value(
        "[...document.querySelectorAll('.flows line')].map((it) => it.getAttribute('stroke'))"
    )
    assert strokes == [KNOWN["cubic"], KNOWN["vegas"]]
    table = page.value(
        "[...document.querySelectorAll('.measures tbody tr')].map((it) => [...it.cells].map((cell) => cell.textContent))"
    )
    for row, cells in zip(rows, table, strict=False):
        assert f"{cells[1]} Mbit/s" in row
    assert box(page, ".flows")[3] <= box(page, ".lens")[2]
    page.close()


def test_phases_have_colours_of_their_own_and_a_legend(browser: Browser) -> None:
    page = browser.page(PAGE)
    settled(page)
    fills = page.value("[...document.querySelectorAll('.strips rect')].map((it) => it.getAttribute('fill'))")
    assert len(fills) >= 3
    assert not set(fills) & set(KNOWN.values())
    words = text(page, ".strips")
    for word in ("Phase", "slow_start", "congestion_avoidance", "Limit", "cwnd"):
        assert word in words
    page.close()


def test_throughput_against_delay_is_among_the_charts(browser: Browser) -> None:
    page = browser.page(PAGE)
    settled(page)
    fills = page.value(
        "[...document.querySelectorAll('.tradeoff g.dots circle')].map((it) => it.getAttribute('fill'))"
    )
    assert fills == [KNOWN["cubic"], KNOWN["vegas"]]
    labels = page.value("[...document.querySelectorAll('.tradeoff svg text')].map((it) => it.textContent)")
    assert {"RTT (ms)", "Goodput (Mbit/s)", "↖ better"} <= set(labels)
    page.value("document.querySelector('input[type=checkbox]').click()")
    page.wait_for(lambda: page.value("document.querySelectorAll('.runs option').length") == 2)
    settled(page)
    dots = "document.querySelectorAll('.tradeoff g.dots').length"
    assert page.value(dots) == 1
    fill(page, ".runs select", "1")
    page.wait_for(lambda: page.value(dots) == 2)
    page.close()


def test_a_name_in_the_plane_covers_no_other_flows_dot(browser: Browser) -> None:
    page = browser.page(PAGE, 800, 900)
    go(page, EDITED)
    page.wait_for(lambda: text(page, ".flows li + li b") == "mine")
    settled(page)
    covered = """[...document.querySelectorAll(".tradeoff g.dots")].flatMap((group, at, groups) => {
        const box = group.querySelector("text")?.getBoundingClientRect();
        return groups.filter((other) => other !== group && box).map((other) => {
            const dot = other.querySelector("circle").getBoundingClientRect();
            const [x, y] = [(dot.left + dot.right) / 2, (dot.top + dot.bottom) / 2];
            return box.left < x && x < box.right && box.top < y && y < box.bottom;
        });
    }).filter(Boolean).length"""
    assert page.value("document.querySelectorAll('.tradeoff g.dots').length") == 2
    assert page.value(covered) == 0
    page.close()


def test_paths_media_and_workloads_are_chosen_by_name(browser: Browser) -> None:
    page = browser.page(PAGE)
    first = settled(page)
    options = "[...document.querySelectorAll('#%s option')].map((it) => it.value)"
    assert {"home DSL", "LTE"} <= set(page.value(options % "path"))
    assert {"adsl2", "wifi-n"} <= set(page.value(options % "medium"))
    assert {"tcp_upload", "rrul", "poisson"} <= set(page.value(options % "workload-name"))
    fill(page, "#path", "home DSL")
    fill(page, "#workload-name", "tcp_upload")
    fill(page, "#duration", "10s")
    page.wait_for(lambda: "--path 'home DSL'" in text(page, "details code"))
    page.wait_for(lambda: page.value(HASH) not in (first, "…"))
    settled(page)
    assert "--rate" not in text(page, "details code")
    assert page.value("document.querySelector('#rate').placeholder") == "of path"
    assert page.value("document.querySelector('#queue').placeholder") == "300ms"
    described = compare(
        ["cubic", "vegas"], path="home DSL", workload="tcp_upload", duration="10s", together=True
    )
    (run,) = expand(described)
    assert page.value(HASH) == run.core.run()["sha256"]
    page.wait_for(lambda: f"h={page.value(HASH)[:8]}" in page.value("location.hash"))
    address, sha256 = page.value("location.hash"), page.value(HASH)
    page.close()
    page = browser.page(PAGE)
    go(page, address)
    page.wait_for(lambda: page.value(HASH) == sha256)
    assert page.value("document.querySelector('#path').value") == "home DSL"
    assert page.value("document.querySelectorAll('[role=alert]').length") == 0
    fill(page, "#path", "")
    page.wait_for(lambda: page.value("document.querySelector('#rate').value") == "10mbit")
    page.close()


def test_completion_times_by_size_are_the_claims(browser: Browser) -> None:
    race = {
        "rate": "10mbit",
        "rtt": "20ms",
        "queue": "pfifo limit 50",
        "duration": "5s",
        "workload": "poisson every=200ms sizes=10kb",
    }
    described = compare(["cubic"], **race)
    (run,) = expand(described)
    page = browser.page(PAGE)
    go(page, "#1&cc=cubic&" + "&".join(f"{key}={quote(value)}" for key, value in race.items()))
    page.wait_for(lambda: page.value("document.querySelector('#fct-figure') !== null"))
    settled(page)
    assert page.value(HASH) == run.core.run()["sha256"]
    figure = re.match(r"([0-9.]+) s \((\d+) flows\)", text(page, "#fct-figure"))
    assert figure, text(page, "#fct-figure")
    fill(page, "#fct-up-to", "10kb")
    page.wait_for(lambda: 'size_up_to = "10kb"' in text(page, ".transfers code"))
    assert text(page, "#fct-figure") == figure[0]
    fill(page, "#fct-up-to", "1kb")
    page.wait_for(lambda: "bounds between which some flow lies" in text(page, "#fct-figure"))
    page.close()


def test_an_experiments_race_is_not_the_forms(browser: Browser) -> None:
    page = browser.page(PAGE)
    first = settled(page)
    fill(page, "#catalogue", "geni-tcp/step1")
    page.wait_for(lambda: page.value(HASH) not in (first, "…"))
    settled(page)
    assert page.value("document.querySelectorAll('#rate').length") == 0
    assert "geni-tcp/step1" in text(page, ".settings")
    page.ask("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=False)
    page.wait_for(lambda: page.value("innerWidth") == 390)
    assert box(page, ".settings")[3] - box(page, ".settings")[2] < 0.12 * 800
    page.ask("Emulation.setDeviceMetricsOverride", width=1300, height=900, deviceScaleFactor=1, mobile=False)
    assert text(page, ".chips") == ""
    press(page, "Leave for the form's race")
    page.wait_for(lambda: page.value(HASH) == first)
    assert page.value("document.querySelector('#catalogue').value") == ""
    assert "no longer geni-tcp/step1" in text(page, ".banner")
    press(page, "Return to geni-tcp/step1")
    page.wait_for(lambda: page.value("document.querySelector('#catalogue').value") == "geni-tcp/step1")
    assert text(page, ".banner") == ""
    page.wait_for(lambda: page.value(HASH) not in (first, "…"))
    page.value("history.back()")
    page.wait_for(lambda: page.value(HASH) == first)
    page.close()


def test_runs_of_a_file_stand_without_the_form(browser: Browser, tmp_path: Path) -> None:
    described = compare(["reno"], rate="5mbit", rtt="20ms", queue="pfifo limit 30", duration="3s")
    (run,) = expand(described)
    embedded = playground.of_runs("Reno on a short path", [("reno", json.dumps(run.scenario), None)])
    file = tmp_path / "play.html"
    file.write_text(playground.page(embedded, "0"))
    page = browser.page(file)
    sha256 = settled(page)
    assert sha256 == run.core.run()["sha256"]
    assert "Reno on a short path" in text(page, ".settings")
    assert page.value("document.querySelectorAll('#rate').length") == 0
    press(page, "Leave for the form's race")
    page.wait_for(lambda: page.value("document.querySelectorAll('#rate').length") == 1)
    press(page, "Return to Reno on a short path")
    page.wait_for(lambda: page.value(HASH) == sha256)
    assert page.complaints() == []
    page.close()


def test_a_lesson_gives_its_answer_away_only_afterwards(browser: Browser) -> None:
    page = browser.page(PAGE)
    settled(page)
    assert "fq_codel" in text(page, ".chips")
    choose(page, 6)
    assert page.value("document.querySelectorAll('.race .chips').length") == 0
    press(page, "The quiz's start")
    settled(page)
    press(page, "Check this run")
    page.wait_for(lambda: text(page, "#mark"))
    assert re.fullmatch(r"Not yet: Vegas [0-9.]+ %, wanted at least 40 %\.", text(page, "#mark"))
    fill(page, "#queue", "fq_codel")
    page.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    settled(page)
    press(page, "Check this run")
    page.wait_for(lambda: text(page, "#mark") == "Right.")
    assert "fq_codel" in text(page, ".race .chips")
    page.value("localStorage.clear()")
    page.close()


def test_a_term_explains_itself(browser: Browser) -> None:
    page = browser.page(PAGE)
    settled(page)
    page.value("document.querySelector('.flows button.term').click()")
    shown = "document.querySelector('.explanation:popover-open')?.textContent ?? ''"
    page.wait_for(lambda: page.value(shown))
    assert "Goodput" in page.value(shown)
    assert page.value("document.querySelectorAll('.explanation a').length") == 0
    page.close()
