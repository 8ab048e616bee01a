"""Who may run at the same time, where pytest runs in several processes (`make test`, `make check`).

A file's tests stay together in one process, in pytest-randomly's order, so that what its fixtures make is made once.
"""

from __future__ import annotations

import fcntl
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ALONE = (
    "netns/",
    "ssh/",
    "hosts/",
    "torture/test_killed.py",
    "torture/test_torture.py::test_a_sample_of[namespaces]",
    "test_core_build.py",
    "test_time_limit.py",
    "viewer/test_in_the_browser.py::test_a_thousand_curves_are_drawn_in_three_seconds",
)
"""Tests that measure in real time, or count what is on the machine: while one of them runs, no other does."""
KERNEL = ("vm/", "test_conformance.py")
"""Tests that boot a kernel: one after the other, in one process, which compiles and freezes what they share."""
APART = ("torture/test_torture.py", "test_outputs.py")
"""Long tests that share nothing: each goes to whichever process is free."""


def begins(nodeid: str, places: tuple[str, ...]) -> bool:
    """Whether a test is in one of these folders or files."""
    return nodeid.removeprefix("tests/").startswith(places)


def together(nodeid: str) -> str:
    """The name of those tests that one process runs, this one among them."""
    for name, places in (("alone", ALONE), ("kernel", KERNEL), (nodeid, APART)):
        if begins(nodeid, places):
            return name
    return nodeid.partition("::")[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if begins(item.nodeid, ALONE):
            item.add_marker("alone")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """In place of `--dist loadgroup`, whose marks pytest-xdist 3.8 loses with pytest 9.2."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return together(nodeid)

    return Together(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if not hasattr(item.config, "workerinput"):  # one process: every test is alone
        return (yield)
    shared = Path(item.config.getoption("basetemp")).parent
    with turn(shared, alone=item.get_closest_marker("alone") is not None):
        return (yield)


@contextmanager
def turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """The machine to oneself, or together with others. Who wants it alone shuts the gate: nobody overtakes."""
    with (folder / "machine.lock").open("w") as machine:
        with (folder / "gate.lock").open("w") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            fcntl.flock(machine, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        try:
            yield
        finally:
            fcntl.flock(machine, fcntl.LOCK_UN)  # a process that was forked may have the file too
