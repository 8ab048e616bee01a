"""Tests with a real kernel are skipped, by name and with what is missing, where there is no emulator."""

from __future__ import annotations

from typing import Any

import pytest

from dragstrip import kernel
from dragstrip.comparison import compare
from dragstrip.engines import vm, vm_machine
from dragstrip.errors import DragstripError
from dragstrip.expand import expand


@pytest.fixture(scope="session")
def linux() -> str:
    """The name of a kernel that boots here."""
    reason = vm_machine.missing()
    if reason:
        pytest.skip(reason)
    try:
        if not kernel.kernels():
            kernel.fetch()
        vm.prepare()
    except DragstripError as error:
        pytest.skip(str(error))
    return kernel.chosen().name


def race(*algorithms: str, duration: str = "3s", **options: Any) -> dict[str, Any]:
    """A scenario: 10 Mbit/s, 40 ms, one flow per algorithm."""
    given = {"rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 100000", "together": True, **options}
    made: dict[str, Any] = expand(compare(algorithms, duration=duration, **given))[0].scenario
    return made
