"""One Chromium for all tests here, and pages that the report writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dragstrip.report.write import write_report
from report import synthetic
from report.conftest import FIVE

from .browser import Browser, program

PLANS = {
    "alone": synthetic.compare([*FIVE, "exp"], duration_s=20.0),
    "together": synthetic.together(
        {"reno": 0.161, "cubic": 0.119, "vegas": 0.063, "bbr": 0.657}, duration_s=20.0
    ),
    "repeats": synthetic.compare(["reno", "vegas"], repeats=3, duration_s=10.0),
}


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    chromium = program()
    if chromium is None:
        pytest.skip("no Chromium: apt-get install chromium")
    browser = Browser(chromium, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def page_of(tmp_path_factory: pytest.TempPathFactory):  # noqa: ANN201 - a function from name to the page
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            made[name] = write_report(synthetic.write(PLANS[name], tmp_path_factory.mktemp(name)))
        return made[name]

    return get
