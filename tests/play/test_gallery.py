"""Links of the gallery in the playground's page."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragstrip.experiment.comparison import compare
from dragstrip.playground import PAGE
from dragstrip.report.load import load, recording_of
from dragstrip.studies.execution.runner import execute, plan
from tools import gallery
from viewer.browser import Browser

from .test_page import go, settled

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="no page of the playground: make play")
RACES = {race.name: race for race in gallery.races()}


@pytest.mark.parametrize("name", ["l4s", "receive-window", "starlink", "wifi", "convergence"])
def test_a_link_opens_its_race(browser: Browser, tmp_path: Path, name: str) -> None:
    """The page's recording is that of the command's first run."""
    race = RACES[name]
    execute(plan(compare(race.algorithms, **race.race)), tmp_path / "out", report=False)
    runs = load(tmp_path / "out").runs
    hashes = [recording_of(run).provenance["recording_sha256"] for run in runs]
    page = browser.page(PAGE)
    first = settled(page)
    go(page, gallery.fragment(race.algorithms, race.race))
    page.wait_for(lambda: settled(page) != first)
    assert settled(page) in hashes
