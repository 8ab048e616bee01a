"""The structure of documents from outside: the answers of workers, and `result.json`.

A shape is a check of one value (`Plain`), a list with the shape of its entries, or a table with the shapes of
its fields. Fields that a shape does not name are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from dragstrip.errors import BadInputError, Raw

TEXT_MAX = 10_000
"""Characters of a name or a reason, at most."""
COUNT_MAX = 2**53
"""Largest whole number that a column of floats holds exactly, as all smaller ones."""


@dataclass(frozen=True)
class Plain:
    """The check of a single value: `holds` tests it, `expected` describes it in an error message."""

    expected: str
    holds: Callable[[Any], bool]
    optional: bool = False
    """True for a field that may be missing."""


Shape: TypeAlias = Plain | Sequence["Shape"] | Mapping[str, "Shape"]


def _text(value: object) -> bool:
    if not isinstance(value, str) or len(value) > TEXT_MAX:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can write
        return False
    return True


def _number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= COUNT_MAX


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= COUNT_MAX


def optional(plain: Plain) -> Plain:
    """Return the same shape for a field that may be missing."""
    return replace(plain, optional=True)


TEXT = Plain(f"text of at most {TEXT_MAX} characters", _text)
NUMBER = Plain("a finite number", _number)
FIGURE = Plain("a finite number, or null", lambda value: value is None or _number(value))
COUNT = Plain("a whole number from 0 to 2^53", _count)
SEED = Plain(
    "a whole number from 0 to 2^64 - 1",
    lambda value: isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64,
)
ANY = Plain("a value", lambda _value: True)
OBJECT = Plain("an object", lambda value: isinstance(value, dict))
NAME = Plain("a text, or null", lambda value: value is None or _text(value))
RATES = Plain(
    "a list of positive numbers, or null",
    lambda value: (
        value is None or (isinstance(value, list) and all(_number(rate) and rate > 0 for rate in value))
    ),
)
SPANS = Plain(
    "an object of seconds by name",
    lambda value: isinstance(value, dict) and all(map(_text, value)) and all(map(_number, value.values())),
)

FIGURES = Plain(
    "an object of numbers, or null, by name",
    lambda value: (
        isinstance(value, dict)
        and all(map(_text, value))
        and all(figure is None or _number(figure) for figure in value.values())
    ),
)

TRANSFER = Plain(
    "an object with bytes, finished (true or false), completion_s and slowdown (a number or null)",
    lambda value: (
        isinstance(value, dict)
        and _count(value.get("bytes"))
        and isinstance(value.get("finished"), bool)
        and _number(value.get("completion_s"))
        and (value.get("slowdown") is None or _number(value["slowdown"]))
    ),
)

WITHOUT = Plain(
    "an object with the texts sentence and experiment, and repeats, if it has that, a whole number",
    lambda value: (
        isinstance(value, dict)
        and all(_text(value.get(name)) for name in ("sentence", "experiment"))
        and type(value.get("repeats", 1)) is int
    ),
)

_THREE = {"p5": FIGURE, "p50": FIGURE, "p95": FIGURE}
SUMMARY: Mapping[str, Shape] = {
    "duration_s": NUMBER,
    "jain": FIGURE,
    "flows": [
        {
            "flow": COUNT,
            "label": TEXT,
            "cc": TEXT,
            "start_s": optional(NUMBER),
            "stop_s": optional(NUMBER),
            "bytes_received": optional(COUNT),
            "goodput_bps": NUMBER,
            "throughput_bps_p50": FIGURE,
            "rtt_ms": _THREE,
            "retransmits": COUNT,
            "segments_sent": COUNT,
            "share": FIGURE,
            "timeouts": optional(FIGURE),
            "reductions": optional(FIGURE),
            "limited_s": optional(SPANS),
            "state_s": optional(SPANS),
            "bottleneck": optional(NAME),
            "queueing_ms": optional(FIGURE),
            "loss_link": optional(NAME),
            "video": optional(FIGURES),
            "transfer": optional(TRANSFER),
        }
    ],
    "competing": [
        {
            "flows": [COUNT],
            "jain": FIGURE,
            "max_min_bps": optional(RATES),
            "from_s": optional(FIGURE),
            "until_s": optional(FIGURE),
        }
    ],
    "why": [{"sentence": TEXT, "without": optional(WITHOUT)}],
    "probes": [{"target": TEXT, "rtt_ms": _THREE, "lost": COUNT}],
    "queues": [
        {
            "link": TEXT,
            "backlog_bytes": {"p50": FIGURE, "p95": FIGURE, "max": FIGURE},
            "dropped": COUNT,
            "marked": COUNT,
            "idle_s": optional(FIGURE),
        }
    ],
}
"""The shape of a run's summary (`measures.summarise`, docs/reference/result-json.md)."""

RESULT: Mapping[str, Shape] = {
    "runs": [{"recording": TEXT, "scenario": TEXT, "engine": TEXT, "seed": SEED, **SUMMARY}],
    "failed": [{"scenario": TEXT, "seed": SEED, "reason": TEXT}],
    "claims": [{"id": TEXT, "metric": TEXT, "unit": TEXT, "source": TEXT, "grade": TEXT, "reason": TEXT}],
    "flow_tables": [OBJECT],
}
"""The shape of `result.json`."""

EXPERIMENT: Mapping[str, Shape] = {"title": TEXT, "name": TEXT, "claims": [{"id": TEXT}]}
"""The shape of the fields of `experiment.json` that a report reads."""

PROVENANCE: Mapping[str, Shape] = {"engine": TEXT, "settings": OBJECT}
"""The shape of the fields of a recording's provenance that a report reads."""

SWEEP: Mapping[str, Shape] = {
    "experiment": OBJECT,
    "axes": [{"path": TEXT, "levels": [{"label": ANY, "set": OBJECT}]}],
    "repeat": COUNT,
    "seed": SEED,
    **dict.fromkeys(("engine", "name", "title", "version"), TEXT),
}
"""The shape of `sweep.json`."""


def expect(value: object, shape: Shape, source: str, field: str = "", *, partly: bool = False) -> None:
    """Raise `BadInputError` for the first value that does not match its shape.

    With `partly`, fields may be missing or null, because documents of earlier versions lack some.
    """
    if partly and value is None:
        return
    if isinstance(shape, Plain):
        if not shape.holds(value):
            raise BadInputError(field, _printable_value(value), shape.expected, source)
    elif isinstance(shape, Mapping):
        if not isinstance(value, dict):
            raise BadInputError(field, _printable_value(value), "an object", source)
        for name, inner in shape.items():
            if name in value:
                expect(value[name], inner, source, f"{field}.{name}".lstrip("."), partly=partly)
            elif not partly and not (isinstance(inner, Plain) and inner.optional):
                raise BadInputError(f"{field}.{name}".lstrip("."), None, "is missing", source)
    else:
        if not isinstance(value, list):
            raise BadInputError(field, _printable_value(value), "a list of objects", source)
        for number, entry in enumerate(value):
            expect(entry, shape[0], source, f"{field}[{number}]", partly=partly)


def _printable_value(value: object) -> object:
    return Raw(type(value).__name__) if isinstance(value, dict | list) else "null" if value is None else value
