"""SVDF and UNIDIRECTIONAL_SEQUENCE_LSTM in int8 with 16-bit state, as in LiteRT's integer kernels.

SVDF applies a filter over the features of each step, then a filter over the last steps.

    state  the last `memory` sums of every feature, the newest last. A step shifts them by one, then
           newest = clamp16(requantise(sum of weights_feature * (x - input zero point)))
    y      = clamp8(requantise(bias + sum of weights_time * state over a unit's features) + zero point)

All sums are modulo 2^32. The factors are computed in float32.

LSTM: one step of one sequence. x is its input and h the state of its output. Every gate has its own weights:

    sum    = clamp16(requantise(input weights * x + input bias))
    sum    = clamp16(sum + requantise(recurrent weights * h + recurrent bias))
    sum    = clamp16(sum + requantise(peephole weight * cell))         with peepholes
    sum    = layer normalisation of the gate's sums                    with layer normalisation
    gate   = logistic(sum), of the cell gate tanh(sum)                 Q0.15; sums are Q3.12
    cell   = clamp16((forget * cell) / 2^15 + (input * cell gate) / 2^(30 + cell scale)), then clipped
    hidden = clamp8(requantise(output gate * tanh(cell)) + hidden zero point)
    h = y  = hidden, or clamp8(requantise(projection * hidden + bias) + zero point), then clipped

Without an input gate, `input` is 1 - forget. Zero points are folded into the biases. The output gate's
peephole reads the new cell. Quotients are rounded, halves away from 0. The cell's scale is a power of two.

In three points the kernel differs from what one would expect, and this module follows it. Before a
projection, the hidden zero point has the opposite sign. Peepholes reach only as many cells as there are
outputs. The activation is always tanh, whatever the operator says.

Layer normalisation subtracts the mean from a gate's sums and divides by their standard deviation:

    mean     = sum * 1024 / n                                  towards zero
    variance = (sum of squares * (2^20 / n) - mean^2) / 2^20   towards zero; the guard if it is below 1
    inverse  = 1 / sqrt(variance)                              by Newton's method
    y        = requantise(round((requantise(1024 * x - mean) * weight + bias) / 1024))
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buildtool.graph import fixedpoint
from buildtool.graph.fixedpoint import quantize_multiplier, rounding_divide_by_pot, wrap_int32
from buildtool.graph.geometry import attributes
from buildtool.graph.reference import tensors
from buildtool.graph.reference.curves import GATE_INTEGER_BITS, inverse_root, logistic, tanh
from buildtool.graph.reference.tensors import Factor, Int64, Values, quantization
from buildtool.graph.types import Graph, LstmAttrs, LstmInput, Op, SvdfAttrs

GATES = ("INPUT", "FORGET", "CELL", "OUTPUT")
GATE_SCALE = 2.0**-12  # scale of a gate's sum without layer normalisation


def svdf_scales(graph: Graph, op: Op) -> tuple[float, float]:
    """Returns the real factors of the sums over features and of the sums over time."""
    x, feature, time, _, state = op.inputs
    places = (x, feature, time, state, op.outputs[0])
    x_scale, of_feature, of_time, of_state, out = (quantization(graph, op, t).scale for t in places)
    first = tensors.float_ratio(x_scale, of_feature, over=of_state)
    return first, tensors.float_ratio(of_state, of_time, over=out)


def svdf_factors(graph: Graph, op: Op) -> tuple[Factor, Factor]:
    """Returns (multiplier, shift) of the sums over features and of the sums over time."""
    first, second = svdf_scales(graph, op)
    return quantize_multiplier(first), quantize_multiplier(second)


def svdf(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes one step of SVDF; returns the output and the new state."""
    attrs = attributes(op, SvdfAttrs)
    feature, time, state = inputs[1].astype(np.int64), inputs[2].astype(np.int64), inputs[-1]
    of_features, of_time = svdf_factors(graph, op)
    sums = tensors.centre(graph, op, 0, inputs[0]) @ feature.T
    newest = np.clip(
        fixedpoint.multiply_by_quantized_multiplier(wrap_int32(sums), *of_features), -32768, 32767
    )
    batch, (features, memory) = len(sums), time.shape
    history = np.roll(state.reshape(batch, features, memory).astype(np.int64), -1, axis=2)
    history[:, :, -1] = newest
    units = (history * time).sum(2).reshape(batch, features // attrs.rank, attrs.rank).sum(2)
    if op.inputs[3] >= 0:
        units = units + inputs[3].astype(np.int64)
    zero_point = tensors.output_quantization(graph, op).zero_point
    y = tensors.requantise(wrap_int32(units), *of_time, zero_point, (-128, 127))
    return [y.astype(np.int8), history.astype(np.int16).reshape(state.shape)]


# ---- LSTM --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Product:
    """A matrix with its bias and its factor (multiplier, shift). The bias includes the zero points."""

    weights: npt.NDArray[np.int64]  # (rows, columns)
    bias: Int64
    factor: Factor

    def times(self, x: Int64) -> Int64:
        """Multiplies the rows of `x` (batch, columns) by the matrix, and returns the requantised products."""
        sums = wrap_int32(x @ self.weights.T + self.bias)
        return fixedpoint.multiply_by_quantized_multiplier(sums, *self.factor)


@dataclass(frozen=True)
class LayerNorm:
    """The integers of a layer normalisation: the cells' weights (16 bits) and biases (32 bits).

    `factor` requantises the result. `guard` replaces a variance below 1.
    """

    weights: Int64
    bias: Int64
    factor: Factor
    guard: int


@dataclass(frozen=True)
class Gate:
    """The parameters of a gate."""

    input: Product
    recurrent: Product
    peephole: tuple[Int64, Factor] | None  # (weights, factor)
    norm: LayerNorm | None


@dataclass(frozen=True)
class Lstm:
    """An LSTM's parameters as integers. `gates` are in the order of GATES.

    If the input gate is None, its value is 1 minus the value of the forget gate.
    """

    gates: tuple[Gate | None, Gate, Gate, Gate]
    cell_bits: int  # the cell's scale is 2^-cell_bits
    cell_clip: int  # 0: no clip
    hidden_factor: Factor
    hidden_zero_point: int
    projection: Product | None
    projection_clip: int
    output_zero_point: int


def _read_scale(graph: Graph, op: Op, place: LstmInput) -> np.float32:
    return np.float32(quantization(graph, op, op.inputs[place]).scale)


def _read_constant(graph: Graph, op: Op, place: LstmInput) -> Int64 | None:
    """Returns the value of a constant operand, or None if the operator does not have this operand."""
    index = op.inputs[place]
    if index < 0:
        return None
    data = graph.tensors[index].data
    assert data is not None  # the consistency check: only x and the states are not constant
    return data.astype(np.int64)


def _make_product(weights: Int64 | None, bias: Int64 | None, zero_point: int, factor: np.float32) -> Product:
    """Returns a product. Its bias includes `zero_point` times the sum of each row of the weights."""
    assert weights is not None
    total = zero_point * weights.sum(1) + (0 if bias is None else bias)
    return Product(weights, wrap_int32(total), quantize_multiplier(float(factor)))


def cell_bits(graph: Graph, op: Op) -> int:
    """Returns n such that 2^-n is the cell's scale, rounded to a power of two."""
    return -round(math.log2(quantization(graph, op, op.inputs[LstmInput.CELL_STATE]).scale))


def gate_scale(attrs: LstmAttrs, gate: int, normalised: bool) -> np.float32:
    """Returns the scale of a gate's sum before layer normalisation."""
    return np.float32(attrs.gates[gate] if normalised else GATE_SCALE)


def _make_gate(graph: Graph, op: Op, number: int) -> Gate | None:
    name, places = GATES[number], LstmInput.__members__
    weights = places[f"INPUT_TO_{name}"]
    if op.inputs[weights] < 0:
        return None
    recurrent, norm = places[f"RECURRENT_TO_{name}"], places[f"{name}_NORM"]
    x, h = (quantization(graph, op, op.inputs[t]) for t in (LstmInput.X, LstmInput.HIDDEN_STATE))
    normalised = op.inputs[LstmInput.FORGET_NORM] >= 0
    scale = gate_scale(attributes(op, LstmAttrs), number, normalised)
    bias = _read_constant(graph, op, places[f"{name}_BIAS"])
    first = _read_scale(graph, op, weights) * np.float32(x.scale) / scale
    second = _read_scale(graph, op, recurrent) * np.float32(h.scale) / scale
    peephole = layer_norm = None
    place = places.get(f"CELL_TO_{name}")  # the cell gate does not have a peephole
    if place is not None and (cells := _read_constant(graph, op, place)) is not None:
        real = np.float32(2.0 ** -cell_bits(graph, op) * float(_read_scale(graph, op, place)) / float(scale))
        peephole = cells, quantize_multiplier(float(real))
    if (of_norm := _read_constant(graph, op, norm)) is not None and bias is not None:
        norm_scale = _read_scale(graph, op, norm)
        guard = max(1, int(np.float32(10000) * norm_scale))
        layer_norm = LayerNorm(of_norm, bias, quantize_multiplier(float(norm_scale)), guard)
    return Gate(
        _make_product(_read_constant(graph, op, weights), None if normalised else bias, -x.zero_point, first),
        _make_product(_read_constant(graph, op, recurrent), None, -h.zero_point, second),
        peephole,
        layer_norm,
    )


def lstm_of(graph: Graph, op: Op) -> Lstm:
    """Returns the integer parameters of the operator `op`."""
    attrs, out = attributes(op, LstmAttrs), tensors.output_quantization(graph, op)
    gates = [_make_gate(graph, op, number) for number in range(4)]
    assert gates[1] and gates[2] and gates[3]
    cell_scale = _read_scale(graph, op, LstmInput.CELL_STATE)
    hidden = np.float32(attrs.hidden.scale)
    projection = None
    if op.inputs[LstmInput.PROJECTION] >= 0:
        h = _read_scale(graph, op, LstmInput.HIDDEN_STATE)
        projection = _make_product(
            _read_constant(graph, op, LstmInput.PROJECTION),
            _read_constant(graph, op, LstmInput.PROJECTION_BIAS),
            attrs.hidden.zero_point,
            _read_scale(graph, op, LstmInput.PROJECTION) * hidden / h,
        )
    return Lstm(
        (gates[0], gates[1], gates[2], gates[3]),
        cell_bits(graph, op),
        _quantize_limit(attrs.cell_clip, cell_scale, 32767),
        quantize_multiplier(float(np.float32(2.0**-15 / float(hidden) * 2.0**-15))),
        attrs.hidden.zero_point if projection is None else -attrs.hidden.zero_point,
        projection,
        _quantize_limit(attrs.projection_clip, np.float32(out.scale), 127),
        quantization(graph, op, op.inputs[LstmInput.HIDDEN_STATE]).zero_point,
    )


def _quantize_limit(limit: float, scale: np.float32, most: int) -> int:
    """Returns a limit in steps of `scale`, rounded down, and at most `most`. 0 means no limit."""
    return int(min(float(np.float32(limit) / scale), most)) if limit > 0 else 0


# ---- steps -------------------------------------------------------------------------------------


def _clamp16(x: Int64) -> Int64:
    return np.asarray(np.clip(x, -32768, 32767))


def _sum_gate(gate: Gate, x: Int64, h: Int64, cell: Int64) -> Int64:
    """Returns a gate's sums before its activation (batch, cells)."""
    total = _clamp16(_clamp16(gate.input.times(x)) + gate.recurrent.times(h))
    if gate.peephole is not None:
        weights, factor = gate.peephole
        # The kernel uses the number of outputs as the number of cells, with all sequences in one row.
        flat, reached = total.reshape(-1), h.size
        products = np.tile(weights[: h.shape[1]], len(h)) * cell.reshape(-1)[:reached]
        flat[:reached] = _clamp16(
            flat[:reached] + fixedpoint.multiply_by_quantized_multiplier(products, *factor)
        )
    return total if gate.norm is None else normalise(gate.norm, total)


def _compute_step(net: Lstm, x: Int64, h: Int64, cell: Int64) -> tuple[Int64, Int64]:
    """Computes one step; returns the new state of the output and the new cell."""
    input_gate, forget_gate, cell_gate, output_gate = net.gates
    forget = logistic(_sum_gate(forget_gate, x, h, cell))
    candidate = tanh(_sum_gate(cell_gate, x, h, cell), GATE_INTEGER_BITS)
    admitted = 32767 - forget if input_gate is None else logistic(_sum_gate(input_gate, x, h, cell))
    remaining = rounding_divide_by_pot(forget * cell, 15)
    added = rounding_divide_by_pot(admitted * candidate, 30 - net.cell_bits)
    cell = _clamp16(remaining + added)
    if net.cell_clip:
        cell = np.clip(cell, -net.cell_clip, net.cell_clip)
    exposed = logistic(_sum_gate(output_gate, x, h, cell))
    squashed = tanh(cell, 15 - net.cell_bits)
    hidden = fixedpoint.multiply_by_quantized_multiplier(exposed * squashed, *net.hidden_factor)
    hidden = np.clip(hidden + net.hidden_zero_point, -128, 127)
    if net.projection is None:
        return hidden, cell
    y = np.clip(net.projection.times(hidden) + net.output_zero_point, -128, 127)
    if net.projection_clip:
        y = np.clip(y, -net.projection_clip, net.projection_clip)
    return y, cell


def lstm(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes all steps of x; returns the output, the new state of the output, and the new cell.

    As in the kernel, the sequences of a batch run together if `x` is time-major, otherwise one after the
    other.
    """
    net, time_major = lstm_of(graph, op), attributes(op, LstmAttrs).time_major
    places = [place for place in LstmInput if op.inputs[place] >= 0]
    operands = dict(zip(places, inputs, strict=True))
    x = operands[LstmInput.X].astype(np.int64)
    starts = operands[LstmInput.HIDDEN_STATE], operands[LstmInput.CELL_STATE]
    steps, batch = x.shape[:2] if time_major else x.shape[1::-1]
    h, cell = (state.astype(np.int64).reshape(batch, -1) for state in starts)
    y = np.zeros((*x.shape[:2], h.shape[1]), np.int8)
    for sequences in [slice(None)] if time_major else [slice(i, i + 1) for i in range(batch)]:
        for step in range(steps):
            part = (step, sequences) if time_major else (sequences, step)
            h[sequences], cell[sequences] = _compute_step(net, x[part], h[sequences], cell[sequences])
            y[part] = h[sequences]
    states = [new.astype(old.dtype).reshape(old.shape) for new, old in zip((h, cell), starts, strict=True)]
    return [y, *states]


def normalise(norm: LayerNorm, x: Int64) -> Int64:
    """Normalises every row of `x` (batch, cells) and clamps it to 16 bits."""
    count = x.shape[1]
    mean = fixedpoint.divide_towards_zero(x.sum(1, keepdims=True) * 1024, count)
    squares = (x * x).sum(1, keepdims=True)
    variance = fixedpoint.divide_towards_zero(squares * ((1 << 20) // count) - mean * mean, 1 << 20)
    inverse = inverse_root(np.where(variance < 1, norm.guard, variance))
    rescaled = fixedpoint.multiply_by_quantized_multiplier(1024 * x - mean, *inverse)
    weighted = wrap_int32(wrap_int32(rescaled * norm.weights) + norm.bias)
    multiplier, shift = norm.factor
    rounded = rounding_divide_by_pot(weighted, 10)
    return _clamp16(fixedpoint.multiply_by_quantized_multiplier(rounded, multiplier, shift + 12))
