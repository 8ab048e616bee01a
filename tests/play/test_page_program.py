"""An algorithm of one's own in the page (playground/src/program.tsx), in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from play.test_page import HASH, PAGE, settled
from viewer.browser import Browser, Page

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="no page of the playground: make play")

ROOT = Path(__file__).parents[2]
AXE = ROOT / "playground/node_modules/axe-core/axe.min.js"
RENO = (ROOT / "programs" / "my-reno.cc").read_text()
WRONG = "document.querySelector('.program .wrong').textContent"
TEXT = "document.querySelector('.program textarea').value"


def race(text: str) -> str:
    """A link with a short race of a program called `mine` beside Reno."""
    more = quote(json.dumps({"programs": {"mine": text}}))
    return (
        f"#1&cc=reno,mine&rate=10mbit&rtt=40ms&queue=pfifo+limit+50&duration=5s&seed=1&together=1&more={more}"
    )


def type_text(page: Page, text: str) -> None:
    """Replaces the whole text, as keys do."""
    page.value(
        f"""(() => {{
            const area = document.querySelector(".program textarea");
            area.value = {json.dumps(text)};
            area.dispatchEvent(new Event("input", {{ bubbles: true }}));
        }})()"""
    )


def native(text: str) -> str:
    """The hash of the same race here."""
    described = compare(
        ["reno", "mine"],
        rate="10mbit",
        rtt="40ms",
        queue="pfifo limit 50",
        duration="5s",
        together=True,
        programs={"mine": text},
    )
    (run,) = expand(described)
    sha: str = run.core.run()["sha256"]
    return sha


def opened(browser: Browser, fragment: str) -> Page:
    page = browser.page(PAGE)
    page.value(f"location.hash = {json.dumps(fragment)}")
    page.wait_for(lambda: page.value("document.querySelector('.program') !== null"))
    return page


def test_an_example_is_a_click_away_and_its_link_comes_back(browser: Browser) -> None:
    page = browser.page(PAGE)
    before = settled(page)
    page.value(
        "[...document.querySelectorAll('.programs button')].find((it) => it.textContent === 'my-reno').click()"
    )
    page.wait_for(lambda: page.value(HASH) not in (before, "…") and len(page.value(HASH)) == 64)
    assert page.value(TEXT) == RENO
    page.wait_for(lambda: "programs" in page.value("location.hash"))
    page.wait_for(lambda: f"h={page.value(HASH)[:8]}" in page.value("location.hash"))
    address, first = page.value("location.hash"), settled(page)
    assert page.complaints() == []
    page.close()
    page = opened(browser, address)
    page.wait_for(lambda: page.value(HASH) == first)
    assert page.value(TEXT) == RENO
    assert page.value("document.querySelectorAll('[role=alert]').length") == 0
    page.close()


def test_its_bytes_are_the_native_ones_after_every_key(browser: Browser) -> None:
    page = opened(browser, race(RENO))
    page.wait_for(lambda: page.value(HASH) == native(RENO))
    other = RENO.replace("cwnd / 2", "cwnd * 0.8")
    for text in (other[:200], other[:300], other):
        type_text(page, text)
    page.wait_for(lambda: page.value(HASH) == native(other))
    assert page.value(WRONG) == ""
    page.close()


def test_a_policy_has_the_bytes_of_the_native_race(browser: Browser) -> None:
    policy = (ROOT / "programs" / "my-delay.json").read_text()
    page = opened(browser, race(policy))
    page.wait_for(lambda: page.value(HASH) == native(policy))
    type_text(page, policy.replace("-20", '"a"'))
    page.wait_for(lambda: page.value(WRONG) != "")
    assert "expected a policy" in page.value(WRONG)
    page.close()


def test_an_error_is_marked_where_it_stands_and_goes_with_it(browser: Browser) -> None:
    page = opened(browser, race(RENO))
    first = settled(page)
    type_text(page, RENO.replace("floor(cwnd / 2)", "flor(cwnd / 2)"))
    page.wait_for(lambda: "Line " in page.value(WRONG))
    line = RENO[: RENO.index("floor(cwnd")].count("\n") + 1
    assert page.value(WRONG).startswith(f'Line {line}, column 20: got "flor", expected ')
    assert 'did you mean "floor"?' in page.value(WRONG)
    assert page.value("document.querySelector('.program .bad').textContent") == f"▸ {line}"
    assert page.value("document.querySelector('.program textarea').getAttribute('aria-invalid')") == "true"
    page.value("document.querySelector('.program .wrong button').click()")
    area = "document.querySelector('.program textarea')"
    assert page.value(f"{area}.value.slice({area}.selectionStart).startsWith('flor(')")
    type_text(page, RENO)
    page.wait_for(lambda: page.value(HASH) == first)
    assert page.value("document.querySelectorAll('.program .bad').length") == 0
    assert page.complaints() == []
    page.close()


def test_arithmetic_that_fails_is_marked_too(browser: Browser) -> None:
    page = opened(browser, race("on ack {\n    cwnd = cwnd / (acked - acked)\n}\non loss { ssthresh = 2 }"))
    page.wait_for(lambda: "Line 2, column 17" in page.value(WRONG))
    assert "infinity at 0." in page.value(WRONG)
    assert "in ACK 1 of flow mine" in page.value(WRONG)
    page.close()


@pytest.mark.parametrize(
    "text",
    ["<img src=x onerror=alert(1)>", "(" * 15_000, "on ack " + "{ if limited " * 1_000, "\u202e\u0000"],
)
def test_a_hostile_text_is_text(browser: Browser, text: str) -> None:
    page = opened(browser, race(text))
    page.wait_for(lambda: "Line 1, column " in page.value(WRONG))
    assert page.value("document.querySelectorAll('img').length") == 0
    assert page.complaints() == []
    page.close()


@pytest.mark.skipif(not AXE.exists(), reason="no axe-core: make play")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1300])
def test_axe_finds_nothing_about_the_editor(browser: Browser, scheme: str, width: int) -> None:
    page = browser.page(PAGE, width, 900, prefers_color_scheme=scheme)
    page.value(f"location.hash = {json.dumps(race(RENO.replace('acked', 'ackd')))}")
    page.wait_for(lambda: "Line " in page.value(f"document.querySelector('.program') && {WRONG}"))
    page.value(AXE.read_text() + "; 0")
    found = page.value("axe.run().then((it) => it.violations.map((v) => [v.id, v.nodes.map((n) => n.html)]))")
    assert found == []
    assert page.value("document.documentElement.scrollWidth") == width
    page.close()
