"""`dragstrip policy-bpf`: a policy's model in whole numbers is the same in C and in Python, and near floating point."""

from __future__ import annotations

import json
import math
import random
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dragstrip import _core
from dragstrip.authoring.policies import bpf_source
from dragstrip.authoring.policies.fixed import ONE, PLACES, FixedModel, fixed_model, tanh
from dragstrip.authoring.policies.source import POWERS, model_lines
from dragstrip.cli import app
from dragstrip.engines.agent import bpf
from dragstrip.errors import BadInputError

AURORA = ["latency_gradient", "latency_ratio", "send_ratio"]
BOUNDS = {name: (low, high) for name, low, high, _ in _core.FIGURES}
PROGRAMS = Path(__file__).parents[1] / "programs"


def layer(draws: random.Random, inputs: int, outputs: int) -> dict[str, Any]:
    rows = [[draws.gauss(0, 1 / math.sqrt(inputs)) for _ in range(inputs)] for _ in range(outputs)]
    return {"weights": rows, "bias": [draws.gauss(0, 0.3) for _ in range(outputs)]}


def policy(model: dict[str, Any], **fields: Any) -> dict[str, Any]:
    head = {"policy": 1, "step": {"rtts": 1}, "action": "rate_factor", "observe": AURORA}
    return {**head, "model": model, **fields}


def network(activation: str, outputs: int = 1, **fields: Any) -> dict[str, Any]:
    draws = random.Random(7)  # noqa: S311 - no secret
    layers = [layer(draws, 6, 16), layer(draws, 16, 8), layer(draws, 8, outputs)]
    return policy({"mlp": {"layers": layers, "activation": activation}}, history=2, **fields)


TREE = [
    {"input": 1, "threshold": 1.25, "low": 1, "high": 2},
    {"input": 0, "threshold": 0.0, "low": 3, "high": 4},
    {"action": -1},
    {"action": 0.75},
    {"action": 0.125},
]
POLICIES = {
    "linear": policy({"linear": {"weights": [[-2.0, -1.5, 0.25]], "bias": [1.3]}}),
    "normal": policy(
        {"linear": {"weights": [[-2.0, -1.5, 0.25]], "bias": [1.3]}},
        mean=[0.1, 1.5, 1.0],
        deviation=[0.5, 2.0, 0.3],
    ),
    "tanh": network("tanh"),
    "relu": network("relu"),
    "tree": policy({"tree": TREE}, mean=[0.0, 0.5, 0.0], deviation=[1.0, 2.0, 1.0]),
    "menu": network("tanh", 5, action="window_menu"),
}


def model_of(name: str) -> tuple[FixedModel, list[tuple[float, float]]]:
    described = POLICIES[name]
    bounds = [BOUNDS[figure] for figure in described["observe"]] * described.get("history", 1)
    return fixed_model(described, bounds), bounds


def observations(bounds: list[tuple[float, float]], count: int) -> list[list[int]]:
    draws = random.Random(3)  # noqa: S311 - no secret
    near = [[low + draws.expovariate(1.0) for low, _ in bounds] for _ in range(count)]
    far = [[draws.uniform(low, high) for low, high in bounds] for _ in range(count // 4)]
    ends = [[low for low, _ in bounds], [high for _, high in bounds]]
    return [[math.floor(value * ONE) for value in row] for row in near + far + ends]


def compiled(folder: Path, parts: list[str]) -> Path:
    """A program of this machine from the C text that the kernel gets, with a main that reads observations."""
    if shutil.which("cc") is None:
        pytest.skip("cc is not installed")
    main = """int main(void) {
    long long seen[INPUTS], first[64], second[64], now;
    for (;;) {
        for (int at = 0; at < INPUTS; at++) if (scanf("%lld", seen + at) != 1) return 0;
        MAIN
    }
}"""
    head = "#include <linux/types.h>\n#include <stdio.h>\n#define __always_inline inline\n"
    section = '#define SEC(name) __attribute__((section(name "_here")))\n#include "fixed.h"\n'
    file = folder / "model.c"
    file.write_text("\n".join([head + section, *parts, main]))
    words = ["cc", "-w", "-O1", f"-I{bpf.HOME}", str(file), "-o", str(folder / "model")]
    subprocess.run(words, check=True)
    return folder / "model"


def printed(program: Path, rows: list[list[int]]) -> list[int]:
    text = "\n".join(" ".join(map(str, row)) for row in rows)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


@pytest.mark.parametrize("name", POLICIES)
def test_the_c_text_computes_what_the_model_in_python_does(tmp_path: Path, name: str) -> None:
    model, bounds = model_of(name)
    rows = observations(bounds, 200)
    choices = 5 if name == "menu" else None
    limits = (0.0, 4.0) if choices else (-1.0, 1.0)
    call = 'printf("%lld\\n", (long long)decide(seen, first, second));'
    parts = [f"#define INPUTS {len(bounds)}", f"#define MAIN {call}", *model_lines(model, choices, limits)]
    expected = []
    for row in rows:
        outputs = model.outputs(row)
        action = outputs.index(max(outputs)) * ONE if choices else min(max(outputs[0], -ONE), ONE)
        expected.append(action)
    assert printed(compiled(tmp_path, parts), rows) == expected
    assert len(set(expected)) > 2


def test_powers_are_the_nearest_whole_numbers(tmp_path: Path) -> None:
    table = f"static const __u32 powers[] = {{{', '.join(map(str, POWERS))}}};"
    call = 'printf("%lld\\n", (long long)times_power(powers, seen[0], seen[1]));'
    rows = [[now, x] for now in (1, 10, 1000, 1 << 22) for x in range(-2 * ONE, 2 * ONE + 1, 4099)]
    answers = printed(compiled(tmp_path, ["#define INPUTS 2", f"#define MAIN {call}", table]), rows)
    for (now, x), answer in zip(rows, answers, strict=True):
        exact = now * 2 ** (x / ONE)
        assert abs(answer - exact) <= 0.5 + 2e-5 * exact
    assert [answer for (now, x), answer in zip(rows, answers, strict=True) if x == -2 * ONE] == [
        0,
        3,
        250,
        1 << 20,
    ]


def test_tanh_is_a_table_with_straight_lines() -> None:
    errors = [abs(tanh(x) / ONE - math.tanh(x / ONE)) for x in range(-10 * ONE, 10 * ONE, 997)]
    assert 1e-6 < max(errors) < 4e-5
    assert tanh(-3 * ONE) == -tanh(3 * ONE)


@pytest.mark.parametrize("name", ["linear", "normal", "tanh", "relu", "tree"])
def test_whole_numbers_are_near_floating_point(name: str) -> None:
    source = bpf_source(json.dumps(POLICIES[name]), "mine")
    assert source.error_mean <= source.error_max < 1e-3


def test_the_error_of_a_model_with_few_places_is_told() -> None:
    """An input of up to 10^6 Mbit/s with a great weight leaves the weights few binary places."""
    heavy = policy(
        {"linear": {"weights": [[3e4, 1.0]], "bias": [0.0]}}, observe=["throughput_mbps", "loss_ratio"]
    )
    model = fixed_model(heavy, [BOUNDS["throughput_mbps"], BOUNDS["loss_ratio"]])
    assert model.layers[0].places < 24 - 8
    greatest = [math.floor(BOUNDS["throughput_mbps"][1] * ONE), ONE]
    assert abs(model.outputs(greatest)[0] << model.layers[0].places) < 1 << 63


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"step": "ack"}, "step: got 'ack', expected a time"),
        ({"action": "window_factor", "inner": "cubic"}, "inner: got 'cubic', expected no inner algorithm"),
        (
            {"observe": ["goodput_mbps", "loss_ratio", "rtt_ms"]},
            "observe: got 'goodput_mbps', expected a figure",
        ),
        ({"model": {"log": [1.0]}}, "model: got 'log', expected linear, mlp or tree"),
        ({"model": {"linear": {"weights": [[1e15, 0, 0]], "bias": [0]}}}, "64 bits hold no such sum"),
        ({"history": 0}, "1 to 64 steps"),
    ],
)
def test_what_the_kernel_does_not_have_is_refused(tmp_path: Path, fields: dict[str, Any], told: str) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({**POLICIES["linear"], **fields}))
    ended = CliRunner().invoke(app, ["policy-bpf", str(file), "--out", str(tmp_path / "mine.bpf.c")])
    assert isinstance(ended.exception, BadInputError)
    with pytest.raises(BadInputError, match=told):
        raise ended.exception
    assert ended.exception.source.startswith(str(file))
    assert not (tmp_path / "mine.bpf.c").exists()


def test_a_name_that_the_kernel_does_not_take(tmp_path: Path) -> None:
    words = [
        "policy-bpf",
        str(PROGRAMS / "my-delay.json"),
        "--out",
        str(tmp_path / "a.c"),
        "--name",
        "my-delay",
    ]
    ended = CliRunner().invoke(app, words)
    assert str(ended.exception).startswith("command line: --name: got 'my-delay', expected letters")


def test_the_command_names_file_algorithm_and_error(tmp_path: Path) -> None:
    out = tmp_path / "mine.bpf.c"
    words = ["policy-bpf", str(PROGRAMS / "my-delay.json"), "--out", str(out)]
    ended = CliRunner().invoke(app, [*words, "--json"])
    document = json.loads(ended.stdout)
    assert document == {
        "file": str(out),
        "name": "my_delay",
        "action_error_max": document["action_error_max"],
        "action_error_mean": document["action_error_mean"],
    }
    assert 0 < document["action_error_mean"] < document["action_error_max"] < 0.01
    assert bpf.names(str(out)) == ["my_delay"]
    first = out.read_bytes()
    assert "algorithm my_delay" in CliRunner().invoke(app, words).stdout
    assert out.read_bytes() == first
    assert PLACES == 16


@pytest.mark.parametrize("out", ["mine.json", "./mine.json", "link.json"])
def test_the_policy_is_not_replaced_by_its_program(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = json.dumps(POLICIES["linear"])
    Path("mine.json").write_text(text)
    Path("link.json").symlink_to("mine.json")
    ended = CliRunner().invoke(app, ["policy-bpf", "mine.json", "--out", out])
    assert isinstance(ended.exception, BadInputError)
    assert str(ended.exception).startswith("command line: --out: got ")
    assert str(ended.exception).endswith("expected another file than the policy")
    assert Path("mine.json").read_text() == text


@pytest.mark.parametrize(("name", "rival"), [("cubic", "reno"), ("mine", "cubic")])
def test_the_next_command_can_be_typed_and_has_a_rival(name: str, rival: str, tmp_path: Path) -> None:
    out = tmp_path / "x y.c"
    words = ["policy-bpf", str(PROGRAMS / "my-delay.json"), "--out", str(out), "--name", name]
    (line,) = (
        line for line in CliRunner().invoke(app, words).stdout.splitlines() if line.startswith("Next: ")
    )
    typed = shlex.split(line.removeprefix("Next: "))
    assert typed == [
        *("dragstrip", "compare", "--engine", "vm", "--load", str(out), "--path", "cable"),
        *(name, rival),
    ]
