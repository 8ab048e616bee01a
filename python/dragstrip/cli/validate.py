"""`dragstrip validate`: the simulator compared with a real kernel, figure by figure."""

from __future__ import annotations

import shlex
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from dragstrip.cli import words
from dragstrip.cli.execute import noting_interruption
from dragstrip.cli.once import Commands
from dragstrip.cli.options import Duration, JsonFlag, Load, Strict, TimeLimit, Workers
from dragstrip.cli.output import print_json, say
from dragstrip.errors import BadInputError

if TYPE_CHECKING:
    from dragstrip.runs import Limits
    from dragstrip.studies.execution.side_by_side import Selection

DEFAULT = "compare"


class _WithDefault(TyperGroup):
    """A group with a default command: `validate EXPERIMENT` means `validate compare EXPERIMENT`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default command's name if no command is named and no help is requested."""
        if not (args and (args[0] in self.commands or args[0] in ("-h", "--help"))):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


app = Commands(
    cls=_WithDefault,
    help="Compare the simulator with a real kernel, figure by figure.",
    epilog="Example: dragstrip validate bu-cs655-2022 --out agreement",
)

Experiments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="EXPERIMENT",
        help="To run on both engines: names in the catalogue, publications, or TOML files. "
        "Without one: the grid of stored recordings.",
        show_default=False,
    ),
]
GridFile = Annotated[
    Path | None,
    typer.Option(
        "--grid",
        metavar="FILE",
        help="Cases with stored recordings of a kernel.",
        show_default="validation/linux-6.1/grid.toml",
    ),
]
Recordings = Annotated[
    Path | None,
    typer.Option(
        "--recordings", metavar="FOLDER", help="Folder of kernel recordings, instead of the grid's own."
    ),
]
Only = Annotated[
    str | None,
    typer.Option("--only", metavar="TEXT", help="Only cases whose name contains this, or matches it (*)."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Set a field of the experiments, such as hosts.*.tick_hz=250; repeatable.",
    ),
]
Repeat = Annotated[
    int | None,
    typer.Option(
        "--repeat",
        metavar="N",
        min=1,
        help="Number of seeds; the kernel runs one more. Default: 10 with random loss or jitter, else 1.",
    ),
]
Reference = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        help="The engine whose runs the others are compared with: vm or netns.",
        show_default="vm",
    ),
]
AgainstEngine = Annotated[
    str | None,
    typer.Option(
        "--against-engine",
        metavar="ENGINES",
        help="The engines that are compared with it: sim, vm or vm,sim.",
        show_default="sim",
    ),
]
Nominal = Annotated[
    bool, typer.Option("--nominal", help="Take the path as configured, without the delay that pings show.")
]


@app.command(DEFAULT, short_help="Compare figures with the kernel's (default command).")
def compare(
    experiments: Experiments = None,
    grid: GridFile = None,
    recordings: Recordings = None,
    only: Only = None,
    set_: Settings = None,
    repeat: Repeat = None,
    duration: Duration = None,
    load: Load = None,
    engine: Reference = None,
    against_engine: AgainstEngine = None,
    strict: Strict = False,
    nominal: Nominal = False,
    kernel: Annotated[
        str | None,
        typer.Option(
            "--kernel",
            metavar="NAME",
            help="Compare this kernel of `dragstrip kernel list` with another, instead of the simulator.",
            show_default=False,
        ),
    ] = None,
    against_kernel: Annotated[
        str | None,
        typer.Option(
            "--against-kernel",
            metavar="NAMES",
            help="The kernel, or several with commas, that --kernel is compared with.",
            show_default=False,
        ),
    ] = None,
    held_out: Annotated[
        bool,
        typer.Option(
            "--held-out", help="The third of the grid that is held out while the model is developed."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Write agreement.html (heat maps, overlaid traces) and the recordings of EXPERIMENT there.",
        ),
    ] = None,
    write_docs: Annotated[
        Path | None,
        typer.Option(
            "--write-docs", metavar="FILE", help="Also write the result as a page of documentation."
        ),
    ] = None,
    workers: Workers = None,
    time_limit: TimeLimit = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare the simulator's throughput, RTT, queueing, loss and shares with the kernel's.

    The default command. Without EXPERIMENT it takes a grid of stored recordings, and no kernel is needed.

    Example: dragstrip validate --only 10m-40ms

    Example: dragstrip validate bu-cs655-2022 --out agreement

    Example: dragstrip validate validation/netns/alone.toml --engine netns --against-engine vm,sim

    Example: dragstrip validate --kernel 6.1.0-56-amd64 --against-kernel 7.3.4+deb13-amd64 --only cubic
    """
    from dragstrip.io.files import expect_file, expect_folder

    if out is not None:
        expect_folder("--out", out)
    if write_docs is not None:
        expect_file("--write-docs", write_docs)
    if kernel is not None or against_kernel is not None:
        other_options: dict[str, object] = {
            "EXPERIMENT": experiments,
            "--recordings": recordings,
            "--set": set_,
        }
        other_options |= {
            "--repeat": repeat,
            "--duration": duration,
            "--load": load,
            "--engine": engine,
            "--against-engine": against_engine,
        }
        other_options |= {"--strict": strict, "--nominal": nominal, "--held-out": held_out, "--out": out}
        other_options |= {"--time-limit": time_limit}
        _kernels(kernel, against_kernel, other_options, grid, only, write_docs, workers, as_json)
        return
    of_runs = {"--engine": engine, "--against-engine": against_engine, "--strict": strict}
    _refuse_misplaced(experiments, grid, recordings, set_, repeat, duration, load, time_limit, **of_runs)
    limits = words.time_limit(time_limit)
    if experiments:
        from dragstrip.studies.execution.side_by_side import MODEL, REFERENCE, Selection

        selection = Selection(
            experiments,
            only,
            set_ or [],
            repeat,
            duration,
            load or [],
            engine or REFERENCE,
            tuple((against_engine or MODEL).split(",")),
            strict,
        )
        _experiments(selection, nominal, out, write_docs, workers, limits, as_json)
        return
    from dragstrip.studies.validation import command, console
    from dragstrip.studies.validation.validate import document, validate

    stored = command.stored(grid, recordings, only)
    agreement = validate(stored.part(held_out), workers, spread=write_docs is not None, nominal=nominal)
    if as_json:
        print_json({**document(agreement), "held_out": held_out, "not_recorded": list(stored.missing)})
    else:
        console.show(agreement)
        console.show_left_out(stored.open if held_out else stored.held_out, held_out, stored.missing)
    if out is not None:
        page = command.write_page(agreement, stored.grid, out)
        say(f"Page: {page}", err=as_json)
    if write_docs is not None:
        command.write_docs(agreement, grid, stored, workers, write_docs)
    if agreement.failed:
        raise typer.Exit(1)


@app.command(short_help="Find where simulator and kernel diverge in a case.")
def explain(
    case: Annotated[str, typer.Argument(metavar="CASE", help="A case's name, or a unique part of it.")],
    experiments: Experiments = None,
    grid: GridFile = None,
    recordings: Recordings = None,
    set_: Settings = None,
    repeat: Repeat = None,
    duration: Duration = None,
    load: Load = None,
    nominal: Nominal = False,
    workers: Workers = None,
    time_limit: TimeLimit = None,
) -> None:
    """Find the first event at which the simulator and the kernel diverge in a case.

    Example: dragstrip validate explain 10m-160ms-1bdp-cdg
    """
    from dragstrip.studies.validation import command

    _refuse_misplaced(experiments, grid, recordings, set_, repeat, duration, load, time_limit)
    limits = words.time_limit(time_limit)
    if not experiments:
        command.explain_case(grid, recordings, case, nominal)
        return
    from dragstrip.studies.execution import side_by_side as side

    selection = side.Selection(experiments, None, set_ or [], repeat, duration, load or [])
    typed = shlex.join(["dragstrip", *sys.argv[1:]])
    agreements = side.run(
        side.plans(selection), None, workers, typed, nominal=nominal, spread=False, quiet=False, limits=limits
    )
    command.explain_one(agreements[side.MODEL], case)


@app.command(short_help="Record cells of the grid on a kernel.")
def record(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder for the recordings; existing ones stay.")
    ],
    cells: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CELL", help="Names of cells, such as b-2m-40ms-1bdp-reno.", show_default=False
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="N", min=1, help="Number of recordings of each cell.")
    ] = 1,
    described: Annotated[
        bool, typer.Option("--described", help="All cases that the grid file describes, with its own seeds.")
    ] = False,
    grid: GridFile = None,
    workers: Workers = None,
) -> None:
    """Run cells of the grid on the kernel in use (`dragstrip kernel list`), and keep the recordings.

    Example: dragstrip validate record recordings b-2m-40ms-1bdp-reno --seeds 3
    """
    from dragstrip.io.files import expect_folder
    from dragstrip.studies.validation import command

    expect_folder("FOLDER", folder)
    if described:
        command.record_described(grid, folder, workers, say)
    else:
        command.record_cells(cells or [], seeds, folder, workers, say)


@app.command(short_help="Write the tolerances that tests apply to a sample.")
def bands(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file, such as validation/linux-6.1/bands.json.")
    ],
    grid: GridFile = None,
    recordings: Recordings = None,
    workers: Workers = None,
) -> None:
    """Write the tolerances that tests apply to a sample of the grid.

    For a change of the simulator that reduces an error, or that is right and changes one.

    Example: dragstrip validate bands validation/linux-6.1/bands.json
    """
    from dragstrip.io.files import expect_file
    from dragstrip.studies.validation import command
    from dragstrip.studies.validation.validate import validate

    expect_file("FILE", file)
    stored = command.stored(grid, recordings)
    sample = [run for run in stored.open if run.case in stored.grid.sample]
    command.write_bands(validate(sample, workers), stored.grid, file)


def _refuse_misplaced(
    experiments: list[str] | None,
    grid: Path | None,
    recordings: Path | None,
    set_: list[str] | None,
    repeat: int | None,
    duration: str | None,
    load: list[str] | None,
    time_limit: str | None,
    **run_options: object,
) -> None:
    """Raise `BadInputError` for an option of the grid given with experiments, or the other way round."""
    of_grid = {"--grid": grid, "--recordings": recordings}
    of_runs: dict[str, object] = {"--set": set_, "--repeat": repeat, "--duration": duration}
    of_runs |= {"--load": load, "--time-limit": time_limit, **run_options}
    for name, value in (of_grid if experiments else of_runs).items():
        if value:
            expected = (
                "is for the grid of stored recordings: give it or EXPERIMENT, not both"
                if experiments
                else "is for runs of an EXPERIMENT: name one"
            )
            raise BadInputError(name, None, expected, "command line")


def _kernels(
    first: str | None,
    against: str | None,
    other_options: dict[str, object],
    grid: Path | None,
    only: str | None,
    write_docs: Path | None,
    workers: int | None,
    as_json: bool,
) -> None:
    """Compare kernels with one another."""
    from dragstrip.studies.validation import console, kernels
    from dragstrip.studies.validation.grid import read

    if first is None or against is None:
        given_option, missing = (
            ("--kernel", "--against-kernel") if against is None else ("--against-kernel", "--kernel")
        )
        raise BadInputError(missing, None, f"is needed with {given_option}", "command line")
    for name, value in other_options.items():
        if value:
            raise BadInputError(
                name, None, "is not for a comparison of kernels: leave it out", "command line"
            )
    stored_grid, source = read(grid)
    comparison = kernels.compare_kernels(
        stored_grid, source, first, against.split(","), only, workers, lambda step: say(step, err=True)
    )
    if as_json:
        print_json(kernels.document(comparison))
    else:
        console.show_lines(kernels.lines(comparison))
    if write_docs is not None:
        kernels.page(comparison, write_docs)


def _experiments(
    selection: Selection,
    nominal: bool,
    out: Path | None,
    write_docs: Path | None,
    workers: int | None,
    limits: Limits,
    as_json: bool,
) -> None:
    """Run experiments on both engines and report how well they agree."""
    from dragstrip.studies.execution import side_by_side as side
    from dragstrip.studies.validation import console, page, real_time
    from dragstrip.studies.validation.validate import document

    typed = shlex.join(["dragstrip", *sys.argv[1:]])
    plans = side.plans(selection)
    with nullcontext() if out is None else noting_interruption(out):
        agreements = side.run(
            plans,
            out,
            workers,
            typed,
            nominal=nominal,
            spread=write_docs is not None,
            quiet=as_json,
            limits=limits,
            other_engines=selection.against[1:],
        )
    first, *other_agreements = agreements.values()
    if as_json:
        by_engine = {engine: document(agreement) for engine, agreement in list(agreements.items())[1:]}
        print_json({**document(first), "beside": by_engine} if by_engine else document(first))
    elif side.in_real_time(selection):
        console.show_lines(real_time.summary_lines(agreements, selection.engine))
    else:
        for agreement in (first, *other_agreements):
            console.show(agreement)
    if out is not None:
        say(f"Page: {page.write(first, side.grid(selection, first), out)}", err=as_json)
    if write_docs is not None:
        side.write_docs(agreements, selection, plans, typed, write_docs)
    if not first.cases:
        raise typer.Exit(1)
