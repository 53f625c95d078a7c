"""Single operators, counted on a board: many of them side by side in one firmware image.

    rows = count([conv(24, 24, 32, 64), depthwise(24, 24, 96, kernel=3, stride=2)], "cortex-m4")
    rows[0]["instructions"]

They are like the published figures beside which they are shown: int8, per-channel weights, SAME padding,
input zero point -128 (an offset of 128), output zero point -5, no activation; or a ReLU, whose output has the
zero point -128 as in trained networks, so that no output needs a clamp. Values are random with a fixed seed.
Every result is compared with the executor.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from buildtool.api import handle
from buildtool.graph.builder import GraphBuilder
from buildtool.graph.geometry import same_pad
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import (
    Activation,
    Attrs,
    AxisAttrs,
    ConvAttrs,
    DepthwiseAttrs,
    DType,
    ElementwiseAttrs,
    FilledPoolAttrs,
    FullyConnectedAttrs,
    Graph,
    MeanAttrs,
    OpKind,
    Pad,
    PadAttrs,
    PoolAttrs,
    Quantization,
    SliceAttrs,
    SoftmaxAttrs,
    TransposeAttrs,
    WidenedAttrs,
)

INPUT_ZERO_POINT, OUTPUT_ZERO_POINT = -128, -5
SCALE = 2.0**-6  # of activations
SPREAD = 74.0  # standard deviation of an int8 of equal chances
UNIT_QUANT = Quantization((1 / 256,), (-128,))  # of outputs from 0 to 1
ARENA_BYTES = 3 << 20  # of the operators that share an image: inputs and outputs all stay alive

Single = Callable[["Builder"], None]


class Builder(GraphBuilder):
    """Builds a graph of independent operators."""

    def __init__(self) -> None:
        super().__init__("single")
        self.rng = np.random.default_rng(1)
        self.is_wide = False  # whether activations are int16

    def quant(self, scale: float, zero_point: int) -> Quantization:
        """Returns the quantisation of an activation; int16 has finer steps and no zero point."""
        return _per_tensor(scale / 256, 0) if self.is_wide else _per_tensor(scale, zero_point)

    def input(self, shape: Sequence[int], scale: float = SCALE, zero_point: int = INPUT_ZERO_POINT) -> int:
        """Adds a network input, and returns its tensor."""
        return self.feed(shape, self.quant(scale, zero_point), DType.INT16 if self.is_wide else DType.INT8)

    def op(self, *given: Any, dtype: DType = DType.INT8, **named: Any) -> int:
        """Adds an operator with one output, which is of int16 if the inputs are; returns its tensor."""
        return super().op(*given, dtype=DType.INT16 if self.is_wide else dtype, **named)

    def weights(self, shape: Sequence[int], axis: int) -> tuple[int, int]:
        """Adds random weights, and a bias for each index of `axis`; returns both tensors."""
        count = shape[axis]
        scales = tuple(float(np.float32(s)) for s in self.rng.uniform(0.5, 1.0, count) / 127)
        data = self.rng.integers(-127, 128, shape, dtype=np.int8)
        spread = SPREAD * SPREAD * math.sqrt(math.prod(shape) // count)
        bias = self.rng.normal(0, spread, count).astype(np.int64 if self.is_wide else np.int32)
        bias_scales = tuple(float(np.float32(s * self.quant(SCALE, 0).scale)) for s in scales)
        return (
            self.tensor(shape, Quantization(scales, (0,) * count, axis), data=data),
            self.tensor((count,), Quantization(bias_scales, (0,) * count), DType(bias.dtype.name), bias),
        )

    def scaled(self, kind: OpKind, inputs: Sequence[int], scale: float, attrs: Attrs) -> None:
        """Adds an operator whose output has the scale `scale`."""
        relu = getattr(attrs, "activation", Activation.NONE) is Activation.RELU
        self.op(kind, inputs, attrs, self.quant(scale, -128 if relu else OUTPUT_ZERO_POINT))

    def whole(self) -> Graph:
        """Returns the graph; the outputs of all operators are network outputs."""
        return self.graph([t for op in self.ops for t in op.outputs])

    def activation_bytes(self) -> int:
        """Returns the bytes of all inputs and outputs."""
        return sum(math.prod(t.shape) for t in self.tensors if t.data is None)


def _per_tensor(scale: float, zero_point: int) -> Quantization:
    return Quantization((float(np.float32(scale)),), (zero_point,))


def _sum_scale(taps: int) -> float:
    """Returns an output scale for which the outputs use most of int8's range."""
    return SCALE / 127 * SPREAD * SPREAD * math.sqrt(taps) / 40


def _sides(kernel: int | Sequence[int]) -> tuple[int, int]:
    """Returns the rows and columns of a kernel; a single number means a square."""
    kh, kw = (kernel, kernel) if isinstance(kernel, int) else kernel
    return kh, kw


def conv(
    height: int,
    width: int,
    cin: int,
    cout: int,
    kernel: int | Sequence[int] = 1,
    stride: int = 1,
    relu: bool = False,
    dilation: int = 1,
    groups: int = 1,
    same: bool = True,
) -> Single:
    """Returns a CONV_2D. A single number as `kernel` means a square. `same` is SAME padding, else VALID."""
    kh, kw = _sides(kernel)

    def add(b: Builder) -> None:
        pad = same_pad((height, width), (kh, kw), (stride,) * 2, (dilation,) * 2) if same else Pad()
        operands = (b.input((1, height, width, cin)), *b.weights((cout, kh, kw, cin // groups), 0))
        activation = Activation.RELU if relu else Activation.NONE
        attrs = ConvAttrs((stride, stride), (dilation, dilation), pad, activation)
        b.scaled(OpKind.CONV_2D, operands, _sum_scale(kh * kw * cin // groups), attrs)

    return add


def grouped(height: int, width: int, cin: int, cout: int, kernel: int, groups: int) -> Single:
    """Returns a CONV_2D with groups of channels."""
    return conv(height, width, cin, cout, kernel, groups=groups)


def dilated(height: int, width: int, cin: int, cout: int, kernel: int, dilation: int) -> Single:
    """Returns a CONV_2D with dilation."""
    return conv(height, width, cin, cout, kernel, dilation=dilation)


def depthwise(
    height: int,
    width: int,
    channels: int,
    kernel: int | Sequence[int] = 3,
    stride: int = 1,
    relu: bool = False,
    dilation: int = 1,
    same: bool = True,
    multiplier: int = 1,
) -> Single:
    """Returns a DEPTHWISE_CONV_2D. A single number as `kernel` means a square. `same` is SAME, else VALID."""
    kh, kw = _sides(kernel)

    def add(b: Builder) -> None:
        pad = same_pad((height, width), (kh, kw), (stride,) * 2, (dilation,) * 2) if same else Pad()
        operands = (b.input((1, height, width, channels)), *b.weights((1, kh, kw, channels * multiplier), 3))
        activation = Activation.RELU if relu else Activation.NONE
        attrs = DepthwiseAttrs((stride, stride), (dilation, dilation), pad, activation, multiplier)
        b.scaled(OpKind.DEPTHWISE_CONV_2D, operands, _sum_scale(kh * kw), attrs)

    return add


def multiplied(
    height: int, width: int, channels: int, multiplier: int, kernel: int | Sequence[int] = 3, stride: int = 1
) -> Single:
    """Returns a DEPTHWISE_CONV_2D with `multiplier` output channels for each input channel."""
    return depthwise(height, width, channels, kernel, stride, multiplier=multiplier)


def transpose(
    height: int, width: int, cin: int, cout: int, kernel: int | Sequence[int] = 3, stride: int = 2
) -> Single:
    """Returns a TRANSPOSE_CONV with SAME padding."""
    kernels = _sides(kernel)

    def add(b: Builder) -> None:
        operands = (b.input((1, height, width, cin)), *b.weights((cout, *kernels, cin), 0))
        total = [max(k - stride, 0) for k in kernels]
        pad = Pad(total[0] // 2, total[0] - total[0] // 2, total[1] // 2, total[1] - total[1] // 2)
        attrs = ConvAttrs((stride, stride), (1, 1), pad, Activation.NONE)
        taps = max(1, math.prod(kernels) // stride**2)
        quant = b.quant(_sum_scale(taps * cin), OUTPUT_ZERO_POINT)
        shape = (1, height * stride, width * stride, cout)
        b.op(OpKind.TRANSPOSE_CONV, operands, attrs, quant, shape=shape)

    return add


def padded(height: int, width: int, channels: int, *sides: int) -> Single:
    """Returns a PAD. `sides` are rows above and below, columns left and right."""

    def add(b: Builder) -> None:
        x = b.input((1, height, width, channels))
        attrs = PadAttrs(((0, 0), sides[:2], sides[2:], (0, 0)), value=INPUT_ZERO_POINT)
        b.op(OpKind.PAD, (x,), attrs, b.tensors[x].quant)

    return add


def wide(maker: str, *given: Any) -> Single:
    """Returns the operator of the function `maker` of this file for the arguments `given`, in int16."""
    make: Single = globals()[maker](*given)

    def add(b: Builder) -> None:
        b.is_wide = True
        make(b)
        b.is_wide = False

    return add


def dilated_depthwise(height: int, width: int, channels: int, kernel: int, dilation: int) -> Single:
    """Returns a DEPTHWISE_CONV_2D with dilation."""
    return depthwise(height, width, channels, kernel, dilation=dilation)


def dense(inputs: int, outputs: int) -> Single:
    """Returns a FULLY_CONNECTED with one row of inputs."""

    def add(b: Builder) -> None:
        operands = (b.input((1, inputs)), *b.weights((outputs, inputs), 0))
        attrs = FullyConnectedAttrs(Activation.NONE)
        b.scaled(OpKind.FULLY_CONNECTED, operands, _sum_scale(inputs), attrs)

    return add


def binary(kind: OpKind | str, height: int, width: int, channels: int, *second: int) -> Single:
    """Returns an ADD or MUL. `second` is the shape of the second operand, if it is to be broadcast."""

    def add(b: Builder) -> None:
        shape = (1, height, width, channels)
        scale = SCALE * 1.7 if OpKind(kind) is OpKind.ADD else SCALE * SCALE * 128
        first = b.input(shape)
        other = b.input((1, *second) if second else shape, SCALE * 0.8, 3)
        b.scaled(OpKind(kind), (first, other), scale, ElementwiseAttrs(Activation.NONE))

    return add


def widened(height: int, width: int, channels: int, narrow: int, below: int = 0) -> Single:
    """Returns an ADD whose second operand covers only the channels from `below` to `below` + `narrow`."""

    def add(b: Builder) -> None:
        shape, quant = (1, height, width, channels), _per_tensor(SCALE * 0.8, 3)
        first = b.input(shape)
        b.inputs.append(b.tensor((*shape[:3], narrow), quant))
        longest = max(below, channels - narrow - below)
        filling = b.tensor((longest,), quant, data=np.full(longest, 3, np.int8))
        operands = (first, b.inputs[-1], filling)
        b.scaled(OpKind.ADD, operands, SCALE * 1.7, WidenedAttrs(Activation.NONE, below))

    return add


def pool(kind: OpKind | str, height: int, width: int, channels: int, kernel: int, stride: int) -> Single:
    """Returns an AVERAGE_POOL_2D or MAX_POOL_2D with VALID padding."""

    def add(b: Builder) -> None:
        x = b.input((1, height, width, channels))
        attrs = PoolAttrs((kernel, kernel), (stride, stride), Pad(), Activation.NONE)
        b.op(OpKind(kind), (x,), attrs, b.tensors[x].quant)

    return add


def filled_pool(height: int, width: int, channels: int, kernel: int, stride: int, pad: int) -> Single:
    """Returns an AVERAGE_POOL_2D whose padding counts, `pad` elements on each side."""

    def add(b: Builder) -> None:
        x = b.input((1, height, width, channels))
        attrs = FilledPoolAttrs((kernel, kernel), (stride, stride), Pad(pad, pad, pad, pad), value=-3)
        b.op(OpKind.AVERAGE_POOL_2D, (x,), attrs, b.tensors[x].quant)

    return add


def mean(height: int, width: int, channels: int) -> Single:
    """Returns a MEAN over rows and columns."""

    def add(b: Builder) -> None:
        x = b.input((1, height, width, channels))
        b.scaled(OpKind.MEAN, (x,), SCALE / 4, MeanAttrs((1, 2), False))

    return add


def softmax(classes: int) -> Single:
    """Returns a SOFTMAX of one row."""

    def add(b: Builder) -> None:
        x = b.input((1, classes))
        b.op(OpKind.SOFTMAX, (x,), SoftmaxAttrs(1.0), UNIT_QUANT)

    return add


def table(height: int, width: int, channels: int) -> Single:
    """Returns a LOGISTIC, which kernels compute with a table."""

    def add(b: Builder) -> None:
        x = b.input((1, height, width, channels))
        b.op(OpKind.LOGISTIC, (x,), Attrs(), UNIT_QUANT)

    return add


def concat(height: int, width: int, *channels: int) -> Single:
    """Returns a CONCATENATION of tensors with these numbers of channels."""
    return joined(3, *((height, width, count) for count in channels))


def joined(axis: int, *shapes: Sequence[int]) -> Single:
    """Returns a CONCATENATION along `axis` of tensors with these shapes (rows, columns, channels)."""

    def add(b: Builder) -> None:
        parts = [b.input((1, *shape)) for shape in shapes]
        b.op(OpKind.CONCATENATION, parts, AxisAttrs(axis), b.tensors[parts[0]].quant)

    return add


def cut(shape: Sequence[int], begin: Sequence[int], extent: Sequence[int], step: int = 1) -> Single:
    """Returns a STRIDED_SLICE of rows, columns and channels; `step` is the stride along columns."""

    def add(b: Builder) -> None:
        x = b.input((1, *shape))
        attrs = SliceAttrs((0, *begin), (1, 1, step, 1), (1, *extent))
        b.op(OpKind.STRIDED_SLICE, (x,), attrs, b.tensors[x].quant)

    return add


def turned(shape: Sequence[int], perm: Sequence[int]) -> Single:
    """Returns a TRANSPOSE of a tensor with a batch of one; `perm` has all four dimensions."""

    def add(b: Builder) -> None:
        x = b.input((1, *shape))
        b.op(OpKind.TRANSPOSE, (x,), TransposeAttrs(tuple(perm)), b.tensors[x].quant)

    return add


def images(singles: Sequence[Single]) -> list[Builder]:
    """Distributes the operators, in order, over as few images as the limit on memory allows."""
    found = [Builder()]
    for single in singles:
        alone = Builder()
        single(alone)
        if found[-1].ops and found[-1].activation_bytes() + alone.activation_bytes() > ARENA_BYTES:
            found.append(Builder())
        single(found[-1])
    return found


def count(
    singles: Sequence[Single], board: str, toolchain: str = "", cmsis_nn: str = ""
) -> list[dict[str, Any]]:
    """Returns each operator's row of `profile` (name, kernel, macs, instructions), with the `compiler`.

    `cmsis_nn` is the path of a checkout of CMSIS-NN, whose kernels are then used. Exits if a result is not
    exact.
    """
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number, builder in enumerate(images(singles)):
            path = Path(folder) / f"single{number}.tflite"
            path.write_bytes(write_model(builder.whole()))
            request = {"kind": "profile", "model": str(path), "board": board, "toolchain": toolchain}
            request |= {"cmsis_nn": cmsis_nn} if cmsis_nn else {}
            answer = handle({**request, "options": {"strategy": "layerwise", "order": "given"}})
            if not answer["exact"]:
                raise SystemExit(f"{board}: the result differs from the executor's")
            rows += [{**row, "compiler": answer["compiler"]} for row in answer["per_operator"]]
    assert len(rows) == len(singles)
    return rows
