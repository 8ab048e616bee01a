"""`dragstrip play`: a race in a page that one can touch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragstrip.cli import completion, words
from dragstrip.cli.options import Program
from dragstrip.cli.race import (
    AccurateEcn,
    BothWays,
    Change,
    Ecn,
    Flows,
    Gso,
    Jitter,
    Link,
    Loss,
    Medium,
    PathName,
    Queue,
    RaceDuration,
    RaceRepeat,
    RaceSeed,
    Rate,
    Rtt,
    Stagger,
    Sysctl,
    Together,
    Trace,
    UpMedium,
    UpQueue,
    UpRate,
    UpTrace,
    Workload,
)
from dragstrip.errors import BadInputError

if TYPE_CHECKING:
    from dragstrip.play import Race

PLAIN = {
    "workload": "bulk",
    "flows": 1,
    "gso": "auto",
    "repeat": 1,
    "both_ways": False,
    "ecn": False,
    "accurate_ecn": False,
}
"""What a form need not say."""


def play(
    context: typer.Context,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ALGORITHM... | EXPERIMENT | RUN]",
            help="Algorithms, with the options of compare; or a name in the catalogue, a TOML file, or a "
            "folder that run or compare wrote. Default: the page's own first race.",
            autocompletion=completion.algorithms,
        ),
    ] = None,
    path: PathName = None,
    rate: Rate = None,
    medium: Medium = None,
    trace: Trace = None,
    rtt: Rtt = None,
    queue: Queue = None,
    workload: Workload = "bulk",
    duration: RaceDuration = "30s",
    flows: Flows = 1,
    both_ways: BothWays = False,
    stagger: Stagger = None,
    loss: Loss = None,
    jitter: Jitter = None,
    up_rate: UpRate = None,
    up_medium: UpMedium = None,
    up_trace: UpTrace = None,
    up_queue: UpQueue = None,
    ecn: Ecn = False,
    accurate_ecn: AccurateEcn = False,
    sysctl: Sysctl = None,
    link: Link = None,
    gso: Gso = "auto",
    together: Together = False,
    change: Change = None,
    seed: RaceSeed = 1,
    repeat: RaceRepeat = 1,
    program: Program = None,
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

    The page is one file: it needs no network, and gives the same bytes as the simulator here.

    Example: dragstrip play cubic bbr --rate 10mbit --rtt 40ms --queue 'pfifo limit 100' --together

    Example: dragstrip play linux-vegas-1999/lan --serve
    """
    from dragstrip import __version__
    from dragstrip import play as playground
    from dragstrip.programs import of_files

    options: dict[str, Any] = {
        "path": path,
        "rate": rate,
        "medium": medium,
        "trace": trace,
        "rtt": rtt,
        "queue": queue,
        "duration": duration,
        "workload": workload,
        "flows": flows,
        "both_ways": both_ways,
        "stagger": stagger,
        "loss": loss,
        "jitter": jitter,
        "up_rate": up_rate,
        "up_medium": up_medium,
        "up_trace": up_trace,
        "up_queue": up_queue,
        "link": link,
        "ecn": ecn,
        "accurate_ecn": accurate_ecn,
        "sysctl": words.settings(sysctl or []),
        "gso": gso,
        "seed": seed,
        "repeat": repeat,
        "together": together,
        "change": change or [],
        "programs": of_files(program or []),
    }
    given = ["--" + name.replace("_", "-") for name in options if _is_given(context, name)]
    given += ["--program"] if program else []
    race = _race(what or [], options, given)
    if not serve and _is_given(context, "port"):
        raise BadInputError("--port", port, "--serve beside it", "command line")
    content = playground.page(race, __version__)
    if serve:
        _serve(content, port)
        return
    playground.write(out, content)
    typer.echo(str(out))
    if open_ and sys.stdout.isatty():
        import webbrowser

        webbrowser.open(out.resolve().as_uri())


def _is_given(context: typer.Context, name: str) -> bool:
    """Whether the option stands on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _race(what: list[str], options: dict[str, Any], given: list[str]) -> Race | None:
    """What the page begins with."""
    if not what:
        if given:
            raise BadInputError("ALGORITHM", None, f"is needed beside {given[0]}", "command line")
        return None
    kind = _kind(what)
    if kind is not None and given:
        raise BadInputError(given[0], None, f"is for a race of algorithms, not for {what[0]}", "command line")
    if kind == "run":
        return _recorded(Path(what[0]))
    if kind == "experiment":
        return _experiment(what[0])
    return _described(what, options)


def _kind(what: list[str]) -> str | None:
    """`run`, `experiment`, or nothing for algorithms."""
    if len(what) > 1:
        return None
    if Path(what[0]).is_dir() and (Path(what[0]) / "result.json").exists():
        return "run"
    return "experiment" if "/" in what[0] or what[0].endswith(".toml") else None


def _recorded(folder: Path) -> Race:
    from dragstrip.paths import bare
    from dragstrip.play import of_runs
    from dragstrip.report.load import load, recording_of

    bundle = load(folder)
    recordings = [recording_of(run) for run in bundle.runs]
    runs = [
        (str(one.scenario.get("name")), bare(one.scenario), one.provenance.get("recording_sha256"))
        for one in recordings
        if one.provenance.get("engine", "sim") == "sim"
    ]
    if not runs:
        raise BadInputError("RUN", folder, "a run of the simulator, which is what a page has", "command line")
    return of_runs(bundle.title, runs)


def _experiment(name: str) -> Race:
    from dragstrip.catalogue import load
    from dragstrip.play import of_runs
    from dragstrip.runner import plan

    experiment, source = load(name)
    runs = [(run.name, run.text, None) for run in plan(experiment, source).runs if run.engine == "sim"]
    if not runs:
        expected = "one of the simulator, which is what a page has"
        raise BadInputError("EXPERIMENT", name, expected, "command line")
    return of_runs(experiment.title or name, runs)


def _described(algorithms: list[str], options: dict[str, Any]) -> Race:
    """The options of `compare`, checked as it checks them; a recorded link is in the scenario."""
    from dragstrip.comparison import compare, reworded
    from dragstrip.play import of_form, of_runs
    from dragstrip.runner import plan

    described = compare(algorithms, **options)
    runs = reworded(lambda: plan(described)).runs
    if options["trace"] or options["up_trace"]:
        return of_runs(described.title, [(run.name, run.text, None) for run in runs])
    said = {name: value for name, value in options.items() if value and PLAIN.get(name) != value}
    return of_form({"algorithms": algorithms, **said, "seed": options["seed"]})


def _serve(content: str, port: int) -> None:
    from dragstrip.play import LOOPBACK, server

    with server(content, port) as serving:
        typer.echo(f"http://{LOOPBACK}:{serving.server_port}/  (Ctrl-C ends it)")
        sys.stdout.flush()
        try:
            serving.serve_forever()
        except KeyboardInterrupt:
            typer.echo("", err=True)
