"""Results of an attack search, and of the check of kept finds, as text for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dragstrip.display.terminal import wrapped
from dragstrip.io.untrusted import one_line

PARTIAL = "Interrupted: these are the finds so far"
HEADINGS = {
    "utilisation": "Utilisation: one flow",
    "starvation": "Starvation: one of two flows",
    "neighbour": "A CUBIC neighbour",
    "stall": "Stalls",
}


def text(document: Mapping[str, Any], folder: str) -> str:
    """Return the finds by goal, worst first, for a terminal of 80 columns."""
    count = f"{document['evaluations']} attacks on {document['algorithm']}, seed {document['seed']}"
    lines = wrapped(f"{count}. The value is the victim's figure over its reference: 1 is harmless.")
    for goal in document["goals"]:
        lines += ["", *_goal(document, goal, folder)]
    lines += ["", f"{PARTIAL}."] if document["partial"] else []
    return "\n".join(lines)


def markdown(document: Mapping[str, Any]) -> str:
    """Return the finds as a page: a table for each goal."""
    lines = [f"# Attacks on {document['algorithm']}", ""]
    lines += [f"{document['evaluations']} attacks scored, seed {document['seed']}.", ""]
    lines += [f"{PARTIAL}.", ""] if document["partial"] else []
    for goal in document["goals"]:
        lines += [f"## {HEADINGS[goal['name']]}", "", f"{_setting(goal)}.", ""]
        if finds := finds_of(document, goal):
            lines += ["| value | in twice the time | victim | attack | replay |", "|---|---|---|---|---|"]
            for find in finds:
                cells = [f"{find['value']:.3f}", f"{find['doubled']['value']:.3f}", _figure(goal, find)]
                lines.append(f"| {' | '.join([*cells, find['words'], '`' + find['replay'] + '`'])} |")
            lines.append("")
        lines += [f"{sentence}." for sentence in _rest(document, goal)] + [""]
    return "\n".join(lines).rstrip("\n") + "\n"


def finds_of(document: Mapping[str, Any], goal: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the finds of a goal, worst first."""
    mine = [find for find in document["finds"] if find["goal"] == goal["name"]]
    return sorted(mine, key=lambda find: float(find["value"]))


VERDICTS = {"worse": "WORSE", "better": "better", "same": "same", "worst": "at 0"}
"""Display text of each verdict on a kept find."""


def checked(document: Mapping[str, Any]) -> str:
    """Return how kept finds fare now, one line each."""
    lines = []
    for find in document["finds"]:
        verdict = VERDICTS[find["verdict"]]
        figures = f"{find['recorded']:.4g} {find['unit']} recorded, now "
        figures += "nothing" if find["figure"] is None else f"{find['figure']:.4g}"
        lines.append(f"{verdict:6}  {one_line(find['name']):26}  {figures}")
    return "\n".join(lines)


def _goal(document: Mapping[str, Any], goal: Mapping[str, Any], folder: str) -> Iterator[str]:
    yield from wrapped(f"{HEADINGS[goal['name']]} ({_setting(goal)})")
    for find in finds_of(document, goal):
        starved = "; starved" if find["starved"] else ""
        twice = f"; {find['doubled']['value']:.3f} in twice the time"
        yield from wrapped(f"{find['value']:.3f}  {_figure(goal, find)}{twice}{starved}", "  ", " " * 9)
        yield from wrapped(find["words"], "         ")
        if folder:
            yield f"         dragstrip run {folder}/{find['name']}.toml"
    for sentence in _rest(document, goal):
        yield from wrapped(sentence, "  ")


def _setting(goal: Mapping[str, Any]) -> str:
    rtts = goal["rtt"] if goal["other_rtt"] is None else f"{goal['rtt']} beside {goal['other_rtt']}"
    return f"{goal['rate']}, {rtts}, queue {goal['queue']}, {goal['duration']}"


def _figure(goal: Mapping[str, Any], find: Mapping[str, Any]) -> str:
    if goal["unit"] == "s":
        return f"{find['figure']:.1f} s without an ACK, fixed window {find['reference']:.1f} s"
    return f"{find['figure']:.2f} of {find['reference']:.1f} {goal['unit']}"


def _rest(document: Mapping[str, Any], goal: Mapping[str, Any]) -> Iterator[str]:
    """Yield what happens without an attack, and which searches found nothing."""
    yield f"Without an attack {goal['without']['value']:.3f}"
    nothing = [entry["vector"] for entry in document["nothing"] if entry["goal"] == goal["name"]]
    if nothing:
        yield f"Nothing new by: {', '.join(nothing)}"
