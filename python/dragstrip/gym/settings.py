"""Settings that an environment and a batch of environments share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from dragstrip import _core
from dragstrip.errors import BadInputError, Raw
from dragstrip.gym.figures import BOUNDS, observed
from dragstrip.gym.rewards import Reward, reward_of
from dragstrip.gym.template import AgentFlow, Template, step_of, template

ACTIONS = ("rate_factor", "rate", "window_factor", "window", "window_menu")
"""Meanings of an action (docs/how-to/learning.md)."""
DEFAULT_WORDS = {"rate": "10mbit", "rtt": "40ms", "queue": "pfifo limit 100", "duration": "10s"}
"""Path and length of an episode where nothing else is given."""


@dataclass(frozen=True)
class Settings:
    """An environment's scenario, spaces and reward."""

    template: Template
    reward: Reward
    observation_space: spaces.Box
    action_space: spaces.Box | spaces.Discrete


def settings(
    action: str,
    step: str,
    observe: str | Sequence[str],
    history: int,
    reward: str | Reward,
    rivals: Sequence[str],
    transfers: Sequence[AgentFlow],
    agent: Mapping[str, Any],
    words: Mapping[str, Any],
) -> Settings:
    """Read the words of an environment; raises `BadInputError` for the first that is wrong.

    `transfers` are the agents' flows. `agent` holds more fields of the policy, such as `inner`; `words` are
    those of `compare`.
    """
    if action not in ACTIONS:
        raise BadInputError("action", action, f"one of {', '.join(ACTIONS)}")
    given = {name: value for name, value in agent.items() if value is not None}
    policy = {
        "step": step_of(step),
        "action": action,
        "observe": observed(observe),
        "history": history,
        **given,
    }
    try:
        text = json.dumps({"policy": 1, **policy})
        _core.check_program(text)  # also its inner algorithm
        facts = _core.policy_facts(text)
    except _core.InputError as error:
        _, value, expected = error.args
        raise BadInputError("agent", Raw(value), expected) from None
    path = dict(words)
    if not path.keys() & {"path", "medium", "trace", "rate", "link"}:
        path["rate"] = DEFAULT_WORDS["rate"]
    if not path.keys() & {"path", "rtt"}:
        path["rtt"] = DEFAULT_WORDS["rtt"]
    if not path.keys() & {"path", "queue"}:
        path["queue"] = DEFAULT_WORDS[
            "queue"
        ]  # not a share of the product of rate and RTT, which may be ranges
    path.setdefault("duration", DEFAULT_WORDS["duration"])
    bounds = np.array([BOUNDS[name] for name in facts["observe"]] * history, dtype=np.float32)
    observation_space = spaces.Box(bounds[:, 0], bounds[:, 1], dtype=np.float32)
    action_space: spaces.Box | spaces.Discrete
    if facts["choices"] is None:
        low, high = np.float32(facts["low"]), np.float32(facts["high"])
        action_space = spaces.Box(low, high, (1,), np.float32)
    else:
        action_space = spaces.Discrete(facts["choices"])
    return Settings(
        template(policy, rivals, transfers, path), reward_of(reward), observation_space, action_space
    )
