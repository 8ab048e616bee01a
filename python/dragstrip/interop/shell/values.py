"""VariableValue of a script while it is interpreted: what is known, and what stands for what is not.

Belongs here: places, fields, gaps and the state of a shell. Does not belong here: how a value comes about.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from dragstrip.interop.shell.syntax import AnyCommand

FIRST_GAP = 0xF0000
"""The first of the private characters that stand in a value for what nobody knows."""
GAPS_MAX = 60_000
VALUE_MAX = 65_536
"""Characters of a value, at most."""
GAPS = re.compile("[\U000f0000-\U000fffff]")
UNSET, UNKNOWN = "unset", "unknown"
VariableValue: TypeAlias = str | dict[str, str]
"""A variable: a text, or an array by index."""


class Position(NamedTuple):
    """A line of the script, or of a file that it sources."""

    source: str | None
    line: int


class Expanded(NamedTuple):
    """A word after its expansion."""

    text: str
    position: Position
    loose: bool = False
    """It stands for any number of words."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A value that the script does not contain: an unset variable, what a program prints, a file."""

    kind: str
    text: str
    """As the script writes it."""
    position: Position
    key: str
    """Key of `--set` that gives the value."""
    root: str = ""
    """The gap that this one comes from, as the script writes it."""

    @property
    def origin(self) -> str:
        """The first unknown, from which the others follow."""
        return self.root or self.text


class Emitted(NamedTuple):
    """A command of another program."""

    words: tuple[Expanded, ...]
    queues: bool
    """It sets up a queue, or the length of one."""
    deletes: bool = False
    main_line: int = 1
    """The line of the script itself, for words of a file that it sources."""

    @property
    def counts(self) -> bool:
        """It makes a difference whether this is run."""
        return self.queues and not self.deletes


class RefusalError(Exception):
    """A place that cannot be followed: the value and what would be right."""

    def __init__(self, position: Position, value: str, expected: str) -> None:
        super().__init__(position, value, expected)
        self.position, self.value, self.expected = position, value, expected


class LimitError(RefusalError):
    """A script that takes too long, or has too much of something."""


class LeavingError(Exception):
    """A command that leaves a function, a loop or the shell."""

    def __init__(self, kind: str, levels: int = 1) -> None:
        super().__init__(kind, levels)
        self.kind, self.levels = kind, levels


@dataclass(slots=True)
class State:
    """A shell: what a subshell copies and a branch may change."""

    variables: dict[str, VariableValue] = field(default_factory=dict)
    functions: dict[str, tuple[AnyCommand, str | None] | Gap] = field(default_factory=dict)
    """Bodies with their files; a gap: of several, nobody knows which."""
    arguments: list[Expanded] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    output: str = ""
    input: str | None = None
    """Standard input of commands; None: the terminal's."""
    input_line: int | None = None
    """The line of a here-document's first line."""
    status: int | None = 0
    cause: Gap | None = None
    """Reason for which the status is not known."""
    stops_at_errors: bool = False
    last_option: int = 0
    """Letters of the word of options that `getopts` has read."""

    def copy(self) -> State:
        """Return one of its own."""
        return State(
            {
                name: value if isinstance(value, str) else dict(value)
                for name, value in self.variables.items()
            },
            dict(self.functions),
            list(self.arguments),
            dict(self.files),
            self.output,
            self.input,
            self.input_line,
            self.status,
            self.cause,
            self.stops_at_errors,
            self.last_option,
        )
