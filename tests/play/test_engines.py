"""Firefox and WebKit (the engine of iPhones): the same bytes as natively, and the page works there.

Each is skipped by name where Debian's package is not installed. DRAGSTRIP_IDENTITY=1000 tries so many random experiments.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragstrip import _core
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.playground.lessons import COUNT as LESSONS
from dragstrip.playground.lessons import lesson
from play.test_identity import BUILT, FORMS, ROOT, valid
from play.test_page import HASH, PAGE, SENTENCE
from viewer.driver import Tab, lacks, started

COUNT = int(os.environ.get("DRAGSTRIP_IDENTITY", "60"))
BATCH = 20
"""Scenarios that are run between two looks at a page."""

ALERTS = "[...document.querySelectorAll('[role=alert]')].map((it) => it.textContent)"
ENTERED = f"location.hash.endsWith('&h=' + {HASH}.slice(0, 8))"
"""The address is the one of the recording: nothing more will be entered until something changes."""
WIDTH = 390

pytestmark = [
    pytest.mark.skipif(not PAGE.exists(), reason="no page of the playground: make play"),
    pytest.mark.skipif(not (BUILT / "core.wasm").exists(), reason="no core for a page: cargo page"),
]

# What the page of a worker does, without the page: a fresh instance for each scenario, and slices.
RUNNER = """<!doctype html><meta charset="utf-8"><title>Dragstrip: the core</title>
<script>%(core)s
const made = WebAssembly.compile(Uint8Array.from(atob("%(wasm)s"), (it) => it.charCodeAt(0)));
async function hashes(asked) {
    const module = await made;
    return asked.map(({ form, scenario }) => {
        try {
            const runs = form ? JSON.parse(core(module).runs_of(JSON.stringify(form))).runs.map((it) => it.scenario) : [scenario];
            return { hashes: runs.map((it) => {
                const run = new (core(module).Run)(it, 0);
                for (let until = 1e8; !run.done; until += 1e8)
                    if (JSON.parse(run.advance(until, Number.MAX_SAFE_INTEGER)).stalled) throw new Error("stalled");
                const sha256 = run.sha256();
                run.free();
                return sha256;
            }) };
        } catch (refused) {
            if (typeof refused !== "string") throw refused;
            return { refused: JSON.parse(refused) };
        }
    });
}
</script>"""


@pytest.fixture(scope="module", params=["firefox", "webkit"])
def tab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    how = lacks(request.param)
    if how:
        pytest.skip(f"no {request.param}: {how}")
    driver = started(request.param, tmp_path_factory.mktemp(request.param))
    yield Tab(driver)
    driver.close()


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with the core alone."""
    core = (BUILT / "core.js").read_text().replace("export function core", "function core")
    wasm = base64.b64encode((BUILT / "core.wasm").read_bytes()).decode()
    page = tmp_path_factory.mktemp("core") / "core.html"
    page.write_text(RUNNER % {"core": core, "wasm": wasm})
    return page


@pytest.fixture(scope="module")
def native() -> list[tuple[str, dict[str, object], list[str]]]:
    """Name, what the page is asked, hashes: of the golden recording, every form, every lesson, random experiments."""
    golden = (ROOT / "tests/golden/recording.scenario.json").read_text()
    forms = dict(FORMS)
    for number in range(1, LESSONS + 1):
        told = lesson(number)
        forms[f"lesson {number}"] = told["start"]
        forms[f"lesson {number}, last row"] = {**told["start"], **told["see"]["rows"][-1]["set"]}
    asked: list[tuple[str, dict[str, object], list[str]]] = [
        ("golden", {"scenario": golden}, [(ROOT / "tests/golden/recording.sha256").read_text().strip()])
    ]
    for name, form in forms.items():
        runs = expand(compare(**form))
        asked.append((name, {"form": form}, [run.core.run()["sha256"] for run in runs]))
    for number, runs in enumerate(itertools.islice(valid(), COUNT)):
        for run in runs:
            text = json.dumps(run.scenario)
            asked.append((f"random {number}", {"scenario": text}, [_core.Scenario(text).run()["sha256"]]))
    return asked


def ready(tab: Tab, file: Path = PAGE, fragment: str = "") -> str:
    """Opens the page and gives the hash of the recording, which is there when all else is."""
    tab.open(file, fragment)
    return settled(tab)


def settled(tab: Tab) -> str:
    tab.wait_for(lambda: len(tab.value(HASH)) == 64)
    return tab.value(HASH)


def test_the_same_bytes_as_natively(
    tab: Tab, runner: Path, native: list[tuple[str, dict[str, object], list[str]]]
) -> None:
    tab.open(runner)
    ran = 0
    for batch in (native[at : at + BATCH] for at in range(0, len(native), BATCH)):
        said = tab.value(f"hashes({json.dumps([asked for _, asked, _ in batch])})")
        for (name, _, hashes), it in zip(batch, said, strict=True):
            if name.startswith("random") and "refused" in it:
                # A page runs nothing beyond its bounds.
                assert all("command line" in problem["expected"] for problem in it["refused"]), name
                continue
            assert it == {"hashes": hashes}, name
            ran += 1
    assert ran >= 1 + len(FORMS) + 2 * LESSONS + COUNT


def test_the_first_race_is_drawn_without_a_request(tab: Tab) -> None:
    ready(tab)
    assert "cubic gets" in tab.value(SENTENCE)
    painted = """[...document.querySelectorAll("canvas")].map((it) => new Set(
        new Uint32Array(it.getContext("2d").getImageData(0, 0, it.width, it.height).data.buffer)).size)"""
    tab.wait_for(lambda: min(tab.value(painted)) > 3)
    assert len(tab.value(painted)) == 2
    # What was asked for besides the file itself; `blob:` is the worker, made by the page.
    asked = "performance.getEntriesByType('resource').map((it) => it.name)"
    assert [it for it in tab.value(asked) if not it.startswith(("blob:", "data:"))] == []
    assert tab.value(ALERTS) == []


def test_a_slider_a_link_and_the_back_button(tab: Tab) -> None:
    first = ready(tab)
    address = tab.value("location.hash")
    assert f"h={first[:8]}" in address
    tab.value(
        """(() => { const it = document.querySelector("input[type=range]"); it.value = 300;
            it.dispatchEvent(new Event("input", { bubbles: true })); })()"""
    )
    tab.wait_for(lambda: tab.value("location.hash") != address)
    tab.wait_for(lambda: tab.value(HASH) not in (first, "…") and len(tab.value(HASH)) == 64)
    moved, there = tab.value(HASH), tab.value("location.hash")
    tab.value("history.back()")
    tab.wait_for(lambda: tab.value(HASH) == first)
    assert tab.value(ALERTS) == []
    assert ready(tab, PAGE, there) == moved, "the link opens the race that it was copied from"
    assert tab.value(ALERTS) == []
    tab.value(f"void (location.hash = {json.dumps(there.replace(moved[:8], '00000000'))})")
    tab.wait_for(lambda: tab.value(ALERTS))
    (alert,) = tab.value(ALERTS)
    assert "00000000" in alert
    assert moved[:8] in alert


def test_hostile_fragments_are_refused_in_a_line(tab: Tab) -> None:
    hashes = (ready(tab), "…", "")
    said = """[...document.querySelectorAll("[role=alert], .wrong")].map((it) => it.textContent).filter(Boolean)"""
    before: list[str] = []
    for fragment in ("#1&rat=1mbit", "#1&rate=" + "9" * 70_000, "#1&rate=<img src=x onerror=alert(1)>"):
        tab.value(f"void (location.hash = {json.dumps(fragment)})")
        tab.wait_for(lambda before=before: tab.value(said) not in ([], before))
        before = tab.value(said)
        assert "expected" in before[0]
        assert "\n" not in before[0]
        assert tab.value(HASH) in hashes
        assert tab.value("document.querySelectorAll('img').length") == 0


def test_a_phone_sees_all_of_it(tab: Tab, tmp_path: Path) -> None:
    # In a frame as wide as a phone, since a window is not made so narrow everywhere. A file may look at one in its folder.
    (tmp_path / "page.html").write_bytes(PAGE.read_bytes())
    frame = tmp_path / "phone.html"
    frame.write_text(f'<iframe src="page.html" style="border:0;width:{WIDTH}px;height:800px"></iframe>')
    tab.open(frame)
    tab.into_frame()
    settled(tab)
    assert tab.value("innerWidth") == WIDTH
    assert tab.value("document.documentElement.scrollWidth") <= WIDTH
    beyond = f"""[...document.querySelectorAll("form *, main canvas")]
        .filter((it) => it.getBoundingClientRect().right > {WIDTH}.5).map((it) => it.outerHTML)"""
    assert tab.value(beyond) == []


def test_the_keyboard_alone_moves_the_cursor_and_the_zoom(tab: Tab) -> None:
    ready(tab)
    for _ in range(100):
        tab.keys(["Tab"])
        if tab.value("document.activeElement.className") == "cursor":
            break
    readout = "document.querySelector('.charts .cursor').ariaValueText"
    tab.keys(["]"])
    tab.wait_for(lambda: " s, Window cubic " in tab.value(readout))
    at = tab.value(readout)
    tab.keys(["ArrowRight"])
    tab.wait_for(lambda: tab.value(readout) != at)
    strokes = "document.querySelector('.charts canvas').toDataURL()"
    whole = tab.value(strokes)
    tab.keys(["+"])
    tab.wait_for(lambda: tab.value(strokes) != whole)
    tab.keys(["0"])
    tab.wait_for(lambda: tab.value(strokes) == whole)


def test_each_key_moves_each_slider_by_a_step(tab: Tab) -> None:
    ready(tab)
    sliders = "document.querySelectorAll('input[type=range]')"
    for at in range(tab.value(f"{sliders}.length")):
        slider = f"{sliders}[{at}]"
        tab.value(f"{slider}.focus()")
        # Of one slider all keys: each step waits for its recording, and an address that still has to come is none to compare.
        every = ("ArrowUp", "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowRight")
        for key in every if at == 0 else every[1:3]:
            spoken, address = tab.value(f"{slider}.ariaValueText"), tab.value("location.hash")
            tab.keys([key])
            tab.wait_for(lambda slider=slider, was=spoken: tab.value(f"{slider}.ariaValueText") != was)
            tab.wait_for(lambda was=address: tab.value("location.hash") != was and tab.value(ENTERED))
