"""A passport in Markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragstrip.studies.passport.wording import agreed, by_reason, engine, escaped, measured, tally, unit

NAME = "passport.md"


def markdown(document: Mapping[str, Any]) -> str:
    """Return the sentences, the chapters, the worst rows and what changed."""
    lines = [f"# Passport of {_code(document['algorithm'])}", ""]
    if document["kernel"]:
        lines += [f"Engine {escaped(engine(document))}.", ""]
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
            baseline_figures = ", ".join(
                f"{baseline} {measured(of['value'])}" for baseline, of in row["baselines"].items()
            )
            lines += [
                f"- **{escaped(row['title'])}**: {row['measure']} {unit(row)} ({baseline_figures}), "
                f"{row['verdict']} ({escaped(row['rule'])}; {escaped(row['source'])})  ",
                f"  {_code(row['replay'])}",
            ]
    if "beside" in document:
        lines += ["", *_second_engine(document["beside"])]
    if "against" in document:
        lines += ["", *_against(document["against"])]
    if document["not_run"]:
        lines += ["", f"## Not run on engine {escaped(engine(document))}", "", *_not_run(document["not_run"])]
    lines += ["", "## Not tested", ""]
    lines += [f"- {escaped(entry['what'])}: {escaped(entry['why'])}" for entry in document["not_tested"]]
    return "\n".join(lines) + "\n"


def _not_run(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [f"- {escaped(why)}: {', '.join(names)}" for why, names in by_reason(rows).items()]


def _second_engine(comparison: Mapping[str, Any]) -> list[str]:
    name = escaped(engine(comparison))
    lines = [f"## Beside engine {name}", "", f"{escaped(agreed(comparison))}."]
    if comparison["different"]:
        lines += ["", f"| row | unit | here | verdict | {name} | verdict |", "|---|---|---|---|---|---|"]
        lines += [
            f"| {row['id']} | {row['unit']} | {measured(row['value'])} | {row['verdict']} | "
            f"{measured(row['other_value'])} | {row['other_verdict']} |"
            for row in comparison["different"]
        ]
    if comparison["not_run"]:
        lines += ["", "Not run there:", "", *_not_run(comparison["not_run"])]
    return lines


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


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    return f"{fence}{' '.join(text.split())}{fence}"
