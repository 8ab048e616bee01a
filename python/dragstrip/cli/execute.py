"""Runs what a command planned: progress, tables, report, exit status."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dragstrip.cli.output import command_line, located, print_json, say
from dragstrip.errors import BadInputError

if TYPE_CHECKING:
    from dragstrip.report.paper import Paper
    from dragstrip.runs import Limits
    from dragstrip.studies.execution.runner import Plan


def execute(
    planned: Plan,
    out: Path | None,
    stem: str,
    workers: int | None,
    limits: Limits,
    report: bool,
    figures: Paper,
    as_json: bool,
    heading: str = "",
    *,
    verbose: bool = False,
) -> None:
    """Run one experiment and print its tables or JSON; exits with status 1 if a run failed.

    `heading` follows the experiment's name above the table; `verbose` prints every table and reason.
    """
    from dragstrip.report.console import show_result
    from dragstrip.runs.progress import watching
    from dragstrip.studies.execution.runner import NotDrawnError, execute

    undrawn: NotDrawnError | None = None
    with (
        place(out, stem) as folder,
        watching([job.run for job in planned.jobs], quiet=as_json) as watcher,
    ):

        def measured(document: dict[str, Any]) -> None:
            if not as_json:  # the figures are there; the report takes a moment longer
                watcher.aside()
                show_result(document, planned.runs, heading, folder, verbose=verbose)
                sys.stdout.flush()

        try:
            document = execute(
                planned,
                folder,
                workers=workers,
                limits=limits,
                watcher=watcher,
                command=command_line(),
                report=report,
                figures=figures,
                measured=measured,
                counterfactuals=True,
            )
        except NotDrawnError as error:
            undrawn = error
            (document,) = error.documents.values()
    if as_json:
        print_json(located(document, folder))
    else:
        if "agreement" in document:
            from dragstrip.studies.validation import both, console

            console.show(both.of_result(document, folder))
        page = folder / "report.html"
        say(f"Report: {page}" if page.exists() else f"Recordings: {folder}")
    if undrawn is not None:
        raise undrawn
    if document["failed"]:
        raise typer.Exit(1)


@contextmanager
def noting_interruption(folder: Path) -> Iterator[None]:
    """Print, if the block is interrupted, that finished recordings are kept and the run cannot be resumed."""
    try:
        yield
    except KeyboardInterrupt:
        if (folder / "PARTIAL").exists():
            typer.echo(
                f"note: {folder}: the finished recordings are kept; an interrupted run cannot be resumed",
                err=True,
            )
        raise


@contextmanager
def place(out: Path | None, stem: str) -> Iterator[Path]:
    """Yield the requested folder, or the next free one below `runs`, which is removed if it stays empty."""
    from dragstrip.studies.execution.runner import next_folder

    if out is not None:
        with noting_interruption(out):
            yield out
        return
    parent = Path("runs")
    made_here = not parent.exists()
    try:
        with next_folder(parent, stem) as folder:
            try:
                with noting_interruption(folder):
                    yield folder
            except BaseException:
                with suppress(OSError):
                    folder.rmdir()
                raise
    except BaseException:
        if made_here:
            with suppress(OSError):
                parent.rmdir()
        raise


def check_twice(planned: Plan, out: Path | None, workers: int | None, limits: Limits, as_json: bool) -> None:
    """Run everything twice and print whether the bytes are equal; exits with status 1 if not."""
    from dragstrip.runs.progress import watching
    from dragstrip.studies.execution import check

    if out is not None:
        expected = "no folder: --check keeps no recordings"
        raise BadInputError("--out", str(out), expected, "command line")
    with watching(check.twice(planned.runs), quiet=as_json) as watcher:
        verdicts = check.check(planned, workers, watcher, limits)
    if as_json:
        print_json(check.document(verdicts))
    else:
        say("\n".join(map(check.describe, verdicts)))
    if not all(verdict.identical for verdict in verdicts):
        raise typer.Exit(1)


def execute_publication(
    name: str,
    plans: dict[str, Plan],
    out: Path | None,
    workers: int | None,
    limits: Limits,
    report: bool,
    figures: Paper,
    as_json: bool,
) -> None:
    """Run every experiment of a publication; exits with status 1 if a run failed."""
    from dragstrip.io.files import write_json
    from dragstrip.runs.progress import watching
    from dragstrip.studies.execution.runner import NotDrawnError, execute_all
    from dragstrip.studies.publications import console
    from dragstrip.studies.publications.document import document as compose

    runs = [job.run for planned in plans.values() for job in planned.jobs]
    command = command_line()
    settings: dict[str, Any] = {"workers": workers, "limits": limits, "command": command}
    settings |= {"report": report, "figures": figures}
    undrawn: NotDrawnError | None = None
    with place(out, name) as folder, watching(runs, quiet=as_json) as watcher:
        try:
            documents = execute_all(plans, folder, watcher=watcher, **settings)
        except NotDrawnError as error:
            undrawn, documents = error, error.documents
        document = compose(name, plans, documents)
        write_json(folder / "catalogue.json", document)
    if as_json:
        print_json(document)
    else:
        console.show(document)
        say(f"Recordings: {folder}")
    if undrawn is not None:
        raise undrawn
    if document["failed"]:
        raise typer.Exit(1)
