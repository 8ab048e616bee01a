"""Situations of a path with a known cause, each drawn from a seed: the experiment, and what its user knows.

What is drawn for every cause: rate, round trip, algorithm, number of flows, buffer, discipline, other traffic,
jitter, duration. A situation is a run of the simulator through the ordinary experiment; `truth` decides from the
recording whether the construction had its effect.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from dragstrip.engines.capture import SNAPLEN
from dragstrip.engines.sim.engine import simulate
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment
from dragstrip.model.recording import Recording

Json: TypeAlias = dict[str, Any]

CAUSES = (
    "bufferbloat",
    "bufferbloat_up",
    "slow_start_overshoot",
    "random_loss",
    "aqm",
    "policer",
    "shaper_above_line",
    "shaper_below_line",
    "receive_window",
    "send_buffer",
    "small_queue_limit",
    "application",
    "receiver_closed",
    "no_answer",
    "ack_path",
    "marked_class",
    "other_bottleneck",
    "no_ecn",
    "fifo",
    "nothing",
)
IDLE_S = 2.5
"""Seconds at the beginning of a run in which only pings are on the path."""
FRAME_BYTES = 1514
LOSS_BASED = (
    "cubic",
    "cubic",
    "cubic",
    "reno",
    "htcp",
    "bic",
    "illinois",
    "westwood",
    "scalable",
    "highspeed",
)
OTHERS = ("bbr", "bbr3", "vegas", "cdg", "yeah", "nv", "hybla", "veno")
AQMS = ("fq_codel", "codel", "pie", "cake", "fq_pie")
WMEM, RMEM = "4096 16384 67108864", "4096 131072 67108864"
"""Linux's own first sizes, which the kernel tunes up to a size that limits no path here."""


@dataclass(frozen=True)
class Router:
    """The interface whose script and listing the user has."""

    link: str
    discipline: str
    """The words of the discipline that holds the packets."""
    shaped_bps: int | None = None
    """The rate of an htb class around it."""
    device: str = "eth1"


@dataclass(frozen=True)
class Situation:
    """A path with a cause."""

    seed: int
    cause: str
    experiment: Json
    rate_bps: int
    """The rate of the link that matters."""
    line_bps: int
    """The rate of the line, as its user would state it."""
    rtt_ms: float
    router: Router
    flows: int = 1
    """Flows of the measurement; others are cross traffic."""
    hot: str = "r-d"
    """The link where packets wait or are lost."""
    answers: bool = False
    """Whether the flow's receiver, which answers requests, has the data."""
    races: Json = field(default_factory=dict)
    """Options of the command line."""
    paced: bool = False
    """Whether the application is an iperf3 that was told a bit rate (`-b`)."""
    held_back: bool = False


def is_held_back(seed: int) -> bool:
    """Return whether a situation is never looked at while rules are made: half of them, by a hash."""
    return hashlib.sha256(f"situation {seed}".encode()).digest()[0] % 2 == 1


@dataclass
class _Dice:
    random: random.Random

    def log(self, low: float, high: float) -> float:
        return math.exp(self.random.uniform(math.log(low), math.log(high)))

    def between(self, low: float, high: float) -> float:
        return self.random.uniform(low, high)

    def one(self, *values: Any) -> Any:
        return self.random.choice(values)

    def chance(self, share: float) -> bool:
        return self.random.random() < share


@dataclass
class _Plan:
    """What all situations have in common, before the cause changes it."""

    dice: _Dice
    rate: float
    rtt: float
    flows: int
    algorithm: str
    length_s: float
    path: Json = field(default_factory=dict)
    hosts: Json = field(default_factory=dict)
    graph: Json = field(default_factory=dict)
    each: Json = field(default_factory=dict)
    """Fields of the measured flows."""
    cross: list[Json] = field(default_factory=list)
    changes: list[Json] = field(default_factory=list)
    target: str = "d"
    extra_probes: list[Json] = field(default_factory=list)

    @property
    def bdp(self) -> float:
        return self.rate * self.rtt / 8e3

    def bytes_of(self, ms: float) -> int:
        """Return the bytes that the rate carries in a time, at least of three frames."""
        return max(3 * FRAME_BYTES, round(self.rate * ms / 8e3))


def situation(seed: int, attempt: int = 0, cause: str = "") -> Situation:
    """Return the situation of a seed; a further `attempt` draws again."""
    cause = cause or CAUSES[seed % len(CAUSES)]
    dice = _Dice(random.Random(f"{seed} {attempt}"))  # noqa: S311 - no secret
    fast = dice.chance(0.12)
    rate = dice.log(100e6, 1000e6) if fast else dice.log(0.5e6, 100e6)
    plan = _Plan(
        dice=dice,
        rate=rate,
        rtt=dice.log(2, 300),
        flows=dice.one(1, 1, 1, 2, 3, 4),
        algorithm=dice.one(*LOSS_BASED) if dice.chance(0.75) else dice.one(*OTHERS),
        length_s=dice.between(7, 14) if rate < 40e6 else dice.between(5, 8) if rate < 150e6 else 4.5,
    )
    made = _BUILD[cause](plan)
    if "race" not in made:
        given: Json = {"rate": f"{made.get('line', round(plan.rate))}bit"}
        made["race"] = given if dice.chance(0.35) else {}
    return _situation(seed, cause, plan, made)


def _situation(seed: int, cause: str, plan: _Plan, made: Json) -> Situation:
    rate = made.get("rate", round(plan.rate))
    content: Json = {
        "name": f"situation-{seed}",
        "seed": seed + 1,
        "duration": f"{IDLE_S + plan.length_s:.2f}s",
        "flows": [
            {"cc": plan.algorithm, "count": plan.flows, "start": f"{IDLE_S}s", **plan.each},
            *plan.cross,
        ],
        "probes": [
            {"from": "s1", "target": plan.target, "interval": "100ms", "label": "ping"},
            *plan.extra_probes,
        ],
        "record": {"interval": "100ms", "rtts": False},
        **({"path": plan.path} if plan.path else {}),
        **plan.graph,
    }
    hosts = {"*": {"sysctl": {"net.ipv4.tcp_rmem": RMEM, "net.ipv4.tcp_wmem": WMEM}}} | plan.hosts
    content["hosts"] = hosts
    if plan.changes:
        content["changes"] = plan.changes
    return Situation(
        seed=seed,
        cause=cause,
        experiment=content,
        rate_bps=rate,
        line_bps=made.get("line", rate),
        rtt_ms=plan.rtt,
        router=made.get("router") or Router("r-d", plan.path.get("queue", ""), None),
        flows=plan.flows,
        hot=made.get("hot", "r-d"),
        answers="reverse" in plan.each,
        races=made["race"],
        paced=made.get("paced", False),
        held_back=is_held_back(seed),
    )


def _dumbbell(plan: _Plan, queue: str, **path: Any) -> Router:
    """Set the path: senders, a router, the bottleneck; return the router's interface, shaped or not."""
    rate = round(plan.rate)
    plan.path = {
        "rate": f"{rate}bit",
        "queue": queue,
        "rtt": f"{plan.rtt:.3f}ms",
        "senders": 1 + len(plan.cross),
        "link": plan.dice.one("htb", "htb", "wire"),
        **path,
    }
    plan.each.setdefault("sender", "s1")
    for number, flow in enumerate(plan.cross):
        flow.setdefault("sender", f"s{number + 2}")
    return Router("r-d", queue, rate if plan.dice.chance(0.6) else None)


def _cross_traffic(plan: _Plan, share: float = 0.3) -> None:
    """Add traffic that no file shows, to a share of the situations."""
    if not plan.dice.chance(share):
        return
    part = plan.dice.between(0.03, 0.25)
    if plan.dice.chance(0.6):
        rate = f"{round(plan.rate * part)}bit"
        flow: Json = {"application": {"kind": "constant_rate", "rate": rate}}
        flow["start"] = f"{IDLE_S + plan.dice.between(0, 3):.2f}s"
        flow["label"] = "cross"
    else:
        size = round(min(2e6, plan.rate / 8 * plan.dice.between(0.1, 0.6)))
        flow = {"cc": "cubic", "bytes": f"{size}b", "start": f"{IDLE_S + plan.dice.between(1, 4):.2f}s"}
        flow["label"] = "cross"
    plan.cross.append(flow)


def _jitter(plan: _Plan) -> Json:
    """Return a little jitter for a share of the situations, which delays but does not reorder much."""
    return {"jitter": f"{plan.dice.between(0.05, 1.0):.2f}ms"} if plan.dice.chance(0.1) else {}


def _fifo_words(plan: _Plan, ms: float) -> str:
    size = plan.bytes_of(ms)
    return plan.dice.one(f"bfifo limit {size}b", f"pfifo limit {max(3, round(size / FRAME_BYTES))}")


def _one_bdp(plan: _Plan) -> str:
    return f"bfifo limit {plan.bytes_of(plan.rtt)}b"


def _bufferbloat(plan: _Plan) -> Json:
    plan.rate = min(plan.rate, 120e6)
    plan.rtt = min(plan.rtt, 120)
    plan.algorithm = plan.dice.one(*LOSS_BASED)
    _cross_traffic(plan)
    return {"router": _dumbbell(plan, _fifo_words(plan, plan.dice.log(90, 800)), **_jitter(plan))}


def _bufferbloat_up(plan: _Plan) -> Json:
    plan.rate = plan.dice.log(4e6, 60e6)
    plan.rtt = plan.dice.log(5, 80)
    plan.flows = plan.dice.one(1, 1, 2)
    up = plan.rate / plan.dice.between(4, 20)
    plan.cross = [
        {
            "cc": "cubic",
            "reverse": True,
            "label": "upload",
            "start": f"{IDLE_S}s",
            "sender": "d",
            "receiver": "s2",
        }
    ]
    router = _dumbbell(
        plan,
        plan.dice.one("fq_codel", "cake", f"bfifo limit {plan.bytes_of(12)}b"),
        up_rate=f"{round(up)}bit",
        up_queue=f"bfifo limit {max(6 * FRAME_BYTES, round(up / 8 * plan.dice.between(0.2, 1.0)))}b",
    )
    return {"router": replace(router, link="r-w"), "hot": "w-r"}


def _slow_start_overshoot(plan: _Plan) -> Json:
    plan.rate = plan.dice.log(8e6, 300e6)
    plan.rtt = plan.dice.log(30, 300)
    plan.algorithm = plan.dice.one("cubic", "cubic", "reno", "htcp", "bic", "bbr", "westwood", "scalable")
    plan.flows = plan.dice.one(1, 1, 1, 2)
    plan.length_s = plan.dice.between(8, 13) if plan.rate < 60e6 else 7.0
    queue = _fifo_words(plan, plan.rtt * plan.dice.between(0.05, 0.4))
    return {"router": _dumbbell(plan, queue)}


def _random_loss(plan: _Plan) -> Json:
    loss = plan.dice.log(0.0008, 0.03)
    _cross_traffic(plan)
    queue = plan.dice.one("fq_codel", _fifo_words(plan, plan.dice.between(15, 60)), _one_bdp(plan), "cake")
    where = plan.dice.one("loss", "loss", "ahead_loss")
    return {"router": _dumbbell(plan, queue, **{where: f"{loss * 100:.3f}%"}, **_jitter(plan))}


def _aqm(plan: _Plan) -> Json:
    plan.rate = plan.dice.log(0.8e6, 100e6)
    plan.rtt = plan.dice.log(4, 150)
    _cross_traffic(plan)
    words = plan.dice.one(*AQMS)
    if words == "cake" and plan.dice.chance(0.5):
        words = "cake besteffort"
    return {"router": _dumbbell(plan, words, **_jitter(plan))}


def _policer(plan: _Plan) -> Json:
    plan.rate = plan.dice.log(0.6e6, 60e6)
    plan.rtt = plan.dice.log(5, 200)
    plan.flows = plan.dice.one(1, 1, 1, 2)
    burst = round(max(8 * FRAME_BYTES, plan.rate / 8 * plan.dice.log(0.01, 0.5)))
    line = round(plan.rate * plan.dice.between(2, 20))
    words = f"police rate {round(plan.rate)}bit burst {burst}b"
    _dumbbell(plan, words)
    plan.path["rate"] = f"{line}bit"
    return {"router": Router("r-d", words), "line": line, "rate": round(plan.rate)}


def _chain(plan: _Plan, first: Json, second: Json, target: str = "d") -> None:
    """Set the graph: host, router with an interface towards a modem, the modem's line, another host."""
    half = plan.rtt / 2
    plan.graph = {
        "nodes": [
            {"name": "s1", "kind": "host"},
            {"name": "r", "kind": "router"},
            {"name": "m", "kind": "router"},
            {"name": "d", "kind": "host"},
        ],
        "links": [
            {"from": "s1", "to": "r"},
            {"from": "r", "to": "m", "both_ways": False, **first},
            {"from": "m", "to": "r", "both_ways": False},
            {"from": "m", "to": "d", "both_ways": False, "delay": f"{half:.3f}ms", **second},
            {"from": "d", "to": "m", "both_ways": False, "delay": f"{half:.3f}ms"},
        ],
    }
    plan.path = {}
    plan.each |= {"sender": "s1", "receiver": target}


def _shaper_above_line(plan: _Plan) -> Json:
    plan.rate = plan.dice.log(1e6, 80e6)
    plan.rtt = plan.dice.log(5, 100)
    plan.algorithm = plan.dice.one(*LOSS_BASED)
    shaper = round(plan.rate * plan.dice.between(1.15, 2.5))
    words = plan.dice.one("fq_codel", "fq_codel", "cake", "codel")
    deep = plan.bytes_of(plan.dice.log(120, 600))
    _chain(
        plan,
        {"rate": f"{shaper}bit", "queue": words},
        {"rate": f"{round(plan.rate)}bit", "queue": f"bfifo limit {deep}b"},
    )
    return {"router": Router("r-m", words, shaper), "hot": "m-d", "line": round(plan.rate)}


def _shaper_below_line(plan: _Plan) -> Json:
    plan.rate = plan.dice.log(1e6, 80e6)
    plan.rtt = plan.dice.log(5, 100)
    words = plan.dice.one("fq_codel", "cake", "codel", "fq_codel", "pie")
    line = round(plan.rate * plan.dice.between(1.6, 10))
    _dumbbell(plan, words)
    return {"router": Router("r-d", words, round(plan.rate)), "line": line, "race": {"rate": f"{line}bit"}}


def _window(plan: _Plan) -> int:
    """Return a window that fills at most 70 % of the path: of less than its BDP."""
    plan.rate = max(plan.rate, 10e6)
    plan.rtt = max(plan.rtt, 10)
    while plan.bdp < 80_000:
        plan.rtt = min(300, plan.rtt * 1.5)
        plan.rate = min(1e9, plan.rate * 1.5)
    plan.flows = plan.dice.one(1, 1, 1, 2)
    return round(plan.bdp / plan.flows * plan.dice.between(0.15, 0.6))


def _receive_window(plan: _Plan) -> Json:
    window = _window(plan)
    size = max(16_384, round(window * 2))
    router = _dumbbell(plan, plan.dice.one("fq_codel", _one_bdp(plan), "pfifo limit 1000"), **_jitter(plan))
    plan.hosts["d"] = {"sysctl": {"net.ipv4.tcp_rmem": f"4096 {size} {size}", "net.ipv4.tcp_wmem": WMEM}}
    return {"router": router}


def _send_buffer(plan: _Plan) -> Json:
    window = _window(plan)
    size = max(16_384, round(window * 2))
    router = _dumbbell(plan, plan.dice.one("fq_codel", _one_bdp(plan), "pfifo limit 1000"), **_jitter(plan))
    plan.hosts["s1"] = {"sysctl": {"net.ipv4.tcp_wmem": f"4096 {size} {size}", "net.ipv4.tcp_rmem": RMEM}}
    return {"router": router}


def _small_queue_limit(plan: _Plan) -> Json:
    plan.rate = plan.dice.log(2e6, 100e6)
    plan.rtt = plan.dice.log(5, 120)
    plan.algorithm = plan.dice.one("cubic", "cubic", "reno", "htcp", "bic")
    plan.flows = plan.dice.one(1, 1, 2)
    deep = plan.dice.one("pfifo limit 1000", "pfifo_fast", "fq_codel", f"bfifo limit {plan.bytes_of(400)}b")
    deep = "pfifo limit 1000" if deep == "pfifo_fast" else deep
    half = plan.rtt / 2
    plan.graph = {
        "nodes": [
            {"name": "s1", "kind": "host"},
            {"name": "r", "kind": "router"},
            {"name": "d", "kind": "host"},
        ],
        "links": [
            {"from": "s1", "to": "r", "both_ways": False, "rate": f"{round(plan.rate)}bit", "queue": deep},
            {"from": "r", "to": "s1", "both_ways": False},
            {"from": "r", "to": "d", "delay": f"{half:.3f}ms"},
        ],
    }
    plan.each |= {"sender": "s1", "receiver": "d"}
    return {"router": Router("s1-r", deep), "hot": "s1-r"}


def _application(plan: _Plan) -> Json:
    plan.rate = plan.dice.log(4e6, 300e6)
    plan.flows = plan.dice.one(1, 1, 1, 2)
    router = _dumbbell(plan, plan.dice.one("fq_codel", "pfifo limit 1000", _one_bdp(plan)), **_jitter(plan))
    answer = max(20_000, round(min(400_000, plan.bdp * plan.dice.between(0.2, 1.0))))
    think = plan.dice.between(30, 400)
    _answers(plan, answer, think)
    return {"router": router, "paced": plan.dice.chance(0.5)}


def _answers(plan: _Plan, answer: int, think_ms: float) -> None:
    """Let s1, the answering side, send what d asks for, and wait for the next request."""
    plan.each["application"] = {
        "kind": "request_response",
        "request": "200b",
        "response": f"{answer}b",
        "think": f"{think_ms:.0f}ms",
    }
    plan.each |= {"reverse": True, "sender": "d", "receiver": "s1"}


def _receiver_closed(plan: _Plan) -> Json:
    plan.rate = plan.dice.log(4e6, 30e6)
    plan.rtt = plan.dice.log(5, 150)
    plan.flows = 1
    plan.algorithm = plan.dice.one("cubic", "reno", "bbr")
    router = _dumbbell(plan, plan.dice.one("pfifo limit 1000", "pfifo limit 1000", "fq_codel"))
    _answers(
        plan, round(plan.rate / 8 * plan.dice.between(0.3, 1.0)), plan.dice.between(900, 3000) + 3 * plan.rtt
    )
    return {"router": router}


def _no_answer(plan: _Plan) -> Json:
    plan.length_s = plan.dice.between(4.2, 16)
    router = _dumbbell(plan, plan.dice.one("fq_codel", "pfifo limit 1000"))
    plan.changes = [{"at": f"{IDLE_S - 0.1}s", "link": "r-d", "state": "down"}]
    return {"router": router}


def _ack_path(plan: _Plan) -> Json:
    plan.rate = plan.dice.log(20e6, 150e6)
    plan.rtt = plan.dice.log(5, 80)
    plan.flows = plan.dice.one(1, 1, 2)
    up = plan.rate / plan.dice.between(120, 400)
    router = _dumbbell(
        plan,
        plan.dice.one("fq_codel", _one_bdp(plan), f"bfifo limit {plan.bytes_of(20)}b"),
        up_rate=f"{round(up)}bit",
        up_queue=plan.dice.one("pfifo limit 20", "pfifo limit 50", "bfifo limit 4000b"),
    )
    return {"router": router, "hot": "d-r"}


def _marked_class(plan: _Plan) -> Json:
    """Set a graph whose second link stands for the background class of one line."""
    plan.rate = plan.dice.log(4e6, 100e6)
    plan.rtt = plan.dice.log(5, 80)
    plan.algorithm = plan.dice.one(*LOSS_BASED)
    plan.flows = 1
    slow = plan.rate / plan.dice.between(10, 20)
    half = plan.rtt / 2
    deep = max(6 * FRAME_BYTES, round(slow / 8 * plan.dice.log(0.1, 0.5)))
    back = {"both_ways": False, "delay": f"{half:.3f}ms"}
    plan.graph = {
        "nodes": [
            {"name": "s1", "kind": "host"},
            {"name": "r", "kind": "router"},
            {"name": "d", "kind": "host"},
            {"name": "e", "kind": "host"},
        ],
        "links": [
            {"from": "s1", "to": "r"},
            {"from": "r", "to": "d", "rate": f"{round(plan.rate - slow)}bit", "queue": "fq_codel", **back},
            {"from": "d", "to": "r", **back},
            {"from": "r", "to": "e", "rate": f"{round(slow)}bit", "queue": f"bfifo limit {deep}b", **back},
            {"from": "e", "to": "r", **back},
        ],
    }
    plan.each |= {"sender": "s1", "receiver": "d"}
    plan.cross = [
        {"cc": "cubic", "sender": "s1", "receiver": "e", "start": f"{IDLE_S}s", "label": "background"}
    ]
    plan.extra_probes = [{"from": "s1", "target": "e", "interval": "100ms", "label": "ping BK"}]
    cake = f"cake bandwidth {round(plan.rate)}bit diffserv3"
    return {"router": Router("r-d", cake, None), "hot": "r-e"}


def _other_bottleneck(plan: _Plan) -> Json:
    plan.rate = plan.dice.log(1e6, 80e6)
    plan.rtt = plan.dice.log(5, 100)
    plan.algorithm = plan.dice.one(*LOSS_BASED)
    words = plan.dice.one("fq_codel", "codel", "fq_codel")
    deep = plan.bytes_of(plan.dice.log(120, 600))
    fast = round(max(100e6, plan.rate * 10))
    _chain(
        plan,
        {"rate": f"{fast}bit", "queue": words},
        {"rate": f"{round(plan.rate)}bit", "queue": f"bfifo limit {deep}b"},
    )
    return {"router": Router("r-m", words), "hot": "m-d"}


def _no_ecn(plan: _Plan) -> Json:
    plan.rate = plan.dice.log(0.8e6, 40e6)
    plan.rtt = plan.dice.log(4, 120)
    plan.algorithm = plan.dice.one(*LOSS_BASED)
    words = plan.dice.one("fq_codel ecn", "cake", "codel ecn", "fq_codel")
    return {"router": _dumbbell(plan, words)}


def _fifo(plan: _Plan) -> Json:
    plan.rate = min(plan.rate, 60e6)
    ms = plan.dice.log(40, 900)
    words = plan.dice.one(_fifo_words(plan, ms), _fifo_words(plan, ms), "pfifo limit 1000")
    router = _dumbbell(plan, words)
    return {"router": replace(router, shaped_bps=round(plan.rate))}


def _nothing(plan: _Plan) -> Json:
    plan.rtt = plan.dice.log(5, 100)
    plan.rate = plan.dice.log(1.5e6, 300e6)
    plan.flows = plan.dice.one(1, 1, 2)
    kind = plan.dice.one("marks", "paced", "plain")
    plan.algorithm = (
        plan.dice.one("bbr", "bbr3", "vegas", "nv") if kind == "paced" else plan.dice.one("cubic", "reno")
    )
    words = plan.dice.one("fq_codel", "cake")
    if kind == "marks":
        plan.hosts["s1"] = {"sysctl": {"net.ipv4.tcp_ecn": 1}}
    elif kind == "paced":
        words = f"bfifo limit {plan.bytes_of(max(25, plan.rtt * 2))}b"
    else:
        plan.rate = plan.dice.log(20e6, 300e6)
    router = _dumbbell(plan, words)
    return {"router": router, "race": {"rate": f"{round(plan.rate)}bit"}}


_BUILD: Mapping[str, Callable[[_Plan], Json]] = {name: globals()[f"_{name}"] for name in CAUSES}


def scenario_of(it: Situation) -> Json:
    """Return the scenario that the ordinary experiment plans."""
    (run,) = expand(Experiment.build(it.experiment))
    scenario: Json = run.scenario
    return scenario


def recording_of(it: Situation, folder: Path | None = None, points: tuple[str, ...] = ()) -> Recording:
    """Return the recording; with `points` packets are captured there, into files of a folder by their names."""
    capture = None
    if folder is not None and points:
        files = [(point, str(folder / f"{point}.pcapng")) for point in points]
        capture = (files, (SNAPLEN, SNAPLEN), json.dumps(it.seed))
    return simulate(scenario_of(it), None, capture)
