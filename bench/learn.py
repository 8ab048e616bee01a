"""Speed of environments in which policies learn, beside that of the core alone, in one run.

    .venv/bin/python bench/learn.py
    .venv/bin/python bench/learn.py --threads 2 --json

A batch of environments is stepped by 10 ms at 10 Mbit/s and 40 ms over an untouched Reno, and then by
the whole episode: that is the speed of the core alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import numpy as np

from dragstrip.gym import CongestionControl, CongestionControlVector

WORDS: dict[str, Any] = {
    "action": "window_factor",
    "agent": {"inner": "reno"},
    "observe": "orca",
    "reward": "orca",
    "history": 1,
    "rtt": "40ms",
}
SIMULATED_S = 9.8
STEPS = 980


def batch_seconds(step: str, steps: int, count: int, threads: int) -> float:
    """The shortest of five processor times in seconds that a batch takes for so many steps."""
    batch = CongestionControlVector(count, threads=threads, step=step, rate="10mbit", duration="10s", **WORDS)
    actions = np.zeros((count, 1))
    times = []
    for seed in range(5):
        batch.reset(seed=seed)
        start = time.process_time()
        for _ in range(steps):
            batch.step(actions)
        times.append(time.process_time() - start)
    return min(times)


def reset_us(count: int) -> float:
    """The shortest of twenty processor times in µs that an environment takes to begin an episode."""
    batch = CongestionControlVector(count, step="10ms", rate=("5mbit", "20mbit"), duration="10s", **WORDS)
    times = []
    for _ in range(20):
        start = time.process_time()
        batch.reset()
        times.append(time.process_time() - start)
    return min(times) / count * 1e6


def snapshot_us() -> tuple[float, float]:
    """The shortest of two hundred processor times in µs of a snapshot, and the packets in flight then."""
    env = CongestionControl(step="10ms", rate="10mbit", duration="10s", **WORDS)
    env.reset(seed=1)
    for _ in range(200):
        info = env.step([0.0])[4]
    times = []
    for _ in range(200):
        start = time.process_time()
        env.snapshot()
        times.append(time.process_time() - start)
    return min(times) * 1e6, info["in_flight_packets"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--envs", type=int, default=64, help="environments of the batch")
    parser.add_argument("--threads", type=int, default=1, help="threads of the core")
    parser.add_argument("--json", action="store_true", help="print one document")
    words = parser.parse_args()
    stepped = batch_seconds("10ms", STEPS, words.envs, words.threads)
    alone = batch_seconds(f"{SIMULATED_S}s", 1, words.envs, words.threads)
    snapshot, in_flight = snapshot_us()
    figures = {
        "env_steps_per_core_s": round(words.envs * STEPS / stepped),
        "core_alone_steps_per_core_s": round(words.envs * STEPS / alone),
        "share_of_core_alone": round(alone / stepped, 3),
        "reset_us": round(reset_us(words.envs), 1),
        "snapshot_us": round(snapshot, 1),
        "snapshot_packets_in_flight": in_flight,
    }
    text = (
        json.dumps(figures)
        if words.json
        else "\n".join(f"{name}: {value}" for name, value in figures.items())
    )
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
