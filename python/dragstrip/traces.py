"""Recorded links: files in mahimahi's format, and links' settings over time (CSV).

In mahimahi's each line is a time in milliseconds, at which a packet of 1500 bytes may leave; they never
decrease, and the last one, which is above 0, is where the trace begins again.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

from pydantic import ValidationInfo

from dragstrip import outside
from dragstrip.errors import BadInputError, Raw
from dragstrip.quantities import refuse

DIGITS_MAX = 15
"""More than any run lasts, and less than the scenario's integers hold."""


def located(file: str, info: ValidationInfo) -> str:
    """The absolute path of a trace that can be used; refuses any other with its line.

    A relative path starts at the folder in the validation's context, the experiment's.
    """
    folder = (info.context or {}).get("folder", Path())
    path = str((Path(folder) / file).resolve())
    opportunities_ms(path)
    return path


@cache
def opportunities_ms(path: str) -> list[int]:
    """The times in a trace file, in milliseconds."""
    try:
        lines = outside.text(path, outside.TRACE_MAX, "a trace", "ascii").splitlines()
    except BadInputError as error:
        raise refuse(path, f"a trace file that can be read ({error})") from None
    name = Path(path).name
    times = [_time(line, f"{name}, line {number}") for number, line in enumerate(lines, 1)]
    if not times:
        raise refuse(path, "a trace with at least one line")
    for number, (before, after) in enumerate(pairwise(times), 2):
        if after < before:
            raise refuse(Raw(f"{name}, line {number}: {after}"), f"at least {before}, the time before")
    if times[-1] == 0:
        value = Raw(f"{name}, line {len(times)}: 0")
        raise refuse(value, "a last time above 0, where the trace begins again")
    return times


def _time(line: str, where: str) -> int:
    if not line.isdigit() or len(line) > DIGITS_MAX:
        raise refuse(Raw(f"{where}: {line!r}"), "a whole number of milliseconds, such as 12")
    return int(line)


CHANGES = ("at", "rate", "delay", "rtt", "loss", "limit", "state")
"""Columns that a trace of values may have."""
CHANGES_MAX = 20_000


def beside(file: str, info: ValidationInfo) -> str:
    """The absolute path of a trace of values that can be read; from the folder of the experiment."""
    folder = (info.context or {}).get("folder", Path())
    path = str((Path(folder) / file).resolve())
    changes(path)
    return path


@cache
def changes(path: str) -> list[tuple[int, dict[str, str]]]:
    """The rows of a trace of values: the line's number, and the settings whose cells are not empty.

    A first line names the columns, of which `at` is one.
    """
    try:
        lines = outside.text(path, outside.TRACE_MAX, "a trace of values").splitlines()
    except BadInputError as error:
        raise refuse(path, f"a trace of values that can be read ({error})") from None
    name = Path(path).name
    columns = [word.strip() for word in lines[0].split(",")] if lines else []
    if "at" not in columns or len(columns) < 2 or len(set(columns)) < len(columns):
        raise refuse(path, f"a first line that names columns: at, and some of {', '.join(CHANGES[1:])}")
    unknown = next((word for word in columns if word not in CHANGES), None)
    if unknown is not None:
        raise refuse(Raw(f"{name}, line 1: {unknown!r}"), f"one of {', '.join(CHANGES)}")
    if len(lines) > CHANGES_MAX:
        raise refuse(Raw(f"{name}: {len(lines)} lines"), f"at most {CHANGES_MAX}")
    rows = []
    for number, line in enumerate(lines[1:], 2):
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(columns):
            raise refuse(Raw(f"{name}, line {number}: {len(cells)} cells"), f"{len(columns)} cells")
        row = {column: cell for column, cell in zip(columns, cells, strict=True) if cell}
        if "at" not in row:
            raise refuse(Raw(f"{name}, line {number}: no time"), 'a time such as "0.5s"')
        if len(row) > 1:
            rows.append((number, row))
    return rows
