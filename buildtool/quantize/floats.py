"""The inputs and outputs of a float network, in the order of dimensions that its quantised form has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ModelError, UnsupportedError, UsageError
from buildtool.graph.onnx.file import EXTERNAL
from buildtool.graph.onnx.interface import order_input, order_output
from buildtool.graph.onnx.reader import open_file
from buildtool.graph.onnx.windows import NHWC
from buildtool.graph.tflite.flat import FlatFile, RawTensor
from buildtool.graph.tflite.reader import computes_in_floats, computes_in_integers, report_damage
from buildtool.graph.types import DType, Tensor
from buildtool.plan.models import Model, is_onnx

Array = npt.NDArray[np.generic]
_DYNAMIC = {"DynamicQuantizeLinear", "ConvInteger", "MatMulInteger"}
_WHOLE = "plan it as it is; if it is refused, quantise the float network that it was made from"
_FLOAT_ONE = "quantise the float network that it was made from"


@dataclass(frozen=True)
class FloatNetwork:
    """A float network. `kind`: the kind of its file.

    `inputs`: tensors in the order of dimensions that data sets have.
    `orders`: for each input, the permutation from that order to the file's.
    `moved`: for each output, whether the quantised network has its channels last, and the file has them
    first. This applies if the output has 4 dimensions.
    """

    kind: str
    inputs: tuple[Tensor, ...]
    orders: tuple[tuple[int, ...], ...]
    moved: tuple[bool, ...] = ()

    def to_file(self, arrays: Sequence[Array]) -> list[Array]:
        """Returns arrays, one for each network input, in the file's order of dimensions."""
        return [
            np.ascontiguousarray(np.transpose(array, order))
            for array, order in zip(arrays, self.orders, strict=True)
        ]

    def from_file(self, outputs: Sequence[Array]) -> list[Array]:
        """Returns the outputs with their dimensions in the order that the quantised network has.

        `outputs`: those of the float network, in the file's order of dimensions.
        """
        if not self.moved:
            return list(outputs)
        pairs = zip(outputs, self.moved, strict=True)
        return [np.moveaxis(one, 1, -1) if one.ndim == 4 and moved else one for one, moved in pairs]


def read_float(model: Model) -> FloatNetwork:
    """Returns the inputs and outputs of a file's float network. Refuses networks that are not float."""
    if is_onnx(model.path):
        return _read_onnx(model)
    with report_damage(model.path):
        return _read_tflite(FlatFile(model.data, outside=True))


def _read_tflite(file: FlatFile) -> FloatNetwork:
    has_floats = computes_in_floats(file)
    if computes_in_integers(file):
        if has_floats:
            raise UnsupportedError("a part of the network is quantised already", hint=_FLOAT_ONE)
        raise UsageError("the network is quantised already", hint=_WHOLE)
    if not has_floats:
        raise UnsupportedError("the network computes nothing in floats", hint="plan it as it is")
    inputs = tuple(_convert(file.tensor(t)) for t in file.inputs)
    return FloatNetwork("tflite", inputs, tuple(tuple(range(len(one.shape))) for one in inputs))


def _convert(raw: RawTensor) -> Tensor:
    """Returns a network input as a tensor. Refuses types that data sets do not have, and open shapes."""
    if raw.dynamic:
        hint = "re-export with a fixed input shape"
        raise UnsupportedError("the shape is only known at run time", tensor=raw.name, hint=hint)
    if raw.dtype not in frozenset(DType):
        hint = "re-export with inputs of float32"
        raise UnsupportedError(f"an input of type {raw.dtype}", tensor=raw.name, hint=hint)
    return Tensor(raw.name, raw.shape, DType(raw.dtype))


def _read_onnx(model: Model) -> FloatNetwork:
    file, context = open_file(model.data, path=model.path)
    kinds = {node.kind for node in file.nodes}
    if kinds & _DYNAMIC:
        raise UnsupportedError("the network quantises at run time", path=model.path, hint=_FLOAT_ONE)
    if kinds & {"QuantizeLinear", "DequantizeLinear"}:
        text = "the network is quantised already, or a part of it"
        raise UsageError(text, path=model.path, hint=_WHOLE)
    inputs, orders = [], []
    for one in file.inputs:
        if one.dtype not in frozenset(DType):
            raise ModelError(f"an input of type {one.dtype}", path=model.path, tensor=one.name)
        order = order_input(context, one.name, len(one.shape))
        inputs.append(Tensor(one.name, tuple(one.shape[d] for d in order), DType(one.dtype)))
        orders.append(tuple(int(d) for d in np.argsort(order)))
    for name, tensor in file.initializers.items():
        if tensor.data_location == EXTERNAL:
            file.constant(name)  # raises the error
    moved = tuple(order_output(context, name, 4) == NHWC for name in file.outputs)
    return FloatNetwork("onnx", tuple(inputs), tuple(orders), moved)
