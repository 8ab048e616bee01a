"""Figures for papers, as a browser lays them out: no text overlaps another or leaves its picture."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dragstrip
from dragstrip.report.paper import paper
from dragstrip.report.write import write_report

from .browser import Browser
from .texts import HELVETICA, texts

RACES = {
    "own round trips": {
        "algorithms": ["cubic", "bbr@80ms", "vegas@10ms"], "rate": "10mbit", "rtt": "40ms", "together": True,
    },
    "a long queue": {"algorithms": ["cubic", "bbr", "vegas"], "rate": "100mbit", "rtt": "40ms", "queue": "fq_codel"},
}  # fmt: skip
STATIC = {
    "title": "Combined changes",
    "duration": "2s",
    "path": {"rate": "5mbit", "rtt": "20ms"},
    "flows": [{"cc": "cubic"}],
    "vary": {
        "path.rate": ["2mbit", "5mbit"],
        "path.queue": ["1bdp", "fq_codel"],
        "flows.cc": ["cubic", "cubic:beta=0.8", "reno"],
    },
}


@pytest.fixture(scope="module", params=["combined", *RACES])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("figures") / "out"
    if request.param == "combined":
        dragstrip.run(dragstrip.Experiment.build(STATIC), out)
    else:
        race = dict(RACES[request.param])
        dragstrip.race(*race.pop("algorithms"), duration="2s", out=out, **race)  # type: ignore[arg-type]
    return out


@pytest.mark.parametrize("width", ["84mm", None])
def test_no_text_overlaps_another_or_leaves_its_picture(
    browser: Browser, folder: Path, width: str | None, tmp_path: Path
) -> None:
    write_report(folder, paper(["svg"], width))
    files = sorted((folder / "figures").glob("*.svg"))
    assert {"path", "overlay"} <= {file.stem.rpartition("-")[2] for file in files}
    page = tmp_path / "figures.html"
    page.write_text("<!doctype html>" + "".join(f"<figure>{file.read_text()}</figure>" for file in files))
    opened = browser.page(page, 1300, 900)
    pictures, faults = opened.value(texts("figure > svg", HELVETICA))
    assert pictures == len(files)
    assert faults == []
    opened.close()


def test_curves_on_common_axes_have_a_legend_and_differ_without_colour(folder: Path) -> None:
    write_report(folder, paper(["svg"], "84mm"))
    overlays = list((folder / "figures").glob("*overlay.svg"))
    assert overlays
    for file in overlays:
        drawing = file.read_text()
        words = re.findall(r"<text[^>]*>([^<]+)</text>", drawing)
        names = {word for word in words if re.fullmatch(r"(cubic|bbr|vegas|reno)[\w:.=@]*", word)}
        assert len(names) == 3
        looks = set(re.findall(r'stroke="(#\w+)" stroke-width="1.3" stroke-dasharray="([\d,]+)"', drawing))
        assert len({dash for _, dash in looks}) == len(looks) == 3, file.name
