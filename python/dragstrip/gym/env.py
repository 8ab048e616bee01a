"""One environment: a congestion control that is set step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from dragstrip import _core
from dragstrip.errors import BadInputError
from dragstrip.gym.figures import NAMES
from dragstrip.gym.replay import replay
from dragstrip.gym.rewards import Reward
from dragstrip.gym.settings import settings
from dragstrip.gym.template import AgentFlow, Between, checked_seed, numbers, refused, refused_step
from dragstrip.interop.result import Result

SEED_MAX = 2**63 - 1
"""Largest seed that an environment draws for itself."""

Observation = NDArray[np.float32]
Info = dict[str, Any]


@dataclass(frozen=True)
class Snapshot:
    """A copy of an episode, and the settings of the environment that it is from."""

    episode: _core.Snapshot = field(repr=False)
    scenario: Mapping[str, Any] = field(repr=False)
    ranges: Mapping[str, Between] = field(repr=False)


class CongestionControl(gymnasium.Env[Observation, Any]):
    """A TCP sender on a path, whose window or pacing rate an agent sets at every step.

    `action` is the meaning of an action: `rate_factor` (Aurora's), `rate` in bit/s, `window_factor` (Orca's
    and Sage's), `window` in packets or `window_menu` (MVFST-RL's). `step` is `10ms` or another time, `1rtt`
    or another multiple, or `ack`. `observe` is `aurora`, `orca` or a list of figures (`figure_names`), of
    the last `history` steps. `reward` is `aurora`, `orca`, `mvfst_rl` or a function of the step's figures by
    name. `rivals` are algorithms beside it, `size` ends its transfer after so many bytes. `agent` holds more
    fields of a policy, such as `{"inner": "cubic"}`. The other options are those of `dragstrip.compare`; a
    pair of words or a `Between` is drawn anew for each episode, which lasts `duration`.

    An observation is float32 of shape (figures x history,), the oldest step first. An info has all figures,
    unbounded, by name, and `drawn`: the values of ranges. Raises `BadInputError` for a word that is wrong.
    """

    metadata = {  # noqa: RUF012 - as Gymnasium has it
        "render_modes": ["ansi", "svg"],
        "render_fps": 1,
    }

    def __init__(
        self,
        *,
        action: str = "rate_factor",
        step: str = "1rtt",
        observe: str | Sequence[str] = "aurora",
        history: int = 10,
        reward: str | Reward = "aurora",
        rivals: Sequence[str] = (),
        size: int | None = None,
        agent: Mapping[str, Any] | None = None,
        render_mode: str | None = None,
        **words: Any,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise BadInputError("render_mode", render_mode, "ansi or svg")
        self._settings = settings(
            action,
            step,
            observe,
            history,
            reward,
            rivals,
            [AgentFlow(size=size)],
            {} if agent is None else agent,
            words,
        )
        self.render_mode = render_mode
        space: Any = self._settings.observation_space
        self.observation_space = space
        self.action_space = self._settings.action_space
        self._episodes: _core.Episodes | None = self._settings.template.batch(1, 1, "disabled")
        self._width = len(space.low)
        self._has_episode = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Begin an episode; it begins when the first data packet has been acknowledged.

        The same seed gives the same series of episodes. `options` is not used.
        """
        seed = checked_seed(seed)
        super().reset(seed=seed)
        if seed is None and not self._has_episode:
            seed = int(self.np_random.integers(SEED_MAX))
        self._has_episode = True
        observation = np.empty(self._width, np.float32)
        figures = np.empty(len(NAMES), np.float64)
        try:
            self._open.reset([True], [seed], observation, figures)
        except _core.InputError as error:
            raise refused(error) from None
        return observation, self._info(figures)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, Info]:
        """Apply an action and go on to the end of the step.

        Raises `BadInputError` for an action out of its bounds and for a step after the episode's end; nothing
        changes then.
        """
        observation = np.empty(self._width, np.float32)
        figures = np.empty(len(NAMES), np.float64)
        flags = np.empty(3, np.uint8)
        actions = numbers(action)
        try:
            self._open.step(actions, observation, figures, flags, None)
        except _core.InputError as error:
            raise refused_step(error, self._has_episode) from None
        info = self._info(figures)
        reward = float(self._settings.reward(info))
        return observation, reward, bool(flags[0]), bool(flags[1]), info

    def render(self) -> Any:
        """The episode so far: `ansi` is a line of text, `svg` a picture of rate, delay and window over time.

        The picture is that of `replay`, which runs the episode again. None without a render mode.
        """
        if self.render_mode is None:
            return None
        result = self.replay()
        return repr(result) if self.render_mode == "ansi" else result.plot("timeline").svg()

    def replay(self) -> Result:
        """The episode so far as an ordinary result, from its seed and its actions.

        `replay().write("out")` writes its recording and report. Raises `BadInputError` before the
        first reset.
        """
        return replay(self._settings.template, self._open, 0)

    def snapshot(self) -> Snapshot:
        """A copy of the episode as it is, for `restore`; it stays as it is, however the episode goes on.

        Raises `BadInputError` before the first reset, and with rivals over QUIC.
        """
        try:
            episode = self._open.snapshot(0)
        except _core.InputError as error:
            raise refused(error) from None
        return Snapshot(episode, self._settings.template.scenario, self._settings.template.ranges)

    def restore(self, snapshot: Snapshot) -> tuple[Observation, Info]:
        """Go back to a snapshot; returns the observation and the info of that step.

        The same actions then give the same bytes. A snapshot may be restored any number of times, also by
        another environment with the same settings. Raises `BadInputError` for a snapshot of other settings;
        nothing changes then.
        """
        if not isinstance(snapshot, Snapshot):
            raise BadInputError("snapshot", snapshot, "what `snapshot` of this environment has returned")
        template = self._settings.template
        if (snapshot.scenario, snapshot.ranges) != (template.scenario, template.ranges):
            raise BadInputError("snapshot", None, "is of an environment with other settings than this one")
        observation = np.empty(self._width, np.float32)
        figures = np.empty(len(NAMES), np.float64)
        try:
            self._open.restore(0, snapshot.episode, observation, figures)
        except _core.InputError as error:
            raise refused(error) from None
        return observation, self._info(figures)

    def close(self) -> None:
        """Free the episode; every later reset or step is refused."""
        self._episodes = None

    @property
    def _open(self) -> _core.Episodes:
        if self._episodes is None:
            raise BadInputError("step", "of a closed environment", "a new one")
        return self._episodes

    def _info(self, figures: NDArray[np.float64]) -> Info:
        info: Info = dict(zip(NAMES, figures.tolist(), strict=True))
        if self._settings.template.ranges:
            info["drawn"] = self._settings.template.drawn(self._open.fractions(0))
        return info
