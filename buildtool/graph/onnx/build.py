"""Collects the graph's tensors and operators, and transposes tensors for operators that need it."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from buildtool.base.errors import UnsupportedError
from buildtool.graph.numbering import graph_of
from buildtool.graph.onnx.file import Array, printable_name
from buildtool.graph.onnx.layout import Layout, find_transpose, order_of, place_in_memory, plain
from buildtool.graph.onnx.values import ActivationValue, Constant, Quantized
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.types import (
    Attrs,
    DType,
    Graph,
    Op,
    OpKind,
    Quantization,
    Source,
    Tensor,
    TransposeAttrs,
)

MOST_BYTES = 1 << 30  # upper limit for the constants made here; a small file could require more
_LARGEST = (1 << 31) - 1  # bytes of one tensor, which the kernels count in int32


def _label(name: str) -> str:
    """Returns `name` as printable text. Removes an internal part, from a NUL up to the next slash."""
    head, _, tail = name.partition("\0")
    return printable_name(head + "".join(part for part in tail.partition("/")[1:]))


class Builder:
    """The graph while it is built. `index`: the number of the file's operator that is being read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.index = -1
        self.spent = 0
        self.float_weights = 0  # elements of float32 constants
        self.tensors: list[Tensor] = []
        self.ops: list[Op] = []
        self._kernels: dict[int, ActivationValue] = {}
        self._transposes: dict[tuple[int, Layout, Layout], int] = {}
        self._reshapes: dict[tuple[int, tuple[int, ...]], int] = {}
        self._floats: dict[int, int] = {}

    def graph(self, inputs: Sequence[int], outputs: Sequence[int]) -> Graph:
        """Returns the network. A .tflite file that is written from it has the same tensor numbers."""
        graph = graph_of(self.name, self.tensors, self.ops, inputs, outputs)
        tensors = tuple(replace(t, source=Source(i)) for i, t in enumerate(graph.tensors))
        return replace(graph, tensors=tensors)

    def spend(self, size: int) -> None:
        """Adds the `size` bytes of a new constant to `spent`. Refuses a total above MOST_BYTES."""
        self.spent += size
        if self.spent > MOST_BYTES:
            text = f"permuted or folded constants take more than {MOST_BYTES} bytes"
            raise UnsupportedError(text, hint="simplify the model first (onnxsim)")

    # ---- tensors and operators ---------------------------------------------------------------------

    def activation(self, name: str, shape: Sequence[int], quant: Quantization | None) -> int:
        """Adds an int8 activation, or a float32 one without quantisation, and returns its number."""
        if any(n < 1 for n in shape) or math.prod(shape) > _LARGEST:
            raise UnsupportedError(f"a tensor of shape {list(shape)}", tensor=printable_name(name))
        dtype = DType.FLOAT32 if quant is None else DType.INT8
        self.tensors.append(Tensor(_label(name), tuple(shape), dtype, quant))
        return len(self.tensors) - 1

    def int64_output(self, name: str, shape: Sequence[int]) -> int:
        """Adds an int64 tensor and returns its number."""
        self.tensors.append(Tensor(_label(name), tuple(shape), DType.INT64, None))
        return len(self.tensors) - 1

    def constant(self, name: str, data: Array, quant: Quantization | None) -> int:
        """Adds an int8 or int32 constant, or a float32 one without quantisation, and returns its number."""
        self.spend(data.nbytes)
        self.float_weights += data.size if quant is None else 0
        data = np.ascontiguousarray(data).reshape(data.shape)  # a scalar stays one
        data.setflags(write=False)
        self.tensors.append(Tensor(_label(name), data.shape, DType(data.dtype.name), quant, data))
        return len(self.tensors) - 1

    def rename(self, tensor: int, name: str) -> None:
        """Gives a tensor another name."""
        self.tensors[tensor] = replace(self.tensors[tensor], name=_label(name))

    def op(
        self, kind: OpKind, inputs: Sequence[int], outputs: Sequence[int], attrs: Attrs | None = None
    ) -> None:
        """Appends an operator."""
        self.ops.append(Op(kind, tuple(inputs), tuple(outputs), attrs or Attrs(), self.index))

    def make(
        self,
        kind: OpKind,
        inputs: Sequence[int],
        name: str,
        shape: Sequence[int],
        quant: Quantization | None,
        attrs: Attrs | None = None,
    ) -> int:
        """Adds an operator with one output and returns the output's number."""
        out = self.activation(name, shape, quant)
        self.op(kind, inputs, [out], attrs)
        return out

    def move(
        self,
        kind: OpKind,
        x: ActivationValue,
        tensor: int,
        order: Sequence[int],
        name: str,
        shape: Sequence[int],
        attrs: Attrs,
    ) -> ActivationValue:
        """Adds an operator that moves or picks elements of `x`. Returns its result.

        `shape` is the result's shape in the file. `tensor` is `x` with its dimensions in the order `order` in
        memory: dimension i is the file's dimension order[i]. The result's dimensions have the same order in
        memory.
        """
        memory, layout = place_in_memory(shape, order)
        result = self.make(kind, [tensor], name, memory, x.quant, attrs)
        return replace(x, tensor=result, shape=tuple(shape), layout=layout)

    def requantize(
        self, x: ActivationValue, quant: Quantization | None, name: str, remember: bool = False
    ) -> ActivationValue:
        """Returns `x` in the quantisation `quant`.

        With `remember`, `before_rounding` later returns `x` for the result, unless `quant` saturates values
        of `x` by more than one step.
        """
        if same_quantization(x.quant, quant):
            return x
        if quant is None:
            return self.dequantize(x)
        out = self.make(OpKind.QUANTIZE, [x.tensor], name, self.tensors[x.tensor].shape, quant)
        if remember and not x.is_float:
            ends = ((end - x.steps.zero_point) * x.steps.scale / quant.scale for end in (-128, 127))
            # No value of `x` lies more than one step outside the range of the result.
            if all(-129 <= end + quant.zero_point <= 128 for end in ends):
                self._kernels[out] = x
        return ActivationValue(out, x.shape, x.layout, quant)

    def dequantize(self, x: ActivationValue) -> ActivationValue:
        """Returns `x` in float32. Adds a DEQUANTIZE if `x` is int8 and has not been dequantised yet."""
        if x.is_float:
            return x
        if x.tensor not in self._floats:
            old = self.tensors[x.tensor]
            self._floats[x.tensor] = self.make(
                OpKind.DEQUANTIZE, [x.tensor], f"{old.name}/floats", old.shape, None
            )
        return replace(x, tensor=self._floats[x.tensor], quant=None)

    def before_rounding(self, x: ActivationValue) -> ActivationValue:
        """Returns the activation that `requantize` rounded to `x` and remembered, or `x` if there is none.

        The result has the layout of `x`. Its values are at least as exact.
        """
        before = self._kernels.get(x.tensor)
        return x if before is None else replace(x, tensor=before.tensor, quant=before.quant)

    # ---- orders of dimensions ----------------------------------------------------------------------

    def view(self, tensor: int, shape: Sequence[int]) -> int:
        """Returns a tensor with the same bytes and the shape `shape`. Adds a RESHAPE if the shape differs."""
        sizes, old = tuple(shape), self.tensors[tensor]
        if old.shape == sizes:
            return tensor
        key = (tensor, sizes)
        if key not in self._reshapes:
            self._reshapes[key] = self.make(OpKind.RESHAPE, [tensor], f"{old.name}/view", sizes, old.quant)
        return self._reshapes[key]

    def _transpose(self, tensor: int, source: Layout, target: Layout) -> int:
        """Transposes a tensor from the layout `source` to the layout `target`. Returns the result.

        If the layouts have no common factors, this needs two TRANSPOSE operators.
        """
        if source == target:
            return tensor
        key = (tensor, source, target)  # a Transpose of the file gives the same bytes another layout
        if key not in self._transposes:
            step = find_transpose(source, target)
            if step is None:
                flat = plain([math.prod(source.factors)])
                self._transposes[key] = self._transpose(self._transpose(tensor, source, flat), flat, target)
            else:
                old, (shape, perm) = self.tensors[tensor], step
                x = self.view(tensor, shape)
                sizes = [shape[p] for p in perm]
                attrs = TransposeAttrs(perm)
                name = f"{old.name}/transposed"
                self._transposes[key] = self.make(OpKind.TRANSPOSE, [x], name, sizes, old.quant, attrs)
        return self._transposes[key]

    def in_file_order(self, x: ActivationValue, order: Sequence[int]) -> int:
        """Returns `x` as a tensor whose dimension i is the file's dimension order[i]."""
        memory, layout = place_in_memory(x.shape, order)
        return self.view(self._transpose(x.tensor, x.layout, layout), memory)

    def without_move(self, x: ActivationValue) -> tuple[int, tuple[int, ...]]:
        """Returns `x` as (tensor, order), without moving elements if possible.

        Dimension i of the tensor is the file's dimension order[i]. If a dimension of the file is split in
        memory, `x` is transposed to the file's order.
        """
        order = order_of(x.shape, x.layout)
        order = tuple(range(len(x.shape))) if order is None else order
        return self.in_file_order(x, order), order

    def spread(self, constant: Quantized | Constant, name: str, order: Sequence[int]) -> int:
        """Adds a constant operand that broadcasts to an activation. Returns its number.

        Dimension i of the activation is the file's dimension order[i]. If the constant has fewer dimensions
        in the file than the activation, leading dimensions of size 1 are added. Its dimensions are then put
        into the same order, and leading ones of size 1 are dropped.
        """
        shape = (1,) * (len(order) - constant.data.ndim) + constant.data.shape
        data = constant.data.reshape(shape).transpose(tuple(order))
        while data.ndim > 1 and data.shape[0] == 1:
            data = data[0]
        return self.constant(name, data, constant.quant)

    def quant(self, tensor: int) -> Quantization:
        """Returns the quantisation of an int8 activation."""
        quant = self.tensors[tensor].quant
        assert quant is not None
        return quant
