"""Error of a model in fixed point against the same in floating point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragstrip.authoring.policies.fixed import ONE, FixedModel

DRAWS = 2_000
"""Observations that are tried."""
SPREAD = 20.0
"""Range of drawn observations above their lower bound, in deviations of the policy (or in ones)."""


def measured(
    policy: Mapping[str, Any],
    model: FixedModel,
    bounds: Sequence[tuple[float, float]],
    limits: tuple[float, float],
) -> NDArray[np.float64]:
    """The difference of actions of drawn observations between fixed and floating point, of shape (DRAWS,).

    Actions are within `limits`. Observations are within `bounds`, near the policy's mean; the draws are the
    same every time. For a choice among outputs the difference is 0 or 1.
    """
    draws = np.random.default_rng(1)
    low, high = (np.array(ends) for ends in zip(*bounds, strict=True))
    mean = np.array(policy.get("mean") or np.zeros(len(bounds)))
    deviation = np.array(policy.get("deviation") or np.ones(len(bounds)))
    # Half of them close to the mean, where a sender usually is.
    spread = np.where(np.arange(DRAWS) % 2 == 0, 1.0, SPREAD)[:, None]
    candidates = mean + deviation * spread * draws.standard_normal((DRAWS, len(bounds)))
    observations = np.clip(candidates, low, high)
    whole = np.floor(observations * ONE).astype(np.int64)
    differences = np.empty(DRAWS)
    for number, row in enumerate(whole.tolist()):
        exact = _outputs(policy, (observations[number] - mean) / deviation)
        fixed = np.array(model.outputs(row)) / ONE
        if len(exact) > 1:
            differences[number] = float(np.argmax(exact) != np.argmax(fixed))
        else:
            differences[number] = abs(np.clip(exact[0], *limits) - np.clip(fixed[0], *limits))
    return differences


def _outputs(policy: Mapping[str, Any], inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    model = policy["model"]
    if "tree" in model:
        node = model["tree"][0]
        while "input" in node:
            node = model["tree"][node["low"] if inputs[node["input"]] <= node["threshold"] else node["high"]]
        return np.array([node["action"]])
    layers = [model["linear"]] if "linear" in model else model["mlp"]["layers"]
    for number, layer in enumerate(layers):
        if number:
            inputs = np.tanh(inputs) if model["mlp"]["activation"] == "tanh" else np.maximum(inputs, 0.0)
        inputs = np.array(layer["weights"]) @ inputs + np.array(layer["bias"])
    return inputs
