"""Refactorings of program texts: changes of form that leave the meaning, of which a passport must raise no alarm.

A refactoring is a function of the text. Most leave every number as it is; those that regroup a sum or a product
change its rounding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest

WORD = r"[A-Za-z_][\w.]*|[\d.]+(?:e\d+)?"
"""A name or a number."""
CALL = re.compile(r"\b(?P<function>min|max)\(")
ASSIGNED = re.compile(r"(?P<to>\b(?:let )?\b\w+) = (?P<function>min|max)\(")


@dataclass(frozen=True)
class Refactoring:
    """A text and a form of it with the same meaning."""

    name: str
    """The text's name."""
    kind: str
    """The kind of change, a key of `KINDS`."""
    text: str


def renamed(text: str) -> str:
    """Return the text with other names for what it declares."""
    for name in re.findall(r"\b(?:state|let) (\w+)", text):
        text = re.sub(rf"\b{name}\b", f"{name}_of_mine", text)
    return text


def with_sums_turned(text: str) -> str:
    """Return the text with the two terms of its sums in the other order."""
    return re.sub(r"= (\w+) \+ (\w+)(?= *(?:$|[}#]))", r"= \2 + \1", text, flags=re.MULTILINE)


def with_products_turned(text: str) -> str:
    """Return the text with the first two factors of its products in the other order."""
    return re.sub(rf"(?<![\w.] [*/] )\b({WORD}) \* ({WORD})(?![\w.(])", r"\2 * \1", text)


def with_operands_swapped(text: str) -> str:
    """Return the text with the operands of its minima and maxima in the other order."""
    return _calls_replaced(text, lambda function, first, second: f"{function}({second}, {first})")


def reflowed(text: str) -> str:
    """Return the text on one line, without comments."""
    return re.sub(r"\s+", " ", re.sub(r"#.*", "", text))


def commented(text: str) -> str:
    """Return the text with a comment at the end of every line."""
    return "".join(f"{line}  # line {number}\n" for number, line in enumerate(text.splitlines(), 1))


def with_branches(text: str) -> str:
    """Return the text with a comparison in place of each minimum or maximum that a word is set to."""
    number = 0
    while match := ASSIGNED.search(text):
        number += 1
        first, second, end = _operands(text, match.end())
        sign = ">" if match["function"] == "min" else "<"
        local = f"bound_{number}"
        branch = f"let {local} = {first} if {local} {sign} {second} {{ {local} = {second} }} {match['to']} = {local}"
        text = text[: match.start()] + branch + text[end:]
    return text


def with_comparisons_turned(text: str) -> str:
    """Return the text with the sides of its comparisons exchanged."""
    other = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
    return re.sub(
        rf"(?<=[( ])({WORD}) (<=|>=|<|>) ({WORD})(?= (?:[{{]|and|or)|\))",
        lambda match: f"{match[3]} {other[match[2]]} {match[1]}",
        text,
    )


def with_halves_multiplied(text: str) -> str:
    """Return the text with a half or a quarter as a factor, not as a quotient."""
    return re.sub(r" / 2\b", " * 0.5", text).replace(" / 4)", " * 0.25)")


def with_terms_named(text: str) -> str:
    """Return the text with what an ACK adds to the window in a variable of its own."""
    return re.sub(r"cwnd = cwnd \+ (acked / cwnd)", r"let more = \1 cwnd = cwnd + more", text)


def regrouped(text: str) -> str:
    """Return the text with sums and products of several in another order, which changes their rounding."""
    text = text.replace("now + srtt - epoch - k", "now - epoch + (srtt - k)")
    text = text.replace("0.4 * t * t * t", "0.4 * t * (t * t)")
    text = text.replace("cwnd = cwnd + acked / cwnd", "cwnd = (cwnd * cwnd + acked) / cwnd")
    return re.sub(r"(\d[\d.]*) \* best \* min_rtt", r"best * min_rtt * \1", text)


def with_conditions_denied(text: str) -> str:
    """Return the text with conditions of one word denied twice."""
    return re.sub(r"\bif (limited|slow_start|recovering)\b", r"if not (not \1)", text)


KINDS: Mapping[str, Callable[[str], str]] = {
    "names": renamed,
    "order of a sum": with_sums_turned,
    "order of a product": with_products_turned,
    "order of operands": with_operands_swapped,
    "line breaks": reflowed,
    "comments": commented,
    "branches for minima": with_branches,
    "sides of comparisons": with_comparisons_turned,
    "factors for quotients": with_halves_multiplied,
    "variables for terms": with_terms_named,
    "grouping": regrouped,
    "double negation": with_conditions_denied,
}
"""Kinds of change, by their names on the page."""


def refactorings(texts: Mapping[str, str], count: int) -> list[Refactoring]:
    """Return the first refactorings that change these texts, one of each text in turn.

    Raises `ValueError` if there are fewer than `count`.
    """
    by_text = [list(_changed(number, name, text)) for number, (name, text) in enumerate(texts.items())]
    made = [entry for turn in zip_longest(*by_text) for entry in turn if entry is not None]
    if len(made) < count:
        raise ValueError(f"count: got {count}, expected at most {len(made)}, all of these {len(texts)} texts")
    return made[:count]


def _changed(number: int, name: str, text: str) -> Iterator[Refactoring]:
    """Yield the refactorings that change a text: of rounding first, as the hardest, then from another kind on."""
    first = number % len(KINDS)
    kinds = [*KINDS][first:] + [*KINDS][:first]
    for kind in sorted(kinds, key=lambda kind: kind != "grouping"):
        other = KINDS[kind](text)
        if other != text:
            yield Refactoring(name, kind, other)


def _operands(text: str, at: int) -> tuple[str, str, int]:
    """Return the two operands of the call whose brackets open before `at`, and the index behind it."""
    depth, comma = 0, 0
    for index in range(at, len(text)):
        match text[index]:
            case "(":
                depth += 1
            case ")" if depth == 0:
                return text[at:comma], text[comma + 1 : index].strip(), index + 1
            case ")":
                depth -= 1
            case "," if depth == 0:
                comma = index
    raise ValueError(f"text: got {text[at:]!r}, expected a closing bracket")


def _calls_replaced(text: str, replacement: Callable[[str, str, str], str]) -> str:
    """Return the text with each minimum and maximum replaced, the inner ones of a call as they are."""
    done = 0
    while match := CALL.search(text, done):
        first, second, end = _operands(text, match.end())
        call = replacement(match["function"], first, second)
        text = text[: match.start()] + call + text[end:]
        done = match.start() + len(call)
    return text
