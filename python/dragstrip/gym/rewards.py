"""Rewards: functions of a step's figures, which are numbers or arrays of a batch by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from dragstrip.errors import BadInputError, nearest

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


REWARDS: dict[str, Reward] = {"aurora": aurora, "orca": orca, "mvfst_rl": mvfst_rl}
"""Published rewards, by the word that an environment takes."""


def reward_of(reward: str | Reward) -> Reward:
    """The function that a word stands for, or the function itself; raises `BadInputError` for another."""
    if callable(reward):
        return reward
    if reward not in REWARDS:
        expected = f"a function of figures, or {', '.join(REWARDS)}{nearest(str(reward), REWARDS)}"
        raise BadInputError("reward", reward, expected)
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
