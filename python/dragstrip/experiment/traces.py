"""Recorded links: files in mahimahi's format, and links' settings over time (CSV).

In mahimahi's each line is a time in milliseconds, at which a packet of 1500 bytes may leave; they never
decrease, and the last one, which is above 0, is where the trace begins again.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

from dragstrip.errors import BadInputError, Raw
from dragstrip.io import untrusted

DIGITS_MAX = 15
"""More than any run lasts, and less than the scenario's integers hold."""


def located(file: str, folder: Path, field: str) -> str:
    """The absolute path of a recorded link that can be used; a relative one starts at `folder`.

    Raises `BadInputError` with the line that is wrong.
    """
    path = str((folder / file).resolve())
    try:
        opportunities_ms(path)
    except BadInputError as error:
        raise BadInputError(field, Raw(error.value), error.expected) from None
    return path


@cache
def opportunities_ms(path: str) -> list[int]:
    """The times in a trace file, in milliseconds."""
    try:
        lines = untrusted.text(path, untrusted.TRACE_MAX, "a trace", "ascii").splitlines()
    except BadInputError as error:
        raise BadInputError("", path, f"a trace file that can be read ({error})") from None
    name = Path(path).name
    times = [_time(line, f"{name}, line {number}") for number, line in enumerate(lines, 1)]
    if not times:
        raise BadInputError("", path, "a trace with at least one line")
    for number, (before, after) in enumerate(pairwise(times), 2):
        if after < before:
            raise BadInputError(
                "", Raw(f"{name}, line {number}: {after}"), f"at least {before}, the time before"
            )
    if times[-1] == 0:
        value = Raw(f"{name}, line {len(times)}: 0")
        raise BadInputError("", value, "a last time above 0, where the trace begins again")
    return times


def _time(line: str, where: str) -> int:
    if not line.isdigit() or len(line) > DIGITS_MAX:
        raise BadInputError("", Raw(f"{where}: {line!r}"), "a whole number of milliseconds, such as 12")
    return int(line)


CHANGES = ("at", "rate", "delay", "rtt", "loss", "limit", "state")
"""Columns that a trace of values may have."""
CHANGES_MAX = 20_000


def located_changes(file: str, folder: Path, field: str) -> str:
    """The absolute path of a trace of values that can be read; a relative one starts at `folder`.

    Raises `BadInputError` with the line that is wrong.
    """
    path = str((folder / file).resolve())
    changes(path, field)
    return path


def changes(path: str, field: str) -> list[tuple[int, dict[str, str]]]:
    """The rows of a trace of values: the line's number, and the settings whose cells are not empty.

    Raises `BadInputError` about `field`.
    """
    try:
        return _changes(path)
    except BadInputError as error:
        raise BadInputError(field, Raw(error.value), error.expected) from None


@cache
def _changes(path: str) -> list[tuple[int, dict[str, str]]]:
    """The rows of a trace of values: the line's number, and the settings whose cells are not empty.

    A first line names the columns, of which `at` is one.
    """
    try:
        lines = untrusted.text(path, untrusted.TRACE_MAX, "a trace of values").splitlines()
    except BadInputError as error:
        raise BadInputError("", path, f"a trace of values that can be read ({error})") from None
    name = Path(path).name
    columns = [word.strip() for word in lines[0].split(",")] if lines else []
    if "at" not in columns or len(columns) < 2 or len(set(columns)) < len(columns):
        raise BadInputError(
            "", path, f"a first line that names columns: at, and some of {', '.join(CHANGES[1:])}"
        )
    unknown = next((word for word in columns if word not in CHANGES), None)
    if unknown is not None:
        raise BadInputError("", Raw(f"{name}, line 1: {unknown!r}"), f"one of {', '.join(CHANGES)}")
    if len(lines) > CHANGES_MAX:
        raise BadInputError("", Raw(f"{name}: {len(lines)} lines"), f"at most {CHANGES_MAX}")
    rows = []
    for number, line in enumerate(lines[1:], 2):
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(columns):
            raise BadInputError(
                "", Raw(f"{name}, line {number}: {len(cells)} cells"), f"{len(columns)} cells"
            )
        row = {column: cell for column, cell in zip(columns, cells, strict=True) if cell}
        if "at" not in row:
            raise BadInputError("", Raw(f"{name}, line {number}: no time"), 'a time such as "0.5s"')
        if len(row) > 1:
            rows.append((number, row))
    return rows
