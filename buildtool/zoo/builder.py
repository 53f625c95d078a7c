"""Builds an int8 network operator by operator, and runs each operator on calibration input.

Each method adds one operator and returns its output tensor's index. It chooses the output's quantisation
from the values on the calibration input. Then the reference executor runs the operator, and the next
operator reads the resulting bytes. Tensors have batch 1; the calibration input has a batch of samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from buildtool.graph import types as g
from buildtool.graph.builder import NO_ATTRS, NO_PAD, GraphBuilder
from buildtool.graph.numbering import graph_of
from buildtool.graph.reference import execute
from buildtool.graph.types import Activation, Attrs, DType, OpKind, Pad, Quantization
from buildtool.zoo import calibrate, seeded
from buildtool.zoo.calibrate import Floats, Int8s, Spread, spread_for

SOFTMAX_QUANT = Quantization((1.0 / 256.0,), (-128,))  # fixed for TFLite's int8 SOFTMAX
_VECTOR_HEADROOM = 1.25


@dataclass(frozen=True)
class Window:
    """A kernel's (rows, columns), its (row, column) strides, and the padding around its input."""

    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    pad: Pad = NO_PAD


_Weighted = g.ConvAttrs | g.FullyConnectedAttrs
# The filter dimension along which there is one scale per index. FULLY_CONNECTED has one scale.
_CHANNEL_AXES = {OpKind.CONV_2D: 0, OpKind.DEPTHWISE_CONV_2D: 3}


@dataclass(frozen=True)
class _Layer:
    """An operator with weights before it is added, and its real outputs on the calibration input."""

    name: str
    x: int
    kind: OpKind
    attrs: Attrs
    filters: Int8s
    affine: calibrate.Affine
    values: Floats


class Builder(GraphBuilder):
    """Builds a graph, and computes the values of its tensors on the calibration input."""

    def __init__(
        self, name: str, seed: str, shape: tuple[int, ...], quant: Quantization, values: Int8s
    ) -> None:
        """Begins with the network's input, of shape (1, *shape) and quantisation `quant`.

        `seed` is part of the names of the random streams that weights are drawn from. `values` is the
        calibration input: (samples, *shape).
        """
        super().__init__(name)
        self._seed = seed
        self.input = self.feed((1, *shape), quant, name="input")
        self._values: dict[int, Int8s] = {self.input: values}

    def name(self, tensor: int) -> str:
        """Returns the name of a tensor."""
        return self.tensors[tensor].name

    def values(self, tensor: int) -> Int8s:
        """Returns a tensor's values on the calibration input: (samples, ...)."""
        return self._values[tensor]

    def conv(
        self,
        x: int,
        channels: int,
        window: Window,
        activation: Activation,
        name: str,
        *,
        spread: Spread | None = None,
        like: int | None = None,
    ) -> int:
        """Adds a CONV_2D.

        `spread` is the distribution of its outputs, by default one that suits the activation. With `like`, it
        has the quantisation of that tensor.
        """
        layer = self._make_convolution(x, channels, window, activation, name, spread)
        return self._add(layer, None if like is None else self._quant(like))

    def convs(
        self, x: int, channels: int, branches: Sequence[tuple[Window, str]], activation: Activation
    ) -> list[int]:
        """Adds parallel CONV_2Ds, one for each (window, name). All outputs have the same quantisation."""
        layers = [self._make_convolution(x, channels, one, activation, name, None) for one, name in branches]
        quant = calibrate.quantization(np.concatenate([layer.values.ravel() for layer in layers]))
        return [self._add(layer, quant) for layer in layers]

    def _make_convolution(
        self, x: int, channels: int, window: Window, activation: Activation, name: str, spread: Spread | None
    ) -> _Layer:
        filters = self._weights(name, (channels, *window.kernel, self.shape(x)[3]))
        attrs = g.ConvAttrs(stride=window.stride, pad=window.pad, activation=activation)
        sums = calibrate.convolution(self._values[x], self._quant(x).zero_point, filters, attrs)
        return self._make_layer(
            name, x, OpKind.CONV_2D, attrs, filters, sums, spread or spread_for(activation)
        )

    def depthwise(self, x: int, window: Window, activation: Activation, name: str) -> int:
        """Adds a DEPTHWISE_CONV_2D with depth multiplier 1."""
        filters = self._weights(name, (1, *window.kernel, self.shape(x)[3]))
        attrs = g.DepthwiseAttrs(stride=window.stride, pad=window.pad, activation=activation)
        sums = calibrate.depthwise(self._values[x], self._quant(x).zero_point, filters, attrs)
        layer = self._make_layer(
            name, x, OpKind.DEPTHWISE_CONV_2D, attrs, filters, sums, spread_for(activation)
        )
        return self._add(layer)

    def dense(
        self, x: int, outputs: int, activation: Activation, name: str, *, spread: Spread | None = None
    ) -> int:
        """Adds a FULLY_CONNECTED with one weight scale for all outputs, as most converters give it."""
        filters = self._weights(name, (outputs, self.shape(x)[1]))
        sums = calibrate.dense(self._values[x], self._quant(x).zero_point, filters)
        kind, attrs = OpKind.FULLY_CONNECTED, g.FullyConnectedAttrs(activation)
        return self._add(
            self._make_layer(name, x, kind, attrs, filters, sums, spread or spread_for(activation))
        )

    def add(self, a: int, b: int, activation: Activation, name: str) -> int:
        """Adds an ADD of two tensors of the same shape."""
        quant = calibrate.quantization(calibrate.activate(self._real(a) + self._real(b), activation))
        return self._append(OpKind.ADD, (a, b), g.ElementwiseAttrs(activation), quant, name)

    def multiply(self, a: int, b: int, name: str) -> int:
        """Adds a MUL of `a` and `b`, where `b` is broadcast over the rows and columns of `a`."""
        quant = _quantization(self._real(a) * self._real(b))
        return self._append(OpKind.MUL, (a, b), g.ElementwiseAttrs(), quant, name)

    def hard_swish(self, x: int, name: str) -> int:
        """Adds a HARD_SWISH: x * min(max(x + 3, 0), 6) / 6."""
        values = self._real(x)
        quant = _quantization(values * np.clip(values + 3.0, 0.0, 6.0) / 6.0)
        return self._append(OpKind.HARD_SWISH, (x,), NO_ATTRS, quant, name)

    def hard_sigmoid(self, x: int, name: str) -> int:
        """Adds a hard sigmoid as converters write it: ADD of 3 with RELU6, then MUL by 1/6."""
        constants = []
        for value, label in ((3.0, "three"), (1.0 / 6.0, "sixth")):
            scale = Quantization((calibrate.float32(value / 127.0),), (0,))
            constants.append(self._constant(f"{name}/{label}", np.full((1,), 127, dtype=np.int8), scale))
        shifted = g.ElementwiseAttrs(Activation.RELU6)
        six = Quantization((calibrate.float32(6.0 / 255.0),), (-128,))
        y = self._append(OpKind.ADD, (x, constants[0]), shifted, six, f"{name}/shifted")
        one = Quantization((calibrate.float32(1.0 / 255.0),), (-128,))
        return self._append(OpKind.MUL, (y, constants[1]), g.ElementwiseAttrs(), one, name)

    def concat(self, parts: Sequence[int], name: str) -> int:
        """Adds a CONCATENATION of channels. All parts have the same quantisation, as TFLite demands."""
        return self._append(OpKind.CONCATENATION, parts, g.AxisAttrs(3), self._quant(parts[0]), name)

    def max_pool(self, x: int, window: Window, name: str) -> int:
        """Adds a MAX_POOL_2D."""
        return self._pool(OpKind.MAX_POOL_2D, x, window, name)

    def pad(self, x: int, pad: Pad, name: str) -> int:
        """Adds a PAD of rows and columns with the zero point."""
        quant = self._quant(x)
        paddings = ((0, 0), (pad.top, pad.bottom), (pad.left, pad.right), (0, 0))
        return self._append(OpKind.PAD, (x,), g.PadAttrs(paddings, value=quant.zero_point), quant, name)

    def mean(self, x: int, axes: tuple[int, ...], name: str, *, keep_dims: bool = False) -> int:
        """Adds a MEAN over `axes`, which are removed unless `keep_dims`."""
        sums = self._values[x].sum(axis=axes, dtype=np.int64).astype(np.float64)
        count = math.prod(self.shape(x)[axis] for axis in axes)
        quant = _quantization((sums / count - self._quant(x).zero_point) * self._quant(x).scale)
        return self._append(OpKind.MEAN, (x,), g.MeanAttrs(axes, keep_dims), quant, name)

    def average_pool(self, x: int, name: str, window: Window | None = None) -> int:
        """Adds an AVERAGE_POOL_2D, by default over all rows and columns."""
        whole = self.shape(x)[1], self.shape(x)[2]
        return self._pool(OpKind.AVERAGE_POOL_2D, x, window or Window(whole, whole), name)

    def _pool(self, kind: OpKind, x: int, window: Window, name: str) -> int:
        """Adds a pool. Its output has the input's quantisation, as TFLite demands."""
        attrs = g.PoolAttrs(window.kernel, window.stride, window.pad)
        return self._append(kind, (x,), attrs, self._quant(x), name)

    def transpose(self, x: int, perm: tuple[int, ...], name: str) -> int:
        """Adds a TRANSPOSE."""
        return self._append(OpKind.TRANSPOSE, (x,), g.TransposeAttrs(perm), self._quant(x), name)

    def reshape(self, x: int, shape: tuple[int, ...], name: str) -> int:
        """Adds a RESHAPE. `shape` begins with the batch of 1."""
        return self._append(OpKind.RESHAPE, (x,), NO_ATTRS, self._quant(x), name, shape)

    def softmax(self, x: int, name: str) -> int:
        """Adds a SOFTMAX over the last dimension."""
        return self._append(OpKind.SOFTMAX, (x,), g.SoftmaxAttrs(), SOFTMAX_QUANT, name)

    def _quant(self, tensor: int) -> Quantization:
        quant = self.tensors[tensor].quant
        assert quant is not None  # all activations here are quantised
        return quant

    def _weights(self, name: str, shape: tuple[int, ...]) -> Int8s:
        return seeded.bell(f"{self._seed}/{name}", shape)

    def _real(self, tensor: int) -> Floats:
        return calibrate.real(self._values[tensor], self._quant(tensor))

    def _make_layer(
        self, name: str, x: int, kind: OpKind, attrs: _Weighted, filters: Int8s, sums: Floats, spread: Spread
    ) -> _Layer:
        """Returns a layer whose scales and biases give its outputs the distribution `spread`.

        `sums` are its accumulators on the calibration input.
        """
        offsets = seeded.uniform(f"{self._seed}/{name}/offset", sums.shape[-1], *spread.offset)
        deviations = seeded.uniform(f"{self._seed}/{name}/deviation", sums.shape[-1], *spread.deviation)
        scale = self._quant(x).scale
        affine = calibrate.affine(sums, scale, offsets, deviations, kind in _CHANNEL_AXES)
        scales = np.array([calibrate.float32(scale * s) for s in affine.weight_scales])
        values = calibrate.activate((sums + affine.biases) * scales, attrs.activation)
        return _Layer(name, x, kind, attrs, filters, affine, values)

    def _add(self, layer: _Layer, quant: Quantization | None = None) -> int:
        """Adds the operator with its filter and bias. Returns its output.

        `quant` is the output's quantisation, by default one for the layer's values.
        """
        scales = layer.affine.weight_scales
        bias_scales = tuple(calibrate.float32(self._quant(layer.x).scale * s) for s in scales)
        zeros = (0,) * len(scales)
        filter_quant = Quantization(scales, zeros, _CHANNEL_AXES.get(layer.kind, 0))
        weights = (
            self._constant(f"{layer.name}/filter", layer.filters, filter_quant),
            self._constant(f"{layer.name}/bias", layer.affine.biases, Quantization(bias_scales, zeros)),
        )
        quant = quant or _quantization(layer.values)
        return self._append(layer.kind, (layer.x, *weights), layer.attrs, quant, layer.name)

    def _constant(self, name: str, data: npt.NDArray[np.generic], quant: Quantization) -> int:
        dtype = DType.INT8 if data.dtype == np.int8 else DType.INT32
        return self.tensor(data.shape, quant, dtype, data, name)

    def _append(
        self,
        kind: OpKind,
        inputs: Sequence[int],
        attrs: Attrs,
        quant: Quantization,
        name: str,
        shape: tuple[int, ...] | None = None,
    ) -> int:
        """Adds an operator with one output, and runs it on the values of its inputs, all samples at once."""
        output = self.op(kind, inputs, attrs, quant, name=name, shape=shape)
        sources = list(dict.fromkeys(t for t in inputs if t in self._values))
        batch = len(self._values[self.input])
        tensors = {t: self.tensors[t] for t in (*inputs, output)}
        tensors |= {t: replace(tensors[t], shape=(batch, *self.shape(t)[1:])) for t in (*sources, output)}
        graph = graph_of(self.network, tensors, (self.ops[-1],), sources, (output,))
        values = execute(graph, [self._values[t] for t in sources])
        self._values[output] = np.asarray(values[graph.outputs[0]], dtype=np.int8)
        return output


def _quantization(values: Floats) -> Quantization:
    """Returns a quantisation that fits a tensor's values in all samples, `values`.

    A vector (one pixel) has few values per sample. Other inputs may well give values outside the range of
    these, so its range is enlarged.
    """
    is_vector = math.prod(values.shape[1:]) == values.shape[-1]
    return calibrate.quantization(values, _VECTOR_HEADROOM if is_vector else 1.0)
