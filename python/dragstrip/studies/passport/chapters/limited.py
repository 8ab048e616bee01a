"""Chapter limited: the application, not the network, decides how much is sent.

Windows are read from the phases of a run that records every ACK (docs/reference/result-json.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dragstrip.model.scenario.paths import PAYLOAD_BYTES
from dragstrip.studies.passport.figures import GOODPUT, MEAN_COMPLETION, RESENT, SLOWDOWN_P99, subjects
from dragstrip.studies.passport.rows import (
    PLACE,
    PassportPath,
    PassportRow,
    RowFigure,
    RowRule,
    Scenario,
    Summary,
    rated,
)

NAME = "limited"
TITLE = "limited traffic"
RECORD = {"every_ack": True, "cc_state": True}
"""Settings of the recording of a scenario whose phases a figure reads."""
RATE_LIMITED = (
    "draft-ietf-ccwg-ratelimited-increase: at most what one window of the largest flight would give"
)
IDLE = RowRule("K", "RFC 9743 7.8; RFC 5681 4.1: restart after idle")
RESTARTED = RowRule("R", "RFC 5681 4.1: at most the initial window, here 10 packets, if unpaced")
RECORDED_IDLE_S = 1.0
"""The longest pause in s of a run whose every ACK is recorded; longer ones would take too much memory."""
RESTARTED_S = 0.5
"""A slow start that begins later than this, in s, is no connection's first."""
ACKED_PACKETS = 2
"""Packets that a flight had beside those recorded: a sample is taken after an ACK, which acknowledges two."""
PATH = PassportPath(20, 40, 1, 16)


def stays_of(summary: Summary, scenario: Scenario) -> list[Mapping[str, Any]]:
    """Return the phases of the first flow in order, without those that no sample shows."""
    stays = subjects(summary, scenario)[0].get("phases", ())
    return [stay for stay in stays if "cwnd_bytes" in stay["last"]]


def _largest_flight(stays: Sequence[Mapping[str, Any]]) -> float:
    """Bytes of the largest flight of a connection."""
    return float(max(stay["most"]["bytes_in_flight"] for stay in stays) + ACKED_PACKETS * PAYLOAD_BYTES)


def _window(summary: Summary, scenario: Scenario) -> float | None:
    """The largest window over the largest flight of the connection."""
    stays = stays_of(summary, scenario)
    if not stays:
        return None
    return float(max(stay["most"]["cwnd_bytes"] for stay in stays) / _largest_flight(stays))


def _last_window(summary: Summary, scenario: Scenario) -> float | None:
    """The window at the end over the largest flight of the connection."""
    stays = stays_of(summary, scenario)
    return stays[-1]["last"]["cwnd_bytes"] / _largest_flight(stays) if stays else None


def _restart(summary: Summary, scenario: Scenario) -> float | None:
    """The least window of a connection that has been idle, in packets: that with which it begins again.

    Without a phase that begins after a pause, it is the window at the end.
    """
    stays = stays_of(summary, scenario)
    later = [stay for stay in stays if stay["from_s"] > RESTARTED_S]
    windows = [stay["first"]["cwnd_bytes"] for stay in later if stay["state"] == "slow_start"]
    windows = windows or [stay["least"]["cwnd_bytes"] for stay in later]
    windows = windows or [stay["last"]["cwnd_bytes"] for stay in stays[-1:]]
    return min(windows) / PAYLOAD_BYTES if windows else None


WINDOW = RowFigure(
    "window",
    "of the largest flight",
    False,
    _window,
    "flows[0].phases: most cwnd_bytes over most bytes_in_flight and 2 packets",
    of_phases=True,
    no_measure="read from phases, which measures do not have",
)
LAST_WINDOW = RowFigure(
    "last window",
    "of the largest flight",
    False,
    _last_window,
    "flows[0].phases: last cwnd_bytes of the last over most bytes_in_flight and 2 packets",
    of_phases=True,
    no_measure="read from phases, which measures do not have",
)
RESTART = RowFigure(
    "restart",
    "packets",
    None,
    _restart,
    "flows[0].phases: least first cwnd_bytes of a slow start after 0.5 s, or least, or last cwnd_bytes",
    of_phases=True,
    no_measure="read from phases, which measures do not have",
)


def _responses(size: int, think_s: float, path: PassportPath = PATH, *, record: bool = False) -> Scenario:
    """So many bytes for each request, with a pause before the next, over one connection."""
    application = {"kind": "request_response", "request": "100b", "response": f"{size}b"}
    flow = {"cc": PLACE, "reverse": True, "application": {**application, "think": f"{think_s:g}s"}}
    return replace(path.scenario(flow), fields={"record": RECORD} if record else {})


def rows() -> Iterator[PassportRow]:
    """The rows of the chapter."""
    yield from _windows()
    yield from _idle()
    sizes = [4000 + 1000 * (at % 11) for at in range(100)]
    small = [{"cc": PLACE, "bytes": f"{size}b", "start": f"{at * 0.3:g}s"} for at, size in enumerate(sizes)]
    yield from rated(
        NAME,
        "never-grows",
        f"a hundred connections of 4 to 14 kB, 0.3 s apart, at {PATH.name}",
        replace(PATH, duration_s=35.0).scenario(*small),
        (MEAN_COMPLETION, RowRule("K", "RFC 9743 5.1.5: flows that end within slow start")),
        (SLOWDOWN_P99, RowRule("K", "RFC 9743 5.1.5: flows that end within slow start")),
        quick=True,
    )


def _windows() -> Iterator[PassportRow]:
    """Yield the rows of windows that must not grow without use."""
    limit = RowRule("T", f"{RATE_LIMITED} (slow start)", most=2.0)
    for key, title, size, think_s in (
        ("requests", "25 kB every 100 ms", 25_000, 0.1),
        ("paused-video", "1.2 MB with 3.5 s between, as a paused video fetches,", 1_200_000, 3.5),
    ):
        yield from rated(
            NAME,
            key,
            f"{title} at {PATH.name}",
            _responses(size, think_s, record=True),
            (WINDOW, limit),
            (GOODPUT, RowRule("K", "RFC 9743 5.1.5")),
            (RESENT, RowRule("K", "RFC 9743 5.1.3")),
            quick=key == "requests",
        )

    lossy = PATH.with_(loss="30%", change=["1s loss=0%"])
    yield from rated(
        NAME,
        "after-loss",
        f"25 kB every 100 ms after 1 s in which 30 % are lost, at {PATH.name}",
        _responses(25_000, 0.1, lossy, record=True),
        (LAST_WINDOW, RowRule("T", f"{RATE_LIMITED} (avoidance)", most=1.1)),
    )


def _idle() -> Iterator[PassportRow]:
    """Yield the rows of 1 MB after a pause: what is left of the window, and what that costs."""
    for idle_s in (0.5, 1.0, 10.0, 60.0):
        path = replace(PATH, duration_s=max(16.0, 4 * idle_s))
        restart = [(RESTART, RESTARTED)] if idle_s <= RECORDED_IDLE_S else []
        yield from rated(
            NAME,
            f"idle-{idle_s:g}",
            f"1 MB after each pause of {idle_s:g} s at {PATH.name}",
            _responses(1_000_000, idle_s, path, record=bool(restart)),
            (RESENT, IDLE),
            *restart,
            quick=idle_s == 1.0,
        )
