"""`dragstrip tc-import`: the queues that a router's script makes."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from dragstrip.cli.options import JsonFlag
from dragstrip.cli.output import print_json, say

OPTIONS = {"rate", "queue", "rtt", "loss", "netem"}
"""Fields of a path that are options of `compare` too."""


def tc_import(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A script with tc commands, or - for standard input.")
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ARGUMENT]...", help="Arguments of the script; -- in front of its options."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A variable of the script, or what a command answers that nobody runs "
            "('cat /sys/class/net/eth0/mtu=1500', '[ -d /sys/class/net/ifb0 ]=true'); repeatable.",
        ),
    ] = None,
    sources: Annotated[
        Path | None,
        typer.Option("--sources", metavar="FOLDER", help="Folder of the files that the script sources."),
    ] = None,
    commands: Annotated[
        bool,
        typer.Option("--commands", help="Print the tc commands that the script gives, with their lines."),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Print the queues that a router's script sets up, as options of `compare` and experiment fields.

    The script is followed (variables, functions, if, for, case, $(( ))) and nothing is run. A command of tc
    without a counterpart is refused with its line; so is a value that the script does not contain, with the
    --set that gives it. Commands of other programs (ip, ethtool, iptables, ...) are skipped and listed.

    Example: dragstrip tc-import router.sh --set UPLINK=20000
    """
    from dragstrip.interop import scripts
    from dragstrip.io.untrusted import DESCRIPTION_MAX, text_or_input

    given = scripts.settings(settings or [])
    inputs = scripts.ScriptInputs(given, arguments or [], sources)
    script, name = text_or_input(file, DESCRIPTION_MAX, "a script of tc commands")
    if commands:
        say(scripts.printed_commands(script, name, inputs))
        return
    document = scripts.document(script, name, inputs)
    if as_json:
        print_json(document)
        return
    if not document["queues"]:
        say("No queue is left: the commands delete every queue that they add.")
    for queue in document["queues"]:
        say(_queue_text(queue))
    if document["assumed"]:
        lines = _assumed_text(document["assumed"])
        say(f"Taken for granted, since the script sets up its queues then:\n{lines}")
    if document["skipped"]:
        lines = "".join(
            f"  line {command['line']}: {command['command']}\n" for command in document["skipped"]
        )
        say(f"Skipped, since they make no queue:\n{lines}")
    say("\n\n".join(_toml(path) for path in document["paths"]))


def _assumed_text(assumed: list[dict[str, Any]]) -> str:
    return "".join(f"  line {row['line']}: {row['condition']} is {row['value']}\n" for row in assumed)


def _queue_text(queue: dict[str, Any]) -> str:
    """One queue: what it is of, and the options of `compare` that make it."""
    way = "outgoing" if queue["direction"] == "out" else "incoming"
    way += f", through {queue['through']}" if queue["through"] else ""
    lines = ", ".join(map(str, queue["lines"]))
    head = f"{queue['device']}, {way} ({'line' if len(queue['lines']) == 1 else 'lines'} {lines})"
    fields = queue["path"]
    # Settings without a `compare` option stay in the queue's words.
    expressible = fields.keys() <= OPTIONS and "rate" in fields
    options = "".join(
        f"--{name} {shlex.quote(fields[name])} "
        for name in ("rate", "rtt", "loss", "netem")
        if name in fields and (expressible or name != "rate")
    )
    words = fields["queue"] if expressible else queue["queue"]
    notes = "".join(f"\n  note: {note}" for note in queue["notes"])
    return f'{head}\n  {options}--queue "{words}"{notes}\n'


def _toml(path: dict[str, Any]) -> str:
    from dragstrip.io import toml

    fields = {field: text == "true" if field == "atm" else text for field, text in path["path"].items()}
    line = "" if "rate" in fields else "# rate: that of the line, which tc does not state\n"
    head, _, rest = toml.toml_text({"path": fields}).partition("\n")
    for queue in {text for text in fields.values() if isinstance(text, str) and text.startswith("tc ")}:
        # A class tree has a command on each line.
        commands = queue.replace("; tc ", "\ntc ")
        rest = rest.replace(f'"{queue}"', f'"""\n{commands}\n"""')
    return f"{head}  # {path['device']}\n{line}{rest.rstrip()}"
