"""The option `--capture [HOST|LINK ...]` of the commands that run something."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dragstrip.cli.once import Once
from dragstrip.errors import BadInputError

if TYPE_CHECKING:
    from dragstrip.engines.capture import CaptureRequest

OPTION = "--capture"


class Capturing(Once):
    """A command with an option that takes any number of names, which click does not support."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give each name an option of its own, and an option without names an empty value."""
        takes_algorithms = any(parameter.name == "algorithms" for parameter in self.params)
        return super().parse_args(ctx, spread(args, _is_algorithm if takes_algorithms else _is_none))


def _is_algorithm(word: str) -> bool:
    """True when a word names an algorithm of the simulator, with or without options, count, RTT and start."""
    from dragstrip import _core

    try:
        return _core.flow_word(word).name in _core.ALGORITHMS
    except _core.InputError:
        return False


def _is_none(word: str) -> bool:
    return False


def spread(words: Sequence[str], ends: Callable[[str], bool] = _is_none) -> list[str]:
    """Rewrite `--capture a b --json` to `--capture=a --capture=b --json`, and `--capture` to `--capture=`.

    A word for which `ends` is true ends the list of names.
    """
    spread: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*spread, word, *rest]
        if word != OPTION:
            spread.append(word)
            continue
        names = 0
        while rest and not rest[0].startswith("-") and not ends(rest[0]):
            spread.append(f"{OPTION}={rest.pop(0)}")
            names += 1
        if not names:
            spread.append(f"{OPTION}=")
    return spread


def capture_request(points: Sequence[str] | None, snaplen: int | None) -> CaptureRequest | None:
    """Return the requested capture, or None; raises `BadInputError` for `--snaplen` without `--capture`."""
    if not points:
        if snaplen is not None:
            expected = "--capture with it"
            raise BadInputError("--snaplen", snaplen, expected, "command line")
        return None
    from dragstrip.engines.capture import CaptureRequest

    return CaptureRequest([point for point in points if point], snaplen)
