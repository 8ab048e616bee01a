"""Engines: each takes a scenario and gives a recording; nothing above them knows which one ran."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from dragstrip.recording import Recording


class Engine(Protocol):
    """Runs one scenario; `progress` is told the run's own nanoseconds, and ends it by answering `False`."""

    def __call__(  # noqa: D102
        self, scenario: dict[str, Any], progress: Callable[[int], object] | None = None, /
    ) -> Recording: ...


def named(engine: str, recalled: bool = False, load: Sequence[tuple[str, str]] = ()) -> Engine:
    """The engine of this name; imports nothing of the others.

    `recalled`: what the kernel ran before is not run again. `load`: congestion controls put into the kernel,
    each the source and the compiled file.
    """
    if engine == "vm":
        from dragstrip.engines.vm import emulate, recall
        from dragstrip.engines.vm_bpf import Loadable

        loadable = [Loadable(source, Path(file)) for source, file in load]
        return partial(recall if recalled else emulate, load=loadable)
    from dragstrip.engines.sim import simulate

    return simulate


def prepare(engine: str) -> None:
    """Makes what all runs of an engine share; raises `DragstripError` when it cannot run here."""
    if engine == "vm":
        from dragstrip.engines.vm import prepare as prepare_vm

        prepare_vm()
