"""The pytest plugin: a fixture `race`, and the report of each test with it that fails.

Reports are kept in `dragstrip-failures/TEST-N` below pytest's root folder, or in the folder of
`--dragstrip-reports`. A folder of an earlier failure of the same test is replaced.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dragstrip.interop.result import Result

RESULTS = pytest.StashKey["list[Result]"]()
FAILED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the folder of reports."""
    parser.addoption(
        "--dragstrip-reports",
        metavar="FOLDER",
        default="dragstrip-failures",
        help="folder for the reports of races in tests that fail",
    )


@pytest.fixture
def race(request: pytest.FixtureRequest) -> Generator[Callable[..., Result], None, None]:
    """`dragstrip.race`; if the test fails, each of its races is kept with its report."""
    from dragstrip import race as run_race

    results: list[Result] = []
    request.node.stash[RESULTS] = results

    def kept(*algorithms: Any, **options: Any) -> Result:
        result = run_race(*algorithms, **options)
        results.append(result)
        return result

    yield kept
    results.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write the races of a test that failed, and name their folders in its report."""
    report = yield
    results = item.stash.get(RESULTS, [])
    if report.when == "call" and report.failed and results:
        folder = item.config.rootpath / str(item.config.getoption("--dragstrip-reports"))
        places = [_write(result, folder, item, number) for number, result in enumerate(results, 1)]
        report.sections.append(
            ("dragstrip", "\n".join(f"report: {place / 'report.html'}" for place in places))
        )
    return report


def _write(result: Result, folder: Path, item: pytest.Item, number: int) -> Path:
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", item.name).strip("-")[:80]
    place = folder / f"{name}-{number}"
    if (place / "result.json").is_file():
        shutil.rmtree(place)
    result.write(place)
    return place
