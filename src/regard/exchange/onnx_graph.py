"""ONNX graphs, written node by node: inputs, operators, weights and outputs, and the files that they become.

Nothing is traced: a graph names ONNX's own operators, for any batch and any length. Weights keep the names that they have in
the network; graphs of one network share a file of weights, in which each is written once.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from regard.errors import MissingExtraError

OPERATORS, FORMAT = 20, 10  # the versions of the operators and of the file that onnxruntime reads since 1.18
LARGE = 1024  # bytes; smaller arrays stand in the graph itself
MOST_INSIDE = 1 << 30  # bytes of weights; a file of ONNX has at most 2 GB
ALIGNMENT = 64  # bytes

Array = npt.NDArray[Any]
Value = str  # values go by their names
Input = Value | int | float | Sequence[int] | Array | Tensor
Shape = Sequence[int | str]  # a name for what may be of any size


def import_onnx() -> Any:
    """Return the onnx package, which only those need who export."""
    try:
        import onnx
    except ImportError:
        raise MissingExtraError("onnx", "Exporting to ONNX", "export") from None
    return onnx


@dataclass(frozen=True)
class _Node:
    kind: str
    inputs: tuple[Value, ...]
    output: Value
    attributes: dict[str, Any]


@dataclass(frozen=True)
class _Port:
    name: Value
    kind: type[np.generic]
    shape: Shape


class Graph:
    """A graph under construction.

    network: whose weights it reads
    """

    def __init__(self, network: nn.Module) -> None:
        tensors = (*network.named_parameters(), *network.named_buffers())
        self._names = {id(tensor): name for name, tensor in tensors}
        self._nodes: list[_Node] = []
        self._inputs: list[_Port] = []
        self._outputs: list[_Port] = []
        self._arrays: dict[Value, Array] = {}

    def input(self, name: Value, kind: type[np.generic], *shape: int | str) -> Value:
        """Declare an input; a size that is a name may be any, and is the same wherever the name stands."""
        self._inputs.append(_Port(name, kind, shape))
        return name

    def output(self, name: Value, value: Value, kind: type[np.generic], *shape: int | str) -> None:
        """Declare a value as an output of this name."""
        self._outputs.append(_Port(name, kind, shape))
        self._nodes.append(_Node("Identity", (value,), name, {}))

    def op(self, kind: str, *inputs: Input, **attributes: Any) -> Value:
        """Append an operator; inputs that are numbers, arrays or weights become constants. Returns its (first) output."""
        output = f"{kind}_{len(self._nodes)}"
        self._nodes.append(_Node(kind, tuple(map(self._value, inputs)), output, attributes))
        return output

    def cast(self, value: Value, kind: type[np.generic]) -> Value:
        """The same numbers of another kind."""
        return self.op("Cast", value, to=int(import_onnx().helper.np_dtype_to_tensor_dtype(np.dtype(kind))))

    def transposed(self, weight: Tensor) -> Value:
        """A matrix (O, I), as layers keep it, as (I, O), as products want it."""
        return self._store(f"{self._names[id(weight)]}.transposed", as_array(weight).T)

    def _value(self, given: Input) -> Value:
        if isinstance(given, Value):
            return given
        if isinstance(given, Tensor):
            return self._store(self._names[id(given)], as_array(given))
        if isinstance(given, float):
            given = np.array(given, np.float32)
        array = given if isinstance(given, np.ndarray) else np.array(given, np.int64)
        return self._store(f"constant_{_fingerprint(array)[:16]}", array)

    def _store(self, name: Value, array: Array) -> Value:
        self._arrays.setdefault(name, array)
        return name

    def save(self, path: Path, weights: "WeightFile | None" = None) -> None:
        """Write the graph, its weights inside it or into a file beside it, and check what was written."""
        onnx = import_onnx()
        if weights is None and sum(array.nbytes for array in self._arrays.values()) > MOST_INSIDE:
            weights = WeightFile(path.with_suffix(".weights"))
        stored = [
            onnx.numpy_helper.from_array(np.asarray(array, order="C"), name)
            if weights is None or array.nbytes < LARGE
            else weights.tensor(name, array)
            for name, array in self._arrays.items()
        ]
        helper = onnx.helper
        graph = helper.make_graph(
            [helper.make_node(one.kind, one.inputs, [one.output], **one.attributes) for one in self._nodes],
            path.stem,
            [_declared(one) for one in self._inputs],
            [_declared(one) for one in self._outputs],
            stored,
        )
        versions = {"opset_imports": [helper.make_opsetid("", OPERATORS)], "ir_version": FORMAT}
        model = helper.make_model(graph, producer_name="regard", **versions)
        path.write_bytes(model.SerializeToString())
        onnx.checker.check_model(str(path), full_check=True)


class WeightFile:
    """The weights of several graphs, in one file beside them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[str, int] = {}
        path.write_bytes(b"")

    def tensor(self, name: Value, array: Array) -> Any:
        """Write an array, if it is not there yet, and return what a graph says of it."""
        onnx = import_onnx()
        key = _fingerprint(array)
        if key not in self._places:
            with self._path.open("ab") as file:
                file.write(b"\0" * (-file.tell() % ALIGNMENT))
                self._places[key] = file.tell()
                file.write(np.asarray(array, order="C").data)
        tensor = onnx.TensorProto(
            name=name,
            dims=array.shape,
            data_type=onnx.helper.np_dtype_to_tensor_dtype(array.dtype),
            data_location=onnx.TensorProto.EXTERNAL,
        )
        facts = {"location": self._path.name, "offset": self._places[key], "length": array.nbytes}
        tensor.external_data.extend(
            onnx.StringStringEntryProto(key=fact, value=str(value)) for fact, value in facts.items()
        )
        return tensor


def as_array(tensor: Tensor) -> Array:
    """A weight in single precision."""
    array: Array = tensor.detach().float().cpu().numpy()
    return array


def _fingerprint(array: Array) -> str:
    content = np.asarray(array, order="C")
    return hashlib.sha256(f"{content.dtype}{content.shape}".encode() + content.tobytes()).hexdigest()


def _declared(port: _Port) -> Any:
    helper = import_onnx().helper
    return helper.make_tensor_value_info(port.name, helper.np_dtype_to_tensor_dtype(np.dtype(port.kind)), port.shape)
