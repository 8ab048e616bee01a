"""Errors of the command line's words, for functions that take the same as arguments."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import COMMAND_LINE

P = ParamSpec("P")
R = TypeVar("R")
_OPTION = re.compile(r"--([a-z][a-z-]*)")
"""An option of the command line in a message."""
_RENAMED = {"with": "using"}
"""Options whose names are keywords of Python, with their arguments."""


def _argument(field: str) -> str:
    """Return a field of the command line as an argument's name: `--sender-algorithm`, `FILE`."""
    head, *rest = field.split(" ")
    word = head.removeprefix("--").replace("-", "_")
    word = _RENAMED.get(word, word)
    return " ".join([word.lower() if head.isupper() or head.startswith("--") else head, *rest])


def named_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with errors that name its arguments instead of the command line's options."""

    @functools.wraps(function)
    def called(*arguments: P.args, **options: P.kwargs) -> R:
        try:
            return function(*arguments, **options)
        except BadInputError as error:
            if error.source != COMMAND_LINE and not error.field.startswith("--"):
                raise
            expected = _OPTION.sub(lambda match: _argument(match[0]), error.expected)
            raise error.reworded(_argument(error.field), expected) from None

    return called
