"""The suite: all chapters in order, their rows, and the properties that they do not test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from dragstrip.errors import BadInputError, nearest
from dragstrip.experiment.saved_paths import DEFAULT_PATH
from dragstrip.studies.passport.chapters import (
    alone,
    aqm,
    bbr,
    beside,
    changes,
    exits,
    limited,
    loss,
    many,
    mixed,
    path,
    rtt,
    starvation,
    theory,
    users,
)
from dragstrip.studies.passport.rows import Options, PassportRow

VERSION = 6
"""The suite's version: rows of different versions are not compared."""
CHAPTERS: tuple[ModuleType, ...] = (
    alone,
    many,
    beside,
    rtt,
    loss,
    aqm,
    changes,
    users,
    limited,
    exits,
    mixed,
    starvation,
    theory,
    bbr,
)
NAMES = tuple(chapter.NAME for chapter in CHAPTERS)
"""The chapters of the suite. The chapter `path` is made only where it is asked for."""
TITLES = {chapter.NAME: chapter.TITLE for chapter in (*CHAPTERS, path)}


@dataclass(frozen=True)
class Untested:
    """Something that RFC 9743 or a suite asks for and that no row tests."""

    topic: str
    why: str


UNTESTED = (
    Untested("multipath (RFC 9743 7.10)", "not modelled"),
    Untested(
        "network transport circuit breakers (RFC 9743 7.2, RFC 8084)", "not modelled; RTP's are (RFC 8083)"
    ),
    Untested("receivers that lie: ACK division, optimistic ACKs (RFC 9743 7.6)", "receivers are honest here"),
    Untested("host CPU, pacing and offload of real network cards", "a simulator has none"),
    Untested("real radio: fading, handover, recorded cellular traces", "no traces ship with the program"),
    Untested(
        "marks lost where a tunnel ends (RFC 6040)", "no link clears them; rows have flows hidden in a tunnel"
    ),
    Untested("loads of data mining, Hadoop and caches", "no row yet; web search is one"),
    Untested(
        "ACKs aggregated by a number or a time, and one flow's jitter (Arun et al.)",
        "no queue holds ACKs so; those of 802.11n and HomePlug AV are aggregated",
    ),
    Untested("cases of draft-ietf-ccwg-bbr without a row", bbr.NOT_TESTED),
    Untested(
        "one connection that is limited first and then sends in bulk; a receiver's window that opens",
        "no application changes so; chapter limited has pauses",
    ),
    Untested("self-inflicted delay (Sprout, NSDI 2013)", "no measure has the delay of an omniscient sender"),
    Untested(
        "responsiveness by draft-ietf-ippm-responsiveness, with its confidence",
        "rows have a fixed load and pings, and add no connections until goodput is stable",
    ),
    Untested("conformance with a reference implementation", "dragstrip validate compares with kernels"),
    Untested("a real kernel", "rows run on the simulator alone"),
    Untested("cases that nobody has thought of", "a passport has known ones only"),
)


def chapters(only: str | None, has_path: bool = False) -> tuple[str, ...]:
    """The chapters that `--only` names, in the suite's order; all where it names none.

    With a path (`has_path`) the chapter `path` is one of them, and the only one where `--only` names none.
    Raises `BadInputError` for a name that is no chapter.
    """
    if only is None:
        return (path.NAME,) if has_path else NAMES
    names = [name.strip() for name in only.split(",")]
    for name in names:
        if name not in TITLES:
            expected = f"chapters out of {', '.join(TITLES)}, with commas between{nearest(name, TITLES)}"
            raise BadInputError("--only", only, expected, "command line")
    return tuple(name for name in TITLES if name in names or (has_path and name == path.NAME))


def rows(
    algorithm: str,
    chapter_names: Sequence[str],
    quick: bool,
    path_options: Options = DEFAULT_PATH,
    path_name: str = "",
) -> list[PassportRow]:
    """The rows of these chapters that are about this algorithm, of the quick suite or of all.

    `path_options` and `path_name` are the path of the chapter `path`.
    """
    path_rows = list(path.rows(path_options, path_name)) if path.NAME in chapter_names else []
    return [
        row
        for chapter in CHAPTERS
        if chapter.NAME in chapter_names
        for row in chapter.rows()
        if (row.quick or not quick) and _is_about(row, algorithm)
    ] + path_rows


def _is_about(row: PassportRow, algorithm: str) -> bool:
    """True when a row is about an algorithm; the cases of BBR are about all whose names claim to be one."""
    if row.chapter == bbr.NAME:
        return algorithm.startswith(row.only_for)
    return not row.only_for or algorithm in row.only_for


def beyond(algorithm: str) -> list[str]:
    """The laws of the suite that do not describe this algorithm."""
    laws = [row.law for row in theory.rows() if row.law is not None]
    applicable = {law.name for law in laws if algorithm in law.holds_for}
    return [name for name in dict.fromkeys(law.name for law in laws) if name not in applicable]
