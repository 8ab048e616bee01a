"""The passport of a queue discipline as one JSON document, in the form of an algorithm's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragstrip.display.quantity import plural
from dragstrip.studies.passport.document import WORST, base, chapter_entry, row_entry
from dragstrip.studies.passport.queues import suite
from dragstrip.studies.passport.queues.words import BASELINES, main_parameter
from dragstrip.studies.passport.rows import PassportRow, Subject
from dragstrip.studies.passport.verdicts import RowVerdict, ratio, worst
from dragstrip.studies.passport.wording import measured

UNTESTED = (
    ("two disciplines in series that differ, other than behind drop-tail (RFC 7928 10.2)", "no row yet"),
    ("loss synchronisation (RFC 7928 2.4)", "no measure has it"),
    ("processor time and memory (RFC 7928 11)", "a simulator has none of a router's"),
    ("ledbat with a gain of 10 (RFC 7928 5.4)", "its gain is 1 at most (RFC 6817); the row has 1"),
    ("scheduling by itself (RFC 7928 4.6)", "rows of fq_* and cake show scheduling and AQM together"),
)


def document(
    subject: Subject,
    judged: Sequence[RowVerdict],
    chapters: Sequence[str],
    quick: bool,
    not_run: Sequence[tuple[PassportRow, str]] = (),
) -> dict[str, Any]:
    """Return the passport as JSON; the same rows give the same bytes."""
    rows = [row_entry(entry, subject) for entry in judged]
    present = {row["chapter"] for row in rows}
    return {
        **base(subject, suite.VERSION, quick),
        "of": "queue",
        "chapters": [chapter_entry(name, suite.TITLES[name], rows) for name in chapters if name in present],
        "sentences": _sentences(subject, judged),
        "worst": [entry.row.id for entry in worst(judged, WORST)],
        "harm": [],
        "rows": rows,
        "not_run": [{"id": row.id, "title": row.title, "why": why} for row, why in not_run],
        "not_tested": _not_tested(subject, chapters, quick),
    }


def _not_tested(subject: Subject, chapters: Sequence[str], quick: bool) -> list[dict[str, str]]:
    omissions = [
        {"what": f"chapter {name}", "why": "--only leaves it out"}
        for name in suite.NAMES
        if name not in chapters
    ]
    if main_parameter(subject.word) is None and "sensitivity" in chapters:
        omissions.append({"what": "chapter sensitivity", "why": f"{subject.word} has no one main parameter"})
    if quick:
        whole = len(suite.rows(subject.word, chapters, quick=False))
        part = len(suite.rows(subject.word, chapters, quick=True))
        omissions.append({"what": f"{whole - part} of {whole} rows", "why": "--quick leaves them out"})
    return [*omissions, *({"what": topic, "why": why} for topic, why in UNTESTED)]


def _sentences(subject: Subject, judged: Sequence[RowVerdict]) -> dict[str, str]:
    compared = [entry for entry in judged if entry.row.rule.kind == "K" and entry.verdict != "failed"]
    return {
        "good": _lead("Better", subject, compared),
        "fails": _lead("Worse", subject, compared),
        "settings": _settings(subject, judged),
    }


def _lead(head: str, subject: Subject, compared: Sequence[RowVerdict]) -> str:
    verdict = head.lower()
    entries = [entry for entry in compared if entry.verdict == verdict]
    share = f"{len(entries)} of {plural(len(compared), 'row')}"
    summary = f"{head}: {subject.word} is {verdict} than both drop-tail queues in {share}"
    if subject.word in BASELINES:
        return f"{head}: {subject.word} is one of the two drop-tail queues itself."
    if not entries:
        return f"{summary}."
    first = max(entries, key=lambda entry: (_apart(entry), entry.row.id))
    figure, median = first.row.figure, measured(first.value.median)
    baselines = ", ".join(f"{name} {measured(value.median)}" for name, value in first.baselines.items())
    return f"{summary}; most of all {first.row.title}: {figure.name} {median} {figure.unit} ({baselines})."


def _apart(entry: RowVerdict) -> float:
    """The figure's distance from the nearer drop-tail queue, as a natural logarithm."""
    medians = [value.median for value in entry.baselines.values() if value.median is not None]
    if entry.value.median is None or not medians:
        return 0.0
    return min(abs(ratio(entry.value.median, median, entry.row.figure.floor)) for median in medians)


def _settings(subject: Subject, judged: Sequence[RowVerdict]) -> str:
    rows = {entry.row.id: entry for entry in judged if entry.row.chapter == "sensitivity"}
    main = main_parameter(subject.word)
    low, high = (
        {
            name: rows[f"sensitivity-{factor}-{name}"].value.median
            for name in ("delay-p95", "utilisation")
            if f"sensitivity-{factor}-{name}" in rows
        }
        for factor in ("0.5", "2")
    )
    if main is None or not low or not high:
        return f"Settings: no row varies a parameter of {subject.word}."
    return (
        f"Settings: from half to twice its {main[0].word}, the 95th percentile of delay goes from "
        f"{measured(low['delay-p95'])} to {measured(high['delay-p95'])} ms and the utilisation from "
        f"{measured(low['utilisation'])} to {measured(high['utilisation'])}."
    )
