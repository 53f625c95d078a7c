"""Random operators of TFLM's signal library, each with network inputs of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from buildtool.graph import types as g
from buildtool.graph.ops import STATEFUL
from buildtool.graph.signal import GAINS, state_shape
from buildtool.graph.types import Attrs, DType, Op, OpKind
from buildtool.zoo.drawn import NetBuilder

POINTS = (4, 12, 16, 20, 30, 32, 64, 90, 100, 128, 256, 320, 512, 1024, 2048)  # of Fourier transforms
_Shape = tuple[int, ...]


def add_signal(net: NetBuilder, kind: OpKind) -> tuple[int, ...]:
    """Adds an operator with random attributes. Returns its outputs without the new value of a state."""
    return _Drawing(net, kind).add()


def emit_signal(
    net: NetBuilder, kind: OpKind, inputs: Sequence[int], attrs: Attrs, *results: tuple[_Shape, DType]
) -> tuple[int, ...]:
    """Adds an operator, and a state if its kind has one. Returns its outputs without the state's new value.

    `results` are the shape and type of each of these outputs.
    """
    outputs = tuple(net.tensor(shape, None, dtype) for shape, dtype in results)
    after: tuple[int, ...] = ()
    if kind in STATEFUL:
        shape, dtype = (
            state_shape(Op(kind, (), (), attrs), net.shape(inputs[0])),
            net.tensors[inputs[0]].dtype,
        )
        before = net.state(shape, None, np.zeros(shape, dtype.value), dtype)
        after = (net.tensor(shape, None, dtype),)
        net.keep(before, after[0])
        inputs = [*inputs, before]
    net.ops.append(Op(kind, tuple(inputs), outputs + after, attrs, len(net.ops)))
    return outputs


class _Drawing:
    def __init__(self, net: NetBuilder, kind: OpKind) -> None:
        self._net, self._kind = net, kind

    def _number(self, low: int, high: int) -> int:
        """Draws a number from `low` to `high`, both inclusive."""
        return int(self._net.rng.integers(low, high + 1))

    def _input(self, shape: _Shape, dtype: DType = DType.INT16) -> int:
        return self._net.feed(shape, None, dtype)

    def _constant(self, values: npt.ArrayLike) -> int:
        array = np.asarray(values, np.int16)
        return self._net.tensor(array.shape, None, DType.INT16, array)

    def _random(self, count: int) -> int:
        return self._constant(self._net.rng.integers(-32768, 32768, count))

    def _emit(self, inputs: list[int], attrs: Attrs, *results: tuple[_Shape, DType]) -> tuple[int, ...]:
        return emit_signal(self._net, self._kind, inputs, attrs, *results)

    def _outer(self) -> _Shape:
        return ((), (1,), (3,), (2, 2))[self._number(0, 3)]

    def add(self) -> tuple[int, ...]:
        """Adds the operator; returns its outputs."""
        add: dict[OpKind, Callable[[], tuple[int, ...]]] = {
            OpKind.SIGNAL_WINDOW: self._window,
            OpKind.SIGNAL_FFT_AUTO_SCALE: self._auto_scale,
            OpKind.SIGNAL_RFFT: self._fft,
            OpKind.SIGNAL_IRFFT: self._fft,
            OpKind.SIGNAL_ENERGY: self._energy,
            OpKind.SIGNAL_FILTER_BANK: self._filter_bank,
            OpKind.SIGNAL_FILTER_BANK_SQUARE_ROOT: self._root,
            OpKind.SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION: self._subtraction,
            OpKind.SIGNAL_PCAN: self._pcan,
            OpKind.SIGNAL_FILTER_BANK_LOG: self._log,
            OpKind.SIGNAL_FRAMER: self._framer,
            OpKind.SIGNAL_OVERLAP_ADD: self._overlap,
            OpKind.SIGNAL_STACKER: self._stacker,
            OpKind.SIGNAL_DELAY: self._delay,
        }
        return add[self._kind]()

    def _window(self) -> tuple[int, ...]:
        shape = (*self._outer(), self._number(1, 60))
        weights = self._random(shape[-1])
        attrs = g.ShiftedAttrs(self._number(0, 18))
        return self._emit([self._input(shape), weights], attrs, (shape, DType.INT16))

    def _auto_scale(self) -> tuple[int, ...]:
        shape = (self._number(1, 90),)
        return self._emit([self._input(shape)], Attrs(), (shape, DType.INT16), ((), DType.INT32))

    def _fft(self) -> tuple[int, ...]:
        points, outer = POINTS[self._number(0, len(POINTS) - 1)], self._outer()[:1]
        dtype = (DType.INT16, DType.INT32, DType.FLOAT32)[self._number(0, 2)]
        inverse = self._kind is OpKind.SIGNAL_IRFFT
        samples = (*outer, points + 2 if inverse else self._number(max(1, points // 2), points))
        result = (*outer, points if inverse else points + 2)
        return self._emit([self._input(samples, dtype)], g.FftAttrs(points), (result, dtype))

    def _energy(self) -> tuple[int, ...]:
        bins = self._number(1, 70)
        first, end = sorted((self._number(0, bins), self._number(0, bins)))
        spectrum = self._input((2 * bins,))
        return self._emit([spectrum], g.EnergyAttrs(first, end), ((bins,), DType.UINT32))

    def _filter_bank(self) -> tuple[int, ...]:
        bins, weights, channels = self._number(8, 90), self._number(8, 90), self._number(1, 20)
        widths = self._net.rng.integers(0, 9, channels + 1)
        starts, firsts = (self._net.rng.integers(0, most - widths + 1) for most in (bins, weights))
        tables = [self._constant(table) for table in (starts, firsts, widths)]
        inputs = [self._input((bins,), DType.UINT32), self._random(weights), self._random(weights), *tables]
        return self._emit(inputs, Attrs(), ((channels,), DType.UINT64))

    def _root(self) -> tuple[int, ...]:
        shape = (self._number(1, 50),)
        inputs = [self._input(shape, DType.UINT64), self._input((), DType.INT32)]
        return self._emit(inputs, Attrs(), (shape, DType.UINT32))

    def _subtraction(self) -> tuple[int, ...]:
        shape, bits = (self._number(1, 50),), self._number(8, 16)
        whole = 1 << bits
        even, odd, least = (self._number(0, whole) for _ in range(3))
        attrs = g.SubtractionAttrs(
            even, whole - even, odd, whole - odd, least, self._number(0, 12), bits, bool(self._number(0, 1))
        )
        result = (shape, DType.UINT32)
        return self._emit([self._input(shape, DType.UINT32)], attrs, result, result)

    def _pcan(self) -> tuple[int, ...]:
        shape = (self._number(1, 50),)
        inputs = [self._input(shape, DType.UINT32), self._input(shape, DType.UINT32), self._random(GAINS)]
        return self._emit(inputs, g.ShiftedAttrs(self._number(0, 20)), (shape, DType.UINT32))

    def _log(self) -> tuple[int, ...]:
        shape = (self._number(1, 50),)
        attrs = g.SignalLogAttrs(self._number(1, 3000), self._number(0, 10))
        return self._emit([self._input(shape, DType.UINT32)], attrs, (shape, DType.INT16))

    def _framer(self) -> tuple[int, ...]:
        step, outer, frames = self._number(1, 20), self._outer(), self._number(1, 3)
        size = self._number(step, 4 * step)
        attrs = g.FramerAttrs(size, step, bool(self._number(0, 1)))
        source = self._input((*outer, frames * step))
        return self._emit([source], attrs, ((*outer, frames, size), DType.INT16), ((), DType.BOOL))

    def _overlap(self) -> tuple[int, ...]:
        size, outer, frames = self._number(1, 30), self._outer(), self._number(1, 3)
        step = self._number(1, size)
        dtype = (DType.INT16, DType.FLOAT32)[self._number(0, 1)]
        source = self._input((*outer, frames, size), dtype)
        return self._emit([source], g.OverlapAddAttrs(step), ((*outer, frames * step), dtype))

    def _stacker(self) -> tuple[int, ...]:
        before, after, channels = self._number(0, 3), self._number(0, 3), self._number(1, 20)
        frames = before + 1 + after
        attrs = g.StackerAttrs(before, after, self._number(1, frames))
        result = (channels * frames,), DType.INT16
        return self._emit([self._input((channels,))], attrs, result, ((), DType.BOOL))

    def _delay(self) -> tuple[int, ...]:
        shape = (*self._outer(), self._number(1, 20))
        attrs = g.DelayAttrs(self._number(0, 3 * math.prod(shape[-1:])))
        return self._emit([self._input(shape)], attrs, (shape, DType.INT16))
