"""The playground in a notebook's cell: what its sliders say comes back as an experiment."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

import dragstrip
from dragstrip.errors import BadInputError
from dragstrip.playground.cell import WIDGET, Playground
from viewer.browser import Browser

from .test_page import PAGE

NOTEBOOK = """<!doctype html><div id="cell"></div><script type="application/json" id="content">{page}</script>
<script type="module">
{widget}
const state = {{ page: JSON.parse(document.getElementById("content").textContent), experiment: "" }};
window.state = state;
const model = {{ get: (name) => state[name], set: (name, value) => (state[name] = value), save_changes() {{ window.saves = (window.saves ?? 0) + 1; }} }};
const stop = __widget.render({{ model, el: document.getElementById("cell") }});
window.stop = stop;
</script>
"""
"""A cell of a notebook, with a model in the place of a kernel's."""


@pytest.mark.skipif(not PAGE.exists(), reason="no page of the playground: make play")
def test_the_frame_tells_its_race(browser: Browser, tmp_path: Path) -> None:
    shown = dragstrip.play("cubic", "bbr", rate="8mbit", rtt="30ms", together=True)
    widget = WIDGET.read_text().replace("export default", "const __widget =")
    file = tmp_path / "cell.html"
    content = json.dumps(shown.html).replace("<", "\\u003c")
    file.write_text(NOTEBOOK.format(page=content, widget=widget), encoding="utf-8")
    page = browser.page(file.as_uri())
    page.wait_for(lambda: page.value("window.state?.experiment") or False)
    before = json.loads(page.value("window.state.experiment"))
    assert dragstrip.Experiment.build(before) == shown.experiment
    page.value(
        """(() => {
            const inside = document.querySelector("iframe").contentDocument;
            const slider = inside.querySelector("input[type=range]");
            slider.value = slider.max;
            slider.dispatchEvent(new Event("input", { bubbles: true }));
            return true;
        })()"""
    )
    page.wait_for(lambda: json.loads(page.value("window.state.experiment")) != before)
    after = dragstrip.Experiment.build(json.loads(page.value("window.state.experiment")))
    assert after != shown.experiment
    assert {flow.cc for flow in after.flows} == {flow.cc for flow in shown.experiment.flows}
    page.value("(window.stop(), true)")
    page.close()


def test_the_experiment_is_the_one_that_the_widget_heard() -> None:
    race = dragstrip.compare(["cubic"], rate="10mbit", rtt="40ms")
    shown = Playground("<html></html>", race)
    assert shown.experiment == race
    with pytest.raises(BadInputError, match=r"^algorithms: is needed: play"):
        _ = Playground("<html></html>").experiment
    if importlib.util.find_spec("anywidget") is None:
        pytest.skip("no anywidget")
    bundle = shown._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in (bundle[0] if isinstance(bundle, tuple) else bundle)
    other = dragstrip.compare(["bbr"], rate="20mbit", rtt="40ms")
    shown._widget.experiment = json.dumps(other.content())
    assert shown.experiment == other


def test_without_anywidget_the_page_is_in_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    shown = Playground("<html></html>")._repr_mimebundle_()
    assert shown["text/html"].startswith("<iframe")
    assert shown["text/plain"].startswith("<Playground")
