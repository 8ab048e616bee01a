"""`dragstrip tc-import`: the queues that a script of tc commands makes."""

from __future__ import annotations

import shlex
from itertools import groupby
from typing import Annotated, Any

import typer

from dragstrip.cli.options import JsonFlag
from dragstrip.cli.output import print_json, say
from dragstrip.errors import BadInputError

OPTIONS = {"rate", "queue", "rtt", "loss", "netem"}
"""Fields of a path that are options of `compare` too."""


def tc_import(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A script of tc commands, or - for standard input.")
    ],
    as_json: JsonFlag = False,
) -> None:
    """Print the queues that a script of tc commands sets up, as options of `compare` and experiment fields.

    The commands are processed in order. One of tc without a counterpart is refused with its line; those of
    other programs (ip, ethtool, iptables, ...) are skipped and listed.

    Example: dragstrip tc-import router.sh
    """
    from dragstrip.interop import scripts
    from dragstrip.io.untrusted import DESCRIPTION_MAX, text_or_input

    script, name = text_or_input(file, DESCRIPTION_MAX, "a script of tc commands")
    imported = scripts.imported(script, name)
    queues, skipped = imported["queues"], imported["skipped"]
    paths = [_path(device, list(of)) for device, of in _by_device(queues)]
    if as_json:
        print_json({"version": 1, "file": name, "queues": queues, "paths": paths, "skipped": skipped})
        return
    if not queues:
        say("No queue is left: the commands delete every queue that they add.")
    for queue in queues:
        say(_queue_text(queue))
    if skipped:
        lines = "".join(f"  line {command['line']}: {command['command']}\n" for command in skipped)
        say(f"Skipped, since they make no queue:\n{lines}")
    say("\n\n".join(_toml(path) for path in paths))


def _by_device(queues: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    devices = list(dict.fromkeys(queue["device"] for queue in queues))
    ordered = sorted(queues, key=lambda queue: devices.index(queue["device"]))
    return [(device, list(of)) for device, of in groupby(ordered, key=lambda queue: queue["device"])]


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


def _path(device: str, queues: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an interface's path; of two queues, the incoming one becomes the bottleneck."""
    if len(queues) == 1:
        return {"device": device, "path": queues[0]["path"]}
    path: dict[str, str] = {}
    for queue in queues:
        fields = dict(queue["path"])
        whole = {name: fields.pop(name) for name in ("rtt", "loss", "netem") if name in fields}
        if not fields.keys() <= {"rate", "queue"}:
            fields = {"queue": queue["queue"]}
        up = "" if queue["direction"] == "in" else "up_"
        path |= {f"{up}{field}": text for field, text in fields.items()}
        if whole.keys() & path.keys() or (up and whole.keys() & {"loss", "netem"}):
            name = next(name for name in ("loss", "netem", "rtt") if name in whole)
            expected = "a netem with a delay alone, in one direction: a path has one loss, of what comes in"
            raise BadInputError(name, whole[name], expected, f"{device}: netem")
        path |= whole
    return {"device": device, "path": dict(sorted(path.items(), key=lambda item: item[0].startswith("up_")))}


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
