"""`dragstrip list` and `dragstrip show`: the experiments, and the names that commands take."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

import typer

from dragstrip import _core
from dragstrip.cli.options import Experiment, JsonFlag
from dragstrip.cli.output import print_json

Row = dict[str, Any]


def list_(
    algorithms: Annotated[
        bool, typer.Option("--algorithms", help="Congestion controls, with their parameters.")
    ] = False,
    queues: Annotated[
        bool, typer.Option("--queues", help="Queue disciplines, with the words they take.")
    ] = False,
    measures: Annotated[
        bool, typer.Option("--measures", help="Measures, as claims and results name them.")
    ] = False,
    paths: Annotated[bool, typer.Option("--paths", help="Paths by name, for --path.")] = False,
    media: Annotated[bool, typer.Option("--media", help="Media by name, for --medium.")] = False,
    workloads: Annotated[
        bool, typer.Option("--workloads", help="Workloads by name, for --workload.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """List the catalogue's experiments, or the names that commands take.

    Example: dragstrip list --paths
    """
    chosen_kinds = {
        "algorithms": algorithms,
        "queues": queues,
        "measures": measures,
        "paths": paths,
        "media": media,
        "workloads": workloads,
    }
    kinds = [kind for kind, selected in chosen_kinds.items() if selected] or ["experiments"]
    rows_by_kind = {kind: _LISTS[kind]() for kind in kinds}
    if as_json:
        print_json(rows_by_kind)
        return
    from rich.table import Table

    from dragstrip.display.terminal import Terminal

    for kind, rows in rows_by_kind.items():
        columns = list(_COLUMNS[kind])
        table = Table(*columns, title="catalogue" if kind == "experiments" else kind)
        for row in rows:
            table.add_row(*(_cell(row[column]) for column in columns))
        Terminal().print(table)


def _experiments() -> list[Row]:
    from dragstrip.experiment import catalogue
    from dragstrip.experiment.types import Experiment as Read

    entries = []
    for name, file in catalogue.files().items():
        experiment = Read.read(file)
        entries.append({"name": name, "title": experiment.title, "claims": len(experiment.claims)})
    return entries


def _algorithms() -> list[Row]:
    rows: list[Row] = _core.algorithm_table()
    return rows


_LINK = re.compile(r"\[[^\]\[]+\]\(\.\./([^()#]+)(?:#[^()]*)?\)")
"""A link of the reference page."""


def _plain(text: str) -> str:
    """Return text of the reference page for a terminal: a link is the page that it leads to."""
    return _LINK.sub(r"docs/\1", text).replace("`", "")


def _measures() -> list[Row]:
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


def _paths() -> list[Row]:
    """Return the built-in paths, and the user's own."""
    from dragstrip.experiment import saved_paths

    own: list[Row] = []
    for name in saved_paths.names():
        saved = saved_paths.read(saved_paths.file_of(name))
        fields = [[key, str(value)] for key, value in saved.options.items()]
        own.append({"name": name, "about": f"your own: {saved.source}", "fields": fields})
    return [*_rows_of("paths")(), *own]


_LISTS: dict[str, Callable[[], list[Row]]] = {
    "experiments": _experiments,
    "algorithms": _algorithms,
    "queues": _rows_of("queues"),
    "measures": _measures,
    "paths": _paths,
    "media": _rows_of("media"),
    "workloads": _rows_of("workloads"),
}
_COLUMNS = {
    "experiments": ("name", "title", "claims"),
    "algorithms": ("name", "models", "parameters"),
    "queues": ("name", "words", "example"),
    "measures": ("name", "of", "unit", "meaning"),
    "paths": ("name", "about", "fields"),
    "media": ("name", "about", "source"),
    "workloads": ("name", "about"),
}


def _cell(value: object) -> str:
    """Return text as it is, and for a list its names, or `field value` for pairs."""
    if not isinstance(value, list):
        return str(value)
    parts = []
    for entry in value:
        if isinstance(entry, dict):
            parts.append(f"{entry['name']}={entry['default']:g}")
        elif isinstance(entry, list):
            parts.append(" ".join(entry))
        else:
            parts.append(str(entry))
    return ", ".join(parts)


def show(
    experiment: Experiment,
    as_json: JsonFlag = False,
) -> None:
    """Show an experiment: what it runs, and its claims.

    Example: dragstrip show caia-110729a/adsl1
    """
    from dragstrip.experiment import catalogue
    from dragstrip.studies.execution.runner import plan

    described, source = catalogue.load(experiment)
    planned = plan(described, source)
    if as_json:
        print_json({"experiment": described.content(), "scenarios": [run.scenario for run in planned.runs]})
        return
    from dragstrip.report.console import show_plan

    show_plan(described, planned.runs)
