"""Holds the sentences that sum up many set-ups against the set-ups' own figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .expected import TIE, Judged, Statistic
from .shown import says

SETUPS_MIN = 3
NAMES_MAX = 6


@dataclass(frozen=True)
class Entry:
    """A contender in one set-up."""

    share: Statistic | None
    goodput: Statistic | None
    rtt: Statistic | None
    is_tcp: bool


@dataclass(frozen=True)
class Summed:
    """A set-up as the sentences know it."""

    short: str
    contenders: Mapping[str, Entry]
    order: Judged | None
    """Who is ahead in goodput, by place in `contenders`."""


def check(sentences: Sequence[str], setups: Sequence[Summed]) -> None:
    """Every sentence is right, and none is missing."""
    left = list(sentences)
    _check_leaders(left, setups)
    met: dict[str, list[tuple[str, Entry]]] = {}
    for setup in setups:
        for name, entry in setup.contenders.items():
            if entry.is_tcp:
                met.setdefault(name, []).append((setup.short, entry))
    several = {name: found for name, found in met.items() if len(found) >= SETUPS_MIN}
    for name, found in several.items() if len(several) <= NAMES_MAX else ():
        if all(entry.share is not None for _, entry in found):
            sentence = _taken(left, f"{name} gets ")
            _check_reach(sentence, found, lambda entry: entry.share, r"gets (.*?)( in each)?\.$")
        elif any(entry.goodput is not None for _, entry in found):
            sentence = _taken(left, f"{name}: goodput ")
            _check_reach(sentence, found, lambda it: it.goodput, r": goodput (.*?)( in each)?(?:;.*)?\.$")
            if any(entry.rtt is not None for _, entry in found):
                _check_reach(sentence, found, lambda it: it.rtt, r"; median RTT (.*?)( in each)?\.$")
    assert not left, f"sentences that sum up nothing: {left}"


def _taken(left: list[str], begin: str) -> str:
    found = [sentence for sentence in left if sentence.startswith(begin)]
    assert len(found) == 1, f"{begin!r}: {left}"
    left.remove(found[0])
    return found[0]


def _check_leaders(left: list[str], setups: Sequence[Summed]) -> None:
    ahead: dict[str, int] = {}
    compared = 0
    for setup in setups:
        if setup.order is None or len(setup.contenders) < 2:
            continue
        compared += 1
        names = list(setup.contenders)
        who = [names[place] for place in setup.order.best] if setup.order.worst else []
        said = ", ".join(who[:-1]) + " and " + who[-1] if len(who) > 1 else "".join(who)
        ahead[said] = ahead.get(said, 0) + 1
    if not compared:
        return
    sentence = left.pop(0).removeprefix("In these runs: ").removesuffix(".")
    found: dict[str, int] = {}
    for part in sentence.split("; "):
        if none := re.fullmatch(r"[Ii]n (\d+) of (\d+) no clear difference", part):
            assert int(none[2]) == compared, sentence
            found[""] = int(none[1])
            continue
        told = re.fullmatch(
            r"(.*?) ha(?:s|ve) the highest goodput in (?:all (\d+)|(\d+) of (\d+)) setups", part
        )
        assert told, sentence
        assert int(told[2] or told[4]) == compared, sentence
        found[told[1]] = int(told[2] or told[3])
    assert {who.casefold(): count for who, count in found.items()} == {
        who.casefold(): count for who, count in ahead.items()
    }, f"{sentence}: {ahead}"


def _check_reach(
    sentence: str,
    met: Sequence[tuple[str, Entry]],
    figure: Callable[[Entry], Statistic | None],
    pattern: str,
) -> None:
    known = [(value.middle, short) for short, entry in met if (value := figure(entry)) is not None]
    least, greatest = min(value for value, _ in known), max(value for value, _ in known)
    found = re.search(pattern, sentence)
    assert found, sentence
    text = found[1].removesuffix(" of the bytes")
    assert bool(found[2]) == (greatest - least <= TIE * abs(greatest)), f"{sentence}: {known}"
    if found[2]:
        assert says(text, greatest), f"{sentence}: {known}"
        return
    where = {short: value for value, short in known}
    for value, short in known:
        if value == least and (rest := text.split(f" ({short}) to ", 1)) and len(rest) == 2:
            assert says(rest[0], least), f"{sentence}: {known}"
            most, _, place = rest[1].removesuffix(")").partition(" (")
            assert says(most, greatest), f"{sentence}: {known}"
            assert where[place] == greatest, f"{sentence}: {known}"
            return
    raise AssertionError(f"{sentence}: its least is {least}: {known}")
