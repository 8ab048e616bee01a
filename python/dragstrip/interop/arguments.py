"""Arguments of functions that take the words of the command line: their types, and errors that name them."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

from dragstrip.errors import BadInputError, nearest
from dragstrip.experiment.comparison import COMMAND_LINE
from dragstrip.experiment.programs import Program
from dragstrip.experiment.quantities import texts

P = ParamSpec("P")
R = TypeVar("R")
_OPTION = re.compile(r"--([a-z][a-z-]*)")
"""An option of the command line in a message."""
_RENAMED = {"with": "using", "program": "programs", "file": "files"}
"""Options of the command line, with their arguments of other names."""


class _Kind(NamedTuple):
    """Kind of argument: its types, and the words for them."""

    types: tuple[type, ...]
    expected: str


_KINDS = {
    "str": _Kind((str,), "a text"),
    "bool": _Kind((bool,), "True or False"),
    "int": _Kind((int,), "a whole number"),
    "PathLike": _Kind((str, Path), "the name of a file or a folder, as text or as a Path"),
    "Mapping[str, str]": _Kind((Mapping,), "a dict of texts by name"),
}
"""Kinds of arguments by their annotation, without `| None`; others are not checked here."""
_COUNTS = ("workers", "evaluations", "repeat", "generations", "population", "keep")
"""Whole numbers from 1."""


def _argument(field: str) -> str:
    """Return a field of the command line as an argument's name: `--sender-algorithm`, `FILE`."""
    head, *rest = field.split(" ")
    word = head.removeprefix("--").replace("-", "_")
    word = _RENAMED.get(word, word)
    return " ".join([word.lower() if head.isupper() or head.startswith("--") else head, *rest])


def named_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with arguments that are checked by their annotations.

    Its errors name arguments instead of the command line's options. An unknown argument, a missing one and
    one of another type raise `BadInputError`; NumPy's whole numbers become `int`, time spans become text.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def called(*arguments: P.args, **options: P.kwargs) -> R:
        bound = _bound(signature, function.__name__, arguments, options)
        try:
            return function(*bound.args, **bound.kwargs)
        except BadInputError as error:
            if error.source != COMMAND_LINE and not error.field.startswith("--"):
                raise
            expected = _OPTION.sub(lambda match: _argument(match[0]), error.expected)
            raise error.reworded(_argument(error.field), expected) from None

    return called


def _bound(
    signature: inspect.Signature, name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]
) -> inspect.BoundArguments:
    """Return the arguments by parameter, of their kinds; raises `BadInputError`."""
    parameters = signature.parameters
    if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        for option in options:
            if option not in parameters:
                raise BadInputError(
                    option, None, f"is not an argument of {name}{nearest(option, parameters)}"
                )
    try:
        bound = signature.bind(*arguments, **options)
    except TypeError as error:
        missing = re.search(r"missing a required (?:keyword-only )?argument: '(\w+)'", str(error))
        if missing is None:
            raise
        raise BadInputError(missing[1], None, f"is missing: {name}{signature}") from None
    for argument, value in bound.arguments.items():
        parameter = parameters[argument]
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            bound.arguments[argument] = tuple(_checked(parameter, entry) for entry in value)
        elif parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            bound.arguments[argument] = _checked(parameter, value)
    return bound


def _checked(parameter: inspect.Parameter, value: Any) -> Any:
    """Return a value of the parameter's kind; raises `BadInputError` for one of another."""
    kind = _KINDS.get(str(parameter.annotation).removesuffix(" | None"))
    if kind is None or (value is None and str(parameter.annotation).endswith("| None")):
        return value
    if isinstance(value, timedelta):
        value = texts({parameter.name: value})[parameter.name]
    if int in kind.types and not isinstance(value, bool) and hasattr(value, "__index__"):
        value = int(value)
    expected = kind.expected
    if int in kind.types:
        least = 1 if parameter.name in _COUNTS else 0
        expected = f"{expected} from {least}"
        if isinstance(value, int) and value < least:
            raise BadInputError(parameter.name, value, expected)
    if not isinstance(value, kind.types) or (isinstance(value, bool) and bool not in kind.types):
        if isinstance(value, Program):
            expected = "a name, beside the program in `programs`"
            raise BadInputError(parameter.name, value.name, expected)
        raise BadInputError(parameter.name, value, expected)
    return value
