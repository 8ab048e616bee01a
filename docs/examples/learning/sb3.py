"""Train a policy by the PPO of stable-baselines3, on one environment or on a batch of them.

    pip install dragstrip-*.whl gymnasium stable-baselines3
    python sb3.py mine.json
    python sb3.py mine.json --batch 64 --steps 500000
    dragstrip compare --policy mine.json --rate 10mbit --rtt 40ms --queue 1bdp --together mine cubic

stable-baselines3 takes a Gymnasium environment as it is; a batch needs `Batch`, for it has a form of its own.
"""

import argparse
import json
import time
from pathlib import Path

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

import dragstrip.gym  # noqa: F401 - registers the environment

NAME = "CongestionControl-v0"
WORDS = {
    "rate": ("2mbit", "20mbit"),
    "rtt": ("20ms", "100ms"),
    "queue": ("pfifo limit 20", "pfifo limit 400"),
    "duration": "10s",
    "observe": ["latency_ratio", "loss_ratio", "throughput_ratio"],
    "history": 2,
    "agent": {"delta": 0.1},
}


class Batch(VecEnv):
    """A batch of environments in mode SAME_STEP, as stable-baselines3 has a batch."""

    def __init__(self, environments):
        spaces = environments.single_observation_space, environments.single_action_space
        self.environments = environments
        super().__init__(environments.num_envs, *spaces)

    def reset(self):
        observations, _ = self.environments.reset(seed=self._seeds[0])
        self._reset_seeds()
        return observations

    def step_async(self, actions):
        self.actions = actions

    def step_wait(self):
        observations, rewards, terminated, truncated, info = self.environments.step(self.actions)
        ends = terminated | truncated
        infos = [{} for _ in range(self.num_envs)]
        for number in np.flatnonzero(ends):
            infos[number] = {
                "terminal_observation": info["final_obs"][number],
                "TimeLimit.truncated": bool(truncated[number] and not terminated[number]),
            }
        return observations, rewards.astype(np.float32), ends, infos

    def close(self):
        self.environments.close()

    def get_attr(self, attr_name, indices=None):
        return [getattr(self.environments, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name, value, indices=None):
        raise NotImplementedError("the environments of a batch have no attributes of their own")

    def env_method(self, method_name, *method_args, indices=None, **method_kwargs):
        raise NotImplementedError("the environments of a batch have no methods of their own")

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [False] * len(list(self._get_indices(indices)))


def environments_of(count):
    """One environment, or a batch."""
    if count == 1:
        return gymnasium.make(NAME, **WORDS)
    return Batch(
        gymnasium.make_vec(
            NAME,
            num_envs=count,
            vectorization_mode="vector_entry_point",
            autoreset_mode=AutoresetMode.SAME_STEP,
            **WORDS,
        )
    )


def policy_of(model):
    """The policy's text: the mean action of an `MlpPolicy` with tanh."""
    actor = model.policy
    layers = [layer for layer in actor.mlp_extractor.policy_net if isinstance(layer, nn.Linear)]
    rows = [
        {"weights": layer.weight.tolist(), "bias": layer.bias.tolist()}
        for layer in (*layers, actor.action_net)
    ]
    return {
        "policy": 1,
        "step": {"rtts": 1},
        "action": "rate_factor",
        "delta": WORDS["agent"]["delta"],
        "observe": WORDS["observe"],
        "history": WORDS["history"],
        "model": {"mlp": {"activation": "tanh", "layers": rows}},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path, help="file of the policy, such as mine.json")
    parser.add_argument("--batch", type=int, default=1, help="number of environments")
    parser.add_argument("--steps", type=int, default=100_000, help="steps of training, of all environments")
    parser.add_argument("--seed", type=int, default=1)
    words = parser.parse_args()
    torch.set_num_threads(1)  # so small a network gains nothing from more
    steps_per_batch = max(16, 2048 // words.batch)
    model = PPO(
        "MlpPolicy",
        environments_of(words.batch),
        n_steps=steps_per_batch,
        batch_size=256,
        policy_kwargs={"net_arch": [32, 16], "activation_fn": nn.Tanh},
        seed=words.seed,
        device="cpu",
    )
    begun = time.monotonic()
    model.learn(words.steps)
    seconds = time.monotonic() - begun
    words.out.write_text(json.dumps(policy_of(model)) + "\n")
    print(f"{model.num_timesteps} steps in {seconds:.1f} s: {model.num_timesteps / seconds:.0f} per second")


if __name__ == "__main__":
    main()
