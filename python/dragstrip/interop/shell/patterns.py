"""Patterns of a shell (POSIX, 2.13), in time that grows with the product of both lengths."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import TypeAlias

_CLASSES: dict[str, Callable[[str], bool]] = {
    "digit": str.isdigit,
    "alpha": str.isalpha,
    "alnum": str.isalnum,
    "upper": str.isupper,
    "lower": str.islower,
    "space": str.isspace,
    "blank": lambda character: character in " \t",
    "xdigit": lambda character: character in "0123456789abcdefABCDEF",
    "punct": lambda character: character.isprintable() and not character.isalnum() and character != " ",
}
Piece: TypeAlias = str | tuple[bool, tuple[str, ...]]
"""`*`, `?`, a backslash with a character, or a set: negated, and its members."""


def escaped(text: str) -> str:
    """Return a pattern that matches this text alone."""
    return "".join(f"\\{character}" if character in "\\*?[]" else character for character in text)


def is_pattern(text: str) -> bool:
    """Return whether a text matches more than itself."""
    return any(piece in ("*", "?") or isinstance(piece, tuple) for piece in _pieces(text))


def plain(pattern: str) -> str:
    """Return a pattern's text without its backslashes."""
    return "".join(piece[-1] if isinstance(piece, str) else "[" for piece in _pieces(pattern))


def _pieces(pattern: str) -> list[Piece]:
    pieces: list[Piece] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "\\" and at < len(pattern):
            pieces.append("\\" + pattern[at])
            at += 1
        elif character in "*?":
            pieces.append(character)
        elif character == "[" and (end := _set_end(pattern, at)):
            negated = pattern[at] in "!^"
            pieces.append((negated, _members(pattern[at + negated : end])))
            at = end + 1
        else:
            pieces.append("\\" + character)
    return pieces


def _set_end(pattern: str, at: int) -> int:
    """Return where the set ends whose first member is at `at`; 0: it does not end."""
    at += pattern[at : at + 1] in ("!", "^")
    start = at
    while at < len(pattern):
        if pattern.startswith("[:", at) and (end := pattern.find(":]", at + 2)) > 0:
            at = end + 2
        elif pattern[at] == "]" and at > start:
            return at
        else:
            at += 2 if pattern[at] == "\\" else 1
    return 0


def _members(text: str) -> tuple[str, ...]:
    members, at = [], 0
    while at < len(text):
        if text.startswith("[:", at) and ":]" in text[at:]:
            end = text.index(":]", at)
            members.append(text[at : end + 2])
            at = end + 2
        elif text[at] == "\\" and at + 1 < len(text):
            members.append(text[at + 1])
            at += 2
        elif text[at + 1 : at + 2] == "-" and at + 2 < len(text):
            members.append(text[at : at + 3])
            at += 3
        else:
            members.append(text[at])
            at += 1
    return tuple(members)


def _fits(piece: Piece, character: str) -> bool:
    if isinstance(piece, str):
        return piece == "?" or (piece[-1] == character and piece[0] == "\\")
    negated, members = piece
    return negated != any(_is_member(member, character) for member in members)


def _is_member(member: str, character: str) -> bool:
    if member.startswith("[:"):
        known = _CLASSES.get(member[2:-2])
        return known is not None and bool(known(character))
    if len(member) == 3:
        return member[0] <= character <= member[2]
    return member == character


def prefixes(pattern: str, text: str) -> list[bool]:
    """Return for each length from 0 on whether the pattern matches the text's first characters."""
    return _reached(_pieces(pattern), text)


def _reached(pieces: Sequence[Piece], text: str) -> list[bool]:
    reach = [True] + [False] * len(text)
    for piece in pieces:
        if piece == "*":
            seen = False
            for at, reached in enumerate(reach):
                seen = seen or reached
                reach[at] = seen
        else:
            reach = [
                False,
                *(before and _fits(piece, character) for before, character in zip(reach, text, strict=False)),
            ]
    return reach


def cost(pattern: str, text: str, places: int = 1) -> int:
    """Return the steps that a match takes, at each of so many places."""
    return 1 + len(pattern) * len(text) * places // 50


def matches(pattern: str, text: str) -> bool:
    """Return whether a pattern matches a whole text."""
    return prefixes(pattern, text)[-1]


def without_prefix(pattern: str, text: str, longest: bool) -> str:
    """Return the text without what the pattern matches at its beginning."""
    lengths = [at for at, reached in enumerate(prefixes(pattern, text)) if reached]
    return text[(lengths[-1] if longest else lengths[0]) :] if lengths else text


def without_suffix(pattern: str, text: str, longest: bool) -> str:
    """Return the text without what the pattern matches at its end."""
    reach = _reached(_pieces(pattern)[::-1], text[::-1])
    lengths = [at for at, reached in enumerate(reach) if reached]
    return text[: len(text) - (lengths[-1] if longest else lengths[0])] if lengths else text


def replaced(pattern: str, text: str, by: str, everywhere: bool) -> str:
    """Return the text with its matches replaced, the longest at each place."""
    anchor = pattern[:1] if pattern[:1] in ("#", "%") and not everywhere else ""
    pattern = pattern[len(anchor) :]
    if anchor == "%":
        shorter = without_suffix(pattern, text, True)
        return shorter + by if shorter != text or matches(pattern, "") else text
    if not anchor and not is_pattern(pattern):
        return text.replace(plain(pattern), by, -1 if everywhere else 1) if pattern else text
    result, at = [], 0
    while at < len(text):
        lengths = [
            length for length, reached in enumerate(prefixes(pattern, text[at:])) if reached and length
        ]
        if lengths:
            result.append(by)
            at += lengths[-1]
            if not everywhere:
                break
        elif anchor:
            break
        else:
            result.append(text[at])
            at += 1
    return "".join(result) + text[at:]


REPEATED_MAX = 2
"""Repetitions in a regular expression, at most: the time grows with the text's length to this power."""
_POSIX = {
    "digit": "0-9",
    "alpha": "A-Za-z",
    "alnum": "A-Za-z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "blank": r" \t",
    "xdigit": "0-9A-Fa-f",
}


def regular(expression: str, extended: bool, ignore_case: bool = False) -> re.Pattern[str] | None:
    """Return a regular expression of POSIX without groups and with few repetitions; None for any other."""
    pieces: list[str] = []
    repeated = at = 0
    signs = "+?" if extended else ""
    while at < len(expression):
        character = expression[at]
        at += 1
        if character == "\\" and at < len(expression):
            character = expression[at]
            at += 1
            if not extended and character in "+?" and pieces:
                pieces.append(character)
                repeated += 1
            elif character.isalnum() or character in "(){}|<>":
                return None
            else:
                pieces.append(re.escape(character))
        elif character == "[":
            end = _set_end(expression, at)
            if not end:
                return None
            inside = re.sub(r"\[:(\w+):\]", lambda match: _POSIX.get(match[1], ""), expression[at:end])
            negated = inside.startswith("^")
            inside = inside[negated:].replace("[", "\\[").replace("]", "\\]").replace("^", "\\^")
            pieces.append(f"[{'^' if negated else ''}{inside}]")
            at = end + 1
        elif (character == "*" and pieces) or (character in signs and pieces):
            pieces.append(character)
            repeated += 1
        elif (
            character == "." or (character == "^" and at == 1) or (character == "$" and at == len(expression))
        ):
            pieces.append(character)
        elif extended and character in "(){}|+?*^$":
            return None
        else:
            pieces.append(re.escape(character))
    if repeated > REPEATED_MAX or len(expression) > 200:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile("".join(pieces), re.IGNORECASE if ignore_case else 0)
    except re.error:
        return None
