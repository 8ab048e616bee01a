"""Lists of the names that commands and functions take: experiments, algorithms, queues, paths, ..."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from dragstrip import _core
from dragstrip.errors import BadInputError

Row: TypeAlias = dict[str, Any]


def experiments() -> list[Row]:
    """Return the catalogue's experiments."""
    from dragstrip.experiment import catalogue
    from dragstrip.experiment.types import Experiment as Read

    entries = []
    for name, file in catalogue.files().items():
        experiment = Read.read(file)
        entries.append({"name": name, "title": experiment.title, "claims": len(experiment.claims)})
    return entries


def algorithms() -> list[Row]:
    """Return the congestion controls: TCP's, and those of the QUIC stacks."""
    quic = [
        {
            "name": row["name"],
            "file": f"crates/quic/src/{row['stack'].replace('-', '_')}.rs",
            "models": f"{row['title']} ({row['release']})"
            + ("; not installed here" if row["absent"] else ""),
            "parameters": [],
        }
        for row in _core.quic_table()
    ]
    return [*_core.algorithm_table(), *quic]


_LINK = re.compile(r"\[[^\]\[]+\]\(\.\./([^()#]+)(?:#[^()]*)?\)")
"""A link of the reference page."""


def _plain(text: str) -> str:
    """Return text of the reference page for a terminal: a link is the page that it leads to."""
    return _LINK.sub(r"docs/\1", text).replace("`", "")


def measures() -> list[Row]:
    """Return the measures."""
    return [
        {
            "name": name + ("_*" if series else ""),
            "of": level,
            "unit": unit,
            "meaning": _plain(meaning),
        }
        for name, level, unit, meaning, series in _core.MEASURES
    ]


def _rows_of(kind: str) -> Callable[[], list[Row]]:
    def rows() -> list[Row]:
        entries: list[Row] = _core.names()[kind]
        return entries

    return rows


def paths() -> list[Row]:
    """Return the built-in paths, and the user's own."""
    from dragstrip.experiment import saved_paths

    rows: list[Row] = []
    for name in saved_paths.names():
        try:
            saved = saved_paths.read(saved_paths.file_of(name))
        except BadInputError as error:  # one damaged file does not hide the others
            rows.append({"name": name, "about": f"cannot be read: {error.explanation}", "fields": []})
            continue
        fields = [[key, str(value)] for key, value in saved.options.items()]
        fields += [[key, "unknown"] for key, entry in saved.known.items() if entry.unknown]
        rows.append({"name": name, "about": f"your own: {saved.source}", "fields": fields})
    return [*_rows_of("paths")(), *rows]


LISTS: dict[str, Callable[[], list[Row]]] = {
    "experiments": experiments,
    "algorithms": algorithms,
    "queues": _rows_of("queues"),
    "measures": measures,
    "paths": paths,
    "media": _rows_of("media"),
    "hosts": _rows_of("hosts"),
    "workloads": _rows_of("workloads"),
}
"""By kind: the function that returns its rows."""
