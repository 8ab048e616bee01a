"""The range of rates, delays and queue depths that a passport's rows cover (RFC 9743 6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dragstrip import _core
from dragstrip.display.quantity import digits, milliseconds, plural, rate
from dragstrip.studies.passport import suite

_BDP = "bdp"


def covered(algorithm: str, ids: Iterable[str]) -> dict[str, Any] | None:
    """Return the least and the greatest rate, round trip and drop-tail queue of these rows of the suite.

    The keys are `rows` (their number), `rate_bps`, `rtt_ms` and `queue_bdp` (pairs); None without a row.
    """
    present = set(ids)
    options = [
        row.scenario.options
        for row in suite.rows(algorithm.partition(":")[0], suite.NAMES, quick=False)
        if row.id in present
    ]
    rates = [_core.parse_rate(str(each["rate"])) for each in options if each.get("rate")]
    round_trips = [_core.parse_time(str(each["rtt"])) / 1e6 for each in options if each.get("rtt")]
    queues = [
        float(str(each["queue"]).removesuffix(_BDP))
        for each in options
        if str(each.get("queue", "")).endswith(_BDP)
    ]
    if not (rates and round_trips and queues):
        return None
    return {
        "rows": len(options),
        "rate_bps": [min(rates), max(rates)],
        "rtt_ms": [min(round_trips), max(round_trips)],
        "queue_bdp": [min(queues), max(queues)],
    }


def text(ranges: Mapping[str, Any]) -> str:
    """Return the ranges in one sentence, such as `Rates of 30 kbit/s to 1 Gbit/s, round trips of ...`."""
    rates = " to ".join(rate(value) for value in ranges["rate_bps"])
    round_trips = " to ".join(milliseconds(value) for value in ranges["rtt_ms"])
    queues = " to ".join(digits(value) for value in ranges["queue_bdp"])
    return (
        f"Rates of {rates}, round trips of {round_trips}, drop-tail queues of {queues} BDP, in "
        f"{plural(ranges['rows'], 'row')}."
    )
