"""Paths that a user keeps: written by `--save-path`, and taken by `--path` wherever a named path is.

    name = "home"
    source = "dragstrip inspect"

    [path]
    rate = "48.2mbit"
    rtt = "23ms"
    queue = "bfifo limit 250000"

    [known.rate]
    low = "47.9mbit"
    high = "48.6mbit"
    source = "inferred from sender.pcapng"

`[path]` has options of `compare`, in their words. `[known]` gives the interval and the source of each, for
people to read; `unknown` says why an option has no value, and `--path` refuses the path until it has one.
A name without a folder or an ending stands for a file of the user's own folder of paths.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragstrip import _core
from dragstrip.errors import BadInputError
from dragstrip.experiment.race import OPTIONS
from dragstrip.io import toml, untrusted
from dragstrip.io.cache import base_folder
from dragstrip.io.files import make_folder, write_text

DEFAULT_PATH = {"rate": "10mbit", "rtt": "40ms", "queue": "pfifo limit 100"}
"""Options of the path that is taken where none is given; `FIRST` in playground/src/form.ts has the same."""
ENDING = ".toml"
FILES = ("trace", "up_trace")
PATH_OPTIONS = tuple(
    option.name for option in OPTIONS if option.varies.partition(".")[0] == "path" or option.name in FILES
)
"""Options of a race that describe its path."""
CARRIERS = ("path", "rate", "medium", "trace")
"""Options that say how fast the bottleneck is."""
DESCRIBED = "described"
"""Source of a figure that the user stated."""
KNOWN_FIELDS = ("low", "high", "source", "unknown")


@dataclass(frozen=True)
class Knowledge:
    """The interval of a property of a path, in the words of its option, and its source."""

    low: str | None = None
    high: str | None = None
    source: str = ""
    unknown: str = ""
    """Reason why the property has no value. A path with such a property is used beside a value for it."""


@dataclass(frozen=True)
class SavedPath:
    """A path as options of `compare`, with what is known of each."""

    name: str
    options: Mapping[str, Any]
    source: str = ""
    """The command or the file that it comes from."""
    known: Mapping[str, Knowledge] = field(default_factory=dict)
    """By option."""


def folder() -> Path:
    """Return the user's folder of paths: `DRAGSTRIP_PATHS` if set, else in the folder of configurations."""
    override = os.environ.get("DRAGSTRIP_PATHS")
    if override:
        return Path(override)
    return (base_folder("XDG_CONFIG_HOME") or Path.home() / ".config") / "dragstrip" / "paths"


def file_of(name: str) -> Path:
    """Return the file that a name stands for: itself with an ending or a folder, or one of the user's."""
    given = Path(name)
    is_file = given.suffix == ENDING or len(given.parts) > 1
    return given if is_file else folder() / f"{name}{ENDING}"


def names() -> list[str]:
    """Return the names of the user's own paths."""
    place = folder()
    return sorted(file.stem for file in place.glob(f"*{ENDING}")) if place.is_dir() else []


def write(path: SavedPath, name: str, option: str = "--save-path") -> Path:
    """Write a path into the file that the name stands for, and return the file.

    Raises `BadInputError` for a name that is that of a built-in path, or that is no name of a file.
    """
    if not name.isprintable():
        raise BadInputError(option, name, "a name of printable characters", "command line")
    file = file_of(name)
    if file.parent == folder():
        if name.lower() in _built_in() or not _is_plain(name):
            raise BadInputError(option, name, "a new name, or a file such as home.toml", "command line")
        make_folder(file.parent)
    write_text(file, f"# A path of dragstrip: --path {name}\n" + text(path, file.stem))
    return file


def text(path: SavedPath, name: str = "") -> str:
    """Return a path as TOML; `name` is that of a path without one of its own."""
    content: dict[str, Any] = {
        "name": path.name or name,
        "source": path.source,
        "path": dict(path.options),
    }
    known = {
        option_name: {key: value for key in KNOWN_FIELDS if (value := getattr(entry, key))}
        for option_name, entry in path.known.items()
    }
    if known:
        content["known"] = known
    return toml.toml_text(content)


def read(file: Path) -> SavedPath:
    """Return the path of a file; raises `BadInputError` for anything that is not as `write` writes it."""
    document = untrusted.parsed_toml(file, "a path")
    for key in document:
        if key not in ("name", "source", "path", "known"):
            raise _wrong(file, key, document[key], "name, source, path or known")
    options = document.get("path")
    if not isinstance(options, dict) or not options:
        raise _wrong(file, "path", options, "a table with options of compare, such as rate and rtt")
    for key, value in options.items():
        if key not in PATH_OPTIONS:
            raise _wrong(file, f"path.{key}", value, f"one of {', '.join(PATH_OPTIONS)}")
        if not isinstance(value, str | bool):
            raise _wrong(file, f"path.{key}", value, "a text, as on the command line")
    known = document.get("known", {})
    if not isinstance(known, dict):
        raise _wrong(file, "known", known, "a table")
    return SavedPath(
        _text(file, document, "name"),
        options,
        _text(file, document, "source"),
        {key: _knowledge(file, key, entry) for key, entry in known.items()},
    )


def _knowledge(file: Path, name: str, entry: object) -> Knowledge:
    if not isinstance(entry, dict) or not set(entry) <= set(KNOWN_FIELDS):
        raise _wrong(file, f"known.{name}", entry, f"a table with {', '.join(KNOWN_FIELDS)}")
    if "unknown" in entry and name not in PATH_OPTIONS:
        raise _wrong(file, f"known.{name}", entry, f"one of {', '.join(PATH_OPTIONS)}")
    return Knowledge(**{key: _text(file, entry, key) for key in entry})


def _text(file: Path, table: Mapping[str, Any], key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise _wrong(file, key, value, "a text")
    return value


def _wrong(file: Path | str, key: str, value: object, expected: str) -> BadInputError:
    return BadInputError(key, None if value is None else str(value), expected, str(file))


def expanded(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a race with a saved path's own in the place of its name; given options win.

    A name that is neither a file's nor of the user's folder is left to the core, which knows built-in paths.
    Raises `BadInputError` for a file that cannot be read.
    """
    name = options.get("path")
    file = _saved_file(name) if isinstance(name, str) else None
    if file is None:
        return dict(options)
    return merged(read(file), {key: value for key, value in options.items() if key != "path"}, str(file))


def merged(path: SavedPath, given: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the options of a saved path with given ones, which win; `source` names the path in errors.

    Raises `BadInputError` for an option that is unknown and not given.
    """
    saved = dict(path.options)
    if "path" in saved and str(saved["path"]).lower() not in _built_in():
        raise _wrong(source, "path.path", saved["path"], "the name of a built-in path")
    if any(carrier in given for carrier in CARRIERS):
        saved = {key: value for key, value in saved.items() if key not in CARRIERS}
    options = {**saved, **given}
    for option, reason in unknown(path, options):
        word = f"--{option.replace('_', '-')}"
        expected = f"is not known, {reason}; give {word}, or add it to [path]"
        raise BadInputError(f"path.{option}", None, expected, source)
    return options


def unknown(path: SavedPath, options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each property that is not known and that these options do not give, and why it is not known."""
    for option, knowledge in path.known.items():
        if knowledge.unknown and option not in options:
            yield option, knowledge.unknown


def _saved_file(name: str) -> Path | None:
    """Return the file of a saved path; None for a name that is left to the core."""
    file = file_of(name)
    in_folder = file.parent == folder() and Path(name) != file
    if in_folder and (not _is_plain(name) or not file.exists() or name.lower() in _built_in()):
        return None
    return file


def is_saved(name: str) -> bool:
    """Report whether the name is that of a file or of the user's folder of paths, and not the core's."""
    return _saved_file(name) is not None


def measured_figures(name: str) -> str:
    """Return the figures of a saved path that were measured, each with its interval and source, for a line.

    Empty for a built-in path, and for one whose figures are all as their user described them. Raises
    `BadInputError` for a file that cannot be read.
    """
    file = _saved_file(name)
    if file is None:
        return ""
    saved = read(file)
    figures = []
    for option, knowledge in saved.known.items():
        if option in saved.options and knowledge.source != DESCRIBED:
            ends = " to ".join(filter(None, [knowledge.low, knowledge.high]))
            figures.append(
                f"{option} {saved.options[option]} ({'; '.join(filter(None, [ends, knowledge.source]))})"
            )
    return ", ".join(figures)


def described(options: Mapping[str, Any], source: str) -> SavedPath:
    """Return the path that options of a race describe; raises `BadInputError` if they describe none."""
    path = {
        key: value for key, value in expanded(options).items() if key in PATH_OPTIONS and value is not False
    }
    path |= {key: str(Path(path[key]).resolve()) for key in FILES if key in path}
    if not path:
        raise BadInputError(
            "--save-path", None, "needs options of a path, such as --rate and --rtt", "command line"
        )
    return SavedPath("", path, source, {key: Knowledge(source=DESCRIBED) for key in path})


def _built_in() -> set[str]:
    entries = _core.names()["paths"]
    return {str(word).lower() for entry in entries for word in (entry["name"], *entry["aliases"])}


def _is_plain(name: str) -> bool:
    return bool(name) and name == Path(name).name and not name.startswith((".", "-")) and "\0" not in name
