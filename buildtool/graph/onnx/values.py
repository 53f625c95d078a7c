"""What a name of the file stands for while it is read."""

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
# TFLite's fused activations, by the range that they cut to.
ACTIVATIONS: dict[Clamp, Activation] = {
    NO_CLAMP: Activation.NONE,
    (0.0, math.inf): Activation.RELU,
    (0.0, 6.0): Activation.RELU6,
    (-1.0, 1.0): Activation.RELU_N1_TO_1,
}


@dataclass(frozen=True, eq=False)
class Constant:
    """Numbers as they are: floats, shapes, or integers that were not dequantised yet."""

    data: Array

    @property
    def real(self) -> Array:
        """The numbers as float64."""
        return self.data.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Quantized:
    """A dequantised constant, int8 or int32: scale * (data - zero point), along `axis` if several.

    uint8 came shifted by 128.
    """

    data: Array
    quant: Quantization

    @property
    def real(self) -> Array:
        """The numbers that it stands for, as float64; of several scales those of a vector."""
        zeros, factors = np.array(self.quant.zero_points), np.array(self.quant.scales)
        data = self.data.astype(np.float64)
        if factors.size == 1:
            return np.asarray((data - zeros[0]) * factors[0])
        return np.asarray((data.reshape(-1) - zeros) * factors)


@dataclass(frozen=True, eq=False)
class Held:
    """An int8 activation: tensor `tensor` of the graph, whose bytes lie as `layout` says.

    `shape` is the file's. `integers`: the file has it in quantised form here, not dequantised.
    """

    tensor: int
    shape: tuple[int, ...]
    layout: Layout
    quant: Quantization
    integers: bool = False


@dataclass(frozen=True, eq=False)
class Pending:
    """The float result of an operator whose output quantisation is not known yet.

    `make` emits it, given quantisation, fused activation, and the output's name. `clamp`: what
    followed it; `fuses`: whether it can clamp by itself. `biased`: the same with a bias added, where
    it has none; `scaled`: with channels times factors plus offsets. `natural`: the output quantisation
    that TFLite's kernel demands.
    """

    shape: tuple[int, ...]
    make: Callable[[Quantization, Activation, str], Held]
    clamp: Clamp = NO_CLAMP
    fuses: bool = False
    biased: Callable[[Constant | Quantized], Pending] | None = None
    scaled: Callable[[Array, Array], Pending] | None = None
    natural: Quantization | None = None
    channel: int = -1  # the dimension that a bias runs along


@dataclass(frozen=True, eq=False)
class Places:
    """int64 tensor `tensor` of the graph, as it lies in memory: nothing but a network output."""

    tensor: int
    shape: tuple[int, ...]


Value = Constant | Quantized | Held | Pending | Places
