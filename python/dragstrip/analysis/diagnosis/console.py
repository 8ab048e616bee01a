"""A diagnosis as text: verdict, findings, advice with what each change does, and what cannot be known."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dragstrip.analysis.diagnosis.observations import Fact
from dragstrip.analysis.diagnosis.wording import figure
from dragstrip.display.terminal import WIDTH, wrapped
from dragstrip.experiment.comparison import FLAGS
from dragstrip.io.shell import folded

CHANGE_WIDTH = 34
"""Columns of a change's name in a table, at most; what is longer goes on in the next line."""


def text(document: Mapping[str, Any]) -> str:
    """Return a diagnosis for a terminal of 80 columns."""
    lines = [*wrapped(document["verdict"])]
    if document["findings"]:
        lines += ["", "Findings"]
        for finding in document["findings"]:
            lines += _finding(finding)
    if document["contradictions"]:
        lines += ["", "Contradictions"]
        lines += [line for conflict in document["contradictions"] for line in wrapped(conflict, "  - ")]
    for advice in document["advice"]:
        lines += ["", *_advice(advice)]
    if document["not_tried"]:
        lines += ["", "Nothing was tried for"]
        lines += [line for reason in document["not_tried"] for line in wrapped(reason, "  - ")]
    if document["unknown"]:
        lines += ["", "What this cannot know"]
        for finding in document["unknown"]:
            lines += wrapped(finding["sentence"], "  - ")
            lines += _measure(finding)
    if document["notes"]:
        lines += ["", *(line for note in document["notes"] for line in wrapped(note, "note: "))]
    return "\n".join(lines)


def _finding(finding: Mapping[str, Any]) -> Iterator[str]:
    yield from wrapped(f"{finding['sentence']} ({finding['certainty']})", "  - ")
    places: dict[str, list[str]] = {}
    for row in finding["evidence"]:
        fact = Fact(row["name"], row["value"], row["basis"], row["file"], row["place"])
        where = f"{fact.source}, {fact.place}" if fact.place else fact.source
        places.setdefault(where, []).append(fact.text)
    for where, facts in places.items():
        yield from wrapped(f"{where}: {'; '.join(facts)}", "    ")
    if finding["measure"]:
        yield from _measure(finding)


def _measure(finding: Mapping[str, Any]) -> list[str]:
    return [f"    {finding['measure']}"] if finding["measure"] else []


def _advice(advice: Mapping[str, Any]) -> Iterator[str]:
    yield from wrapped(f"What helps against {advice['against']} (simulated)")
    for assumption in advice["assumed"]:
        yield from wrapped(f"assumed: {assumption}", "  ")
    yield from _table(
        [("baseline", advice["as_found"]), *((change["change"], change) for change in advice["changes"])]
    )
    recommended_changes = [change for change in advice["changes"] if change["recommended"]]
    for number, change in enumerate(recommended_changes, start=1):
        yield ""
        yield from wrapped(f"{change['change']}: {change['reason']}", f"  {number}. ")
        yield from wrapped(f"{change['where']}:", "     ")
        yield from (f"       {command}" for command in change["commands"])
    if not recommended_changes:
        yield from wrapped("None of these changes is worth it.", "  ")
    for change in advice["changes"]:
        if not change["recommended"]:
            yield from wrapped(f"tried, not recommended: {change['change']} ({change['reason']})", "  - ")
    yield ""
    yield "  These runs again:"
    for row in (advice["as_found"], *advice["changes"]):
        yield from folded(row["compare"], WIDTH, FLAGS)


def _table(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[str]:
    heads = ("", "goodput", "ping p50", "ping p95", "retransmitted")
    cells = [
        (
            name,
            figure("goodput_bps", row["goodput_bps"]),
            _ms(row["ping_p50_ms"]),
            _ms(row["ping_p95_ms"]),
            figure("share_share", row["retransmitted_share"]),
        )
        for name, row in rows
    ]
    widths = [max(len(row[at]) for row in (heads, *cells)) for at in range(1, 5)]
    wide = min(CHANGE_WIDTH, WIDTH - 2 - sum(width + 2 for width in widths))
    for name, *values in (heads, *cells):
        parts = textwrap.wrap(name, wide, break_long_words=False) or [""]
        tail = "  ".join(value.rjust(width) for value, width in zip(values, widths, strict=True))
        yield f"  {parts[0].ljust(wide)}  {tail}".rstrip()
        yield from (f"    {part}" for part in parts[1:])


def _ms(value: float | None) -> str:
    return "–" if value is None else figure("ping_ms", value)
