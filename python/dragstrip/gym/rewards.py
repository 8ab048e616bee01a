"""Rewards: functions of a step's figures, which are numbers or arrays of a batch by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from dragstrip.errors import BadInputError, Raw, nearest

Figures = Mapping[str, Any]
"""A step's figures by name: a number each, or an array with a number for each environment."""
Reward = Callable[[Figures], Any]
"""A reward of a step: a number, or an array with a number for each environment."""

PACKET_BITS = 8 * 1500
"""Bits of a packet in Aurora's simulator (`BYTES_PER_PACKET`)."""


def aurora(step: Figures) -> Any:
    """Aurora's reward: 0.001 (10 throughput - 1000 latency - 2000 loss) in packets/s, seconds and a ratio.

    Source: PCC-RL, `gym/network_sim.py`, `get_reward`. Latency is the mean round-trip time.
    """
    throughput = step["throughput_mbps"] * (1e6 / PACKET_BITS)
    return 0.001 * (10 * throughput - step["rtt_ms"] - 2000 * step["loss_ratio"])


def orca(step: Figures) -> Any:
    """Orca's reward: (throughput - 5 loss) by the greatest throughput, times the delay metric.

    Source: Orca, `rl-module/envwrapper.py`, `get_state`. The greatest throughput is the connection's so far.
    """
    return (step["throughput_ratio"] - step["lost_ratio"]) * step["delay_metric"]


def mvfst_rl(step: Figures) -> Any:
    """MVFST-RL's linear reward with its default weights: 0.1 throughput in MB/s - 0.01 longest delay in ms.

    Source: mvfst-rl, `congestion_control/CongestionControlEnvConfig.h`. The delay is the longest round-trip
    time of the step; the weight of losses is 0.
    """
    return 0.1 * step["throughput_mbps"] / 8 - 0.01 * step["rtt_max_ms"]


def sage(capacity_mbps: float | Reward, flows: int = 1) -> Reward:
    """Sage's reward, for an agent alone or as one of `flows` on a link of `capacity_mbps` Mbit/s.

    Alone it is 25 ((throughput - 2 loss) / capacity)^2 times the shortest by the smoothed round-trip time,
    which counts as 1 from 0.8 on; below 0 if more than half as much is lost as is delivered. Among others it
    is 25 exp(-8 (x - 1)^2), with x the throughput by 0.95 of the fair share, at most 2. `capacity_mbps` may
    be a function of a step's figures.

    Source: sage, `sage_rl/src/sage.cc`, "Reward Calculation"; there rates are means of the last 100 reports,
    here of the step. Raises `BadInputError` for a number that cannot be right.
    """
    if not isinstance(flows, int) or isinstance(flows, bool) or flows < 1:
        raise BadInputError("flows", flows, "a whole number from 1")
    if not callable(capacity_mbps) and not 0 < capacity_mbps < float("inf"):
        raise BadInputError("capacity_mbps", capacity_mbps, "a rate above 0 in Mbit/s")

    def reward(step: Figures) -> Any:
        capacity = capacity_mbps(step) if callable(capacity_mbps) else capacity_mbps
        throughput = step["throughput_mbps"]
        if flows > 1:
            share = np.minimum(throughput / (0.95 * capacity / flows), 2.0)
            return 25 * np.exp(-8 * (share - 1) ** 2)
        delay = np.where(step["rtt_ratio"] >= 0.8, 1.0, step["rtt_ratio"])
        sign = np.where(throughput < 2 * step["lost_mbps"], -1.0, 1.0)
        credited = np.where(throughput > capacity, 0.9 * capacity, throughput)
        return sign * 25 * ((credited - 2 * step["lost_mbps"]) / capacity) ** 2 * delay

    return reward


REWARDS: dict[str, Reward] = {"aurora": aurora, "orca": orca, "mvfst_rl": mvfst_rl}
"""Published rewards, by the word that an environment takes."""


def reward_of(reward: str | Reward) -> Reward:
    """The function that a word stands for, or the function itself; raises `BadInputError` for another."""
    if callable(reward):
        return reward
    if not isinstance(reward, str) or reward not in REWARDS:
        expected = f"a function of figures, or {', '.join(REWARDS)}{nearest(str(reward), REWARDS)}"
        raise BadInputError("reward", Raw("None") if reward is None else reward, expected)
    return REWARDS[reward]


class Columns(Mapping[str, Any]):
    """Columns of an array by their names, taken when they are asked for."""

    def __init__(self, rows: np.ndarray, places: Mapping[str, int]) -> None:
        self._rows = rows
        self._places = places

    def __getitem__(self, name: str) -> Any:
        return self._rows[:, self._places[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def rewards_of_batch(reward: Reward, figures: np.ndarray, places: Mapping[str, int]) -> np.ndarray:
    """Rewards of a batch, float64: `figures` has a row for each environment, `places` are its columns.

    Raises `BadInputError` for a function that does not return a number for each environment.
    """
    values = np.asarray(reward(Columns(figures, places)), dtype=np.float64)
    if values.ndim == 0:
        values = np.full(len(figures), values)
    if values.shape != (len(figures),):
        expected = f"{len(figures)} numbers, one for each environment"
        raise BadInputError("reward", f"an array of shape {values.shape}", expected)
    return values
