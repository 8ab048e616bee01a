"""Chapter loss: random loss, policers, reordering, a narrow way back, and a path that loses everything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dragstrip.studies.passport.figures import COMPLETION, GOODPUT, RESENT, TIMEOUTS, UTILISATION, WASTED
from dragstrip.studies.passport.rows import PassportPath, PassportRow, RowRule, rated

NAME = "loss"
TITLE = "loss and damage"
AGGREGATED = "draft-ietf-ccwg-bbr-06 5.5.9; Arun et al., SIGCOMM 2022; RFC 3449: ACKs that come in bursts"
NSPERF = "google/bbr nsperf: random_loss; RFC 9743 5.1.3, 6.4"


def rows() -> Iterator[PassportRow]:
    """The rows of the chapter."""
    for share in ("0.01%", "0.1%", "1%", "5%", "15%"):
        path = PassportPath(100, 100, 1, 20).with_(loss=share)
        yield from rated(
            NAME,
            f"random-{share[:-1]}",
            f"{share} lost at random at {path.name}",
            path.scenario(),
            (GOODPUT, RowRule("K", NSPERF)),
            quick=share in ("0.1%", "5%"),
        )
    for share in ("1%", "10%", "30%"):
        path = PassportPath(10, 50, 1, 30).with_(loss=share)
        yield from rated(
            NAME,
            f"slow-{share[:-1]}",
            f"{share} lost at random at {path.name}",
            path.scenario(),
            (GOODPUT, RowRule("K", "RFC 8868: random loss; RFC 9743 5.1.3")),
        )
    short = PassportPath(20, 10, 1, 30).with_(loss="30%", change=["2s loss=0%"], workload="file")
    yield from rated(
        NAME,
        "at-first",
        f"10 MB, of the first 2 s 30 % lost at random, at {short.name}",
        short.scenario(),
        (COMPLETION, RowRule("K", "RFC 9743 5.1.3, 7.8: recovery from a time of heavy loss")),
    )
    yield from _outages()
    yield from _impaired()
    yield from _policed()
    yield from _reordered()
    yield from _return_path()


def _policed() -> Iterator[PassportRow]:
    for burst in ("15kb", "100kb"):
        path = PassportPath(50, 40, 1, 30).with_(queue=f"police rate 10mbit burst {burst}")
        yield from rated(
            NAME,
            f"police-{burst}",
            f"a policer of 10 Mbit/s, burst {burst}, at 50 Mbit/s, 40 ms",
            path.scenario(),
            (RESENT, RowRule("T", "google/transperf (2021): policer, loss 70 of 100", most=0.3)),
            (GOODPUT, RowRule("K", "google/transperf (2021): policer; Flach et al., SIGCOMM 2016")),
            quick=burst == "100kb",
        )


def _reordered() -> Iterator[PassportRow]:
    for jitter in ("1ms", "5ms"):
        path = PassportPath(20, 40, 1, 20).with_(jitter=jitter)
        yield from rated(
            NAME,
            f"reorder-{jitter}",
            f"reordered by {jitter} of jitter at {path.name}",
            path.scenario(),
            (GOODPUT, RowRule("K", "RFC 9743 7.7; RFC 4653")),
            (WASTED, RowRule("K", "RFC 9743 7.7; RFC 4653: spurious retransmissions")),
            quick=jitter == "5ms",
        )


def _return_path() -> Iterator[PassportRow]:
    for up in ("0.5mbit", "0.2mbit"):
        path = PassportPath(20, 40, 1, 20).with_(up_rate=up)
        yield from rated(
            NAME,
            f"up-{up}",
            f"ACKs by {up[:-4]} Mbit/s at {path.name}",
            path.scenario(),
            (UTILISATION, RowRule("K", "RFC 3449; RFC 5166 2.6; RFC 8867 5.3")),
        )
    for medium in ("wifi-n", "homeplug-av"):
        path = PassportPath(20, 40, 1, 20).with_(up_medium=medium)
        yield from rated(
            NAME,
            f"acks-{medium}",
            f"ACKs aggregated by {medium} on their way back at {path.name}",
            path.scenario(),
            (UTILISATION, RowRule("K", AGGREGATED)),
            (RESENT, RowRule("K", AGGREGATED)),
            quick=medium == "wifi-n",
        )


def _impaired() -> Iterator[PassportRow]:
    """Rows whose impairment `compare` has no option for."""
    bursty = {"netem": "loss gemodel 0.2% 10%"}
    for key, title, path, source in (
        ("bursty", "bursts of loss (0.2 % into, 10 % out of one)", bursty, "RFC 8868: Gilbert-Elliott"),
        ("acks-10", "10 % of ACKs lost", {"up_netem": "loss 10%"}, "RFC 5166 2.6; RFC 3449"),
        ("acks-50", "50 % of ACKs lost", {"up_netem": "loss 50%"}, "RFC 5166 2.6; RFC 3449"),
    ):
        base = PassportPath(20, 40, 1, 20)
        yield from rated(
            NAME,
            key,
            f"{title} at {base.name}",
            replace(base.scenario(), fields={"path": path}),
            (GOODPUT, RowRule("K", source)),
        )


def _outages() -> Iterator[PassportRow]:
    outage = PassportPath(10, 50, 1, 60).with_(change=["5s state=down", "35s state=up"])
    yield from rated(
        NAME,
        "outage-30s",
        f"nothing arrives from 5 to 35 s at {outage.name}",
        outage.scenario(),
        # Doubled from at least 200 ms, expiries fall at 0.2, 0.6, 1.4, ... 25.4 s: seven, and one on the way.
        (
            TIMEOUTS,
            RowRule(
                "P", "RFC 6298 5.5, RFC 2914, RFC 9743 5.1.1: the timer doubles in 30 s of silence", most=8.0
            ),
        ),
        (GOODPUT, RowRule("K", "RFC 9743 5.1.1, 5.2: recovery after all feedback was lost")),
        quick=True,
    )
    for seconds in (1, 3, 10):
        change = ["5s state=down", f"{5 + seconds}s state=up"]
        path = PassportPath(20, 40, 1, 25).with_(change=change)
        yield from rated(
            NAME,
            f"interrupted-{seconds}s",
            f"nothing arrives for {seconds} s from 5 s on at {path.name}",
            path.scenario(),
            (GOODPUT, RowRule("K", "RFC 9743 7.8: disconnected links, intermittent connectivity")),
        )
    hole = PassportPath(10, 70, 1, 20).with_(change=["2s state=down", "4s state=up"], workload="file")
    yield from rated(
        NAME,
        "black-hole",
        f"10 MB over a black hole from 2 to 4 s at {hole.name}",
        hole.scenario(),
        (COMPLETION, RowRule("K", "draft-huitema-ccwg-c4-test: black hole")),
    )
