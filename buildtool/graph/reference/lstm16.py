"""UNIDIRECTIONAL_SEQUENCE_LSTM of int16, as TensorFlow Lite Micro computes it; LiteRT has no such kernel.

One step of one sequence; x is its input and h its last output. Every gate has its own weights:

    sum    = clamp16(clamp16(input weights * x + bias) + clamp16(recurrent weights * h))      Q3.12
    gate   = logistic(sum), of the cell gate tanh(sum)                                       Q0.15
    cell   = clamp16(clamp16(forget * cell) + clamp16(input * cell gate)), then clipped
    h = y  = clamp16(tanh(cell) * output gate)

Sums have 64 bits and are requantised as those of a convolution of int16. Products of two values have 32 bits
and two roundings, as in MUL. The functions interpolate in the table of LOGISTIC and TANH of int16.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buildtool.graph import fixedpoint
from buildtool.graph.fixedpoint import quantize_multiplier
from buildtool.graph.geometry import attributes
from buildtool.graph.reference.recurrent import GATE_SCALE, GATES, cell_bits
from buildtool.graph.reference.tensors import Factor, Int64, Values, quantization
from buildtool.graph.reference.wide import logistic_of, tanh_of
from buildtool.graph.types import Graph, LstmAttrs, LstmInput, Op

_Q15 = 2.0**-15


@dataclass(frozen=True)
class WideGate:
    """A gate's weights (cells, columns), its bias, and the factors (multiplier, shift) of both products."""

    input: npt.NDArray[np.int64]
    bias: Int64
    input_factor: Factor
    recurrent: npt.NDArray[np.int64]
    recurrent_factor: Factor

    def total(self, x: Int64, h: Int64) -> Int64:
        """Returns the gate's sums (batch, cells)."""
        first = fixedpoint.multiply_wide(x @ self.input.T + self.bias, *self.input_factor)
        second = fixedpoint.multiply_wide(h @ self.recurrent.T, *self.recurrent_factor)
        return _clamp16(_clamp16(first) + _clamp16(second))


@dataclass(frozen=True)
class WideLstm:
    """An LSTM's parameters as integers; the gates are in the order of GATES."""

    gates: tuple[WideGate, ...]
    cell_scale: float  # a power of two
    cell_clip: int  # 0: no clip
    forget_factor: Factor
    admitted_factor: Factor
    hidden_factor: Factor


def wide_lstm_of(graph: Graph, op: Op) -> WideLstm:
    """Returns the integer parameters of the operator `op`."""

    def constant(name: str) -> Int64:
        data = graph.tensors[op.inputs[LstmInput[name]]].data
        assert data is not None  # the consistency check
        return data.astype(np.int64)

    def factor(source: LstmInput, weights: str) -> Factor:
        scales = (quantization(graph, op, op.inputs[t]).scale for t in (source, LstmInput[weights]))
        return quantize_multiplier(float(np.prod(np.array([*scales], np.float32))) / GATE_SCALE)

    gates = tuple(
        WideGate(
            constant(f"INPUT_TO_{name}"),
            constant(f"{name}_BIAS"),
            factor(LstmInput.X, f"INPUT_TO_{name}"),
            constant(f"RECURRENT_TO_{name}"),
            factor(LstmInput.HIDDEN_STATE, f"RECURRENT_TO_{name}"),
        )
        for name in GATES
    )
    cell = quantization(graph, op, op.inputs[LstmInput.CELL_STATE]).scale
    hidden, clip = quantization(graph, op, op.inputs[LstmInput.HIDDEN_STATE]).scale, _clip(graph, op)
    products = (_Q15, _Q15 * _Q15 / cell, _Q15 * _Q15 / hidden)
    return WideLstm(gates, 2.0 ** -cell_bits(graph, op), clip, *map(quantize_multiplier, products))


def _clip(graph: Graph, op: Op) -> int:
    """Returns the limit of a cell in steps of its scale, rounded down. 0 means no limit."""
    limit = float(np.float32(attributes(op, LstmAttrs).cell_clip))
    return int(min(limit / quantization(graph, op, op.inputs[LstmInput.CELL_STATE]).scale, 32767.0))


def _clamp16(x: Int64) -> Int64:
    return np.asarray(np.clip(x, -32768, 32767))


def _product(a: Int64, b: Int64, factor: Factor) -> Int64:
    return _clamp16(fixedpoint.multiply_by_quantized_multiplier(a * b, *factor))


def _step(net: WideLstm, x: Int64, h: Int64, cell: Int64) -> tuple[Int64, Int64]:
    """Computes one step; returns the new output and the new cell."""
    sums = [gate.total(x, h) for gate in net.gates]
    admitted, forget, exposed = (logistic_of(sums[i], GATE_SCALE) for i in (0, 1, 3))
    added = _product(admitted, tanh_of(sums[2], GATE_SCALE), net.admitted_factor)
    cell = _clamp16(_product(forget, cell, net.forget_factor) + added)
    if net.cell_clip:
        cell = np.clip(cell, -net.cell_clip, net.cell_clip)
    return _product(tanh_of(cell, net.cell_scale), exposed, net.hidden_factor), cell


def lstm(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes all steps of x; returns the output, the new state of the output, and the new cell."""
    net, time_major = wide_lstm_of(graph, op), attributes(op, LstmAttrs).time_major
    places = [place for place in LstmInput if op.inputs[place] >= 0]
    operands = dict(zip(places, inputs, strict=True))
    x = operands[LstmInput.X].astype(np.int64)
    starts = operands[LstmInput.HIDDEN_STATE], operands[LstmInput.CELL_STATE]
    steps = x if time_major else x.swapaxes(0, 1)
    h, cell = (state.astype(np.int64).reshape(steps.shape[1], -1) for state in starts)
    outputs = []
    for step in steps:
        h, cell = _step(net, step, h, cell)
        outputs.append(h)
    y = np.array(outputs).astype(np.int16)
    y = np.ascontiguousarray(y if time_major else y.swapaxes(0, 1))
    return [y, *(new.astype(np.int16).reshape(old.shape) for new, old in zip((h, cell), starts, strict=True))]
