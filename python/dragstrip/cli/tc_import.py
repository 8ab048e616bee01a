"""`dragstrip tc-import`: the queues that a script of tc commands makes."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Annotated, Any

import typer

from dragstrip.cli.options import JsonFlag
from dragstrip.cli.output import print_json, say
from dragstrip.errors import BadInputError, Raw


def tc_import(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A script of tc commands, or - for standard input.")
    ],
    as_json: JsonFlag = False,
) -> None:
    """Say what queue a script of tc commands makes of each interface, as words for `compare` and experiments.

    The commands are replayed in their order. tc that has no counterpart here is refused with its line.

    Example: dragstrip tc-import router.sh
    """
    from dragstrip import _core
    from dragstrip.outside import DESCRIPTION_MAX, text_or_input

    script, name = text_or_input(file, DESCRIPTION_MAX, "a script of tc commands")
    try:
        queues: list[dict[str, Any]] = json.loads(_core.import_tc(script))
    except _core.InputError as error:
        line, value, expected = error.args
        raise BadInputError(line, Raw(value), expected, name) from None
    paths = [_path(device, list(of)) for device, of in _by_device(queues)]
    if as_json:
        print_json({"version": 1, "file": name, "queues": queues, "paths": paths})
        return
    if not queues:
        say("No queue is left: what the commands add they take away again.")
    for queue in queues:
        say(_said(queue))
    say("\n\n".join(_toml(path) for path in paths))


def _by_device(queues: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    devices = list(dict.fromkeys(queue["device"] for queue in queues))
    ordered = sorted(queues, key=lambda queue: devices.index(queue["device"]))
    return [(device, list(of)) for device, of in groupby(ordered, key=lambda queue: queue["device"])]


def _said(queue: dict[str, Any]) -> str:
    """One queue: what it is of, and the options of `compare` that make it."""
    way = "what goes out" if queue["direction"] == "out" else f"what comes in, through {queue['through']}"
    lines = ", ".join(map(str, queue["lines"]))
    head = f"{queue['device']}, {way} ({'line' if len(queue['lines']) == 1 else 'lines'} {lines})"
    fields = queue["path"]
    # What `compare` has no option for stays in the queue's words.
    known = fields.keys() <= {"rate", "queue"} and "rate" in fields
    rate = f"--rate {fields['rate']} " if known else ""
    words = fields["queue"] if known else queue["queue"]
    notes = "".join(f"\n  note: {note}" for note in queue["notes"])
    return f'{head}\n  {rate}--queue "{words}"{notes}\n'


def _path(device: str, queues: list[dict[str, Any]]) -> dict[str, Any]:
    """The path of an interface: the bottleneck's queue is the only one, or of two that of what comes in."""
    if len(queues) == 1:
        return {"device": device, "path": queues[0]["path"]}
    path: dict[str, str] = {}
    for queue in queues:
        fields = queue["path"] if queue["path"].keys() <= {"rate", "queue"} else {"queue": queue["queue"]}
        up = "" if queue["direction"] == "in" else "up_"
        path |= {f"{up}{field}": text for field, text in fields.items()}
    return {"device": device, "path": dict(sorted(path.items(), key=lambda item: item[0].startswith("up_")))}


def _toml(path: dict[str, Any]) -> str:
    from dragstrip import toml

    fields = {field: text == "true" if field == "atm" else text for field, text in path["path"].items()}
    line = "" if "rate" in fields else "# rate is the line's, which tc does not say\n"
    head, _, rest = toml.written({"path": fields}).partition("\n")
    return f"{head}  # {path['device']}\n{line}{rest.rstrip()}"
