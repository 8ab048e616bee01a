"""A policy's model in fixed point: the operations of bpf/fixed.h, bit for bit, on Python's whole numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragstrip.errors import BadInputError

PLACES = 16
"""Binary places of a value."""
ONE = 1 << PLACES
WEIGHT_PLACES_MAX = 24
"""Binary places of a weight at most."""
WEIGHT_PLACES_MIN = 4
"""Binary places of a weight at least: with fewer it is not a weight any more."""
SUM_MAX = (1 << 62) - 1
WEIGHT_MAX = (1 << 31) - 1
TANH_STEPS = 512
TANH_STEP_PLACES = PLACES - 6
TANH_TABLE = tuple(round(math.tanh(step / 64) * ONE) for step in range(TANH_STEPS + 1))
"""tanh at multiples of 1/64 up to 8; between them a straight line, off by at most 4e-5."""


@dataclass(frozen=True)
class Layer:
    """A layer: weights with `places` binary places, row by row, biases with PLACES + `places`."""

    weights: tuple[tuple[int, ...], ...]
    bias: tuple[int, ...]
    places: int


@dataclass(frozen=True)
class Question:
    """A node of a tree: an input at most `threshold` leads to node `low`, a greater one to `high`."""

    input: int
    threshold: int
    low: int
    high: int


@dataclass(frozen=True)
class FixedModel:
    """A model in whole numbers. `kind` is linear, mlp or tree; inputs are observations with PLACES places.

    `layers` has the layers of linear and mlp, with the policy's mean and deviation in the first one; `nodes`
    has questions and answers (actions) of a tree. `activation` is tanh or relu.
    """

    kind: str
    layers: tuple[Layer, ...]
    activation: str
    nodes: tuple[Question | int, ...]

    def outputs(self, inputs: Sequence[int]) -> list[int]:
        """The model's outputs for observations, both in units of 2^-16."""
        if self.kind == "tree":
            node = self.nodes[0]
            while isinstance(node, Question):
                node = self.nodes[node.low if inputs[node.input] <= node.threshold else node.high]
            return [node]
        values = list(inputs)
        for number, layer in enumerate(self.layers):
            values = [
                (bias + sum(weight * value for weight, value in zip(row, values, strict=True)))
                >> layer.places
                for row, bias in zip(layer.weights, layer.bias, strict=True)
            ]
            if number + 1 < len(self.layers):
                values = [tanh(value) if self.activation == "tanh" else max(value, 0) for value in values]
        return values


def tanh(value: int) -> int:
    """The hyperbolic tangent, argument and result in units of 2^-16."""
    size = min(abs(value), (TANH_STEPS << TANH_STEP_PLACES) - 1)
    step, part = size >> TANH_STEP_PLACES, size & ((1 << TANH_STEP_PLACES) - 1)
    low, high = TANH_TABLE[step : step + 2]
    result = low + ((high - low) * part >> TANH_STEP_PLACES)
    return -result if value < 0 else result


def fixed_model(policy: Mapping[str, Any], bounds: Sequence[tuple[float, float]]) -> FixedModel:
    """The model of a policy that the core has accepted; `bounds` are those of its inputs.

    Raises `BadInputError` for a model without weights, and for weights whose sums 64 bits do not hold.
    """
    model = policy.get("model", {})
    count = len(bounds)
    mean = policy.get("mean") or [0.0] * count
    deviation = policy.get("deviation") or [1.0] * count
    if "tree" in model:
        nodes = tuple(_node(node, mean, deviation) for node in model["tree"])
        return FixedModel("tree", (), "tanh", nodes)
    if "linear" not in model and "mlp" not in model:
        got = next(iter(model), "no model")
        raise BadInputError("model", got, "linear, mlp or tree: the kernel has no actions from elsewhere")
    kind = "linear" if "linear" in model else "mlp"
    rows = [model["linear"]] if kind == "linear" else model["mlp"]["layers"]
    activation = model["mlp"]["activation"] if kind == "mlp" else "tanh"
    sizes = [max(abs(low), abs(high)) for low, high in bounds]
    layers = []
    for number, layer in enumerate(rows):
        weights, bias = layer["weights"], list(layer["bias"])
        if number == 0:
            bias = [
                value - sum(w * m / d for w, m, d in zip(row, mean, deviation, strict=True))
                for value, row in zip(bias, weights, strict=True)
            ]
            weights = [[w / d for w, d in zip(row, deviation, strict=True)] for row in weights]
        layers.append(_layer(weights, bias, sizes, f"{kind} layer {number}"))
        sums = [
            abs(b) + sum(abs(w) * s for w, s in zip(row, sizes, strict=True))
            for row, b in zip(weights, bias, strict=True)
        ]
        sizes = [1.0] * len(bias) if activation == "tanh" else sums
    return FixedModel(kind, tuple(layers), activation, ())


def _layer(
    weights: Sequence[Sequence[float]], bias: Sequence[float], sizes: Sequence[float], field: str
) -> Layer:
    """The layer with as many places as its greatest sum and weight leave room for."""
    sums = (
        abs(b) + sum(abs(w) * s for w, s in zip(row, sizes, strict=True))
        for row, b in zip(weights, bias, strict=True)
    )
    greatest = max(sums)
    heaviest = max(abs(w) for row in weights for w in row)
    for places in range(WEIGHT_PLACES_MAX, WEIGHT_PLACES_MIN - 1, -1):
        # Rounding adds half a unit to each weight.
        rounding = sum(sizes) * 2.0 ** (PLACES - 1) + 1
        if heaviest * 2.0**places < WEIGHT_MAX and greatest * 2.0 ** (PLACES + places) + rounding < SUM_MAX:
            return Layer(
                tuple(tuple(round(w * 2**places) for w in row) for row in weights),
                tuple(round(b * 2 ** (PLACES + places)) for b in bias),
                places,
            )
    raise BadInputError(
        f"model.{field}", f"sums up to {greatest:.3g}", "smaller weights: 64 bits hold no such sum"
    )


def _node(node: Mapping[str, Any], mean: Sequence[float], deviation: Sequence[float]) -> Question | int:
    if "action" in node:
        return _whole(node["action"], "an action")
    number = node["input"]
    threshold = _whole(node["threshold"] * deviation[number] + mean[number], "a threshold")
    return Question(number, threshold, node["low"], node["high"])


def _whole(value: float, name: str) -> int:
    if abs(value) * ONE > SUM_MAX:
        raise BadInputError("model.tree", f"{name} of {value:.3g}", "numbers below 7e13")
    return math.floor(value * ONE)
