#!/usr/bin/env python3
"""How much faster a second core makes one large run: an access network, on one core and on two.

    uv run --locked python bench/cores.py [--subscribers 100] [--flows 10] [--seconds 2]

A server sends to every subscriber over a core link (10 Gbit/s, 5 ms) and the subscriber's own link
(50 Mbit/s, 5 ms, fq_codel). Wall-clock time, the two in turns, median of five; the hashes must be equal.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from typing import Any

from dragstrip import _core
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment

ROUNDS = 5


def access_network(subscribers: int, flows: int, seconds: float) -> str:
    """The scenario as JSON."""
    names = [f"s{number}" for number in range(subscribers)]
    nodes = [{"name": "server", "kind": "host"}]
    nodes += [{"name": name, "kind": "router"} for name in ("core", "edge")]
    nodes += [{"name": name, "kind": "host"} for name in names]
    links: list[dict[str, Any]] = [
        {"from": "server", "to": "core"},
        {
            "from": "core",
            "to": "edge",
            "rate": "10gbit",
            "delay": "5ms",
            "queue": "bfifo limit 6mb",
        },
    ]
    queue = {"rate": "50mbit", "delay": "5ms", "queue": "fq_codel"}
    links += [{"from": "edge", "to": name, **queue} for name in names]
    streams = [{"cc": "cubic", "count": flows, "sender": "server", "receiver": name} for name in names]
    experiment = Experiment.build(
        {
            "duration": f"{seconds}s",
            "nodes": nodes,
            "links": links,
            "flows": streams,
            "record": {"rtts": False},
        }
    )
    return json.dumps(expand(experiment)[0].scenario)


def wall_s(scenario: str, cores: int) -> tuple[float, str]:
    """Seconds, and the recording's hash."""
    began = time.monotonic()
    sha256: str = _core.Scenario(scenario).run(None, None, cores)["sha256"]
    return time.monotonic() - began, sha256


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--subscribers", type=int, default=100)
    parser.add_argument("--flows", type=int, default=10, help="of each subscriber")
    parser.add_argument("--seconds", type=float, default=2)
    asked = parser.parse_args()
    scenario = access_network(asked.subscribers, asked.flows, asked.seconds)
    rounds = [[wall_s(scenario, cores) for cores in (1, 2)] for _ in range(ROUNDS)]
    one, two = (statistics.median(of[at][0] for of in rounds) for at in (0, 1))
    if len({sha256 for of in rounds for _, sha256 in of}) > 1:
        sys.exit("the recordings differ")
    flows = asked.subscribers * asked.flows
    print(f"{flows} flows: one core {one:.2f} s, two {two:.2f} s, {one / two:.2f} times as fast")  # noqa: T201


if __name__ == "__main__":
    main()
