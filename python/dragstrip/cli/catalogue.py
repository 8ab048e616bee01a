"""`dragstrip list` and `dragstrip show`: what there is to run."""

from __future__ import annotations

from typing import Annotated

import typer

from dragstrip.cli.options import JsonFlag
from dragstrip.cli.output import print_json


def list_(as_json: JsonFlag = False) -> None:
    """List the catalogue's experiments.

    Example: dragstrip list
    """
    from dragstrip import catalogue
    from dragstrip.experiment import Experiment

    entries = []
    for name, file in catalogue.files().items():
        experiment = Experiment.read(file)
        entries.append({"name": name, "title": experiment.title, "claims": len(experiment.claims)})
    if as_json:
        print_json({"experiments": entries})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("experiment", "title", "claims", title="catalogue")
    for entry in entries:
        table.add_row(str(entry["name"]), str(entry["title"]), str(entry["claims"]))
    Console().print(table)


def show(
    experiment: Annotated[str, typer.Argument(help="Name in the catalogue, or a TOML file.")],
    as_json: JsonFlag = False,
) -> None:
    """Show an experiment: what it runs, and its claims.

    Example: dragstrip show caia-110729a/adsl1
    """
    from dragstrip import catalogue
    from dragstrip.runner import plan

    described, source = catalogue.load(experiment)
    planned = plan(described, source)
    if as_json:
        print_json({"experiment": described.content(), "scenarios": [run.scenario for run in planned.runs]})
        return
    from dragstrip.console import show_plan

    show_plan(described, planned.runs)
