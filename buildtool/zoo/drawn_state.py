"""Random operators with state: SVDF and LSTM with random weights, biases and quantisations.

    net = NetBuilder(seed)
    y = lstm(net, net.input((1, 4, 10)), 12, peepholes=True)

Scales are such that gates do not always idle or saturate, and outputs use most of their range.
"""

from __future__ import annotations

import math

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.types import Attrs, DType, Op, OpKind
from buildtool.zoo.drawn import NetBuilder, WideNetBuilder, quant

_SPREAD = 74 * 74  # standard deviation of a product of two uniform int8
_WIDE = 18900  # standard deviation of a uniform int16
_GATE = 1 / 4096  # the scale of a gate's sum


def _draw_constant(net: NetBuilder, shape: tuple[int, ...], dtype: DType, scale: float, most: int) -> int:
    """Adds a constant of uniform random values from -most to most."""
    data = net.rng.integers(-most, most + 1, shape).astype(dtype.value)
    return net.tensor(shape, quant(scale), dtype, data)


def _add(net: NetBuilder, kind: OpKind, operands: list[int], states: list[int], y: int, attrs: Attrs) -> int:
    """Adds the operator, whose outputs are `y` and the new values of its states. Returns `y`."""
    new_values = []
    for before in states:
        tensor = net.tensors[before]
        new_values.append(net.tensor(tensor.shape, tensor.quant, tensor.dtype))
        zero = tensor.quant.zero_point if tensor.quant and tensor.dtype is DType.INT8 else 0
        initial = np.full(tensor.shape, zero, tensor.dtype.value)
        net.states.append(g.State(before, new_values[-1], initial, tensor.name))
    net.ops.append(Op(kind, tuple(operands), (y, *new_values), attrs, len(net.ops)))
    return y


def svdf(net: NetBuilder, x: int, units: int, *, rank: int = 1, memory: int = 8, bias: bool = True) -> int:
    """Adds an SVDF of a tensor (batch, inputs)."""
    batch, inputs = net.shape(x)
    features, rng = units * rank, net.rng
    first = float(np.exp(rng.uniform(-6, -3)))
    feature = _draw_constant(net, (features, inputs), DType.INT8, first, 127)
    step = net.scale(x) * first * _SPREAD * math.sqrt(inputs) / float(np.exp(rng.uniform(7, 11)))
    time_scale = float(np.exp(rng.uniform(-8, -5)))
    time = _draw_constant(net, (features, memory), DType.INT16, time_scale, 32767)
    state = net.tensor((batch, features * memory), quant(step), DType.INT16)
    deviation = net.scale(x) * first * _SPREAD * math.sqrt(inputs) / step  # of the state, in steps
    spread = min(deviation, float(_WIDE)) * _WIDE * math.sqrt(memory * rank)
    most = int(min(spread, 2.0**30))
    biases = _draw_constant(net, (units,), DType.INT32, step * time_scale, most) if bias else -1
    out = net.tensor(
        (batch, units), net.random_quant(spread * step * time_scale / float(2 ** rng.uniform(4, 7)))
    )
    return _add(net, OpKind.SVDF, [x, feature, time, biases, state], [state], out, g.SvdfAttrs(rank))


def lstm(
    net: NetBuilder,
    x: int,
    cells: int,
    *,
    outputs: int = 0,
    time_major: bool = False,
    input_gate: bool = True,
    peepholes: bool = False,
    normed: bool = False,
    cell_bits: int = 11,
    clipped: bool = False,
) -> int:
    """Adds a UNIDIRECTIONAL_SEQUENCE_LSTM that reads `x`, a tensor of three dimensions. Returns its output.

    `outputs`: the size of the projection; 0 for none.
    `time_major`: whether the first dimension of `x` counts steps, and not the sequences of a batch.
    `input_gate`: whether it has a gate of its own for inputs. Otherwise this gate is 1 - the forget gate.
    `normed`: whether it has layer normalisation.
    `cell_bits`: the scale of the cell is 2^-cell_bits.
    `clipped`: whether cells and projections are clipped.
    If `x` is int16, all optional parts must be left out.
    """
    first, second, inputs = net.shape(x)
    batch, width = (second if time_major else first), outputs or cells
    rng, dtype = net.rng, net.tensors[x].dtype
    steps = 128 if dtype is DType.INT8 else 32768
    hidden = net.random_quant(float(np.exp(rng.uniform(-1, 0.3))) / steps)
    out = net.random_quant(float(np.exp(rng.uniform(-5.5, -3.5)))) if outputs else hidden
    operands = [-1] * len(g.LstmInput)
    operands[g.LstmInput.X] = x
    for gate in ("INPUT", "FORGET", "CELL", "OUTPUT")[0 if input_gate else 1 :]:
        tensors = _draw_gate(
            net, gate, (cells, inputs, width), (net.scale(x), out.scale), cell_bits, normed, peepholes
        )
        for name, tensor in tensors.items():
            operands[g.LstmInput[name]] = tensor
    if outputs:
        scale = out.scale * 60 / (hidden.scale * _SPREAD * math.sqrt(cells))
        operands[g.LstmInput.PROJECTION] = _draw_constant(net, (outputs, cells), DType.INT8, scale, 127)
        if rng.integers(2):
            bias = _draw_constant(net, (outputs,), DType.INT32, scale * hidden.scale, 3000)
            operands[g.LstmInput.PROJECTION_BIAS] = bias
    states = [
        net.tensor((batch, width), out, dtype),
        net.tensor((batch, cells), quant(2.0**-cell_bits), DType.INT16),
    ]
    operands[g.LstmInput.HIDDEN_STATE], operands[g.LstmInput.CELL_STATE] = states
    clips = (float(np.float32(rng.uniform(0.2, 3))), float(np.float32(out.scale * rng.uniform(1, 150))))
    attrs = g.LstmAttrs(
        hidden,
        tuple(quant(_GATE * float(np.exp(rng.uniform(-1, 1)))).scale for _ in range(4)) if normed else (),
        time_major,
        *(clips if clipped else (0.0, 0.0)),
    )
    y = net.tensor((first, second, width), out, dtype)
    return _add(net, OpKind.UNIDIRECTIONAL_SEQUENCE_LSTM, operands, states, y, attrs)


def _draw_gate(
    net: NetBuilder,
    gate: str,
    sizes: tuple[int, int, int],
    scales: tuple[float, float],
    cell_bits: int,
    normed: bool,
    peepholes: bool,
) -> dict[str, int]:
    """Draws the constants of an LSTM's gate, and returns their tensors by operand name (see `LstmInput`).

    `gate`: INPUT, FORGET, CELL or OUTPUT. `sizes`: the numbers of cells, inputs and outputs. `scales`: those
    of the LSTM's input and output. The other arguments are those of `lstm`.
    """
    cells, *columns = sizes
    tensors, wide = {}, isinstance(net, WideNetBuilder)
    spread = _SPREAD * (_WIDE / 74 if wide else 1)
    reach = 2000 * _GATE * float(np.exp(net.rng.uniform(0, 2)))
    for part, count, scale in zip(("INPUT", "RECURRENT"), columns, scales, strict=True):
        weight_scale = reach / (scale * spread * math.sqrt(count))
        tensors[f"{part}_TO_{gate}"] = _draw_constant(net, (cells, count), DType.INT8, weight_scale, 127)
    if peepholes and gate != "CELL":
        weight_scale = 2.0**cell_bits * reach / (15000.0 * 8000.0)
        tensors[f"CELL_TO_{gate}"] = _draw_constant(net, (cells,), DType.INT16, weight_scale, 32767)
    most, bias = (1 << 22 if normed or wide else 20000), DType.INT64 if wide else DType.INT32
    tensors[f"{gate}_BIAS"] = _draw_constant(net, (cells,), bias, 1e-4, most)
    if normed:
        weight_scale = 4e-5 * float(np.exp(net.rng.uniform(-1, 1)))
        tensors[f"{gate}_NORM"] = _draw_constant(net, (cells,), DType.INT16, weight_scale, 32767)
    return tensors
