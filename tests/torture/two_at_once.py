"""Two commands in one folder at the same time: what is there afterwards is what one of them alone, or one after the
other, would have left; each succeeds or is refused in one line; at least one succeeds; no draft stays behind.
"""

from __future__ import annotations

import functools
import hashlib
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from common import EXPERIMENT, check_answer, dragstrip, end, leftovers, main, start

EXPERIMENT_FILE = "path.toml"
WORK = "work"
RUN = ("run", EXPERIMENT_FILE, "--out", "out", "--no-report")
LONGER = (*RUN, "--repeat", "3")
COMPARE = (
    "compare",
    "--rate",
    "2mbit",
    "--rtt",
    "20ms",
    "--queue",
    "bfifo limit 30kb",
    "--duration",
    "1s",
    "--no-report",
)
SWEEP = ("sweep", EXPERIMENT_FILE, "--out", "out", "--repeat", "4", "--vary", "flow.cc=reno,cubic")
WIDER = ("sweep", EXPERIMENT_FILE, "--out", "out", "--repeat", "4", "--vary", "flow.cc=reno,cubic,vegas")
OTHER = ("sweep", EXPERIMENT_FILE, "--out", "out", "--vary", "path.rtt=10ms,20ms")
STARTED_WITHIN_S = 0.8
"""The second begins at most this much after the first; a command takes 0.5 to 1 s."""


@dataclass(frozen=True)
class Pair:
    """Two commands, and what is run before them."""

    one: tuple[str, ...]
    other: tuple[str, ...]
    before: tuple[str, ...] = ()


PAIRS = (
    Pair(SWEEP, WIDER),
    Pair(RUN, LONGER),
    Pair((*COMPARE, "reno"), (*COMPARE, "reno")),
    Pair(SWEEP, SWEEP),
    Pair(SWEEP, OTHER),
    Pair(RUN, RUN),
    Pair((*COMPARE, "--out", "out", "reno"), (*COMPARE, "--out", "out", "cubic")),
    Pair(RUN, SWEEP),
    Pair(("report", "out"), ("report", "out"), RUN),
    Pair(("report", "out"), ("report", "out"), SWEEP),
    Pair(("report", "out"), WIDER, SWEEP),
)


def shape(folder: Path) -> dict[str, str]:
    """File → digest where the experiment decides the bytes; times and parts' names are each command's own."""
    found = {}
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        decided = file.suffix == ".parquet" or file.name == "sweep.json"
        if (
            file.is_file()
            and not name.startswith("cache/")
            and "/store/" not in name
            and "/.lock" not in name
        ):
            found[name] = hashlib.sha256(file.read_bytes()).hexdigest() if decided else ""
    return found


def prepare(pair: Pair, folder: Path) -> None:
    """The experiment, which is named after its folder, and what the pair needs before."""
    folder.mkdir()
    (folder / EXPERIMENT_FILE).write_text(EXPERIMENT)
    if pair.before:
        check_answer(dragstrip(folder, *pair.before), 0)


@functools.cache
def serial(pair: Pair) -> list[dict[str, str]]:
    """What the commands leave alone and one after the other, in both orders."""
    shapes = []
    for order in ([pair.one], [pair.other], [pair.one, pair.other], [pair.other, pair.one]):
        with tempfile.TemporaryDirectory(prefix="dragstrip-torture-") as made:
            folder = Path(made) / WORK
            prepare(pair, folder)
            for words in order:
                check_answer(dragstrip(folder, *words))
            shapes.append(shape(folder))
    return shapes


def trial(number: int, folder: Path) -> str:
    """Number's pair, the second after number's delay, the first being the one or the other."""
    draws = random.Random(number)
    pair = PAIRS[number % len(PAIRS)]
    folder /= WORK
    prepare(pair, folder)
    first, second = draws.sample([pair.one, pair.other], 2)
    one = start(folder, *first)
    time.sleep(draws.choice([0.0, draws.uniform(0, STARTED_WITHIN_S)]))
    other = start(folder, *second)
    ended = [end(one), end(other)]
    for command in ended:
        check_answer(command, 0, 1, 2)
    assert any(command.status == 0 for command in ended), f"both were refused: {ended[0]}; {ended[1]}"
    assert not leftovers(folder), f"left behind: {leftovers(folder)}"
    now = shape(folder)
    if now not in serial(pair):
        nearest = min(serial(pair), key=lambda known: len(set(known.items()) ^ set(now.items())))
        difference = sorted(name for name, _ in set(nearest.items()) ^ set(now.items()))
        raise AssertionError(
            f"{' '.join(first)} and {' '.join(second)} left what neither order leaves: {difference}"
        )
    return "both" if all(command.status == 0 for command in ended) else "one refused"


if __name__ == "__main__":
    main("two_at_once", trial, count=132, sample=2, about=__doc__)
