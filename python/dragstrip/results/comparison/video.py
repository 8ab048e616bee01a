"""Video QoE of each contender, a figure per column, as medians over repeats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dragstrip.display import quantity
from dragstrip.display.quantity import MISSING, median, number
from dragstrip.results.comparison.setups import Bout, Contender, Json


def _seconds(value: float | None) -> str:
    return MISSING if value is None else f"{quantity.digits(value)} s"


@dataclass(frozen=True)
class VideoColumn:
    """A column of a table of videos."""

    head: str
    meaning: str
    name: str
    """The field of `flows[].video` in the result document."""
    text: Callable[[float | None], str]

    def of(self, contender: Contender) -> float | None:
        """Return the median over repeats of the mean over the contender's videos."""
        return median(self._mean(bout) for bout in contender.bouts)

    def _mean(self, bout: Bout) -> float | None:
        figures = [value for video in _videos(bout) if (value := number(video.get(self.name))) is not None]
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


def plays(contender: Contender) -> bool:
    """Return whether flows of this contender are videos."""
    return any(_videos(bout) for bout in contender.bouts)


def _videos(bout: Bout) -> list[Json]:
    return [flow["video"] for flow in bout.results if flow.get("video")]
