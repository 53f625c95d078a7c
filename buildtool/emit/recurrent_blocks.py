"""Packs the constants of SVDF and LSTM kernels, in the layout of nn_recurrent.h.

A family whose kernels read the weights in another order passes a `Layout` of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buildtool.emit.blocks import align, quantization, words
from buildtool.graph.fixedpoint import reduce_multiplier
from buildtool.graph.reference import wide
from buildtool.graph.reference.lstm16 import wide_lstm_of
from buildtool.graph.reference.recurrent import Gate, Lstm, lstm_of, svdf_factors
from buildtool.graph.reference.tensors import Factor
from buildtool.graph.types import Graph, Op

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """How a family packs a matrix of int8 (rows, columns).

    `matrix` returns its bytes. `general` returns whether it needs the kernel's slower path, if there is one.
    """

    matrix: Callable[[Ints], bytes]
    general: Callable[[Ints], bool]


def _pack_array(values: Ints, dtype: str) -> bytes:
    return align(np.ascontiguousarray(values.astype(dtype)).tobytes())


# The rows of the matrix, one after the other.
PLAIN = Layout(lambda weights: _pack_array(weights, "i1"), lambda weights: False)


def _data(graph: Graph, tensor: int) -> Ints:
    data = graph.tensors[tensor].data
    assert data is not None
    return data.astype(np.int64)


def svdf_block(graph: Graph, op: Op, layout: Layout = PLAIN) -> bytes:
    """Packs nn_svdf_constants and the arrays that follow it."""
    x, feature, time, bias, _ = op.inputs
    (of_features, of_time), weights = svdf_factors(graph, op), _data(graph, feature)
    units = graph.tensors[op.outputs[0]].shape[1]
    zero_point = quantization(graph, op, op.outputs[0]).zero_point
    head = words(*of_features, *of_time, zero_point, int(layout.general(weights)), 0, 0)
    offsets = -quantization(graph, op, x).zero_point * weights.sum(1)
    biases = _data(graph, bias) if bias >= 0 else np.zeros(units, np.int64)
    arrays = _pack_array(offsets, "<i4") + _pack_array(biases, "<i4") + _pack_array(_data(graph, time), "<i2")
    return head + arrays + align(layout.matrix(weights))


def _gate_words(gate: Gate | None) -> bytes:
    if gate is None:
        return words(*[0] * 9)
    peephole = (0, 0) if gate.peephole is None else gate.peephole[1]
    norm = (0, 0, 0)
    if gate.norm is not None:
        multiplier, shift = gate.norm.factor
        norm = (multiplier, shift + 12, gate.norm.guard)
    return words(*gate.input.factor, *gate.recurrent.factor, *peephole, *norm)


def _head(net: Lstm, gates: list[Gate], general: bool) -> bytes:
    projection = (0, 0) if net.projection is None else net.projection.factor
    return words(
        *(net.cell_bits, net.cell_clip),
        *(*net.hidden_factor, net.hidden_zero_point),
        *(*projection, net.projection_clip, net.output_zero_point),
        *(int(general), 0, 0),
    ) + b"".join(_gate_words(gate) for gate in [*gates, None][:4])


def _peepholes(gates: list[Gate], cells: int, reached: int) -> Ints:
    """Returns the peephole weights (gates, cells). They are 0 from cell `reached` on, where the reference
    reads none.
    """
    rows = np.zeros((len(gates), cells), np.int64)
    for row, gate in zip(rows, gates, strict=True):
        if gate.peephole is not None:
            row[:reached] = gate.peephole[0][:reached]
    return rows


def wide_lstm_block(graph: Graph, op: Op) -> bytes:
    """Packs, for int16 activations, nn_wide_lstm_constants and the arrays that follow it."""
    net = wide_lstm_of(graph, op)

    def right(factor: Factor) -> tuple[int, int]:
        multiplier, shift = factor
        return int(reduce_multiplier(np.asarray(multiplier, np.int64))), 15 - shift

    gates = [(*right(gate.input_factor), *right(gate.recurrent_factor)) for gate in net.gates]
    head = words(*(word for gate in gates for word in gate))
    head += words(*net.forget_factor, *net.admitted_factor, *net.hidden_factor, net.cell_clip, 0)
    head += sigmoid_words(net.cell_scale) + words(0, 0)
    arrays = [(gate.bias, gate.input, gate.recurrent) for gate in net.gates]
    biases, first, second = (np.stack(each, axis=1) for each in zip(*arrays, strict=True))
    return head + _pack_array(biases, "<i8") + _pack_array(first, "i1") + _pack_array(second, "i1")


def sigmoid_words(scale: float) -> bytes:
    """Packs nn_sigmoid_constants for values with the scale `scale`."""
    table = wide.sigmoid_table()[: wide.SIGMOID_STEPS].astype("<u2")
    return words(*wide.sigmoid_factor(scale)) + table.tobytes()


def lstm_block(graph: Graph, op: Op, layout: Layout = PLAIN) -> bytes:
    """Packs nn_lstm_constants and the arrays that follow it."""
    net = lstm_of(graph, op)
    gates = [gate for gate in net.gates if gate is not None]
    cells, outputs = gates[0].recurrent.weights.shape

    def side_by_side(rows: list[Ints]) -> Ints:
        """Returns the gates' arrays interleaved: for each cell, the rows of all gates."""
        return np.stack(rows, axis=1).reshape(cells * len(gates), *rows[0].shape[1:])

    matrices = [side_by_side([gate.input.weights for gate in gates])]
    matrices.append(side_by_side([gate.recurrent.weights for gate in gates]))
    if net.projection is not None:
        matrices.append(net.projection.weights)
    parts = [
        _head(net, gates, any(map(layout.general, matrices))),
        _pack_array(side_by_side([gate.input.bias for gate in gates]), "<i4"),
        _pack_array(side_by_side([gate.recurrent.bias for gate in gates]), "<i4"),
    ]
    norms = [gate.norm for gate in gates if gate.norm is not None]
    if norms:
        parts.append(_pack_array(np.stack([norm.bias for norm in norms]), "<i4"))
        parts.append(_pack_array(np.stack([norm.weights for norm in norms]), "<i2"))
    if gates[-1].peephole is not None:
        parts.append(_pack_array(_peepholes(gates, cells, min(cells, outputs)), "<i2"))
    packed = [align(layout.matrix(weights)) for weights in matrices]
    parts += packed[:2]
    if net.projection is not None:
        parts += [_pack_array(net.projection.bias, "<i4"), packed[2]]
    return b"".join(parts)
