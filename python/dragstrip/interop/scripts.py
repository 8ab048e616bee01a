"""Scripts of tc commands, and traces of scripts that ran, read by the core.

Belongs here: from a script's text to the queues that it sets up, with errors that name its line; the commands
in what `sh -x` and SQM print. Does not
belong here: listings that tc prints, which `readers.tc` reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from dragstrip import _core
from dragstrip.errors import BadInputError, Raw

_COMMAND = re.compile(
    r"(?m)^[ \t]{0,40}(?:sudo )?(?:ip netns exec \S{1,60} )?(?:\S{0,40}/)?tc (?:-\S{1,10} )?(?:\S{1,30} )?"
    r"(?:qdisc|class|filter) (?:add|replace|change|del)\b"
)


_TRACED = re.compile(r"\++ (?P<command>\S.*)")
"""Trace line of a command from `bash -x`, dash and ash, a + for each level (POSIX's `set -x` with `PS4`)."""
_SQM = re.compile(
    r"(?P<before>.{0,120}?)SQM: (?:cmd_wrapper: )?(?:\S{1,60}: )?"
    r"(?:(?P<state>SUCCESS|COMMAND|FAILURE(?: \(\d{1,5}\))?): (?P<command>\S.*))?"
)
"""Line that `sqm_logger` of sqm-scripts' functions.sh prints with SQM_DEBUG=1, or in the system's log."""
_RELEVANT = re.compile(r"(?:sudo )?(?:ip netns exec \S{1,60} )?(?:\S{0,60}/)?(?:tc|ip|ifconfig) ")
_FAILED = re.compile(r"RTNETLINK answers: |Error: |Cannot find device |Unknown qdisc |Illegal |What is ")
_DELETES = re.compile(r"\b(?:qdisc|class|filter) del")


def is_script(begin: str) -> bool:
    """Return whether a text has a command of tc that sets something up, or is a trace of one."""
    return bool(_COMMAND.search(_commands(begin)[0]))


def _commands(text: str) -> tuple[str, list[dict[str, Any]]]:
    """Return a script as it is, and of a trace the commands on their lines, with those that failed."""
    lines = text.splitlines()
    logged = [_SQM.match(line) for line in lines]
    if any(match and match["state"] for match in logged):
        states = {match["state"] for match in logged if match}
        command_state = "SUCCESS" if "SUCCESS" in states else "COMMAND"
        return _replayed(
            (match["command"] if match and match["state"] == command_state else "") for match in logged
        ), [
            {"line": at, "command": f"{match['command']} (failed)"}
            for at, match in enumerate(logged, start=1)
            if match
            and (match["state"] or "").startswith("FAILURE")
            and not _DELETES.search(match["command"])
        ]
    traced = [_TRACED.match(line) for line in lines]
    if not any(match and _COMMAND.match(match["command"]) for match in traced):
        return text, []
    commands, failures = [], []
    for at, match in enumerate(traced):
        command = match["command"] if match else ""
        failed = command and at + 1 < len(lines) and _FAILED.match(lines[at + 1])
        if failed and _COMMAND.match(command) and not _DELETES.search(command):
            failures.append({"line": at + 1, "command": f"{command} (failed: {lines[at + 1][:200]})"})
            command = ""
        commands.append(command)
    return _replayed(commands), failures


def _replayed(commands: Iterable[str]) -> str:
    """Return the commands that concern queues, each on its line; no shell expands them again."""
    return "\n".join(_plain(command) if _RELEVANT.match(command) else "" for command in commands)


def _plain(command: str) -> str:
    return command.replace("`", "\\`") if "'" in command else re.sub(r"([`$;|&])", r"\\\1", command)


def imported(script: str, source: str) -> dict[str, list[dict[str, Any]]]:
    """Return the queues that a script of tc commands sets up, and the commands that were skipped.

    Raises `BadInputError` for a command of tc without a counterpart, with its line.
    """
    commands, failures = _commands(script)
    try:
        queues: dict[str, list[dict[str, Any]]] = _core.import_tc(commands)
    except _core.InputError as error:
        line, value, expected = error.args
        raise BadInputError(line, Raw(value), expected, source) from None
    queues["skipped"] = sorted([*queues["skipped"], *failures], key=lambda skipped: skipped["line"])
    return queues
