"""Chapter changes: the rate, the round trip or the medium changes while a flow is on its way."""

from __future__ import annotations

from collections.abc import Iterator

from dragstrip.studies.passport.figures import COMPLETION, GOODPUT, PING_P95, RECOVERY, RESENT
from dragstrip.studies.passport.rows import PLACE, PassportPath, PassportRow, RowRule, Scenario, rated

NAME = "changes"
TITLE = "changing paths"
STEPS = RowRule("K", "heistp/l4s-tests: rate steps; RFC 9743 7.9")
TESTS = RowRule("K", "draft-huitema-ccwg-c4-test")
JOINT = RowRule("K", "RFC 9743 7.9: rate and delay change together, and what is in flight is lost")
MEDIA = RowRule("K", "RFC 8867 5.1, ten times the rate and four times the pace")
HANDOVER = RowRule("K", "RFC 9743 7.3, 7.8: a satellite's handover every 15 s (Starlink's interval)")
TRANSIENT = RowRule("K", "draft-irtf-iccrg-tcpeval-01: transients; RFC 9743 7.8")
WIRELESS = RowRule("K", "RFC 9743 6.4; RFC 8869")


def rows() -> Iterator[PassportRow]:
    """The rows of the chapter."""
    for down in (25, 10, 5, 1):
        path = PassportPath(50, 20, 1, 30).with_(change=[f"15s rate={down}mbit"])
        yield from rated(
            NAME,
            f"50-{down}",
            f"50 to {down} Mbit/s at 15 s, 20 ms",
            path.scenario(),
            (RESENT, RowRule("K", "draft-mathis-ccwg-safecc: losses at a link change; heistp/l4s-tests")),
            (GOODPUT, STEPS),
            quick=down == 5,
        )
    steps = ["13s rate=50mbit", "15s rate=10mbit", "25s rate=90mbit", "30s rate=5mbit"]
    path = PassportPath(100, 20, 1, 40).with_(change=steps)
    yield from rated(
        NAME,
        "steps",
        "100, 50, 10, 90 and 5 Mbit/s, 20 ms",
        path.scenario(),
        (GOODPUT, STEPS),
        (PING_P95, STEPS),
    )
    ups = ["10s rate=25mbit", "15s rate=6mbit", "20s rate=10mbit"]
    media = PassportPath(10, 100, 3, 25).with_(change=ups)
    yield from rated(
        NAME,
        "rfc8867-5.1",
        "10, 25, 6 and 10 Mbit/s, 100 ms, 3 BDP",
        media.scenario(),
        (GOODPUT, MEDIA),
        (PING_P95, MEDIA),
        (RESENT, MEDIA),
    )
    for key, title, changes in (
        ("low-and-up", "10 MB at 5, from 2.5 s 10 Mbit/s, 100 ms", ["2.5s rate=10mbit"]),
        ("drop-and-back", "10 MB at 5, from 1.5 to 3.5 s 2.5 Mbit/s, 100 ms", DROP),
        ("short-long", "10 MB at 5 Mbit/s, round trip 100, from 1 s 30 ms", ["1s rtt=30ms"]),
    ):
        path = PassportPath(5, 100, 1, 40).with_(change=changes, workload="file")
        yield from rated(NAME, key, title, path.scenario(), (COMPLETION, TESTS), quick=key == "low-and-up")
    for before, after in ((30, 100), (100, 30)):
        path = PassportPath(20, before, 1, 30).with_(change=[f"10s rtt={after}ms"], queue="bfifo limit 150kb")
        yield from rated(
            NAME,
            f"rtt-{before}-{after}",
            f"round trip {before}, from 10 s {after} ms at 20 Mbit/s",
            path.scenario(),
            (GOODPUT, RowRule("K", "RFC 9743 7.3, 7.9; draft-huitema-ccwg-c4-test: short to long")),
            (PING_P95, RowRule("K", "RFC 9743 7.3, 7.9")),
        )
    for key, mbit, path_after, changed in (
        ("joint-slower", 20, "5 Mbit/s and 120 ms", "rate=5mbit rtt=120ms"),
        ("joint-faster", 5, "40 Mbit/s and 20 ms", "rate=40mbit rtt=20ms"),
    ):
        path = PassportPath(mbit, 40, 1, 30).with_(change=["10s state=down", f"10.1s state=up {changed}"])
        yield from rated(
            NAME,
            key,
            f"{mbit} Mbit/s and 40 ms, after 0.1 s without a link {path_after}",
            path.scenario(),
            (GOODPUT, JOINT),
            (RESENT, JOINT),
        )
    for key, title, first, changes in (
        ("capacity-up", "25 to 100 Mbit/s at 10 s, 100 ms", 25, ["10s rate=100mbit"]),
        ("capacity-down", "100 to 25 Mbit/s at 10 s, 100 ms", 100, ["10s rate=25mbit"]),
    ):
        path = PassportPath(first, 100, 1, 30).with_(change=changes)
        yield from rated(NAME, key, title, path.scenario(), (GOODPUT, TRANSIENT), quick=key == "capacity-up")
    yield from _handovers()
    yield from _wireless()


DROP = ["1.5s rate=2.5mbit", "3.5s rate=5mbit"]


def _handovers() -> Iterator[PassportRow]:
    """Every 15 s a link of a satellite is away for 50 or 200 ms, and comes back with another round trip."""
    for key, gap_ms in (("short", 50), ("long", 200)):
        changes = []
        for number, rtt_ms in enumerate((60, 40, 60, 40), start=1):
            back_s = 15 * number + gap_ms / 1000
            changes += [f"{15 * number}s state=down", f"{back_s:g}s state=up rtt={rtt_ms}ms"]
        path = PassportPath(50, 40, 1, 75).with_(change=changes)
        yield from rated(
            NAME,
            f"handover-{key}",
            f"50 Mbit/s, every 15 s {gap_ms} ms without a link and another round trip, 40 or 60 ms",
            path.scenario(),
            (RECOVERY, HANDOVER),
            (GOODPUT, HANDOVER),
            (RESENT, HANDOVER),
        )


def _wireless() -> Iterator[PassportRow]:
    for medium in ("wifi-n", "adsl2"):
        air = PassportPath(10, 20, 1, 20)
        options = {**air.options, "medium": medium, "queue": "pfifo"}
        del options["rate"]
        yield from rated(
            NAME,
            medium,
            f"{medium}, 20 ms, pfifo",
            Scenario((PLACE,), options),
            (GOODPUT, WIRELESS),
            (PING_P95, WIRELESS),
        )
