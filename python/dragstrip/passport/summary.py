"""A passport in Markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragstrip.passport.wording import escaped, measured, tally, unit

NAME = "passport.md"


def markdown(document: Mapping[str, Any]) -> str:
    """Return the sentences, the chapters, the worst rows and what changed."""
    lines = [f"# Passport of {_code(document['algorithm'])}", ""]
    lines += [f"- {escaped(sentence)}" for sentence in document["sentences"].values()]
    lines += ["", "| chapter | rows | verdicts |", "|---|---|---|"]
    lines += [
        f"| {chapter['title']} | {chapter['rows']} | {tally(chapter['verdicts'])} |"
        for chapter in document["chapters"]
    ]
    rows = {row["id"]: row for row in document["rows"]}
    if document["worst"]:
        lines += ["", "## The worst rows", ""]
        for name in document["worst"]:
            row = rows[name]
            others = ", ".join(f"{one} {measured(of['value'])}" for one, of in row["baselines"].items())
            lines += [
                f"- **{escaped(row['title'])}**: {row['measure']} {unit(row)} ({others}), {row['verdict']} "
                f"({escaped(row['rule'])}; {escaped(row['source'])})  ",
                f"  {_code(row['replay'])}",
            ]
    if "against" in document:
        lines += ["", *_against(document["against"])]
    lines += ["", "## Not tested", ""]
    lines += [f"- {escaped(entry['what'])}: {escaped(entry['why'])}" for entry in document["not_tested"]]
    return "\n".join(lines) + "\n"


def _against(change: Mapping[str, Any]) -> list[str]:
    moved = [row for row in change["changed"] if row["how"] != "same"]
    lines = [f"## Against {_code(change['against'])}", "", f"{change['unchanged']} rows are unchanged."]
    if not moved:
        return [*lines, "No other row got better or worse."]
    lines += ["", "| row | | before | now | verdict |", "|---|---|---|---|---|"]
    return lines + [
        f"| {row['id']} | {row['how']} | {measured(row['before'])} | {measured(row['now'])} | "
        f"{row['verdict_before']} → {row['verdict_now']} |"
        for row in moved
    ]


def _code(said: str) -> str:
    fence = "``" if "`" in said else "`"
    return f"{fence}{' '.join(said.split())}{fence}"
