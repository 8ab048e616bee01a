"""Parsers that several commands share: lists, pairs, endings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragstrip.errors import BadInputError

if TYPE_CHECKING:
    from pathlib import Path

    from dragstrip.report.paper import Paper
    from dragstrip.runs import Limits


def figures(text: str | None, width: str | None, report: bool | None) -> Paper:
    """The figures for papers that `--figures` and `--width` ask for."""
    from dragstrip.report.paper import paper

    if text is not None and report is False:
        raise BadInputError("--figures", None, "needs the report: leave out --no-report", "command line")
    endings = [] if text is None else [part.strip().lower() for part in text.split(",")]
    return paper(endings, width)


def engine_options(pairs: list[str], lab: Path | None = None) -> dict[str, str | list[str]]:
    """Name → value, or values where it is given several times; `lab` is an option with a name of its own."""
    options: dict[str, str | list[str]] = {}
    for pair in pairs:
        name, value = key_value("--engine-option", pair, "NAME=VALUE, such as kernel=6.1.0-56-amd64")
        earlier = options.get(name, [])
        options[name] = [*([earlier] if isinstance(earlier, str) else earlier), value] if earlier else value
    return options if lab is None else {**options, "lab": str(lab)}


def with_strict(options: dict[str, str | list[str]], strict: bool) -> dict[str, str | list[str]]:
    """Engine options, with what `--strict` says."""
    return {**options, "strict": "yes"} if strict else options


def time_limit(text: str | None, option: str = "--time-limit") -> Limits:
    """Return the limits of a run that an option asks for; raises `BadInputError` for no time."""
    from dragstrip import _core
    from dragstrip.runs import UNLIMITED, Limits

    if text is None:
        return UNLIMITED
    try:
        limit_ns = _core.parse_time(text)
    except _core.InputError as error:
        raise BadInputError(option, text, error.args[2], "command line") from None
    if limit_ns <= 0:
        raise BadInputError(option, text, "a time above zero, such as 600s", "command line")
    return Limits(limit_ns / 1e9, 0)


def key_value(option: str, pair: str, expected: str) -> tuple[str, str]:
    """The two sides of `KEY=VALUE`."""
    key, equals, value = pair.partition("=")
    if not (key.strip() and equals and value.strip()):
        raise BadInputError(option, pair, expected, "command line")
    return key.strip(), value.strip()
