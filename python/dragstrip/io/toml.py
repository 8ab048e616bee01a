"""TOML: writing content as a person would, and finding the line that an error is about."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any

from dragstrip import _core
from dragstrip.errors import BadInputError, Raw
from dragstrip.io.untrusted import DESCRIPTION_MAX, nested_key, text

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)")
_DECLARED = re.compile(r"Cannot declare \('(\w{1,60})',\) twice")
_DUPLICATE = "Cannot overwrite a value"
"""`tomllib`'s message for a key that stands twice in a table."""


# --- written ----------------------------------------------------------------------------------


def toml_text(content: Mapping[str, Any]) -> str:
    """Return text, numbers, lists and tables as TOML that `tomllib` reads back as the same content."""
    lines = [f"{_key(key)} = {_value(value)}" for key, value in content.items() if not _is_table(value)]
    for key, value in content.items():
        if isinstance(value, Mapping):
            if any(isinstance(entry, Mapping) for entry in value.values()) and key in ("media", "hosts"):
                for name, entry in value.items():
                    lines += ["", f"[{_key(key)}.{_key(name)}]", *_fields(entry)]
            else:
                lines += ["", f"[{_key(key)}]", *_fields(value)]
        elif _is_table(value):
            for entry in value:
                lines += ["", f"[[{_key(key)}]]", *_fields(entry)]
    return "\n".join(lines).lstrip("\n") + "\n"


def _is_table(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(entry, Mapping) for entry in value)
    return isinstance(value, Mapping)


def _fields(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in table.items()]


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_fields(value)) + " }" if value else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):  # JSON's escapes are TOML's, but for this one
        return encode_basestring(value).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)  # a float: nan and inf are TOML's words too


# --- lines ------------------------------------------------------------------------------------


def pointed(error: BadInputError) -> BadInputError:
    """Return the error with its line added to the source (`mine.toml:12`).

    Returns the error unchanged if its source is no TOML file or the file has no such field.
    """
    if not error.source.endswith(".toml") or not Path(error.source).is_file():
        return error
    line_match = _AT_LINE.search(error.expected)
    if line_match is not None and "is not TOML" in error.expected:
        expected = error.expected.replace(line_match[0], "")
        if _DUPLICATE in expected:
            content = text(error.source, DESCRIPTION_MAX, "a TOML file")
            expected = _duplicate(content, int(line_match[1])) or expected
        elif (again := _DECLARED.search(expected)) is not None:
            expected = (
                f"is not TOML: [{again[1]}] stands twice; a list of tables has two pairs of brackets: "
                f"[[{again[1]}]]"
            )
        return BadInputError(error.field, Raw(error.value), expected, f"{error.source}:{line_match[1]}")
    try:
        line = line_of(text(error.source, DESCRIPTION_MAX, "a TOML file"), error.field)
    except BadInputError:
        return error
    return error if line is None else error.at(f"{error.source}:{line}")


def _duplicate(content: str, line: int) -> str:
    """Return the message for the key that stands a second time in this line; empty if there is none."""
    earlier = [(path, at) for path, at in _places(content) if at <= line]
    if not earlier:
        return ""
    key = earlier[-1][0]
    first = next(at for path, at in earlier if path == key)
    return f"is not TOML: {'.'.join(key)} stands twice, first in line {first}"


def line_of(content: str, field: str) -> int | None:
    """Return the line, from 1, of a dotted field or of its nearest enclosing table.

    None if there is neither.
    """
    parts = tuple(_core.path_parts(field))
    lines = {tuple(path): line for path, line in reversed(list(_places(content)))}
    for length in range(len(parts), 0, -1):
        if parts[:length] in lines:
            return lines[parts[:length]]
    return None


def _places(content: str) -> Iterator[tuple[list[str], int]]:
    """Yield the path and line of every key and header.

    Entries of `[[tables]]` have their index after the name.
    """
    base: list[str] = []
    counts: dict[tuple[str, ...], int] = {}
    lines = content.removeprefix("\ufeff").splitlines()
    at = 0
    while at < len(lines):
        first = at
        stripped = lines[at].strip()
        value = _Value()
        while at < len(lines) and value.goes_on(lines[at]):
            at += 1
        at += 1
        if not stripped or stripped.startswith("#"):
            continue
        parsed = _parsed("\n".join(lines[first:at]))
        if parsed is None:
            return
        if stripped.startswith("["):
            base = []
            for key in _header(parsed):
                base.append(key)
                if tuple(base) in counts and not stripped.startswith("[["):
                    base.append(str(counts[tuple(base)]))
            if stripped.startswith("[["):
                name = tuple(base)
                counts[name] = counts.get(name, -1) + 1
                base.append(str(counts[name]))
            yield _split(base), first + 1
        else:
            for path in _keys(parsed):
                yield _split([*base, *path]), first + 1


_TOKEN = re.compile(r"""\"{3}|'{3}|'[^']*+'|["'\[\]{}#]""")
_CLOSING = {
    '"': re.compile(r'\\.|"'),
    '"""': re.compile(r'\\.|"{3,5}'),
    "'''": re.compile(r"'{3,5}"),
}
"""By what opens a string: what ends it, or is escaped on the way there."""


class _Value:
    """Brackets, or a string of several lines, that are open at the end of a line."""

    def __init__(self) -> None:
        self._depth, self._quote = 0, ""

    def goes_on(self, line: str) -> bool:
        """Return whether the value goes on in the line after this one."""
        at = 0
        while token := _CLOSING.get(self._quote, _TOKEN).search(line, at):
            at, word = token.end(), token[0]
            if self._quote:
                self._quote = self._quote if word.startswith("\\") else ""
            elif word in _CLOSING:
                self._quote = word
            elif word in "#'":  # a comment; a string without an end
                break
            elif len(word) == 1:
                self._depth += 1 if word in "[{" else -1
        if self._quote == '"':  # without an end
            self._quote = ""
        return self._depth > 0 or self._quote != ""


def _parsed(statement: str) -> dict[str, Any] | None:
    try:
        return None if nested_key(statement) else tomllib.loads(statement)
    except (ValueError, RecursionError):
        return None


def _header(parsed: Any) -> list[str]:
    keys = []
    while parsed:
        table = parsed[0] if isinstance(parsed, list) else parsed
        if not table:
            break
        ((key, parsed),) = table.items()
        keys.append(key)
    return keys


def _keys(value: Any) -> Iterator[list[str]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in entries:
        yield [str(key)]
        if isinstance(inner, dict | list):
            for path in _keys(inner):
                yield [str(key), *path]


def _split(path: list[str]) -> list[str]:
    """Split keys that contain dots into their parts, as error messages write them."""
    return [part for key in path for part in (_core.path_parts(key) or [key])]
