"""Chapter theory: figures beside the laws that describe an algorithm, within the range in which they hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dragstrip.model.scenario.paths import FRAME_BYTES, PAYLOAD_BYTES
from dragstrip.studies.passport import laws
from dragstrip.studies.passport.chapters.graphs import HOPS, parked, parking_lot
from dragstrip.studies.passport.figures import (
    GOODPUT,
    LONG,
    OWN_SHARE,
    QUEUE_PACKETS,
    RETRANSMITS,
    UTILISATION,
)
from dragstrip.studies.passport.rows import Law, PassportPath, PassportRow, RowFigure, RowRule, Scenario

NAME = "theory"
TITLE = "figure and theory"
RENO = ("reno", "newreno-freebsd")
CUBIC = ("cubic", "cubic-freebsd", "cubic-rfc9438")
LINKS = PAYLOAD_BYTES / FRAME_BYTES
"""The part of a link's rate that is payload."""
QUICK = ("mathis-0.001", "sawtooth-reno-0.1", "sawtooth-cubic-0.1", "vegas-1", "ware-4")
"""The rows of the quick suite."""


def rows() -> Iterator[PassportRow]:
    """The rows of the chapter."""
    for share in (0.0003, 0.001, 0.003, 0.01):
        path = PassportPath(100, 50, 1, 200 if share < 0.001 else 60).with_(loss=f"{share * 100:g}%")
        law = Law(
            "Mathis",
            laws.mathis_mbit(share, 50),
            "3·10⁻⁴ to 10⁻² lost, no timeouts",
            "Mathis, Semke, Mahdavi, Ott, CCR 27(3), 1997",
            RENO,
        )
        yield _row(f"mathis-{share:g}", f"{share * 100:g} % lost at {path.name}", _lossy(path), GOODPUT, law)
    path = PassportPath(100, 50, 1, 40).with_(loss="3%")
    law = Law("PFTK", laws.pftk_mbit(0.03, 50), "up to 5 % lost", "Padhye et al., SIGCOMM 1998", RENO)
    yield _row("pftk-0.03", f"3 % lost at {path.name}", _lossy(path), GOODPUT, law)
    path = PassportPath(100, 100, 1, 200).with_(loss="0.01%")
    law = Law("CUBIC", laws.cubic_mbit(0.0001, 100), "10⁻⁴ lost, 100 ms", "RFC 9438 5.1", CUBIC)
    yield _row("cubic-0.0001", f"0.01 % lost at {path.name}", _lossy(path), GOODPUT, law)
    for bdp in (0.1, 0.25, 0.5, 1):
        for names, beta in ((RENO, 0.5), (CUBIC, 0.7)):
            yield _sawtooth(bdp, names, beta)
    for bdp in (0.5, 1):
        path = PassportPath(20, 100, bdp, 6)
        overshoot = laws.overshoot_packets(20, 100, bdp)
        law = Law(
            "overshoot", overshoot, "no HyStart, buffer up to 1 BDP", "path and buffer, lost once", ("reno",)
        )
        yield _row(f"overshoot-{bdp:g}", f"first 6 s of {path.name}", path.scenario(), RETRANSMITS, law)
    path = PassportPath(10, 40, 4, 60)
    law = Law(
        "Vegas", 3.0, "the base round trip is known: 2 to 4 packets", "Brakmo, Peterson, 1995", ("vegas",)
    )
    yield _row("vegas-1", f"one flow at {path.name}", path.scenario(), QUEUE_PACKETS, law)
    for bdp in (4, 8, 16):
        yield _ware(bdp)
    yield _dctcp()
    yield from _parked()


def _row(key: str, title: str, scenario: Scenario, figure: RowFigure, law: Law) -> PassportRow:
    return PassportRow(
        f"{NAME}-{key}",
        NAME,
        title,
        scenario,
        figure,
        RowRule("R", law.source),
        quick=key in QUICK,
        law=law,
        only_for=law.holds_for,
    )


def _lossy(path: PassportPath) -> Scenario:
    return path.scenario()


def _sawtooth(bdp: float, names: tuple[str, ...], beta: float) -> PassportRow:
    path = PassportPath(20, 50, bdp, 90)
    law = Law(
        "sawtooth",
        laws.sawtooth(beta, bdp) * LINKS,
        f"one flow, drop-tail, window cut to {beta:g}",
        "AIMD, by hand; buffers by Appenzeller et al., SIGCOMM 2004",
        names,
    )
    key = f"sawtooth-{names[0]}-{bdp:g}"
    return _row(key, f"one flow at {path.name}", path.scenario(), UTILISATION, law)


def _dctcp() -> PassportRow:
    marking = "codel ecn target 100ms ce_threshold 2ms"
    path = PassportPath(100, 10, 1, 20).with_(queue=marking, ecn=True)
    threshold = 100e6 * 0.002 / 8 / FRAME_BYTES
    law = Law(
        "DCTCP",
        laws.dctcp_queue_packets(100, 10, threshold, 1),
        "threshold above a seventh of the BDP, one flow",
        "Alizadeh et al., SIGCOMM 2010",
        ("dctcp",),
    )
    return _row("dctcp-1", f"marked above 2 ms at {path.name}", path.scenario(), QUEUE_PACKETS, law)


def _parked() -> Iterator[PassportRow]:
    base = PassportPath(20, 30, 1, 120)
    fields = parking_lot("20mbit", "bfifo limit 150kb", "30ms")
    scenario = replace(base.scenario(*parked("{a}"), subjects=1), fields=fields)
    law = Law(
        "parking lot",
        laws.long_share(HOPS, 1.0),
        "proportional fairness, round trips that stay equal",
        "Kelly, Maulloo, Tan, JORS 49(3), 1998; Low, Peterson, Wang, JACM 49(2), 2002",
        ("vegas",),
    )
    yield _row("parking-lot-1", "three links of 20 Mbit/s, 30 ms, 2 BDP", scenario, LONG, law)


def _ware(bdp: float) -> PassportRow:
    path = PassportPath(10, 40, bdp, 120)
    buffer_packets = bdp * 10e6 * 0.04 / 8 / FRAME_BYTES
    law = Law(
        "Ware",
        laws.ware_share(bdp, 1, buffer_packets, 10, 40),
        "same round trip, more than 1 BDP, limited by its window",
        "Ware et al., IMC 2019",
        ("bbr",),
    )
    scenario = path.scenario("{a}", "reno+0.3s", subjects=1)
    return _row(f"ware-{bdp}", f"beside one reno at {path.name}", scenario, OWN_SHARE, law)
