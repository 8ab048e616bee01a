"""Video QoE of each contender, and its live videos over RTP: a figure per column, as medians over repeats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dragstrip.display import quantity
from dragstrip.display.quantity import MISSING, median, number
from dragstrip.results.comparison.setups import Bout, Contender, Json


def _seconds(value: float | None) -> str:
    return MISSING if value is None else f"{quantity.digits(value)} s"


def _share(value: float | None) -> str:
    return MISSING if value is None else f"{quantity.digits(100 * value)} %"


def _milliseconds(value: float | None) -> str:
    return MISSING if value is None else f"{quantity.digits(value)} ms"


@dataclass(frozen=True)
class VideoColumn:
    """A column of a table of videos."""

    head: str
    meaning: str
    name: str
    """The field of `flows[].video` in the result document, or of `flows[].rtp`."""
    text: Callable[[float | None], str]
    entry: str = "video"
    """The field of a flow that holds it."""

    def of(self, contender: Contender) -> float | None:
        """Return the median over repeats of the mean over the contender's videos."""
        return median(self._mean(bout) for bout in contender.bouts)

    def _mean(self, bout: Bout) -> float | None:
        figures = [
            value
            for video in _entries(bout, self.entry)
            if (value := number(video.get(self.name))) is not None
        ]
        return sum(figures) / len(figures) if figures else None


SEEN = (
    VideoColumn("Bit rate", "Mean bit rate of the segments that arrived", "bps", quantity.rate),
    VideoColumn("Switches", "Changes of the bit rate from a segment to the next", "switches", quantity.count),
    VideoColumn("Start-up", "Time until playback began", "startup_s", _seconds),
    VideoColumn(
        "Stalls", "Times that playback stood still because the buffer was empty", "stalls", quantity.count
    ),
    VideoColumn("Stalled", "Time in which playback stood still after it had begun", "stall_s", _seconds),
)


LIVE = tuple(
    VideoColumn(head, meaning, name, text, "rtp")
    for head, meaning, name, text in (
        ("Bit rate", "Bits of the complete frames over the flow's life", "bps", quantity.rate),
        ("Target", "Mean target bit rate of the frames", "target_bps", quantity.rate),
        ("Frame p50", "Median time from capture to the last packet's arrival", "delay_ms_p50", _milliseconds),
        ("Frame p95", "95th percentile of that time", "delay_ms_p95", _milliseconds),
        ("Late", "Frames that are not complete 200 ms after their capture", "late_200ms", _share),
        ("Lost", "Packets that were lost", "lost", _share),
        ("Breaker", "Time at which a circuit breaker of RFC 8083 would trip by loss", "breaker_s", _seconds),
    )
)
"""Columns of the table of live videos over RTP."""


def plays(contender: Contender, entry: str = "video") -> bool:
    """Return whether flows of this contender are videos, or with the entry `rtp` live videos."""
    return any(_entries(bout, entry) for bout in contender.bouts)


def _entries(bout: Bout, entry: str) -> list[Json]:
    return [flow[entry] for flow in bout.results if flow.get(entry)]
