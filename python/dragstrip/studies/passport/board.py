"""A board: all passports of a folder in one table, algorithms by chapters, as JSON and as a page that sorts.

Each cell has the rows that speak against the algorithm, and leads to them in its passport's page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragstrip.display import html
from dragstrip.errors import BadInputError
from dragstrip.io.files import json_text, write_text
from dragstrip.io.shape import COUNT, TEXT, Plain, expect
from dragstrip.studies.passport import against, page
from dragstrip.studies.passport.command import JSON as PASSPORT

NAME = "board.html"
JSON = "board.json"
AGAINST = ("missed", "worse", "failed")
"""Verdicts that speak against an algorithm; what CUBIC misses too does not."""
GOOD_SHARE, BAD_SHARE = 0.1, 0.3
"""Shares of such rows up to which a cell looks good, and from which it looks bad."""
_TABLE = Plain("a table", lambda value: isinstance(value, dict))
_CHAPTERS = {"chapters": [{"name": TEXT, "title": TEXT, "rows": COUNT, "verdicts": _TABLE}]}
SCRIPT = """
const table = document.querySelector("table.board");
const body = table.tBodies[0];
for (const button of table.querySelectorAll("thead button")) {
  const head = button.closest("th");
  button.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of table.querySelectorAll("thead th")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => row.cells[head.cellIndex].dataset.value;
    const order = (a, b) => (isNaN(key(a)) ? key(a).localeCompare(key(b)) : key(a) - key(b));
    body.append(...[...body.rows].sort((a, b) => (down ? order(b, a) : order(a, b))));
  });
}
"""
STYLE = "table.board button{font:inherit;color:inherit;background:none;border:0;padding:0;cursor:pointer}"


def write(folder: Path) -> dict[str, Any]:
    """Write the board of the passports in the folders below this one, and return its document.

    Raises `BadInputError` if there is no passport, if one is of another suite, or if they differ in build.
    """
    files = sorted(folder.glob(f"*/{PASSPORT}"))
    if not files:
        raise BadInputError("FOLDER", str(folder), f"a folder with folders that have a {PASSPORT}")
    passports = {}
    for file in files:
        passports[file.parent.name] = passport = against.read(file)
        expect(passport, {**_CHAPTERS, "version": TEXT}, str(file))
    content = document(passports)
    write_text(folder / JSON, json_text(content))
    write_text(folder / NAME, board(content))
    return content


def document(passports: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the board of passports by their folders; raises `BadInputError` if they are not comparable."""
    first = next(iter(passports.values()))
    for folder, passport in passports.items():
        for field in ("build", "quick"):
            if passport[field] != first[field]:
                raise BadInputError(field, passport[field], f"{first[field]}, as of the first", folder)
    titles = {
        chapter["name"]: chapter["title"]
        for passport in passports.values()
        for chapter in passport["chapters"]
    }
    return {
        "board": 1,
        "suite": first["suite"],
        "version": first["version"],
        "build": first["build"],
        "quick": first["quick"],
        "chapters": titles,
        "algorithms": [_line(folder, passport) for folder, passport in passports.items()],
    }


def _line(folder: str, passport: Mapping[str, Any]) -> dict[str, Any]:
    chapters = {
        chapter["name"]: {**_against(chapter["rows"], chapter["verdicts"]), "verdicts": chapter["verdicts"]}
        for chapter in passport["chapters"]
    }
    rows = sum(chapter["rows"] for chapter in chapters.values())
    bad = sum(chapter["against"] for chapter in chapters.values())
    return {
        "algorithm": passport["algorithm"],
        "folder": folder,
        "rows": rows,
        "against": bad,
        "chapters": chapters,
    }


def _against(rows: int, verdicts: Mapping[str, int]) -> dict[str, int]:
    return {"rows": rows, "against": sum(verdicts.get(name, 0) for name in AGAINST)}


def look(against_count: int, rows: int) -> str:
    """Return the grade that a cell is marked as, by its share of rows that speak against the algorithm."""
    share = against_count / rows if rows else 0.0
    return "good" if share <= GOOD_SHARE else "bad" if share >= BAD_SHARE else "even"


def board(content: Mapping[str, Any]) -> str:
    """Return the page; everything that comes from outside is escaped."""
    kind = "quick passports" if content["quick"] else "passports"
    return html.render(
        "studies/passport/board.html",
        title=f"{len(content['algorithms'])} {kind}",
        script=SCRIPT,
        style=STYLE,
        board=content,
        look=look,
        passport_page=page.NAME,
    )


__all__: Sequence[str] = ["JSON", "NAME", "board", "document", "look", "write"]
