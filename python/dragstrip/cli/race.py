"""The options of a race on the command line, which `compare` and `play` take from one table."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeAlias

import typer

from dragstrip.cli import completion
from dragstrip.errors import BadInputError, ManyInputsError
from dragstrip.experiment.race import ALGORITHMS, OPTIONS, RaceOption

Race: TypeAlias = dict[str, Any]
"""The options that were given, by their names: texts, flags as True, lists of texts, tables."""
Build: TypeAlias = Callable[[list[str], Race], object]
"""Makes what algorithms and options mean, or raises the first `BadInputError`."""

EVERY = tuple(option.name for option in OPTIONS)
"""The names of all options of a race."""

Algorithms = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ALGORITHM...", help=ALGORITHMS.help, autocompletion=completion.algorithms, show_default=False
    ),
]


def takes_race(names: Sequence[str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator of a command whose parameter `race` is filled from these options, which take its place."""
    selected = [option for option in OPTIONS if option.name in names]
    return lambda command: _taking(command, selected)


def _taking(command: Callable[..., None], options: Sequence[RaceOption]) -> Callable[..., None]:
    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.name == "race":
            parameters += [_parameter(option, parameter.kind) for option in options]
        else:
            parameters.append(parameter)

    def called(**arguments: Any) -> None:
        race = {option.name: arguments.pop(option.name) for option in options}
        command(**arguments, race=read(race))

    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


def _parameter(option: RaceOption, kind: Any) -> inspect.Parameter:
    kinds: dict[str, Any] = {"flag": bool, "text": str | None, "count": str | None}
    # A policy is a text, too.
    words = [option.word, "--policy"] if option.takes == "files" else [option.word]
    annotation: Any = Annotated[
        kinds.get(option.takes, list[str] | None),
        typer.Option(
            *words,
            metavar=None if option.takes == "flag" else option.metavar,
            help=option.help if not option.default else f"{option.help[:-1]}; default: {option.default}.",
            autocompletion=getattr(completion, option.completes) if option.completes else None,
            show_default=False,
        ),
    ]
    return inspect.Parameter(
        option.name,
        kind,
        default=False if option.takes == "flag" else None,
        annotation=annotation,
    )


STAND_INS = {"rate": "10mbit", "rtt": "40ms", "queue": "pfifo"}
"""Substitutes for wrong or missing options while the others are checked."""


def all_wrong(error: BadInputError, algorithms: list[str], race: Race, build: Build) -> BadInputError:
    """Return the error with whatever else is wrong in these options, so that one correction is enough.

    `build(algorithms, race)` raises a `BadInputError` about an option for the first thing that is wrong.
    """
    from dragstrip.experiment.saved_paths import CARRIERS

    errors, settled = [error], set[str]()
    race, algorithms = dict(race), list(algorithms)
    while (name := _option_name(errors[-1].field)) is not None and name not in settled:
        settled.add(name)
        if name == ALGORITHMS.name:
            errors += _algorithm_errors(algorithms, errors.pop(), build)
            algorithms = ["reno"]
        race.pop(name, None)
        if name in STAND_INS:
            race[name] = STAND_INS[name]
        if name in CARRIERS and not any(carrier in race for carrier in CARRIERS):
            race["rate"] = STAND_INS["rate"]
        if name == "path":
            race.setdefault("rtt", STAND_INS["rtt"])
        if name == "duration":
            race.pop("change", None)  # it may be too late for the usual one
        try:
            build(algorithms, race)
        except BadInputError as another:
            errors.append(another)
        else:
            return ManyInputsError(errors) if len(errors) > 1 else error
    reported = errors[:-1] if len(errors) > 1 and _option_name(errors[-1].field) in settled else errors
    return ManyInputsError(reported) if len(reported) > 1 else error


def _algorithm_errors(algorithms: list[str], error: BadInputError, build: Build) -> list[BadInputError]:
    """Return what is wrong with each algorithm."""
    wrong = []
    for algorithm in dict.fromkeys(algorithms):
        try:
            build([algorithm], dict(STAND_INS))
        except BadInputError as algorithm_error:
            wrong.append(algorithm_error)
    algorithm_faults = {(entry.value, entry.expected) for entry in wrong}
    return wrong if (error.value, error.expected) in algorithm_faults else [error]


def _option_name(field: str) -> str | None:
    """Return the name of the option with this word on a command line."""
    return next((option.name for option in (ALGORITHMS, *OPTIONS) if option.word == field), None)


def read(arguments: Race) -> Race:
    """The options on the command line. Raises `BadInputError` for a pair or a file that is wrong."""
    from dragstrip.cli.output import say_path
    from dragstrip.experiment.programs import of_files
    from dragstrip.experiment.saved_paths import expanded

    race: Race = {}
    for option in OPTIONS:
        value = arguments.get(option.name)
        if value is None or value is False or value == []:
            continue
        if option.takes == "pairs":
            value = dict(_pair(option.word, pair) for pair in value)
        elif option.takes == "files":
            value = of_files(value)
        race[option.name] = value
    options = expanded(race)
    if isinstance(name := race.get("path"), str):
        say_path(name)
    return options


def _pair(word: str, pair: str) -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if not (key.strip() and equals and value.strip()):
        expected = "KEY=VALUE, such as net.ipv4.tcp_sack=0"
        raise BadInputError(word, pair, expected, "command line")
    return key.strip(), value.strip()
