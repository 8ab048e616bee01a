"""Judgements for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from dragstrip.display.quantity import plural
from dragstrip.display.terminal import WIDTH, wrapped
from dragstrip.experiment.comparison import FLAGS
from dragstrip.io.shell import folded
from dragstrip.studies.judge.command import Judgement

HEAD = (
    "Score: log2 of (goodput / RTT) relative to CUBIC, with its 95 % interval: "
    "+1 is twice as good, 0 is CUBIC."
)
LABEL = 28


def heading(hidden: int, count: int) -> str:
    """Return the lines above the judgements."""
    return "\n".join(wrapped(f"Seed {hidden}, {plural(count, 'scenario')}. {HEAD}", rest="  "))


def text(judgement: Judgement) -> str:
    """Return an algorithm's line: its score or its error; below it its rows, if they are shown."""
    return "\n".join(_lines(judgement))


def _lines(judgement: Judgement) -> Iterator[str]:
    label = f"{judgement['algorithm']:<{LABEL}}"
    score, ends = judgement.score, judgement.interval
    if score is None or ends is None:
        yield from wrapped(f"no score: {judgement.error}", f"{label} ", "  ")
        return
    yield f"{label} {score:+8.3f}  ({ends[0]:+.3f} to {ends[1]:+.3f})"
    for row in judgement.rows:
        if "title" in row:
            yield from wrapped(f"{row['title']}", f"  {row['score']:+8.3f}  {row['id']}: ", " " * 12)
            yield from folded(row["replay"], WIDTH, FLAGS, " " * 12)
