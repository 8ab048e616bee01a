"""Three sentences made from rows: an algorithm's strengths, its failures, and its harm to neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dragstrip.display.quantity import percent, plural
from dragstrip.studies.passport import suite
from dragstrip.studies.passport.chapters import beside, mixed
from dragstrip.studies.passport.figures import NEIGHBOUR
from dragstrip.studies.passport.rows import BASELINES, Subject
from dragstrip.studies.passport.verdicts import RowVerdict, ratio, worst
from dragstrip.studies.passport.wording import measured


def sentences(subject: Subject, judged: Sequence[RowVerdict]) -> dict[str, str]:
    """The sentences, by what they are about: `good`, `fails` and `harms`."""
    return {
        "good": _good(subject, judged),
        "fails": _fails(subject, judged),
        "harms": _harms(subject, judged),
    }


def _good(subject: Subject, judged: Sequence[RowVerdict]) -> str:
    compared = [entry for entry in judged if entry.row.rule.kind == "K" and entry.verdict != "failed"]
    better = [entry for entry in compared if entry.verdict == "better"]
    if not compared:
        return f"Good at: no row compares {subject.word} with the baselines."
    if subject.word in BASELINES:
        return f"Good at: {subject.word} is a baseline itself: {plural(len(compared), 'row')} cannot tell."
    if not better:
        return f"Good at: {subject.word} is better than CUBIC and Reno in none of {len(compared)} rows."
    chapters = Counter(suite.TITLES[entry.row.chapter] for entry in better)
    most, count = min(chapters.items(), key=lambda item: (-item[1], item[0]))
    best = max(better, key=lambda entry: (_lead(entry), entry.row.id))
    return (
        f"Good at: {subject.word} is better than CUBIC and Reno in {len(better)} of {len(compared)} rows, "
        f"{count} of them {most}; most of all {_described(best, subject.word)}."
    )


def _fails(subject: Subject, judged: Sequence[RowVerdict]) -> str:
    failed = sum(entry.verdict == "failed" for entry in judged)
    limits = sum(entry.verdict == "missed" and entry.row.rule.kind == "P" for entry in judged)
    targets = [entry for entry in judged if entry.verdict == "missed" and entry.row.rule.kind == "T"]
    alone = sum(bool(entry.row.only_for) for entry in targets)
    shared = sum(entry.verdict == "missed, as by CUBIC" for entry in judged)
    below = sum(entry.verdict == "worse" for entry in judged)
    if not (failed or limits or targets or shared or below):
        return f"Fails: nothing in {plural(len(judged), 'row')}."
    holds = "" if subject.word == "cubic" else " that CUBIC holds"
    parts = [f"{plural(failed, 'row')} without a figure"] if failed else []
    parts += [f"{plural(limits, 'limit')} of documents missed{holds}"] if limits else []
    if len(targets) > alone:
        parts.append(f"{plural(len(targets) - alone, 'published target')} missed{holds}")
    parts += [f"{plural(alone, 'example case')} of its draft missed"] if alone else []
    parts += [f"{shared} missed, as by CUBIC"] if shared else []
    parts += [f"{plural(below, 'row')} worse than both baselines"] if below else []
    summary = f"Fails: {'; '.join(parts)}"
    gravest = worst(judged, 1)[0]
    return f"{summary}; worst of all {_described(gravest, subject.word)}."


def _harms(subject: Subject, judged: Sequence[RowVerdict]) -> str:
    harm = [entry for entry in judged if entry.row.rule is beside.HARM and entry.verdict != "failed"]
    if not harm:
        return "Harms: no row of this passport has a neighbour."
    worse = [entry for entry in harm if entry.verdict == "worse"]
    if not worse:
        return (
            f"Harms: no neighbour more than CUBIC or Reno would, in {plural(len(harm), 'row')} beside "
            "flows of CUBIC and Reno."
        )
    gravest = max(worse, key=lambda entry: (entry.row.figure is NEIGHBOUR, entry.badness, entry.row.id))
    return (
        f"Harms: neighbours have less beside {subject.word} than beside CUBIC or Reno in {len(worse)} of "
        f"{len(harm)} rows; most of all {_described(gravest, subject.word)}."
    )


def _lead(entry: RowVerdict) -> float:
    baseline_medians = [
        baseline.median for baseline in entry.baselines.values() if baseline.median is not None
    ]
    median, figure = entry.value.median, entry.row.figure
    if median is None or not baseline_medians:
        return 0.0
    return min(abs(ratio(median, baseline_median, figure.floor)) for baseline_median in baseline_medians)


def _described(entry: RowVerdict, word: str) -> str:
    """Return a row's scenario and figures, in words where the figure's name alone says little."""
    median = entry.value.median
    if entry.row.figure is not mixed.SPILLOVER or median is None:
        return f"{entry.row.title}: {_figures(entry)}"
    others = ", ".join(
        f"to {_proper(name)}: {_change(of.median)}"
        for name, of in entry.baselines.items()
        if of.median is not None
    )
    return (
        f"{mixed.path_name(entry.row)}: when 5 of {mixed.SENDERS} CUBIC senders switch to {word}, the other "
        f"5 {'lose' if median < 0 else 'gain'} {percent(abs(median))} of their goodput"
        + (f" ({others})" if others else "")
    )


def _change(share: float) -> str:
    return f"{'+' if share > 0 else ''}{percent(share)}"


def _proper(baseline: str) -> str:
    return baseline.upper() if baseline == "cubic" else baseline.capitalize()


def _figures(entry: RowVerdict) -> str:
    unit, name = entry.row.figure.unit, entry.row.figure.name
    baseline_texts = [
        f"{_proper(baseline)} {measured(value.median)}" for baseline, value in entry.baselines.items()
    ]
    less = f", {entry.value.smaller} has less" if entry.value.smaller else ""
    subject_text = entry.value.failure or f"{name} {measured(entry.value.median)} {unit}{less}"
    return f"{subject_text} ({', '.join(baseline_texts)})"
