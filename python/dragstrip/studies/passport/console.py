"""A passport for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dragstrip.display.quantity import plural
from dragstrip.display.terminal import WIDTH, wrapped
from dragstrip.experiment.comparison import FLAGS
from dragstrip.io.shell import folded
from dragstrip.studies.passport.document import replay_outside
from dragstrip.studies.passport.wording import agreed, by_reason, engine, measured, tally, unit

CHAPTER = 24
"""Columns of a chapter's title, at least."""
MARKS = {"better": "+", "worse": "-"}


def text(document: Mapping[str, Any], folder: Path | None = None) -> str:
    """Return the summary: sentences, a line per chapter, the worst rows and what changed.

    Replays are for the current folder, where `folder` is the passport's; without it, for the passport's.
    """
    return "\n".join(_lines(document, folder or Path()))


def _lines(document: Mapping[str, Any], folder: Path) -> Iterator[str]:
    for sentence in document["sentences"].values():
        yield from wrapped(sentence, rest="  ")
    yield ""
    width = max((len(chapter["title"]) for chapter in document["chapters"]), default=0) + 1
    for chapter in document["chapters"]:
        yield from wrapped(tally(chapter["verdicts"]), f"{chapter['title']:<{max(width, CHAPTER)}}")
    rows = {row["id"]: row for row in document["rows"]}
    if document["worst"]:
        yield ""
        yield "The worst rows"
    for number, name in enumerate(document["worst"], 1):
        row = rows[name]
        yield from wrapped(f"{row['title']}: {row['measure']} {unit(row)}", f"  {number}. ")
        baseline_figures = ", ".join(
            f"{baseline} {measured(of['value'])}" for baseline, of in row["baselines"].items()
        )
        yield from wrapped(f"{row['verdict']} ({row['rule']}; {baseline_figures})", "     ")
        if row.get("failure"):
            yield from wrapped(row["failure"], "     ")
        yield from folded(replay_outside(row["replay"], folder), WIDTH, FLAGS, " " * 5)
    if "beside" in document:
        yield ""
        yield from _second_engine(document["beside"])
    if "against" in document:
        yield ""
        yield from _against(document["against"])
    yield ""
    for why, names in by_reason(document["not_run"]).items():
        yield from wrapped(f"Not run on engine {engine(document)}, {plural(len(names), 'row')}: {why}")
    yield from wrapped(f"Not tested: {len(document['not_tested'])} things, each with its reason on the page.")


def _second_engine(comparison: Mapping[str, Any]) -> Iterator[str]:
    yield from wrapped(agreed(comparison) + ("; the others:" if comparison["different"] else ""))
    for row in comparison["different"]:
        yield from wrapped(
            f"{row['id']}: {row['verdict']} ({measured(row['value'])} {row['unit']}), there "
            f"{row['other_verdict']} ({measured(row['other_value'])})",
            "  ",
            "    ",
        )
    for why, names in by_reason(comparison["not_run"]).items():
        yield from wrapped(f"Not run there, {plural(len(names), 'row')}: {why}")


def _against(change: Mapping[str, Any]) -> Iterator[str]:
    counts = {how: sum(row["how"] == how for row in change["changed"]) for how in ("better", "same", "worse")}
    summary = f"Against {change['against']} ({change['algorithm']}): {change['unchanged']} rows unchanged, "
    summary += ", ".join(f"{count} {how}" for how, count in counts.items())
    summary += f", {change['only_before']} not made now" if change["only_before"] else ""
    yield from wrapped(summary, rest="  ")
    for row in change["changed"]:
        if row["how"] in MARKS:
            verdicts = f"{row['verdict_before']} -> {row['verdict_now']}"
            figures = f"{measured(row['before'])} -> {measured(row['now'])}"
            yield from wrapped(f"{row['id']}: {figures} ({verdicts})", f"  {MARKS[row['how']]} ")
