"""The C text of a policy: its numbers, for bpf/policy.h and bpf/fixed.h."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragstrip import _core
from dragstrip.authoring.policies.error import measured
from dragstrip.authoring.policies.fixed import ONE, PLACES, TANH_TABLE, FixedModel, Question, fixed_model
from dragstrip.engines.agent.bpf import NAME
from dragstrip.errors import BadInputError, Raw

WITHOUT = (
    "time_s",
    "goodput_mbps",
    "ssthresh_packets",
    "growth_packets",
    "cwnd_limited",
    "recovery_state",
    "reductions",
)
"""Figures that bpf/policy.h does not have."""
INPUTS_MAX = 256
"""Inputs of a model in a kernel."""
PRODUCTS_MAX = 20_000
"""Products of a model in a kernel: the verifier follows at most a million instructions."""
RATE_PLACES = 20
"""Binary places of a factor of the rate."""
POWERS = tuple(round(2 ** (step / 64) * (1 << 30)) for step in range(65))
"""Powers of two between 1 and 2, with 30 binary places."""


@dataclass(frozen=True)
class BpfProgram:
    """A BPF program, and how far its model is from floating point.

    `error_max` and `error_mean` are differences of actions over drawn observations: of the action's unit, or
    the share of other choices for `window_menu`.
    """

    text: str
    name: str
    error_max: float
    error_mean: float


def bpf_source(text: str, name: str) -> BpfProgram:
    """A policy's text as a congestion control for the kernel, called `name`.

    Raises `BadInputError` for a text that is no policy, for a name that the kernel does not take, and for a
    part of a policy that the kernel's agent does not have.
    """
    if not NAME.fullmatch(name):
        raise BadInputError("name", name, "letters, digits, _ and ., 15 at most: the kernel takes no other")
    policy, facts = _policy(text)
    rows = {figure: (low, high) for figure, low, high, _ in _core.FIGURES}
    bounds = [rows[figure] for figure in facts["observe"]] * facts["history"]
    model = fixed_model(policy, bounds)
    products = sum(len(layer.weights) * len(layer.weights[0]) for layer in model.layers)
    if products > PRODUCTS_MAX:
        raise BadInputError(
            "model", f"{products} weights", f"at most {PRODUCTS_MAX}, for the kernel's verifier"
        )
    limits = (facts["low"], facts["high"])
    differences = measured(policy, model, bounds, limits)
    parts = [
        _head(name),
        *_definitions(policy, facts, model, name),
        *model_lines(model, facts["choices"], limits),
        *_action_lines(policy),
        '#include "policy.h"',
    ]
    return BpfProgram("\n".join(parts) + "\n", name, float(differences.max()), float(differences.mean()))


def _policy(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A policy and its facts; raises `BadInputError` for what the kernel's agent does not have."""
    try:
        facts: dict[str, Any] = _core.policy_facts(text)
    except _core.InputError as error:
        at, value, expected = error.args
        raise BadInputError(f"policy:{at}", Raw(value), expected) from None
    policy: dict[str, Any] = json.loads(text)
    if policy["step"] == "ack":
        raise BadInputError("step", "ack", "a time or round trips: a kernel's step has an end of its own")
    if policy.get("inner"):
        raise BadInputError("inner", policy["inner"], "no inner algorithm: a BPF program cannot call one")
    for figure in facts["observe"]:
        if figure in WITHOUT:
            raise BadInputError(
                "observe", figure, f"a figure that the kernel's agent has: not {', '.join(WITHOUT)}"
            )
    inputs = len(facts["observe"]) * facts["history"]
    if not 1 <= inputs <= INPUTS_MAX:
        raise BadInputError("observe", f"{inputs} inputs", f"1 to {INPUTS_MAX}")
    return policy, facts


def _head(name: str) -> str:
    return (
        "// SPDX-License-Identifier: MIT OR GPL-2.0-only\n"
        f"/* The policy {name} as a congestion control of the kernel, by `dragstrip policy-bpf`. */\n"
        '#include "kernel.h"\n#include "fixed.h"\n'
    )


def _definitions(
    policy: Mapping[str, Any], facts: Mapping[str, Any], model: FixedModel, name: str
) -> list[str]:
    rows = {figure: (low, high) for figure, low, high, _ in _core.FIGURES}
    step = policy["step"]
    length = (
        f"#define STEP_US {round(step['ms'] * 1000)}ULL"
        if "ms" in step
        else f"#define STEP_RTTS {round(step['rtts'] * ONE)}ULL"
    )
    observe = " ".join(
        f"FIGURE({figure}, {rows[figure][0] * ONE:.0f}LL, {rows[figure][1] * ONE:.0f}LL)"
        for figure in facts["observe"]
    )
    width = max((len(layer.weights) for layer in model.layers), default=1)
    return [
        f'#define NAME .name = "{name}"',
        f"#define RATE {int(policy['action'] in ('rate', 'rate_factor'))}",
        length,
        f"#define FIGURES {len(facts['observe'])}",
        f"#define HISTORY {facts['history']}",
        f"#define WIDTH {width}",
        f"#define KEEP {int(policy.get('on_loss', 'keep') == 'keep')}",
        f"#define WINDOW_FIRST {policy.get('window_packets') or 0}",
        f"#define RATE_FIRST {round((policy.get('rate_bps') or 0) / 8)}ULL",
        f"#define OBSERVE {observe}",
        "",
    ]


def model_lines(model: FixedModel, choices: int | None, limits: tuple[float, float]) -> list[str]:
    """C lines of the function `decide`: the action of observations, in units of 2^-16, or the choice."""
    head = "static __always_inline __s64 decide(const __s64 *seen, __s64 *first, __s64 *second)\n{"
    low, high = (f"{limit * ONE:.0f}LL" for limit in limits)
    bounded = f"\treturn action < {low} ? {low} : action > {high} ? {high} : action;\n}}\n"
    if model.kind == "tree":
        return [head, "\t__s64 action;\n", *_tree_lines(model.nodes), "end:", bounded]
    lines = list(_tables(model))
    lines += [head, f"\t__s64 {'best = 0, ' if choices else ''}action;\n"]
    source = "seen"
    for number, layer in enumerate(model.layers):
        target = "first" if number % 2 == 0 else "second"
        count = len(layer.weights[0])
        sum_text = (
            f"neuron({source}, weights_{number} + at * {count}, bias_{number}[at], {count}, {layer.places})"
        )
        if number + 1 < len(model.layers):
            sum_text = (
                f"tanh_of(tanh_table, {sum_text})" if model.activation == "tanh" else f"relu_of({sum_text})"
            )
        lines += [
            "#pragma clang loop unroll(disable)",
            f"\tfor (int at = 0; at < {len(layer.weights)}; at++)",
            f"\t\t{target}[at] = {sum_text};",
        ]
        source = target
    lines.append(f"\taction = {source}[0];")
    if choices:
        lines += [
            f"\tfor (int at = 1; at < {choices}; at++)",
            f"\t\tif ({source}[at] > action) {{",
            f"\t\t\taction = {source}[at];",
            "\t\t\tbest = at;\n\t\t}",
            f"\taction = best << {PLACES};",
        ]
    return [*lines, bounded]


def _tree_lines(nodes: Sequence[Question | int]) -> Iterable[str]:
    for number, node in enumerate(nodes):
        # The root is entered from above; every other node from an earlier one.
        label = f"node_{number}:\n" if number else ""
        if isinstance(node, Question):
            yield (
                f"{label}\tif (seen[{node.input}] <= {node.threshold}LL)\n"
                f"\t\tgoto node_{node.low};\n\tgoto node_{node.high};"
            )
        else:
            yield f"{label}\taction = {node}LL;\n\tgoto end;"


def _tables(model: FixedModel) -> Iterable[str]:
    if model.activation == "tanh" and len(model.layers) > 1:
        yield _array("__s32", "tanh_table", TANH_TABLE)
    for number, layer in enumerate(model.layers):
        yield _array("__s32", f"weights_{number}", [weight for row in layer.weights for weight in row])
        yield _array("__s64", f"bias_{number}", layer.bias)


def _array(kind: str, name: str, values: Sequence[int]) -> str:
    ending = {"__s64": "LL", "__u32": "U"}.get(kind, "")
    rows = [
        ", ".join(f"{value}{ending}" for value in values[at : at + 12]) for at in range(0, len(values), 12)
    ]
    body = ",\n\t".join(rows)
    return f'static const {kind} {name}[] SEC(".rodata") = {{\n\t{body},\n}};\n'


def _action_lines(policy: Mapping[str, Any]) -> list[str]:
    """C lines of the function `apply`: rate in bytes/s or window in packets after an action."""
    delta = round(policy.get("delta", 0.025) * (1 << RATE_PLACES))
    unit = f"(1LL << {RATE_PLACES})"
    bodies = {
        "rate_factor": (
            f"\t__s64 change = action * {delta}LL >> {PLACES};\n\n"
            f"\tif (action >= 0)\n\t\treturn now * ({unit} + change) >> {RATE_PLACES};\n"
            f"\treturn (now << {RATE_PLACES}) / ({unit} - change);"
        ),
        "rate": f"\treturn action >> {PLACES + 3};",
        "window": f"\treturn (action + {ONE // 2}) >> {PLACES};",
        "window_factor": "\treturn times_power(powers, now, 2 * action);",
        "window_menu": (
            f"\tswitch (action >> {PLACES}) {{\n"
            "\tcase 1: return (now + 1) / 2;\n\tcase 2: return now > 10 ? now - 10 : 1;\n"
            "\tcase 3: return now + 10;\n\tcase 4: return now * 2;\n\tdefault: return now;\n\t}"
        ),
    }
    kind = policy["action"]
    table = [_array("__u32", "powers", POWERS)] if kind == "window_factor" else []
    head = "static __always_inline __u64 apply(__s64 action, __u64 now)\n{"
    return [*table, head, bodies[kind], "}\n"]
