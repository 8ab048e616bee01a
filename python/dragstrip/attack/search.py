"""The search: a small evolution per goal and vector, the same for any number of workers.

Each generation keeps the `KEPT` best attacks and draws `DRAWN` new ones: changed, combined, or made afresh.
A generation is scored in parallel and taken in the order in which it was drawn, so the outcome follows from
seed and number of evaluations alone. With a time limit, the number of evaluations depends on the machine.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from dragstrip.attack import elements
from dragstrip.attack.elements import Attack, Kind
from dragstrip.attack.goals import Score, Trial

KEPT = 10
DRAWN = 20
CONFIRMED = 4
"""Best attacks of a search that are run for twice the time; the one that lasts is chosen."""
FRESH = 0.2
"""Share of new attacks that are made afresh."""
MIXES = 0.3
"""Share of new attacks that combine two that were kept."""
TRIES_MAX = 50
"""Attempts to draw an attack that is admissible."""
HOLDS = 1.05
"""Factor by which a value may rise while elements are dropped."""

Scored: TypeAlias = tuple[Attack, Score]


@dataclass
class Budget:
    """What one search may take: evaluations, or seconds."""

    evaluations: int | None = None
    seconds: float | None = None
    _began: float = field(default_factory=time.monotonic, init=False)

    def taken(self) -> float:
        """Return the seconds since it was made."""
        return time.monotonic() - self._began

    def room(self, spent: int) -> int:
        """Return how many more attacks may be scored in the next generation."""
        if self.evaluations is not None:
            return max(0, min(DRAWN, self.evaluations - spent))
        return 0 if self.late() else DRAWN

    def late(self) -> bool:
        """Return whether the time is over."""
        return self.seconds is not None and self.taken() >= self.seconds


class Bench:
    """Threads on which attacks are scored; the core releases the interpreter's lock while it simulates."""

    def __init__(self, workers: int) -> None:
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="attack")
        self._stop = threading.Event()
        self.scored = 0
        """Attacks scored so far."""

    def scores(
        self,
        trial: Trial,
        attacks: Iterable[Attack],
        below: float = 1.0,
        late: Callable[[], bool] | None = None,
    ) -> list[Scored]:
        """Score attacks and return them in their order; those that begin when it is `late` are left out."""

        def one(attack: Attack) -> Scored | None:
            if self._stop.is_set() or (late is not None and late()):
                return None
            return attack, trial.score(attack, below)

        made = [scored for scored in self._threads.map(one, list(attacks)) if scored is not None]
        self.scored += len(made)
        return made

    def close(self) -> None:
        """End the threads; what has not begun is dropped."""
        self._stop.set()
        self._threads.shutdown(cancel_futures=True)


@contextmanager
def bench(workers: int) -> Iterator[Bench]:
    """Yield threads to score attacks on."""
    made = Bench(workers)
    try:
        yield made
    finally:
        made.close()


def search(
    trial: Trial,
    vector: str,
    pool: Sequence[Kind],
    budget: Budget,
    bench: Bench,
    begin_with: Sequence[Attack] = (),
) -> tuple[list[Scored], int]:
    """Return the best attacks made of these kinds, up to `CONFIRMED`, and how many were scored.

    `vector` names the search; with goal and seed it decides what is drawn. `begin_with` are attacks of the
    first generation, whose rest is drawn at random.
    """
    rng = random.Random(f"{trial.seed}/{trial.goal.name}/{vector}")  # noqa: S311
    kept: list[Scored] = []
    seen: set[Attack] = set()
    spent = 0
    while pool and (room := budget.room(spent)):
        drawn: list[Attack] = []
        if not kept:
            drawn += [attack for attack in dict.fromkeys(begin_with) if attack not in seen][:room]
            seen.update(drawn)
        while len(drawn) < room:
            attack = _drawn([attack for attack, _ in kept], pool, rng, seen)
            if attack is None:
                break
            seen.add(attack)
            drawn.append(attack)
        if not drawn:
            break
        below = kept[-1][1].value if len(kept) == KEPT else 1.0
        scored = bench.scores(trial, drawn, below, budget.late)
        spent += len(scored)
        if not scored:
            break
        kept += [pair for pair in scored if pair[1].whole or len(kept) < KEPT]
        kept.sort(key=lambda pair: (pair[1].value, len(pair[0])))
        del kept[KEPT:]
    return [pair for pair in kept if pair[1].whole][:CONFIRMED], spent


def _drawn(
    kept: Sequence[Attack], pool: Sequence[Kind], rng: random.Random, seen: set[Attack]
) -> Attack | None:
    """Return an admissible attack that was not scored before, or None if there seems to be none."""
    for _ in range(TRIES_MAX):
        if not kept or rng.random() < FRESH:
            attack: Attack = tuple(elements.drawn(pool, rng) for _ in range(rng.choice((1, 1, 2))))
        elif rng.random() < MIXES:
            attack = _combined(_parent(kept, rng), _parent(kept, rng), rng)
        else:
            attack = _changed(_parent(kept, rng), pool, rng)
        if attack and attack not in seen and elements.admissible(attack):
            return attack
    return None


def _parent(kept: Sequence[Attack], rng: random.Random) -> Attack:
    """Return one of two at random, the better one: `kept` is sorted."""
    return kept[min(rng.randrange(len(kept)), rng.randrange(len(kept)))]


def _combined(one: Attack, other: Attack, rng: random.Random) -> Attack:
    """Return about half the elements of each; none twice."""
    return tuple(dict.fromkeys(element for element in (*one, *other) if rng.random() < 0.6))


def _changed(attack: Attack, pool: Sequence[Kind], rng: random.Random) -> Attack:
    """Return the attack with an element changed, and now and then one more or one less."""
    made = list(attack)
    dice = rng.random()
    if dice < 0.15 and len(made) > 1:
        del made[rng.randrange(len(made))]
    elif dice < 0.3:
        made.append(elements.drawn(pool, rng))
    else:
        at = rng.randrange(len(made))
        made[at] = elements.changed(made[at], rng)
    return tuple(made)


def lasting(trial: Trial, best: Sequence[Scored], bench: Bench) -> Scored | None:
    """Return the attack whose value is least where the better of it and of twice the duration counts."""
    later = bench.scores(trial.doubled(), [attack for attack, _ in best])
    pairs = zip(best, later, strict=True)
    return min(pairs, key=lambda it: max(it[0][1].value, it[1][1].value), default=(None, None))[0]


def minimised(trial: Trial, found: Scored, bench: Bench) -> Scored:
    """Return the attack without the elements that it does not need.

    It may need none. Elements are dropped one after the other while the value rises by no more than 5 % in
    all.
    """
    attack, score = found
    most = score.value * HOLDS
    while attack:
        fewer = [(*attack[:at], *attack[at + 1 :]) for at in range(len(attack))]
        best = min(bench.scores(trial, fewer), key=lambda pair: pair[1].value)
        if best[1].value > most:
            break
        attack, score = best
    return attack, score
