"""The command line; heavy imports happen inside the commands, so that help is instant.

Belongs here: a module per command with its options, what several commands share, and how the program ends.
Does not belong here: anything that `dragstrip` as a library would need.
"""

from __future__ import annotations

import gc
import sys
from typing import Annotated, NoReturn

import typer

from dragstrip.cli import (
    attack,
    catalogue,
    compare,
    diagnose,
    ending,
    export,
    inspect,
    kernel,
    lab,
    new,
    passport,
    play,
    report,
    run,
    sweep,
    tc_import,
    tools,
    topics,
    validate,
    whatif,
)
from dragstrip.cli.capture import Capturing
from dragstrip.cli.once import Commands

app = Commands(
    name="dragstrip",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,  # importing rich takes longer than printing the help
    help="Races TCP congestion controls against each other on the same network path and measures what "
    "each one costs: throughput, delay, loss, fairness.",
    epilog="Example: dragstrip compare --rate 10mbit --rtt 40ms --queue 'bfifo limit 200kb' "
    "--duration 30s cubic bbr. More: dragstrip help. A term: dragstrip help bufferbloat",
)
app.command("list", short_help="List experiments, algorithms, queues, paths, ...")(catalogue.list_)
app.command()(catalogue.show)
app.command(cls=Capturing, short_help="Run an experiment and grade its claims.")(run.run)
app.command(cls=Capturing, short_help="Compare congestion controls on one path.")(compare.compare)
app.command(cls=Capturing, short_help="Run many combinations and map who wins where.")(sweep.sweep)
app.command(short_help="Write a page with an interactive race.")(play.play)
app.command()(report.report)
app.command(short_help="Report what captures and other programs' files show.")(inspect.inspect)
app.command(short_help="Say what is wrong on a path, and what helps.")(diagnose.diagnose)
app.command(short_help="Say what others would have done in a capture's place.")(whatif.whatif)
app.command(short_help="Say which congestion control a capture shows.")(whatif.identify)
app.command(short_help="Say what an algorithm is good at and whom it harms.")(passport.passport)
app.command(short_help="Search for conditions under which one fails.")(attack.attack)
app.command(short_help="Write recordings as files of other programs.")(export.export)
app.command("tc-import", short_help="Print the queues that a script of tc commands sets up.")(
    tc_import.tc_import
)
app.command()(tools.doctor)
app.command(short_help="Play conformance scripts of one TCP endpoint.")(tools.conform)
app.command("new-algorithm", short_help="Add the skeleton of a congestion control.")(new.new_algorithm)
app.command("new-qdisc", short_help="Add the skeleton of a queue discipline.")(new.new_qdisc)
app.command("help", short_help="Explain a topic, such as paths or queues.")(topics.help_)
app.add_typer(kernel.app, name="kernel")
app.add_typer(lab.app, name="lab")
app.add_typer(validate.app, name="validate")


def _version(requested: bool) -> None:
    if requested:
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


def _run() -> object:
    if any(".rs" in word for word in sys.argv[1:]):
        from dragstrip.authoring import rust_files

        sys.argv[1:] = rust_files.entered(sys.argv[1:])
    return app(standalone_mode=False)


def main() -> NoReturn:
    """Run the command line; every error is one line on standard error, bad input exits with 2."""
    # The objects of a hundred thousand hosts have no cycles: the search for some took a quarter of the time.
    gc.set_threshold(200_000, 50, 50)
    ending.run(_run)


if __name__ == "__main__":
    main()
