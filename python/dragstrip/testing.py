"""Assertions on races, for tests of an algorithm: `assert_share(result, "mine", at_least=0.4)`.

Each raises `AssertionError` with the figure, its interval over the repeats, and the command that replays the
race. The fixture `race` of the pytest plugin (`dragstrip.pytest_plugin`) is `dragstrip.race` that keeps the
report of a test that fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from dragstrip import _core
from dragstrip.display import quantity
from dragstrip.errors import BadInputError
from dragstrip.experiment.programs import Program, by_name
from dragstrip.interop.race import race
from dragstrip.results.intervals import interval

if TYPE_CHECKING:
    from dragstrip.experiment.quantities import RaceQuantities
    from dragstrip.interop.result import AlternativeResult, Result
    from dragstrip.results.document import FlowResult

Text = Callable[[float], str]


def assert_goodput(
    result: Result, name: str, *, at_least: str | float | None = None, at_most: str | float | None = None
) -> None:
    """Assert an alternative's median goodput: bounds are rates such as `"5mbit"`, or numbers in bit/s."""
    values = [flow.goodput_bps for flow in _alternative(result, name).flows]
    _judge(result, f"goodput of {name}", values, _rate(at_least), _rate(at_most), quantity.rate)


def assert_share(
    result: Result, name: str, *, at_least: float | None = None, at_most: float | None = None
) -> None:
    """Assert an alternative's share, from 0 to 1, of the bytes that arrived of all competing flows."""
    alternative = _alternative(result, name)
    competes = any(len(competition.flows) > 1 for run in result for competition in run.competing)
    values = [flow.share for flow in alternative.flows if flow.share is not None]
    if not values or alternative.share is None or not competes:
        raise BadInputError("result", name, "a flow that competes: race with together=True")
    if len(alternative.flows) > alternative.repeats:  # several flows of one alternative in each run
        values = [alternative.share]
    _judge(result, f"share of {name}", values, at_least, at_most, lambda value: f"{value:.3f}")


def assert_rtt(
    result: Result,
    name: str,
    *,
    at_least: str | float | None = None,
    at_most: str | float | None = None,
    percentile: int = 50,
) -> None:
    """Assert a percentile (5, 50 or 95) of an alternative's round-trip times.

    Bounds are times such as `"60ms"`, or numbers in milliseconds.
    """
    field = f"p{percentile}"
    if percentile not in (5, 50, 95):
        raise BadInputError("percentile", percentile, "5, 50 or 95")

    def of(flow: FlowResult) -> float | None:
        value: float | None = getattr(flow.rtt_ms, field)
        return value

    values = [value for flow in _alternative(result, name).flows if (value := of(flow)) is not None]
    text = f"RTT of {name} ({percentile} %)"
    _judge(result, text, values, _time_ms(at_least), _time_ms(at_most), quantity.milliseconds)


def assert_retransmits(result: Result, name: str, *, at_most: float) -> None:
    """Assert the share, from 0 to 1, of an alternative's segments that are retransmissions."""
    flows = _alternative(result, name).flows
    values = [flow.retransmits / flow.segments_sent for flow in flows if flow.segments_sent]
    _judge(result, f"retransmitted share of {name}", values, None, at_most, lambda value: f"{value:.4f}")


def assert_fair(result: Result, *, at_least: float) -> None:
    """Assert Jain's index of competing flows, from 1/n to 1, in each run."""
    values = [run.jain for run in result if len(run.flows) > 1 and run.jain is not None]
    if not values:
        raise BadInputError("result", None, "flows that compete: race with together=True")
    _judge(result, "Jain's index", values, at_least, None, lambda value: f"{value:.3f}")


def assert_harmless(
    algorithm: str | Program,
    beside: str = "cubic",
    *,
    at_most: float = 0.05,
    **options: Unpack[RaceQuantities],
) -> None:
    """Assert that a flow of `algorithm` harms a flow of `beside` no more than another of `beside` does.

    Harm is the part of its goodput alone that a flow loses beside another (Ware et al., Beyond Jain's
    Fairness Index, HotNets 2019). `at_most` is how much larger, from 0 to 1, the harm may be.
    `options` are those of `race`: the path, its duration, repeats.
    """
    if not _core.flow_word(beside).is_algorithm_alone:
        raise BadInputError("beside", beside, "an algorithm alone, without a count, an RTT or a start")
    named = {name: Program(name, text) for name, text in by_name(options.pop("programs", None)).items()}
    rival = named.get(beside, beside)
    subject = named.get(str(algorithm), algorithm)
    first_seed, repeats = options.get("seed") or 1, options.get("repeat") or 1
    options |= {"repeat": 1, "together": True}
    differences: list[float] = []
    for seed in range(first_seed, first_seed + repeats):  # the same seeds, also where a race draws nothing
        options["seed"] = seed
        alone, beside_own = race(rival, **options), race(_twice(rival), **options)
        mine = race(rival, subject, **options)
        goodput_bps = alone.flows[0].goodput_bps
        if goodput_bps <= 0:
            raise BadInputError("beside", beside, "an algorithm that moves data alone on this path")
        differences.append((beside_own.flows[0].goodput_bps - mine.flows[0].goodput_bps) / goodput_bps)
    text = f"harm of {algorithm} to {beside} beyond that of {beside} itself"
    _judge(mine, text, differences, None, at_most, lambda value: f"{value:.3f}")


def _twice(algorithm: str | Program) -> str | Program:
    """Return two flows of an algorithm."""
    if isinstance(algorithm, Program):
        return Program(f"{algorithm.name}*2", algorithm.text)
    return f"{algorithm}*2"


def _alternative(result: Result, name: str) -> AlternativeResult:
    return result[name]


def _rate(bound: str | float | None) -> float | None:
    return _parsed("bound", bound, _core.parse_rate)


def _time_ms(bound: str | float | None) -> float | None:
    return _parsed("bound", bound, lambda text: _core.parse_time(text) / 1e6)


def _parsed(field: str, bound: str | float | None, parse: Callable[[str], Any]) -> float | None:
    if bound is None or not isinstance(bound, str):
        return bound
    try:
        return float(parse(bound))
    except _core.InputError as error:
        raise BadInputError(field, bound, error.args[2]) from None


def _judge(
    result: Result,
    figure: str,
    values: list[float],
    at_least: float | None,
    at_most: float | None,
    text: Text,
) -> None:
    """Compare the median of a figure over flows and repeats with its bounds."""
    if at_least is None and at_most is None:
        raise BadInputError("at_least", None, "a bound: at_least or at_most")
    if not values:
        raise BadInputError("result", figure, "a figure that the result has: nothing was measured")
    middle, low, high = (float(end[0]) for end in interval(np.array([values], dtype=float)))
    missing = [
        f"{words} {text(bound)}"
        for words, bound in (("at least", at_least), ("at most", at_most))
        if bound is not None
    ]
    if (at_least is None or middle >= at_least) and (at_most is None or middle <= at_most):
        return
    spread = f" ({text(low)} to {text(high)} over {len(values)})" if len(values) > 1 else ""
    replay = f"\nReplay: {result.command}" if result.command else ""
    raise AssertionError(f"{figure}: {text(middle)}{spread}, wanted {' and '.join(missing)}{replay}")
