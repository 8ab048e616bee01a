"""Verdicts in sentences."""

from __future__ import annotations

import math
from collections.abc import Callable

from dragstrip.results.standings import quantity
from dragstrip.whatif import identify as identifying
from dragstrip.whatif.fit import EXPLAINED, NOT_EXPLAINED
from dragstrip.whatif.identify import Answer
from dragstrip.whatif.verdict import Prediction, Verdict

WIDE = 0.3
"""A figure whose range is wider than this share of it is told as a range."""


def wide(found: tuple[float, float, float]) -> bool:
    """Return whether a figure's range says more than the figure."""
    value, low, high = found
    return high - low > WIDE * abs(value)


def verdict_sentence(verdict: Verdict) -> str:
    """Return what somebody else can be told: path, what was, how far that is understood, what would be."""
    said = [_was(verdict), _explained(verdict)]
    if verdict.refused:
        reason = f": {verdict.reasons[0]}" if verdict.reasons else ""
        said.append(f"What another congestion control would do here cannot be said{reason}.")
    elif len(verdict.predictions) > 1 or verdict.changed:
        said.append(_would(verdict))
    return " ".join(said)


def _was(verdict: Verdict) -> str:
    capture, path = verdict.capture, verdict.known.middle
    trips = capture.rtt_quantiles_ms
    delay = "" if trips is None else f" with a median round trip of {quantity.milliseconds(trips[1])}"
    policer = verdict.flow.path.policer_rate_bps.value
    through = f"a path of {quantity.rate(path.rate_bps)} and {quantity.milliseconds(path.rtt_ms)}"
    if verdict.flow.path.queue == "policer" and policer is not None:
        through = f"a policer of {quantity.rate(policer)} at {quantity.milliseconds(path.rtt_ms)}"
    if path.bucket_bytes:
        through = f"a shaper of {quantity.rate(path.rate_bps)} and {quantity.milliseconds(path.rtt_ms)}"
    moved = quantity.rate(capture.goodput_bps)
    return f"{verdict.algorithm} moved {moved}{delay} through {through} (rate of IP packets)."


def _explained(verdict: Verdict) -> str:
    fit = verdict.fit
    rtt = "" if fit.rtt is None else f", median RTT by {_share(fit.rtt[1])}"
    errors = f"a run of it misses goodput by {_share(fit.goodput)}{rtt}"
    if fit.grade == EXPLAINED:
        return f"That path explains the capture: {errors}."
    if fit.grade == NOT_EXPLAINED:
        return f"That path does not explain the capture: {errors}."
    return f"That path explains the capture roughly: {errors}."


def _share(value: float) -> str:
    return quantity.percent(abs(value))


def _would(verdict: Verdict) -> str:
    changed = "" if not verdict.changed else f" with {_changes(verdict)}"
    return f"There{changed}, " + quantity.listing([_one(one) for one in verdict.predictions[:5]]) + "."


def _changes(verdict: Verdict) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in verdict.changed.items())


def _one(one: Prediction) -> str:
    goodput, rtt = one.of("goodput_bps"), one.of("rtt_ms_p50")
    delay = "" if rtt is None else f" at {_told(rtt, quantity.milliseconds)}"
    rate = "–" if goodput is None else _told(goodput, quantity.rate)
    return f"{one.algorithm} would have {rate}{delay}"


def _told(found: tuple[float, float, float], text: Callable[[float], str]) -> str:
    """Return a figure, or its range if that is wide."""
    value, low, high = found
    return f"{text(low)} to {text(high)}" if high - low > WIDE * abs(value) else text(value)


def answer(found: Answer) -> str:
    """Return which congestion control was identified, in one sentence."""
    alike = f" ({quantity.listing(list(found.alike))} would do the same here)" if found.alike else ""
    if found.kind == identifying.GIVEN:
        return f"{found.names[0]}{alike}, confidence {math.floor(100 * found.confidence)} %: {found.reason}."
    if found.kind == identifying.UNCERTAIN:
        return f"One of {', '.join(found.names)}: {found.reason}."
    if found.kind == identifying.NONE:
        return f"Unknown: {found.reason}."
    return f"Cannot tell: {found.reason}."
