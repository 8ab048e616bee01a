"""Chapter starvation: paths and cross traffic that are known to starve a flow, or to hold it down."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dragstrip.studies.passport.chapters.graphs import unequal
from dragstrip.studies.passport.figures import GOODPUT, IMBALANCE, LEAST
from dragstrip.studies.passport.rows import PassportPath, PassportRow, RowRule, rated

NAME = "starvation"
TITLE = "attacks and starvation"
ARUN = "Arun, Alizadeh, Balakrishnan, SIGCOMM 2022"
STARVES_NONE = RowRule("P", f"RFC 9743 5.1.4, 5.2.1: none starves; RFC 8085 3.1: a tenth; {ARUN}", least=0.1)
SHREW = RowRule("K", "Kuzmanovic and Knightly, SIGCOMM 2003: the shrew; CC-Fuzz, HotNets 2022")


def rows() -> Iterator[PassportRow]:
    """The rows of the chapter."""
    for mbit in (120, 48, 12):
        path = PassportPath(mbit, 40, 4, 60)
        yield from rated(
            NAME,
            f"40-80-{mbit}",
            f"40 and 80 ms at {path.name}",
            path.scenario("{a}", "{a}@80ms"),
            (LEAST, STARVES_NONE),
            (IMBALANCE, RowRule("K", f"{ARUN}: two flows of 40 and 80 ms")),
            quick=mbit == 12,
        )
    yield from _unequal_round_trips()
    yield from _unequal_senders()
    yield from _cross_traffic()


def _unequal_round_trips() -> Iterator[PassportRow]:
    far = PassportPath(20, 10, 4, 60)
    yield from rated(
        NAME,
        "10-160",
        f"10 and 160 ms at {far.name}",
        far.scenario("{a}", "{a}@160ms"),
        (LEAST, STARVES_NONE),
        (IMBALANCE, RowRule("K", "108anup/cc_bench: ratios of round trips")),
    )
    hidden = PassportPath(48, 40, 8, 60)
    yield from rated(
        NAME,
        "hidden-base",
        f"a flow that starts at 10 s into the queue of two at {hidden.name}",
        hidden.scenario("{a}*2", "{a}+10s"),
        (LEAST, STARVES_NONE),
    )


def _unequal_senders() -> Iterator[PassportRow]:
    """Yield the rows of two flows whose own links differ."""
    lossy = PassportPath(48, 40, 1, 60)
    fields = unequal("48mbit", "bfifo limit 240kb", "40ms", "loss 2%")
    flows = [{"cc": "{a}", "sender": name, "receiver": "d"} for name in ("s1", "s2")]
    yield from rated(
        NAME,
        "lossy-sender",
        f"two flows, one of which loses 2 % on its own link, at {lossy.name}",
        replace(lossy.scenario(*flows), fields=fields),
        (LEAST, STARVES_NONE),
        (IMBALANCE, RowRule("K", f"{ARUN}: loss on one of two flows")),
    )
    burst = {"kind": "homeplug_av", "phy": "100mbit"}
    fields = unequal("48mbit", "bfifo limit 240kb", "40ms", back=burst)
    yield from rated(
        NAME,
        "aggregated-acks",
        f"two flows, the ACKs of one aggregated by HomePlug AV, at {lossy.name}",
        replace(lossy.scenario(*flows), fields=fields),
        (LEAST, STARVES_NONE),
        (IMBALANCE, RowRule("K", f"{ARUN}: ACKs of one of two flows in bursts")),
    )


def _cross_traffic() -> Iterator[PassportRow]:
    for period_ms in (200, 500, 1000, 2000):
        path = PassportPath(10, 40, 1, 20)
        yield from rated(
            NAME,
            f"shrew-{period_ms}",
            f"30 Mbit/s for 60 ms every {period_ms / 1000:g} s at {path.name}",
            path.scenario("{a}", *bursts(period_ms, 20), subjects=1),
            (GOODPUT, SHREW),
            quick=period_ms == 1000,
        )
    for share in (25, 50):
        path = PassportPath(20, 40, 1, 30)
        steady = {"application": {"kind": "constant_rate", "rate": f"{20 * share / 100:g}mbit"}}
        yield from rated(
            NAME,
            f"udp-{share}",
            f"{share} % of constant traffic at {path.name}",
            path.scenario("{a}", steady, subjects=1),
            (GOODPUT, RowRule("K", "RFC 8867: background of constant rate; CC-Fuzz, HotNets 2022")),
        )


def bursts(period_ms: int, duration_s: int) -> list[dict[str, Any]]:
    """Bursts of UDP at 30 Mbit/s for 60 ms, one a period from 2 s on, as an experiment's `[[flows]]`."""
    starts = range(2000, duration_s * 1000 - 100, period_ms)
    sending = {"kind": "constant_rate", "rate": "30mbit"}
    return [{"application": sending, "start": f"{at}ms", "stop": f"{at + 60}ms"} for at in starts]
