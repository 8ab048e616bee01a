"""An attack from its options to its document and the experiments that replay it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from dragstrip import _core
from dragstrip.display.progress import ProgressMessages
from dragstrip.errors import BadInputError, nearest
from dragstrip.experiment.bottleneck import parsed
from dragstrip.experiment.comparison import path_tables
from dragstrip.experiment.programs import expect_models
from dragstrip.io import toml
from dragstrip.io.files import expect_folder
from dragstrip.runs import worker_count
from dragstrip.studies.attack import elements, goals, search
from dragstrip.studies.attack.elements import Attack
from dragstrip.studies.attack.goals import STARVED, Goal, Score, Trial
from dragstrip.studies.attack.scene import VICTIM

VERSION = 1
CLAIM = "victim"
"""The claim of a find's experiment that holds its figure."""
DOCUMENT, PAGE = "attack.json", "attack.md"
NO_ATTACK = "none"
"""The vector of what happens without an attack."""
PATH_FIGURES = ("rate", "rtt", "queue")
"""Options of a named path that describe an attack's bottleneck."""
DURATION_MIN_MS = 2000
"""Shortest run in ms: what happens in less is slow start."""
SEARCHED = 0.95
"""Share of the time that is planned for; the last find is minimised in the rest."""
BITS_MAX = 20e9
"""Bits that a run may carry: two million full frames, half a second or so."""
WORKERS_MAX = 1024


@dataclass(frozen=True)
class SearchRequest:
    """Search request: the algorithm, goals and vectors, and the path if not each goal's own."""

    algorithm: str
    goals: tuple[Goal, ...]
    vectors: tuple[str, ...]
    path: Mapping[str, str]
    """`rate`, `rtt`, `queue`, `duration` and `other_rtt`, where they are given."""
    seed: int
    evaluations: int | None
    seconds: float | None
    programs: Mapping[str, str]

    def trial(self, goal: Goal) -> Trial:
        """Return the goal on the path that is asked for."""
        options: dict[str, Any] = dict(self.path)
        return Trial(goal, self.algorithm, replace(goal.path, **options), self.seed, self.programs)


@dataclass(frozen=True)
class Find:
    """An attack that works, minimised, and what it does in twice the time."""

    name: str
    vector: str
    attack: Attack
    score: Score
    doubled: Score

    @property
    def value(self) -> float:
        """The weaker value of both runs."""
        return max(self.score.value, self.doubled.value)

    @property
    def starved(self) -> bool:
        """True when the victim has less than a tenth of its share, also in a run of twice the duration."""
        return self.value < STARVED

    @property
    def words(self) -> str:
        """Description of the attack."""
        return (
            "; ".join(element.words(self.score.other_flow is not None) for element in self.attack)
            or "no attack"
        )


def search_request(
    algorithm: str,
    goal_names: Sequence[str],
    vectors: Sequence[str],
    path: Mapping[str, str | None],
    seed: int,
    evaluations: int | None,
    seconds: float | None,
    programs: Mapping[str, str],
) -> SearchRequest:
    """Return what is searched. Raises `BadInputError` for what cannot be."""
    expect_models(programs)
    chosen_goals = tuple(
        goals.goal_named(_valid_word("--goal", name, [goal.name for goal in goals.GOALS]))
        for name in goal_names
    )
    if other_rtt := path.get("other_rtt"):
        parsed("--other-rtt", other_rtt, _core.parse_time)
        chosen_goals = chosen_goals or tuple(goal for goal in goals.GOALS if goal.two_flows)
    chosen_vectors = tuple(_valid_word("--with", vector, elements.VECTORS) for vector in vectors)
    path_words = {name: value for name, value in path.items() if value is not None}
    request = SearchRequest(
        _plain(algorithm, programs),
        chosen_goals or goals.GOALS,
        chosen_vectors,
        path_words,
        seed,
        evaluations,
        seconds,
        programs,
    )
    searches = _searches(request)
    if not searches:
        value = ", ".join(goal.name for goal in request.goals)
        expected = "starvation or neighbour beside --with rtt, which needs two flows"
        raise BadInputError("--goal", value, expected, "command line")
    if evaluations is not None and evaluations < len(searches):
        raise BadInputError(
            "--evaluations", evaluations, f"at least {len(searches)}, one a search", "command line"
        )
    if "other_rtt" in path_words and not all(goal.two_flows for goal in request.goals):
        value = ", ".join(goal.name for goal in request.goals if not goal.two_flows)
        expected = "starvation or neighbour beside --other-rtt, which needs two flows"
        raise BadInputError("--goal", value, expected, "command line")
    for goal in request.goals:
        trial = request.trial(goal)
        if trial.path.duration_ms < DURATION_MIN_MS:
            expected = f"at least {DURATION_MIN_MS // 1000}s"
            raise BadInputError("--duration", trial.path.duration, expected, "command line")
        if trial.path.rate_bps * trial.path.duration_ms / 1e3 > BITS_MAX:
            longest = max(DURATION_MIN_MS, round(BITS_MAX / trial.path.rate_bps * 1e3))
            expected = f"runs of at most {BITS_MAX / 1e9:g} Gbit, at this rate {longest / 1e3:g} s"
            name = "--rate" if longest == DURATION_MIN_MS else "--duration"
            raise BadInputError(name, trial.path.words[name], expected, "command line")
        _check(trial)
    return request


def on_path(name: str, options: Mapping[str, str | None]) -> tuple[dict[str, str | None], list[str]]:
    """Return the options over a named path's figures, and the names of figures that an attack does not take.

    Raises `BadInputError` for an unknown path, and for one whose bottleneck has no constant rate.
    """
    table = path_tables(name)["path"]
    if lacking := [figure for figure in ("rate", "rtt") if figure not in table]:
        expected = f"a path with a constant rate and a round-trip time (it has no {' and no '.join(lacking)})"
        raise BadInputError("--path", name, expected, "command line")
    figures = {figure: table[figure] for figure in PATH_FIGURES if figure in table}
    options_set = {option: value for option, value in options.items() if value is not None}
    return figures | options_set, [figure for figure in table if figure not in PATH_FIGURES]


def _valid_word(option: str, word: str, valid_words: Sequence[str]) -> str:
    if word in valid_words:
        return word
    raise BadInputError(
        option, word, f"one of {', '.join(valid_words)}{nearest(word, valid_words)}", "command line"
    )


def _plain(algorithm: str, programs: Mapping[str, str]) -> str:
    """Return the algorithm with its options; raises `BadInputError` for a count, a round trip or a start."""
    algorithm_names = [*_core.ALGORITHMS, *_core.QUIC, *programs]
    try:
        word = _core.flow_word(algorithm)
    except _core.InputError as error:
        raise BadInputError("ALGORITHM", algorithm, error.args[2], "command line") from None
    if word.name not in algorithm_names and "/" not in word.name:  # the core judges the words of QUIC
        expected = f"one of {', '.join(algorithm_names)}{nearest(word.name, algorithm_names)}"
        raise BadInputError("ALGORITHM", word.name, expected, "command line")
    if not word.is_algorithm_alone:
        expected = "an algorithm with its options alone: the attack decides on flows, RTT and start"
        raise BadInputError("ALGORITHM", algorithm, expected, "command line")
    return algorithm


OPTIONS = (("rate", "--rate"), ("queue", "--queue"), ("duration", "--duration"), ("delay", "--rtt"))
"""Parts of a scenario's field, and the option that it comes from."""


def _check(trial: Trial) -> None:
    """Raise `BadInputError`, in words of the command line, for a path or algorithm that cannot be run."""
    try:
        goals.planned(trial.scene(()))
    except BadInputError as error:
        if error.source:
            raise
        name = next((option for part, option in OPTIONS if part in error.field), "ALGORITHM")
        text = trial.algorithm if name == "ALGORITHM" else trial.path.words[name]
        raise BadInputError(name, text, error.expected, "command line") from None


def _searches(request: SearchRequest) -> list[tuple[Goal, str]]:
    """Return each goal with each of its vectors; several vectors are mixed at the end."""
    searches: list[tuple[Goal, str]] = []
    for goal in request.goals:
        vectors = request.vectors or elements.VECTORS
        fit = [vector for vector in vectors if elements.kinds([vector], goal.two_flows)]
        mixed = [elements.MIXED] if len(fit) > 1 else []
        searches += [(goal, vector) for vector in dict.fromkeys([*fit, *mixed])]
    return searches


def attack(
    request: SearchRequest, workers: int | None = None, quiet: bool = False
) -> tuple[dict[str, Any], list[Find]]:
    """Search, minimise and confirm; return the document and the finds in its order.

    Ctrl-C ends it with the finds so far, and the document is marked as partial; the best attack of the search
    that was interrupted is not minimised. Raises `KeyboardInterrupt` where nothing was found yet.
    """
    searches = _searches(request)
    budgets = _budgets(request, len(searches))
    finds_by_goal: dict[str, list[Find]] = {goal.name: [] for goal in request.goals}
    without: dict[str, search.ConfirmedAttack] = {}
    nothing: list[dict[str, Any]] = []
    scored_attacks = 0
    partial = False
    messages = ProgressMessages()
    bench = search.AttackScorer(worker_count(workers, WORKERS_MAX))
    try:
        for at, (goal, vector) in enumerate(searches):
            trial, mine = request.trial(goal), finds_by_goal[goal.name]
            if not quiet:
                messages.doing(_progress_text(goal, vector, at, len(searches), bench))
            if goal.name not in without:
                (bare,) = search.confirmed(trial, bench.scores(trial, [()]), bench)
                without[goal.name] = bare
                if bare.value <= goal.find_max:
                    mine.append(_find(goal, NO_ATTACK, bare))
            budget = next(budgets)
            best, scored = _best(request, trial, vector, budget, bench, mine)
            scored_attacks += scored
            partial, strongest = budget.interrupted, best
            if best is not None and not partial:
                try:
                    strongest = search.minimised(trial, best, bench)
                except KeyboardInterrupt:
                    partial = True
            if strongest is not None and _counts(strongest, without[goal.name], mine, goal):
                _keep(mine, _find(goal, _vector(vector, strongest), strongest))
            elif not partial:
                value = None if best is None else best.value
                nothing.append({"goal": goal.name, "vector": vector, "value": value})
            if partial:
                break
    except KeyboardInterrupt:
        partial = True
    finally:
        messages.close()
    finds = [find for goal in request.goals for find in finds_by_goal[goal.name]]
    if partial and not finds:
        raise KeyboardInterrupt
    return {**_document(request, finds, nothing, without, scored_attacks), "partial": partial}, finds


def _budgets(request: SearchRequest, searches: int) -> Iterator[search.Budget]:
    """Yield what each search may take when it begins: an equal share of what is left."""
    if request.evaluations is not None:
        share, more = divmod(request.evaluations, searches)
        yield from (search.Budget(evaluations=share + (at < more)) for at in range(searches))
        return
    until = time.monotonic() + (request.seconds or 0.0) * SEARCHED
    for at in range(searches):
        yield search.Budget(seconds=(until - time.monotonic()) / (searches - at))


def _best(
    request: SearchRequest,
    trial: Trial,
    vector: str,
    budget: search.Budget,
    bench: search.AttackScorer,
    mine: Sequence[Find],
) -> tuple[search.ConfirmedAttack | None, int]:
    """Return the best attack of a vector; all vectors mixed begin with the goal's finds so far."""
    mixed = vector == elements.MIXED
    vectors = (request.vectors or elements.VECTORS) if mixed else [vector]
    begin = [find.attack for find in mine if find.attack] if mixed else []
    pool = elements.kinds(vectors, trial.goal.two_flows, trial.path.other_rtt is not None)
    return search.search(trial, vector, pool, budget, bench, begin)


def _progress_text(
    goal: Goal, vector: str, at: int, of: int, bench: search.AttackScorer
) -> Callable[[], str]:
    return lambda: f"{goal.name}, {vector}: search {at + 1} of {of}, {bench.scored} attacks scored"


def _goal(find: Find) -> Goal:
    return goals.goal_named(find.name.partition("-")[0])


def _counts(
    strongest: search.ConfirmedAttack, bare: search.ConfirmedAttack, mine: Sequence[Find], goal: Goal
) -> bool:
    """Return whether an attack is worth telling: it works, it needs its elements, and it is new."""
    if not strongest.attack or strongest.value > min(goal.find_max, bare.value / search.HOLDS):
        return False
    return all(find.attack != strongest.attack for find in mine)


def _vector(searched: str, confirmed: search.ConfirmedAttack) -> str:
    """Return the vector of an attack: of a mixed search, too, the one that all its elements have."""
    vectors = {element.kind.vector for element in confirmed.attack}
    return vectors.pop() if len(vectors) == 1 else searched


def _keep(mine: list[Find], find: Find) -> None:
    """Add a find; of two with the same name the stronger one stays."""
    position = next((at for at, entry in enumerate(mine) if entry.name == find.name), None)
    if position is None:
        mine.append(find)
    elif find.value < mine[position].value:
        mine[position] = find


def _find(goal: Goal, vector: str, confirmed: search.ConfirmedAttack) -> Find:
    return Find(f"{goal.name}-{vector}", vector, confirmed.attack, confirmed.score, confirmed.doubled)


def _document(
    request: SearchRequest,
    finds: Sequence[Find],
    nothing: list[dict[str, Any]],
    without: Mapping[str, search.ConfirmedAttack],
    scored_attacks: int,
) -> dict[str, Any]:
    return {
        "version": VERSION,
        "algorithm": request.algorithm,
        "seed": request.seed,
        "evaluations": scored_attacks,
        "goals": [
            _told_goal(request.trial(goal), without[goal.name].score)
            for goal in request.goals
            if goal.name in without
        ],
        "finds": [_told_find(find) for find in finds],
        "nothing": nothing,
    }


def _told_goal(trial: Trial, bare: Score) -> dict[str, Any]:
    goal, path = trial.goal, trial.path
    return {
        "name": goal.name,
        "about": goal.about,
        "reference": goal.reference,
        "unit": goal.unit,
        "rate": path.rate,
        "rtt": path.rtt,
        "other_rtt": path.other_rtt,
        "queue": path.queue,
        "duration": path.duration,
        "without": _figures(bare),
    }


def _told_find(find: Find) -> dict[str, Any]:
    goal = _goal(find)
    return {
        "name": find.name,
        "goal": goal.name,
        "vector": find.vector,
        "unit": goal.unit,
        **_figures(find.score),
        "starved": find.starved if goal.two_flows else None,
        "doubled": _figures(find.doubled),
        "elements": [element.document(goal.two_flows) for element in find.attack],
        "words": find.words,
        "replay": f"dragstrip run {find.name}.toml",
    }


def _figures(score: Score) -> dict[str, Any]:
    return {
        "value": score.value,
        "figure": score.figure,
        "reference": score.reference,
        "left_mbps": score.available,
        "other_mbps": score.other_flow,
    }


# --- experiments ------------------------------------------------------------------------------


def experiment(trial: Trial, find: Find) -> dict[str, Any]:
    """Return the experiment that replays a find; its claim holds the victim's figure."""
    goal = trial.goal
    content = trial.scene(find.attack).content()
    head = {
        "title": f"{trial.algorithm}: {find.words}",
        "source": "dragstrip attack",
        "description": f"The goal was the {goal.about}. The victim got {goals.score_text(goal, find.score)}; "
        f"in a run of twice the duration {goals.score_text(goal, find.doubled)}. "
        f"Compared with: {goal.reference}.",
    }
    claim: dict[str, Any] = {
        "id": CLAIM,
        "source": f"dragstrip attack, seed {trial.seed}",
        "metric": goal.metric,
        "where": {"label": VICTIM},
        "value": find.score.figure,
        "unit": goal.unit,
        "tolerance": "5%",
    }
    if after := trial.claim_after_ms(find.attack):
        claim["after"] = f"{after:g}ms"
    return {**head, **content, "claims": [claim]}


def files(request: SearchRequest, finds: Sequence[Find]) -> dict[str, str]:
    """Return the texts of all finds' experiments, and of the recorded links beside them, by file name."""
    texts: dict[str, str] = {}
    for find in finds:
        trial = request.trial(_goal(find))
        texts[f"{find.name}.toml"] = toml.toml_text(experiment(trial, find))
        for name, times in trial.scene(find.attack).traces().items():
            texts[name] = "".join(f"{time}\n" for time in times)
    return texts


def expect_free(folder: FilePath) -> None:
    """Raise `BadInputError`, before anything is run, unless the finds can be written into this folder."""
    expect_folder("--out", folder)
    if folder.exists() and any(folder.iterdir()):
        expected = "an empty folder, or one that does not exist"
        raise BadInputError("--out", str(folder), expected, "command line")
