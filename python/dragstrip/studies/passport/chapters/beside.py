"""Chapter beside: harm to flows of CUBIC, Reno and its own kind beside the algorithm."""

from __future__ import annotations

from collections.abc import Iterator

from dragstrip.studies.passport.figures import IMBALANCE, NEIGHBOUR, NEIGHBOUR_RESENT, OWN_SHARE
from dragstrip.studies.passport.rows import (
    BASELINES,
    PLACE,
    PassportPath,
    PassportRow,
    RowRule,
    rated,
    several,
)

NAME = "beside"
TITLE = "beside others"
HARM = RowRule("K", "RFC 9743 5.2.1; Ware et al., HotNets 2019: harm at most that of the deployed")
OWN_KIND = RowRule("R", "Ware et al., HotNets 2019: harm by one's own kind, the base of harm to others")
DEPLOYED = ("bbr", "bbr3")
"""Algorithms beside the baselines that are widely deployed (RFC 9743 5.2.1)."""
QUIC_NEIGHBOUR = "noq/newreno"
"""A QUIC sender of RFC 9002."""
STEP_MARKING = "red limit 400kb min 30kb max 31kb avpkt 1500 burst 21 probability 1 ecn"
"""A queue that marks from 20 packets on, as a data center's switch does (RFC 8257 3.1)."""
SAME_KIND = "own"
"""Placeholder for its own kind where a neighbour is named."""
ORDER = RowRule("P", "RFC 8085 3.1 as read in RFC 9331 4.3.1: within an order of magnitude", most=10.0)
PATHS = {bdp: PassportPath(50, 30, bdp, 60 if bdp <= 4 else 120) for bdp in (0.5, 1, 4, 16)}
"""The paths of one flow beside one other; google/bbr nsperf: coexist."""


def key(neighbour: str, bdp: float) -> str:
    """Prefix of the ids of the rows with one flow beside this one, after the chapter."""
    return f"{neighbour}-{bdp:g}bdp"


def rows() -> Iterator[PassportRow]:
    """The rows of the chapter."""
    for neighbour in BASELINES:
        for bdp, path in PATHS.items():
            yield from rated(
                NAME,
                key(neighbour, bdp),
                f"beside one {neighbour} at {path.name}",
                path.scenario("{a}+0.3s", neighbour, subjects=1),
                (NEIGHBOUR, HARM),
                (IMBALANCE, ORDER),
                *([(NEIGHBOUR_RESENT, HARM)] if bdp == 1 else []),
                quick=bdp in (1, 4),
            )
    for deployed in DEPLOYED:
        for bdp in (1, 4):
            yield from rated(
                NAME,
                key(deployed, bdp),
                f"beside one {deployed} at {PATHS[bdp].name}",
                PATHS[bdp].scenario("{a}+0.3s", deployed, subjects=1),
                (NEIGHBOUR, HARM),
                (OWN_SHARE, RowRule("R", "RFC 9743 5.2.1: beside what is widely deployed")),
            )
    for bdp in (1, 4):
        yield from rated(
            NAME,
            f"quic-{bdp}bdp",
            f"beside one {QUIC_NEIGHBOUR} at {PATHS[bdp].name}",
            PATHS[bdp].scenario("{a}+0.3s", QUIC_NEIGHBOUR, subjects=1),
            (NEIGHBOUR, RowRule("K", "RFC 9743 5.2.1: beside RFC 9002; Ware et al., HotNets 2019")),
        )
    data_center = PassportPath(1000, 0.2, 1, 2).with_(queue=STEP_MARKING, ecn=True)
    yield from rated(
        NAME,
        "dctcp",
        "beside one dctcp with ECN at 1000 Mbit/s, 0.2 ms, marks from 30 kB on",
        data_center.scenario("{a}+0.01s", "dctcp", subjects=1),
        (NEIGHBOUR, RowRule("K", "RFC 9743 7.11; RFC 8257: a data center's neighbour")),
        (OWN_SHARE, RowRule("R", "RFC 9743 7.11: the algorithms with which it may coexist")),
    )
    for bdp, path in PATHS.items():
        yield from rated(
            NAME,
            key(SAME_KIND, bdp),
            f"beside one of its own kind at {path.name}",
            path.scenario("{a}+0.3s", PLACE, subjects=1),
            (NEIGHBOUR, OWN_KIND),
            quick=bdp in (1, 4),
        )
    for subject_count, cubic_count in ((1, 4), (1, 16), (4, 1)):
        path = PassportPath(10, 40, 4, 60)
        yield from rated(
            NAME,
            f"{subject_count}-and-{cubic_count}-cubic",
            f"{subject_count} beside {cubic_count} cubic at {path.name}",
            path.scenario(
                several("{a}", subject_count), f"{several('cubic', cubic_count)}+0.3s", subjects=subject_count
            ),
            (NEIGHBOUR, HARM),
            (IMBALANCE, ORDER),
            quick=cubic_count == 4,
        )
    for mbit in (8, 50):
        path = PassportPath(mbit, 50, 4, 60)
        yield from rated(
            NAME,
            f"prudentia-{mbit}",
            f"beside one cubic at {path.name}",
            path.scenario("{a}", "cubic+0.3s", subjects=1),
            (OWN_SHARE, RowRule("R", "internetfairness.net (Prudentia): share of the maximum-minimum share")),
        )
    newcomer = PassportPath(50, 30, 1, 60)
    yield from rated(
        NAME,
        "late-cubic",
        f"a cubic that starts at 15 s at {newcomer.name}",
        newcomer.scenario("{a}", "cubic+15s", subjects=1),
        (NEIGHBOUR, HARM),
    )
