"""Expansion of words (POSIX, 2.6): parameters, output of commands, arithmetic, and splitting into fields.

Belongs here: from a word to the fields that a command gets. Does not belong here: running commands, which
`interpreter` does.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TypeAlias

from dragstrip.interop.shell import arithmetic, patterns
from dragstrip.interop.shell.syntax import Arithmetic, CommandList, Parameter, ShellWord, Substitution, Text
from dragstrip.interop.shell.values import (
    FIRST_GAP,
    GAPS,
    GAPS_MAX,
    UNKNOWN,
    UNSET,
    VALUE_MAX,
    Expanded,
    Gap,
    LimitError,
    Position,
    RefusalError,
    State,
    VariableValue,
)

STEPS_MAX = 200_000
"""Commands and expansions of a script, at most; a longer text counts as several."""
_BRACES = re.compile(r"([^{}$]*)\{([^{}$]*)\}(.*)", re.DOTALL)
_RANGE = re.compile(r"(-?\d{1,6})\.\.(-?\d{1,6})")
Run: TypeAlias = str | list[Expanded]
"""A part's value: a text, or the arguments as words of their own."""


class Expander(ABC):
    """A shell's state, and what words become in it."""

    def __init__(self) -> None:
        self.state = State()
        self.source: str | None = None
        self.gaps: list[Gap] = []
        self.given: dict[str, str] = {}
        self.used: set[str] = set()
        self.read_names: set[str] = set()
        self.vanished: list[Gap] = []
        """Unset variables that left no word of the command in hand."""
        self.position = Position(None, 1)
        self._steps = 0

    @abstractmethod
    def substituted(self, body: CommandList, text: str) -> str:
        """Return what commands print."""

    def charge(self, steps: int = 1) -> None:
        """Count what the script costs."""
        self._steps += steps
        if self._steps > STEPS_MAX:
            raise LimitError(
                self.position, f"more than {STEPS_MAX} steps", "a script that ends, without a loop that waits"
            )

    # Gaps

    def gap(self, kind: str, text: str, key: str, root: str = "") -> str:
        """Return a character that stands for a value that nobody knows."""
        if len(self.gaps) >= GAPS_MAX:
            raise LimitError(
                self.position, "more", f"at most {GAPS_MAX} values that the script does not contain"
            )
        self.gaps.append(Gap(kind, self.shown(text), self.position, key, root))
        return chr(FIRST_GAP + len(self.gaps) - 1)

    def gap_of(self, text: str, kinds: tuple[str, ...] = (UNKNOWN,)) -> Gap | None:
        """Return the first gap in a text."""
        for character in GAPS.findall(text):
            gap = self.gaps[ord(character) - FIRST_GAP]
            if gap.kind in kinds:
                return gap
        return None

    def settled(self, text: str) -> str:
        """Return a text in which unset variables are empty."""
        if not GAPS.search(text):
            return text
        return GAPS.sub(
            lambda match: "" if self.gaps[ord(match[0]) - FIRST_GAP].kind == UNSET else match[0], text
        )

    def shown(self, text: str) -> str:
        """Return a text for people: gaps are what the script writes."""
        return GAPS.sub(lambda match: self.gaps[ord(match[0]) - FIRST_GAP].origin, text)

    # Variables

    def assign(self, name: str, value: VariableValue, index: str | None = None, adds: bool = False) -> None:
        """Set a variable; a given value stays in place of a constant or of what nobody knows."""
        variables = self.state.variables
        if isinstance(value, str):
            if len(value) > VALUE_MAX:
                raise LimitError(self.position, name, f"at most {VALUE_MAX} characters")
            self.charge(1 + len(value) // 100)
        old = variables.get(name)
        if index is not None:
            array = old if isinstance(old, dict) else ({} if old is None else {"0": old})
            key = self._index(name, index, old)
            self.charge(1 + len(array) // 100)
            variables[name] = {**array, key: (array.get(key, "") if adds else "") + str(value)}
        elif isinstance(value, dict) and adds:
            array = old if isinstance(old, dict) else ({} if old is None else {"0": old})
            start = 1 + max((int(key) for key in array if key.isdigit()), default=-1)
            variables[name] = {**array, **{str(start + at): text for at, text in enumerate(value.values())}}
        elif adds and isinstance(value, str):
            variables[name] = f"{old if isinstance(old, str) else ''}{value}"
        else:
            variables[name] = value

    def _index(self, name: str, index: str, old: VariableValue | None) -> str:
        if isinstance(old, dict) and not all(key.isdigit() for key in old):
            return index.strip("\"'")
        if f"{name}[]" in self.state.variables:
            return index.strip("\"'")
        return self.computed(index)

    def scalar(self, name: str) -> str | None:
        """Return a variable's text; None if it is not set."""
        self.read_names.add(name)
        value = self.state.variables.get(name, "1000" if name == "RANDOM" else None)
        return value.get("0") if isinstance(value, dict) else value

    def _special(self, name: str) -> str | None:
        match name:
            case "#":
                return str(len(self.state.arguments))
            case "?":
                if self.state.status is None:
                    cause = self.state.cause
                    return self.gap(UNKNOWN, cause.text if cause else "$?", cause.key if cause else "$?")
                return str(self.state.status)
            case "$" | "!":
                return "1000"  # a process's number: any is as good as another
            case "-":
                return ""
            case "0":
                return "script"
        position = int(name)
        return self.state.arguments[position - 1].text if position <= len(self.state.arguments) else None

    def _value(self, part: Parameter) -> str | None:
        if part.index is not None:
            self.read_names.add(part.name)
            array = self.state.variables.get(part.name)
            if isinstance(array, str):
                return array if self.computed(part.index) == "0" else None
            return (
                None if array is None else array.get(self._index(part.name, self._inner(part.index), array))
            )
        if part.name.isdigit() or part.name in "#?$!-":
            self.read_names.add(part.name)
            return self._special(part.name)
        return self.scalar(part.name)

    def _inner(self, text: str) -> str:
        """Return an index with its variables' values."""
        match = re.fullmatch(r"[\"']?\$\{?(\w+)\}?[\"']?", text)
        return (self.scalar(match[1]) or "") if match else text

    def _list(self, part: Parameter) -> list[Expanded] | None:
        """Return the values of `$@`, `$*`, `${NAME[@]}`, or None for a parameter that is a text."""
        if part.name in ("@", "*"):
            return list(self.state.arguments)
        if part.index in ("@", "*"):
            self.read_names.add(part.name)
            array = self.state.variables.get(part.name)
            if isinstance(array, dict):
                return [Expanded(text, self.position) for text in array.values()]
            return [] if array is None else [Expanded(array, self.position)]
        return None

    # Parameters

    def _parameter(self, part: Parameter) -> Run:
        if part.indirect:
            if part.index in ("@", "*"):
                array = self.state.variables.get(part.name)
                keys = list(array) if isinstance(array, dict) else []
                return [Expanded(key, self.position) for key in keys]
            name = self._value(part) or ""
            if not re.fullmatch(r"\w+", name):
                return self.gap(UNKNOWN, part.text, "")
            part = Parameter(name, part.quoted, part.text, None, part.operator, part.operand)
        items = self._list(part)
        if part.length:
            if items is not None:
                return str(len(items))
            value = self.settled(self._value(part) or "")
            return self._known(value, str(len(value)))
        if items is not None and not part.operator:
            if part.quoted and (part.name == "*" or part.index == "*"):
                separator = (self.scalar("IFS") or " ")[:1] if "IFS" in self.state.variables else " "
                return separator.join(item.text for item in items)
            return items
        if items is not None:
            if part.operator == ":" and part.operand is not None:
                start, _, length = self.text(part.operand).partition(":")
                first, count = self.computed(start), self.computed(length) if length else ""
                if gap := GAPS.search(first + count):
                    return gap[0]
                begin = max(int(first) - (part.name in "@*"), 0)
                return items[begin : begin + int(count) if count else None]
            joined = " ".join(item.text for item in items) if items else None
            results = (
                [self._operated(part, item.text) for item in items] if part.operator[0] in "#%/^," else []
            )
            if results:
                return [Expanded(text, item.position) for text, item in zip(results, items, strict=True)]
            return self._operated(part, joined)
        return self._operated(part, self._value(part))

    def _operated(self, part: Parameter, value: str | None) -> str:
        operator, operand = part.operator, part.operand
        if not operator or operand is None:
            if value is None:
                return self._unset(part)
            return value
        empty = value is None or (operator.startswith(":") and not self.settled(value))
        match operator:
            case ":-" | "-":
                return self.text(operand) if empty or value is None else value
            case ":=" | "=":
                if not empty and value is not None:
                    return value
                result = self.text(operand)
                self.assign(part.name, result)
                return result
            case ":+" | "+":
                return "" if empty else self.text(operand)
            case ":?" | "?":
                return self.gap(UNSET, part.text, part.name) if empty or value is None else value
        if value is None:
            return self._unset(part)
        return self._cut(part, operand, value)

    def _cut(self, part: Parameter, operand: ShellWord, value: str) -> str:
        """Return a part of a value, or the value with another in it."""
        operator = part.operator
        value = self.settled(value)
        if operator == ":":
            start, colon, length = self.text(operand).partition(":")
            offset, count = self.computed(start), self.computed(length) if colon else ""
            if gap := GAPS.search(offset + count):
                return gap[0]
            first = int(offset)
            first = max(len(value) + first, 0) if first < 0 else first
            if not colon:
                return self._known(value, value[first:])
            last = int(count)
            return self._known(value, value[first : first + last] if last >= 0 else value[first:last])
        if operator in ("^^", "^", ",,", ","):
            changed = value.upper() if "^" in operator else value.lower()
            return changed if len(operator) == 2 else changed[:1] + value[1:]
        if operator in ("/", "//"):
            pattern, slash, by = self.pattern(operand).partition("/")
            while slash and pattern.endswith("\\"):
                more, slash, by = by.partition("/")
                pattern = f"{pattern[:-1]}/{more}"
            many = len(value) if patterns.is_pattern(pattern) else 1
            self.charge(patterns.cost(pattern, value, many))
            return self._known(
                value + pattern, patterns.replaced(pattern, value, patterns.plain(by), operator == "//")
            )
        pattern = self.settled(self.pattern(operand))
        longest = len(operator) == 2
        self.charge(patterns.cost(pattern, value))
        if operator[0] == "#":
            return self._known(value + pattern, patterns.without_prefix(pattern, value, longest))
        return self._known(value + pattern, patterns.without_suffix(pattern, value, longest))

    def _known(self, of: str, result: str) -> str:
        """Return a result, or the gap in what it is computed of."""
        gap = GAPS.search(of)
        return gap[0] if gap else result

    def _unset(self, part: Parameter) -> str:
        name = part.name
        if name.isdigit():
            return self.gap(UNSET, part.text, name)
        return self.gap(UNSET, part.text, name if part.index is None else f"{name}[{part.index}]")

    def computed(self, text: str) -> str:
        """Return the number of an arithmetic expression, or the gap in it."""
        self.charge(1 + len(text) // 100)
        stripped = text.strip()
        if stripped.isascii() and stripped.isdigit() and (stripped == "0" or stripped[0] != "0"):
            return str(int(stripped)) if len(stripped) < 19 else stripped
        if gap := GAPS.search(text):
            return self._needed(gap[0])
        missing: list[str] = []

        def read(name: str, depth: int = 0) -> int:
            base, bracket, index = name.partition("[")
            value = self._value(Parameter(base, True, f"${base}", index[:-1] if bracket else None))
            if value is None or not value.strip():
                if value is None:
                    missing.append(self.gap(UNKNOWN, f"${name}", base))
                return 0
            if gap := GAPS.search(value):
                missing.append(self._needed(gap[0]))
                return 0
            number = arithmetic.integer(value)
            if number is not None and not re.match(r"\s*[+-]?0\d", value):
                return number
            self.charge()
            if depth > 5:
                raise arithmetic.MalformedExpressionError(value)
            return arithmetic.Calculator(value, lambda name: read(name, depth + 1), lambda *_: None).value()

        assigned: list[str] = []

        def assign(name: str, value: int) -> None:
            base, bracket, index = name.partition("[")
            self.assign(base, str(value), index[:-1] if bracket else None)
            assigned.append(base)

        try:
            value = arithmetic.Calculator(text, read, assign).value()
        except arithmetic.MalformedExpressionError as error:
            raise RefusalError(self.position, self.shown(str(error)), "an arithmetic expression") from None
        if not missing:
            return str(value)
        for name in assigned:
            self.assign(name, missing[0])
        return missing[0]

    def _needed(self, character: str) -> str:
        """Return a gap that is not taken for an empty text: a number needs it."""
        gap = self.gaps[ord(character) - FIRST_GAP]
        return character if gap.kind == UNKNOWN else self.gap(UNKNOWN, gap.text, gap.key)

    # Expanded

    def _runs(self, word: ShellWord) -> Iterator[tuple[Run, bool, bool]]:
        """Yield each part's value, whether it is quoted, and whether it comes from an expansion."""
        for part in word.parts:
            match part:
                case Text(text, quoted):
                    yield text, quoted, False
                case Parameter():
                    yield self._parameter(part), part.quoted, True
                case Arithmetic():
                    yield self.computed(self.text(part.expression)), part.quoted, True
                case Substitution():
                    yield self.substituted(part.body, part.text), part.quoted, True

    def text(self, word: ShellWord) -> str:
        """Return a word that is not split: of an assignment, a here-document, `case`."""
        parts = []
        for run, _, _ in self._runs(word):
            parts.append(run if isinstance(run, str) else " ".join(item.text for item in run))
        text = "".join(parts)
        if len(text) > VALUE_MAX:
            raise LimitError(self.position, f"{len(text)} characters", f"at most {VALUE_MAX} in a word")
        self.charge(1 + len(text) // 100)
        return text

    def pattern(self, word: ShellWord) -> str:
        """Return a pattern; what is quoted matches only itself."""
        parts = []
        for run, quoted, _ in self._runs(word):
            text = run if isinstance(run, str) else " ".join(item.text for item in run)
            parts.append(patterns.escaped(text) if quoted else text)
        return "".join(parts)[:VALUE_MAX]

    def fields(self, words: list[ShellWord]) -> list[Expanded]:
        """Return the fields of a command."""
        fields: list[Expanded] = []
        self.vanished = []
        for word in words:
            self.charge()
            for alternative in self._braced(word):
                self._split(alternative, fields)
            if len(fields) > 10_000:
                raise LimitError(self.position, "more", "at most 10000 words in a command")
        return fields

    def _braced(self, word: ShellWord) -> list[ShellWord]:
        """Return the words that `{A,B}` and `{1..5}` make of one."""
        plain = word.plain
        match = _BRACES.fullmatch(plain) if plain and "{" in plain else None
        if not match:
            return [word]
        before, inside, behind = match.groups()
        numbers = _RANGE.fullmatch(inside)
        if numbers:
            first, last = int(numbers[1]), int(numbers[2])
            if abs(last - first) > 5_000:
                return [word]
            step = 1 if last >= first else -1
            texts = [str(number) for number in range(first, last + step, step)]
        elif "," in inside:
            texts = inside.split(",")
        else:
            return [word]
        self.charge(len(texts))
        expanded = [f"{before}{text}{behind}" for text in texts]
        return [ShellWord((Text(text, False),), word.line, word.text) for text in expanded]

    def _split(self, word: ShellWord, fields: list[Expanded]) -> None:
        place = Position(self.source, word.line)
        current: list[str] | None = None
        glob = loose = solid = False

        def end(position: Position = place) -> None:
            nonlocal current, glob, loose, solid
            if current is not None:
                text = "".join(current)
                if len(text) > VALUE_MAX:
                    raise LimitError(
                        self.position, f"{len(text)} characters", f"at most {VALUE_MAX} in a word"
                    )
                if glob and "/" in text and patterns.is_pattern(text):
                    text, loose = self.gap(UNKNOWN, text, ""), True
                if solid or self.settled(text):
                    fields.append(Expanded(text, position, loose))
                elif gap := self.gap_of(text, (UNSET,)):
                    self.vanished.append(gap)
            current, glob, loose, solid = None, False, False, False

        for run, quoted, expanded in self._runs(word):
            if isinstance(run, list):
                for at, item in enumerate(run):
                    if at:
                        end()
                    alone = len(word.parts) == 1 or (len(word.parts) == 2 and word.parts[0] == Text("", True))
                    position = item.position if alone else place
                    if quoted:
                        current, solid = [*(current or []), item.text], True
                        if alone:
                            end(position)
                        continue
                    pieces = self.split(item.text)
                    for nth, piece in enumerate(pieces):
                        if nth:
                            end(position)
                        if piece:
                            current = [*(current or []), piece]
                    if alone:
                        end(position)
                if quoted and not run and current == [""]:
                    current, solid = None, False  # "$@" without arguments is no word
                continue
            if quoted or not expanded:
                if quoted or run:
                    current, solid = [*(current or []), run], True
                glob = glob or (not quoted and any(sign in run for sign in "*?["))
                continue
            for nth, piece in enumerate(self.split(run)):
                if nth:
                    end()
                if piece:
                    loose = loose or self.gap_of(piece) is not None
                    current = [*(current or []), piece]
        end()

    def separators(self) -> tuple[str, str]:
        """Return the characters of `IFS`: blanks, and others."""
        signs = (self.scalar("IFS") or "") if "IFS" in self.state.variables else " \t\n"
        return "".join(sign for sign in signs if sign in " \t\n"), "".join(
            sign for sign in signs if sign not in " \t\n"
        )

    def split(self, text: str) -> list[str]:
        """Split a text at `IFS`; an empty first or last piece stands for a separator at that end."""
        if not text:
            return [""]
        self.charge(1 + len(text) // 100)
        blanks, others = self.separators()
        if not blanks and not others:
            return [text]
        fields, start, at = [], 0, 0
        while at < len(text):
            if text[at] not in blanks and text[at] not in others:
                at += 1
                continue
            end = _after(text, at, blanks)
            if end < len(text) and text[end] in others:
                end = _after(text, end + 1, blanks)
            fields.append(text[start:at])
            start = at = end
        return [*fields, text[start:]]


def _after(text: str, at: int, characters: str) -> int:
    """Return the place of the first character from `at` on that is none of these."""
    while at < len(text) and text[at] in characters:
        at += 1
    return at
