"""Scripts of tc commands, and traces of scripts that ran: the queues that they set up.

Belongs here: from a script's text to queues and paths, with errors that name its line; the commands in what
`sh -x` and SQM print. Does not belong here: the shell's own language, which `shell` follows; listings that tc
prints, which `readers.tc` reads.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from dragstrip import _core
from dragstrip.errors import BadInputError, Raw, nearest
from dragstrip.interop import shell
from dragstrip.io import untrusted

_COMMAND = re.compile(
    r"(?mi)^[ \t]{0,40}(?:sudo )?(?:ip netns exec \S{1,60} )?"
    r"(?:\S{0,40}/|\$\{?(?:cmd_)?)?tc(?:_\w{1,20})?\}? "
    r"(?:-\S{1,10} )?(?:\S{1,30} )?(?:qdisc|class|filter) (?:add|replace|change|del)\b"
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
_IS_TC = re.compile(r"(?:^|[ /])tc |^(?:qdisc|class|filter) ")
_DELETES = re.compile(r"\b(?:qdisc|class|filter) del")
NO_COMMAND = re.compile(r"""[\w."-]{1,60} = |\[\S""")
"""Line of TOML or another file of settings, which no shell would run."""


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


@dataclass(frozen=True, slots=True)
class ScriptInputs:
    """Things that a script gets from outside: values of variables and commands, arguments, files."""

    given: Mapping[str, str] = field(default_factory=dict)
    arguments: Sequence[str] = ()
    sources: Path | None = None
    """The folder of the files that it sources."""

    def __post_init__(self) -> None:
        if self.sources is not None and not self.sources.is_dir():
            raise BadInputError("--sources", str(self.sources), "a folder", "command line")

    def file(self, path: str) -> tuple[str, str] | None:
        """Return a sourced file's name and text, or None; only the folder itself is looked in."""
        name = path.rpartition("/")[2]
        if self.sources is None or name in ("", ".", "..") or not (self.sources / name).is_file():
            return None
        return name, untrusted.text(self.sources / name, untrusted.DESCRIPTION_MAX, "a shell script")


def settings(texts: Iterable[str], name: str = "--set") -> dict[str, str]:
    """Return values by variable or command of `NAME=VALUE` and `COMMAND=VALUE`."""
    given = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not re.fullmatch(r"[A-Za-z_]\w*", key):
            key, equals, value = text.rpartition("=")
        if not equals or not key.strip():
            expected = (
                "NAME=VALUE, or the command of which nothing is known: 'cat /sys/class/net/eth0/mtu=1500'"
            )
            raise BadInputError(name, text, expected, "command line")
        given[key] = value
    return given


def python_words(text: str) -> str:
    """Return an error's text with the arguments of a function instead of the command's options."""
    text = re.sub(r"--set '([^'=]{1,500})=(VALUE|true)'", r'variables={"\1": "\2"}', text)
    text = re.sub(r"--set ([^ '=]{1,500})=(VALUE|true)", r'variables={"\1": "\2"}', text)
    text = text.replace("dragstrip tc-import FILE ARGUMENTS", "arguments=[...]")
    return (
        text.replace("--sources FOLDER", "sources=FOLDER")
        .replace("--set", "variables")
        .replace("--sources", "sources")
    )


def _keys(given: Mapping[str, str]) -> dict[str, str]:
    """Return given values by keys as the interpreter asks for them."""
    return {" ".join(re.sub(r"^\$\((.*)\)$", r"\1", key).split()): value for key, value in given.items()}


@dataclass(slots=True)
class TcCommands:
    """The commands of a script in the text that the core reads, and where the script has them."""

    text: str
    lines: Sequence[shell.FlatLine] | None = None
    """None: each stands on its line."""
    skipped: list[dict[str, Any]] = field(default_factory=list)
    assumed: list[dict[str, Any]] = field(default_factory=list)
    error: BadInputError | None = None
    """Error that ended the list of commands."""
    takes_arguments: bool = False
    unread: str = ""
    """A file that the script sources and that was not read, with its line."""

    def line(self, number: int) -> int:
        """Return the script's line of a line of the text."""
        if not self.lines or not 0 < number <= len(self.lines):
            return number
        position, main_line = self.lines[number - 1]
        return position.line if position.source is None else main_line

    def place(self, number: int) -> str:
        """Return a line for people; of a sourced file with its name."""
        if not self.lines or not 0 < number <= len(self.lines):
            return f"line {number}"
        position = self.lines[number - 1].position
        return f"line {position.line}" + (f" of {position.source}" if position.source else "")

    def worded(self, text: str) -> str:
        """Return a text of the core with the script's lines."""
        return re.sub(r"\bline (\d{1,9})\b", lambda match: self.place(int(match[1])), text)

    def listed(self) -> list[tuple[int, str]]:
        """Return the first line of each command in the text, and the command."""
        commands, start, words = [], 1, ""
        for number, line in enumerate(self.text.splitlines(), 1):
            start = start if words else number
            words += line.removesuffix("\\")
            if not line.endswith("\\"):
                if words.strip():
                    commands.append((start, words.strip()))
                words = ""
        return commands

    def left_out(self, number: int) -> str:
        """Return what would be right in the place of a program that is not known here."""
        commands = self.listed()
        if not self.unread and not any(re.match(r"(\S*/)?tc\s", text) for _, text in commands):
            return "a script of tc commands: there is none in it"
        command = next((text for start, text in reversed(commands) if start <= number), "")
        if NO_COMMAND.match(command):
            return "a shell script of tc commands: this line is of another language"
        setting = "'" + " ".join(shlex.split(command)).replace("'", "")[:200] + "=true'"
        expected = (
            f"a command of tc, or of a program that is known to make no queue (--set {setting} leaves it out)"
        )
        if self.unread:
            expected += f"; a function of {self.unread}, is read with --sources FOLDER"
        return expected


def tc_commands(script: str, source: str, inputs: ScriptInputs) -> TcCommands:
    """Return the commands that a script gives, without running it, or those in a trace."""
    commands, failures = _commands(script)
    if commands is not script:
        return TcCommands(commands, None, failures)
    given = _keys(inputs.given)
    followed = shell.followed(script, given, inputs.arguments, inputs.file)
    error = None
    if followed.refusal is not None:
        refusal = followed.refusal
        position = refusal.position
        place = f"line {position.line}"
        file = source if position.source is None else f"{source}: {position.source}"
        error = BadInputError(place, Raw(f'"{refusal.value[:110]}"'), refusal.expected, file)
    elif unused := [name for name in given if name not in followed.used and name not in followed.names]:
        expected = f"a variable or a command that the script asks for{nearest(unused[0], followed.names)}"
        error = BadInputError("--set", unused[0], expected, "command line")
    return TcCommands(
        followed.text,
        followed.lines,
        [{"line": line, "command": command} for line, command in followed.queried],
        [assumption._asdict() for assumption in followed.assumed],
        error,
        bool(followed.names & {"#", "1", "2", "@"}) and not inputs.arguments,
        f"{followed.unread[0][1]}, which line {followed.unread[0][0]} sources" if followed.unread else "",
    )


def imported(script: str, source: str, inputs: ScriptInputs = ScriptInputs()) -> dict[str, Any]:
    """Return the queues that a script of tc commands sets up, and the commands that were skipped.

    Raises `BadInputError` for a command of tc without a counterpart and for what the script does not contain,
    with its line.
    """
    commands = tc_commands(script, source, inputs)
    try:
        queues: dict[str, Any] = _core.import_tc(commands.text)
    except _core.InputError as error:
        place, value, expected = error.args
        number = int(re.sub(r"\D", "", place) or 1)
        unknown = expected.startswith("a command of tc: tc qdisc")
        if commands.error is not None and not unknown and "listing" not in value:
            raise commands.error from None
        if value == "no command of tc" and commands.takes_arguments:
            expected = "the script's arguments behind its name, since it asks for them"
        elif unknown and commands.lines is not None:
            expected = commands.left_out(number)
        raise BadInputError(commands.place(number), Raw(value), commands.worded(expected), source) from None
    if commands.error is not None:
        raise commands.error
    listed = commands.listed()
    for queue in queues["queues"]:
        own = set(queue["lines"])
        starts = [start for start, _ in listed]
        ends = [*starts[1:], len(commands.text)]
        queue["commands"] = [
            text
            for (start, text), end in zip(listed, ends, strict=False)
            if own & set(range(start, min(end, start + 50)))
        ]
        queue["lines"] = sorted({commands.line(number) for number in own})
        queue["notes"] = [commands.worded(note) for note in queue["notes"]]
    for command in queues["skipped"]:
        command["line"] = commands.line(command["line"])
    every = [*queues["skipped"], *commands.skipped]
    unique = {(command["line"], command["command"]): command for command in every}
    queues["skipped"] = sorted(unique.values(), key=lambda command: command["line"])
    queues["assumed"] = commands.assumed
    return queues


def printed_commands(script: str, source: str, inputs: ScriptInputs) -> str:
    """Return the commands of tc that a script gives, each with its line; raises `BadInputError`."""
    commands = tc_commands(script, source, inputs)
    if commands.error is not None:
        raise commands.error
    rows = [(number, text) for number, text in commands.listed() if _IS_TC.search(text)]
    return "\n".join(f"{text}  # {commands.place(number)}" for number, text in rows)


def document(script: str, source: str, inputs: ScriptInputs) -> dict[str, Any]:
    """Return the queues of a script, and the path of each interface, as one document."""
    content = imported(script, source, inputs)
    paths = [_path(device, queues) for device, queues in _by_device(content["queues"])]
    return {"version": 1, "file": source, "queues": content["queues"], "paths": paths} | {
        name: content[name] for name in ("skipped", "assumed")
    }


def discipline(queue: str) -> str:
    """Return the words of a discipline as they are, or those of the one that a script sets up, by its file.

    A name with a slash or the ending `.sh`, or of a file that exists, is a script's; a discipline's name is
    not. The script's rate and delay are left out. Raises `BadInputError` if it sets up none or several.
    """
    name = queue.strip()
    is_path = len(name.split()) == 1 and ("/" in name or name.endswith(".sh"))
    if not is_path and (_is_discipline(name) or not Path(name).is_file()):
        return queue
    text = untrusted.text(Path(name), untrusted.DESCRIPTION_MAX, "a script of tc commands")
    try:
        queues = document(text, name, ScriptInputs())["queues"]
    except BadInputError as error:
        expected = f"{error.expected}; or give --queue the words that `dragstrip tc-import {name}` prints"
        raise BadInputError(error.field, Raw(error.value), expected, error.source) from None
    words = list(dict.fromkeys(str(entry["path"].get("queue", entry["queue"])) for entry in queues))
    if len(words) != 1:
        expected = "a script that sets up one discipline" + "".join(f'; or --queue "{one}"' for one in words)
        raise BadInputError("--queue", name, expected, "command line")
    return words[0]


def _is_discipline(words: str) -> bool:
    try:
        _core.parse_qdisc(words)
    except _core.InputError:
        return False
    return True


def _by_device(queues: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    devices = list(dict.fromkeys(queue["device"] for queue in queues))
    ordered = sorted(queues, key=lambda queue: devices.index(queue["device"]))
    return [(device, list(rows)) for device, rows in groupby(ordered, key=lambda queue: queue["device"])]


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
        path |= {f"{up}{name}": text for name, text in fields.items()}
        if whole.keys() & path.keys() or (up and whole.keys() & {"loss", "netem"}):
            name = next(name for name in ("loss", "netem", "rtt") if name in whole)
            expected = "a netem with a delay alone, in one direction: a path has one loss, of what comes in"
            raise BadInputError(name, whole[name], expected, f"{device}: netem")
        path |= whole
    return {"device": device, "path": dict(sorted(path.items(), key=lambda item: item[0].startswith("up_")))}
