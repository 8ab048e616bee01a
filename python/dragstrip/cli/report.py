"""`dragstrip report`: the page of a finished run again, or recordings and captures side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragstrip.cli import words
from dragstrip.cli.options import Figures, JsonFlag, Out, Width
from dragstrip.cli.output import print_json, say
from dragstrip.errors import BadInputError

if TYPE_CHECKING:
    from dragstrip.interop.inputs import Input
    from dragstrip.report.beside import Source
    from dragstrip.report.paper import Paper

SOURCES_MAX = 64


def report(
    of: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER|FILE...",
            help="Output folder of a run or a sweep. Or several, side by side: output folders, folders of "
            "recordings, captures, and other files that `dragstrip inspect` reads.",
        ),
    ],
    figures: Figures = None,
    width: Width = None,
    out: Out = None,
    as_json: JsonFlag = False,
) -> None:
    """Rewrite the report of a finished run, or write one report of several recordings side by side.

    Example: dragstrip report demo --figures svg,png,pdf,csv

    Example: dragstrip report demo --figures pdf --width 84mm

    Example: dragstrip report server.pcapng iperf.json runs/compare-001 --out beside
    """
    from dragstrip.interop.inputs import input_of, recordings

    paper = words.figures(figures, width, None)
    (first, *more_paths) = of
    if not first.exists() and not more_paths:
        expected = "the output folder of a run, or a file that exists"
        raise BadInputError("FOLDER", str(first), expected, "command line")
    if more_paths:
        _side_by_side(str(first), map(input_of, of), out, paper, as_json)
        return
    single = input_of(first)
    if single.kind in ("run", "sweep", "folder"):
        if out is not None:
            expected = "no folder: the report of a run stays in the run's folder"
            raise BadInputError("--out", str(out), expected, "command line")
        _again(single, paper, as_json)
        return
    parts = [input_of(folder) for folder in recordings(first)] if single.kind == "recordings" else [single]
    _side_by_side(str(first), parts, out, paper, as_json)


def _again(output: Input, paper: Paper, as_json: bool) -> None:
    """Write the page of a run or a sweep again."""
    from dragstrip.display.progress import progress
    from dragstrip.io import checksums
    from dragstrip.model.recording import read
    from dragstrip.report.load import load
    from dragstrip.studies.execution.runner import completed, write_report

    folder = output.path
    if output.kind == "sweep":
        from dragstrip.studies.sweep.make import rewrite_report

        page = rewrite_report(folder, paper)
        print_json({"report": str(page)}) if as_json else say(f"Report: {page}")
        return
    with progress(f"reading {folder} and drawing its report ...", quiet=as_json):
        bundle = load(folder)
        for run in bundle.runs:
            read(run.recording.folder)
        with completed(folder):
            report_file = write_report(folder, paper, bundle)
    if as_json:
        print_json({"report": str(report_file), "result": checksums.read_json(folder, "result.json")})
    else:
        say(f"Report: {report_file}")


def _side_by_side(first: str, inputs: Iterable[Input], out: Path | None, paper: Paper, as_json: bool) -> None:
    """Write the page of several recordings of any kind; `first` names them in errors."""
    from dragstrip.cli.execute import place
    from dragstrip.io.files import expect_name
    from dragstrip.report import beside

    sources = [source for entry in inputs for source in _sources(entry)]
    if not sources:
        raise BadInputError("FOLDER", first, "a folder with recordings", "command line")
    if len(sources) > SOURCES_MAX:
        expected = f"at most {SOURCES_MAX} recordings"
        raise BadInputError("FOLDER", f"{len(sources)} recordings", expected, "command line")
    titles = [source.title for source in sources]
    if len(set(titles)) < len(titles):
        raise BadInputError("FILE", max(titles, key=titles.count), "each recording once", "command line")
    if out is not None:
        expect_name("--out", out)
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        expected = "an empty folder, or one that does not exist"
        raise BadInputError("--out", str(out), expected, "command line")
    with place(out, "report") as folder:
        report_file = beside.write(sources, folder, paper)
    if as_json:
        print_json({"report": str(report_file), **beside.document(sources)})
    else:
        say(f"Report: {report_file}")


def _sources(source: Input) -> Iterator[Source]:
    """Yield the recordings in a folder or a file."""
    from dragstrip.analysis import captures
    from dragstrip.model.recording import read
    from dragstrip.report import beside

    title = str(source.path)
    if source.is_folder:
        folders = _folders(source)
        for folder in folders:
            yield beside.source(str(folder) if len(folders) > 1 else title, read(folder))
    elif source.kind == "measurements":
        yield beside.source(title, source.recording())
    else:
        _, recording = captures.inspect([source.path], rows=True)
        assert recording is not None
        yield beside.source(title, recording)


def _folders(folder: Input) -> list[Path]:
    """Return the recordings of a folder: itself, those of its `result.json`, or those of `inspect --out`."""
    from dragstrip.interop.inputs import recordings
    from dragstrip.report.load import load

    if folder.kind == "recording":
        return [folder.path]
    if folder.kind == "run":
        return [run.recording.folder for run in load(folder.path).runs]
    if folder.kind == "recordings":
        return recordings(folder.path)
    expected = "the output folder of a run, or a folder of recordings"
    raise BadInputError("FOLDER", str(folder.path), expected, "command line")
