"""The experiment that `dragstrip compare` describes.

    s1 ... sN --plain veth-- r --bottleneck-- [loss, jitter] -- d
                             r <-- whole RTT, up rate, up queue -- d

One run per algorithm, or one run with all of them (`together`). The receiver pings the first sender
five times a second; the ping's answer passes the bottleneck. The options and what they mean are the core's
(`crates/experiment/src/race.rs`, `compare.rs`).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, Unpack

from dragstrip import _core
from dragstrip.engines import DEFAULT
from dragstrip.errors import BadInputError, Raw, expect_text
from dragstrip.experiment.programs import Program, joined, refuse_files, refuse_unnamed, separated
from dragstrip.experiment.quantities import RaceQuantities, expect_options, texts, with_options
from dragstrip.experiment.race import OPTIONS
from dragstrip.experiment.saved_paths import expanded
from dragstrip.experiment.types import Experiment

T = TypeVar("T")

COMMAND_LINE = "command line"
"""Source of an option written with hyphens, for error messages."""
FLAGS = frozenset(option.word for option in OPTIONS if option.takes == "flag")
"""The words of options without a value."""


@with_options
def compare(
    algorithms: Sequence[str | Program],
    *,
    engine: str = DEFAULT,
    engine_options: Mapping[str, str | Sequence[str]] | None = None,
    load: Sequence[str] = (),
    source: str = "",
    **options: Unpack[RaceQuantities],
) -> Experiment:
    """The experiment that these algorithms and options describe.

    An algorithm is a word or a `program`; `programs` is a `program`, a file, a list of them, or a dict of
    them or of texts by name (docs/how-to/program.md). `path` is a built-in path, a file of
    `--save-path`, or its name in the user's folder of paths. Quantities are text (`rtt="40ms"`), numbers with
    their unit in the name (`rtt_ms=40`, `rate_bps=10e6`) or `timedelta`. Raises `BadInputError`, which names
    the option that is wrong; where `source` is the command line, with its hyphens.
    """
    names, own_programs = separated(algorithms)
    expect_options(options, [option.name for option in OPTIONS], "compare")
    described_options = texts(options)
    if own_programs:
        described_options["programs"] = joined(
            described_options.get("programs") or {}, own_programs, "programs"
        )
    form = {"algorithms": names, **expanded(described_options)}
    for name, value in form.items():
        if name != "programs":  # read from files as text
            _expect_texts(name, value, source)
    refuse_unnamed(described_options.get("programs") or {}, names, source)

    def described() -> Experiment:
        if source == COMMAND_LINE:
            refuse_files(names)
        try:
            content = _core.compare({name: _plain(name, value) for name, value in form.items()})
        except _core.InputError as error:
            field, value, expected = error.args
            raise BadInputError(field, Raw(value) if value else None, expected) from None
        content.update(engine=engine, engine_options=dict(engine_options or {}), load=list(load))
        return Experiment.build(content)

    return reworded(described, source)


def path_tables(name: str, source: str = COMMAND_LINE) -> dict[str, Any]:
    """The tables `path` and `media` of an experiment on a built-in or a saved path.

    Raises `BadInputError` for an unknown name, or for a saved path without a rate or a round-trip time.
    """
    content = compare(["reno"], path=name, source=source).content()
    return {table: content[table] for table in ("path", "media") if content.get(table)}


def _plain(name: str, value: Any) -> Any:
    """Return a collection of texts as a list; raises `BadInputError` for a value of another kind."""
    if isinstance(value, str | int | float | Mapping | None):
        return value
    try:
        return list(value)
    except TypeError:
        raise BadInputError(name, value, "a text, a number or a list of texts") from None


def command(algorithms: Sequence[str], options: Mapping[str, Any], engine: Sequence[str] = ()) -> str:
    """The command line of `dragstrip compare` with these algorithms and options.

    `options` are those of `compare` by name; of `programs`, whose texts come from files, they hold the files.
    `engine` are the words that choose one.
    """
    return shlex.join(["dragstrip", "compare", *engine, *option_words(options), *algorithms])


def option_words(options: Mapping[str, Any]) -> list[str]:
    """The words of a command line with these options of `compare`."""
    words: list[str] = []
    for option in OPTIONS:
        value = options.get(option.name)
        if value is None or value is False:
            continue
        if option.takes == "flag":
            words.append(option.word)
        elif option.takes == "pairs":
            for key, text in value.items():
                words += [option.word, f"{key}={text}"]
        else:
            for text in value if isinstance(value, list | tuple) else [value]:
                words += [option.word, str(text)]
    return words


def _expect_texts(name: str, value: Any, source: str) -> None:
    """Raises `BadInputError` where a text is not UTF-8."""
    parts = [*value, *value.values()] if isinstance(value, Mapping) else value
    words = [parts] if isinstance(parts, str) else parts if isinstance(parts, Sequence) else []
    for word in words:
        if isinstance(word, str) and not word.isascii():
            expect_text(_option(name, source), word, source)


def reworded(build: Callable[[], T], source: str = "") -> T:
    """Calls `build`; an error about a field of the experiment names the option that it comes from."""
    try:
        return build()
    except BadInputError as error:
        raise error.reworded(_option(error.field, source), source=source) from None


def _option(field: str, source: str) -> str:
    """The option behind a field of the experiment: its keyword, or on a command line its word."""
    typed = source == COMMAND_LINE
    if field.startswith("engine_options."):
        return f"--engine-option {field.removeprefix('engine_options.')}" if typed else field
    if field in ("engine", "load"):
        return f"--{field}" if typed else field
    option = _core.race_option(field)
    if option is None:
        return field
    name, word = option
    return word if typed else name


__all__ = ["COMMAND_LINE", "FLAGS", "command", "compare", "path_tables", "reworded"]
