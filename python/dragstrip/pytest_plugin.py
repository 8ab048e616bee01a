"""The pytest plugin: fixtures `race` and `path_shell`, the mark `path`, and a report of each test that fails.

A test with `path_shell` runs once for each path of its marks `path`; it is skipped, with what helps, where
this machine lacks something that the engine needs. The runs of one that fails are lines of its report.

Reports of races are kept in `dragstrip-failures/TEST-HASH/N` below pytest's root folder, or in the folder of
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
    from dragstrip.interop.path_shell.shell import Shell, ShellRun
    from dragstrip.interop.result import Result

RESULTS = pytest.StashKey["list[Result]"]()
SHELL_RUNS = pytest.StashKey["list[ShellRun]"]()
LACKS = pytest.StashKey["dict[str, str]"]()
"""By engine and its options: what this machine lacks, looked for once."""
PRINTED_MAX = 40
"""Lines of a program's output in the report of a test that fails, at most."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the folder of reports."""
    parser.addoption(
        "--dragstrip-reports",
        metavar="FOLDER",
        default="dragstrip-failures",
        help="folder for the reports of races in tests that fail",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line(
        "markers",
        "path(*names, **options): paths on which a test with the fixture path_shell runs, once for each; "
        "options of dragstrip.shell describe another path, its engine and its server",
    )
    config.stash[LACKS] = {}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have a test with `path_shell` run once for each path of its marks."""
    if "path_shell" not in metafunc.fixturenames:
        return
    paths = [path for mark in metafunc.definition.iter_markers("path") for path in _paths(mark)]
    if not paths:
        expected = 'a mark such as @pytest.mark.path("LTE", engine="vm") beside the fixture path_shell'
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: {expected}")
    ids = [_path_name(path) for path in paths]
    metafunc.parametrize("path_shell", paths, ids=ids, indirect=True)


def _paths(mark: pytest.Mark) -> list[dict[str, Any]]:
    """Return the options of each path of a mark."""
    if not mark.args:
        return [dict(mark.kwargs)]
    return [{"path": name, **mark.kwargs} for name in mark.args]


def _path_name(options: dict[str, Any]) -> str:
    """Return a test's identifier: its path, and the engine."""
    words = ("path", "rate", "rate_bps", "medium", "trace", "rtt", "rtt_ms", "loss", "loss_percent")
    parts = [str(options[name]) for name in (*words, "engine") if options.get(name) is not None]
    return "-".join(parts) or "path"


@pytest.fixture
def path_shell(request: pytest.FixtureRequest) -> Generator[Shell, None, None]:
    """`dragstrip.shell` on a path of the mark, in the folder of the test's file.

    The test is skipped where this machine lacks what the engine needs.
    """
    from dragstrip import shell

    options = {"folder": request.path.parent, **request.param}
    shell_object = shell(**options)
    lacks = request.config.stash[LACKS]
    key = repr((shell_object.engine, sorted(options.get("engine_options", {}).items()), options.get("cc")))
    if key not in lacks:
        lacks[key] = shell_object.missing()
    if lacks[key]:
        pytest.skip(lacks[key])
    request.node.stash[SHELL_RUNS] = shell_object.runs
    yield shell_object
    shell_object.runs.clear()


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
    """Write the races of a test that failed, in its set-up too, and name their folders in its report.

    Likewise commands behind a path, as lines: how each ended, the command that repeats it, its output.
    """
    report = yield
    if report.when != "teardown" and report.failed:
        report.sections += [_section(run) for run in item.stash.get(SHELL_RUNS, [])]
    results = item.stash.get(RESULTS, [])
    if report.when != "teardown" and report.failed and results:
        folder = item.config.rootpath / str(item.config.getoption("--dragstrip-reports"))
        report.sections.append(("dragstrip", "\n".join(_lines(results, folder, item.nodeid))))
    return report


def _section(run: ShellRun) -> tuple[str, str]:
    """Return a command behind a path as a section of a report: its title and its lines."""
    lines = str(run).splitlines()
    cut = [f"... {len(lines) - PRINTED_MAX} lines ..."] * (len(lines) > PRINTED_MAX)
    return f"dragstrip: {run.headline}", "\n".join([f"repeat: {run.command}", *cut, *lines[-PRINTED_MAX:]])


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
