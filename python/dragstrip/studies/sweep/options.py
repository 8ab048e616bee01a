"""Options of a sweep: processes, limits, captures."""

from __future__ import annotations

from dataclasses import dataclass, field

from dragstrip.engines.capture import CaptureRequest
from dragstrip.report.paper import NO_FIGURES, Paper
from dragstrip.runs.process import Limits
from dragstrip.studies.sweep.claim import Confirm


@dataclass(frozen=True)
class Options:
    """Options of a sweep; none changes a figure."""

    workers: int | None = None
    on: str | None = None
    shard: tuple[int, int] = (1, 1)
    limits: Limits = field(default_factory=Limits)
    keep_recordings: bool = False
    capture: CaptureRequest | None = None
    """Packet capture of the runs that are made now; earlier runs have no captures."""
    retry_failed: bool = False
    report: bool = True
    figures: Paper = NO_FIGURES
    """Pictures and tables for papers, beside the report."""
    command: str = ""
    replace: bool = False
    """True when another sweep's folder may be taken over without a question."""
    confirm: Confirm = lambda _: False
    """Asked before another sweep's folder is taken over, unless `replace`."""
