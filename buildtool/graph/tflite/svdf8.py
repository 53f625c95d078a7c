"""SVDF with 8-bit weights over time and an 8-bit state, as in older networks of TensorFlow Lite Micro.

It becomes operators that other networks have, too, and that compute TFLM's integers. (LiteRT's kernel would
read the weights and the state as 16 bits.)

    newest  CONV_2D of one pixel: the sums over the inputs, requantised to the state
    window  CONCATENATION of the last memory - 1 values of every feature and the newest one; its end is the
            state's new value, so planning turns it into one SHIFT in place
    y       a convolution over the window's rows, with a group of `rank` channels for each unit

TFLM computes both factors in float32. So the filters get scales that give a convolution the same factors.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph import types as g
from buildtool.graph.reference.tensors import float_ratio
from buildtool.graph.tflite.flat import RawTensor
from buildtool.graph.tflite.opview import OpView
from buildtool.graph.types import DType, OpKind, Quantization, Tensor

_Int8s = npt.NDArray[np.int8]


@dataclass
class NarrowSvdf:
    """An SVDF with an 8-bit state while it is read. `rank`: the number of features of each unit."""

    view: OpView
    rank: int

    def read(self) -> None:
        """Adds the operators that replace the SVDF to the graph."""
        view, (features, memory) = self.view, self._time.shape
        (batch, inputs), units = self._x.shape, features // self.rank
        pixel = view.emit_new(OpKind.RESHAPE, view.operand(0), (batch, 1, 1, inputs))
        rows = self._feature.reshape(features, 1, 1, inputs)
        newest = self._add("newest", (batch, 1, 1, features), self._quant(4))
        first = self._filter(1, rows, self._quant(0), self._quant(4))
        view.emit(OpKind.CONV_2D, (pixel, first, -1), g.ConvAttrs(), (newest,))
        window = self._shift(newest, batch, memory, features)
        kind, attrs, data = OpKind.CONV_2D, g.ConvAttrs(), self._time.reshape(units, self.rank, 1, memory)
        taps = data.transpose(0, 3, 2, 1)
        if self.rank == 1 and units > 1:
            kind, attrs, taps = OpKind.DEPTHWISE_CONV_2D, g.DepthwiseAttrs(), taps.transpose(3, 1, 2, 0)
        second = self._filter(2, taps, self._quant(4), self._output)
        out = self._add("output", (batch, 1, 1, units), self._output)
        view.emit(kind, (window, second, self._bias(units)), attrs, (out,))
        view.emit(OpKind.RESHAPE, (out,))

    # ---- the file's tensors ----------------------------------------------------------------------------

    @property
    def _x(self) -> RawTensor:
        x = self.view.input(0)
        if len(x.shape) != 2 or min(x.shape) < 1:
            raise ModelError(f"shape {list(x.shape)} must have 2 dimensions", tensor=x.name)
        return x

    @cached_property
    def _feature(self) -> _Int8s:
        return self._weights(1, "the weights of the features", self._x.shape[1])

    @cached_property
    def _time(self) -> _Int8s:
        data = self._weights(2, "the weights over time", 0)
        features, memory = data.shape
        if self.rank < 1 or features % self.rank or features != len(self._feature):
            raise ModelError(f"{features} features do not divide into units of {self.rank}")
        batch, state = self._x.shape[0], self.view.input(4)
        if state.elements != batch * features * memory:
            raise ModelError(f"shape {list(state.shape)} of a state", tensor=state.name)
        self.view.demand_output((batch, features // self.rank))
        return data

    def _weights(self, position: int, what: str, columns: int) -> _Int8s:
        raw = self.view.input(position)
        if not raw.is_constant or raw.dtype != "int8" or len(raw.shape) != 2 or 0 in raw.shape:
            raise ModelError(f"{what} must be an int8 constant of 2 dimensions", tensor=raw.name)
        if raw.quant is None or any(raw.quant.zero_points) or columns not in (0, raw.shape[1]):
            raise ModelError(f"{what} have shape {list(raw.shape)}, or a zero point", tensor=raw.name)
        return raw.array().view(np.int8)

    def _bias(self, units: int) -> int:
        bias = self.view.optional(3)
        if bias is None:
            return -1
        if not bias.is_constant or bias.dtype != "int32" or bias.shape != (units,):
            raise ModelError(f"the bias must be {units} constants of int32", tensor=bias.name)
        return self.view.operand(3)

    def _quant(self, position: int) -> Quantization:
        return _per_tensor(self.view.input(position))

    @property
    def _output(self) -> Quantization:
        return _per_tensor(self.view.output)

    # ---- new tensors -----------------------------------------------------------------------------------

    def _add(self, role: str, shape: tuple[int, ...], quant: Quantization, data: _Int8s | None = None) -> int:
        name = f"{self.view.output.name}/{role}"
        return self.view.network.add(Tensor(name, shape, DType.INT8, quant, data))

    def _filter(self, position: int, data: _Int8s, source: Quantization, out: Quantization) -> int:
        """Adds a filter whose scale gives the factor that TFLM computes from float32 numbers."""
        ratio = float_ratio(source.scale, self._quant(position).scale, over=out.scale)
        quant = Quantization((ratio * out.scale / source.scale,), (0,))
        role = "over features" if position == 1 else "over time"
        return self._add(role, data.shape, quant, np.ascontiguousarray(data))

    def _shift(self, newest: int, batch: int, memory: int, features: int) -> int:
        """Adds the state, and the operators that compute its new value from the sums `newest`.

        Returns the window: the earlier sums and the newest ones.
        """
        quant, raw = self._quant(4), self.view.input(4)
        if memory == 1:
            return newest
        old = self._add("state", (batch, memory - 1, 1, features), quant)
        window = self._add("window", (batch, memory, 1, features), quant)
        self.view.emit(OpKind.CONCATENATION, (old, newest), g.AxisAttrs(1), (window,))
        after = self._add("state/after", (batch, memory - 1, 1, features), quant)
        attrs = g.SliceAttrs((0, 1, 0, 0), (1,) * 4, (batch, memory - 1, 1, features))
        self.view.emit(OpKind.SLICE, (window,), attrs, (after,))
        self.view.network.variables.replace(raw, old, after)
        return window


def _per_tensor(raw: RawTensor) -> Quantization:
    if raw.quant is None or len(raw.quant.scales) != 1 or raw.quant.scale <= 0:
        raise UnsupportedError(
            "without one positive scale", tensor=raw.name, hint="check how it was quantised"
        )
    return raw.quant
