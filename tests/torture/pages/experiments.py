"""Experiments at random: everything that decides what is compared with what."""

from __future__ import annotations

import random
from typing import Any

from dragstrip.experiment.comparison import compare
from dragstrip.experiment.types import Experiment

ALGORITHMS = ("reno", "cubic", "vegas", "bbr", "cdg")
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "cubic": [{"beta": 600}, {"hystart": 0}, {"beta": 600, "hystart": 0}],
    "vegas": [{"alpha": 6, "beta": 12}],
    "reno": [],
    "bbr": [],
    "cdg": [{"window": 4}],
}
QUEUES = (
    "bfifo limit 20kb",
    "bfifo limit 60kb",
    "pfifo limit 8",
    "pfifo limit 100",
    "codel limit 100",
    "fq_codel limit 200",
    "codel limit 100 target 5ms ecn",
)
RATES = ("1mbit", "2mbit", "5mbit", "10mbit")
LABELS = ("first", "second", "web-1", "web-2", "video", "a-b", "7")
DURATION_S = 2.0

Content = dict[str, Any]


def experiment(number: int) -> Experiment:
    """The experiment with this number."""
    dice = random.Random(number)
    kind = dice.random()
    if number % 8 == 0:
        content = _late(dice)
    elif kind < 0.15:
        return _compared(dice)
    else:
        content = _parking_lot(dice) if kind < 0.35 else _dumbbell(dice)
    return Experiment.build({"title": f"experiment {number}", "name": f"random-{number}", **content})


def _late(dice: random.Random) -> Content:
    """Labelled flows, the second of which starts late; what varies is the algorithm of both."""
    path = {"rate": dice.choice(RATES), "rtt": "20ms", "queue": "bfifo limit 60kb"}
    flows = [{"label": "first", "cc": "reno"}, {"label": "second", "cc": "reno", "start": "500ms"}]
    vary = {"flows.cc": dice.sample(ALGORITHMS, 2)}
    return {**_common(dice), "path": path, "flows": flows, "vary": vary}


def _compared(dice: random.Random) -> Experiment:
    """As the command line describes it."""
    words = dice.sample(
        [*ALGORITHMS, "cubic:beta=0.6", "bbr@60ms", "reno*2", "vegas*2@15ms"], dice.randint(1, 4)
    )
    several = len(words) > 1
    return compare(
        words,
        rate=dice.choice(RATES),
        rtt=dice.choice(["20ms", "50ms"]),
        queue=dice.choice([*QUEUES, "1bdp", "100ms"]),
        duration=f"{DURATION_S:g}s",
        together=several and dice.random() < 0.5,
        flows=dice.choice([1, 1, 1, 2]),
        both_ways=dice.random() < 0.2,
        stagger=dice.choice([None, None, "120ms"]),
        loss=dice.choice([None, None, "1%"]),
        up_rate=dice.choice([None, None, "1mbit"]),
        workload=dice.choice(["bulk"] * 5 + ["rpc", "file", "rrul", "tcp_bidirectional"]),
        seed=dice.randint(1, 999),
        repeat=dice.choice([1, 1, 2, 4]),
    )


def _common(dice: random.Random) -> Content:
    content: Content = {
        "duration": f"{DURATION_S:g}s",
        "seed": dice.randint(1, 999),
        "repeat": dice.choice([1, 1, 1, 2, 3, 4]),
        "record": {"rtts": dice.random() > 0.1, "every_ack": dice.random() < 0.1},
    }
    if dice.random() < 0.2:
        content["hosts"] = {"*": {"sysctl": {"net.ipv4.tcp_ecn": 1}}}
    return content


def _dumbbell(dice: random.Random) -> Content:
    path: Content = {
        "rate": dice.choice(RATES),
        "rtt": dice.choice(["2ms", "20ms", "40ms", "90ms"]),
        "queue": dice.choice(QUEUES),
        "link": dice.choice(["htb", "wire"]),
    }
    if dice.random() < 0.3:
        path["loss"] = dice.choice(["0.5%", "3%"])
    if dice.random() < 0.15:
        path["jitter"] = "1ms"
    if dice.random() < 0.3:
        path["up_rate"] = dice.choice(["500kbit", "5mbit"])
    labels = dice.sample(LABELS, len(LABELS))
    flows = [_flow(dice, labels.pop()) for _ in range(dice.choice([1, 1, 2, 2, 3, 4]))]
    changed = dice.choice([{"reverse": True}, {"rtt": "120ms"}])  # both at once contradict each other
    for flow in flows:
        if dice.random() < 0.15:
            flow.update(changed)
    content = {**_common(dice), "path": path, "flows": flows}
    probes = [{"from": "d", "target": "s1"}, {"from": "s1", "target": "d", "interval": "70ms"}]
    content["probes"] = dice.sample(probes, dice.choice([0, 1, 1, 2]))
    axes = {"path.queue": QUEUES, "path.rate": RATES, "path.rtt": ("20ms", "40ms")}
    _vary(dice, content, axes)
    return content


def _flow(dice: random.Random, label: str) -> Content:
    kind = dice.random()
    if kind < 0.06:
        made: Content = {"application": {"kind": "constant_rate", "rate": "300kbit", "datagram": "1000b"}}
    else:
        cc = dice.choice(ALGORITHMS)
        made = {"cc": cc}
        if OPTIONS[cc] and dice.random() < 0.3:
            made["cc_options"] = dice.choice(OPTIONS[cc])
        if kind < 0.12:
            made["application"] = {"kind": "on_off", "on": "300ms", "off": "200ms"}
        elif kind < 0.18:
            made["application"] = {
                "kind": "request_response",
                "request": "100b",
                "response": "20kb",
                "think": "100ms",
            }
        elif kind < 0.25:
            made["bytes"] = "80kb"
    if dice.random() < 0.5:
        made["label"] = label
    if dice.random() < 0.3:
        made["start"] = dice.choice(["200ms", "1s"])
    if dice.random() < 0.15:
        made["stop"] = dice.choice(["1500ms", "1800ms"])
    count = dice.choice([1, 1, 1, 1, 2, 3, 6])
    if count > 1:
        made["count"] = count
        if dice.random() < 0.4:
            made["stagger"] = "100ms"
    return made


def _parking_lot(dice: random.Random) -> Content:
    """Two bottlenecks in a row: some flows cross both, others one."""
    hosts = [{"name": name, "kind": "host"} for name in ("a", "b", "c", "d", "e", "f")]
    routers = [{"name": name, "kind": "router"} for name in ("r1", "r2", "r3")]
    ends = [("a", "r1"), ("b", "r1"), ("c", "r2"), ("d", "r2"), ("e", "r3"), ("f", "r3")]
    links: list[Content] = [
        {"from": near, "to": far, "delay": dice.choice(["0ms", "5ms"])} for near, far in ends
    ]
    for near, far in (("r1", "r2"), ("r2", "r3")):
        links.append(
            {
                "from": near,
                "to": far,
                "rate": dice.choice(RATES),
                "delay": "5ms",
                "queue": dice.choice(QUEUES),
                "link": "htb",
                **({"netem": "loss 1%"} if dice.random() < 0.2 else {}),
            }
        )
    ways = [("a", "e"), ("b", "c"), ("d", "f"), ("f", "b"), ("a", "f")]
    labels = dice.sample(LABELS, len(LABELS))
    flows = []
    for sender, receiver in dice.sample(ways, dice.randint(2, 4)):
        flow = _flow(dice, labels.pop())
        flows.append({**flow, "sender": sender, "receiver": receiver})
    content = {**_common(dice), "nodes": [*hosts, *routers], "links": links, "flows": flows}
    if dice.random() < 0.5:
        content["probes"] = [{"from": "a", "target": "e"}]
    _vary(dice, content, {"links.6.rate": RATES})
    return content


def _vary(dice: random.Random, content: Content, axes: dict[str, tuple[str, ...]]) -> None:
    if all("cc" in flow for flow in content["flows"]):
        axes = {**axes, "flows.cc": ALGORITHMS}
        for flow in content["flows"] if dice.random() < 0.5 else []:
            flow.pop("cc_options", None)
    if "cc" in content["flows"][0]:
        axes["flows.0.cc"] = ALGORITHMS
    plain = not any("cc_options" in flow for flow in content["flows"])
    chosen = [axis for axis in axes if plain or not axis.endswith(".cc")]
    if "flows.cc" in chosen and dice.random() < 0.5:
        chosen = ["flows.cc"]
    picked = dice.sample(chosen, min(len(chosen), dice.choice([0, 1, 1, 2])))
    if {"flows.cc", "flows.0.cc"} <= set(picked):
        picked.remove("flows.0.cc")
    content["vary"] = {
        axis: dice.sample(axes[axis], min(len(axes[axis]), dice.choice([2, 2, 3]))) for axis in picked
    }
    if "path" in content and dice.random() < 0.1:
        content["alternatives"] = [
            {"name": "short", "set": {"path.queue": "pfifo limit 10"}},
            {"name": "long", "set": {"path.queue": "pfifo limit 90"}},
        ]
        content["vary"].pop("path.queue", None)
