"""The scenario of an environment: words of `compare`, some of them ranges, with agents in the first flows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragstrip import _core
from dragstrip.errors import BadInputError, Raw
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import PlannedRun, expand
from dragstrip.experiment.types import Experiment

AGENT = "agent"
"""Name and label of the flow that learns."""
STAND_IN = {"log": [0.0]}
"""A model for the experiment, which takes no policy without one."""
SEED_MOST = 2**64 - 1
"""Largest seed of an episode."""
STEP_WORDS = "a time such as 10ms, round trips such as 1rtt, or ack"


@dataclass(frozen=True)
class Between:
    """Two words of `compare` between which an episode draws, such as `Between("1mbit", "100mbit", log=True)`.

    The draw is uniform, or with `log` uniform in the logarithm. A pair of words is a range, too.
    """

    low: Any
    high: Any
    log: bool = False


@dataclass(frozen=True)
class Knob:
    """A number of the scenario that follows a draw."""

    pointer: str
    low: float
    high: float
    draw: int
    whole: bool


@dataclass(frozen=True)
class Template:
    """A scenario with its ranges, the experiment that it comes from, and its policy."""

    scenario: dict[str, Any]
    knobs: list[Knob]
    ranges: dict[str, Between]
    policy: dict[str, Any]
    experiment: Experiment = field(repr=False)
    run: PlannedRun = field(repr=False)

    def drawn(self, fractions: Sequence[float]) -> dict[str, float]:
        """The value of each range's first number at these fractions, by the name of the option."""
        values: dict[str, float] = {}
        for knob in self.knobs:
            name, range_ = list(self.ranges.items())[knob.draw]
            fraction = fractions[knob.draw]
            if range_.log and knob.low > 0:
                value = knob.low * (knob.high / knob.low) ** fraction
            else:
                value = knob.low + (knob.high - knob.low) * fraction
            values.setdefault(name, value)
        return values

    def batch(self, count: int, threads: int, autoreset: str) -> _core.Episodes:
        """The core's environments of this scenario; raises `BadInputError` for one that is not valid."""
        try:
            return _core.Episodes(*self._drawn_from(), 0, count, threads, autoreset)
        except _core.InputError as error:
            raise refused(error) from None

    def group(self, agents: int, tick_ns: int) -> _core.Group:
        """The core's environment with agents in the first flows; raises `BadInputError` as `batch`."""
        try:
            return _core.Group(*self._drawn_from(), list(range(agents)), tick_ns)
        except _core.InputError as error:
            raise refused(error) from None

    def _drawn_from(self) -> tuple[dict[str, Any], list[tuple[str, float, float, int, bool]], list[bool]]:
        """The scenario, its knobs and, for each draw, whether it is uniform in the logarithm."""
        knobs = [(knob.pointer, knob.low, knob.high, knob.draw, knob.whole) for knob in self.knobs]
        return self.scenario, knobs, [range_.log for range_ in self.ranges.values()]


def refused(error: _core.InputError) -> BadInputError:
    """The error of a scenario, a step or a reset that the core refuses."""
    name, value, expected = error.args
    return BadInputError(name, Raw(value) if value else None, expected)


def refused_step(error: _core.InputError, has_episode: bool) -> BadInputError:
    """Return the error of a step that the core refuses; `has_episode` is True after the first reset."""
    if error.args[0] == "step" and not has_episode:
        return BadInputError("step", None, "no episode has begun: `reset` begins the first")
    return refused(error)


def numbers(actions: Any) -> NDArray[np.float64]:
    """Actions as one row of float64; raises `BadInputError` for what is no number or array of numbers."""
    try:
        return np.array(actions, np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise BadInputError("action", actions, "a number, or an array of numbers") from None


def checked_seed(seed: Any) -> int | None:
    """A seed, or None; raises `BadInputError` for another value than a whole number from 0 to 2^64 - 1."""
    if seed is None:
        return None
    if not isinstance(seed, int | np.integer) or not 0 <= seed <= SEED_MOST:
        raise BadInputError("seed", seed, f"a whole number from 0 to {SEED_MOST}")
    return int(seed)


@dataclass(frozen=True)
class AgentFlow:
    """An agent's flow."""

    word: str = ""
    """Its round-trip time and start as words of `compare`, such as `@80ms+2s`."""
    size: int | None = None
    """Bytes after which it ends; None: it sends until its stop."""
    stop_ns: int | None = None
    """Time at which it stops; None: the episode's end."""


def template(
    policy: Mapping[str, Any], rivals: Sequence[str], transfers: Sequence[AgentFlow], words: Any
) -> Template:
    """The scenario that the words describe, with the policy in the first flows and rivals beside them.

    Raises `BadInputError` for a word that is wrong, and for a range between whose ends more than numbers
    change.
    """
    document = {"policy": 1, **policy}
    text = json.dumps(document)
    ranges = {name: _range(name, value) for name, value in words.items() if _is_range(value)}
    low = {name: ranges[name].low if name in ranges else value for name, value in words.items()}
    flows = [*(f"{AGENT}{transfer.word}" for transfer in transfers), *rivals]
    experiment, run = _planned(text, flows, low)
    scenario = _trained(run.scenario, transfers)
    knobs: list[Knob] = []
    for draw, (name, range_) in enumerate(ranges.items()):
        _, other = _planned(text, flows, {**low, name: range_.high})
        before = len(knobs)
        _compare(scenario, _trained(other.scenario, transfers), "", (name, draw), knobs)
        if len(knobs) == before:
            expected = "two words that differ in a number of the scenario"
            raise BadInputError(name, f"{range_.low} to {range_.high}", expected)
        middle = _middle(range_.low, range_.high)
        if middle is not None:
            _, between = _planned(text, flows, {**low, name: middle})
            _expect_line(name, scenario, _trained(between.scenario, transfers), knobs[before:])
    return Template(scenario, knobs, ranges, document, experiment, run)


def step_of(step: Any) -> Any:
    """The step's length as a policy has it; raises `BadInputError` for another word.

    `10ms` and other times are steps of fixed length, `1rtt` and other multiples follow the round-trip time,
    and `ack` is from each ACK to the next.
    """
    if step == "ack":
        return "ack"
    text = str(step)
    if text.endswith("rtt"):
        try:
            return {"rtts": float(text.removesuffix("rtt"))}
        except ValueError:
            raise BadInputError("step", step, STEP_WORDS) from None
    try:
        return {"ms": _core.parse_time(text) / 1e6}
    except _core.InputError:
        raise BadInputError("step", step, STEP_WORDS) from None


def _planned(text: str, flows: Sequence[str], words: Mapping[str, Any]) -> tuple[Experiment, PlannedRun]:
    acting = json.dumps({**json.loads(text), "model": STAND_IN})
    programs = {**(words.get("programs") or {}), AGENT: acting}
    experiment = compare(flows, together=True, **{**words, "programs": programs})
    runs = expand(experiment)
    if len(runs) != 1:
        raise BadInputError("repeat", len(runs), "1: an environment draws its episodes itself")
    scenario = {**runs[0].scenario, "programs": {**runs[0].scenario["programs"], AGENT: text}}
    return experiment, replace(runs[0], scenario=scenario, parsed=None)


def _trained(scenario: Mapping[str, Any], transfers: Sequence[AgentFlow]) -> dict[str, Any]:
    """The scenario without what only a report needs: pings and tables of every interval."""
    document: dict[str, Any] = json.loads(json.dumps(scenario))
    document["probes"] = []
    document["record"] = {**document["record"], "interval_ns": document["duration_ns"], "rtts": False}
    for flow, transfer in zip(document["flows"], transfers, strict=False):
        if transfer.size is not None:
            if not isinstance(transfer.size, int) or isinstance(transfer.size, bool) or transfer.size < 1:
                raise BadInputError("size", transfer.size, "a number of bytes, at least 1")
            flow["application"] = {"kind": "bulk", "bytes": transfer.size}
        if transfer.stop_ns is not None:
            if transfer.stop_ns <= flow.get("start_ns", 0):
                raise BadInputError("stop", f"{transfer.stop_ns / 1e9:g}s", "a time after the agent's start")
            flow["stop_ns"] = transfer.stop_ns
    return document


def _is_range(value: Any) -> bool:
    return isinstance(value, Between) or (isinstance(value, tuple) and len(value) == 2)


def _range(name: str, value: Any) -> Between:
    if name in ("seed", "repeat", "flows", "together"):
        raise BadInputError(name, str(value), "one value: it has no range")
    return value if isinstance(value, Between) else Between(*value)


def _middle(low: Any, high: Any) -> str | None:
    """A word between two of them: the middle of the numbers with one unit; None if that cannot be told."""
    first, second = str(low), str(high)
    start = len(first) - len(first.lstrip("0123456789."))
    other = len(second) - len(second.lstrip("0123456789."))
    if not start or not other or first[start:] != second[other:]:
        return None
    return f"{(float(first[:start]) + float(second[:other])) / 2:.6f}{first[start:]}"


def _compare(low: Any, high: Any, pointer: str, draw: tuple[str, int], knobs: list[Knob]) -> None:
    """Adds a knob for each number that differs; raises `BadInputError` for anything else that does."""
    if isinstance(low, dict) and isinstance(high, dict) and low.keys() == high.keys():
        for key, entry in low.items():
            _compare(entry, high[key], f"{pointer}/{key}", draw, knobs)
    elif isinstance(low, list) and isinstance(high, list) and len(low) == len(high):
        for number, entry in enumerate(low):
            _compare(entry, high[number], f"{pointer}/{number}", draw, knobs)
    elif low != high and not pointer.endswith(("/name", "/label")):
        name, number = draw
        if not (_is_number(low) and _is_number(high)):
            expected = "two words that differ in numbers alone, such as two limits of one queue"
            raise BadInputError(name, f"{low} and {high}", expected)
        if not pointer.startswith("/links/"):
            raise BadInputError(name, f"{low} and {high}", "one value: only numbers of links have ranges")
        whole = isinstance(low, int) and isinstance(high, int)
        if any(knob.pointer == pointer for knob in knobs):
            raise BadInputError(name, "a range", "another option without one: both set the same number")
        knobs.append(Knob(pointer, float(low), float(high), number, whole))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _expect_line(name: str, low: Any, between: Any, knobs: Sequence[Knob]) -> None:
    """Raises `BadInputError` where a number half-way is not the mean of both ends."""
    for knob in knobs:
        value = between
        for part in knob.pointer.split("/")[1:]:
            value = value[int(part)] if isinstance(value, list) else value[part]
        mean = (knob.low + knob.high) / 2
        if not math.isclose(value, mean, rel_tol=1e-3, abs_tol=1.0 if knob.whole else 1e-9):
            expected = f"a range in which {knob.pointer} grows evenly"
            raise BadInputError(name, f"{value} half-way", expected)
