"""The values that a tensor name of the file stands for while the file is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from buildtool.graph.onnx.file import Array
from buildtool.graph.onnx.layout import Layout
from buildtool.graph.types import Activation, Quantization

Clamp = tuple[float, float]
NO_CLAMP: Clamp = (-math.inf, math.inf)
# TFLite's fused activations by the range to which they clamp.
ACTIVATIONS: dict[Clamp, Activation] = {
    NO_CLAMP: Activation.NONE,
    (0.0, math.inf): Activation.RELU,
    (0.0, 6.0): Activation.RELU6,
    (-1.0, 1.0): Activation.RELU_N1_TO_1,
}


@dataclass(frozen=True, eq=False)
class Constant:
    """A constant as the file has it: floats, a shape, or integers that are not dequantised yet."""

    data: Array
    quant: ClassVar[None] = None

    @property
    def real(self) -> Array:
        """The numbers as float64."""
        return self.data.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Quantized:
    """A dequantised constant: scale * (data - zero point), where `data` is int8 or int32.

    If there are several scales, dimension `quant.axis` has one scale per element. 128 is subtracted from the
    values and zero points of a uint8 constant of the file.
    """

    data: Array
    quant: Quantization

    @property
    def real(self) -> Array:
        """The dequantised numbers as float64. With several scales the result is a vector."""
        zeros, factors = np.array(self.quant.zero_points), np.array(self.quant.scales)
        data = self.data.astype(np.float64)
        if factors.size == 1:
            return np.asarray((data - zeros[0]) * factors[0])
        return np.asarray((data.reshape(-1) - zeros) * factors)


@dataclass(frozen=True, eq=False)
class ActivationValue:
    """An activation: int8 with a quantisation, or float32 without one.

    `tensor`: its number in the graph.
    `shape`: its shape in the file.
    `layout`: the order of its elements in memory.
    `integers`: whether the file's tensor holds quantised integers and not the numbers that these represent.
    """

    tensor: int
    shape: tuple[int, ...]
    layout: Layout
    quant: Quantization | None
    integers: bool = False

    @property
    def is_float(self) -> bool:
        """Whether it is float32."""
        return self.quant is None

    @property
    def steps(self) -> Quantization:
        """The quantisation of an int8 activation."""
        assert self.quant is not None
        return self.quant


Operand = ActivationValue | Quantized | Constant


@dataclass(frozen=True, eq=False)
class Pending:
    """The float result of an operator whose output quantisation is not known yet.

    `make(quantisation, activation, output name)` emits the operator and returns its result. Without a
    quantisation it computes in float32; then its operands must be float32 (see `Context.floats`).
    `clamp`: the range to which later operators clamp the result.
    `fuses`: whether the operator itself can clamp.
    `add_bias(bias)` returns the same operator with a bias. None if it cannot have one.
    `scale_channels(factors, offsets)` returns the operator with each channel multiplied by its factor and
    increased by its offset. None if that is not possible.
    `demanded_quant`: the output quantisation that TFLite demands.
    `channel`: the result's dimension that a bias belongs to.
    """

    shape: tuple[int, ...]
    make: Callable[[Quantization | None, Activation, str], ActivationValue]
    clamp: Clamp = NO_CLAMP
    fuses: bool = False
    add_bias: Callable[[Constant | Quantized], Pending] | None = None
    scale_channels: Callable[[Array, Array], Pending] | None = None
    demanded_quant: Quantization | None = None
    channel: int = -1


@dataclass(frozen=True, eq=False)
class IndexOutput:
    """The int64 result of ArgMax or ArgMin, which must be a network output. `shape`: its shape in memory."""

    tensor: int
    shape: tuple[int, ...]


Value = Constant | Quantized | ActivationValue | Pending | IndexOutput
