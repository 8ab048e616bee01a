"""The command line; heavy imports happen inside the commands, so that help is instant.

Belongs here: a module per command with its options, what several commands share, and how the program ends.
Does not belong here: anything that `dragstrip` as a library would need.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterable
from typing import Annotated, Any, NoReturn

import typer

from dragstrip.cli import ending
from dragstrip.cli.capture import Capturing
from dragstrip.cli.once import CommandGroup, Commands

COMMANDS: dict[str, tuple[str, dict[str, Any]]] = {
    "list": ("catalogue:list_", {"short_help": "List experiments, algorithms, queues, paths, ..."}),
    "show": ("catalogue:show", {}),
    "run": ("run:run", {"cls": Capturing, "short_help": "Run an experiment and grade its claims."}),
    "compare": (
        "compare:compare",
        {"cls": Capturing, "short_help": "Compare congestion controls on one path."},
    ),
    "sweep": (
        "sweep:sweep",
        {"cls": Capturing, "short_help": "Run many combinations and map who wins where."},
    ),
    "shell": (
        "shell:shell",
        {"cls": Capturing, "short_help": "Run a shell or a command behind a path, in real or virtual time."},
    ),
    "play": ("play:play", {"short_help": "Write a page with an interactive race."}),
    "report": ("report:report", {}),
    "inspect": ("inspect:inspect", {"short_help": "Report what captures and other programs' files show."}),
    "diagnose": ("diagnose:diagnose", {"short_help": "Say what is wrong on a path, and what helps."}),
    "whatif": ("whatif:whatif", {"short_help": "Say what others would have done in a capture's place."}),
    "identify": ("whatif:identify", {"short_help": "Say which congestion control a capture shows."}),
    "passport": ("passport:passport", {"short_help": "Say what an algorithm is good at and whom it harms."}),
    "evidence": ("evidence:evidence", {"short_help": "Answer RFC 9743, clause by clause, with figures."}),
    "judge": ("judge:judge", {"short_help": "Score algorithms on paths that they have not seen."}),
    "attack": ("attack:attack", {"short_help": "Search for conditions under which one fails."}),
    "export": ("export:export", {"short_help": "Write recordings as files of other programs."}),
    "tc-import": (
        "tc_import:tc_import",
        {"short_help": "Print the queues that a script of tc commands sets up."},
    ),
    "doctor": ("tools:doctor", {}),
    "conform": ("tools:conform", {"short_help": "Play conformance scripts of one TCP endpoint."}),
    "new-algorithm": ("new:new_algorithm", {"short_help": "Add the skeleton of a congestion control."}),
    "new-qdisc": ("new:new_qdisc", {"short_help": "Add the skeleton of a queue discipline."}),
    "policy-bpf": ("policy:policy_bpf", {"short_help": "Write a policy as a program for the kernel."}),
    "help": ("topics:help_", {"short_help": "Explain a topic, such as paths or queues."}),
}
"""Name of a command → its function, as MODULE:FUNCTION of this package, and Typer's settings of it."""

GROUPS = ("kernel", "lab", "validate")
"""Commands with commands of their own, each the `app` of the module of its name."""


def application(names: Iterable[str]) -> Commands:
    """The command line with these commands alone; the modules of others are not imported."""
    commands = Commands(
        name="dragstrip",
        cls=CommandGroup,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,  # importing rich takes longer than printing the help
        help="Races TCP congestion controls against each other on the same network path and measures what "
        "each one costs: throughput, delay, loss, fairness.",
        epilog="Example: dragstrip compare --rate 10mbit --rtt 40ms --queue 'bfifo limit 200kb' "
        "--duration 30s cubic bbr. More: dragstrip help. A term: dragstrip help bufferbloat",
    )
    commands.callback()(_options)
    for name in names:
        if name in GROUPS:
            commands.add_typer(_module(name).app, name=name)
            continue
        home, settings = COMMANDS[name]
        module, function = home.split(":")
        commands.command(name, **settings)(getattr(_module(module), function))
    return commands


def _module(name: str) -> Any:
    return importlib.import_module(f"dragstrip.cli.{name}")


def __getattr__(name: str) -> Any:
    """`app`, the whole command line, on first use: the program itself loads the command that is called."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["app"] = app = application([*COMMANDS, *GROUPS])
    return app


def _version(requested: bool) -> None:
    if requested:
        from dragstrip import __version__

        typer.echo(f"dragstrip {__version__}")
        raise typer.Exit


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
    names = {*COMMANDS, *GROUPS} - {"help"}  # which explains any command
    called = names.intersection(sys.argv[1:2])
    return application(called or [*COMMANDS, *GROUPS])(standalone_mode=False)


def main() -> NoReturn:
    """Run the command line; every error is one line on standard error, bad input exits with 2."""
    # The objects of a hundred thousand hosts have no cycles: the search for some took a quarter of the time.
    gc.set_threshold(200_000, 50, 50)
    ending.run(_run)


if __name__ == "__main__":
    main()
