"""The progress of a sweep: a bar in a notebook, a line that a terminal rewrites, or lines of a log."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field

from dragstrip.display.progress import say
from dragstrip.display.progress_cell import ProgressCell

TERMINAL_S = 0.2
LOG_S = 10.0


@dataclass
class Tally:
    """The counts that a progress line shows."""

    total: int
    reused: int = 0
    executed: int = 0
    failed: int = 0
    retried: int = 0
    weight_total: float = 0.0
    weight_made: float = 0.0
    cpu_s: float = 0.0
    started: float = field(default_factory=time.monotonic)
    wall_s: float = 0.0
    interrupted: bool = False

    @property
    def rate(self) -> float:
        """Runs per second so far."""
        return self.executed / max(1e-9, time.monotonic() - self.started)

    @property
    def left_s(self) -> float | None:
        """Estimated remaining seconds, by the weight of the runs rather than their number.

        None before the first.
        """
        if self.weight_made <= 0:
            return None
        elapsed = time.monotonic() - self.started
        return elapsed * max(0.0, self.weight_total - self.weight_made) / self.weight_made


class SweepProgress:
    """Receives the progress of a sweep; this base class ignores it."""

    def update(self, tally: Tally) -> None:
        """Report the counts; called several times a second."""

    def note(self, line: str) -> None:
        """Report something that deserves a line of its own."""


class ProgressLine(SweepProgress):
    """Shows progress on standard error."""

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty()
        self.last_line_at = time.monotonic() - (LOG_S - 2.0)
        """Time of the last line, on the monotonic clock; a log has its first line after two seconds."""

    def update(self, tally: Tally) -> None:
        """Show the line if it is due."""
        now = time.monotonic()
        if now - self.last_line_at < (TERMINAL_S if self.terminal else LOG_S):
            return
        self.last_line_at = now
        text = line(tally)
        sys.stderr.write(f"\r\x1b[K{text}" if self.terminal else f"{text}\n")
        sys.stderr.flush()

    def note(self, line: str) -> None:
        """Print a line above the one that is rewritten."""
        sys.stderr.write(f"\r\x1b[K{line}\n" if self.terminal else f"{line}\n")
        sys.stderr.flush()

    def clear(self) -> None:
        """Clear the terminal's line."""
        if self.terminal:
            sys.stderr.write("\r\x1b[K")


class ProgressBar(SweepProgress):
    """Shows progress as a bar in a notebook's cell."""

    def __init__(self) -> None:
        self.cell = ProgressCell()

    def update(self, tally: Tally) -> None:
        """Redraw the bar."""
        self.cell.show(line(tally), (tally.reused + tally.executed) / max(1, tally.total))

    def note(self, line: str) -> None:
        """Print a line below the cell."""
        say(line)

    def clear(self) -> None:
        """Remove the bar."""
        self.cell.close()


def line(tally: Tally) -> str:
    """Return a line such as `1,234/4,320 runs (1,000 reused), 96 runs/s, 0:32 left, 3 failed`."""
    finished_runs = tally.reused + tally.executed
    parts = [
        f"{finished_runs:,}/{tally.total:,} runs" + (f" ({tally.reused:,} reused)" if tally.reused else "")
    ]
    parts.append(f"{tally.rate:.3g} runs/s")
    remaining_s = tally.left_s
    parts.append("time left unknown" if remaining_s is None else f"{clock(remaining_s)} left")
    parts.append(f"{tally.failed} failed")
    if tally.retried:
        parts.append(f"{tally.retried} tried again")
    return ", ".join(parts)


def clock(seconds: float) -> str:
    """Return a duration in seconds as `0:32` or `1:02:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
