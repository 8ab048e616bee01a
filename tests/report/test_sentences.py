"""Each sentence of *why* over random races names a quantity and a mechanism, and its figures are those beside it."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Any

import pytest

from dragstrip import _core
from dragstrip.engines.sim import simulate
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.results.measures import summarise

RACES = 300
QUEUES = (
    *(
        "0.5bdp",
        "1bdp",
        "4bdp",
        "pfifo limit 20",
        "bfifo limit 200kb",
        "codel",
        "fq_codel",
        "pie ecn",
        "cake",
    ),
    "red limit 400kb min 30kb max 90kb avpkt 1500 burst 30 probability 0.1 ecn",
)
NUMBER = re.compile(
    r"(?<![\w.:=@+-])(\d{1,9}(?:\.\d{1,4})?)(?: (%|µs|kbit/s|Mbit/s|Gbit/s|kB|MB|GB))?(?![\w.:=])"
)
SCALES = {
    "%": 100.0,
    "µs": 1e3,
    "kbit/s": 1e-3,
    "Mbit/s": 1e-6,
    "Gbit/s": 1e-9,
    "kB": 1e-3,
    "MB": 1e-6,
    "GB": 1e-9,
}
RESTATED = ("differ in", "although nothing")


def drawn(number: int) -> list[Mapping[str, Any]]:
    """The findings of a random race's first run; empty where the draw is refused."""
    dice = random.Random(number)  # noqa: S311
    names = dice.sample(_core.ALGORITHMS, dice.choice([1, 2, 2, 2, 3]))
    words = [name + dice.choice(["", "", "", "@120ms", "+3s"]) for name in names]
    given: dict[str, Any] = {
        "rate": dice.choice(["2mbit", "10mbit", "20mbit"]),
        "rtt": dice.choice(["10ms", "40ms", "150ms"]),
        "queue": dice.choice(QUEUES),
        "duration": dice.choice(["6s", "10s"]),
        "together": len(words) > 1,
        "ecn": dice.random() < 0.3,
    }
    if dice.random() < 0.2:
        given["loss"] = dice.choice(["0.1%", "1%", "5%"])
    try:
        run = expand(compare(words, **given))[0]
    except BadInputError:
        return []
    found: list[Mapping[str, Any]] = summarise(simulate(run.scenario))["why"]
    return found


@pytest.mark.parametrize("tens", range(RACES // 30))
def test_sentences_of_random_races(tens: int) -> None:
    told = 0
    for number in range(30 * tens, 30 * tens + 30):
        for finding in drawn(number):
            sentence, figures = finding["sentence"], finding["figures"].values()
            assert not any(words in sentence for words in RESTATED), f"race {number}: {sentence}"
            prose = "".join(sentence.split("`")[::2]).replace("\u2009", "")
            quantities = NUMBER.findall(prose)
            assert quantities, f"race {number}: no quantity: {sentence}"
            for digits, unit in quantities:
                half = 0.5 * 10.0 ** -len(digits.partition(".")[2]) * (1 + 1e-9)
                scale = SCALES.get(unit, 1.0)
                fits = any(abs(abs(figure) * scale - float(digits)) <= half for figure in figures)
                counted = re.search(rf"{re.escape(digits)} others|than 100 times", prose)
                assert fits or counted, (
                    f"race {number}: {digits} {unit} of {sentence!r} is none of {finding['figures']}"
                )
            told += 1
    assert told > 20
