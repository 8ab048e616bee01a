"""Policies exported as ONNX: the network of a file becomes the model of a policy's text.

The file's metadata holds the rest of the policy, as JSON in `dragstrip.policy`. The text is then an algorithm
like any other, and the simulator's own code evaluates it, with the same bytes on every machine. Operators are
those of ONNX's specification (https://onnx.ai/onnx/operators) that a perceptron needs.

Layers without an activation between them are one: their product. Does not belong here: what a policy may
hold, which the core checks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragstrip import _core
from dragstrip.errors import BadInputError, DragstripError, Raw
from dragstrip.io import untrusted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ENDING = ".onnx"
METADATA = "dragstrip.policy"
"""Key of the file's metadata that holds the policy without its model."""
ONNX_BYTES_MAX = 1 << 24
"""Bytes of a file, at most: sixteen times the longest text of a policy."""
NODES_MAX = 256
"""Operators between input and output, at most."""
INPUTS_MAX = 4096
"""Inputs at most: 64 figures of 64 steps."""
OUTPUTS_MAX = 256
"""Outputs of a layer, at most."""
WEIGHTS_MAX = _core.PROGRAM_MAX // len("0.0, ")
"""Weights and biases at most: more of them make a text that is longer than a policy may be."""
ACTIVATIONS = {"Relu": "relu", "Tanh": "tanh"}
UNCHANGED = ("Identity", "Dropout", "Cast", "Flatten")
"""Operators that leave the numbers of one observation as they are."""
LINEAR = ("Gemm", "MatMul", "Add", "Sub", "Mul", "Div")
FLOATS = (1, 10, 11)
"""TensorProto's numbers of float, float16 and double."""
OPERANDS = {"Gemm": (2, 3)}
"""Least and greatest number of operands of linear operators; the others have two."""
OPERATORS = (*LINEAR, *ACTIVATIONS, *UNCHANGED, "Constant")


class _Network:
    """Layers so far, and the affine map after the last activation."""

    def __init__(self, inputs: int) -> None:
        self.activation = ""
        self._layers: list[tuple[Floats, Floats]] = []
        self._weights_so_far = 0
        self._weights: Floats
        self._bias: Floats
        self._begin(inputs)

    @property
    def width(self) -> int:
        """The number of outputs so far."""
        return len(self._bias)

    def product(self, matrix: Floats, bias: Floats) -> None:
        """Put a matrix and a bias behind the last map."""
        self._weights = matrix * self._weights if self._weights.ndim == 1 else matrix @ self._weights
        self._bias = matrix @ self._bias + bias

    def scale(self, factors: Floats, shift: Floats) -> None:
        """Multiply each number by its factor, and add its shift."""
        self._weights = (factors if self._weights.ndim == 1 else factors[:, None]) * self._weights
        self._bias = factors * self._bias + shift

    def close(self) -> None:
        """End the layer, the next one begins with the identity; raises `BadInputError` for its weights."""
        import numpy as np

        self._weights_so_far += self.width * (1 + self._weights.shape[-1])
        if self._weights_so_far > WEIGHTS_MAX:
            raise BadInputError("weights", self._weights_so_far, f"at most {WEIGHTS_MAX} in all layers")
        weights = np.diag(self._weights) if self._weights.ndim == 1 else self._weights
        if not (np.isfinite(weights).all() and np.isfinite(self._bias).all()):
            raise BadInputError("weights", None, "a number is not finite")
        self._layers.append((weights, self._bias))
        self._begin(self.width)

    def model(self) -> dict[str, Any]:
        """Return the layers as a policy's `model`."""
        layers = [{"weights": weights.tolist(), "bias": bias.tolist()} for weights, bias in self._layers]
        if not self.activation:
            return {"linear": layers[0]}
        return {"mlp": {"layers": layers, "activation": self.activation}}

    def _begin(self, width: int) -> None:
        import numpy as np

        self._weights = np.ones(width)  # a vector is a diagonal matrix, without memory for its zeros
        self._bias = np.zeros(width)


def text_of(file: Path) -> str:
    """Return the policy of an ONNX file as a text; raises `BadInputError` that names the operator or shape.

    Raises `DragstripError` without the package `onnx`.
    """
    if find_spec("onnx") is None:
        raise DragstripError(f"{file}: a policy in ONNX needs the package onnx: pip install onnx")
    import numpy as np
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        model = onnx.load_model_from_string(untrusted.content(file, ONNX_BYTES_MAX, "a policy"))
    except DecodeError:
        raise BadInputError("", None, "is no file of ONNX", str(file)) from None
    try:
        head = _head(model)
        with np.errstate(all="ignore"):  # a number that is not finite is refused at the end of its layer
            return json.dumps({**head, "model": _model(model.graph)})
    except BadInputError as error:
        raise error.at(str(file)) from None


def _head(model: Any) -> dict[str, Any]:
    """Return the policy without its model, from the metadata."""
    entries = {entry.key: entry.value for entry in model.metadata_props}
    expected = 'a policy without its model as JSON, such as {"policy": 1, "step": {"rtts": 1}, ...}'
    if METADATA not in entries:
        raise BadInputError(f"metadata {METADATA}", None, f"is missing: {expected}")
    try:
        head = untrusted.parsed_json(entries[METADATA], METADATA, strict=True)
    except BadInputError as error:
        expected += f"; it {error.expected}"
        raise BadInputError(f"metadata {METADATA}", entries[METADATA][:40], expected) from None
    if not isinstance(head, dict) or "model" in head:
        raise BadInputError(f"metadata {METADATA}", entries[METADATA][:40], expected)
    return head


def _model(graph: Any) -> dict[str, Any]:
    """Return the graph's first output as a policy's `model`."""
    constants = _constants(graph)
    nodes, inputs = _chain(graph, constants)
    network = _Network(inputs)
    for node, operand_first in nodes:
        if node.op_type in ACTIVATIONS:
            activation = ACTIVATIONS[node.op_type]
            if network.activation not in ("", activation):
                expected = f"one kind of activation: {network.activation} came before"
                raise BadInputError(_place(node), Raw(node.op_type), expected)
            network.activation = activation
            network.close()
        elif node.op_type in LINEAR:
            values = _values(node, constants)
            if node.op_type in ("Gemm", "MatMul"):
                network.product(*_product(node, values, operand_first, network.width))
            else:
                network.scale(*_elementwise(node, values[0], operand_first, network.width))
    network.close()
    return network.model()


def _values(node: Any, constants: dict[str, Floats]) -> list[Floats]:
    """Return the constant operands of a linear operator; raises `BadInputError` for a missing one."""
    least, most = OPERANDS.get(node.op_type, (2, 2))
    names = list(node.input)
    while len(names) > least and not names[-1]:  # an operand that may be left out
        names.pop()
    if not least <= len(names) <= most or "" in names:
        count = sum(map(bool, names))
        expected = f"{least} or {most} operands" if least < most else f"{least} operands"
        raise BadInputError(_place(node), Raw(f"{node.op_type} with {count}"), f"{expected}, none left out")
    return [constants[name] for name in names if name in constants]


def _constants(graph: Any) -> dict[str, Floats]:
    """Return the values of initializers and constants by name."""
    import numpy as np
    from onnx import helper, numpy_helper
    from onnx.external_data_helper import uses_external_data

    tensors = [(tensor.name, tensor) for tensor in graph.initializer]
    for node in graph.node:
        if node.op_type == "Constant" and node.output:
            tensors += [(node.output[0], entry.t) for entry in node.attribute if entry.name == "value"]
    constants = _short_constants(graph)
    for name, tensor in tensors:
        if uses_external_data(tensor):
            expected = "are in a file of their own: save the model with them inside"
            raise BadInputError(f"weights {name}", None, expected)
        if tensor.data_type not in helper.get_all_tensor_dtypes():
            raise BadInputError(f"weights {name}", Raw(f"data_type {tensor.data_type}"), "a type of ONNX")
        try:
            values = numpy_helper.to_array(tensor)
        except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
            expected = f"cannot be read: {untrusted.first_line(error)[:80]}"
            raise BadInputError(f"weights {name}", None, expected) from None
        if values.dtype.kind in "fiub":
            constants[name] = values.astype(np.float64)
    return constants


def _short_constants(graph: Any) -> dict[str, Floats]:
    """Return the values of constants that are written as numbers instead of a tensor, by name."""
    import numpy as np

    fields = {"value_float": "f", "value_floats": "floats", "value_int": "i", "value_ints": "ints"}
    return {
        node.output[0]: np.array(getattr(entry, fields[entry.name]), np.float64)
        for node in graph.node
        if node.op_type == "Constant" and node.output
        for entry in node.attribute
        if entry.name in fields
    }


def _chain(graph: Any, constants: dict[str, Floats]) -> tuple[list[tuple[Any, bool]], int]:
    """Return the operators from the input to the first output, and the number of inputs.

    Each has a flag: whether the running value is its first operand.
    """
    makers = {name: node for node in graph.node for name in node.output}
    inputs = {entry.name: entry for entry in graph.input if entry.name not in constants}
    if not graph.output:
        raise BadInputError("graph", None, "has no output")
    chain: list[tuple[Any, bool]] = []
    name = graph.output[0].name
    while name not in inputs:
        node = makers.get(name)
        if node is None or len(chain) == NODES_MAX:
            raise BadInputError("graph", None, f"output {graph.output[0].name} does not lead to an input")
        if node.op_type not in OPERATORS or node.domain not in ("", "ai.onnx"):
            expected = f"one of {', '.join(OPERATORS)}"
            raise BadInputError(_place(node), Raw(node.op_type), expected)
        operands = [number for number, entry in enumerate(node.input) if entry and entry not in constants]
        if len(operands) != 1:
            expected = "one operand that is computed, and constants: a chain of layers"
            raise BadInputError(_place(node), Raw(f"{node.op_type} with {len(operands)}"), expected)
        if node.op_type == "Cast" and any(entry.i not in FLOATS for entry in node.attribute):
            raise BadInputError(_place(node), Raw("Cast to a whole number"), "one to a floating-point number")
        chain.append((node, operands[0] == 0))
        name = node.input[operands[0]]
    shape = [size.dim_value for size in inputs[name].type.tensor_type.shape.dim]
    is_row = len(shape) in (1, 2) and shape[:-1] in ([], [0], [1])
    if not is_row or not 1 <= shape[-1] <= INPUTS_MAX:
        expected = "(batch, figures times history), with a batch of one or of any size"
        raise BadInputError(f"input {name}", Raw(f"shape {tuple(shape)}"), expected)
    return chain[::-1], shape[-1]


def _elementwise(node: Any, constant: Floats, operand_first: bool, width: int) -> tuple[Floats, Floats]:
    """Return factors and shift of Add, Sub, Mul or Div with a constant; raises `BadInputError`."""
    import numpy as np

    vector = _row(node, constant, width, f"{width} numbers or one, in a row")
    ones, zeros = np.ones(width), np.zeros(width)
    if node.op_type == "Add":
        return ones, vector
    if node.op_type == "Sub":
        return (ones, -vector) if operand_first else (-ones, vector)
    if node.op_type == "Mul":
        return vector, zeros
    if not operand_first or not vector.all():
        expected = "a constant without a zero as its divisor"
        raise BadInputError(_place(node), Raw("Div"), expected)
    return 1 / vector, zeros


def _product(node: Any, values: list[Floats], operand_first: bool, width: int) -> tuple[Floats, Floats]:
    """Return matrix and bias of Gemm or MatMul on `width` numbers; raises `BadInputError`."""
    import numpy as np

    options = {entry.name: entry for entry in node.attribute}
    alpha, beta = (options[name].f if name in options else 1.0 for name in ("alpha", "beta"))
    turned = {name: name in options and bool(options[name].i) for name in ("transA", "transB")}
    if turned["transA"] or not operand_first:
        expected = "weights as its second operand, and transA 0"
        raise BadInputError(_place(node), Raw(node.op_type), expected)
    if values[0].ndim != 2:
        raise _wrong_shape(node, values[0], "a matrix")
    matrix = values[0] if turned["transB"] else values[0].T
    if matrix.shape[1] != width or len(matrix) > OUTPUTS_MAX:
        expected = f"weights of {width} inputs and at most {OUTPUTS_MAX} outputs"
        raise _wrong_shape(node, values[0], expected)
    bias = values[1] if len(values) > 1 else np.zeros(1)
    outputs = len(matrix)
    return alpha * matrix, beta * _row(node, bias, outputs, f"a bias of {outputs} numbers or one, in a row")


def _row(node: Any, constant: Floats, width: int, expected: str) -> Floats:
    """Return a constant as the `width` numbers that ONNX's broadcasting puts into each row of a batch."""
    import numpy as np

    is_row = constant.ndim <= 2 and constant.shape[-1:] in ((), (constant.size,))
    if not is_row or constant.size not in (1, width):
        raise _wrong_shape(node, constant, expected)
    return np.broadcast_to(constant.reshape(-1), (width,))


def _place(node: Any) -> str:
    names: Iterable[str] = (node.name, *node.output)
    return f"operator {next((name for name in names if name), 'without a name')}"


def _wrong_shape(node: Any, constant: Floats, expected: str) -> BadInputError:
    return BadInputError(_place(node), Raw(f"{node.op_type} with shape {constant.shape}"), expected)
