"""The command line. Heavy imports happen inside the commands, so that help is instant."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from dragstrip import engines
from dragstrip.cli import kernel as kernel_commands
from dragstrip.cli import validate
from dragstrip.cli.options import JsonFlag, Load, Workers
from dragstrip.errors import BadInputError, DragstripError

if TYPE_CHECKING:
    from dragstrip.runner import Plan

BAD_INPUT = 2
INTERRUPTED = 130

app = typer.Typer(
    name="dragstrip",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # importing rich takes longer than printing the help
    help="Races TCP congestion controls against each other on the same network path, and says what "
    "each costs: throughput, delay, loss, fairness.",
    epilog="Example: dragstrip compare --rate 10mbit --rtt 40ms --queue 'bfifo limit 200kb' "
    "--duration 30s cubic bbr",
)
app.add_typer(kernel_commands.app, name="kernel")
app.add_typer(validate.app, name="validate")

Out = Annotated[
    Path | None,
    typer.Option(
        "--out", help="Folder for recordings and report; must be empty or not exist.", show_default="runs/..."
    ),
]
ENGINES = engines.about()
BOTH = f"{ENGINES} {engines.PAIR}: both, and how far apart they are."
Check = Annotated[
    bool, typer.Option("--check", help="Run everything twice and say whether the bytes are the same.")
]
EngineOption = Annotated[
    list[str] | None,
    typer.Option("--engine-option", metavar="NAME=VALUE", help="An option of the engine; repeatable."),
]
Report = Annotated[bool, typer.Option("--report/--no-report", help="Write report.html.")]
Figures = Annotated[
    str | None,
    typer.Option("--figures", metavar="svg,png,pdf", help="Also write the report's figures, for papers."),
]


def _version(asked: bool) -> None:
    if asked:
        from dragstrip import __version__

        typer.echo(f"dragstrip {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the program itself."""


@app.command("list")
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
        _print_json({"experiments": entries})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("experiment", "title", "claims", title="catalogue")
    for entry in entries:
        table.add_row(str(entry["name"]), str(entry["title"]), str(entry["claims"]))
    Console().print(table)


@app.command()
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
        _print_json({"experiment": described.content(), "scenarios": [run.scenario for run in planned.runs]})
        return
    from dragstrip.console import show_plan

    show_plan(described, planned.runs)


@app.command()
def run(
    experiment: Annotated[
        str,
        typer.Argument(help="Name in the catalogue, a TOML file, a publication, or `all` of them."),
    ],
    out: Out = None,
    workers: Workers = None,
    repeat: Annotated[int | None, typer.Option("--repeat", help="Instead of the experiment's own.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Instead of the experiment's own.")] = None,
    duration: Annotated[
        str | None, typer.Option("--duration", help="Instead of the experiment's own, such as 10s.")
    ] = None,
    engine: Annotated[str | None, typer.Option("--engine", help=BOTH)] = None,
    engine_option: EngineOption = None,
    load: Load = None,
    check: Check = False,
    write_docs: Annotated[
        Path | None,
        typer.Option("--write-docs", metavar="FILE", help="With `all`: write docs/catalogue.md and its kin."),
    ] = None,
    report: Annotated[
        bool | None,
        typer.Option("--report/--no-report", help="Write report.html.", show_default="not of publications"),
    ] = None,
    figures: Figures = None,
    as_json: JsonFlag = False,
) -> None:
    """Run an experiment or a whole publication, and grade its claims.

    Example: dragstrip run caia-110729a/adsl1 --out adsl1
    """
    from dragstrip import catalogue
    from dragstrip.experiment import rebuilt
    from dragstrip.runner import plan

    wanted = _figures(figures, report)
    given = {"repeat": repeat, "seed": seed, "duration": duration, "engine": engine, "load": load}
    changed: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if engine_option:
        changed["engine_options"] = _engine_options(engine_option)

    def planned(name: str) -> Plan:
        described, source = catalogue.load(name)
        if changed:
            described, replaced = rebuilt(described.content(), changed)
            if replaced:
                typer.echo(
                    f"note: {name}: the stack of {', '.join(replaced)} runs as the engine's own", err=True
                )
        return plan(described, source)

    if write_docs is not None and (experiment != catalogue.EVERYTHING or changed):
        expected = f"no --write-docs: it tells of {catalogue.EVERYTHING}, as the files have it"
        raise BadInputError("--write-docs", str(write_docs), expected, "command line")
    members = catalogue.members(experiment)
    if members and check:
        raise BadInputError("--check", None, "is for one experiment, not a whole publication", "command line")
    if members:
        plans = {name: planned(name) for name in members}
        _execute_publication(
            experiment, plans, out, workers, bool(report or wanted), wanted, write_docs, as_json
        )
        return
    single = planned(experiment)
    if check:
        _check(single, out, workers, as_json)
        return
    stem = single.experiment.name.split("/")[-1]
    _execute(single, out, stem, workers, report is not False, wanted, as_json)


def _execute_publication(
    name: str,
    plans: dict[str, Plan],
    out: Path | None,
    workers: int | None,
    report: bool,
    figures: list[str],
    write_docs: Path | None,
    as_json: bool,
) -> None:
    from dragstrip.console import watching
    from dragstrip.files import write_json
    from dragstrip.publications import console, pages
    from dragstrip.publications.document import document as compose
    from dragstrip.runner import execute_all, next_folder

    if write_docs is not None:
        pages.check([planned.experiment for planned in plans.values()], write_docs)
    folder = out if out is not None else next_folder(Path("runs"), name)
    runs = [job.run for planned in plans.values() for job in planned.jobs]
    command = shlex.join(["dragstrip", *sys.argv[1:]])
    with watching(runs, quiet=as_json) as watcher:
        documents = execute_all(
            plans, folder, workers=workers, watcher=watcher, command=command, report=report, figures=figures
        )
    document = compose(name, plans, documents)
    write_json(folder / "catalogue.json", document)
    if as_json:
        _print_json(document)
    else:
        console.show(document)
        typer.echo(f"Recordings: {folder}")
    if document["failed"]:
        raise typer.Exit(1)
    if write_docs is not None:
        for file in pages.write(document, folder, write_docs):
            typer.echo(f"Wrote {file}", err=True)


@app.command()
def compare(
    algorithms: Annotated[list[str], typer.Argument(metavar="ALGORITHM...", help="Such as reno cubic bbr.")],
    rate: Annotated[str, typer.Option("--rate", help="Of the bottleneck, such as 10mbit.")],
    rtt: Annotated[str, typer.Option("--rtt", help="Round-trip time of the empty path, such as 40ms.")],
    queue: Annotated[
        str, typer.Option("--queue", help="The bottleneck's queue in the words of tc: 'bfifo limit 200kb'.")
    ],
    duration: Annotated[str, typer.Option("--duration", help="Of each run, such as 30s.")] = "30s",
    flows: Annotated[int, typer.Option("--flows", min=1, help="Flows of each algorithm.")] = 1,
    loss: Annotated[
        str | None, typer.Option("--loss", help="Random loss behind the bottleneck, such as 1%.")
    ] = None,
    jitter: Annotated[
        str | None,
        typer.Option("--jitter", help="Behind the bottleneck: 0 to twice this, such as 5ms; it reorders."),
    ] = None,
    up_rate: Annotated[str | None, typer.Option("--up-rate", help="Of the return path: 1mbit.")] = None,
    up_queue: Annotated[str | None, typer.Option("--up-queue", help="Queue of the return path.")] = None,
    ecn: Annotated[
        bool, typer.Option("--ecn", help="Hosts negotiate ECN; whether the queue marks is part of --queue.")
    ] = False,
    sysctl: Annotated[
        list[str] | None, typer.Option("--sysctl", metavar="KEY=VALUE", help="For all hosts; repeatable.")
    ] = None,
    link: Annotated[
        str, typer.Option("--link", help="htb: shaped as tc does it; wire: ideal store and forward.")
    ] = "htb",
    gso: Annotated[
        str, typer.Option("--gso", help="auto: TCP builds bursts of several segments, as Linux does; off.")
    ] = "auto",
    together: Annotated[bool, typer.Option("--together", help="All algorithms on the path at once.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of everything random.")] = 1,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="With seeds counting up.")] = 1,
    engine: Annotated[str, typer.Option("--engine", help=BOTH)] = "sim",
    engine_option: EngineOption = None,
    load: Load = None,
    check: Check = False,
    out: Out = None,
    workers: Workers = None,
    report: Report = True,
    figures: Figures = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare congestion controls on a path, each alone or all together.

    Example: dragstrip compare --rate 10mbit --rtt 40ms --queue 'bfifo limit 200kb' --duration 30s
    reno cubic vegas cdg bbr
    """
    from dragstrip.comparison import compare as describe
    from dragstrip.comparison import reworded

    wanted = _figures(figures, report)
    described = describe(
        algorithms,
        rate=rate,
        rtt=rtt,
        queue=queue,
        duration=duration,
        flows=flows,
        loss=loss,
        jitter=jitter,
        up_rate=up_rate,
        up_queue=up_queue,
        link=link,
        ecn=ecn,
        sysctl=_settings(sysctl or []),
        gso=gso,
        seed=seed,
        repeat=repeat,
        together=together,
        engine=engine,
        engine_options=_engine_options(engine_option or []),
        load=load or [],
    )
    from dragstrip.runner import plan  # after a misspelt option was reported: it loads Arrow

    planned = reworded(lambda: plan(described))
    if check:
        _check(planned, out, workers, as_json)
    else:
        _execute(planned, out, "compare", workers, report, wanted, as_json)


@app.command()
def sweep(
    experiment: Annotated[
        str | None, typer.Argument(help="Name in the catalogue, or a TOML file.", show_default=False)
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="PATH=VALUES",
            help="A field and its values: path.rtt=5ms,20ms or path.rate=1mbit..1gbit:log:12; repeatable.",
        ),
    ] = None,
    repeat: Annotated[
        int | None, typer.Option("--repeat", min=1, help="Every combination with this many seeds.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="The first seed.")] = None,
    duration: Annotated[
        str | None, typer.Option("--duration", help="Instead of the experiment's own.")
    ] = None,
    sample: Annotated[
        str | None, typer.Option("--sample", help="lhs:N or random:N points of the ranges without a count.")
    ] = None,
    against: Annotated[
        str | None, typer.Option("--against", help="Also beside a flow of this algorithm: harm done to it.")
    ] = None,
    engine: Annotated[str | None, typer.Option("--engine", help=ENGINES)] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the sweep; the same one resumes or widens it.")
    ] = None,
    workers: Workers = None,
    on: Annotated[
        str | None, typer.Option("--on", help="dask://HOST:PORT (or tls://HOST:PORT): your own cluster.")
    ] = None,
    shard: Annotated[str | None, typer.Option("--shard", help="k/N: only this part, for job arrays.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would take, run nothing.")] = False,
    time_limit: Annotated[str, typer.Option("--time-limit", help="Of one run, by the clock.")] = "600s",
    memory_limit: Annotated[
        str, typer.Option("--memory-limit", help="Address space of a worker process.")
    ] = "4gb",
    keep_recordings: Annotated[
        bool, typer.Option("--keep-recordings", help="Every run's tables too, in recordings/.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Make runs again that failed or met a limit.")
    ] = False,
    replay: Annotated[
        str | None, typer.Option("--replay", metavar="KEY", help="Make one run again, with its recording.")
    ] = None,
    from_: Annotated[Path | None, typer.Option("--from", help="With --replay: the sweep's folder.")] = None,
    report: Report = True,
    as_json: JsonFlag = False,
) -> None:
    """Run an experiment over many values of many fields, and map who wins where.

    Example: dragstrip sweep my.toml --vary path.rate=1mbit..1gbit:log:12 --vary path.rtt=5ms,20ms,80ms
    --vary flow.cc=reno,cubic,vegas,cdg,bbr --repeat 5 --out map
    """
    from dragstrip.sweep import command

    limits = command.limits(time_limit, memory_limit)
    if replay is not None:
        written = command.replay(from_, replay, out)
        _print_json({"recording": str(written)}) if as_json else typer.echo(f"Recording: {written}")
        return
    if experiment is None:
        raise BadInputError(
            "EXPERIMENT", None, "is missing: a name in the catalogue or a file", "command line"
        )
    described = command.describe(
        experiment,
        vary=vary or [],
        repeat=repeat,
        seed=seed,
        duration=duration,
        sample=sample,
        against=against,
        engine=engine,
    )
    folder = out if out is not None else Path("runs") / f"sweep-{described.name.replace('/', '-')}"
    options = command.Options(
        workers=workers,
        on=on,
        shard=command.parse_shard(shard),
        limits=limits,
        keep_recordings=keep_recordings,
        retry_failed=retry_failed,
        report=report,
        command=shlex.join(["dragstrip", *sys.argv[1:]]),
    )
    if dry_run:
        forecast = command.dry_run(described, folder, options)
        _print_json(forecast) if as_json else typer.echo(command.describe_forecast(forecast))
        return
    document = command.run(described, folder, options, quiet=as_json)
    _print_json(document) if as_json else typer.echo(command.summary(document, folder))
    if document["interrupted"]:
        raise typer.Exit(INTERRUPTED)
    if document["failed"]:
        raise typer.Exit(1)


@app.command(
    hidden=True,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
def agree(context: typer.Context) -> None:
    """The former name of `validate`."""
    words = validate.former(context.args)
    group = typer.main.get_command(validate.app)
    with group.make_context("validate", words, parent=context.parent) as inner:
        group.invoke(inner)
    typer.echo(f"hint: `agree` is called `validate` now: dragstrip validate {shlex.join(words)}", err=True)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Output folder of a run.")],
    figures: Figures = None,
    as_json: JsonFlag = False,
) -> None:
    """Write the report of a finished run again.

    Example: dragstrip report demo --figures svg,png,pdf
    """
    from dragstrip.files import read_json
    from dragstrip.recording import read
    from dragstrip.runner import write_report

    wanted = _figures(figures, None)
    if not folder.is_dir():
        raise BadInputError("FOLDER", str(folder), "the output folder of a run", "command line")
    if (folder / "sweep.json").exists():
        if wanted:
            raise BadInputError(
                "--figures", figures, "nothing for a sweep: its maps are in the page", "command line"
            )
        from dragstrip.sweep.make import rewrite_report

        page = rewrite_report(folder)
        _print_json({"report": str(page)}) if as_json else typer.echo(f"Report: {page}")
        return
    document = read_json(folder / "result.json")
    for line in document.get("runs", []):
        read(folder / line["recording"])
    written = write_report(folder, wanted)
    if as_json:
        _print_json({"report": str(written), "result": document})
    else:
        typer.echo(f"Report: {written}")


@app.command()
def doctor(as_json: JsonFlag = False) -> None:
    """Report what works on this machine, and what is missing.

    Example: dragstrip doctor
    """
    from dragstrip.doctor import examine

    findings = examine()
    if as_json:
        _print_json({"healthy": all(finding["ok"] for finding in findings), "findings": findings})
    else:
        for finding in findings:
            typer.echo(f"{'ok     ' if finding['ok'] else 'MISSING'}  {finding['what']}: {finding['found']}")
    if not all(finding["ok"] for finding in findings):
        raise typer.Exit(1)


def _figures(text: str | None, report: bool | None) -> list[str]:
    """The endings in `svg,png,pdf`, each once."""
    from dragstrip.runner import check_figures

    if text is None:
        return []
    if report is False:
        raise BadInputError("--figures", text, "no --no-report beside it", "command line")
    endings = list(dict.fromkeys(part.strip().lower() for part in text.split(",")))
    check_figures(endings)
    return endings


def _settings(pairs: list[str]) -> dict[str, str]:
    return dict(_pair("--sysctl", pair, "KEY=VALUE, such as net.ipv4.tcp_sack=0") for pair in pairs)


def _engine_options(pairs: list[str]) -> dict[str, str | list[str]]:
    """Name → value, or values where it is given several times."""
    options: dict[str, str | list[str]] = {}
    for pair in pairs:
        name, value = _pair("--engine-option", pair, "NAME=VALUE, such as kernel=6.1.0-56-amd64")
        known = options.get(name, [])
        options[name] = [*([known] if isinstance(known, str) else known), value] if known else value
    return options


def _pair(option: str, pair: str, expected: str) -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if not (key.strip() and equals and value.strip()):
        raise BadInputError(option, pair, expected, "command line")
    return key.strip(), value.strip()


def _execute(
    planned: Plan,
    out: Path | None,
    stem: str,
    workers: int | None,
    report: bool,
    figures: list[str],
    as_json: bool,
) -> None:
    from dragstrip.console import show_result, watching
    from dragstrip.runner import execute, next_folder

    folder = out if out is not None else next_folder(Path("runs"), stem)
    with watching([job.run for job in planned.jobs], quiet=as_json) as watcher:

        def measured(document: dict[str, Any]) -> None:
            if not as_json:  # the figures are there; the report takes a moment longer
                watcher.aside()
                show_result(document, planned.runs)
                sys.stdout.flush()

        document = execute(
            planned,
            folder,
            workers=workers,
            watcher=watcher,
            command=shlex.join(["dragstrip", *sys.argv[1:]]),
            report=report,
            figures=figures,
            measured=measured,
        )
    if as_json:
        _print_json(located(document, folder))
    else:
        if "agreement" in document:
            from dragstrip.validation import both, console

            console.show(both.of_result(document, folder))
        page = folder / "report.html"
        typer.echo(f"Report: {page}" if page.exists() else f"Recordings: {folder}")
    if document["failed"]:
        raise typer.Exit(1)


def _check(planned: Plan, out: Path | None, workers: int | None, as_json: bool) -> None:
    from dragstrip import check
    from dragstrip.console import watching

    if out is not None:
        raise BadInputError(
            "--out", str(out), "nothing with --check, which keeps no recording", "command line"
        )
    with watching(check.twice(planned.runs), quiet=as_json) as watcher:
        verdicts = check.check(planned, workers, watcher)
    if as_json:
        _print_json(check.document(verdicts))
    else:
        typer.echo("\n".join(map(check.describe, verdicts)))
    if not all(verdict.identical for verdict in verdicts):
        raise typer.Exit(1)


@app.command()
def conform(
    scripts: Annotated[
        list[str] | None, typer.Argument(metavar="[SCRIPT]...", help="Names or files; default: all.")
    ] = None,
    engine: Annotated[str, typer.Option("--engine", help=ENGINES)] = "sim",
    as_json: JsonFlag = False,
) -> None:
    """Play conformance scripts: described time lines of one TCP endpoint, with what it has to send.

    Example: dragstrip conform --engine vm prr-step-by-step
    """
    from dragstrip import conformance

    played = conformance.play(conformance.scripts(scripts), engine)
    if as_json:
        _print_json(conformance.document(played))
    else:
        typer.echo(conformance.table(played))
    if not all(one.fine for one in played):
        raise typer.Exit(1)


@app.command("new-algorithm")
def new_algorithm(
    name: Annotated[str, typer.Argument(help="Small letters, digits, and single - or _, such as my-cc.")],
    bpf: Annotated[bool, typer.Option("--bpf", help="Also a BPF program for the real kernel.")] = False,
) -> None:
    """Add the skeleton of a congestion control to the sources (docs/new-algorithm.md).

    Example: dragstrip new-algorithm my-cc --bpf
    """
    import subprocess

    root = Path(__file__).resolve().parents[2]
    if not (root / "crates/xtask/Cargo.toml").is_file():
        raise DragstripError("new-algorithm writes into the sources: it needs a checkout of them")
    command = ["cargo", "xtask", "new-algorithm", name, *(["--bpf"] if bpf else [])]
    try:
        done = subprocess.run(command, cwd=root, check=False)  # noqa: S603
    except FileNotFoundError:
        raise DragstripError("new-algorithm needs cargo (https://rustup.rs)") from None
    raise typer.Exit(done.returncode)


def located(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The result document with its recordings' paths as seen from here, not from the output folder."""
    runs = [{**line, "recording": str(folder / line["recording"])} for line in document["runs"]]
    return {**document, "runs": runs}


def _print_json(content: object) -> None:
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))


def main() -> NoReturn:
    """Run the command line; every error is one line on standard error, bad input exits with 2."""
    try:
        status = app(standalone_mode=False)
        sys.stdout.flush()
    except typer.exceptions.TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "dragstrip"
        _fail(f"{error.format_message()} (see {command} --help)", BAD_INPUT)
    except BadInputError as error:
        _fail(str(error), BAD_INPUT)
    except DragstripError as error:
        _fail(str(error), 1)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has gone: nothing left to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if os.environ.get("DRAGSTRIP_TRACEBACK"):
            raise
        _fail(
            f"a fault in dragstrip: {type(error).__name__}: {error} "
            "(DRAGSTRIP_TRACEBACK=1 shows where; please report it)",
            70,  # EX_SOFTWARE of sysexits.h
        )
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # PyO3's, of a call that no engine makes
            raise
        _fail(f"a fault in dragstrip's core: {error} (please report it)", 70)
    if status == INTERRUPTED:  # Typer's own way to tell of Ctrl-C
        _fail("interrupted", INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)


def _fail(message: str, status: int) -> NoReturn:
    sys.stderr.write(f"error: {' '.join(message.split())}\n")
    sys.exit(status)


if __name__ == "__main__":
    main()
