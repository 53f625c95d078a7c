"""Checks operators of TFLM's signal library: shapes, types, and numbers with which its kernels would fail.

TFLM checks less: its kernels read and write beyond tensors whose shapes do not fit the options.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.geometry import attributes, demand
from buildtool.graph.quantrules import QuantError, check_type
from buildtool.graph.types import DType, Graph, Op, OpKind, Tensor

GAINS = 125  # elements of PCAN's table of gains: one for each of 0, 1 and 2, and four for each power of two
MOST_POINTS = 1 << 15  # of a Fourier transform
_RADICES = (2, 3, 5)  # TFLM's kernel stops at other prime factors
_MOST_COUNT = (1 << 15) - 1  # frames that a counter of int16 holds
_MOST_BITS = 31
_I16, _I32, _U32, _U64, _F32 = DType.INT16, DType.INT32, DType.UINT32, DType.UINT64, DType.FLOAT32
_Types = tuple[tuple[DType, ...], tuple[DType, ...]]  # of the operands, of the outputs

_TYPES: dict[OpKind, _Types] = {
    OpKind.SIGNAL_WINDOW: ((_I16, _I16), (_I16,)),
    OpKind.SIGNAL_FFT_AUTO_SCALE: ((_I16,), (_I16, _I32)),
    OpKind.SIGNAL_ENERGY: ((_I16,), (_U32,)),
    OpKind.SIGNAL_FILTER_BANK: ((_U32, *[_I16] * 5), (_U64,)),
    OpKind.SIGNAL_FILTER_BANK_SQUARE_ROOT: ((_U64, _I32), (_U32,)),
    OpKind.SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION: ((_U32, _U32), (_U32, _U32, _U32)),
    OpKind.SIGNAL_PCAN: ((_U32, _U32, _I16), (_U32,)),
    OpKind.SIGNAL_FILTER_BANK_LOG: ((_U32,), (_I16,)),
    OpKind.SIGNAL_FRAMER: ((_I16, _I16), (_I16, DType.BOOL, _I16)),
    OpKind.SIGNAL_STACKER: ((_I16, _I16), (_I16, DType.BOOL, _I16)),
    OpKind.SIGNAL_DELAY: ((_I16, _I16), (_I16, _I16)),
}
# Operators whose tensors all have one of these types.
_SAME = {
    OpKind.SIGNAL_RFFT: (_I16, _I32, _F32),
    OpKind.SIGNAL_IRFFT: (_I16, _I32, _F32),
    OpKind.SIGNAL_OVERLAP_ADD: (_I16, _F32),
}
# Operands that must be constants.
_CONSTANT = {
    OpKind.SIGNAL_WINDOW: (1,),
    OpKind.SIGNAL_FILTER_BANK: (1, 2, 3, 4, 5),
    OpKind.SIGNAL_PCAN: (2,),
}


def check(graph: Graph, op: Op) -> None:
    """Raises GeometryError or QuantError unless the operator's tensors and attributes fit together."""
    inputs, outputs = ([graph.tensors[t] for t in ts] for ts in (op.inputs, op.outputs))
    if op.kind in _SAME:
        allowed, dtype = _SAME[op.kind], inputs[0].dtype
        if dtype not in allowed:
            raise QuantError(f"type {dtype}, expected {' or '.join(allowed)}", inputs[0])
        types: _Types = ((dtype,) * len(inputs), (dtype,) * len(outputs))
    else:
        types = _TYPES[op.kind]
    demand(len(outputs) == len(types[1]), f"{len(outputs)} outputs, expected {len(types[1])}")
    for tensor, dtype in zip((*inputs, *outputs), (*types[0], *types[1]), strict=True):
        check_type(tensor, dtype)
    for position in _CONSTANT.get(op.kind, ()):
        if inputs[position].data is None:
            raise QuantError(f"operand {position} must be a constant", inputs[position])
    _CHECKS[op.kind](op, [t.shape for t in inputs], [t.shape for t in outputs])
    if op.kind is OpKind.SIGNAL_FILTER_BANK:
        _check_tables(inputs)


_Shapes = list[tuple[int, ...]]


def _fit(shape: tuple[int, ...], expected: tuple[int, ...], what: str = "the output") -> None:
    demand(shape == expected, f"{what} has shape {list(shape)}, expected {list(expected)}")


def _check_window(op: Op, inputs: _Shapes, outputs: _Shapes) -> None:
    _check_bits(attributes(op, g.ShiftedAttrs).shift, "shift")
    demand(len(inputs[1]) == 1 <= len(inputs[0]), f"weights of shape {list(inputs[1])}")
    demand(inputs[0][-1] == inputs[1][0], f"{inputs[1][0]} weights for {inputs[0][-1]} samples")
    _fit(outputs[0], inputs[0])


def _check_auto_scale(_op: Op, inputs: _Shapes, outputs: _Shapes) -> None:
    demand(len(inputs[0]) == 1, f"samples of shape {list(inputs[0])}")
    _fit(outputs[0], inputs[0])
    _fit(outputs[1], (), "the number of bits")


def _check_points(op: Op) -> int:
    points = attributes(op, g.FftAttrs).points
    fits = 4 <= points <= MOST_POINTS and points % 2 == 0
    text = f"a transform of {points} points: expected an even number from 4 to {MOST_POINTS}"
    demand(fits and math.prod(radices(points)) == points // 2, f"{text}, without prime factors above 5")
    return points


def radices(points: int) -> tuple[int, ...]:
    """Returns the radices of the stages that transform `points` real samples, in KISS FFT's order.

    Prime factors above 5 are left out.
    """
    rest, found = points // 2, []
    for radix in (4, *_RADICES):
        while rest % radix == 0 and rest:
            found.append(radix)
            rest //= radix
    return tuple(found)


def _check_rfft(op: Op, inputs: _Shapes, outputs: _Shapes) -> None:
    points = _check_points(op)
    demand(len(inputs[0]) >= 1 and inputs[0][-1] <= points, f"samples of shape {list(inputs[0])}")
    _fit(outputs[0], (*inputs[0][:-1], points + 2))


def _check_irfft(op: Op, inputs: _Shapes, outputs: _Shapes) -> None:
    points = _check_points(op)
    demand(len(inputs[0]) >= 1 and inputs[0][-1] == points + 2, f"a spectrum of shape {list(inputs[0])}")
    _fit(outputs[0], (*inputs[0][:-1], points))


def _check_energy(op: Op, inputs: _Shapes, outputs: _Shapes) -> None:
    attrs = attributes(op, g.EnergyAttrs)
    demand(len(inputs[0]) == 1 and inputs[0][0] % 2 == 0, f"a spectrum of shape {list(inputs[0])}")
    bins = inputs[0][0] // 2
    _fit(outputs[0], (bins,))
    demand(0 <= attrs.first <= attrs.end <= bins, f"bins {attrs.first} to {attrs.end} of {bins}")


def _check_filter_bank(_op: Op, inputs: _Shapes, outputs: _Shapes) -> None:
    demand(all(len(shape) == 1 for shape in (*inputs, *outputs)), "tensors of one dimension are expected")
    for shape in inputs[3:]:
        _fit(shape, (outputs[0][0] + 1,), "a table of the channels")
    _fit(inputs[2], inputs[1], "the second table of weights")


def _check_tables(inputs: list[Tensor]) -> None:
    """Raises QuantError unless all channels lie in the spectrum, and their weights in the tables."""
    starts, weights, widths = (np.asarray(t.data, np.int64) for t in inputs[3:])
    if min(table.min() for table in (starts, weights, widths)) < 0:
        raise QuantError("a table of the channels has negative numbers", inputs[3])
    if (starts + widths).max() > inputs[0].elements:
        raise QuantError("a channel lies beyond the spectrum", inputs[3])
    if (weights + widths).max() > inputs[1].elements:
        raise QuantError("a channel has more weights than the tables", inputs[4])


def _check_root(_op: Op, inputs: _Shapes, outputs: _Shapes) -> None:
    demand(len(inputs[0]) == 1, f"an operand of shape {list(inputs[0])}")
    _fit(inputs[1], (), "the number of bits")
    _fit(outputs[0], inputs[0])


def _check_subtraction(op: Op, inputs: _Shapes, outputs: _Shapes) -> None:
    attrs = attributes(op, g.SubtractionAttrs)
    _check_bits(attrs.smoothing_bits, "smoothing_bits")
    _check_bits(attrs.bits, "spectral_subtraction_bits")
    demand(len(inputs[0]) == 1, f"an operand of shape {list(inputs[0])}")
    for shape in (inputs[1], *outputs):
        _fit(shape, inputs[0], "a tensor")


def _check_pcan(op: Op, inputs: _Shapes, outputs: _Shapes) -> None:
    _check_bits(attributes(op, g.ShiftedAttrs).shift, "snr_shift")
    demand(len(inputs[0]) == 1, f"an operand of shape {list(inputs[0])}")
    _fit(inputs[1], inputs[0], "the estimate of the noise")
    _fit(inputs[2], (GAINS,), "the table of gains")
    _fit(outputs[0], inputs[0])


def _check_log(op: Op, inputs: _Shapes, outputs: _Shapes) -> None:
    _check_bits(attributes(op, g.SignalLogAttrs).bits, "input_correction_bits")
    demand(len(inputs[0]) == 1, f"an operand of shape {list(inputs[0])}")
    _fit(outputs[0], inputs[0])


def _check_bits(bits: int, name: str) -> None:
    demand(0 <= bits <= _MOST_BITS, f"{name} is {bits}, expected 0 to {_MOST_BITS}")


# ---- operators with state ------------------------------------------------------------------------------


def _check_framer(op: Op, inputs: _Shapes, outputs: _Shapes) -> None:
    attrs, shape = attributes(op, g.FramerAttrs), inputs[0]
    _check_state(op, inputs, outputs)
    _fit(outputs[0], (*shape[:-1], shape[-1] // attrs.step, attrs.size))
    _fit(outputs[1], (), "the mark of valid frames")


def _check_overlap_add(op: Op, inputs: _Shapes, outputs: _Shapes) -> None:
    step, shape = attributes(op, g.OverlapAddAttrs).step, inputs[0]
    _check_state(op, inputs, outputs)
    _fit(outputs[0], (*shape[:-2], shape[-2] * step))


def _check_stacker(op: Op, inputs: _Shapes, outputs: _Shapes) -> None:
    attrs, shape = attributes(op, g.StackerAttrs), inputs[0]
    _check_state(op, inputs, outputs)
    _fit(outputs[0], ((attrs.before + 1 + attrs.after) * shape[0],))
    _fit(outputs[1], (), "the mark of valid stacks")


def _check_delay(op: Op, inputs: _Shapes, outputs: _Shapes) -> None:
    attributes(op, g.DelayAttrs)
    _check_state(op, inputs, outputs)
    _fit(outputs[0], inputs[0])


def _check_state(op: Op, inputs: _Shapes, outputs: _Shapes) -> None:
    for shape in (inputs[-1], outputs[-1]):
        _fit(shape, state_shape(op, inputs[0]), "the state")


def state_shape(op: Op, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape of the operator's state, for an operand of shape `shape`.

    The state of a framer or a stacker is the earlier samples that later invokes read again, then a counter.
    The state of a delay or an overlap-add is a row of at least one sample for each channel. Raises
    GeometryError for attributes that do not fit the operand.
    """
    _check_attributes(op.attrs, shape)
    match attrs := op.attrs:
        case g.FramerAttrs():
            return (math.prod(shape[:-1]) * kept_samples(attrs) + 1,)
        case g.StackerAttrs():
            return ((attrs.before + attrs.after) * shape[0] + 1,)
        case g.OverlapAddAttrs():
            return math.prod(shape[:-2]), shape[-1]
        case g.DelayAttrs():
            return math.prod(shape[:-1]), max(1, attrs.length)
    return shape


def _check_attributes(attrs: g.Attrs, shape: tuple[int, ...]) -> None:
    """Raises GeometryError unless the attributes of an operator with state fit an operand of this shape."""
    operand, rank = f"of an operand of shape {list(shape)}", len(shape)
    match attrs:
        case g.FramerAttrs(size, step):
            text = f"frames of {size} samples, {step} apart"
            demand(1 <= step <= size and size // step < _MOST_COUNT, text)
            demand(rank >= 1 and shape[-1] % step == 0, f"{text}, {operand}")
        case g.OverlapAddAttrs(step):
            demand(rank >= 2 and 1 <= step <= shape[-1], f"frames {step} apart, {operand}")
        case g.StackerAttrs(before, after, step):
            text, frames = f"{before} frames before and {after} after, by {step}", before + 1 + after
            demand(min(before, after) >= 0 and 1 <= step <= frames < _MOST_COUNT, text)
            demand(rank == 1, f"{text}, {operand}")
        case g.DelayAttrs(length):
            demand(length >= 0 and rank >= 1, f"a delay of {length} samples, {operand}")
        case _:
            demand(rank == 1, f"a state {operand}")


def kept_samples(attrs: g.FramerAttrs) -> int:
    """Returns the number of samples that a framer keeps of each channel.

    If the framer is not prefilled, this is a whole number of steps, as in TFLM's buffer.
    """
    return attrs.size - attrs.step if attrs.prefilled else (steps_before(attrs) - 1) * attrs.step


def steps_before(attrs: g.FramerAttrs) -> int:
    """Returns after how many steps of samples the first valid frame is complete."""
    return 1 if attrs.prefilled else -(-attrs.size // attrs.step)


_CHECKS: dict[OpKind, Callable[[Op, _Shapes, _Shapes], None]] = {
    OpKind.SIGNAL_WINDOW: _check_window,
    OpKind.SIGNAL_FFT_AUTO_SCALE: _check_auto_scale,
    OpKind.SIGNAL_RFFT: _check_rfft,
    OpKind.SIGNAL_IRFFT: _check_irfft,
    OpKind.SIGNAL_ENERGY: _check_energy,
    OpKind.SIGNAL_FILTER_BANK: _check_filter_bank,
    OpKind.SIGNAL_FILTER_BANK_SQUARE_ROOT: _check_root,
    OpKind.SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION: _check_subtraction,
    OpKind.SIGNAL_PCAN: _check_pcan,
    OpKind.SIGNAL_FILTER_BANK_LOG: _check_log,
    OpKind.SIGNAL_FRAMER: _check_framer,
    OpKind.SIGNAL_OVERLAP_ADD: _check_overlap_add,
    OpKind.SIGNAL_STACKER: _check_stacker,
    OpKind.SIGNAL_DELAY: _check_delay,
}
