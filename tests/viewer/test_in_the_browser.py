"""The page in a real browser: every figure is drawn, at every width and in every scheme, under its own policy."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dragstrip
from dragstrip.display import html
from dragstrip.display.colours import KNOWN, ON_DARK
from dragstrip.experiment.types import Experiment
from dragstrip.report import embed, viewer
from dragstrip.report.figure import Axis, Figure, Panel, Pie, SharePart, Stroke, TimeLines
from dragstrip.report.series import Curve
from dragstrip.report.write import write_report
from report import synthetic

from .browser import Browser, Page
from .conftest import PLANS

PageOf = Callable[[str], Path]
# The mark that carries a figure's data, by its kind.
MARKS = {
    "bars": "rect.bar",
    "interval": "rect.bar",
    "distribution": "path.curve",
    "shares": "path.area",
    "pie": "path.slice",
    "scatter": "circle",
    "timelines": "path.curve",
}
FIGURES = """[...document.querySelectorAll("figure")].map((figure) => {
  const content = JSON.parse(figure.querySelector(".chart-data").textContent);
  const svg = figure.querySelector("svg.plot");
  const box = svg.getBoundingClientRect();
  const inside = (mark) => {
    const own = mark.getBoundingClientRect();
    return own.left >= box.left - 2 && own.right <= box.right + 2;
  };
  return {
    name: content.name, kind: content.kind, label: svg.getAttribute("aria-label"), role: svg.getAttribute("role"),
    marks: [...svg.querySelectorAll(MARK[content.kind])].map((mark) => [mark.getAttribute("d") ?? "", inside(mark)]),
    texts: [...svg.querySelectorAll("text")].filter((text) => text.textContent).map((text) => [text.textContent, inside(text)]),
    overlaps: svg.querySelectorAll("text").length && [...svg.querySelectorAll("text.tick")].map((text) => text.textContent),
    rows: figure.querySelectorAll("details tbody tr").length,
    wide: box.right <= document.documentElement.clientWidth + 1,
  };
})""".replace("MARK[", f"({json.dumps(MARKS)})[")


def expected(name: str) -> set[str]:
    plan = PLANS[name]
    figures = {"goodput", "rtt", "retransmissions", "delay-throughput", "cdf-rtt", "cdf-throughput"}
    contenders = {flow.cc for run in plan.runs for flow in run.flows}
    figures |= {f"timeline-{number}" for number in range(1, len(contenders) + 1)}
    if 2 <= len(contenders) <= 8:
        figures.add("overlay")
    return figures | ({"shares", "pie", "jain"} if name == "together" else set())


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1300, 390])
@pytest.mark.parametrize("name", PLANS)
def test_every_figure_is_drawn(browser: Browser, page_of: PageOf, name: str, width: int, scheme: str) -> None:
    page = browser.page(page_of(name), width, prefers_color_scheme=scheme)
    figures = page.value(FIGURES)
    assert {figure["name"] for figure in figures} == expected(name)
    for figure in figures:
        assert figure["role"] == "img"
        assert len(figure["label"]) > 20
        assert figure["rows"] > 0, "its numbers as a table"
        assert figure["wide"], "no wider than the page"
        assert figure["marks"], figure["name"]
        for path, inside in figure["marks"]:
            assert inside
            assert "NaN" not in path
            assert "undefined" not in path
        assert all(inside for _, inside in figure["texts"]), figure["texts"]
        assert "NaN" not in str(figure["texts"])
    assert page.value("document.documentElement.scrollWidth") <= width
    ground = page.value("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(13, 17, 23)")
    reno = page.value("getComputedStyle(document.querySelector('[data-colour] rect.bar')).fill")
    assert reno == rgb(KNOWN["reno"] if scheme == "light" else ON_DARK[KNOWN["reno"]])
    assert page.complaints() == []
    assert page.requests() == [page_of(name).resolve().as_uri()], "the page itself and nothing else"
    page.close()


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))})"


def test_the_policy_stops_what_is_not_the_pages_own(
    browser: Browser, page_of: PageOf, tmp_path: Path
) -> None:
    """That the tests above see a violation if there is one."""
    text = page_of("alone").read_text(encoding="utf-8")
    file = tmp_path / "foreign.html"
    foreign = '<script>document.title = "foreign"</script><p style="color:red">x</p><img src="x.png">'
    file.write_text(text.replace("</main>", f"{foreign}</main>"), encoding="utf-8")
    page = browser.page(file)
    page.wait_for(lambda: len(page.complaints()) >= 3)
    assert page.value("document.title") != "foreign"
    told = " ".join(page.complaints())
    for directive in ("script-src", "style-src", "default-src 'none'"):
        assert directive in told
    page.close()


def test_without_scripts_the_tables_remain(browser: Browser, page_of: PageOf) -> None:
    page = browser.page(page_of("together"), script=False)
    text = page.ask("DOM.getDocument", depth=-1)
    page.ask("Emulation.setScriptExecutionDisabled", value=False)
    assert "which does not run here" in json.dumps(text)
    assert page.value("document.querySelectorAll('svg.plot').length") == 0
    assert page.value("document.querySelectorAll('figure details tbody tr').length") > 100
    page.close()


SAVED = """(async () => {
  const texts = [];
  const make = URL.createObjectURL;
  URL.createObjectURL = (blob) => { texts.push(blob.text()); return make(blob); };
  for (const button of document.querySelectorAll("figure button.csv")) button.click();
  URL.createObjectURL = make;
  return Promise.all(texts);
})()"""


def test_every_figure_is_saved_as_csv(browser: Browser, page_of: PageOf) -> None:
    page = browser.page(page_of("together"))
    texts = page.value(SAVED)
    names = page.value(
        "[...document.querySelectorAll('.chart-data')].map((data) => JSON.parse(data.textContent).name)"
    )
    saved = {name: list(csv.reader(text.splitlines())) for name, text in zip(names, texts, strict=True)}
    for name, (head, *body) in saved.items():
        assert body, name
        assert {len(row) for row in body} == {len(head)}, name
        assert not any(cell in ("NaN", "undefined", "") for row in body for cell in row[2:]), name
    goodput = page.value(
        "[...document.querySelectorAll('.chart-data')].map((data) => JSON.parse(data.textContent))"
        ".find((figure) => figure.name === 'goodput').bars"
    )
    assert [(row[0], float(row[1])) for row in saved["goodput"][1:]] == [(bar[0], bar[2]) for bar in goodput]
    assert sum(float(row[2]) for row in saved["pie"][1:]) == pytest.approx(1.0)
    assert page.complaints() == []
    page.close()


CURSOR = "document.querySelectorAll('figure')[{}].querySelector('.cursor')"


def readouts(page: Page) -> list[str]:
    return page.value(
        "[...document.querySelectorAll('.columns text.readout')].map((text) => text.textContent)"
    )


def order(page: Page, name: str) -> int:
    names = page.value(
        "[...document.querySelectorAll('.chart-data')].map((data) => JSON.parse(data.textContent).name)"
    )
    return names.index(name)


def test_one_cursor_of_time_for_all_figures(browser: Browser, page_of: PageOf) -> None:
    page = browser.page(page_of("together"))
    handle = CURSOR.format(order(page, "timeline-1"))
    assert set(readouts(page)) == {""}
    page.value(f"{handle}.scrollIntoView({{block: 'center'}})")
    left, top, wide, high = page.value(
        f"(() => {{ const b = {handle}.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; }})()"
    )
    page.mouse(left + wide / 2, top + high / 2)
    shown = readouts(page)
    # Four figures of four panels, each with its moment.
    assert len(shown) == 4 * 5
    assert shown.count("10 s") == 4
    assert all(shown)
    of_shares = f"document.querySelectorAll('figure')[{order(page, 'shares')}].querySelector('text.readout')"
    assert page.value(f"{of_shares}.textContent") == "10 s", "shares too"
    page.mouse(5, 5)
    assert set(readouts(page)) == {""}
    page.close()


def test_arrow_keys_read_a_figure(browser: Browser, page_of: PageOf) -> None:
    page = browser.page(page_of("alone"))
    handle = CURSOR.format(order(page, "timeline-1"))
    page.value(f"{handle}.focus()")
    for name in ("Home", "ArrowRight", "ArrowRight"):
        page.key(name)
    page.key("ArrowRight", modifiers=8)
    now = page.value(f"[{handle}.ariaValueNow, {handle}.ariaValueText]")
    # Two hundredths and, with Shift, a tenth of 20 s.
    assert float(now[0]) == pytest.approx(2.4)
    assert now[1].startswith("2.40 s, Window ")
    assert "Queue" in now[1]
    page.key("Escape")
    assert set(readouts(page)) == {""}
    handle = CURSOR.format(order(page, "cdf-rtt"))
    page.value(f"{handle}.focus()")
    page.key("End")
    page.key("PageDown")
    level, words = page.value(f"[{handle}.ariaValueNow, {handle}.ariaValueText]")
    assert float(level) == pytest.approx(0.9)
    assert words.startswith("90 % at or below: ")
    # What the cursor says is what the table says.
    figure = f"document.querySelectorAll('figure')[{order(page, 'cdf-rtt')}]"
    table: list[list[str]] = page.value(
        f"[...{figure}.querySelectorAll('details tr')].map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    row = next(row for row in table if row[0] == "90 %")
    for label, value in zip(table[0][1:], row[1:], strict=True):
        said = words.split(f"{label} ")[1].split(" ms")[0]
        assert float(said) == pytest.approx(float(value), rel=0.01)
    page.close()


def test_an_algorithm_can_be_taken_away(browser: Browser, page_of: PageOf) -> None:
    page = browser.page(page_of("alone"))
    count = "[...document.querySelectorAll('{}')].filter((part) => part.checkVisibility()).length"
    assert page.value(count.format("figure")) == 13
    page.value("document.querySelector('.toggles input[value=vegas]').click()")
    assert page.value(count.format("figure")) == 12
    assert page.value("document.querySelectorAll('[data-faded]').length") > 5
    # Also after the figures are drawn anew.
    size = {"width": 700, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.ask("Emulation.setDeviceMetricsOverride", **size)
    page.wait_for(lambda: page.value("document.querySelector('.three svg.plot').clientWidth") < 400)
    assert page.value("document.querySelectorAll('[data-faded]').length") > 5
    assert page.complaints() == []
    page.close()


def test_forced_colours_and_stillness(browser: Browser, page_of: PageOf) -> None:
    page = browser.page(page_of("alone"), forced_colors="active", prefers_reduced_motion="reduce")
    look = "getComputedStyle(document.querySelector('{}')).{}"
    ink = page.value("getComputedStyle(document.body).color")
    assert page.value(look.format("path.curve", "stroke")) == ink
    dashes = page.value(
        f"[...document.querySelectorAll('figure')[{order(page, 'cdf-rtt')}].querySelectorAll('path.curve')]"
        ".map((curve) => curve.getAttribute('stroke-dasharray'))"
    )
    assert len(set(dashes)) == 6, "told apart without colours"
    assert page.value("document.getAnimations().length") == 0
    page.close()


def _page_with(figure: Figure, folder: Path) -> Path:
    """A page of one figure alone."""
    file = folder / "figure.html"
    look, script = viewer.style(), viewer.script()
    file.write_text(
        f'<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{html.policy(look, script)}">'
        f'<style>{look}</style><section><figure><div class="chart"></div>'
        f'<script type="application/json" class="chart-data">{embed.script(figure)}</script></figure></section>'
        f'<script type="module">{script}</script>',
        encoding="utf-8",
    )
    return file


def test_a_part_that_is_everything_is_a_whole_circle(browser: Browser, tmp_path: Path) -> None:
    parts = [
        SharePart("first", KNOWN["reno"], 1.0, 5.0, "100 %"),
        SharePart("second", KNOWN["bbr"], 1.0, 0.0, "0 %"),
    ]
    page = browser.page(_page_with(Figure("pie", "Shares", "Made up.", Pie(parts)), tmp_path))
    first, second = page.value(
        "[...document.querySelectorAll('path.slice')].map((path) => path.getBBox().width * path.getBBox().height)"
    )
    (text,) = page.value("[...document.querySelectorAll('text.figure')].map((text) => text.textContent)")
    assert (first > 10_000, second < 1, text) == (True, True, "first 100 %")
    page.close()


def test_a_thousand_curves_are_one_element_and_one_layout(browser: Browser, tmp_path: Path) -> None:
    times = np.linspace(0, 30, 240)
    rng = np.random.default_rng(1)
    panels = []
    for title in ("Throughput", "RTT", "Window", "Queue"):
        curves = [Curve(times, rng.random(240).cumsum()) for _ in range(1000)]
        stroke = Stroke(curves, KNOWN["reno"], 0.7, opacity=0.3, main=True)
        panels.append(Panel(Axis(f"{title} (x)", 0, 240, "x"), [stroke]))
    figure = Figure("many", "A thousand flows", "Made up.", TimeLines(Axis("Time (s)", 0, 30, "s"), panels))
    page = browser.page(_page_with(figure, tmp_path))
    drawn: Any = page.value(
        "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>"
        " done([...document.querySelectorAll('path.curve')].map((path) => path.getAttribute('d').split('M').length)))))"
    )
    assert drawn == [1001] * 4
    assert page.complaints() == []
    metrics = {metric["name"]: metric["value"] for metric in page.ask("Performance.getMetrics")["metrics"]}
    assert metrics["Nodes"] < 1000
    assert metrics["LayoutCount"] < 20
    page.close()


@pytest.mark.parametrize("scripted", ["report", "cells"])
@pytest.mark.parametrize("touch", [False, True])
def test_a_command_is_copied_by_click_and_touch(
    browser: Browser, page_of: PageOf, tmp_path: Path, scripted: str, touch: bool
) -> None:
    file = page_of("alone")
    if scripted == "cells":
        file = tmp_path / "cells.html"
        script = viewer.script(viewer.COPYING)
        file.write_text(
            f'<!doctype html><meta http-equiv="Content-Security-Policy" content="{html.policy("", script)}">'
            f"<p>not this</p><code class=copy>dragstrip sweep --run 7</code><script>{script}</script>",
            encoding="utf-8",
        )
    page = browser.page(file)
    page.value("document.addEventListener('copy', () => { window.copied = getSelection().toString(); }) ?? 0")
    code = "document.querySelector('code.copy')"
    page.value(f"{code}.scrollIntoView({{block: 'center'}}) ?? 0")
    box = page.value(
        f"(({{left, top, height}}) => [left + 4, top + height / 2])({code}.getBoundingClientRect())"
    )
    if touch:
        page.ask("Emulation.setTouchEmulationEnabled", enabled=True)
        page.ask("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": box[0], "y": box[1]}])
        page.ask("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    else:
        for kind in ("mousePressed", "mouseReleased"):
            page.ask("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)
    page.wait_for(lambda: page.value(f"{code}.dataset.copied"))
    assert page.value(f"{code}.dataset.copied") == "copied"
    assert page.value("window.copied").strip() == page.value(f"{code}.textContent").strip()
    assert page.complaints() == []
    page.close()


def test_a_phone_shows_the_columns_that_decide(browser: Browser, page_of: PageOf) -> None:
    heads = (
        "[...document.querySelectorAll('table.comparison:not(.overview) thead th')]"
        ".filter((head) => head.checkVisibility()).map((head) => head.textContent)"
    )
    wide = browser.page(page_of("alone"), 1300)
    every = wide.value(heads)
    assert len(every) > 8
    assert not wide.value("document.querySelector('.every').checkVisibility()")
    wide.close()
    phone = browser.page(page_of("alone"), 390)
    assert phone.value(heads) == ["Algorithm", "Goodput", "RTT p50", "… of sent"]
    fits = "document.querySelector('table.comparison').parentElement"
    assert phone.value(f"{fits}.scrollWidth <= {fits}.clientWidth")
    phone.value(f"{fits}.querySelector('.every input').click()")
    assert phone.value(heads) == every
    phone.close()


@pytest.mark.parametrize(("name", "kind"), [("goodput", "bars"), ("rtt", "interval"), ("pie", "pie")])
def test_bars_and_slices_are_read_by_mouse_finger_and_keys(
    browser: Browser, page_of: PageOf, name: str, kind: str
) -> None:
    page = browser.page(page_of("together"))
    find = f"""[...document.querySelectorAll("figure")].find((figure) =>
      JSON.parse(figure.querySelector(".chart-data").textContent).name === "{name}")"""
    page.wait_for(lambda: page.value(f"{find}.querySelector('.cursor') !== null"))
    content = json.loads(page.value(f"{find}.querySelector('.chart-data').textContent"))
    assert content["kind"] == kind
    bars = kind != "pie"
    rows = (
        [(bar[0], bar[5]) for bar in content["bars"]]
        if bars
        else [(p["label"], p["note"]) for p in content["parts"]]
    )
    said = f"{find}.querySelector('.reading').textContent"
    assert page.value(said) == ""

    # The arrows go row by row, from the last one up or clockwise from the top.
    page.value(f"{find}.querySelector('.cursor').focus()")
    for label, text in reversed(rows) if bars else rows:
        page.key("ArrowUp")
        assert page.value(said).startswith(f"{label} {text}")
        assert page.value(f"{find}.querySelector('.cursor').getAttribute('aria-valuetext')") == page.value(
            said
        )
    page.key("Escape")
    assert page.value(said) == ""

    # A mouse over each mark, and a finger on it.
    for number, (label, text) in enumerate(rows):
        mark = f"{find}.querySelectorAll('{'g[data-colour]' if bars else 'path.slice'}')[{number}]"
        place = page.value(f"""(() => {{
          const mark = {mark};
          mark.scrollIntoView({{block: "center"}});
          if ({json.dumps(bars)}) {{
            const box = mark.querySelector("rect").getBoundingClientRect();
            return [box.left + 2, box.top + box.height / 2];
          }}
          const box = mark.getBoundingClientRect();
          const svg = mark.ownerSVGElement;
          for (let x = box.left + 1; x < box.right; x += 2) for (let y = box.top + 1; y < box.bottom; y += 2) {{
            const point = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM().inverse());
            if (mark.isPointInFill(point)) return [x, y];
          }}
        }})()""")
        for kind_of in ("mouse", "touch"):
            event = f"""new PointerEvent("{"pointermove" if kind_of == "mouse" else "pointerdown"}",
              {{clientX: {place[0]}, clientY: {place[1]}, pointerType: "{kind_of}", bubbles: true}})"""
            page.value(f"{find}.querySelector('.cursor').dispatchEvent({event})")
            assert page.value(said).startswith(f"{label} {text}"), (number, place)
    assert not page.complaints()


def test_long_names_stay_within_a_narrow_picture(browser: Browser, tmp_path: Path) -> None:
    flows = [
        synthetic.FlowPlan("bbr", "video conference", "s1", 0.5),
        synthetic.FlowPlan("cubic", "software update", "s2", 0.5),
    ]
    synthetic.write(synthetic.Plan([synthetic.RunPlan("both", flows)], duration_s=15.0), tmp_path)
    page = browser.page(write_report(tmp_path), 390)
    for figure in page.value(FIGURES):
        assert all(inside for _, inside in figure["texts"]), (figure["name"], figure["texts"])
    shown = "[...document.querySelectorAll('svg.plot text.figure')].map((text) => text.textContent)"
    assert "50.0 %" in page.value(shown)
    page.close()


def test_many_setups_are_folded_and_open_by_their_address(browser: Browser, tmp_path: Path) -> None:
    experiment = Experiment.build(
        {
            "title": "buffers",
            "duration": "3s",
            "path": {"rate": "5mbit", "rtt": "20ms"},
            "flows": [{"cc": "cubic"}, {"cc": "vegas"}],
            "vary": {"path.queue": ["0.5bdp", "1bdp", "fq_codel"]},
        }
    )
    dragstrip.run(experiment, tmp_path / "out")
    page = browser.page(tmp_path / "out" / "report.html")
    drawn = "[...document.querySelectorAll('#setup-%d .chart')].map((it) => it.childElementCount)"
    small = page.value(
        "[...document.querySelectorAll('#multiples .chart')].map((it) => it.childElementCount)"
    )
    assert len(small) == 3
    assert all(small)
    assert not any(page.value(drawn % 2))
    page.value("location.hash = '#setup-2'")
    page.wait_for(lambda: all(page.value(drawn % 2)))
    assert page.value("document.querySelectorAll('details.setup[open]').length") == 1
    assert not any(page.value(drawn % 3))
    assert page.complaints() == []
    page.close()


@pytest.mark.parametrize("width", [1300, 400])
def test_names_of_capacity_and_of_changes_are_whole(browser: Browser, tmp_path: Path, width: int) -> None:
    changes = ["1s rate=30mbit", "1.9s state=up rate=200mbit"]
    dragstrip.race(
        "cubic", "bbr", rate="20mbit", rtt="20ms", duration="2s", change=changes, out=tmp_path / "out"
    )
    page = browser.page(tmp_path / "out" / "report.html", width=width)
    page.wait_for(lambda: page.value("document.querySelector('.plot.over .label') !== null"))
    cut = page.value(
        """[...document.querySelectorAll('.plot .label')].filter((label) => {
          const [text, frame] = [label, label.ownerSVGElement].map((part) => part.getBoundingClientRect());
          return text.right > frame.right + 1 || text.top < frame.top - 1;
        }).map((label) => label.textContent)"""
    )
    assert page.value("document.querySelectorAll('.plot .label').length") >= 3
    assert cut == []
