"""The truth of a situation, by its recording: whether the construction had its effect, and what else is true.

Nothing here reads a file that a user would have. The recording holds what no user has: what waits and is dropped
in each queue, what netem dropped, what limited each sender.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dragstrip.model.recording import Recording

from .situations import IDLE_S, Situation

Floats = npt.NDArray[np.float64]

BLOAT_MS, SOME_MS, CALM_MS = 40.0, 25.0, 12.0
"""Queueing delay (median ping) that is bufferbloat; from which on the word is not wrong; up to which there is none."""
LIMITED, SOME_LIMITED = 0.6, 0.1
"""Share of a flow's samples in which something limits it: a cause; from which on naming it is not wrong."""
FEW = 0.001
"""Share of segments retransmitted that is nothing."""
FIFOS = ("bfifo", "pfifo")
AQMS = ("fq_codel", "codel", "pie", "cake", "fq_pie", "red")


@dataclass(frozen=True)
class Truth:
    """What is so."""

    cause: str
    holds: bool
    """Whether the construction had its effect."""
    also: frozenset[str] = frozenset()
    """Other causes that are there too, so that naming them is right."""
    retransmitted: int = 0
    segments: int = 0
    """Of the measured flows."""
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def right(self) -> frozenset[str]:
        """Causes that a finding may name."""
        return self.also | {self.cause}

    def right_in(self, how: str) -> frozenset[str]:
        """Return the causes that a finding may name of files that are whole, cut or begun late.

        Files that begin behind slow start's overshoot are of a path on which nothing is wrong any more.
        """
        over = self.cause == "slow_start_overshoot" and "bufferbloat" not in self.also
        return self.right | ({"nothing"} if over and how == "late" else frozenset())


@dataclass(frozen=True)
class _Facts:
    """What a recording shows of a situation."""

    situation: Situation
    idle_ms: float
    p50_ms: float
    p95_ms: float
    own_ms: float
    """Queueing delay by the measured flows' own smoothed RTT, median."""
    marked_ms: float
    """Queueing delay of the second series of pings, median."""
    goodput_bps: float
    segments: int
    retransmitted: int
    early: float
    """Share of the retransmissions in slow start's time."""
    limits: Mapping[str, float]
    """Shares of the measured flows' samples by what limited them; each flow counts alike."""
    least_limits: Mapping[str, float]
    """The share of the flow that it limited least."""
    dropped: Mapping[str, int]
    """By link; of netem as `LINK:netem`."""
    marked: Mapping[str, int]
    backlog: Mapping[str, float]
    """Bytes that wait in each queue, median over the samples under load."""
    sent: Mapping[str, float]
    """Bytes that each queue sent under load."""
    seconds: float
    ecn: bool
    flight_over_cwnd: float
    established: bool

    @property
    def excess_ms(self) -> float:
        return self.p50_ms - self.idle_ms

    @property
    def share(self) -> float:
        return self.retransmitted / max(1, self.segments)

    def queue_of(self, link: str) -> str:
        path = self.situation.experiment.get("path")
        if path:
            words = {self.situation.router.link: path["queue"]}
            words |= dict.fromkeys(("d-r", "w-r"), path.get("up_queue", ""))
            return str(words.get(link, "")).split(" ")[0]
        links = self.situation.experiment["links"]
        found = next((it for it in links if f"{it['from']}-{it['to']}" == link), {})
        return str(found.get("queue", "")).split(" ")[0]

    def used(self, link: str, rate: float) -> float:
        """Return the share of a rate that a queue sent."""
        return self.sent.get(link, 0.0) * 8 / self.seconds / rate


def _column(recording: Recording, table: str, name: str) -> npt.NDArray[np.float64]:
    return np.asarray(recording[table].column(name).to_numpy(zero_copy_only=False), dtype=np.float64)


def _facts(it: Situation, recording: Recording) -> _Facts:
    rows = recording["flows"].to_pylist()
    shown = rows[: it.flows]
    pings = {"ping": ([], []), "ping BK": ([], [])}  # type: dict[str, tuple[list[float], list[float]]]
    begin = IDLE_S * 1e9
    end = recording.scenario["duration_ns"]
    for row in recording["probes"].to_pylist():
        if row["probe"] in pings and not row["lost"]:
            late = row["time_ns"] > begin + 1e9
            if late or row["time_ns"] < begin - 3e8:
                pings[row["probe"]][late].append(row["rtt_ns"] / 1e6)
    idle = min(pings["ping"][0], default=np.nan)
    loaded = pings["ping"][1]
    marked = pings["ping BK"]
    samples = recording["samples"]
    flow = _column(recording, "samples", "flow")
    time = _column(recording, "samples", "time_ns")
    limit = np.array(samples.column("limit").to_pylist(), dtype=object)
    again = _column(recording, "samples", "retransmits")
    flight = _column(recording, "samples", "bytes_in_flight")
    cwnd = _column(recording, "samples", "cwnd_bytes")
    smoothed = _column(recording, "samples", "srtt_ns")
    trips = smoothed[(flow < it.flows) & (time > begin + 1e9) & np.isfinite(smoothed)]
    early = total = 0.0
    shares: list[Counter[str]] = []
    ratios = []
    for row in shown:
        mine = (flow == row["flow"]) & (time > row["start_ns"] + 1e9)
        words = Counter(limit[mine])
        count = sum(words.values())
        shares.append(
            Counter({word: number / count for word, number in words.items()}) if count else Counter()
        )
        trip = max(3e9, 40 * it.rtt_ms * 1e6)
        first = (flow == row["flow"]) & (time <= row["start_ns"] + trip)
        early += float(again[first].max(initial=0.0))
        total += row["retransmits"]
        if mine.any():
            ratios.append(float(np.median(flight[mine]) / max(1.0, np.median(cwnd[mine]))))
    words = sorted({word for each in shares for word in each})
    dropped: Counter[str] = Counter()
    marks: Counter[str] = Counter()
    backlog: dict[str, list[float]] = {}
    sent: dict[str, list[float]] = {}
    for row in recording["queues"].to_pylist():
        dropped[row["link"]] = row["dropped"]
        marks[row["link"]] = row["marked"]
        if row["time_ns"] > begin + 1e9:
            backlog.setdefault(row["link"], []).append(row["backlog_bytes"])
            sent.setdefault(row["link"], []).append(row["sent_bytes"])
    seconds = (end - begin) / 1e9
    return _Facts(
        situation=it,
        idle_ms=float(idle),
        p50_ms=float(np.median(loaded)) if loaded else np.nan,
        p95_ms=float(np.percentile(loaded, 95)) if loaded else np.nan,
        own_ms=float(np.median(trips)) / 1e6 - float(idle) if len(trips) else 0.0,
        marked_ms=float(np.median(marked[1]) - min(marked[0])) if all(marked) else 0.0,
        goodput_bps=sum(row["bytes_received"] for row in shown) * 8 / seconds,
        segments=sum(row["segments_sent"] for row in shown),
        retransmitted=sum(row["retransmits"] for row in shown),
        early=early / total if total else 0.0,
        limits={word: float(np.mean([each[word] for each in shares])) for word in words},
        least_limits={word: min(each[word] for each in shares) for word in words},
        dropped=dropped,
        marked=marks,
        backlog={link: float(np.median(values)) for link, values in backlog.items()},
        sent={link: values[-1] - values[0] for link, values in sent.items()},
        seconds=max(0.1, seconds - 1.0),
        ecn=any(row["ecn_negotiated"] for row in shown),
        flight_over_cwnd=float(np.mean(ratios)) if ratios else 1.0,
        established=any(row["bytes_received"] for row in shown),
    )


def _filled(facts: _Facts, share: float = 0.8) -> bool:
    """Return whether the bottleneck was busy: what its queue sent of its rate, or what arrived."""
    rate = facts.situation.rate_bps
    return max(facts.used(facts.situation.hot, rate), facts.goodput_bps * 1.04 / rate) >= share


def _random(facts: _Facts) -> int:
    path = facts.situation.experiment.get("path", {})
    if not ("loss" in path or "ahead_loss" in path):
        return 0
    return sum(count for link, count in facts.dropped.items() if link.endswith(":netem"))


def _in_queues(facts: _Facts) -> int:
    return sum(count for link, count in facts.dropped.items() if not link.endswith(":netem"))


def _by_aqm(facts: _Facts) -> int:
    links = [link for link in facts.dropped if facts.queue_of(link) in AQMS]
    return sum(facts.dropped[link] + facts.marked[link] for link in links)


def _by_fifo(facts: _Facts) -> int:
    return sum(count for link, count in facts.dropped.items() if facts.queue_of(link) in FIFOS)


def _limit(facts: _Facts, *words: str) -> float:
    return sum(facts.limits.get(word, 0.0) for word in words)


_HOLDS: Mapping[str, Callable[[_Facts], bool]] = {
    "bufferbloat": lambda f: f.excess_ms >= BLOAT_MS and _filled(f) and f.backlog.get("r-d", 0) > 0,
    "bufferbloat_up": lambda f: (
        f.excess_ms >= BLOAT_MS
        and f.backlog.get("w-r", 0) * 8e3 / _up_bps(f) >= 0.7 * f.excess_ms
        and f.backlog.get("r-w", 0) * 8e3 / f.situation.rate_bps < 0.3 * f.excess_ms
    ),
    "slow_start_overshoot": lambda f: (
        _by_fifo(f) >= 15
        and f.early >= 0.9
        and f.share >= 0.002
        and f.excess_ms < max(SOME_MS, 0.45 * f.idle_ms)
        and f.retransmitted * (1 - f.early) < 20
    ),
    "random_loss": lambda f: (
        _random(f) >= 10 and _random(f) >= 4 * _in_queues(f) and f.share >= FEW and f.excess_ms < SOME_MS
    ),
    "aqm": lambda f: (
        _by_aqm(f) >= 12
        and f.share >= FEW
        and f.excess_ms < max(SOME_MS, 0.3 * f.idle_ms)
        and _filled(f, 0.6)
        and _random(f) == 0
    ),
    "policer": lambda f: f.dropped["r-d"] >= 15 and f.share >= FEW and f.excess_ms < 10,
    "shaper_above_line": lambda f: (
        f.excess_ms >= BLOAT_MS
        and f.backlog.get("m-d", 0) > 5 * f.backlog.get("r-m", 0)
        and f.used("m-d", f.situation.rate_bps) >= 0.85
    ),
    "shaper_below_line": lambda f: _filled(f, 0.85) and f.excess_ms < SOME_MS,
    "receive_window": lambda f: (
        f.least_limits.get("rwnd", 0.0) >= LIMITED and f.excess_ms < CALM_MS and not _filled(f, 0.8)
    ),
    "send_buffer": lambda f: (
        f.least_limits.get("sndbuf", 0.0) >= LIMITED and f.excess_ms < CALM_MS and not _filled(f, 0.8)
    ),
    "small_queue_limit": lambda f: (
        f.flight_over_cwnd < 0.6
        and _filled(f, 0.85)
        and f.retransmitted == 0
        and _limit(f, "rwnd", "sndbuf", "app") < 0.2
    ),
    "application": lambda f: (
        f.least_limits.get("app", 0.0) >= LIMITED and not _filled(f, 0.75) and f.excess_ms < CALM_MS
    ),
    "receiver_closed": lambda f: f.least_limits.get("app", 0.0) >= 0.5 and f.share < 5 * FEW,
    "no_answer": lambda f: not f.established,
    "ack_path": lambda f: (
        f.used("d-r", _up_bps(f)) >= 0.85
        and (f.dropped["d-r"] >= 20 or f.excess_ms >= SOME_MS)
        and not _filled(f, 0.85)
    ),
    "marked_class": lambda f: f.marked_ms >= BLOAT_MS and f.excess_ms < CALM_MS,
    "other_bottleneck": lambda f: (
        f.excess_ms >= BLOAT_MS
        and f.backlog.get("m-d", 0) > 20 * f.backlog.get("r-m", 0)
        and f.used("m-d", f.situation.rate_bps) >= 0.85
    ),
    "no_ecn": lambda f: _by_aqm(f) >= 5 and not f.ecn and f.excess_ms < SOME_MS,
    "fifo": lambda f: f.queue_of("r-d") in FIFOS,
    "nothing": lambda f: (
        f.excess_ms < CALM_MS and f.share < FEW and f.goodput_bps * 1.05 >= 0.85 * f.situation.rate_bps
    ),
}


def _up_bps(facts: _Facts) -> float:
    path = facts.situation.experiment["path"]
    return float(str(path["up_rate"]).removesuffix("bit"))


def _also(facts: _Facts) -> frozenset[str]:
    """Return everything that is there, whatever the situation was made for."""
    it = facts.situation
    calm = facts.excess_ms < SOME_MS
    bloated = max(facts.excess_ms, facts.own_ms) >= SOME_MS or facts.p95_ms - facts.idle_ms >= BLOAT_MS
    marks = "ecn" in it.router.discipline.split() or it.router.discipline.startswith(("cake", "fq_codel"))
    fifos = [link for link in facts.backlog if facts.queue_of(link) in FIFOS]
    queued = max(facts.backlog, key=lambda link: facts.backlog[link], default="")
    there = {
        "bufferbloat": bloated and it.cause not in ("bufferbloat_up", "ack_path"),
        "bufferbloat_up": bloated and it.cause in ("bufferbloat_up", "ack_path"),
        "ack_path": bloated and it.cause in ("bufferbloat_up", "ack_path"),
        "slow_start_overshoot": _by_fifo(facts) >= 5 and facts.early >= 0.5,
        "random_loss": _random(facts) >= 3,
        "aqm": _by_aqm(facts) >= 1,
        "policer": it.cause == "policer",
        # A window that closes limits before it is closed.
        "receive_window": _limit(facts, "rwnd") >= SOME_LIMITED or it.cause == "receiver_closed",
        "send_buffer": _limit(facts, "sndbuf") >= SOME_LIMITED,
        "small_queue_limit": it.hot.startswith("s1-") or _limit(facts, "small_queue") >= SOME_LIMITED,
        # The files of a stopped reader are made of a run whose sender waits for requests.
        "application": _limit(facts, "app") >= SOME_LIMITED and it.cause != "receiver_closed",
        "no_ecn": marks and not facts.ecn,
        "fifo": bool(fifos) and (queued in fifos or it.router.discipline.startswith(FIFOS)),
        "marked_class": it.cause == "marked_class",
        "shaper_above_line": it.cause == "shaper_above_line",
        # Behind a shaper set above the line, and behind an AQM that is fast, another link is the bottleneck.
        "other_bottleneck": it.cause in ("shaper_above_line", "other_bottleneck"),
        # A healthy AQM, a FIFO, a queue that could mark, and small queues on a busy line harm nobody by themselves.
        "nothing": (
            it.cause in ("aqm", "no_ecn", "fifo", "nothing", "shaper_below_line", "small_queue_limit")
            and calm
            and not _random(facts)
            and facts.goodput_bps * 1.05 >= 0.7 * it.rate_bps
            and (facts.share < 5 * FEW or _by_aqm(facts) >= 1)
        )
        and not (it.cause == "shaper_below_line" and it.races),
    }
    return frozenset(name for name, holds in there.items() if holds)


def truth_of(it: Situation, recording: Recording) -> Truth:
    """Return whether a situation is what it was made to be, and what else is true of it."""
    facts = _facts(it, recording)
    figures = {"excess_ms": facts.excess_ms, "idle_ms": facts.idle_ms, "share": facts.share}
    return Truth(
        cause=it.cause,
        holds=bool(_HOLDS[it.cause](facts)),
        also=_also(facts),
        retransmitted=facts.retransmitted,
        segments=facts.segments,
        figures=figures | {"goodput_mbps": facts.goodput_bps / 1e6, "early": facts.early, **facts.limits},
    )
