"""The pages without figures in a browser: on a desk and on a phone, light and dark, nothing is cut off or blocked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragstrip.display import html
from dragstrip.report import viewer
from dragstrip.studies.passport import page as passport

from .browser import Browser

COMMAND = "dragstrip compare --rate 50mbit --rtt 30ms --queue 'bfifo limit 187500' --duration 60s --together vegas+0.3s reno"
ROW: dict[str, Any] = {
    "id": "beside-one-reno-50-30-4bdp-ratio-of-the-goodputs",
    "chapter": "beside",
    "title": "beside one reno at 50 Mbit/s, 30 ms, 4 BDP",
    "measure": "ratio of goodputs",
    "unit": "to 1",
    "formula": "the larger goodput over the smaller, both from 10 s on",
    "kind": "T",
    "rule": "at most 10",
    "source": "RFC 8085 3.1 as read in RFC 9331 4.3.1: within an order of magnitude",
    "verdict": "missed, as by CUBIC",
    "value": 36.9,
    "values": [36.9],
    "baselines": {"cubic": {"value": 1.14}, "reno": {"value": 2.1}},
    "theory": {"law": "Mathis", "value": 2.5, "deviation": 0.5, "valid": "with few losses"},
    "failure": "the run ended before its time",
    "replay": COMMAND,
}
PASSPORT: dict[str, Any] = {
    "algorithm": "vegas",
    "version": "0",
    "suite": 1,
    "engine": "sim",
    "kernel": None,
    "quick": True,
    "sentences": {"good": "Good at: nothing."},
    "chapters": [{"name": "beside", "title": "beside others", "rows": 1, "verdicts": {"missed": 1}}],
    "worst": [ROW["id"]],
    "harm": [
        {"by": "vegas", "to": "reno", "path": f"{rate} Mbit/s, 30 ms, 1 BDP", "harm": 0.5}
        for rate in range(8)
    ],
    "rows": [ROW],
    "not_run": [],
    "not_tested": [{"what": "73 of 124 rows", "why": "--quick leaves them out"}],
}


def cells() -> str:
    """The page of a sweep's runs, with one cell."""
    line = (["0", "1", "competitor (reno’s run)", "cubic", "9.41 Mbit/s", "47.5 ms", "76"], COMMAND)
    content = {"anchor": "c0", "settings": "path.rate 1mbit, path.rtt 10ms", "lines": [line]}
    script = viewer.script(viewer.COPYING)
    return html.render("studies/sweep/cells.html", title="Runs", script=script, cells=[content])


@pytest.mark.parametrize("name", ["passport", "cells"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_page_fits_and_loads_nothing(
    browser: Browser, tmp_path: Path, name: str, scheme: str, width: int
) -> None:
    file = tmp_path / f"{name}.html"
    file.write_text(passport.page(PASSPORT) if name == "passport" else cells(), encoding="utf-8")
    page = browser.page(file, width=width, prefers_color_scheme=scheme)
    assert page.value("document.documentElement.scrollWidth") <= width
    background = page.value("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(13, 17, 23)")
    assert page.complaints() == []
    assert page.requests() == [file.as_uri()]
    page.close()
