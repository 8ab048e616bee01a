"""The catalogue in the page: its experiments are those of experiments/, and one opens, is run and is linked to."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from dragstrip.experiment import catalogue
from dragstrip.experiment.expand import expand
from play.test_identity import in_node
from play.test_page import HASH, PAGE, go, settled
from play.test_page_more import fill, press, text
from viewer.browser import Browser

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="no page of the playground: make play")


@pytest.fixture(scope="module")
def shipped() -> dict[str, Any]:
    block = re.search(r'id="dragstrip-catalogue">([^<]*)<', PAGE.read_text())
    assert block
    told: dict[str, Any] = json.loads(runpy.run_path(str(ROOT / "playground/pack.py"))["unpacked"](block[1]))
    return told


def test_every_experiment_is_there_with_all_its_claims(shipped: dict[str, Any]) -> None:
    assert sorted(shipped) == sorted(catalogue.files())
    for name, told in shipped.items():
        experiment, _ = catalogue.load(name)
        assert told["title"] == experiment.title
        assert [claim[0] for claim in told["claims"]] == [claim.id for claim in experiment.claims], name


def test_each_run_is_the_command_lines(shipped: dict[str, Any], tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []
    wanted = []
    for name, told in shipped.items():
        experiment, source = catalogue.load(name)
        runs = [run for run in expand(experiment, source) if run.repeat == 0]
        picks = {0, len(runs) // 2, len(runs) - 1}
        asked += [{"experiment": told["content"], "pick": pick} for pick in sorted(picks)]
        wanted += [([run.name for run in runs], runs[pick].scenario) for pick in sorted(picks)]
    for (names, scenario), found in zip(wanted, in_node(asked, tmp_path), strict=True):
        assert found["names"] == names
        assert json.loads(found["scenario"]) == scenario


def test_an_experiment_opens_with_its_claims_and_has_a_link(browser: Browser) -> None:
    page = browser.page(PAGE)
    first = settled(page)
    fill(page, "#catalogue", "geni-tcp/step1")
    page.wait_for(lambda: page.value(HASH) not in (first, "…"))
    settled(page)
    rows = page.value("[...document.querySelectorAll('.claims tbody tr')].map((it) => it.innerText)")
    experiment, _ = catalogue.load("geni-tcp/step1")
    assert len(rows) == len(experiment.claims)
    assert "dragstrip run geni-tcp/step1" in text(page, "details code")
    assert page.value("location.hash") == "#1&run=geni-tcp/step1&n=1"
    one = page.value(HASH)
    go(page, "#1&run=geni-tcp/step1&n=2")
    page.wait_for(lambda: page.value(HASH) not in (one, "…"))
    settled(page)
    press(page, "Leave for the form's race")
    page.wait_for(lambda: page.value("document.querySelectorAll('#rate').length") == 1)
    fill(page, "#rate", "5mbit")
    page.wait_for(lambda: "rate=5mbit" in page.value("location.hash"))
    assert page.value("document.querySelectorAll('.claims').length") == 0
    go(page, "#1&run=geni-tcp/step99")
    page.wait_for(lambda: text(page, "[role=alert]"))
    assert "expected an experiment of the catalogue" in text(page, "[role=alert]")
    assert page.complaints() == []
    page.close()
