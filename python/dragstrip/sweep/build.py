"""Which build of an engine this is: its version, and a fingerprint of what it does.

Somebody who works on an algorithm changes its figures and not its version; runs of the old build must not
be taken for the new one's. The fingerprint is a hash over short runs of every algorithm, so it is the same on
every machine and differs where the behaviour of these runs does. It is no proof: a change that only shows
elsewhere keeps it.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache

from dragstrip import _core
from dragstrip.expand import build
from dragstrip.experiment import Experiment

PATHS = (
    {"rate": "5mbit", "rtt": "20ms", "queue": "bfifo limit 30kb", "loss": "1%", "jitter": "1ms"},
    {"rate": "20mbit", "rtt": "40ms", "queue": "bfifo limit 200kb", "up_rate": "1mbit"},
    {"rate": "10mbit", "rtt": "10ms", "queue": "fq_codel", "link": "wire"},
)


@cache
def version(engine: str = "sim") -> str:
    """`0.1.0+5f3a91c2`; of the engine `vm` the fingerprint is that of kernel, emulator and agent."""
    found = _kernel() if engine == "vm" else _fingerprint()
    return f"{_core.__version__}+{found[:8]}"


def _kernel() -> str:
    from dragstrip import kernel
    from dragstrip.engines import vm_agent, vm_machine

    parts = [kernel.chosen(None).package, vm_machine.version()]
    agent = hashlib.sha256(vm_agent.program().read_bytes()).hexdigest()
    return hashlib.sha256("\n".join([*parts, agent]).encode()).hexdigest()


def _fingerprint() -> str:
    found = hashlib.sha256()
    for path in PATHS:
        for name in _core.algorithms():
            experiment = Experiment.build({"duration": "3s", "path": path, "flows": [{"cc": name}]})
            scenario = build(experiment, "", 1)
            for node in scenario["nodes"]:
                if node["kind"] == "host":
                    node["sysctl"] = {"net.ipv4.tcp_ecn": "1"}
            found.update(_core.run(json.dumps(scenario))["sha256"].encode())
    return found.hexdigest()
