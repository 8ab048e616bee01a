"""The search: a small evolution per goal and vector, the same for any number of workers.

Each generation keeps the `KEPT` best attacks and draws `DRAWN` new ones: changed, combined, or made afresh.
A generation is scored in parallel and taken in the order in which it was drawn, so the outcome follows from
seed and number of evaluations alone. With a time limit, the number of evaluations depends on the machine.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from dragstrip.engines.contract import Progress
from dragstrip.runs import run_parallel
from dragstrip.studies.attack import elements
from dragstrip.studies.attack.elements import Attack, Kind
from dragstrip.studies.attack.goals import Score, Trial

KEPT = 10
DRAWN = 20
FRESH = 0.2
"""Share of new attacks that are made afresh."""
MIXES = 0.3
"""Share of new attacks that combine two that were kept."""
TRIES_MAX = 50
"""Attempts to draw an attack that is admissible."""
HOLDS = 1.05
"""Factor by which a value may rise while elements are dropped."""

Scored: TypeAlias = tuple[Attack, Score]


@dataclass(frozen=True)
class ConfirmedAttack:
    """An attack that was also run for twice the duration."""

    attack: Attack
    score: Score
    doubled: Score

    @property
    def value(self) -> float:
        """The value that the search goes by: the weaker one of both runs."""
        return max(self.score.value, self.doubled.value)


@dataclass
class Budget:
    """Budget of one search: evaluations, or seconds."""

    evaluations: int | None = None
    seconds: float | None = None
    interrupted: bool = False
    """True when Ctrl-C ended the search."""
    _began: float = field(default_factory=time.monotonic, init=False)

    def elapsed_s(self) -> float:
        """Return the seconds since it was made."""
        return time.monotonic() - self._began

    def room(self, scored_attacks: int) -> int:
        """Return how many more attacks may be scored in the next generation."""
        if self.evaluations is not None:
            return max(0, min(DRAWN, self.evaluations - scored_attacks))
        return 0 if self.late() else DRAWN

    def late(self) -> bool:
        """Return whether the time is over."""
        return self.seconds is not None and self.elapsed_s() >= self.seconds


class AttackScorer:
    """Scores attacks on threads and counts them."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
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

        def score(attack: Attack, progress: Progress) -> Scored | None:
            return None if late is not None and late() else (attack, trial.score(attack, below, progress))

        scores = run_parallel(score, list(attacks), self._workers)
        scored = [entry for entry in scores if entry is not None]
        self.scored += len(scored)
        return scored


def search(
    trial: Trial,
    vector: str,
    pool: Sequence[Kind],
    budget: Budget,
    bench: AttackScorer,
    begin_with: Sequence[Attack] = (),
) -> tuple[ConfirmedAttack | None, int]:
    """Return the best attack made of these kinds, and how many were scored.

    `vector` names the search; with goal and seed it decides what is drawn. `begin_with` are attacks of the
    first generation, whose rest is drawn at random. Ctrl-C ends the search with what it has, and the budget
    says so.
    """
    rng = random.Random(f"{trial.seed}/{trial.goal.name}/{vector}")  # noqa: S311
    strongest: list[ConfirmedAttack] = []
    drawn_before: set[Attack] = set()
    scored_attacks = 0
    try:
        while pool and (room := budget.room(scored_attacks)):
            generation: list[Attack] = []
            if not strongest:
                generation += [attack for attack in dict.fromkeys(begin_with) if attack not in drawn_before][
                    :room
                ]
                drawn_before.update(generation)
            while len(generation) < room:
                attack = _draw_attack([entry.attack for entry in strongest], pool, rng, drawn_before)
                if attack is None:
                    break
                drawn_before.add(attack)
                generation.append(attack)
            if not generation:
                break
            below = strongest[-1].value if len(strongest) == KEPT else 1.0
            scored = bench.scores(trial, generation, below, budget.late)
            scored_attacks += len(scored)
            if not scored:
                break
            promising = sorted(scored, key=lambda pair: pair[1].value)[:KEPT]
            strongest += confirmed(trial, [pair for pair in promising if pair[1].value < below], bench, below)
            strongest.sort(key=lambda entry: (entry.value, len(entry.attack)))
            del strongest[KEPT:]
    except KeyboardInterrupt:
        budget.interrupted = True
        strongest.sort(key=lambda entry: (entry.value, len(entry.attack)))
    return (strongest[0] if strongest else None), scored_attacks


def confirmed(
    trial: Trial, scored: Sequence[Scored], bench: AttackScorer, below: float = 2.0
) -> list[ConfirmedAttack]:
    """Run attacks for twice the duration, and return those whose value stays below `below`."""
    later = bench.scores(trial.doubled(), [attack for attack, _ in scored], below)
    candidates = (ConfirmedAttack(*pair, doubled) for pair, (_, doubled) in zip(scored, later, strict=True))
    return [entry for entry in candidates if entry.value < below]


def _draw_attack(
    strongest: Sequence[Attack], pool: Sequence[Kind], rng: random.Random, drawn_before: set[Attack]
) -> Attack | None:
    """Return an admissible attack that was not scored before, or None if there seems to be none."""
    for _ in range(TRIES_MAX):
        if not strongest or rng.random() < FRESH:
            attack: Attack = tuple(elements.draw_element(pool, rng) for _ in range(rng.choice((1, 1, 2))))
        elif rng.random() < MIXES:
            attack = _combined(_parent(strongest, rng), _parent(strongest, rng), rng)
        else:
            attack = _changed(_parent(strongest, rng), pool, rng)
        if attack and attack not in drawn_before and elements.admissible(attack):
            return attack
    return None


def _parent(strongest: Sequence[Attack], rng: random.Random) -> Attack:
    """Return one of two at random, the better one: `kept` is sorted."""
    return strongest[min(rng.randrange(len(strongest)), rng.randrange(len(strongest)))]


def _combined(first: Attack, second: Attack, rng: random.Random) -> Attack:
    """Return about half the elements of each; none twice."""
    return tuple(dict.fromkeys(element for element in (*first, *second) if rng.random() < 0.6))


def _changed(attack: Attack, pool: Sequence[Kind], rng: random.Random) -> Attack:
    """Return the attack with an element changed, and now and then one more or one less."""
    variant = list(attack)
    dice = rng.random()
    if dice < 0.15 and len(variant) > 1:
        del variant[rng.randrange(len(variant))]
    elif dice < 0.3:
        variant.append(elements.draw_element(pool, rng))
    else:
        at = rng.randrange(len(variant))
        variant[at] = elements.changed(variant[at], rng)
    return tuple(variant)


def minimised(trial: Trial, strongest: ConfirmedAttack, bench: AttackScorer) -> ConfirmedAttack:
    """Return the attack without the elements that it does not need.

    It may need none. Elements are dropped one after the other while the value rises by no more than 5 % in
    all.
    """
    most = strongest.value * HOLDS
    while strongest.attack:
        attack = strongest.attack
        fewer = bench.scores(trial, [(*attack[:at], *attack[at + 1 :]) for at in range(len(attack))])
        hold = confirmed(trial, [pair for pair in fewer if pair[1].value <= most], bench)
        best = min(hold, key=lambda entry: entry.value, default=None)
        if best is None or best.value > most:
            break
        strongest = best
    return strongest
