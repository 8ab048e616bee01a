"""Running what a command planned: progress, tables, report, status."""

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
    from dragstrip.paper import Paper
    from dragstrip.pool import Limits
    from dragstrip.runner import Plan


def execute(
    planned: Plan,
    out: Path | None,
    stem: str,
    workers: int | None,
    limits: Limits,
    report: bool,
    figures: Paper,
    as_json: bool,
) -> None:
    """Runs one experiment: table or JSON, report; exits with 1 if a run failed."""
    from dragstrip.console import show_result, watching
    from dragstrip.runner import NotDrawnError, execute

    undrawn: NotDrawnError | None = None
    with (
        place(out, stem) as folder,
        watching([job.run for job in planned.jobs], quiet=as_json) as watcher,
    ):

        def measured(document: dict[str, Any]) -> None:
            if not as_json:  # the figures are there; the report takes a moment longer
                watcher.aside()
                show_result(document, planned.runs)
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
            )
        except NotDrawnError as error:
            undrawn = error
            (document,) = error.documents.values()
    if as_json:
        print_json(located(document, folder))
    else:
        if "agreement" in document:
            from dragstrip.validation import both, console

            console.show(both.of_result(document, folder))
        page = folder / "report.html"
        say(f"Report: {page}" if page.exists() else f"Recordings: {folder}")
    if undrawn is not None:
        raise undrawn
    if document["failed"]:
        raise typer.Exit(1)


@contextmanager
def kept(folder: Path) -> Iterator[None]:
    """Says, when the block is interrupted, what stays and that it cannot be resumed."""
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
    """The folder asked for, or the next below `runs`, which goes again if nothing is in it."""
    from dragstrip.runner import next_folder

    if out is not None:
        with kept(out):
            yield out
        return
    parent = Path("runs")
    made_here = not parent.exists()
    try:
        with next_folder(parent, stem) as folder:
            try:
                with kept(folder):
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
    """Runs everything twice and says whether the bytes are the same; exits with 1 if not."""
    from dragstrip import check
    from dragstrip.console import watching

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
    write_docs: Path | None,
    as_json: bool,
) -> None:
    """Runs every experiment of a publication; exits with 1 if a run failed."""
    from dragstrip.console import watching
    from dragstrip.files import write_json
    from dragstrip.publications import console, pages
    from dragstrip.publications.document import document as compose
    from dragstrip.runner import NotDrawnError, execute_all

    if write_docs is not None:
        pages.check([planned.experiment for planned in plans.values()], write_docs)
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
    if write_docs is not None:
        for file in pages.write(document, folder, write_docs):
            say(f"Wrote {file}", err=True)
