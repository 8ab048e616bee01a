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
from dragstrip.experiment.programs import Program, by_name
from dragstrip.gym.figures import BOUNDS, observed
from dragstrip.gym.rewards import Reward, reward_of
from dragstrip.gym.template import AGENT, AgentFlow, Template, step_of, template

ACTIONS = ("rate_factor", "rate", "window_factor", "window", "window_menu")
"""Meanings of an action (docs/how-to/learning.md)."""
DEFAULT_WORDS = {"rate": "10mbit", "rtt": "40ms", "queue": "pfifo limit 100", "duration": "10s"}
"""Path and length of an episode where nothing else is given."""


KEYWORDS = ("step", "action", "observe", "history", "model")
"""Fields of a policy that `agent` does not take: keywords of the environment, and the learner itself."""
UNUSED = ("engine", "engine_options", "load", "seed", "source", "together")
"""Options of `dragstrip.compare` that mean nothing to an environment: `reset` takes its seed."""


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
    history = int(history) if isinstance(history, np.integer) else history
    if words.get("programs") is not None:
        words = {**words, "programs": by_name(words["programs"])}
    _expect_words(rivals, agent, words)
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
    except (TypeError, ValueError):
        expected = "fields of JSON: numbers, texts, lists"
        raise BadInputError("agent", Raw(repr({**given, "history": history})), expected) from None
    try:
        _core.check_program(text)  # also its inner algorithm
        facts = _core.policy_facts(text)
    except _core.InputError as error:
        _, value, expected = error.args
        raise BadInputError("agent", Raw(value), expected) from None
    bounds = np.array([BOUNDS[name] for name in facts["observe"]] * history, dtype=np.float32)
    observation_space = spaces.Box(bounds[:, 0], bounds[:, 1], dtype=np.float32)
    action_space: spaces.Box | spaces.Discrete
    if facts["choices"] is None:
        low, high = np.float32(facts["low"]), np.float32(facts["high"])
        action_space = spaces.Box(low, high, (1,), np.float32)
    else:
        action_space = spaces.Discrete(facts["choices"])
    return Settings(
        template(policy, rivals, transfers, _with_defaults(words)),
        reward_of(reward),
        observation_space,
        action_space,
    )


def _with_defaults(words: Mapping[str, Any]) -> dict[str, Any]:
    """The words, with those of `DEFAULT_WORDS` where no word stands for the same."""
    path = dict(words)
    if not path.keys() & {"path", "medium", "trace", "rate", "link"}:
        path["rate"] = DEFAULT_WORDS["rate"]
    if not path.keys() & {"path", "rtt"}:
        path["rtt"] = DEFAULT_WORDS["rtt"]
    if not path.keys() & {"path", "queue"}:
        # Not a share of the product of rate and RTT, which may be ranges.
        path["queue"] = DEFAULT_WORDS["queue"]
    path.setdefault("duration", DEFAULT_WORDS["duration"])
    return path


def _expect_words(rivals: Any, agent: Any, words: Mapping[str, Any]) -> None:
    """Raise `BadInputError` for rivals, fields of the policy or options that an environment does not take."""
    if not isinstance(agent, Mapping):
        raise BadInputError("agent", agent, "fields of a policy by name, such as {'inner': 'cubic'}")
    for name in KEYWORDS:
        if name in agent:
            expected = "a keyword of the environment, not a field of agent"
            if name == "model":
                expected = "no model: the actions come from `step`"
            raise BadInputError("agent", name, expected)
    for name in UNUSED:
        if name in words:
            expected = "nothing: episodes run on the simulator, and `reset` takes the seed"
            raise BadInputError(name, words[name], expected)
    if AGENT in (words.get("programs") or {}):
        raise BadInputError("programs", AGENT, f"another name: {AGENT} is the flow that learns")
    if isinstance(rivals, str) or not isinstance(rivals, Sequence):
        raise BadInputError("rivals", Raw(repr(rivals)), "a list of algorithms, such as ['cubic']")
    for number, rival in enumerate(rivals):
        if not isinstance(rival, str | Program):
            raise BadInputError(f"rivals[{number}]", Raw(repr(rival)), "an algorithm's word or a program")
        if _own_name(str(rival)) == AGENT:
            expected = f"another algorithm: {AGENT} is the flow that learns"
            raise BadInputError(f"rivals[{number}]", str(rival), expected)


def _own_name(word: str) -> str | None:
    """The algorithm's name in a flow's word; None for a word that is refused elsewhere."""
    try:
        return _core.flow_word(word).own_name
    except _core.InputError:
        return None
