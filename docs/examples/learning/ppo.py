"""Train a policy by proximal policy optimisation (Schulman et al., arXiv 1707.06347), on Aurora's set-up.

    python ppo.py alone.json
    python ppo.py rivals.json --rivals cubic

It needs Dragstrip, `gymnasium` and `torch`. The policy is a text for `dragstrip compare --policy`; beside it
a log says how it was made: settings, versions, machine, and the mean reward of each part of the training. The
same seed gives the same policy on the same machine and version of torch; another machine may round sums
differently, and the policy is then another one.

Aurora (Jay et al., ICML 2019) learns on links of 100 to 500 packets per second, 50 to 500 ms each way, with
queues of 1 to 2981 packets and losses of up to 5 %, in steps of half a round trip, from its last ten
observations. Its actions have no bounds; here an action is from -1 to 1, and a whole one changes the rate by
a tenth instead of a fortieth.
"""

import argparse
import json
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from torch import nn

import dragstrip
from dragstrip.gym import Between, figure_names

STEP = {"step": "0.5rtt", "action": "rate_factor", "observe": "aurora", "history": 10}
DELTA = 0.1
PATHS = {
    "rate": ("1.2mbit", "6mbit"),
    "rtt": ("100ms", "1s"),
    "queue": Between("pfifo limit 2", "pfifo limit 2981", log=True),
    "loss": ("0.001%", "5%"),
    "duration": "40s",
}
PACING = list(figure_names()).index("pacing_mbps")
RATE_MAX_MBPS = 12.0
"""Rate above which training ignores an increase: the 1000 packets per second of PCC-RL's `network_sim.py`."""
HIDDEN = (32, 16)
MEAN = np.tile([0.0, 1.0, 1.0], STEP["history"])
DEVIATION = np.tile([0.5, 1.0, 0.5], STEP["history"])
"""Of gradient, latency ratio and send ratio: a sender that fills no queue, and the usual distance from it."""


@dataclass(frozen=True)
class Settings:
    """Numbers of the training. Discount and network are Aurora's."""

    seed: int = 1
    steps: int = 1_000_000
    environments: int = 64
    steps_per_batch: int = 128
    epochs: int = 6
    minibatch: int = 1024
    learning_rate: float = 1e-3
    discount: float = 0.99
    trace: float = 0.95
    clip: float = 0.2
    entropy_weight: float = 0.0
    value_weight: float = 0.5
    gradient_max: float = 0.5


def normal(observations):
    """Inputs of the networks, of the order of 1: a policy has the same mean and deviation."""
    return torch.as_tensor((observations - MEAN) / DEVIATION, dtype=torch.float32)


def network(inputs, last_gain):
    """Fully connected layers with tanh between them."""
    layers = []
    for width, next_width in zip((inputs, *HIDDEN), (*HIDDEN, 1), strict=True):
        layer = nn.Linear(width, next_width)
        nn.init.orthogonal_(layer.weight, last_gain if next_width == 1 else 2**0.5)
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.Tanh()]
    return nn.Sequential(*layers[:-1])


class Learner(nn.Module):
    """A Gaussian around the policy's action, and the value of an observation."""

    def __init__(self, inputs):
        super().__init__()
        self.actor, self.critic = network(inputs, 0.01), network(inputs, 1.0)
        self.log_deviation = nn.Parameter(torch.full((1,), -0.5))

    def distribution(self, inputs):
        return torch.distributions.Normal(self.actor(inputs)[:, 0], self.log_deviation.exp())

    def value(self, inputs):
        return self.critic(inputs)[:, 0]


@dataclass
class Batch:
    """Steps of all environments, one row per step: arrays of shape (steps, environments[, inputs])."""

    inputs: torch.Tensor
    actions: torch.Tensor
    likelihoods: torch.Tensor
    values: torch.Tensor
    rewards: torch.Tensor
    returns: torch.Tensor


class Collector:
    """Steps through the environments with the learner's own actions."""

    def __init__(self, environments, learner, settings):
        self.environments, self.learner, self.settings = environments, learner, settings
        self.observations, info = environments.reset(seed=settings.seed)
        self.pacing_mbps = info["figures"][:, PACING]

    @torch.no_grad()
    def collect(self):
        """A batch, with the advantage estimate of arXiv 1506.02438 for the steps' returns."""
        rows = [self._step() for _ in range(self.settings.steps_per_batch)]
        inputs, actions, likelihoods, values, rewards, ends, after = map(torch.stack, zip(*rows, strict=True))
        # A value is then of the order of a reward.
        scaled = rewards * (1.0 - self.settings.discount)
        advantage = torch.zeros_like(values[0])
        returns = torch.zeros_like(values)
        for number in reversed(range(len(rows))):
            # The end of an episode's time is no end of the path: what would follow has a value.
            surprise = scaled[number] + self.settings.discount * after[number] - values[number]
            goes_on = 1.0 - ends[number]
            advantage = surprise + self.settings.discount * self.settings.trace * goes_on * advantage
            returns[number] = advantage + values[number]
        return Batch(inputs, actions, likelihoods, values, rewards, returns)

    def _step(self):
        inputs = normal(self.observations)
        distribution = self.learner.distribution(inputs)
        actions = distribution.sample()
        bounded = actions.clamp(-1.0, 1.0).numpy()
        bounded[(self.pacing_mbps > RATE_MAX_MBPS) & (bounded > 0.0)] = 0.0
        observations, rewards, _, truncated, info = self.environments.step(bounded[:, None])
        self.pacing_mbps = info["figures"][:, PACING]
        following = observations
        if "final_obs" in info:
            following = observations.copy()
            for number in np.flatnonzero(truncated):
                following[number] = info["final_obs"][number]
        self.observations = observations
        return (
            inputs,
            actions,
            distribution.log_prob(actions),
            self.learner.value(inputs),
            torch.as_tensor(rewards, dtype=torch.float32),
            torch.as_tensor(truncated, dtype=torch.float32),
            self.learner.value(normal(following)),
        )


def improve(learner, optimizer, batch, settings):
    """Some epochs of the clipped objective over a batch's minibatches."""
    fields = [batch.inputs, batch.actions, batch.likelihoods, batch.values, batch.returns]
    inputs, actions, likelihoods, values, returns = (field.flatten(0, 1) for field in fields)
    for _ in range(settings.epochs):
        for chosen in torch.randperm(len(inputs)).split(settings.minibatch):
            advantages = returns[chosen] - values[chosen]
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
            distribution = learner.distribution(inputs[chosen])
            ratio = (distribution.log_prob(actions[chosen]) - likelihoods[chosen]).exp()
            clipped = ratio.clamp(1.0 - settings.clip, 1.0 + settings.clip)
            gain = torch.minimum(ratio * advantages, clipped * advantages).mean()
            error = (learner.value(inputs[chosen]) - returns[chosen]).square().mean()
            entropy = distribution.entropy().mean()
            loss = settings.value_weight * error - gain - settings.entropy_weight * entropy
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(learner.parameters(), settings.gradient_max)
            optimizer.step()


def policy_of(learner):
    """The policy's text: the mean action, without the Gaussian."""
    layers = [layer for layer in learner.actor if isinstance(layer, nn.Linear)]
    return {
        "policy": 1,
        "step": {"rtts": 0.5},
        "action": STEP["action"],
        "delta": DELTA,
        "observe": ["latency_gradient", "latency_ratio", "send_ratio"],
        "history": STEP["history"],
        "mean": MEAN.tolist(),
        "deviation": DEVIATION.tolist(),
        "model": {
            "mlp": {
                "activation": "tanh",
                "layers": [
                    {"weights": rounded(layer.weight), "bias": rounded(layer.bias)} for layer in layers
                ],
            }
        },
    }


def rounded(values):
    """Numbers of a tensor with six digits, as lists."""
    digits = np.vectorize(lambda value: float(f"{value:.6g}"))
    return digits(values.detach().numpy().astype(np.float64)).tolist()


def train(settings, rivals):
    """A policy, and rows of steps so far and mean reward per step."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(settings.seed)
    environments = gymnasium.make_vec(
        "dragstrip.gym:CongestionControl-v0",
        num_envs=settings.environments,
        vectorization_mode="vector_entry_point",
        autoreset_mode=AutoresetMode.SAME_STEP,
        agent={"delta": DELTA},
        rivals=rivals,
        **STEP,
        **PATHS,
    )
    inputs = environments.single_observation_space.shape[0]
    learner = Learner(inputs)
    optimizer = torch.optim.Adam(learner.parameters(), settings.learning_rate)
    collector = Collector(environments, learner, settings)
    batches = settings.steps // (settings.environments * settings.steps_per_batch)
    rows, rewards, begun = [], [], time.monotonic()
    for number in range(batches):
        optimizer.param_groups[0]["lr"] = settings.learning_rate * (1.0 - number / batches)
        batch = collector.collect()
        improve(learner, optimizer, batch, settings)
        rewards.append(batch.rewards.mean().item())
        if len(rewards) == max(1, batches // 20) or number + 1 == batches:
            steps = (number + 1) * settings.environments * settings.steps_per_batch
            rows.append({"steps": steps, "reward": round(float(np.mean(rewards)), 4)})
            rewards.clear()
            print(f"{time.monotonic() - begun:6.1f} s  {rows[-1]}", flush=True)
    return policy_of(learner), rows, time.monotonic() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path, help="file of the policy, such as alone.json")
    parser.add_argument("--rivals", nargs="*", default=[], help="algorithms beside the agent, such as cubic")
    parser.add_argument(
        "--steps", type=int, default=Settings.steps, help="steps of training, of all environments"
    )
    parser.add_argument("--seed", type=int, default=Settings.seed)
    words = parser.parse_args()
    settings = Settings(seed=words.seed, steps=words.steps)
    policy, rows, seconds = train(settings, words.rivals)
    words.out.write_text(json.dumps(policy) + "\n")
    log = {
        "settings": asdict(settings),
        "rivals": words.rivals,
        "versions": {
            "dragstrip": dragstrip.__version__,
            "torch": torch.__version__,
            "gymnasium": gymnasium.__version__,
            "python": platform.python_version(),
        },
        "machine": f"{platform.system()} {platform.machine()}, {torch.backends.cpu.get_cpu_capability()}",
        "seconds": round(seconds),
        "rewards": rows,
    }
    words.out.with_suffix(".log.json").write_text(json.dumps(log, indent=1) + "\n")


if __name__ == "__main__":
    main()
