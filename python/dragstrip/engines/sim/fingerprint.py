"""A fingerprint of what the simulator does.

Somebody who works on an algorithm changes its figures and not its version; runs of the old build must not
be taken for the new one's. The fingerprint is a hash over short runs of every algorithm, so it is the same on
every machine and differs where the behaviour of these runs does. QUIC stacks that are libraries are left out,
for a machine may lack them. It is no proof: a change that only shows elsewhere keeps it.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from dragstrip import _core
from dragstrip.engines.sim import quic
from dragstrip.model.recording.core_build import own_algorithms

HTB: dict[str, Any] = {"kind": "htb", "burst_bytes": 1600, "cburst_bytes": 1600}
NOQUEUE = {"kind": "noqueue"}

PATHS: tuple[dict[str, Any], ...] = (
    {  # 5 Mbit/s with loss and jitter
        "qdisc": {**HTB, "rate_bps": 5_000_000, "leaf": {"kind": "bfifo", "limit_bytes": 30_720}},
        "netem": {
            "limit_packets": 1_000_000,
            "delay_ns": 1_000_000,
            "jitter_ns": 1_000_000,
            "loss": {"model": "random", "probability": 0.01},
        },
        "back": {"delay_ns": 20_000_000, "qdisc": NOQUEUE},
    },
    {  # 20 Mbit/s, and 1 Mbit/s back
        "qdisc": {**HTB, "rate_bps": 20_000_000, "leaf": {"kind": "bfifo", "limit_bytes": 204_800}},
        "back": {
            "delay_ns": 40_000_000,
            "qdisc": {**HTB, "rate_bps": 1_000_000, "leaf": {"kind": "pfifo", "limit_packets": 1000}},
        },
    },
    {  # a wire with marking queues
        "rate_bps": 10_000_000,
        "qdisc": {
            "kind": "fq_codel",
            "limit_packets": 10_240,
            "memory_limit_bytes": 33_554_432,
            "flows": 1024,
            "target_ns": 5_000_000,
            "interval_ns": 100_000_000,
            "quantum_bytes": 1514,
            "drop_batch_packets": 64,
            "ecn": True,
        },
        "back": {"delay_ns": 10_000_000, "qdisc": NOQUEUE},
    },
)
"""The bottleneck, and the link back."""


@cache
def fingerprint() -> str:
    """Hexadecimal digits; those of a core with guests (`dragstrip.guests`) are the checkout's own."""
    digest = hashlib.sha256()
    for path in PATHS:
        for name in own_algorithms():
            digest.update(_core.Scenario(_scenario(path, name)).run()["sha256"].encode())
    for name in quic.words_of_build():
        digest.update(_core.Scenario(_quic(_scenario(PATHS[0], name))).run()["sha256"].encode())
    return digest.hexdigest()


def _quic(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the scenario with its flows over QUIC, whose hosts have no settings of TCP."""
    for node in scenario["nodes"]:
        node.pop("sysctl", None)
    for flow in scenario["flows"]:
        flow["transport"]["protocol"] = "quic"
    return scenario


def _scenario(path: dict[str, Any], cc: str) -> dict[str, Any]:
    ecn = {"net.ipv4.tcp_ecn": "1"}
    bottleneck = {key: value for key, value in path.items() if key != "back"}
    return {
        "name": "",
        "seed": 1,
        "duration_ns": 3_000_000_000,
        "nodes": [
            {"kind": "host", "name": "s1", "sysctl": ecn},
            {"kind": "router", "name": "r"},
            {"kind": "host", "name": "d", "sysctl": ecn},
        ],
        "links": [
            {"name": "s1-r", "from": "s1", "to": "r", "qdisc": NOQUEUE},
            {"name": "r-s1", "from": "r", "to": "s1", "qdisc": NOQUEUE},
            {"name": "r-d", "from": "r", "to": "d", **bottleneck},
            {"name": "d-r", "from": "d", "to": "r", **path["back"]},
        ],
        "flows": [
            {
                "label": cc,
                "sender": "s1",
                "receiver": "d",
                "transport": {"protocol": "tcp", "cc": cc},
                "application": {"kind": "bulk"},
            }
        ],
    }
