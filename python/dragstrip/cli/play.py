"""`dragstrip play`: a race in a page that one can touch."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragstrip import engines
from dragstrip.cli import completion
from dragstrip.cli.race import EVERY, Race, all_wrong, takes_race
from dragstrip.errors import BadInputError
from dragstrip.experiment.race import OPTIONS

if TYPE_CHECKING:
    from dragstrip.playground import Race as InitialRace
    from dragstrip.studies.execution.runner import Plan


@takes_race(EVERY)
def play(
    context: typer.Context,
    subjects: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ALGORITHM... | EXPERIMENT | RUN]",
            help="Algorithms, with the options of compare; or a name in the catalogue, a TOML file, or a "
            "folder that run or compare wrote. Default: the page's own first race.",
            autocompletion=completion.algorithms,
        ),
    ] = None,
    *,
    race: Race,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The page; an earlier one is replaced.")
    ] = Path("play.html"),
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open it in the browser (on a terminal).")
    ] = True,
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Serve it on this machine alone, until interrupted, and write no file."),
    ] = False,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Of --serve; 0: any that is free.")
    ] = 0,
) -> None:
    """Write a page with a race in it, which runs in the browser, and open it.

    The page is one file: it needs no network, and gives the same bytes as the simulator here. Without a path
    it is 10mbit, 40ms and a queue of 100 packets.

    Example: dragstrip play cubic bbr

    Example: dragstrip play cubic bbr --rate 10mbit --rtt 40ms --queue 'pfifo limit 100' --together

    Example: dragstrip play linux-vegas-1999/lan --serve
    """
    from dragstrip import __version__, playground
    from dragstrip.io.files import expect_name

    expect_name("--out", out)
    option_words = [option.word for option in OPTIONS if option.name in race]
    initial_race = _initial_race(subjects or [], race, option_words)
    if not serve and _is_given(context, "port"):
        raise BadInputError("--port", port, "--serve beside it", "command line")
    content = playground.page(initial_race, __version__)
    if serve:
        _serve(content, port)
        return
    playground.write(out, content)
    typer.echo(str(out))
    if open_ and sys.stdout.isatty():
        import webbrowser

        webbrowser.open(out.resolve().as_uri())


def _is_given(context: typer.Context, name: str) -> bool:
    """True when the option stands on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _initial_race(subjects: list[str], race: Race, option_words: list[str]) -> InitialRace | None:
    """Initial state of the page."""
    if not subjects:
        if option_words:
            raise BadInputError("ALGORITHM", None, f"is needed beside {option_words[0]}", "command line")
        return None
    kind = _kind(subjects)
    if kind is not None and option_words:
        raise BadInputError(
            option_words[0], None, f"is for a race of algorithms, not for {subjects[0]}", "command line"
        )
    if kind == "run":
        return _recorded(Path(subjects[0]))
    if kind == "experiment":
        return _experiment(subjects[0])
    from dragstrip.playground import with_path

    return _described(subjects, with_path(race))


def _kind(subjects: list[str]) -> str | None:
    """`run`, `experiment`, or nothing for algorithms."""
    if len(subjects) > 1:
        return None
    if Path(subjects[0]).is_dir() and (Path(subjects[0]) / "result.json").exists():
        return "run"
    return "experiment" if "/" in subjects[0] or subjects[0].endswith(".toml") else None


def _recorded(folder: Path) -> InitialRace:
    from dragstrip.model.scenario.paths import bare
    from dragstrip.playground import of_runs
    from dragstrip.report.load import load, recording_of

    bundle = load(folder)
    recordings = [recording_of(run) for run in bundle.runs]
    runs = [
        (
            str(recording.scenario.get("name")),
            json.dumps(bare(recording.scenario)),
            recording.provenance.get("recording_sha256"),
        )
        for recording in recordings
        if recording.provenance.get("engine", engines.SIMULATOR) == engines.SIMULATOR
    ]
    if not runs:
        raise BadInputError("RUN", folder, "a run of the simulator, which is what a page has", "command line")
    return of_runs(bundle.title, runs)


def _experiment(name: str) -> InitialRace:
    from dragstrip.experiment.catalogue import load
    from dragstrip.playground import of_runs
    from dragstrip.studies.execution.runner import plan

    experiment, source = load(name)
    planned_runs = plan(experiment, source).runs
    runs = [(run.name, run.text, None) for run in planned_runs if run.engine == engines.SIMULATOR]
    if not runs:
        expected = "one of the simulator, which is what a page has"
        raise BadInputError("EXPERIMENT", name, expected, "command line")
    return of_runs(experiment.title or name, runs)


def _described(algorithms: list[str], race: Race) -> InitialRace:
    """The options of `compare`, checked as it checks them; a recorded link is in the scenario."""
    from dragstrip.experiment.comparison import COMMAND_LINE, compare, reworded
    from dragstrip.playground import of_race
    from dragstrip.studies.execution.runner import plan

    def planned(names: list[str], race_options: Race) -> Plan:
        described = compare(names, source=COMMAND_LINE, **race_options)
        return reworded(lambda: plan(described), COMMAND_LINE)

    try:
        return of_race(algorithms, race, planned(algorithms, race))
    except BadInputError as error:
        raise all_wrong(error, algorithms, race, planned) from None


def _serve(content: str, port: int) -> None:
    from dragstrip.playground.server import LOOPBACK, server

    with server(content, port) as serving:
        typer.echo(f"http://{LOOPBACK}:{serving.server_port}/  (Ctrl-C ends it)")
        sys.stdout.flush()
        try:
            serving.serve_forever()
        except KeyboardInterrupt:
            typer.echo("", err=True)
