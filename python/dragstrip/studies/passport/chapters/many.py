"""Chapter many: flows of one kind share a bottleneck; the share of each, and its cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dragstrip.studies.passport.chapters.graphs import parked, parking_lot
from dragstrip.studies.passport.figures import JAIN, LEAST, LONG, PING_P95, RESENT, UTILISATION
from dragstrip.studies.passport.rows import PassportPath, PassportRow, RowRule, rated, several

NAME = "many"
TITLE = "among its own kind"
STARVES_NONE = RowRule(
    "P", "RFC 9743 5.1.4: none starves; a tenth of the fair share by RFC 8085 3.1", least=0.1
)
FAIR = RowRule("T", "google/transperf (2021): fairness 96 of several flows", least=0.96)
LITTLE_LOSS = RowRule("T", "draft-mathis-ccwg-safecc: steady loss of its own making at most 2 %", most=0.02)
NSPERF = "google/bbr nsperf: shallow; RFC 9743 5.1.3 (Hock et al., ICNP 2017)"
APART = {"stagger": "1ms"}
"""Starts of several flows. Flows that start at one instant lose the same packets and let their timers expire
at one instant for ever, which no host does (docs/how-to/passport.md)."""
HOCK = "RFC 9743 5.1.3 (Hock, Bless, Zitterbart, ICNP 2017)"
CROWD = "RFC 9743 5.1.1, 5.1.3"


def rows() -> Iterator[PassportRow]:
    """The rows of the chapter."""
    for count in (2, 4, 8, 32):
        path = PassportPath(50, 40, 1, 40).with_(**APART)
        yield from rated(
            NAME,
            f"{count}-flows",
            f"{count} flows at {path.name}",
            path.scenario(several("{a}", count)),
            (LEAST, STARVES_NONE),
            (JAIN, FAIR if count <= 4 else RowRule("K", "RFC 9743 5.1.4; RFC 5166 2.3")),
            (RESENT, LITTLE_LOSS if count <= 8 else RowRule("K", CROWD)),
            quick=count <= 8,
        )
    yield from _late()
    yield from _parked()
    for count in (1, 10, 30):
        path = PassportPath(100, 100, 0.02, 15).with_(**APART)
        yield from rated(
            NAME,
            f"shallow-{count}",
            f"{count} flows at {path.name}",
            path.scenario(several("{a}", count)),
            (RESENT, RowRule("T", f"{NSPERF}; draft-mathis-ccwg-safecc", most=0.02)),
            (UTILISATION, RowRule("K", NSPERF)),
            quick=count == 10,
        )
    yield from _below_its_loss_limit()
    for count, mbit in ((100, 10), (20, 1), (100, 1)):
        path = PassportPath(mbit, 50, 1, 40).with_(**APART)
        yield from rated(
            NAME,
            f"crowd-{count}-{mbit}",
            f"{count} flows at {path.name}",
            path.scenario(several("{a}", count)),
            (RESENT, RowRule("K", CROWD)),
            (JAIN, RowRule("K", "RFC 9743 5.1.4")),
            (UTILISATION, RowRule("K", f"{CROWD}; RFC 2914 3: goodput as load grows")),
            quick=(count, mbit) == (100, 10),
        )
    for bdp in (1, 10, 50):
        path = PassportPath(50, 30, bdp, 40)
        yield from rated(
            NAME,
            f"bloat-{bdp}bdp",
            f"2 flows at {path.name}",
            path.scenario("{a}*2"),
            (PING_P95, RowRule("K", "google/bbr nsperf: bufferbloat; RFC 9743 5.1.2")),
        )
    two_way = PassportPath(10, 20, 4, 30).with_(up_rate="1mbit", both_ways=True, receiver_on_line=True)
    yield from rated(
        NAME,
        "both-ways",
        f"a flow each way at {two_way.name}, 1 Mbit/s back",
        two_way.scenario(subjects=1),
        (UTILISATION, RowRule("K", "heistp/l4s-tests: asymmetric")),
        (PING_P95, RowRule("K", "heistp/l4s-tests: asymmetric")),
    )


def _below_its_loss_limit() -> Iterator[PassportRow]:
    """Six flows around the buffer below which BBR's first version kept losing, 1.5 BDP."""
    for bdp in (0.5, 0.8, 1.5):
        path = PassportPath(100, 40, bdp, 30).with_(**APART)
        yield from rated(
            NAME,
            f"hock-{bdp:g}bdp",
            f"6 flows at {path.name}",
            path.scenario("{a}*6"),
            (RESENT, RowRule("T", f"{HOCK}; draft-mathis-ccwg-safecc: steady loss at most 2 %", most=0.02)),
        )


def _parked() -> Iterator[PassportRow]:
    base = PassportPath(20, 30, 1, 60)
    fields = parking_lot("20mbit", "bfifo limit 75kb", "30ms")
    scenario = replace(base.scenario(*parked("{a}"), subjects=1), fields=fields)
    yield from rated(
        NAME,
        "parking-lot",
        "a flow over three links of 20 Mbit/s, 30 ms, 1 BDP, and one flow over each",
        scenario,
        (LEAST, STARVES_NONE),
        (LONG, RowRule("K", "draft-irtf-iccrg-tcpeval-01: parking lot; RFC 5166 2.3")),
    )


def _late() -> Iterator[PassportRow]:
    stepped = PassportPath(48, 32, 1, 60).with_(stagger="3s")
    yield from rated(
        NAME,
        "staggered-8",
        f"8 flows 3 s apart at {stepped.name}",
        stepped.scenario("{a}*8"),
        (LEAST, STARVES_NONE),
        (JAIN, RowRule("K", "108anup/cc_bench: staggered flows; RFC 8867 5.4")),
    )
    for bdp in (1, 8):
        path = PassportPath(20, 40, bdp, 60)
        yield from rated(
            NAME,
            f"newcomer-{bdp}bdp",
            f"a flow that starts at 15 s beside another at {path.name}",
            path.scenario("{a}", "{a}+15s"),
            (LEAST, STARVES_NONE),
            (JAIN, RowRule("K", "draft-irtf-iccrg-tcpeval-01: ramp-up; Arun et al., SIGCOMM 2022")),
            quick=bdp == 8,
        )
