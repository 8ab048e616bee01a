"""Chapter exits: how a flow leaves slow start, too early, well or too late.

Windows are read from the phases of a run that records every ACK (docs/reference/result-json.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from dragstrip import _core
from dragstrip.model.scenario.paths import FRAME_BYTES
from dragstrip.studies.passport.chapters.limited import RECORD, stays_of
from dragstrip.studies.passport.figures import SLOWDOWN_P50, UTILISATION, subjects
from dragstrip.studies.passport.rows import (
    LARGE_SOCKETS,
    PLACE,
    PassportPath,
    PassportRow,
    RowFigure,
    RowRule,
    Scenario,
    Summary,
    rated,
)

NAME = "exits"
TITLE = "leaving slow start"
ROUNDS = 40
"""Round trips of a run, at least."""
LEAST_S = 3.0
PROMPT = RowRule("K", "RFC 9406 (HyStart++): leave before loss, and not too early; RFC 9743 7.8")
IDEAL = RowRule("K", "RFC 6928, RFC 9406: slow start without loss and without a stay below the rate")


def _path_packets(scenario: Scenario) -> float:
    """Full frames that the empty path holds."""
    rate_bps = _core.parse_rate(str(scenario.options["rate"]))
    rtt_ns = _core.parse_time(str(scenario.options["rtt"]))
    return rate_bps * rtt_ns / 1e9 / 8 / FRAME_BYTES


def _exit(summary: Summary, scenario: Scenario) -> Mapping[str, Any] | None:
    """The stay with which the connection begins, slow start by whatever name; None without a sample.

    It lasts to the run's end if nothing ended it.
    """
    return next(iter(stays_of(summary, scenario)), None)


def _window(summary: Summary, scenario: Scenario) -> float | None:
    stay = _exit(summary, scenario)
    segment = FRAME_BYTES - 66  # headers of Ethernet, IP and TCP with timestamps
    return None if stay is None else stay["last"]["cwnd_bytes"] / segment / _path_packets(scenario)


def _time(summary: Summary, scenario: Scenario) -> float | None:
    stay, flow = _exit(summary, scenario), subjects(summary, scenario)[0]
    rtt_s = _core.parse_time(str(scenario.options["rtt"])) / 1e9
    return None if stay is None else (stay["until_s"] - flow["start_s"]) / rtt_s


def _lost(summary: Summary, scenario: Scenario) -> float | None:
    return float(subjects(summary, scenario)[0]["retransmits"] / _path_packets(scenario))


WINDOW = RowFigure(
    "window",
    "BDP",
    None,
    _window,
    "flows[0].phases[0]: last cwnd_bytes, over rate x rtt",
    of_phases=True,
    no_measure="read from phases, which measures do not have",
)
TIME = RowFigure(
    "time",
    "round trips",
    None,
    _time,
    "flows[0].phases[0]: until_s less start_s, over --rtt",
    of_phases=True,
    no_measure="read from phases, which measures do not have",
)
LOST = RowFigure(
    "lost",
    "BDP",
    False,
    _lost,
    "flows[0].retransmits over the packets of rate x rtt",
    0.01,
    no_measure="in bandwidth-delay products, which measures do not have",
)


def rows() -> Iterator[PassportRow]:
    """The rows of the chapter."""
    for mbit in (10, 50, 200):
        for rtt_ms in (20, 80, 600):
            for bdp in (0.25, 1, 4):
                duration_s = max(LEAST_S, ROUNDS * rtt_ms / 1e3)
                path = PassportPath(mbit, rtt_ms, bdp, duration_s).with_(sysctl=LARGE_SOCKETS)
                flow = {"cc": PLACE}
                yield from rated(
                    NAME,
                    f"{mbit}-{rtt_ms}-{bdp:g}bdp",
                    f"the first {duration_s:g} s at {path.name}",
                    replace(path.scenario(flow), repeats=1, fields={"record": RECORD}),
                    (
                        WINDOW,
                        RowRule("R", "early below 0.5 BDP; late, with loss, above the BDP and the buffer"),
                    ),
                    (TIME, RowRule("R", "RFC 6928: a window of 10 packets doubles each round trip")),
                    (LOST, PROMPT),
                    (UTILISATION, PROMPT),
                    quick=(mbit, rtt_ms) == (50, 80) and bdp >= 1,
                )
    yield from _delayed()
    for size in (1, 10, 100):
        path = PassportPath(50, 80, 1, 60)
        yield from rated(
            NAME,
            f"file-{size}mb",
            f"{size} MB at {path.name}",
            path.scenario({"cc": PLACE, "bytes": f"{size}mb"}),
            (SLOWDOWN_P50, IDEAL),
            quick=size == 10,
        )


def _delayed() -> Iterator[PassportRow]:
    """Yield the rows in which HyStart's signals decide: packets held in groups, a long path."""
    held = PassportPath(100, 80, 1, 6).with_(netem="slot 10ms 10ms", sysctl=LARGE_SOCKETS)
    paced = {"hosts": {"s1": {"preset": "paced"}}}
    yield from rated(
        NAME,
        "held",
        f"the first {held.duration_s:g} s, paced, of packets let through every 10 ms, at {held.name}",
        replace(held.scenario({"cc": PLACE}), fields=paced),
        (UTILISATION, PROMPT),
    )
    path = PassportPath(50, 200, 1, 4).with_(sysctl=LARGE_SOCKETS)
    yield from rated(
        NAME,
        "long",
        f"the first {path.duration_s:g} s at {path.name}",
        path.scenario(),
        (UTILISATION, PROMPT),
    )
