"""The log of a search: JSON lines, written as they come, from which an interrupted search goes on.

The first line names the search. Each generation has a line with its texts, before any of them is scored, and
then a line for each score, in the order of the texts. A last line that is not whole, after a power failure,
is cut off.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragstrip.errors import BadInputError
from dragstrip.io import untrusted
from dragstrip.io.files import NotWrittenError, expect_file

LOG_BYTES_MAX = 1 << 30
"""Bytes of a log that is read, at most."""
FIELDS = ("score", "interval", "error", "rows")
"""Fields of a score's line."""


def expect_log(file: Path) -> None:
    """Raise `BadInputError` before any work is done if `file` cannot be the log of a search."""
    expect_file("log", file)
    if file.exists() and not file.is_file():
        raise BadInputError("log", str(file), "a regular file, or one that does not exist")


class SearchLog:
    """A log with the generations that it had when it was opened; without a file it keeps nothing."""

    def __init__(self, file: Path | None, head: Mapping[str, Any]) -> None:
        """Open a log, or begin one whose first line is `head`.

        Raises `BadInputError` for a file that is no log, and for the log of a search with another head.
        """
        self._file = file
        self.proposals: list[list[str]] = []
        """Texts of each generation."""
        self.scores: list[dict[str, Any]] = []
        """Scores so far, in the order of the texts of all generations."""
        if file is None:
            return
        content = untrusted.text(file, LOG_BYTES_MAX, "the log of a search") if file.exists() else ""
        *whole, torn = content.split("\n")
        if not whole and not json.dumps(head).startswith(torn):
            raise self._wrong(1, torn)  # some other file without a newline: nothing of it may be lost
        self._take(whole, head)
        _cut(file, sum(len(line.encode()) + 1 for line in whole))
        if not whole:
            self._write(head)

    def propose(self, texts: Sequence[str]) -> None:
        """Add a generation's texts."""
        self.proposals.append(list(texts))
        self._write({"texts": list(texts)})

    def score(self, fields: Mapping[str, Any]) -> None:
        """Add the next score."""
        self.scores.append(dict(fields))
        self._write(fields)

    def _take(self, lines: Sequence[str], head: Mapping[str, Any]) -> None:
        for number, line in enumerate(lines, 1):
            entry = self._entry(line, number)
            if number == 1:
                self._expect_head(entry, head)
            elif _is_proposal(entry) and len(self.scores) == self._proposed():
                self.proposals.append(entry["texts"])
            elif _is_score(entry) and len(self.scores) < self._proposed():
                self.scores.append(entry)
            else:
                raise self._wrong(number, line)

    def _entry(self, line: str, number: int) -> dict[str, Any]:
        try:
            entry = untrusted.parsed_json(line, str(self._file), strict=True)
        except BadInputError as error:
            raise self._wrong(number, line, f"; it {error.expected}") from None
        if not isinstance(entry, dict):
            raise self._wrong(number, line)
        return entry

    def _expect_head(self, entry: Mapping[str, Any], head: Mapping[str, Any]) -> None:
        if "search" not in entry:
            raise self._wrong(1, json.dumps(entry))
        for name, value in head.items():
            if entry.get(name) != value:
                expected = f"{value!r}, as in this search: another search has another log"
                raise BadInputError(name, entry.get(name), expected, f"{self._file}:1")

    def _proposed(self) -> int:
        return sum(len(texts) for texts in self.proposals)

    def _wrong(self, number: int, line: str, reason: str = "") -> BadInputError:
        expected = f"a line of the log of a search{reason}"
        return BadInputError("", line[:40], expected, f"{self._file}:{number}")

    def _write(self, entry: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        try:
            with self._file.open("a", encoding="utf-8", newline="\n") as opened:
                opened.write(json.dumps(entry) + "\n")
                opened.flush()
                os.fsync(opened.fileno())
        except OSError as error:
            raise NotWrittenError(self._file, error) from error


def _is_proposal(entry: Mapping[str, Any]) -> bool:
    texts = entry.get("texts")
    return isinstance(texts, list) and bool(texts) and all(isinstance(text, str) for text in texts)


def _is_score(entry: Mapping[str, Any]) -> bool:
    if entry.keys() != set(FIELDS):
        return False
    score, interval, error, rows = (entry[name] for name in FIELDS)
    if score is None:
        return interval is None and isinstance(error, str) and rows == []
    if error is not None or not _is_number(score):
        return False
    are_ends = isinstance(interval, list) and len(interval) == 2 and all(map(_is_number, interval))
    return are_ends and isinstance(rows, list) and all(map(_is_row, rows))


def _is_row(row: object) -> bool:
    return isinstance(row, dict) and isinstance(row.get("id"), str) and _is_number(row.get("score"))


def _is_number(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _cut(file: Path, size: int) -> None:
    try:
        with file.open("a", encoding="utf-8") as opened:
            opened.truncate(size)
    except OSError as error:
        raise NotWrittenError(file, error) from error
