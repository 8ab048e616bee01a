"""Chapter alone: one flow on an empty path, from dial-up to satellite, and its start."""

from __future__ import annotations

from collections.abc import Iterator

from dragstrip.studies.passport.figures import (
    COMPLETION,
    GOODPUT,
    PING_P95,
    QUEUE,
    RESENT,
    RTT_RATIO,
    UTILISATION,
    WASTED,
)
from dragstrip.studies.passport.rows import PassportPath, PassportRow, RowRule, rated

NAME = "alone"
TITLE = "alone on a path"
TRANSPERF = "google/transperf (2021), pass limits"
SAFECC = "draft-mathis-ccwg-safecc"
TCPEVAL = "draft-irtf-iccrg-tcpeval-01"
C4_TESTS = "draft-huitema-ccwg-c4-test"

GOODPUT_TARGET = RowRule("T", f"{TRANSPERF}: goodput at least 80 % of the rate", least=0.8)
RESPONSIVE = RowRule("T", f"{TRANSPERF}: least over median round trip at least 0.3", least=0.3)
LITTLE_LOSS = RowRule("T", f"{SAFECC}: steady loss of its own making at most 2 %", most=0.02)
SHORT_QUEUE = RowRule("T", f"{SAFECC}: standing queue below 2 bandwidth-delay products", most=2.0)
START_LOSS = RowRule("T", f"{SAFECC}: slow start loses at most half of what it sends", most=0.5)


def rows() -> Iterator[PassportRow]:
    """The rows of the chapter."""
    for mbit in (1.5, 10, 100):
        for rtt in (10, 40, 160):
            path = PassportPath(mbit, rtt)
            yield from rated(
                NAME,
                f"{mbit:g}-{rtt}-1bdp",
                path.name,
                path.scenario(),
                (UTILISATION, GOODPUT_TARGET),
                (RTT_RATIO, RESPONSIVE),
                (RESENT, LITTLE_LOSS),
                quick=mbit == 10,
            )
    for bdp in (0.1, 0.5, 4, 16):
        path = PassportPath(10, 40, bdp, 60 if bdp > 4 else 30)
        judged = ((QUEUE, SHORT_QUEUE),) if bdp > 1 else ((RTT_RATIO, RESPONSIVE),)
        yield from rated(
            NAME,
            f"10-40-{bdp:g}bdp",
            path.name,
            path.scenario(),
            (UTILISATION, GOODPUT_TARGET),
            (RESENT, LITTLE_LOSS),
            *judged,
            quick=True,
        )
    yield from _extremes()
    yield from _transfers()
    yield from _starts()
    idle = PassportPath(10, 40, 1, 40).with_(workload="on-off")
    yield from rated(
        NAME,
        "on-off",
        f"{idle.name}, 5 s on and 5 s off",
        idle.scenario(),
        (GOODPUT, RowRule("K", "RFC 9743 5.1.2, 7.8; RFC 5681 4.1 (restart after idle)")),
        (PING_P95, RowRule("K", "RFC 9743 5.1.2, 7.8; RFC 5681 4.1 (restart after idle)")),
    )


def _extremes() -> Iterator[PassportRow]:
    paths = {
        "dial-up": (
            PassportPath(0.064, 10, 1, 60).with_(queue="1250ms"),
            f"{TCPEVAL}: dial-up; RFC 9743 7.4",
        ),
        "64k-1ms": (PassportPath(0.064, 1, 1, 60).with_(queue="bfifo limit 6kb"), "RFC 9743 7.4"),
        "gigabit-10": (PassportPath(1000, 10, 1, 5), f"{TCPEVAL}: data centre and trans-oceanic links"),
        "gigabit-100": (PassportPath(1000, 100, 1, 10), f"{TCPEVAL}: trans-oceanic"),
        "geo": (
            PassportPath(40, 600, 1, 60).with_(up_rate="4mbit"),
            f"{TCPEVAL}: GEO satellite; RFC 9743 7.5",
        ),
    }
    for key, (path, source) in paths.items():
        judged = [GOODPUT, WASTED] if path.mbit < 1 else [GOODPUT]
        rule = RowRule("K", source)
        yield from rated(NAME, key, path.name, path.scenario(), *((figure, rule) for figure in judged))


def _transfers() -> Iterator[PassportRow]:
    for mbit, rtt, most in ((20, 80, 20), (200, 40, 10), (1.5, 40, 120)):
        path = PassportPath(mbit, rtt, 1, most).with_(workload="file")
        yield from rated(
            NAME,
            f"10mb-{mbit:g}-{rtt}",
            f"10 MB at {path.name}",
            path.scenario(),
            (COMPLETION, RowRule("K", f"{C4_TESTS}: alone")),
            quick=mbit == 20,
        )


def _starts() -> Iterator[PassportRow]:
    for mbit, rtt in ((20, 50), (100, 100), (50, 30)):
        for bdp in (0.1, 1):
            path = PassportPath(mbit, rtt, bdp, 3 if rtt < 100 else 5)
            yield from rated(
                NAME,
                f"start-{mbit}-{rtt}-{bdp:g}bdp",
                f"first {path.duration_s:g} s of {path.name}",
                path.scenario(),
                (RESENT, START_LOSS),
                quick=mbit == 20,
            )
