"""Collects the graph's tensors and operators, and brings tensors into the order an operator wants."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from buildtool.base.errors import UnsupportedError
from buildtool.graph.numbering import graph_of
from buildtool.graph.onnx.file import Array, printable_name
from buildtool.graph.onnx.layout import Layout, between, lying, order_of, plain
from buildtool.graph.onnx.values import Held, Quantized
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

MOST_BYTES = 1 << 30  # of constants made here: a small file may ask for many
_LARGEST = (1 << 31) - 1  # bytes; of one tensor, as the kernels count


def _label(name: str) -> str:
    """A name as the graph has it: what was added to make it unlike the file's is left out."""
    head, _, tail = name.partition("\0")
    return printable_name(head + "".join(part for part in tail.partition("/")[1:]))


class Builder:
    """A graph being made; `index` is the place in the file of the operator being read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.index = -1
        self.spent = 0
        self.tensors: list[Tensor] = []
        self.ops: list[Op] = []
        self._kernels: dict[int, Held] = {}
        self._moved: dict[tuple[int, Layout], int] = {}
        self._viewed: dict[tuple[int, tuple[int, ...]], int] = {}

    def graph(self, inputs: Sequence[int], outputs: Sequence[int]) -> Graph:
        """The network. Tensors keep their numbers in a .tflite file that is written from it."""
        graph = graph_of(self.name, self.tensors, self.ops, inputs, outputs)
        tensors = tuple(replace(t, source=Source(i)) for i, t in enumerate(graph.tensors))
        return replace(graph, tensors=tensors)

    def spend(self, size: int) -> None:
        """Accounts for `size` bytes of a constant that is not in the file as it is; refuses too many."""
        self.spent += size
        if self.spent > MOST_BYTES:
            text = f"constants that are permuted or folded take more than {MOST_BYTES} bytes"
            raise UnsupportedError(text, hint="simplify the model first (onnxsim)")

    # ---- tensors and operators ---------------------------------------------------------------------

    def activation(self, name: str, shape: Sequence[int], quant: Quantization) -> int:
        """A new int8 activation."""
        if any(n < 1 for n in shape) or math.prod(shape) > _LARGEST:
            raise UnsupportedError(f"a tensor of shape {list(shape)}", tensor=printable_name(name))
        self.tensors.append(Tensor(_label(name), tuple(shape), DType.INT8, quant))
        return len(self.tensors) - 1

    def places(self, name: str, shape: Sequence[int]) -> int:
        """A new int64 tensor."""
        self.tensors.append(Tensor(_label(name), tuple(shape), DType.INT64, None))
        return len(self.tensors) - 1

    def constant(self, name: str, data: Array, quant: Quantization) -> int:
        """A new int8 or int32 constant."""
        self.spend(data.nbytes)
        data = np.ascontiguousarray(data)
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
        quant: Quantization,
        attrs: Attrs | None = None,
    ) -> int:
        """An operator and its one output, whose index it returns."""
        out = self.activation(name, shape, quant)
        self.op(kind, inputs, [out], attrs)
        return out

    def move(
        self,
        kind: OpKind,
        x: Held,
        tensor: int,
        order: Sequence[int],
        name: str,
        shape: Sequence[int],
        attrs: Attrs,
    ) -> Held:
        """What moves or picks elements of `x`, which lies as `tensor` in `order`; so does the result."""
        memory, layout = lying(shape, order)
        result = self.make(kind, [tensor], name, memory, x.quant, attrs)
        return replace(x, tensor=result, shape=tuple(shape), layout=layout)

    def requantize(self, x: Held, quant: Quantization, name: str, remember: bool = False) -> Held:
        """`x` in another quantisation. `remember`: for `before_rounding`, if rounding is all that is lost."""
        if same_quantization(x.quant, quant):
            return x
        out = self.make(OpKind.QUANTIZE, [x.tensor], name, self.tensors[x.tensor].shape, quant)
        ends = ((end - x.quant.zero_point) * x.quant.scale / quant.scale for end in (-128, 127))
        # All that `x` can say lies within a step of what the result can.
        if remember and all(-129 <= end + quant.zero_point <= 128 for end in ends):
            self._kernels[out] = x
        return Held(out, x.shape, x.layout, quant)

    def before_rounding(self, x: Held) -> Held:
        """`x` as its kernel made it, before it was rounded again; x itself where there is no such thing.

        The bytes lie alike, and every value is as near or nearer to what was computed.
        """
        before = self._kernels.get(x.tensor)
        return x if before is None else replace(x, tensor=before.tensor, quant=before.quant)

    # ---- orders of dimensions ----------------------------------------------------------------------

    def view(self, tensor: int, shape: Sequence[int]) -> int:
        """The same bytes under `shape`."""
        wanted, old = tuple(shape), self.tensors[tensor]
        if old.shape == wanted:
            return tensor
        key = (tensor, wanted)
        if key not in self._viewed:
            assert old.quant is not None
            self._viewed[key] = self.make(OpKind.RESHAPE, [tensor], f"{old.name}/view", wanted, old.quant)
        return self._viewed[key]

    def _lay(self, tensor: int, source: Layout, target: Layout) -> int:
        """The tensor's bytes in another order, by a TRANSPOSE (two where they have no common factors)."""
        if source == target:
            return tensor
        key = (tensor, target)
        if key not in self._moved:
            turn = between(source, target)
            if turn is None:
                flat = plain([math.prod(source.factors)])
                self._moved[key] = self._lay(self._lay(tensor, source, flat), flat, target)
            else:
                old, (shape, perm) = self.tensors[tensor], turn
                assert old.quant is not None
                x = self.view(tensor, shape)
                turned = [shape[p] for p in perm]
                attrs = TransposeAttrs(perm)
                name = f"{old.name}/transposed"
                self._moved[key] = self.make(OpKind.TRANSPOSE, [x], name, turned, old.quant, attrs)
        return self._moved[key]

    def in_file_order(self, x: Held, order: Sequence[int]) -> int:
        """The tensor whose dimension i is the file's dimension order[i]."""
        memory, layout = lying(x.shape, order)
        return self.view(self._lay(x.tensor, x.layout, layout), memory)

    def natural(self, x: Held) -> tuple[int, tuple[int, ...]]:
        """(tensor, order): as it lies, its dimensions being those of the file in that order.

        Moved to the file's order only where a dimension is torn apart.
        """
        order = order_of(x.shape, x.layout)
        order = tuple(range(len(x.shape))) if order is None else order
        return self.in_file_order(x, order), order

    def spread(self, constant: Quantized, name: str, order: Sequence[int]) -> int:
        """An int8 constant operand, its dimensions in that order (those of an operand of that rank).

        Missing leading dimensions are 1; they are left out again where they stand in front.
        """
        shape = (1,) * (len(order) - constant.data.ndim) + constant.data.shape
        data = constant.data.reshape(shape).transpose(tuple(order))
        while data.ndim > 1 and data.shape[0] == 1:
            data = data[0]
        return self.constant(name, data, constant.quant)

    def quant(self, tensor: int) -> Quantization:
        """The quantisation of an activation."""
        quant = self.tensors[tensor].quant
        assert quant is not None
        return quant
