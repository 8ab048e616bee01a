"""The pytest plugin: a fixture `race`, and the report of each test with it that fails.

Reports are kept in `dragstrip-failures/TEST-HASH/N` below pytest's root folder, or in the folder of
`--dragstrip-reports`; the hash is of the test's node id. Reports of an earlier failure of the same test are
replaced. A report that cannot be written is a line in the test's output.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Generator, Iterator
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
    """Write the races of a test that failed, in its set-up too, and name their folders in its report."""
    report = yield
    results = item.stash.get(RESULTS, [])
    if report.when != "teardown" and report.failed and results:
        folder = item.config.rootpath / str(item.config.getoption("--dragstrip-reports"))
        report.sections.append(("dragstrip", "\n".join(_lines(results, folder, item.nodeid))))
    return report


def _lines(results: list[Result], folder: Path, node_id: str) -> Iterator[str]:
    """Write the races of a test, and yield a line on each."""
    from dragstrip.errors import DragstripError
    from dragstrip.io.files import make_folder

    name = re.sub(r"[^A-Za-z0-9.-]+", "-", node_id.rpartition("::")[2]).strip("-")[:60]
    place = folder / f"{name}-{hashlib.sha256(node_id.encode()).hexdigest()[:8]}"
    try:
        _clear(place)
    except OSError as error:
        yield f"report: {place}: could not be replaced: {error.strerror}"
        return
    for number, result in enumerate(results, 1):
        if result.folder is not None:
            yield f"report: {result.folder / 'report.html'}"
            continue
        try:
            make_folder(place)
            result.write(place / str(number))
        except (DragstripError, OSError) as error:
            yield f"report: could not be written: {error}"
        else:
            yield f"report: {place / str(number) / 'report.html'}"


def _clear(place: Path) -> None:
    """Remove the reports that this plugin wrote for the test before; nothing else in the folder."""
    if place.is_symlink() or not place.is_dir():
        return
    for entry in place.iterdir():
        if entry.name.isdigit() and not entry.is_symlink() and (entry / "result.json").is_file():
            shutil.rmtree(entry)
