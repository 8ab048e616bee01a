"""Verdicts in sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from dragstrip.analysis.whatif import identify as identifying
from dragstrip.analysis.whatif.fit import EXPLAINED, NOT_EXPLAINED
from dragstrip.analysis.whatif.identify import Answer
from dragstrip.analysis.whatif.verdict import Prediction, Verdict
from dragstrip.display import quantity

WIDE = 0.3
"""A figure whose range is wider than this share of it is told as a range."""


def wide(interval: tuple[float, float, float]) -> bool:
    """Return whether a figure's range says more than the figure."""
    value, low, high = interval
    return high - low > WIDE * abs(value)


def verdict_sentence(verdict: Verdict) -> str:
    """Return what somebody else can be told: path, what was, how far that is understood, what would be."""
    sentences = [_was(verdict), _explained(verdict)]
    if verdict.refused:
        reason = f": {verdict.reasons[0]}" if verdict.reasons else ""
        sentences.append(f"What another congestion control would do here cannot be said{reason}.")
    elif len(verdict.predictions) > 1 or verdict.changed:
        sentences.append(_would(verdict))
    return " ".join(sentences)


def _was(verdict: Verdict) -> str:
    capture, path = verdict.capture, verdict.network.middle
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
    where = "There" if not verdict.changed else f"On {raced_path(verdict.changed, 'that path')}"
    return (
        f"{where}, "
        + quantity.listing([_prediction_clause(prediction) for prediction in verdict.predictions[:5]])
        + "."
    )


def raced_path(changed: Mapping[str, object], inferred: str) -> str:
    """Return the path of the races in words: `inferred`, or a path by name, and what else is changed."""
    path = f"path {changed['path']}" if "path" in changed else inferred
    changes = ", ".join(f"{name.replace('_', ' ')} {changed[name]}" for name in changed if name != "path")
    return f"{path} with {changes}" if changes else path


def _prediction_clause(prediction: Prediction) -> str:
    goodput, rtt = prediction.of("goodput_bps"), prediction.of("rtt_ms_p50")
    delay = "" if rtt is None else f" at {_figure_or_range(rtt, quantity.milliseconds)}"
    rate = "–" if goodput is None else _figure_or_range(goodput, quantity.rate)
    return f"{prediction.algorithm} would have {rate}{delay}"


def _figure_or_range(interval: tuple[float, float, float], text: Callable[[float], str]) -> str:
    """Return a figure, or its range if that is wide."""
    value, low, high = interval
    return f"{text(low)} to {text(high)}" if high - low > WIDE * abs(value) else text(value)


def answer(result: Answer) -> str:
    """Return which congestion control was identified, in one sentence."""
    alike = f" ({quantity.listing(list(result.alike))} would do the same here)" if result.alike else ""
    if result.kind == identifying.GIVEN:
        return (
            f"{result.names[0]}{alike}, confidence {math.floor(100 * result.confidence)} %: {result.reason}."
        )
    if result.kind == identifying.UNCERTAIN:
        return f"One of {', '.join(result.names)}: {result.reason}."
    if result.kind == identifying.NONE:
        return f"Unknown: {result.reason}."
    return f"Cannot tell: {result.reason}."
