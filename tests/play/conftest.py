"""A browser for the tests of the playground."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from viewer.browser import Browser, program


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium with a profile of the module's own; without Chromium the test is skipped."""
    chromium = program()
    if chromium is None:
        pytest.skip("no Chromium: apt-get install chromium")
    browser = Browser(chromium, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()
