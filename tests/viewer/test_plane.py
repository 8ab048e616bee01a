"""The plane of throughput and delay: published points beside ours, and links to a contender's panels."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import vl_convert

import dragstrip
from dragstrip.report import charts, plane, published, vega
from dragstrip.report.load import load
from dragstrip.results.comparison.setups import Setup, algorithms_of, setups_of
from dragstrip.results.comparison.stats import rows_of

from .browser import Browser
from .texts import texts

CLAIM = {"source": "table 1", "where": {"cc": "cubic"}, "tolerance": "50%"}
EXPERIMENT = {
    "title": "Published",
    "duration": "3s",
    "path": {"rate": "5mbit", "rtt": "20ms"},
    "flows": [{"cc": "cubic"}],
    "vary": {"flows.cc": ["cubic", "vegas"]},
    "claims": [
        {**CLAIM, "id": "rtt", "metric": "rtt_ms_p50", "value": 0.06, "unit": "s"},
        {**CLAIM, "id": "goodput", "metric": "goodput_bps", "range": [4000, 5000], "unit": "kbit/s"},
        {**CLAIM, "id": "later", "metric": "goodput_bps", "value": 1, "unit": "Mbit/s"},
        {
            **CLAIM,
            "id": "vegas",
            "where": {"cc": "vegas"},
            "metric": "goodput_bps",
            "value": 5,
            "unit": "Mbit/s",
        },
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("plane") / "out"
    dragstrip.run(dragstrip.Experiment.build(EXPERIMENT), out)
    return out


@pytest.fixture(scope="module")
def setup(folder: Path) -> Setup:
    bundle = load(folder)
    (setup,) = setups_of(bundle.runs, dict.fromkeys(algorithms_of(bundle.runs), "#02387a"))
    return setup


def test_a_contender_with_both_published_figures_has_a_point(setup: Setup) -> None:
    claims = EXPERIMENT["claims"]
    assert published.points(claims, setup) == {"cubic": (pytest.approx(60.0), pytest.approx(4.5e6))}  # type: ignore[arg-type]
    ratio = [{**claim, "over": {"cc": "vegas"}} for claim in claims]  # type: ignore[union-attr]
    assert published.points(ratio, setup) == {}
    everybody = [{**claim, "where": {}} for claim in claims]  # type: ignore[union-attr]
    assert published.points(everybody, setup) == {}


def test_it_is_hollow_in_vega_lite_and_in_the_static_picture(setup: Setup) -> None:
    (figure,) = charts.planes(setup, rows_of(setup), {"cubic": (900.0, 4.5e6)})
    assert "Published: cubic 900 ms, 4.50 Mbit/s." in figure.description
    spec = vega.spec(figure)
    (layer,) = [layer for layer in spec["layer"] if layer["mark"].get("filled") is False]
    assert layer["data"]["values"] == [{"x": 900.0, "y": 4.5, "who": "cubic"}]
    assert layer["encoding"]["x"]["scale"]["domain"][1] > 900
    drawing = vl_convert.vegalite_to_svg(spec, vl_version="5.20")
    assert 'fill="none"' in drawing or 'fill="transparent"' in drawing
    static = str(plane.svg(figure))
    (hollow,) = re.findall(r'<circle [^>]*fill="none"[^>]*><title>([^<]*)', static)
    assert hollow == "cubic, published"


def test_a_point_leads_to_its_panels(browser: Browser, folder: Path) -> None:
    page = browser.page(folder / "report.html")
    page.wait_for(lambda: page.value("document.querySelectorAll('.plane .dots a').length === 2"))
    links = page.value(
        "[...document.querySelectorAll('.plane .dots a')].map((link) => link.getAttribute('href'))"
    )
    titles = page.value("""[...document.querySelectorAll('.plane .dots a')]
      .map((link) => document.querySelector(link.getAttribute('href')).querySelector('figcaption').textContent)""")
    assert len(set(links)) == 2
    assert sorted(titles) == ["cubic", "vegas"]
    assert page.value("document.querySelectorAll('.plane circle.published').length") == 1
    assert "Hollow points: the published figures." in page.value(
        "document.querySelector('.answer').textContent"
    )
    assert page.complaints() == []
    page.close()


@pytest.mark.parametrize("width", [1300, 800, 390])
def test_no_text_of_the_plane_overlaps_another(browser: Browser, folder: Path, width: int) -> None:
    page = browser.page(folder / "report.html", width, 844)
    page.wait_for(lambda: page.value("document.querySelectorAll('.plane .dots').length === 2"))
    pictures, faults = page.value(texts(".plane .chart svg"))
    assert pictures >= 1
    assert faults == []
    page.close()
