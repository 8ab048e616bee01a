"""An environment of several agents for PettingZoo: flows that arrive, learn beside each other, and leave."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from dragstrip import _core
from dragstrip.errors import BadInputError, DragstripError, Raw
from dragstrip.gym.figures import NAMES
from dragstrip.gym.rewards import Reward
from dragstrip.gym.settings import settings
from dragstrip.gym.template import AgentFlow, checked_seed, numbers, refused, refused_step

if find_spec("pettingzoo") is None:
    raise DragstripError("dragstrip.gym.parallel_env needs pettingzoo: pip install pettingzoo")

from pettingzoo import ParallelEnv  # type: ignore[import-untyped]

NEVER_MS = 1e7
"""Step of the agents' policies, longer than any episode: the clock ends their steps."""
DURATION_MAX_S = NEVER_MS / 1e3
AGENTS_MAX = 1000
WORD = re.compile(r"(@[^@*+]+)?(\+[^@*+]+)?")
"""An agent's round-trip time and its start, as words of `compare`."""
OVER = ("terminated", "truncated")

Observation = NDArray[np.float32]
Info = dict[str, Any]


class CongestionControlParallel(ParallelEnv[str, Observation, Any]):  # type: ignore[misc]
    """TCP senders on one path, each with an agent that sets its window or pacing rate at every tick.

    `agents` is their number, or a word of `compare` for each: `""`, `"@80ms"` (its round-trip time), `"+2s"`
    (its start) or both. `size` and `stop` are lists with an entry for each agent, or None: bytes after which
    its flow ends, and the time at which it stops. `tick` is the length of all steps. The other options are
    those of `CongestionControl`.

    Agents are called `agent_0`, `agent_1` ... `agents` has those that act: from the first tick after the
    first ACK of their data until their flow has ended. `possible_agents` has all; one that has ended never
    returns. Raises `BadInputError` for a word that is wrong.
    """

    metadata = {"name": "dragstrip_v0", "render_modes": []}  # noqa: RUF012 - as PettingZoo has it

    def __init__(
        self,
        *,
        agents: int | Sequence[str] = 2,
        tick: str = "100ms",
        action: str = "rate_factor",
        observe: str | Sequence[str] = "aurora",
        history: int = 10,
        reward: str | Reward = "aurora",
        rivals: Sequence[str] = (),
        size: Sequence[int | None] | None = None,
        stop: Sequence[str | None] | None = None,
        agent: Mapping[str, Any] | None = None,
        **words: Any,
    ) -> None:
        transfers = _transfers(agents, size, stop)
        self._settings = settings(
            action,
            f"{NEVER_MS}ms",
            observe,
            history,
            reward,
            rivals,
            transfers,
            {} if agent is None else agent,
            words,
        )
        template = self._settings.template
        if template.scenario["duration_ns"] > DURATION_MAX_S * 1e9:
            expected = f"at most {DURATION_MAX_S:.0f} s"
            raise BadInputError("duration", words.get("duration", ""), expected)
        count = len(transfers)
        self._group: _core.Group | None = template.group(count, _time_ns("tick", tick))
        self.possible_agents = [f"agent_{number}" for number in range(count)]
        self.agents: list[str] = []
        space = self._settings.action_space
        self._action_spaces = {name: _copied(space) for name in self.possible_agents}
        self._shape = (count, len(self._settings.observation_space.low))
        self._observations = np.zeros(self._shape, np.float32)
        self._has_episode = False

    def observation_space(self, agent: str) -> spaces.Box:
        """The space of an agent's observations, the same for all: float32, of shape (figures x history,)."""
        _ = self._number(agent)
        return self._settings.observation_space

    def action_space(self, agent: str) -> Any:
        """The space of an agent's actions, as that of `CongestionControl`; each agent has one of its own."""
        _ = self._number(agent)
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, Info]]:
        """Begin an episode at the first tick at which an agent is present. `options` is not used.

        The same seed gives the same series of episodes; without one the series goes on, or begins with
        seed 0.
        """
        seed = checked_seed(seed)
        if seed is None and not self._has_episode:
            seed = 0
        self._has_episode = True
        figures = np.empty((len(self.possible_agents), len(NAMES)), np.float64)
        try:
            states = self._open.reset(seed, self._observations, figures)
        except _core.InputError as error:
            raise refused(error) from None
        self.agents = [
            name for name, state in zip(self.possible_agents, states, strict=True) if state == "present"
        ]
        observations = {name: self._observation(name) for name in self.agents}
        return observations, {name: self._info(name, figures) for name in self.agents}

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Info]]:
        """Apply an action of each agent in `agents` and go on to the next tick at which one is present.

        The answers have those that are present, new ones among them with a reward of 0, and those whose flow
        has ended since. Raises `BadInputError` for a missing action and one out of its bounds; nothing
        changes then.
        """
        if not isinstance(actions, Mapping):
            raise BadInputError("actions", actions, "an action of each agent by its name")
        values = np.zeros(len(self.possible_agents), np.float64)
        for name in self.agents:
            if name not in actions:
                raise BadInputError("actions", None, f"{name} is missing")
            action = numbers(actions[name])
            if len(action) != 1:
                raise BadInputError("action", Raw(f"{len(action)} numbers of {name}"), "1 action")
            values[self._number(name)] = action[0]
        figures = np.empty((len(values), len(NAMES)), np.float64)
        try:
            states = self._open.step(values, self._observations, figures)
        except _core.InputError as error:
            raise refused_step(error, self._has_episode) from None
        acted = set(self.agents)
        state_by_name = {
            name: state
            for name, state in zip(self.possible_agents, states, strict=True)
            if state in ("present", *OVER)
        }
        self.agents = [name for name, state in state_by_name.items() if state == "present"]
        infos = {name: self._info(name, figures) for name in state_by_name}
        rewards = {
            name: float(self._settings.reward(infos[name])) if name in acted else 0.0
            for name in state_by_name
        }
        terminated = {name: state == "terminated" for name, state in state_by_name.items()}
        truncated = {name: state == "truncated" for name, state in state_by_name.items()}
        return (
            {name: self._observation(name) for name in state_by_name},
            rewards,
            terminated,
            truncated,
            infos,
        )

    def render(self) -> None:
        """Nothing: there is no render mode."""

    def close(self) -> None:
        """Free the episode; every later reset or step is refused."""
        self._group = None

    def state(self) -> NDArray[np.float32]:
        """The last observations of all agents one after the other, float32: for a critic that sees all.

        Those of agents that have not arrived are those of a sender without data.
        """
        return self._observations.reshape(-1).copy()

    def sha256(self) -> str | None:
        """The SHA-256 of the recording of the episode so far; None before the first reset."""
        return self._open.sha256()

    @property
    def _open(self) -> _core.Group:
        if self._group is None:
            raise BadInputError("step", "of a closed environment", "a new one")
        return self._group

    def _number(self, agent: str) -> int:
        if agent not in self.possible_agents:
            raise BadInputError("agent", agent, f"agent_0 to agent_{len(self.possible_agents) - 1}")
        return self.possible_agents.index(agent)

    def _observation(self, name: str) -> Observation:
        return np.array(self._observations[self._number(name)])

    def _info(self, name: str, figures: NDArray[np.float64]) -> Info:
        info: Info = dict(zip(NAMES, figures[self._number(name)].tolist(), strict=True))
        if self._settings.template.ranges:
            info["drawn"] = self._settings.template.drawn(self._open.fractions())
        return info


def _transfers(
    agents: int | Sequence[str], size: Sequence[int | None] | None, stop: Sequence[str | None] | None
) -> list[AgentFlow]:
    """The agents' flows; raises `BadInputError` for a word or a list that is wrong."""
    words: list[Any] = []
    if isinstance(agents, Sequence) and not isinstance(agents, str):
        words = list(agents)
    elif isinstance(agents, int) and not isinstance(agents, bool) and 1 <= agents <= AGENTS_MAX:
        words = [""] * agents
    if not 1 <= len(words) <= AGENTS_MAX:
        expected = f"a number from 1 to {AGENTS_MAX}, or a list of words such as '+2s'"
        raise BadInputError("agents", Raw(repr(agents)[:40]), expected)
    for number, word in enumerate(words):
        if not isinstance(word, str) or not WORD.fullmatch(word):
            expected = "'', a round-trip time '@80ms', a start '+2s', or both '@80ms+2s'"
            raise BadInputError(f"agents[{number}]", word, expected)
    for name, entries in (("size", size), ("stop", stop)):
        if entries is not None and (not _is_list(entries) or len(entries) != len(words)):
            expected = f"a list of {len(words)}, one for each agent"
            raise BadInputError(name, Raw(repr(entries)[:40]), expected)
    sizes = size or [None] * len(words)
    stops = [None if time is None else _time_ns("stop", time) for time in stop or [None] * len(words)]
    return [AgentFlow(*parts) for parts in zip(words, sizes, stops, strict=True)]


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _time_ns(name: str, word: str) -> int:
    """A time in ns; raises `BadInputError` for another word, and for one that is not above 0."""
    try:
        time_ns = int(_core.parse_time(str(word)))
    except _core.InputError:
        time_ns = 0
    if time_ns <= 0:
        raise BadInputError(name, word, "a time above 0, such as 100ms")
    return time_ns


def _copied(space: spaces.Box | spaces.Discrete) -> spaces.Box | spaces.Discrete:
    """An equal space with random numbers of its own."""
    if isinstance(space, spaces.Discrete):
        return spaces.Discrete(int(space.n))
    return spaces.Box(space.low, space.high, dtype=np.float32)
