r"""Command lines as a terminal shows them, continued with a backslash where they are long."""

from __future__ import annotations

import shlex


def folded(command: str, width: int, flags: frozenset[str], indent: str = "    ") -> list[str]:
    r"""Return a command line in lines of at most `width` columns, continued with a backslash.

    An option stays with its value; `flags` are the options that have none.
    """
    lines, now = [], indent[1:]
    words = _arguments(command, flags)
    for at, word in enumerate(words):
        room = width - (0 if at == len(words) - 1 else 2)
        if len(now) + 1 + len(word) > room and now.strip():
            lines.append(f"{now} \\")
            now = indent + "   "
        now = f"{now} {word}"
    return [*lines, now]


def _arguments(command: str, flags: frozenset[str]) -> list[str]:
    """Return a command line's words, each option with its value, as they stand."""
    words: list[str] = []
    for word in map(shlex.quote, shlex.split(command)):
        if words and words[-1].startswith("--") and " " not in words[-1] and words[-1] not in flags:
            words[-1] = f"{words[-1]} {word}"
        else:
            words.append(word)
    return words
