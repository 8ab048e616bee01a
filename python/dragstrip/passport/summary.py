"""A passport in Markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragstrip.passport.wording import measured, tally, unit

NAME = "passport.md"


def markdown(document: Mapping[str, Any]) -> str:
    """Return the sentences, the chapters, the worst rows and what changed."""
    lines = [f"# Passport of {_code(document['algorithm'])}", ""]
    lines += [f"- {_plain(sentence)}" for sentence in document["sentences"].values()]
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
                f"- **{_plain(row['title'])}**: {row['measure']} {unit(row)} ({others}), {row['verdict']} "
                f"({_plain(row['rule'])}; {_plain(row['source'])})  ",
                f"  {_code(row['replay'])}",
            ]
    if "against" in document:
        lines += ["", *_against(document["against"])]
    lines += ["", "## Not tested", ""]
    lines += [f"- {_plain(entry['what'])}: {_plain(entry['why'])}" for entry in document["not_tested"]]
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


def _plain(said: str) -> str:
    flat = " ".join(said.split())
    return "".join(f"\\{character}" if character in "\\`*_<>|[]" else character for character in flat)


def _code(said: str) -> str:
    fence = "``" if "`" in said else "`"
    return f"{fence}{' '.join(said.split())}{fence}"
