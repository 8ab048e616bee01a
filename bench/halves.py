#!/usr/bin/env python3
"""What a second core could at most bring one large run: an access network, whole and as two halves at once.

    uv run --locked python bench/halves.py [--subscribers 100] [--flows 10] [--seconds 2]

A server sends to every subscriber over a core link (10 Gbit/s, 5 ms) and the subscriber's own link
(50 Mbit/s, 5 ms, fq_codel). A half is a run of its own with half of the subscribers and half of the core's
rate. The halves never wait for each other, as the parts of a parallel run would have to at every 5 ms of
simulated time: what they gain is a bound that a parallel run does not reach. Wall-clock time, median of five.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import time
from typing import Any

from dragstrip import _core
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment

ROUNDS = 5
CORE_MBIT = 10_000


def access_network(subscribers: int, flows: int, seconds: float, core_mbit: int) -> str:
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
            "rate": f"{core_mbit}mbit",
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


def run(scenario: str) -> None:
    """Runs it in this process."""
    _core.run(scenario)


def wall_s(scenarios: list[str]) -> float:
    """Of all of them at the same time, each in a process that is already there."""
    with multiprocessing.get_context("spawn").Pool(len(scenarios)) as pool:
        pool.map(abs, range(len(scenarios)), chunksize=1)
        began = time.monotonic()
        pool.map(run, scenarios, chunksize=1)
        return time.monotonic() - began


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--subscribers", type=int, default=100)
    parser.add_argument("--flows", type=int, default=10, help="of each subscriber")
    parser.add_argument("--seconds", type=float, default=2)
    asked = parser.parse_args()
    whole = access_network(asked.subscribers, asked.flows, asked.seconds, CORE_MBIT)
    half = access_network(asked.subscribers // 2, asked.flows, asked.seconds, CORE_MBIT // 2)
    times = [(wall_s([whole]), wall_s([half, half]), wall_s([half])) for _ in range(ROUNDS)]
    one, two, alone = (statistics.median(column) for column in zip(*times, strict=True))
    together = f"two halves at once {two:.2f} s, {one / two:.2f} times as fast"
    flows = asked.subscribers * asked.flows
    print(f"{flows} flows: whole {one:.2f} s, {together}; a half alone {alone:.2f} s")  # noqa: T201


if __name__ == "__main__":
    main()
