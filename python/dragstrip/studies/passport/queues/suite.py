"""Rows of a queue discipline: the scenarios of RFC 7928 (AQM characterization guidelines), by its sections.

The RFC sets no limits: figures stand beside those of drop-tail queues, which it asks for (8.2.6).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dragstrip import _core
from dragstrip.errors import BadInputError, nearest
from dragstrip.studies.passport.figures import (
    GOODPUT,
    IMBALANCE,
    MOS,
    NEIGHBOUR,
    NEIGHBOUR_COMPLETION,
    NEIGHBOUR_RESENT,
    RESENT,
    VIDEO_RATE,
    VIDEO_STALLED,
)
from dragstrip.studies.passport.queues.figures import (
    DELAY_P50,
    DELAY_P95,
    DROPPED,
    FILLED,
    JAIN_LONG,
    LEAST_LONG,
    PING_OVER_P50,
    PING_OVER_P95,
    SHORT_P50,
    SHORT_P95,
    STEP_P50,
    STEP_P95,
)
from dragstrip.studies.passport.queues.scenario import PLACE, QueuePath, QueueScenario
from dragstrip.studies.passport.queues.words import BASELINES, main_parameter
from dragstrip.studies.passport.rows import PassportRow, RowFigure, RowRule, rated

VERSION = 2
"""The suite's version: rows of different versions are not compared."""
TITLES = {
    "transport": "transport protocols",
    "rtt": "different round trips",
    "apps": "bursts and applications",
    "congestion": "levels of congestion",
    "change": "changing capacity",
    "topology": "sizes, directions, queues in series",
    "sensitivity": "its main parameter",
}
NAMES = tuple(TITLES)
SLOW, FAST = QueuePath(10, 100), QueuePath(100, 20)
DELAYS = (DELAY_P50, DELAY_P95)
WEB = {"kind": "request_response", "request": "1kb", "response": "442kb", "think": "5s"}
"""A sixth of a page of 2652 kB (HTTP Archive, Web Almanac 2024), for each of a browser's six connections."""
STEP_S, AFTER_S = 10, 5
FACTORS = (0.25, 0.5, 1, 2, 4)
"""Factors of the main parameter."""


@dataclass(frozen=True)
class QueueRule(RowRule):
    """Requirement on a figure of a queue."""

    @property
    def text(self) -> str:
        """The rule in words, without the figure's unit."""
        return "no worse than both drop-tail queues" if self.kind == "K" else super().text


def beside(section: str) -> RowRule:
    """The rule of a row that stands beside the drop-tail queues, from this section of RFC 7928."""
    return QueueRule("K", f"RFC 7928 {section}")


def reported(section: str) -> RowRule:
    """The rule of a row that no figure of a drop-tail queue can judge."""
    return QueueRule("R", f"RFC 7928 {section}")


def udp(mbit: float, **more: Any) -> dict[str, Any]:
    """A flow that does not react, of this rate of payload in Mbit/s."""
    return {"application": {"kind": "constant_rate", "rate": f"{mbit * 1000:g}kbit"}, **more}


def chapters(only: str | None) -> tuple[str, ...]:
    """The chapters that `--only` names, in the suite's order; raises `BadInputError` for another name."""
    if only is None:
        return NAMES
    names = [name.strip() for name in only.split(",")]
    for name in names:
        if name not in NAMES:
            expected = f"chapters out of {', '.join(NAMES)}, with commas between{nearest(name, NAMES)}"
            raise BadInputError("--only", only, expected, "command line")
    return tuple(name for name in NAMES if name in names)


def rows(words: str, chapter_names: Sequence[str], quick: bool) -> list[PassportRow]:
    """The rows of these chapters that apply to this discipline, of the quick suite or of all."""
    made = [
        *_transport(),
        *_rtt(_marks(words)),
        *_apps(),
        *_congestion(),
        *_change(),
        *_topology(),
        *(_sensitivity() if main_parameter(words) is not None else ()),
    ]
    return [row for row in made if row.chapter in chapter_names and (row.quick or not quick)]


def _marks(words: str) -> bool:
    return "bdp" not in words and _core.queue_marks(words)


def _figures(section: str, *figures: RowFigure) -> list[tuple[RowFigure, RowRule]]:
    return [(figure, beside(section)) for figure in figures]


def _transport() -> Iterator[PassportRow]:
    name = "transport"
    for path in (SLOW, FAST):
        for cc, section in (("reno", "5.1.1"), ("cubic", "5.2"), ("bbr", "5: other transports")):
            key, title = f"{cc}-{path.mbit:g}", f"one {cc} at {path.name}"
            figures = _figures(section, FILLED, *DELAYS)
            yield from rated(name, key, title, path.scenario(cc), *figures, quick=path is SLOW)
    short = {"cc": "reno", "bytes": "29kb", "start": "30s"}
    yield from rated(
        name,
        "short",
        f"a flow of 29 kB 30 s after one reno at {SLOW.name}",
        SLOW.scenario("reno", short, subjects=1),
        *_figures("5.1.2", NEIGHBOUR_COMPLETION),
        quick=True,
    )
    yield from rated(
        name,
        "udp-above",
        f"UDP at 120 % of {SLOW.name}",
        SLOW.scenario(udp(12)),
        *_figures("5.3", FILLED, PING_OVER_P50, PING_OVER_P95),
        quick=True,
    )
    yield from rated(
        name,
        "udp-60",
        f"one reno and UDP at 60 % of {SLOW.name}",
        SLOW.scenario("reno", udp(6), subjects=1),
        *_figures("5.3", FILLED, GOODPUT, DELAY_P95),
        quick=True,
    )
    yield from rated(
        name,
        "ledbat",
        f"one reno and ledbat with a target of 5 ms at {SLOW.name}",
        SLOW.scenario("reno", "ledbat:target_ms=5", subjects=1),
        (DELAY_P95, beside("5.4")),
        (NEIGHBOUR, reported("5.4")),
    )
    mixed: list[Any] = ["cubic", "bbr", "reno", udp(2)]
    yield from rated(
        name,
        "mixed",
        f"cubic, bbr, reno and UDP at 20 % of {SLOW.name}",
        SLOW.scenario(*mixed, subjects=3),
        *_figures("5.2, 5.3: mixed", LEAST_LONG, JAIN_LONG, FILLED, DELAY_P95, PING_OVER_P95),
        quick=True,
    )


def _rtt(marks: bool) -> Iterator[PassportRow]:
    for other_ms in (5, 20, 50, 200, 560):
        for ecn in (False, True) if marks else (False,):
            key = f"{other_ms}{'-ecn' if ecn else ''}"
            title = f"two reno of 100 and {other_ms} ms at 10 Mbit/s{' with ECN' if ecn else ''}"
            options: dict[str, Any] = {"ecn": True} if ecn else {}
            scenario = SLOW.scenario("reno", f"reno@{other_ms}ms+0.5s", subjects=1, **options)
            section = "6.2; 4.5" if ecn else "6.2"
            quick = other_ms in (5, 200) and not ecn
            yield from rated(
                "rtt", key, title, scenario, *_figures(section, IMBALANCE, FILLED, DROPPED), quick=quick
            )


def _apps() -> Iterator[PassportRow]:
    web = [{"cc": "reno", "reverse": True, "application": WEB}] * 6
    video = {"cc": "reno", "reverse": True, "application": {"kind": "video"}}
    call = udp(0.1)
    mixes: tuple[tuple[str, str, list[Any], list[RowFigure]], ...] = (
        ("web-call", "web and a call", [*web, call], [GOODPUT, MOS]),
        ("web-bulk-call", "web, a bulk flow and a call", [*web, "reno", call], [GOODPUT, MOS]),
        (
            "web-video-call",
            "web, a video and a call",
            [*web, video, call],
            [GOODPUT, MOS, VIDEO_RATE, VIDEO_STALLED],
        ),
        (
            "all",
            "web, a video, a bulk flow and a call",
            [*web, video, "reno", call],
            [GOODPUT, MOS, VIDEO_RATE, VIDEO_STALLED],
        ),
        (
            "recommended",
            "web, a video, five bulk flows, 1 Mbit/s of UDP and a call",
            [*web, video, *["reno"] * 5, udp(1), call],
            [GOODPUT, MOS, VIDEO_RATE, VIDEO_STALLED],
        ),
    )
    for key, title, flows, figures in mixes:
        scenario = SLOW.scenario(*flows, subjects=len(web))
        section = "9.1" if key == "recommended" else "7.2"
        yield from rated(
            "apps", key, f"{title} at {SLOW.name}", scenario, *_figures(section, *figures), quick=key == "all"
        )
    downloads = [{"cc": "cubic", "bytes": "10kb", "start": f"{10 + at}s"} for at in range(40)]
    yield from rated(
        "apps",
        "short",
        f"forty downloads of 10 kB beside two cubic at {SLOW.name}",
        SLOW.scenario("cubic", "cubic", *downloads, subjects=2),
        *_figures("5.1.2, 7.2", SHORT_P50, SHORT_P95),
        quick=True,
    )


LEVELS = {"mild": 6, "medium": 13, "heavy": 19}
"""Flows by level (8.2.2 to 8.2.4): 0.036, 0.081 and 0.114 of S, which is the BDP and a buffer of one BDP,
here 166 packets of 1514 bytes."""


def _congestion() -> Iterator[PassportRow]:
    for number, (level, count) in enumerate(LEVELS.items(), 2):
        yield from rated(
            "congestion",
            level,
            f"{count} reno at {SLOW.name}",
            SLOW.scenario(f"reno*{count}", stagger="100ms"),
            *_figures(f"8.2.{number}", FILLED, *DELAYS, LEAST_LONG, JAIN_LONG, DROPPED),
            quick=level == "medium",
        )
    path = SLOW.lasting(120)
    more = LEVELS["medium"] - LEVELS["mild"], LEVELS["heavy"] - LEVELS["medium"]
    waves = [
        {"cc": "reno", "start": f"{start}s", "stop": f"{stop}s", "count": count}
        for start, stop, count in (
            (20, 60, more[0]),
            (40, 60, more[1]),
            (80, 120, more[0]),
            (100, 120, more[1]),
        )
    ]
    yield from rated(
        "congestion",
        "varying",
        f"6, 13 and 19 reno for 20 s each, twice, at {path.name}",
        path.scenario({"cc": "reno", "count": LEVELS["mild"]}, *waves, subjects=LEVELS["mild"]),
        *_figures("8.2.5", FILLED, *DELAYS, PING_OVER_P95),
        quick=True,
    )


def _change() -> Iterator[PassportRow]:
    name = "change"
    for key, every_s, duration_s in (("20s", 20.0, 120.0), ("100ms", 0.1, 20.0)):
        path = QueuePath(100, 100, duration_s)
        steps = range(1, round(duration_s / every_s))
        changes = [{"at": f"{at * every_s:g}s", "rate": f"{10 if at % 2 else 100}mbit"} for at in steps]
        yield from rated(
            name,
            key,
            f"two reno at 100 and 10 Mbit/s in turn, {key} each, 100 ms",
            path.scenario(
                "reno", {"cc": "reno", "start": "1s"}, capacity_mbit=55, fields={"changes": changes}
            ),
            *_figures("8.2.6", FILLED, *DELAYS, PING_OVER_P95),
            quick=True,
        )
    path = QueuePath(100, 100, STEP_S + AFTER_S)
    ping = {"from": "d", "target": "s1"}
    probes = [ping, {**ping, "label": "after", "start": f"{STEP_S}s", "interval": "20ms"}]
    capacity_mbit = (100 * STEP_S + 10 * AFTER_S) / (STEP_S + AFTER_S)
    yield from rated(
        name,
        "step",
        f"two cubic at 100, from {STEP_S} s 10 Mbit/s, 100 ms: the {AFTER_S} s after it",
        path.scenario(
            "cubic",
            "cubic",
            change=[f"{STEP_S}s rate=10mbit"],
            capacity_mbit=capacity_mbit,
            fields={"probes": probes},
        ),
        *_figures("8.2.6: time to react", STEP_P50, STEP_P95),
        quick=True,
    )


SMALL_MTU = "500b"
"""Size of the small packets (4.4); the others have 1500 bytes."""
AHEAD_MBIT = 5
"""Rate of the first of two queues in series: the fair share of the three of six flows that pass both."""


def _topology() -> Iterator[PassportRow]:
    name, count = "topology", LEVELS["mild"]
    half = count // 2
    small = {f"s{half + number}": {"mtu": SMALL_MTU} for number in range(1, half + 1)}
    yield from rated(
        name,
        "sizes",
        f"{half} reno with packets of 1500 and {half} of 500 bytes at {SLOW.name}",
        SLOW.scenario(f"reno*{half}", f"reno*{half}", subjects=half, fields={"hosts": small}),
        *_figures("4.4", IMBALANCE, RESENT, NEIGHBOUR_RESENT, FILLED),
        quick=True,
    )
    both_ways: dict[str, Any] = {
        "up_rate": f"{SLOW.mbit:g}mbit",
        "up_queue": PLACE,
        "capacity_mbit": 2 * SLOW.mbit,
    }
    back = {"cc": "reno", "count": count, "reverse": True}
    yield from rated(
        name,
        "both-ways",
        f"{count} reno each way at {SLOW.name}, the discipline in front of both directions",
        SLOW.scenario({"cc": "reno", "count": count}, back, subjects=2 * count, **both_ways),
        *_figures("9.2", FILLED, *DELAYS, LEAST_LONG, JAIN_LONG, DROPPED),
        quick=True,
    )
    for key, title, ahead in (
        ("series", "the discipline", PLACE),
        ("series-behind", BASELINES[0], BASELINES[0]),
    ):
        yield from rated(
            name,
            key,
            f"{half} reno through {title} at {AHEAD_MBIT} Mbit/s, then with {half} more the discipline "
            f"at {SLOW.name}",
            _in_series(ahead, half),
            *_figures("10.2", FILLED, *DELAYS, LEAST_LONG, JAIN_LONG, DROPPED),
            quick=key == "series",
        )


def _in_series(ahead: str, each: int) -> QueueScenario:
    """Return the scenario of two bottlenecks: half of the flows pass `ahead` first, all the discipline."""
    senders = [f"s{number}" for number in range(1, 2 * each + 1)]
    nodes = [{"name": host, "kind": "host"} for host in (*senders, "d")]
    nodes += [{"name": router, "kind": "router"} for router in ("l", "m", "r")]
    links: list[dict[str, Any]] = [
        {"from": host, "to": "l" if at < each else "m"} for at, host in enumerate(senders)
    ]
    for start, end, mbit, queue in (("l", "m", AHEAD_MBIT, ahead), ("m", "r", SLOW.mbit, PLACE)):
        rate = f"{mbit:g}mbit"
        links += [{"from": start, "to": end, "rate": rate, "queue": queue, "both_ways": False}]
        links += [{"from": end, "to": start, "both_ways": False}]
    links += [{"from": "r", "to": "d", "delay": f"{SLOW.rtt_ms / 2:g}ms"}]
    flows = [{"cc": "reno", "sender": host, "receiver": "d"} for host in senders]
    fields = {"path": None, "nodes": nodes, "links": links}
    return SLOW.scenario(*flows, subjects=len(senders), fields=fields)


def _sensitivity() -> Iterator[PassportRow]:
    """Yield the rows that compare a range of values of the main parameter (4.3, 8.3)."""
    for factor in FACTORS:
        count = LEVELS["medium"]
        scenario = SLOW.scenario(f"reno*{count}", stagger="100ms", factor=factor)
        yield from rated(
            "sensitivity",
            f"{factor:g}",
            f"{count} reno at {SLOW.name}, its main parameter times {factor:g}",
            scenario,
            (FILLED, reported("4.3, 8.3")),
            (DELAY_P95, reported("4.3, 8.3")),
            quick=factor in (0.5, 2),
        )
