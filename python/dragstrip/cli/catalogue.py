"""`dragstrip list` and `dragstrip show`: the experiments, and the names that commands take."""

from __future__ import annotations

from typing import Annotated

import typer

from dragstrip.cli.options import Experiment, JsonFlag
from dragstrip.cli.output import print_json
from dragstrip.experiment import lists


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
    hosts: Annotated[bool, typer.Option("--host-kinds", help="Kinds of hosts by name, for --hosts.")] = False,
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
        "hosts": hosts,
        "workloads": workloads,
    }
    kinds = [kind for kind, selected in chosen_kinds.items() if selected] or ["experiments"]
    rows_by_kind = {kind: lists.LISTS[kind]() for kind in kinds}
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


_COLUMNS = {
    "experiments": ("name", "title", "claims"),
    "algorithms": ("name", "models", "parameters"),
    "queues": ("name", "words", "example"),
    "measures": ("name", "of", "unit", "meaning"),
    "paths": ("name", "about", "fields"),
    "media": ("name", "about", "source"),
    "hosts": ("name", "about", "source"),
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

    show_plan(described, planned.runs, len(planned.jobs) - len(planned.runs))
