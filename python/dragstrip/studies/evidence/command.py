"""Steps of `dragstrip evidence`: the evidence of a stored passport, and its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragstrip.display.quantity import number
from dragstrip.errors import BadInputError
from dragstrip.io.files import adding, json_text, read_json
from dragstrip.io.shape import TEXT, Plain, Shape, expect
from dragstrip.studies.evidence import page
from dragstrip.studies.evidence.document import of_passport
from dragstrip.studies.evidence.text import APPENDIX, MARKDOWN, appendix, markdown
from dragstrip.studies.passport import against
from dragstrip.studies.passport import command as passport


def _has_value(baseline: object) -> bool:
    """Return True for a table with a figure or null as `value`, and figures as its `difference`, if any."""
    if not isinstance(baseline, dict) or "value" not in baseline:
        return False
    figures = [*([] if baseline["value"] is None else [baseline["value"]]), *baseline.get("difference", ())]
    return all(number(figure) is not None for figure in figures)


JSON = "evidence.json"
MARKS = {JSON: "evidence", **passport.MARKS}
"""Files that mark a folder as one of evidence or of a passport, each with a field of it."""
_BASELINES = Plain(
    "a table of baselines, each with its value",
    lambda value: isinstance(value, dict) and all(map(_has_value, value.values())),
)
_OPTIONAL_TEXT = Plain("a text or null", lambda value: value is None or isinstance(value, str))
_OPTIONAL_NUMBER = Plain("a number or null", lambda value: value is None or number(value) is not None)
_SHAPE: Mapping[str, Shape] = {
    "version": TEXT,
    "build": _OPTIONAL_TEXT,
    "engine": TEXT,
    "kernel": _OPTIONAL_TEXT,
    "rows": [
        {
            "title": TEXT,
            "measure": TEXT,
            "unit": TEXT,
            "rule": TEXT,
            "source": TEXT,
            "replay": TEXT,
            "baselines": _BASELINES,
            "kind": Plain("P, T, K or R", lambda value: value in ("P", "T", "K", "R")),
            "least": _OPTIONAL_NUMBER,
            "most": _OPTIONAL_NUMBER,
        }
    ],
}
"""Fields of a passport that the evidence has, beside those that `against.read` expects."""


def make(
    request: passport.PassportRequest, workers: int | None, quiet: bool, out: Path | None
) -> dict[str, Any]:
    """Make a passport and return its evidence; with `out`, write both into that folder."""
    rows = passport.make(request, workers, quiet)
    document = of_passport(rows)
    if out is not None:
        passport.write(rows, request, out)
        write(document, out)
    return document


def read(file: Path) -> dict[str, Any]:
    """Return the evidence of a stored passport; raises `BadInputError` for another file or suite."""
    passport = against.read(file)
    expect(passport, _SHAPE, str(file))
    return of_passport(passport)


def expect_same_passport(file: Path, folder: Path) -> None:
    """Raise `BadInputError` for a folder that has another passport than this file."""
    stored = folder / passport.JSON
    if stored.is_file() and read_json(stored) != read_json(file):
        expected = f"a folder without another passport: its {passport.JSON} is not {file}"
        raise BadInputError("--out", str(folder), expected, "command line")


def write(document: Mapping[str, Any], folder: Path) -> None:
    """Write the document as JSON, HTML, Markdown and an appendix; raises `NotWrittenError`."""
    texts = {
        JSON: json_text(document),
        page.NAME: page.page(document),
        MARKDOWN: markdown(document),
        APPENDIX: appendix(document),
    }
    with adding(folder) as draft:
        for name, content in texts.items():
            (draft / name).write_text(content, encoding="utf-8", errors="backslashreplace")
