"""TOML: content written as a person would write it, and the lines that an error is about."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dragstrip import _core
from dragstrip.errors import BadInputError, Raw
from dragstrip.outside import DESCRIPTION_MAX, nested_key, text

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)")


# --- written ----------------------------------------------------------------------------------


def written(content: Mapping[str, Any]) -> str:
    """Content of text, numbers, lists and tables as TOML: `tomllib` reads the same back."""
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
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool | int):
        return json.dumps(value)
    return repr(value)  # a float: nan and inf are TOML's words too


# --- lines ------------------------------------------------------------------------------------


def pointed(error: BadInputError) -> BadInputError:
    """The same error with its line, `mine.toml:12`, where its file is TOML and has such a field."""
    if not error.source.endswith(".toml") or not Path(error.source).is_file():
        return error
    found = _AT_LINE.search(error.expected)
    if found is not None and "is not TOML" in error.expected:
        expected = error.expected.replace(found[0], "")
        return BadInputError(error.field, Raw(error.value), expected, f"{error.source}:{found[1]}")
    try:
        line = line_of(text(error.source, DESCRIPTION_MAX, "a TOML file"), error.field)
    except BadInputError:
        return error
    return error if line is None else error.at(f"{error.source}:{line}")


def line_of(content: str, field: str) -> int | None:
    """The line, from 1, where a dotted field or the nearest table around it is written; none if nowhere."""
    wanted = tuple(_core.path_parts(field))
    lines = {tuple(path): line for path, line in reversed(list(_places(content)))}
    for length in range(len(wanted), 0, -1):
        if wanted[:length] in lines:
            return lines[wanted[:length]]
    return None


def _places(content: str) -> Iterator[tuple[list[str], int]]:
    """Every key and header with its line; entries of `[[tables]]` have their index behind their name."""
    base: list[str] = []
    counts: dict[tuple[str, ...], int] = {}
    lines = content.removeprefix("\ufeff").splitlines()
    at = 0
    while at < len(lines):
        first = at
        statement = lines[at]
        at += 1
        stripped = statement.strip()
        if not stripped or stripped.startswith("#"):
            continue
        parsed = _parsed(statement)
        while parsed is None and at < len(lines):  # a value of several lines
            statement += "\n" + lines[at]
            at += 1
            parsed = _parsed(statement)
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
    """Keys with dots in them in their parts, as messages have them."""
    return [part for key in path for part in (_core.path_parts(key) or [key])]
