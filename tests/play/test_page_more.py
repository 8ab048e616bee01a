"""The playground's lessons, its copies and what it does when its core fails, in a real browser."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import dragstrip
from dragstrip.playground.lessons import COUNT, graded, lesson
from play import wasm
from play.test_page import HASH, PAGE, settled
from viewer.browser import Browser, Page

ROOT = Path(__file__).parents[2]
AXE = ROOT / "playground/node_modules/axe-core/axe.min.js"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="no page of the playground: make play")
COPIED = "window.copied"
HEAR_COPIES = """Object.defineProperty(navigator, "clipboard",
    { value: { writeText: async (text) => { window.copied = text; } } })"""

FORM = "location.hash.replace(/&h=.*/, '')"
"""The form in the address: its recording is entered later, and changes the address once more."""


def text(page: Page, selector: str) -> str:
    return str(page.value(f"document.querySelector({json.dumps(selector)})?.textContent ?? ''"))


def press(page: Page, words: str) -> None:
    page.value(
        f"[...document.querySelectorAll('button')].find((it) => (it.ariaLabel ?? it.textContent) === {json.dumps(words)}).click()"
    )


def fill(page: Page, selector: str, value: str) -> None:
    page.value(
        f"""(() => {{
            const field = document.querySelector({json.dumps(selector)});
            field.value = {json.dumps(value)};
            field.dispatchEvent(new Event(field.matches("select") ? "change" : "input", {{ bubbles: true }}));
        }})()"""
    )


def choose(page: Page, number: int) -> None:
    """Opens a lesson and waits for its race."""
    fill(page, "#lesson", str(number))
    page.wait_for(lambda: page.value(HASH) == "…")
    settled(page)


def answer(page: Page, told: dict[str, Any], value: Any) -> str:
    """Answers the quiz, and what the page says of it."""
    if "within" in told["quiz"]:
        fill(page, "#quiz", str(value))
        press(page, "Run and check")
    else:
        press(page, "The quiz's start")
        for key, option in value.items():
            if key == "queue":
                fill(page, "#queue", option)
            else:
                for at, word in enumerate(option, 1):
                    name, _, rtt = word.partition("@")
                    fill(page, f"input[aria-label='Algorithm {at}']", name)
                    fill(page, f"fieldset .row:nth-of-type({at}) input[aria-label^='Own RTT']", rtt)
        page.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        settled(page)
        before = text(page, "#mark")
        press(page, "Check this run")
        assert text(page, "#mark") == before
    page.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    settled(page)
    page.wait_for(lambda: text(page, "#mark"))
    return text(page, "#mark")


def test_each_lesson_is_judged_and_the_set_is_handed_in(browser: Browser) -> None:
    page = browser.page(PAGE)
    page.value(HEAR_COPIES)
    settled(page)
    for number in range(1, COUNT + 1):
        told = lesson(number)
        choose(page, number)
        fill(page, "#bet", "1")
        press(page, "Run")
        page.wait_for(lambda: text(page, "#bet-result"))
        assert text(page, "#bet-result").startswith("You: 1 ")
        assert answer(page, told, told["quiz"]["wrong"]).startswith("Not yet"), number
        right = answer(page, told, told["quiz"]["right"])
        page.wait_for(lambda: text(page, "#mark") == "Right.")
        assert right == "Right." or right.startswith("Not yet: ")
    press(page, "Copy answers")
    lines = page.value(COPIED).splitlines()
    assert lines[0].startswith("Dragstrip ")
    assert graded(lines) == [(number, "right") for number in range(1, COUNT + 1)]
    assert page.complaints() == []
    page.close()


def test_another_path_answers_no_quiz(browser: Browser) -> None:
    page = browser.page(PAGE)
    settled(page)
    choose(page, 6)
    fill(page, "#rtt", "20ms")
    press(page, "Check this run")
    assert text(page, "#mark").startswith("Only queue may differ")
    page.close()


def test_the_copied_program_gives_the_same_hash(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = browser.page(PAGE)
    page.value(HEAR_COPIES)
    sha256 = settled(page)
    press(page, "Copy Python")
    program = tmp_path / "race.py"
    program.write_text(page.value(COPIED))
    press(page, "Copy TOML")
    experiment = tmp_path / "race.toml"
    experiment.write_text(page.value(COPIED))
    press(page, "Copy citation")
    assert sha256 in page.value(COPIED)
    assert dragstrip.__version__ in page.value(COPIED)
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(program))
    told = [json.loads(it.read_text()) for it in (tmp_path / "out").rglob("provenance.json")]
    assert [it["recording_sha256"] for it in told] == [sha256]
    dragstrip.run(dragstrip.Experiment.read(experiment), "again", report=False)
    told = [json.loads(it.read_text()) for it in (tmp_path / "again").rglob("provenance.json")]
    assert [it["recording_sha256"] for it in told] == [sha256]
    page.close()


def test_a_core_that_fails_is_said_and_the_page_lives(browser: Browser, tmp_path: Path) -> None:
    pack = runpy.run_path(str(ROOT / "playground/pack.py"))
    whole = PAGE.read_text()
    block = re.search(r'id="dragstrip-core">([^<]*)<', whole)
    assert block
    code = pack["text"](pack["packed"](wasm.trapping(pack["unpacked"](block[1]), "run_advance")))
    file = tmp_path / "page.html"
    file.write_text(whole.replace(block[1], code))
    page = browser.page(file)
    page.wait_for(lambda: "The core has failed" in text(page, "p.banner"))
    assert "rate=10mbit" in page.value("location.hash")
    fill(page, "#rate", "5mbit")
    page.wait_for(lambda: "rate=5mbit" in page.value("location.hash"))
    assert "The core has failed" in text(page, "p.banner")
    fill(page, "#rate", "five")
    page.wait_for(lambda: "expected" in text(page, "#wrong-rate"))
    page.close()


def test_each_key_moves_each_slider_by_a_step(browser: Browser) -> None:
    page = browser.page(PAGE)
    settled(page)
    sliders = "document.querySelectorAll('input[type=range]')"
    codes = {"PageUp": 33, "PageDown": 34, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
    for at in range(page.value(f"{sliders}.length")):
        slider = f"{sliders}[{at}]"
        page.value(f"{slider}.focus()")
        for key in ("ArrowUp", "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowRight", "PageUp", "PageDown"):
            spoken, address = page.value(f"{slider}.ariaValueText"), page.value(FORM)
            page.key(key, windowsVirtualKeyCode=codes[key])
            page.wait_for(lambda slider=slider, was=spoken: page.value(f"{slider}.ariaValueText") != was)
            page.wait_for(lambda was=address: page.value(FORM) != was)
    page.close()


def test_no_address_has_the_recording_of_another_form(browser: Browser) -> None:
    page = browser.page(PAGE)
    settled(page)
    page.value(
        """(() => {
            window.entries = [];
            for (const name of ["pushState", "replaceState"]) {
                const enter = history[name].bind(history);
                history[name] = (...it) => (window.entries.push(it[2]), enter(...it));
            }
            const slider = document.querySelector("input[type=range]");
            const move = (to) => {
                slider.value = to;
                slider.dispatchEvent(new Event("input", { bubbles: true }));
            };
            // The first run is asked for at once, the second in a frame that comes after the first one's recording.
            const frame = window.requestAnimationFrame;
            window.requestAnimationFrame = (act) => (act(), 0);
            move(300);
            window.requestAnimationFrame = (act) => ((window.late = () => ((window.requestAnimationFrame = frame), act())), 0);
            move(400);
        })()"""
    )
    page.wait_for(lambda: page.value("entries.length"))
    page.value("late()")
    last = settled(page)
    page.wait_for(lambda: page.value("location.hash").endswith(f"&h={last[:8]}"))
    recordings = {it.partition("&h=")[2] for it in page.value("entries")}
    assert recordings == {"", last[:8]}
    page.close()


def test_a_thousand_moves_leave_nothing_behind(browser: Browser) -> None:
    page = browser.page(PAGE)
    settled(page)

    def counts() -> dict[str, float]:
        page.ask("HeapProfiler.collectGarbage")
        found = {it["name"]: it["value"] for it in page.ask("Performance.getMetrics")["metrics"]}
        return {it: found[it] for it in ("Nodes", "JSEventListeners", "JSHeapUsedSize")}

    def storm() -> None:
        page.value(
            """(async () => {
                const slider = document.querySelector("input[type=range]");
                for (let at = 0; at < 1000; at++) {
                    slider.value = at === 999 ? 500 : (at * 7919) % 1001;
                    slider.dispatchEvent(new Event("input", { bubbles: true }));
                    if (at % 5 === 0) await new Promise((done) => setTimeout(done));
                }
            })()"""
        )
        page.wait_for(lambda: "rate=10mbit" in page.value("location.hash"))
        settled(page)

    storm()
    before = counts()
    storm()
    after = counts()
    assert after["Nodes"] <= before["Nodes"] + 50
    assert after["JSEventListeners"] <= before["JSEventListeners"] + 5
    assert after["JSHeapUsedSize"] <= before["JSHeapUsedSize"] + 4e6
    page.close()


@pytest.mark.skipif(not AXE.exists(), reason="no axe-core: make play")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1300])
def test_axe_finds_nothing(browser: Browser, scheme: str, width: int) -> None:
    page = browser.page(PAGE, width, 900, prefers_color_scheme=scheme)
    settled(page)
    choose(page, 1)
    fill(page, "#bet", "3")
    press(page, "Run")
    page.wait_for(lambda: text(page, "#bet-result"))
    page.value(AXE.read_text() + "; 0")
    found = page.value("axe.run().then((it) => it.violations.map((v) => [v.id, v.nodes.map((n) => n.html)]))")
    assert found == []
    assert page.value("document.documentElement.scrollWidth") == width
    fill(page, "#catalogue", "bu-cs655-2022/ecn")
    page.wait_for(lambda: page.value("document.querySelectorAll('.claims').length") == 1)
    found = page.value("axe.run().then((it) => it.violations.map((v) => [v.id, v.nodes.map((n) => n.html)]))")
    assert found == []
    assert page.value("document.documentElement.scrollWidth") == width
    page.close()
