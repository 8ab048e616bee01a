"""Kernels with netem in real time: this machine's if it is asked, or that of a guest that `make test-hosts` boots."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from netns.conftest import machine as any_machine
from netns.conftest import program

__all__ = ["any_machine", "program"]

ASKED = "DRAGSTRIP_HOSTS"
"""`full` where `make test-hosts` runs them: they are minutes of everybody's time."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    inside = os.environ.get(ASKED) == "full"
    for item in items:
        if item.path.parent != Path(__file__).parent:
            continue
        if item.path.name == "test_guest.py":
            if inside:
                item.add_marker(pytest.mark.skip(reason="it boots guests itself: make test, outside of one"))
        elif not inside:
            item.add_marker(pytest.mark.skip(reason="minutes in real time: make test-hosts"))


@pytest.fixture(scope="session")
def machine(any_machine: dict[str, Any]) -> dict[str, Any]:
    """A machine whose kernel has netem."""
    if "netem" in any_machine["lacks"]:
        pytest.skip("this kernel has no netem: `make test-hosts` boots one that has")
    return any_machine
