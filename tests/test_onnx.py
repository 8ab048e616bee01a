"""Policies as ONNX: the numbers of the reference evaluator, the bytes of the same policy as JSON, refusals."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dragstrip
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.experiment import onnx_policy

onnx = pytest.importorskip("onnx", reason="the package onnx is absent")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

HEAD = {"policy": 1, "step": {"rtts": 1}, "action": "rate_factor", "observe": ["latency_ratio", "loss_ratio"]}
RNG = np.random.default_rng(1)


def ended(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dragstrip", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def weights(*shape: int) -> np.ndarray:
    return RNG.normal(0, 0.5, shape).astype(np.float32)


def saved(
    folder: Path,
    nodes: list[Any],
    constants: dict[str, np.ndarray],
    inputs: int | str = 2,
    head: object = HEAD,
    output: str = "out",
) -> Path:
    """Write a graph whose input is `x` of shape (batch, inputs); `head` goes into the metadata."""
    graph = helper.make_graph(
        nodes,
        "policy",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", inputs])],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph)
    if head is not None:
        helper.set_model_props(
            model, {"dragstrip.policy": head if isinstance(head, str) else json.dumps(head)}
        )
    file = folder / "mine.onnx"
    onnx.save(model, file)
    return file


def answers(model: dict[str, Any], rows: np.ndarray) -> np.ndarray:
    """The outputs of a policy's model, after docs/how-to/learning.md."""
    if "linear" in model:
        layers, activation = [model["linear"]], None
    else:
        layers = model["mlp"]["layers"]
        activation = {"tanh": np.tanh, "relu": lambda value: np.maximum(value, 0)}[model["mlp"]["activation"]]
    for number, layer in enumerate(layers):
        rows = rows @ np.array(layer["weights"]).T + np.array(layer["bias"])
        if activation is not None and number + 1 < len(layers):
            rows = activation(rows)
    return rows


def node(kind: str, inputs: str, output: str, **attributes: Any) -> Any:
    return helper.make_node(kind, inputs.split(), [output], name=output, **attributes)


GRAPHS: dict[str, tuple[list[Any], dict[str, np.ndarray]]] = {
    "gemm": ([node("Gemm", "x a b", "out")], {"a": weights(2, 1), "b": weights(1)}),
    "64-64 of torch": (
        [
            node("Gemm", "x a b", "h", transB=1),
            node("Tanh", "h", "i"),
            node("Gemm", "i c d", "j", transB=1),
            node("Tanh", "j", "k"),
            node("Gemm", "k e f", "out", transB=1),
        ],
        {
            "a": weights(64, 2),
            "b": weights(64),
            "c": weights(64, 64),
            "d": weights(64),
            "e": weights(1, 64),
            "f": weights(1),
        },
    ),
    "normalised, squashed, with a critic": (
        [
            node("Sub", "x m", "p"),
            node("Div", "p s", "q"),
            node("Flatten", "q", "r"),
            node("MatMul", "r a", "h"),
            node("Add", "b h", "i"),
            node("Relu", "i", "critic"),
            node("Tanh", "i", "k"),
            node("Gemm", "k e", "l", alpha=0.5),
            node("Constant", "", "two", value=numpy_helper.from_array(np.float32(2.0))),
            node("Constant", "", "three", value_float=3.0),
            node("Mul", "l two", "doubled"),
            node("Mul", "three doubled", "n"),
            node("Sub", "f n", "o"),
            node("Tanh", "o", "out"),
        ],
        {
            "m": weights(2),
            "s": np.array([2, 3], np.float32),
            "a": weights(2, 8),
            "b": weights(8),
            "e": weights(8, 1),
            "f": weights(1),
        },
    ),
    "relu": (
        [
            node("Relu", "x", "h"),
            node("MatMul", "h a", "i"),
            node("Relu", "i", "j"),
            node("MatMul", "j b", "out"),
        ],
        {"a": weights(2, 5), "b": weights(5, 1)},
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_network_gives_the_numbers_of_the_reference_evaluator(name: str, tmp_path: Path) -> None:
    file = saved(tmp_path, *GRAPHS[name])
    rows = RNG.normal(1, 2, (50, 2)).astype(np.float32)
    (expected,) = ReferenceEvaluator(str(file)).run(["out"], {"x": rows})
    policy = json.loads(onnx_policy.text_of(file))
    assert {key: policy[key] for key in HEAD} == HEAD
    np.testing.assert_allclose(answers(policy["model"], rows), expected, rtol=1e-5, atol=1e-5)
    dragstrip.program("mine", file)


def test_the_recording_is_that_of_the_same_policy_as_json(tmp_path: Path) -> None:
    nodes, constants = GRAPHS["64-64 of torch"]
    file = saved(tmp_path, nodes, constants)
    layers = [
        {"weights": constants[first].tolist(), "bias": constants[second].tolist()}
        for first, second in ("ab", "cd", "ef")
    ]
    same = {**HEAD, "model": {"mlp": {"layers": layers, "activation": "tanh"}}}
    path: dict[str, Any] = {"rate": "10mbit", "rtt": "40ms", "queue": "1bdp", "duration": "4s"}
    one = dragstrip.race(dragstrip.program("mine", file), **path)
    two = dragstrip.race(dragstrip.program("mine", json.dumps(same)), **path)
    assert one.table("samples").equals(two.table("samples"))
    assert one["mine"].goodput_bps > 0


def test_a_command_takes_the_file(tmp_path: Path) -> None:
    file = saved(tmp_path, *GRAPHS["gemm"])
    words = ["--rate", "10mbit", "--rtt", "40ms", "--queue", "1bdp", "--duration", "3s", "--json"]
    result = ended("compare", "--policy", str(file), *words, "mine")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["runs"][0]["flows"][0]["goodput_bps"] > 0
    (judgement,) = dragstrip.judge([file], hidden=3, scenarios=1)
    assert judgement.error is None


@pytest.mark.parametrize(
    ("nodes", "constants", "message"),
    [
        ([node("Sigmoid", "x", "out")], {}, "operator out: got Sigmoid, expected one of Gemm, MatMul"),
        (
            [node("Add", "x x", "out")],
            {},
            "operator out: got Add with 2, expected one operand that is computed",
        ),
        (
            [node("MatMul", "x a", "out")],
            {"a": weights(3, 1)},
            "operator out: got MatMul with shape (3, 1), expected weights of 2 inputs",
        ),
        (
            [node("Relu", "x", "h"), node("Tanh", "h", "out")],
            {},
            "operator out: got Tanh, expected one kind of activation: relu came before",
        ),
        (
            [node("Div", "x a", "out")],
            {"a": np.zeros(2, np.float32)},
            "operator out: got Div, expected a constant",
        ),
        (
            [node("Add", "x a", "out")],
            {"a": weights(3)},
            "operator out: got Add with shape (3,), expected 2 numbers",
        ),
        (
            [node("Gemm", "x a", "out", transA=1)],
            {"a": weights(2, 1)},
            "operator out: got Gemm, expected weights",
        ),
        (
            [node("MatMul", "x a", "out")],
            {"a": np.full((2, 1), np.nan, np.float32)},
            "weights: a number is not finite",
        ),
        (
            [node("MatMul", "x a", "out")],
            {"a": weights(2, 300)},
            "operator out: got MatMul with shape (2, 300)",
        ),
        ([node("MatMul", "x a", "out")], {"a": weights(2, 3)}, "got model: 3 outputs, expected 1"),
        ([node("Cast", "x", "out", to=7)], {}, "operator out: got Cast to a whole number"),
        ([node("Tanh", "y", "out")], {}, "graph: output out does not lead to an input"),
        ([node("Add", "x", "out")], {}, "operator out: got Add with 1, expected 2 operands, none left out"),
        ([node("MatMul", "x", "out")], {}, "operator out: got MatMul with 1, expected 2 operands"),
        ([node("Gemm", "x", "out")], {}, "operator out: got Gemm with 1, expected 2 or 3 operands"),
        (
            [helper.make_node("Gemm", ["x", "", "a"], ["out"])],
            {"a": weights(2, 1)},
            "operator out: got Gemm with 2, expected 2 or 3 operands, none left out",
        ),
        (
            [node("Add", "x a", "out")],
            {"a": weights(2, 1)},
            "operator out: got Add with shape (2, 1), expected 2 numbers or one, in a row",
        ),
        (
            [node("Add", "x a", "out")],
            {"a": weights(1, 1, 2)},
            "operator out: got Add with shape (1, 1, 2), expected 2 numbers or one, in a row",
        ),
        (
            [node("Gemm", "x a b", "out")],
            {"a": weights(2, 2), "b": weights(2, 1)},
            "operator out: got Gemm with shape (2, 1), expected a bias of 2 numbers or one, in a row",
        ),
    ],
)
def test_what_is_no_perceptron_is_refused_by_its_operator_or_shape(
    nodes: list[Any], constants: dict[str, np.ndarray], message: str, tmp_path: Path
) -> None:
    file = saved(tmp_path, nodes, constants)
    with pytest.raises(BadInputError) as error:
        dragstrip.program("mine", file)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("inputs", "head", "message"),
    [
        ("any", HEAD, "input x: got shape (0, 0), expected (batch, figures times history)"),
        (2, None, "metadata dragstrip.policy: is missing: a policy without its model as JSON"),
        (2, "{", "metadata dragstrip.policy: got '{', expected a policy without its model"),
        (2, "[]", "metadata dragstrip.policy: got '[]', expected a policy without its model"),
        (2, {**HEAD, "observe": ["rtt_ms"]}, "got model.linear.weights: a row of 2, expected 1"),
        (2, {**HEAD, "colour": 1}, "unknown field `colour`"),
        (2, json.dumps(HEAD).replace("{", '{"policy": 1, ', 1), "key 'policy' appears twice"),
        (2, json.dumps(HEAD).replace('"rtts"', '"rtts": 2, "rtts"'), "key 'rtts' appears twice"),
    ],
)
def test_a_wrong_input_or_head_is_refused(inputs: Any, head: object, message: str, tmp_path: Path) -> None:
    file = saved(tmp_path, *GRAPHS["gemm"], inputs=inputs, head=head)
    with pytest.raises(BadInputError) as error:
        dragstrip.program("mine", file)
    assert message in str(error.value)


def damaged(folder: Path, name: str, damage: Callable[[Any], object]) -> Path:
    """Write the file of a network whose first initializer `damage` has changed."""
    (folder / name).mkdir()
    file = saved(folder / name, *GRAPHS["gemm"])
    model = onnx.load(file)
    damage(model.graph.initializer[0])
    file.write_bytes(model.SerializeToString())
    return file


def outside(location: str) -> Callable[[Any], object]:
    def damage(tensor: Any) -> None:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)

    return damage


INSIDE = "are in a file of their own: save the model with them inside"
DAMAGES: dict[str, tuple[Callable[[Any], object], str]] = {
    "type": (lambda tensor: setattr(tensor, "data_type", 99), "got data_type 99, expected a type of ONNX"),
    "size": (lambda tensor: tensor.dims.append(7), "cannot be read: "),
    "missing": (outside("missing.bin"), INSIDE),
    "absolute": (outside("/etc/passwd"), INSIDE),
    "empty": (outside(""), INSIDE),
    "here": (outside("weights.bin"), INSIDE),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_weights_that_are_not_in_the_file_are_refused_by_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weights.bin").write_bytes(weights(2, 1).tobytes())
    monkeypatch.chdir(tmp_path)
    damage, message = DAMAGES[name]
    file = damaged(tmp_path, name, damage)
    with pytest.raises(BadInputError) as error:
        dragstrip.program("mine", file)
    assert str(error.value).startswith(f"{file}: weights a: {message}")


def test_a_damaged_file_does_not_end_the_judgement_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "ok").mkdir()
    files = [
        saved(tmp_path / "ok", *GRAPHS["gemm"]),
        *(damaged(tmp_path, name, damage) for name, (damage, _) in DAMAGES.items()),
    ]
    result = ended("judge", *map(str, files), "--hidden", "3", "--scenarios", "1", "--json")
    assert result.returncode == 2, result.stderr
    first, *rest = map(json.loads, result.stdout.splitlines())
    assert first["score"] is not None
    assert [entry["score"] for entry in rest] == [None] * len(DAMAGES)


def test_a_signalling_nan_is_refused_without_a_warning(tmp_path: Path) -> None:
    bits = np.array([[0x7F800001], [0]], np.uint32)

    def damage(tensor: Any) -> None:
        tensor.raw_data = bits.tobytes()

    file = damaged(tmp_path, "nan", damage)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BadInputError, match="weights: a number is not finite"):
            dragstrip.program("mine", file)


@pytest.mark.parametrize("kind", ["Identity", "Relu"])
def test_too_many_weights_are_refused_before_they_are_made(kind: str, tmp_path: Path) -> None:
    dragstrip.program("mine", saved(tmp_path, *GRAPHS["gemm"]))  # modules are loaded
    file = saved(tmp_path, [node(kind, "x", "out")], {}, inputs=4096)
    tracemalloc.start()
    with pytest.raises(BadInputError) as error:
        dragstrip.program("mine", file)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    expected = f"{file}: weights: got {4096 * 4097}, expected at most {onnx_policy.WEIGHTS_MAX} in all layers"
    assert str(error.value) == expected
    assert peak_bytes < 32 << 20  # the reader's buffer takes half of it


def test_a_file_of_something_else_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "mine.onnx"
    file.write_bytes(b"\x00\xff no protocol buffer")
    result = ended("compare", "--policy", str(file), "mine")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.strip() == f"error: {file}: is no file of ONNX"


def test_the_pages_example_makes_a_policy_of_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[1] / "docs/how-to/learning.md").read_text()
    (block,) = re.findall(r"```python\n(import json, onnx\n.*?)```", page, re.DOTALL)
    nodes, constants = [node("Gemm", "x a b", "out")], {"a": weights(20, 1), "b": weights(1)}
    saved(tmp_path, nodes, constants, inputs=20, head=None).rename(tmp_path / "net.onnx")
    monkeypatch.chdir(tmp_path)
    exec(block, {})  # noqa: S102 - the page is this repository's
    assert dragstrip.program("net", Path("net.onnx")).name == "net"


def test_without_the_package_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_policy, "find_spec", lambda _: None)
    with pytest.raises(
        DragstripError, match=r"mine.onnx: a policy in ONNX needs the package onnx: pip install onnx"
    ):
        dragstrip.program("mine", Path("mine.onnx"))
