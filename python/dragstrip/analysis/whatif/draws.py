"""Paths on which a candidate is run: the inferred one, and others that its intervals leave open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dragstrip.analysis.whatif.network import CandidatePath, CandidatePaths

SPREAD_MIN = 0.01
"""Half the interval of rate and RTT over which candidates are run, at least."""
SPREAD_MAX = 0.15
"""Likewise at most: a wide interval says that little is known, not that its far end is likely."""
BASES = (2, 3, 5)
FIELDS = (("rate_bps", "rate"), ("rtt_ms", "RTT"), ("buffer_bytes", "buffer"))


def draws(path: CandidatePaths, count: int) -> list[CandidatePath]:
    """Return the path, two opposite corners of its intervals, and then points spread evenly within them.

    These are Halton's sequence ("On the efficiency of certain quasi-random sequences of points", Numerische
    Mathematik 2, 1960), so that each rate has another round trip and buffer.
    """
    corners = [(1.0, 0.0, 1.0), (0.0, 1.0, 0.0)]
    inside = [tuple(_radical_inverse(number, base) for base in BASES) for number in range(1, count)]
    return [path.middle, *(_at(path, place) for place in [*corners, *inside][: count - 1])]


def _at(path: CandidatePaths, place: tuple[float, ...]) -> CandidatePath:
    """Return the path whose rate, round trip and buffer lie at these shares of their intervals."""
    middle = path.middle
    rate, rtt, buffer = (
        low + share * (high - low) for (low, high), share in zip(_box(path), place, strict=True)
    )
    policed = middle.discipline.startswith("police")
    return replace(middle, rate_bps=middle.rate_bps if policed else rate, rtt_ms=rtt, buffer_bytes=buffer)


def _box(path: CandidatePaths) -> Iterator[tuple[float, float]]:
    for field, name in FIELDS:
        value = float(getattr(path.middle, field))
        least = 2 * SPREAD_MIN if name == "buffer" else SPREAD_MIN
        ends = []
        for end, sign in (("low", -1), ("high", 1)):
            bound_path = path.alternatives.get(f"{name} {end}")
            bound = value if bound_path is None else float(getattr(bound_path, field))
            ends.append(value * (1 + sign * min(max(abs(bound - value) / value, least), SPREAD_MAX)))
        yield ends[0], ends[1]


def _radical_inverse(number: int, base: int) -> float:
    """Return a number's digits to this base, mirrored at the point."""
    share, inverse = 1.0, 0.0
    while number:
        number, digit = divmod(number, base)
        share /= base
        inverse += share * digit
    return inverse
