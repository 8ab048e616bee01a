"""A passport as one HTML file without scripts or requests, light and dark, for a desk and a phone."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from dragstrip.display import html, quantity
from dragstrip.display.quantity import MISSING
from dragstrip.display.table import Cell, Table, text_table
from dragstrip.studies.passport.wording import agreed, by_reason, engine, measured, unit

NAME = "passport.html"
LOOKS = {
    "held": "good",
    "better": "good",
    "same": "even",
    "reported": "even",
    "missed, as by CUBIC": "open",
    "worse": "bad",
    "missed": "bad",
    "failed": "bad",
}
"""Grade that a verdict is marked as."""
THEORY_HEADS = ("path", "law", "figure", "theory", "apart", "valid")
CHANGE_HEADS = ("row", "", "before", "now", "verdict")


def page(document: Mapping[str, Any]) -> str:
    """Return the page; everything that comes from outside is escaped."""
    rows = {row["id"]: row for row in document["rows"]}
    kind = "quick passport" if document["quick"] else "passport"
    comparison, change = document.get("beside"), document.get("against")
    return html.render(
        "studies/passport/page.html",
        title=f"{kind.capitalize()} of {document['algorithm']}",
        document=document,
        of_queue=document.get("of") == "queue",
        engine=engine(document),
        worst=[rows[name] for name in document["worst"]],
        second_engine=None if comparison is None else _second_engine(comparison),
        against=None if change is None else _against(change),
        harm=_harm(document["harm"]),
        theory=_theory(document["rows"]),
        not_run=_reasons(document["not_run"]),
        baselines=next((list(row["baselines"]) for row in document["rows"]), []),
        looks=LOOKS,
        measured=measured,
        unit=unit,
        words=_words,
    )


def _words(command: str) -> list[str]:
    """Return the words of a command line, each quoted as a shell needs it."""
    return [shlex.quote(word) for word in shlex.split(command)]


def _reasons(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each reason that rows were not run, with the titles of these rows."""
    titles = {row["id"]: row["title"] for row in rows}
    return [
        f"{why}: {'; '.join(dict.fromkeys(titles[name] for name in names))}"
        for why, names in by_reason(rows).items()
    ]


def _harm(cells: Sequence[Mapping[str, Any]]) -> Table | None:
    """Return the harm of each kind of flow to each other on every path, or None without neighbours."""
    if not cells:
        return None
    paths = list(dict.fromkeys(cell["path"] for cell in cells))
    doers = list(dict.fromkeys(cell["by"] for cell in cells))
    harm_by_cell = {(cell["by"], cell["to"], cell["path"]): cell["harm"] for cell in cells}
    victims = list(dict.fromkeys(cell["to"] for cell in cells))
    rows: list[list[str | Cell]] = [
        [f"{by} to {to}", *(Cell(_share(harm_by_cell.get((by, to, path)))) for path in paths)]
        for by in doers
        for to in victims
        if any(cell["by"] == by and cell["to"] == to for cell in cells)
    ]
    return text_table(("who to whom", *paths), rows)


def _share(harm: float | None) -> str:
    return quantity.percent(harm)


def _theory(rows: Sequence[Mapping[str, Any]]) -> Table | None:
    """Return the figures of rows that a law describes beside those of the law, or None without such rows."""
    table_rows = [
        (
            row["title"],
            law["law"],
            Cell(unit(row)),
            Cell(measured(law["value"])),
            Cell(MISSING if law["deviation"] is None else f"{100 * law['deviation']:+.0f} %"),
            Cell(law["valid"], f"({row['source']})", number=False),
        )
        for row in rows
        if (law := row["theory"]) is not None
    ]
    return text_table(THEORY_HEADS, table_rows) if table_rows else None


def _verdict(verdict: str) -> Cell:
    return Cell(verdict, number=False, look=LOOKS[verdict])


def _second_engine(comparison: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the comparison with a second engine as the template has it."""
    rows = [
        (
            Cell(row["title"], row["id"], number=False),
            Cell(row["measure"], row["unit"], number=False),
            Cell(measured(row["value"])),
            _verdict(row["verdict"]),
            Cell(measured(row["other_value"])),
            _verdict(row["other_verdict"]),
        )
        for row in comparison["different"]
    ]
    heads = ("row", "measure", "here", "verdict", comparison["engine"], "verdict")
    return {
        "engine": engine(comparison),
        "agreed": agreed(comparison),
        "different": text_table(heads, rows) if rows else None,
        "not_run": _reasons(comparison["not_run"]),
    }


def _against(change: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the comparison with an earlier passport as the template has it."""
    rows = [
        (
            row["id"],
            Cell(row["how"], number=False, look="good" if row["how"] == "better" else "bad"),
            Cell(measured(row["before"])),
            Cell(measured(row["now"])),
            f"{row['verdict_before']} → {row['verdict_now']}",
        )
        for row in change["changed"]
        if row["how"] != "same"
    ]
    return {
        "passport": change["against"],
        "unchanged": change["unchanged"],
        "changed": text_table(CHANGE_HEADS, rows) if rows else None,
    }
