"""The playground in a real browser, from a file and under its own policy."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragstrip.display.colours import INK, KNOWN, ON_DARK
from dragstrip.playground import PAGE
from viewer.browser import Browser, Page

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="no page of the playground: make play")

HASH = "document.querySelector('#hash').textContent"
SENTENCE = "document.querySelector('.sentence').textContent"


def settled(page: Page) -> str:
    """The hash of the recording, which is there when all else is."""
    page.wait_for(lambda: len(page.value(HASH)) == 64)
    return page.value(HASH)


def go(page: Page, fragment: str) -> None:
    """Opens another link in the same page."""
    page.value(f"location.hash = {json.dumps(fragment)}")


def slide(page: Page, places: list[int]) -> None:
    """Moves the slider of the rate through these places, a few in each turn of the page."""
    page.value(
        f"""(async () => {{
            const slider = document.querySelector("input[type=range]");
            for (const [at, place] of {places}.entries()) {{
                slider.value = place;
                slider.dispatchEvent(new Event("input", {{ bubbles: true }}));
                if (at % 5 === 0) await new Promise((done) => setTimeout(done));
            }}
        }})()"""
    )


def test_the_first_race_is_drawn_without_a_request_or_a_complaint(browser: Browser) -> None:
    page = browser.page(PAGE)
    settled(page)
    page.wait_for(lambda: page.value("document.querySelector('.lens-words').textContent"))
    assert "cubic gets" in page.value(SENTENCE)
    painted = """[...document.querySelectorAll("canvas")].map((it) => new Set(
        new Uint32Array(it.getContext("2d").getImageData(0, 0, it.width, it.height).data.buffer)).size)"""
    # The packets, and the curves of the panels; the plane is of lines.
    colours = page.value(painted)
    assert len(colours) == 2
    assert min(colours) > 3
    titles = page.value(
        "[...document.querySelectorAll('.charts g.panel > text.title')].map((it) => it.textContent.split(' (')[0])"
    )
    assert titles[:4] == ["Window", "RTT", "Goodput", "Queue"]
    assert page.value("document.querySelector('.plane path.curve').getAttribute('d').split('M').length") > 100
    assert page.complaints() == []
    assert [it for it in page.requests() if not it.startswith(("file:", "blob:"))] == []
    page.close()


def test_its_hash_and_its_sentence_are_the_command_lines(browser: Browser, tmp_path: Path) -> None:
    page = browser.page(PAGE)
    words = ["--rate", "10mbit", "--rtt", "40ms", "--queue", "pfifo limit 100", "--duration", "30s"]
    command = [sys.executable, "-m", "dragstrip", "compare", *words, "--together", "cubic", "vegas"]
    subprocess.run([*command, "--out", str(tmp_path / "out")], check=True, capture_output=True)
    told = [json.loads(it.read_text()) for it in (tmp_path / "out").rglob("provenance.json")]
    assert [it["recording_sha256"] for it in told] == [settled(page)]
    (run,) = json.loads((tmp_path / "out" / "result.json").read_text())["runs"]
    assert run["why"][0]["sentence"] in page.value(SENTENCE)
    page.close()


def test_a_resized_page_keeps_the_sentence_and_the_table(browser: Browser) -> None:
    page = browser.page(PAGE)
    settled(page)
    shown = "[document.querySelector('.sentence').textContent, document.querySelector('.table').innerHTML]"
    canvas = "document.querySelector('.lens canvas').width"
    before, width = page.value(shown), page.value(canvas)
    page.ask("Emulation.setDeviceMetricsOverride", width=700, height=900, deviceScaleFactor=1, mobile=False)
    page.wait_for(lambda: page.value(canvas) != width)
    assert page.value(shown) == before
    page.close()


def test_no_picture_is_stale_after_a_thousand_moves(browser: Browser) -> None:
    page = browser.page(PAGE)
    before, sentence = settled(page), page.value(SENTENCE)
    slide(page, [at * 7919 % 1001 for at in range(999)] + [250])
    page.wait_for(lambda: page.value(HASH) not in (before, "…") and len(page.value(HASH)) == 64)
    assert page.value("document.querySelector('#rate').value") == "1mbit"
    assert "--rate 1mbit" in page.value("document.querySelector('code').textContent")
    assert page.value(SENTENCE) != sentence
    assert page.complaints() == []
    page.close()


def test_a_link_comes_back_and_the_back_button_too(browser: Browser) -> None:
    page = browser.page(PAGE)
    first = settled(page)
    address = page.value("location.hash")
    assert f"h={first[:8]}" in address
    slide(page, [300])
    page.wait_for(lambda: page.value("location.hash") != address)
    settled(page)
    page.value("history.back()")
    page.wait_for(lambda: page.value(HASH) == first)
    assert page.value("document.querySelectorAll('[role=alert]').length") == 0
    other = address.replace(first[:8], "00000000")
    go(page, other)
    page.wait_for(lambda: page.value("document.querySelectorAll('[role=alert]').length") == 1)
    alert = page.value("document.querySelector('[role=alert]').textContent")
    assert "00000000" in alert
    assert first[:8] in alert
    page.close()


@pytest.mark.parametrize(
    "fragment",
    ["#9&rate=1mbit", "#1&rat=1mbit", "#1&rate=%ff", "#1&seed=1,2", "#1&rate=" + "9" * 70_000,
     "#1&rate=<img src=x onerror=alert(1)>", "#1&cc=cubic*1000000", "#1&duration=9999999s"],
)  # fmt: skip
def test_a_hostile_fragment_is_refused_in_a_line(browser: Browser, fragment: str) -> None:
    page = browser.page(PAGE)
    before = settled(page)
    go(page, fragment)
    said = """[...document.querySelectorAll("[role=alert], .wrong")].map((it) => it.textContent).filter(Boolean)"""
    page.wait_for(lambda: page.value(said))
    assert "expected" in page.value(said)[0]
    assert "\n" not in page.value(said)[0]
    assert page.value(HASH) in (before, "…")
    assert page.value("document.querySelectorAll('img').length") == 0
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_sees_all_of_it(browser: Browser, scheme: str) -> None:
    page = browser.page(PAGE, 390, 800, prefers_color_scheme=scheme)
    settled(page)
    assert page.value("document.documentElement.scrollWidth") == 390
    beyond = """[...document.querySelectorAll("form *, main canvas")]
        .filter((it) => it.getBoundingClientRect().right > 390.5).map((it) => it.outerHTML)"""
    assert page.value(beyond) == []
    page.close()


def test_a_phone_sees_each_chart_beside_the_slider_that_moves_it(browser: Browser) -> None:
    page = browser.page(PAGE, 390, 800)
    settled(page)
    place = """(() => { const { top, bottom } = %s.getBoundingClientRect(); return [top, bottom]; })()"""
    slider = "document.querySelector('input[type=range]')"
    charts = page.value("document.querySelectorAll('.charts g.panel').length")
    assert charts == 6
    for chart in range(charts):
        figure = f"document.querySelectorAll('.charts g.panel')[{chart}]"
        page.value(f"void {figure}.scrollIntoView({{ block: 'start' }})")
        (top, bottom), (above, below) = page.value(place % figure), page.value(place % slider)
        assert 0 <= round(top) < bottom < above < below < 800, chart
    page.close()


def test_the_keyboard_alone_moves_the_cursor_and_the_zoom(browser: Browser) -> None:
    page = browser.page(PAGE)
    settled(page)
    for _ in range(100):
        page.key("Tab", windowsVirtualKeyCode=9)
        if page.value("document.activeElement.className") == "cursor":
            break
    readout = "document.querySelector('.charts .cursor').ariaValueText"
    page.key("]")
    assert re.match(r"[0-9.]+ s, Window cubic [0-9.]+, vegas [0-9.]+, RTT ", page.value(readout))
    at = page.value(readout)
    page.key("ArrowRight")
    assert page.value(readout) != at
    strokes = "document.querySelector('.charts canvas').toDataURL()"
    whole = page.value(strokes)
    page.key("+")
    page.wait_for(lambda: page.value(strokes) != whole)
    page.key("0")
    page.wait_for(lambda: page.value(strokes) == whole)
    page.key("Escape")
    assert page.value("document.querySelector('.charts .needle').getAttribute('visibility')") == "hidden"
    page.close()


def test_the_reports_colours_are_the_pages(browser: Browser) -> None:
    for scheme in ("light", "dark"):
        page = browser.page(PAGE, prefers_color_scheme=scheme)
        settled(page)
        drawn = (
            "[...document.querySelectorAll('.charts .legend line')].map((it) => it.getAttribute('stroke'))"
        )
        own = [KNOWN["cubic"], KNOWN["vegas"]]
        assert page.value(drawn) == (own if scheme == "light" else [ON_DARK[it] for it in own])
        ink = page.value("getComputedStyle(document.body).getPropertyValue('--ink').trim()")
        assert ink == (INK if scheme == "light" else ON_DARK[INK])
        page.close()
