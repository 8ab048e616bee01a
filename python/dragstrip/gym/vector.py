"""A batch of environments: one call steps all of them, on several threads of the core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from dragstrip import _core
from dragstrip.errors import BadInputError
from dragstrip.gym.env import SEED_MAX
from dragstrip.gym.figures import NAMES, PLACES
from dragstrip.gym.replay import replay
from dragstrip.gym.rewards import Reward, rewards_of_batch
from dragstrip.gym.settings import settings
from dragstrip.gym.template import AgentFlow, checked_seed, numbers, refused, refused_step
from dragstrip.interop.result import Result

Floats = NDArray[np.float32]
Info = dict[str, Any]


class CongestionControlVector(VectorEnv[Floats, Any, NDArray[Any]]):
    """`num_envs` environments of `CongestionControl`, which takes the same options.

    `threads` share the work; results do not depend on their number. `autoreset_mode` is Gymnasium's: the step
    after an episode's end begins the next one (`NEXT_STEP`), the same step does and the last observation is
    in the info `final_obs` (`SAME_STEP`), or `reset(options={"reset_mask": mask})` does (`DISABLED`).
    Environment i of a batch with seed s is `CongestionControl` with seed s + i.

    Observations are float32 of shape (num_envs, figures x history). The info `figures` has the figures of the
    step, float64 of shape (num_envs, `figure_names`); the reward gets them as arrays by name. Raises
    `BadInputError` for a word that is wrong.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        threads: int = 1,
        autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP,
        action: str = "rate_factor",
        step: str = "1rtt",
        observe: str | Sequence[str] = "aurora",
        history: int = 10,
        reward: str | Reward = "aurora",
        rivals: Sequence[str] = (),
        size: int | None = None,
        agent: Mapping[str, Any] | None = None,
        **words: Any,
    ) -> None:
        for name, value in (("num_envs", num_envs), ("threads", threads)):
            if not isinstance(value, int) or not 1 <= value <= 65_536:
                raise BadInputError(name, value, "a whole number from 1 to 65536")
        modes = {
            AutoresetMode.NEXT_STEP: "next_step",
            AutoresetMode.SAME_STEP: "same_step",
            AutoresetMode.DISABLED: "disabled",
        }
        if autoreset_mode not in modes:
            raise BadInputError("autoreset_mode", autoreset_mode, "an AutoresetMode of gymnasium.vector")
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
        self.num_envs = num_envs
        self.metadata = {"render_modes": [], "autoreset_mode": autoreset_mode}
        self.single_observation_space = self._settings.observation_space
        self.single_action_space = self._settings.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._same_step = autoreset_mode == AutoresetMode.SAME_STEP
        self._episodes: _core.Episodes | None = self._settings.template.batch(
            num_envs, threads, modes[autoreset_mode]
        )
        self._shape = (num_envs, len(self._settings.observation_space.low))
        self._has_episode = False

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, Info]:
        """Begin an episode in all environments, or in those of `options["reset_mask"]`, an array of bool.

        Environment i gets the seed `seed + i`, or the entry of a list of seeds.
        """
        seed = _checked_seed(seed, self.num_envs)
        single = seed if isinstance(seed, int) else None
        super().reset(seed=single)
        mask = np.ones(self.num_envs, bool)
        if options and "reset_mask" in options:
            mask = np.asarray(options["reset_mask"])
            if mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
                raise BadInputError("reset_mask", mask.shape, f"{self.num_envs} values of bool")
        if seed is None and not self._has_episode:
            single = int(self.np_random.integers(SEED_MAX - self.num_envs))
        seeds: list[int | None] = [None] * self.num_envs
        if single is not None:
            seeds = [single + number for number in range(self.num_envs)]
        elif seed is not None and not isinstance(seed, int):
            seeds = list(seed)
        self._has_episode = True
        observations = np.empty(self._shape, np.float32)
        figures = np.empty((self.num_envs, len(NAMES)), np.float64)
        try:
            self._open.reset(mask.tolist(), seeds, observations, figures)
        except _core.InputError as error:
            raise refused(error) from None
        return observations, self._info(figures)

    def step(self, actions: Any) -> tuple[Floats, NDArray[Any], NDArray[Any], NDArray[Any], Info]:
        """Apply an action in each environment and go on to the end of its step.

        Raises `BadInputError` for an action out of its bounds, and in mode `DISABLED` for an episode that is
        over; nothing changes then.
        """
        observations = np.empty(self._shape, np.float32)
        figures = np.empty((self.num_envs, len(NAMES)), np.float64)
        flags = np.empty((self.num_envs, 3), np.uint8)
        last = np.empty(self._shape, np.float32) if self._same_step else None
        values = numbers(actions)
        try:
            ended = self._open.step(values, observations, figures, flags, last)
        except _core.InputError as error:
            raise refused_step(error, self._has_episode) from None
        rewards = rewards_of_batch(self._settings.reward, figures, PLACES)
        terminated, truncated, begun = flags.T.astype(bool)
        rewards[begun] = 0.0
        info = self._info(figures)
        if ended and last is not None:
            info.update(self._final(ended, last, figures))
        return observations, rewards, terminated, truncated, info

    def replay(self, number: int) -> Result:
        """The episode of environment `number` so far as an ordinary result (`CongestionControl.replay`)."""
        if not 0 <= number < self.num_envs:
            raise BadInputError("number", number, f"0 to {self.num_envs - 1}")
        return replay(self._settings.template, self._open, number)

    def close_extras(self, **kwargs: Any) -> None:
        """Free the episodes; every later reset or step is refused."""
        self._episodes = None

    @property
    def _open(self) -> _core.Episodes:
        if self._episodes is None:
            raise BadInputError("step", "of a closed environment", "a new one")
        return self._episodes

    def _info(self, figures: NDArray[np.float64]) -> Info:
        return {"figures": figures, "_figures": np.ones(self.num_envs, bool)}

    def _final(self, ended: Sequence[int], last: Floats, figures: NDArray[np.float64]) -> Info:
        mask = np.zeros(self.num_envs, bool)
        mask[ended] = True
        final_obs = np.full(self.num_envs, None, dtype=object)
        for number in ended:
            final_obs[number] = last[number].copy()
        final_info = {"figures": figures.copy(), "_figures": mask.copy()}
        return {
            "final_obs": final_obs,
            "_final_obs": mask,
            "final_info": final_info,
            "_final_info": mask.copy(),
        }


def _checked_seed(seed: Any, count: int) -> int | list[int | None] | None:
    """A seed, or a list of a seed or None for each environment; raises `BadInputError` for another value."""
    if seed is None or isinstance(seed, int | np.integer):
        first = checked_seed(seed)
        if first is not None:
            checked_seed(first + count - 1)
        return first
    if isinstance(seed, str) or not isinstance(seed, Sequence | np.ndarray):
        raise BadInputError("seed", seed, "a whole number from 0, or a list of them")
    if len(seed) != count:
        raise BadInputError("seed", f"{len(seed)} seeds", f"{count}")
    return [checked_seed(entry) for entry in seed]
