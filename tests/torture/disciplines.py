"""Queue disciplines at random, in the words of tc: every word that the core lists, with values that it takes."""

from __future__ import annotations

import random
from functools import cache

from dragstrip import _core

VALUES = (
    *(
        "0",
        "1",
        "2",
        "3",
        "8",
        "16",
        "32",
        "64",
        "100",
        "127",
        "1000",
        "1024",
        "10240",
        "65535",
        "4294967295",
    ),
    *("1500b", "1514b", "9kb", "30kb", "200kb", "4mb", "1us", "250us", "5ms", "15ms", "100ms", "1s", "10s"),
    *(
        "8kbit",
        "500kbit",
        "2mbit",
        "40mbit",
        "1gbit",
        "10tbit",
        "0.02",
        "0.5",
        "1",
        "0%",
        "1%",
        "50%",
        "100%",
    ),
    *("-1", "-64", "atm", "ethernet", "adsl", "2 3 1 0", "0 0 0 1 2", "1514 3028", "noqueue", ""),
)
ODD = (
    *(
        "-1",
        "1e999",
        "9" * 400,
        "nan",
        "é",
        "0x10",
        "1.2.3",
        "limit",
        "limit limit",
        "[/a]",
        "1e-9ms",
        "half",
    ),
    *("18446744073709551616", "4294967296", "-0", "١٠", "--", "root", "\x1b[2J", "0b", "0ms", "x" * 5000),
)


@cache
def disciplines() -> dict[str, tuple[list[str], str]]:
    """Each discipline's words and its example."""
    return {queue["name"]: (queue["words"], queue["example"]) for queue in _core.names()["queues"]}


def accepted(text: str) -> bool:
    """Whether the core reads these words."""
    try:
        _core.parse_qdisc(text)
    except _core.InputError:
        return False
    return True


def valid(dice: random.Random, but: tuple[str, ...] = ()) -> str:
    """A discipline that the core reads, often with some of its words; not one of the named."""
    name = dice.choice([name for name in disciplines() if name not in but])
    words, text = disciplines()[name]
    for word in dice.sample(words, min(len(words), dice.choice([0, 1, 2, 3, 6]))):
        for value in dice.sample(VALUES, 8):
            longer = f"{text} {word} {value}".rstrip()
            if word not in text.split() and accepted(longer):
                text = longer
                break
    return text


def broken(text: str, dice: random.Random) -> str:
    """The same with some words exchanged, removed, doubled or replaced; it may still be right."""
    tokens = text.split()
    everything = [*disciplines(), *(word for words, _ in disciplines().values() for word in words)]
    for _ in range(dice.randint(1, 3)):
        place = dice.randrange(len(tokens))
        match dice.randrange(5):
            case 0:
                tokens[place] = ""
            case 1:
                tokens.insert(place, tokens[place])
            case 2:
                tokens[place] = dice.choice(ODD)
            case 3:
                tokens[place] = dice.choice(VALUES)
            case _:
                tokens[place] = dice.choice(everything)
    return " ".join(tokens)
