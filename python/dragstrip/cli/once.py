"""Commands that refuse an option given twice, of which the parser would silently take the last.

Their texts and paths are taken as typed. For each parameter, given or not, Typer builds a validator of
Pydantic, which took a sixth of the time of a first race.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import typer
import typer.core

from dragstrip.errors import BadInputError, Raw

Body = TypeVar("Body", bound=Callable[..., Any])


class Once(typer.core.TyperCommand):
    """A command whose options are given once each, except those that take several values."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all parameters, that of help included."""
        return _convert_words(super().get_params(ctx))

    def make_parser(self, ctx: Any) -> Any:
        """Return the parser, which raises `BadInputError` for an option that is given again."""
        parser: Any = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_args(args: list[str]) -> Any:
            opts, rest, order = parse(args=args)
            for option, times in Counter(order).items():
                if times > 1 and isinstance(option, typer.core.TyperOption) and not _repeats(option):
                    name = max(option.opts, key=len)
                    raise BadInputError(name, Raw(f"{times} values"), "one", "command line")
            return opts, rest, order

        parser.parse_args = parse_args
        return parser


def _repeats(option: typer.core.TyperOption) -> bool:
    return option.multiple or option.is_flag or option.count


class CommandGroup(typer.core.TyperGroup):
    """A command with commands of its own."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all parameters, those of help and completion included."""
        return _convert_words(super().get_params(ctx))


CONVERSIONS: dict[Any, Callable[[Any], Any]] = {str: str, list[str]: list, Path: Path}
"""Annotation of a parameter → conversion of its words."""


def _convert_words(parameters: list[Any]) -> list[Any]:
    """Give each parameter of a command the conversion below in place of Typer's."""
    for parameter in parameters:
        if "process_value" not in vars(parameter):
            parameter.process_value = partial(_convert, parameter, parameter.process_value)
    return parameters


def _convert(parameter: Any, validate: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    """Convert the words of a parameter; leave numbers, existing files and invalid text to Typer."""
    convert = CONVERSIONS.get(parameter.type_descriptor.annotation)
    words = value if isinstance(value, list | tuple) else [value]
    if value is None and not parameter.required:
        value = () if parameter.multiple or parameter.nargs == -1 else None
    elif convert and words and all(map(_is_text, words)) and not (convert is Path and os.path.lexists(value)):
        value = convert(value)
    else:
        return validate(context, value)
    return value if parameter.callback is None else parameter.callback(context, parameter, value)


def _is_text(word: object) -> bool:
    """True for a text of Unicode: an argument may hold bytes that are none."""
    try:
        return isinstance(word, str) and bool(word.encode() or True)
    except UnicodeEncodeError:
        return False


class Commands(typer.Typer):
    """An application whose commands are `Once`."""

    def command(  # type: ignore[override]  # Typer's own parameters, by name
        self, name: str | None = None, *, cls: type[Once] = Once, **settings: Any
    ) -> Callable[[Body], Body]:
        """Register a command as `typer.Typer` does."""
        return super().command(name, cls=cls, **settings)
