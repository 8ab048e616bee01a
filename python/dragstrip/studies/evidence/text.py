"""The evidence as text: Markdown, and the lines of an Internet-Draft's appendix."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from dragstrip.display.quantity import digits, plural
from dragstrip.studies.evidence import ranges
from dragstrip.studies.evidence.document import SHOWN
from dragstrip.studies.passport.rows import BASELINES
from dragstrip.studies.passport.wording import escaped, measured

MARKDOWN, APPENDIX = "evidence.md", "evidence.txt"
COLUMNS = 69
"""Columns of an Internet-Draft's line, with the three of its indent (RFC 7994)."""
NOTE = (
    "RFC 9743 sets no thresholds. A clause is contradicted where a document's limit is missed, to be "
    "justified where somebody's published target is missed or a figure is worse than CUBIC's and Reno's, and "
    "else supported, in part where no row answers some of the question; each row names its limit's source."
)


def figure(row: Mapping[str, Any]) -> str:
    """Return a row's figure with its range over seeds, and the figures of CUBIC and Reno."""
    if row["value"] is None:
        return row["failure"] or "no figure"
    text = f"{_apart(row)} {row['unit']}"
    if row["seeds"] > 1:
        text += f" ({measured(row['low'])} to {measured(row['high'])} over {row['seeds']} seeds)"
    others = [f"{name} {measured(value)}" for name, value in row["baselines"].items()]
    return f"{text}; {', '.join(others)}" if others else text


def _apart(row: Mapping[str, Any]) -> str:
    """Return a row's figure with as many digits as tell it from the limit that it misses."""
    value, limits = row["value"], [row[name] for name in ("least", "most") if row[name] is not None]
    if not row["verdict"].startswith("missed") or measured(value) not in map(measured, limits):
        return measured(value)
    return next(text for n in range(3, 18) if float(text := f"{value:.{n}g}") not in limits)


def note(document: Mapping[str, Any]) -> str:
    """Return by which rules clauses are judged, and where they cannot judge this algorithm."""
    if document["algorithm"].partition(":")[0] not in BASELINES:
        return NOTE
    return f"{NOTE} This algorithm is one of these two: no figure of its own can be worse than both."


def difference(row: Mapping[str, Any]) -> str:
    """Return the 95 % intervals of a row's differences from CUBIC and Reno; empty where nothing compares."""
    parts = [
        f"{name} by {digits(low)} to {digits(high)}" if low != high else f"{name} by {digits(low)}"
        for name, (low, high) in row["differences"].items()
    ]
    return f"differs from {' and '.join(parts)} {row['unit']}" if parts else ""


def counts(document: Mapping[str, Any]) -> str:
    """Return the number of clauses by verdict, such as `9 supported, 8 to be justified`."""
    return ", ".join(f"{count} {verdict}" for verdict, count in document["counts"].items() if count)


def row_count(clause: Mapping[str, Any]) -> int:
    """Return the number of rows that a clause's verdict rests on: its own, or those whose range it gives."""
    return int(clause["ranges"]["rows"]) if clause["ranges"] else len(clause["rows"])


def heading(document: Mapping[str, Any]) -> str:
    """Return the title of the document."""
    return f"Evidence on {document['algorithm']} for RFC 9743 (BCP 133)"


def made_by(document: Mapping[str, Any]) -> str:
    """Return by which program, suite and engine the rows were made."""
    kernel = f", Linux {document['kernel']}" if document["kernel"] else ""
    part = ", quick rows alone" if document["quick"] else ""
    engine = f"engine {document['engine']}{kernel}{part}"
    return f"Dragstrip {document['version']}, suite {document['suite']}, {engine}"


def markdown(document: Mapping[str, Any]) -> str:
    """Return the evidence in Markdown: a table of clauses, then each with its rows."""
    lines = [
        f"# {escaped(heading(document))}",
        "",
        f"{escaped(made_by(document))}. {counts(document)}.",
        "",
        escaped(note(document)),
    ]
    lines += ["", "| clause | level | verdict | rows | not answered |", "|---|---|---|---|---|"]
    for clause in document["clauses"]:
        cells = [
            f"{clause['number']} {clause['title']}",
            clause["level"],
            f"**{clause['verdict']}**",
            str(row_count(clause)),
            escaped("; ".join(clause["lacks"])),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    for clause in document["clauses"]:
        lines += [
            "",
            f"## {clause['number']} {clause['title']} ({clause['level']})",
            "",
            clause["question"],
            "",
        ]
        rows = row_count(clause)
        lines += [f"Verdict: **{clause['verdict']}**" + (f" ({plural(rows, 'row')})." if rows else ".")]
        if clause["ranges"]:
            lines += ["", ranges.text(clause["ranges"])]
        lines += _markdown_rows(clause)
        if clause["rows"]:
            lines += ["", "Rows: " + ", ".join(f"`{name}`" for name in clause["rows"]) + "."]
        if clause["lacks"]:
            lines += ["", "Not answered: " + escaped("; ".join(clause["lacks"])) + "."]
        if clause["author"]:
            lines += ["", f"For the authors: {clause['author']}"]
        if clause["verdict"] in ("to be justified", "contradicted"):
            lines += ["", "Acceptable, because: (for the authors)"]
    lines += ["", "## All rows", "", "| row | scenario | figure | rule | verdict | replay |"]
    lines += ["|---|---|---|---|---|---|", *map(_markdown_line, document["rows"].values())]
    return "\n".join(lines) + "\n"


def _markdown_line(row: Mapping[str, Any]) -> str:
    rule = f"{row['rule']}; {row['source']}"
    cells = [row["title"], f"{row['measure']} {figure(row)}", rule, row["verdict"]]
    replay = row["replay"].replace("|", "\\|")
    return f"| `{row['id']}` | {' | '.join(map(escaped, cells))} | `{replay}` |"


def _markdown_rows(clause: Mapping[str, Any]) -> Iterator[str]:
    if clause["against"] or clause["telling"]:
        yield ""
    for row in [*clause["against"][:SHOWN], *clause["telling"]]:
        apart = difference(row)
        yield (
            f"- {escaped(row['title'])}: {row['measure']} {escaped(figure(row))}; **{row['verdict']}** "
            f"({escaped(row['rule'])}; {escaped(row['source'])})"
            + (f"; {escaped(apart)}" if apart else "")
            + "  "
        )
        yield f"  `{row['replay']}`"
    if (more := len(clause["against"]) - SHOWN) > 0:
        yield f"- {plural(more, 'more row')} of this kind, in the table below."


def appendix(document: Mapping[str, Any]) -> str:
    """Return the evidence as an appendix of an Internet-Draft: ASCII, at most 72 columns."""
    parts = [heading(document), f"{made_by(document)}. {counts(document)}.", note(document)]
    blocks = [_block(part) for part in parts]
    for clause in document["clauses"]:
        head = f"Section {clause['number']}, {clause['title']} ({clause['level']})"
        rows = row_count(clause)
        in_rows = f", {plural(rows, 'row')}" if rows else ""
        body = [f"{clause['question']} Verdict: {clause['verdict']}{in_rows}."]
        items = [
            f"{row['id']}: {row['measure']} {figure(row)}; {row['verdict']} ({row['rule']})."
            for row in [*clause["against"][:SHOWN], *clause["telling"]]
        ]
        if (more := len(clause["against"]) - SHOWN) > 0:
            items.append(f"{plural(more, 'more row')}.")
        if clause["ranges"]:
            body.append(ranges.text(clause["ranges"]))
        if clause["lacks"]:
            body.append(f"Not answered: {'; '.join(clause['lacks'])}.")
        if clause["author"]:
            body.append(f"Authors: {clause['author']}")
        blocks.append(_block(head, ""))
        blocks += [_block(body[0]), *(_block(item, "   *  ", "      ") for item in items)]
        blocks += [_block(part) for part in body[1:]]
    return "\n\n".join(blocks) + "\n"


def _block(text: str, indent: str = "   ", hanging: str | None = None) -> str:
    plain = "".join(character if character.isascii() else REPLACED.get(character, "?") for character in text)
    return textwrap.fill(
        plain,
        COLUMNS + 3,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_on_hyphens=False,
    )


REPLACED = {
    "–": "-",
    "—": "-",
    "’": "'",
    "“": '"',
    "”": '"',
    "×": "x",
    "≥": ">=",
    "≤": "<=",
    "µ": "u",
    "±": "+-",
}
"""ASCII in the place of other characters."""
