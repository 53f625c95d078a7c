"""Random networks of int16 activations (16x8 quantisation), made as those of int8 are (see `drawn`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.types import DType, Op, OpKind, Quantization
from buildtool.zoo.drawn import NetBuilder, quant


class WideNetBuilder(NetBuilder):
    """A builder whose activations are int16, with zero point 0 and biases of int64."""

    typical = 18900.0
    levels = (11.0, 15.0)

    def input(self, shape: Sequence[int], dtype: DType = DType.INT16, q: Quantization | None = None) -> int:
        """A network input."""
        return super().input(shape, dtype, q)

    def op(
        self,
        kind: OpKind,
        inputs: Sequence[int],
        shape: Sequence[int],
        attrs: g.Attrs,
        quant: Quantization | None,
        dtype: DType = DType.INT16,
        name: str = "",
    ) -> int:
        """An operator with one output."""
        return super().op(kind, inputs, shape, attrs, quant, dtype, name)

    def random_quant(self, scale: float | None = None, dtype: DType = DType.INT16) -> Quantization:
        """Scale (log-uniform unless given); a zero point of bytes only."""
        if dtype in (DType.INT8, DType.UINT8):
            return super().random_quant(scale, dtype)
        if scale is None:
            scale = float(np.exp(self.rng.uniform(-11, -5)))
        return quant(scale)

    def _weights(
        self, x: int, shape: tuple[int, ...], axis: int, per_channel: bool, bias: bool
    ) -> tuple[int, int, float]:
        weights, index, spread = super()._weights(x, shape, axis, per_channel, bias)
        if index >= 0:
            narrow = self.tensors[index]
            assert narrow.data is not None
            data = narrow.data.astype(np.int64)
            data.setflags(write=False)
            self.tensors[index] = replace(narrow, dtype=DType.INT64, data=data)
        return weights, index, spread

    def constant(self, shape: Sequence[int]) -> int:
        """An int16 constant operand."""
        data = self.rng.integers(-32768, 32768, shape).astype(np.int16)
        return self.tensor(shape, self.random_quant(), DType.INT16, data)

    def unary(self, kind: OpKind, x: int) -> int:
        """LOGISTIC, TANH, or a function that rescales."""
        if kind not in (OpKind.LOGISTIC, OpKind.TANH):
            return super().unary(kind, x)
        return self.op(kind, (x,), self.shape(x), g.Attrs(), quant(1 / 32768))

    def softmax(self, x: int, beta: float = 1.0) -> int:
        """SOFTMAX."""
        return self.op(OpKind.SOFTMAX, (x,), self.shape(x), g.SoftmaxAttrs(beta), quant(1 / 32768))

    def requantize(self, x: int, dtype: DType = DType.INT16) -> int:
        """QUANTIZE to int16, or to int8 where that is asked for."""
        if self.tensors[x].dtype is DType.FLOAT32:
            q = self.random_quant(2e-4 if dtype is DType.INT16 else 0.05, dtype)
        else:
            steps = {DType.INT8: 8, DType.INT16: 16}
            between = 2.0 ** (steps[self.tensors[x].dtype] - steps[dtype])
            q = self.random_quant(self.scale(x) * between * float(np.exp(self.rng.uniform(-0.7, 0.7))), dtype)
        return self.op(OpKind.QUANTIZE, (x,), self.shape(x), g.Attrs(), q, dtype)

    def split(self, x: int, count: int, axis: int = 3) -> tuple[int, ...]:
        """SPLIT into equal parts."""
        shape = list(self.shape(x))
        shape[axis] //= count
        outs = tuple(self.tensor(shape, self.tensors[x].quant, DType.INT16) for _ in range(count))
        self.ops.append(Op(OpKind.SPLIT, (x,), outs, g.AxisAttrs(axis), len(self.ops)))
        return outs
