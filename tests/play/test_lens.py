"""The playground's lens: packets in slow motion, by mouse, by keyboard and in words, in a real browser."""

from __future__ import annotations

import re

import pytest

from play.test_page import PAGE, settled
from play.test_page_more import press, text
from viewer.browser import Browser, Page

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="no page of the playground: make play")
WORDS = ".lens-words"
CURSOR = "document.querySelector('.charts .cursor')"
READING = f"{CURSOR}.ariaValueText"


def opened(browser: Browser, **media: str) -> Page:
    page = browser.page(PAGE, **media)
    settled(page)
    page.wait_for(lambda: text(page, WORDS))
    return page


def instant(page: Page) -> float:
    return float(page.value(f"{CURSOR}.ariaValueNow"))


def test_it_shows_the_packets_of_the_cursors_instant(browser: Browser) -> None:
    page = opened(browser)
    # The queue holds a hundred packets, and the window is larger by what is on its way back.
    page.value("document.querySelector('.lens .view').focus()")
    page.key("ArrowRight")
    page.wait_for(lambda: text(page, WORDS).startswith("t = "))
    found = re.search(r"in the queue (\d+) \(cubic (\d+), vegas (\d+)\)", text(page, WORDS))
    assert found, text(page, WORDS)
    queued, cubic, vegas = map(int, found.groups())
    assert cubic + vegas == queued
    recorded = re.search(r"Queue ([0-9.]+) kB", page.value(READING))
    assert recorded
    # The chart's value is that of its pixel, 37 ms, in which at most 31 packets leave.
    assert abs(queued - float(recorded[1]) / 1.514) <= 31
    assert queued <= 100
    page.close()


def test_another_race_takes_the_place_of_the_one_before(browser: Browser) -> None:
    """Packets were asked for by the old picture, under the new race's number, and never came."""
    page = opened(browser)
    page.value("document.querySelector('details.programs').open = true")
    press(page, "my-bbr")
    page.wait_for(lambda: "my-bbr" in text(page, ".sentence"))
    page.wait_for(lambda: re.search(r"my-bbr \d+", text(page, WORDS)))
    assert page.complaints() == []
    page.close()


def test_it_plays_pauses_and_steps(browser: Browser) -> None:
    page = opened(browser)
    before = text(page, WORDS)
    press(page, "Play")
    page.wait_for(lambda: instant(page) > 0)
    at = instant(page)
    page.wait_for(lambda: instant(page) > at)
    page.value("document.querySelector('.lens .view').focus()")
    page.key(" ")
    page.wait_for(lambda: text(page, ".turn") == "Play")
    page.wait_for(lambda: text(page, WORDS) != before)
    there = text(page, WORDS)
    said = re.search(r"t = ([0-9.]+)", there)
    assert said, there
    assert float(said[1]) == pytest.approx(instant(page), abs=0.01)
    page.key("ArrowLeft")
    page.wait_for(lambda: text(page, WORDS) != there)
    assert page.complaints() == []
    page.close()


def test_before_what_was_seen_it_begins_again(browser: Browser) -> None:
    page = opened(browser)
    page.value(f"{CURSOR}.focus()")
    page.key("End")
    page.wait_for(lambda: text(page, WORDS).startswith("t = 30.000 s"))
    page.key("Home")
    page.wait_for(lambda: text(page, WORDS).startswith("t = 0.000 s"))
    page.key("End")
    page.wait_for(lambda: text(page, WORDS).startswith("t = 30.000 s"))
    page.close()


def test_who_wants_no_motion_gets_steps(browser: Browser) -> None:
    page = opened(browser, prefers_reduced_motion="reduce")
    assert page.value(READING).startswith("arrows move")
    page.value(f"""(() => {{
        window.moves = new Set();
        const note = () => window.moves.add({CURSOR}.ariaValueNow);
        new MutationObserver(note).observe({CURSOR}, {{ attributes: true }});
    }})()""")
    press(page, "Play")
    page.wait_for(lambda: page.value("window.moves.size") >= 2)
    # A quarter of a round trip of some 140 ms, not a frame's part of it.
    at = sorted(float(it) for it in page.value("[...window.moves]"))
    assert at[1] - at[0] > 0.02
    page.close()


def test_what_is_lost_is_retransmitted(browser: Browser) -> None:
    page = opened(browser)
    seen = ""
    for _ in range(40):
        before = text(page, WORDS)
        press(page, "A tenth of an RTT on")
        page.wait_for(lambda: text(page, WORDS) != before)  # noqa: B023 - asked at once
        seen += text(page, WORDS)
        if "retransmitted" in seen:
            break
    lost = seen.index("just lost")
    assert lost < seen.index("retransmitted")
    page.close()
