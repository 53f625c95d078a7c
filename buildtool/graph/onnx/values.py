"""The values that a tensor name of the file stands for while the file is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

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
class Int8Value:
    """An int8 activation. `tensor` is its number in the graph, `layout` the order of its bytes.

    `shape` is the shape in the file. `integers` is true if the tensor in the file holds quantised
    integers, and false if it holds dequantised numbers.
    """

    tensor: int
    shape: tuple[int, ...]
    layout: Layout
    quant: Quantization
    integers: bool = False


@dataclass(frozen=True, eq=False)
class Pending:
    """The float result of an operator whose output quantisation is not known yet.

    `make(quantisation, activation, output name)` emits the operator and returns its result. `clamp` is the
    range to which later operators clamp the result; `fuses` tells whether the operator can do that itself.
    `add_bias(bias)` returns the same operator with a bias; it is None if a bias cannot be added.
    `scale_channels(factors, offsets)` returns the operator with each channel times its factor plus its
    offset; it is None if that is not possible. `demanded_quant`: the output quantisation that TFLite demands.
    `channel` is the result's dimension that a bias belongs to.
    """

    shape: tuple[int, ...]
    make: Callable[[Quantization, Activation, str], Int8Value]
    clamp: Clamp = NO_CLAMP
    fuses: bool = False
    add_bias: Callable[[Constant | Quantized], Pending] | None = None
    scale_channels: Callable[[Array, Array], Pending] | None = None
    demanded_quant: Quantization | None = None
    channel: int = -1


@dataclass(frozen=True, eq=False)
class IndexOutput:
    """The int64 result of ArgMax or ArgMin. It must be a network output. `shape` is its shape in memory."""

    tensor: int
    shape: tuple[int, ...]


Value = Constant | Quantized | Int8Value | Pending | IndexOutput
