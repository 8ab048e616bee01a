"""`--capture [HOST|LINK ...]`, of the commands that run something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer.core

from dragstrip.errors import BadInputError

if TYPE_CHECKING:
    from dragstrip.engines.capture import Asked

OPTION = "--capture"


class Capturing(typer.core.TyperCommand):
    """A command with an option that takes any number of names, which click does not know."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Gives each name an option of its own, and the option without names an empty one."""
        return super().parse_args(ctx, spread(args))


def spread(words: Sequence[str]) -> list[str]:
    """`--capture a b --json` as `--capture=a --capture=b --json`, and `--capture` as `--capture=`."""
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
        while rest and not rest[0].startswith("-"):
            spread.append(f"{OPTION}={rest.pop(0)}")
            names += 1
        if not names:
            spread.append(f"{OPTION}=")
    return spread


def asked(points: Sequence[str] | None, snaplen: int | None) -> Asked | None:
    """What the options ask for; none: nothing."""
    if not points:
        if snaplen is not None:
            expected = "--capture, which it is about"
            raise BadInputError("--snaplen", snaplen, expected, "command line")
        return None
    from dragstrip.engines.capture import SNAPLEN, Asked

    return Asked([point for point in points if point], SNAPLEN if snaplen is None else snaplen)
