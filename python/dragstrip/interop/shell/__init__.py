"""Shell scripts followed without running anything, down to the commands of tc that they give.

Belongs here: the grammar, expansions and commands of a shell as router scripts use them, with what nobody
knows kept apart. Does not belong here: the meaning of tc's words, which the core has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dragstrip.interop.shell.interpreter import Interpreter
from dragstrip.interop.shell.syntax import ShellSyntaxError
from dragstrip.interop.shell.values import GAPS, Emitted, Position, RefusalError
from dragstrip.interop.shell.ways import Assumed

__all__ = ["Assumed", "FollowedScript", "Position", "RefusalError", "followed"]
_DELETED = re.compile(r"(?:^|/)ip (?:link|l) del(?:ete)? (?:dev )?(\S+)")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./^-]+")


class FlatLine(NamedTuple):
    """A line of the flat text: where its words stand."""

    position: Position
    main_line: int


@dataclass(slots=True)
class FollowedScript:
    """The commands of a script, each on a line of its own, and what was met on the way."""

    text: str = ""
    words: list[tuple[str, ...]] = field(default_factory=list)
    """The words of each command."""
    lines: list[FlatLine] = field(default_factory=list)
    queried: list[tuple[int, str]] = field(default_factory=list)
    """Programs whose output or status was asked for, and files that are not there."""
    unread: list[tuple[int, str]] = field(default_factory=list)
    assumed: list[Assumed] = field(default_factory=list)
    refusal: RefusalError | None = None
    """The refusal at which following ended; None at the end of the script."""
    used: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


def followed(
    text: str,
    given: Mapping[str, str],
    arguments: Sequence[str] = (),
    files: Callable[[str], tuple[str, str] | None] = lambda path: None,
) -> FollowedScript:
    """Follow a script. `given` has values of variables, and outputs or answers of commands.

    `files` returns a sourced file's name and text, or None.
    """
    clean = GAPS.sub("\ufffd", text.replace("\0", "\ufffd"))
    shell = Interpreter(dict(given), arguments, files)
    result = FollowedScript()
    try:
        shell.run(clean)
    except RefusalError as error:
        result.refusal = error
    except ShellSyntaxError as error:
        result.refusal = RefusalError(Position(shell.source, error.line), error.text, error.expected)
    except RecursionError:
        result.refusal = RefusalError(shell.position, "more", "commands that are less deep within each other")
    _flatten(shell.emitted, result)
    result.queried, result.assumed = shell.queried, shell.assumed
    result.unread = shell.unread
    result.used = shell.used
    result.names = shell.read_names
    return result


def _flatten(commands: Sequence[Emitted], result: FollowedScript) -> None:
    commands = _without_deleted(commands)
    lines: list[str] = []
    positions: set[tuple[Position, tuple[str, ...]]] = set()
    for command in commands:
        texts = tuple(word.text for word in command.words)
        if not command.queues:
            if (command.words[0].position, texts) in positions:
                continue
            positions.add((command.words[0].position, texts))
        result.words.append(texts)
        parts: list[str] = []
        for at, word in enumerate(command.words):
            parts.append(_quoted(word.text))
            following = command.words[at + 1].position if at + 1 < len(command.words) else None
            if following != word.position:
                lines.append(" ".join(parts) + ("" if following is None else " \\"))
                result.lines.append(FlatLine(word.position, command.main_line))
                parts = []
    result.text = "\n".join(lines)


def _without_deleted(commands: Sequence[Emitted]) -> list[Emitted]:
    """Return the commands without those for interfaces that the script deletes later."""
    emitted: list[Emitted | None] = []
    places: dict[str, list[int]] = {}
    for command in commands:
        if match := _DELETED.search(" ".join(word.text for word in command.words)):
            for place in places.pop(match[1], []):
                emitted[place] = None
        elif command.queues:
            places.setdefault(_device(command), []).append(len(emitted))
        emitted.append(command)
    return [command for command in emitted if command is not None]


def _device(command: Emitted) -> str:
    texts = [word.text for word in command.words]
    return texts[texts.index("dev") + 1] if "dev" in texts[:-1] else ""


def _quoted(text: str) -> str:
    """Return a word as the core reads it back."""
    text = re.sub(r"[\r\n]", " ", text)
    if _PLAIN.fullmatch(text):
        return text
    if "'" not in text:
        return f"'{text}'"
    return re.sub(r"([^A-Za-z0-9_@%+=:,./^-])", r"\\\1", text)
