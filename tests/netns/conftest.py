"""The agent for this machine; tests that need its kernel are skipped, by name, where it may make no namespaces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragstrip.engines.agent import binaries
from dragstrip.engines.netns import host
from dragstrip.errors import DragstripError


@pytest.fixture(scope="session")
def program() -> Path:
    try:
        return binaries.program()
    except DragstripError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def machine(program: Path) -> dict[str, Any]:
    """What this machine can do."""
    try:
        return host.about()
    except DragstripError as error:
        pytest.skip(str(error))
