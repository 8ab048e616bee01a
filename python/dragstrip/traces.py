"""Recorded links: files in mahimahi's format.

Each line is a time in milliseconds, at which a packet of 1500 bytes may leave; they never decrease, and the
last one, which is above 0, is where the trace begins again.
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
