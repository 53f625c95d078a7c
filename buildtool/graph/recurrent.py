"""What SVDF and UNIDIRECTIONAL_SEQUENCE_LSTM demand: shapes, types, quantisation, sums that fit 32 bits.

LiteRT's integer kernels check less than they need: what they would read past its end, or would compute with
factors that fit no int32, is refused here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from buildtool.graph.geometry import attributes, demand
from buildtool.graph.limits import MAX_TAPS
from buildtool.graph.quantrules import QuantError
from buildtool.graph.reference.recurrent import (
    GATES,
    Lstm,
    Product,
    cell_bits,
    gate_scale,
    lstm_of,
    svdf_scales,
)
from buildtool.graph.types import DType, Graph, LstmAttrs, LstmInput, Op, SvdfAttrs, Tensor

Shape = tuple[int, ...]
LEAST_CELL_BITS, MOST_CELL_BITS = 9, 15  # a tanh of 6 to 0 integer bits
_MOST = 2.0**30  # of a requantised sum, and of a factor
_HALF = 0.5  # factors of sums that may have all 32 bits
_GATED = ("INPUT_TO", "RECURRENT_TO", "CELL_TO", "BIAS", "NORM")


def _ends(graph: Graph, op: Op) -> None:
    """Demands an int8 input and output, each of one scale."""
    for tensor in (graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]):
        if tensor.dtype != DType.INT8:
            raise QuantError(f"type {tensor.dtype}: LiteRT's integer kernel takes int8 alone", tensor)
        _scaled(tensor)


def _scaled(tensor: Tensor) -> None:
    """Demands one scale for the whole tensor."""
    if tensor.quant is None:
        raise QuantError(f"{tensor.dtype} without a scale and zero point", tensor)
    if len(tensor.quant.scales) != 1:
        raise QuantError(f"{len(tensor.quant.scales)} scales, expected one for the whole tensor", tensor)
    if not tensor.quant.scale > 0:
        raise QuantError("a scale is not positive", tensor)


def _weights(tensor: Tensor, dtype: DType, shape: Shape, what: str) -> None:
    """Demands a constant of that type and shape, symmetrically quantised; int32 needs no scale."""
    if tensor.dtype != dtype or tensor.data is None:
        raise QuantError(f"{what} must be an {dtype} constant", tensor)
    demand(
        tensor.shape == shape, f"{what} '{tensor.name}': shape {list(tensor.shape)}, expected {list(shape)}"
    )
    if dtype is not DType.INT32:
        _scaled(tensor)
        _symmetric(tensor, what)


def _symmetric(tensor: Tensor, what: str) -> None:
    if tensor.quant is not None and any(tensor.quant.zero_points):
        raise QuantError(f"the zero point of {what} must be 0", tensor)


def _state(graph: Graph, op: Op, operand: int, dtype: DType, elements: int, what: str) -> None:
    """Demands a state of that type and size, and its new value among the outputs."""
    tensor = graph.tensors[op.inputs[operand]]
    if tensor.dtype != dtype or tensor.is_constant:
        raise QuantError(f"{what} must be a variable tensor of {dtype}", tensor)
    demand(
        tensor.elements == elements,
        f"{what} '{tensor.name}': {tensor.elements} elements, expected {elements}",
    )
    _scaled(tensor)


def _outputs(graph: Graph, op: Op, first: Shape, states: Sequence[int]) -> None:
    """Demands the output, and behind it the new value of each state."""
    demand(len(op.outputs) == 1 + len(states), f"{len(op.outputs)} outputs, expected {1 + len(states)}")
    shape = graph.tensors[op.outputs[0]].shape
    demand(shape == first, f"the output has shape {list(shape)}, expected {list(first)}")
    for made, operand in zip(op.outputs[1:], states, strict=True):
        old, new = graph.tensors[op.inputs[operand]], graph.tensors[made]
        demand(old.shape == new.shape and old.dtype == new.dtype, "a state that changes its shape or type")
    kept = [op.inputs[operand] for operand in states]
    demand(op.inputs[0] not in kept and len(set(kept)) == len(kept), "a state that is an operand twice")


def _factor(value: float, limit: float, what: str, tensor: Tensor) -> None:
    if not 0.0 < value < limit:
        raise QuantError(f"the factor of {what} is {value:g}: the scales are too far apart", tensor)


# ---- SVDF --------------------------------------------------------------------------------------


def svdf(graph: Graph, op: Op) -> None:
    """Raises GeometryError or QuantError unless an SVDF's tensors fit together."""
    _ends(graph, op)
    attrs = attributes(op, SvdfAttrs)
    x, feature, time = (graph.tensors[t] for t in op.inputs[:3])
    for tensor in (x, feature, time):
        demand(len(tensor.shape) == 2, f"'{tensor.name}': shape {list(tensor.shape)} must have 2 dimensions")
    (batch, inputs), (features, memory) = x.shape, time.shape
    demand(inputs <= MAX_TAPS, f"{inputs} products in a sum, more than {MAX_TAPS}")
    demand(
        attrs.rank >= 1 and features % attrs.rank == 0,
        f"{features} features do not divide into units of {attrs.rank}",
    )
    units = features // attrs.rank
    _weights(feature, DType.INT8, (features, inputs), "the weights of the features")
    _weights(time, DType.INT16, (features, memory), "the weights over time")
    if op.inputs[3] >= 0:
        _weights(graph.tensors[op.inputs[3]], DType.INT32, (units,), "the bias")
    _state(graph, op, 4, DType.INT16, batch * features * memory, "the state")
    _symmetric(graph.tensors[op.inputs[4]], "the state")
    _outputs(graph, op, (batch, units), (4,))
    first, second = svdf_scales(graph, op)
    largest = _largest(feature, x)
    _factor(first, _MOST / max(largest, 1.0), "the sums over the inputs", feature)
    _factor(second, _HALF, "the sums over time", time)


def _largest(weights: Tensor, x: Tensor) -> float:
    """The largest sum of products of a row with centred values."""
    assert weights.data is not None and x.quant is not None
    reach = 128 + abs(x.quant.zero_point)
    return reach * float(np.abs(weights.data.astype(np.int64)).sum(1).max())


# ---- LSTM --------------------------------------------------------------------------------------


def lstm(graph: Graph, op: Op) -> None:
    """Raises GeometryError or QuantError unless an LSTM's tensors fit together."""
    _ends(graph, op)
    attrs = attributes(op, LstmAttrs)
    x = graph.tensors[op.inputs[LstmInput.X]]
    demand(len(x.shape) == 3, f"shape {list(x.shape)} must have 3 dimensions")
    batch = x.shape[1 if attrs.time_major else 0]
    cells, outputs = _sizes(graph, op)
    _lstm_operands(op)
    _lstm_weights(graph, op, x.shape[2], cells, outputs)
    _state(graph, op, LstmInput.HIDDEN_STATE, DType.INT8, batch * outputs, "the state of the output")
    _state(graph, op, LstmInput.CELL_STATE, DType.INT16, batch * cells, "the cell")
    _symmetric(graph.tensors[op.inputs[LstmInput.CELL_STATE]], "the cell")
    _outputs(graph, op, (*x.shape[:2], outputs), (LstmInput.HIDDEN_STATE, LstmInput.CELL_STATE))
    if op.inputs[LstmInput.FORGET_NORM] >= 0:
        demand(len(attrs.gates) == 4, "layer normalisation needs the scales of four gates")
    if op.inputs[LstmInput.CELL_TO_OUTPUT] >= 0 and (
        outputs > cells or (outputs < cells and batch > 1 and attrs.time_major)
    ):
        text = f"peepholes with {outputs} outputs of {cells} cells: LiteRT's kernel reads beyond its rows"
        raise QuantError(text, graph.tensors[op.outputs[0]])
    _lstm_scales(graph, op, attrs)


def _sizes(graph: Graph, op: Op) -> tuple[int, int]:
    """(cells, outputs), from the weights that no LSTM lacks."""
    found = []
    for place in (LstmInput.INPUT_TO_OUTPUT, LstmInput.RECURRENT_TO_OUTPUT):
        demand(op.inputs[place] >= 0, f"{place.name.lower()} is missing")
        tensor = graph.tensors[op.inputs[place]]
        if len(tensor.shape) == 1:
            raise QuantError("diagonal weights: LiteRT's integer kernel takes none", tensor)
        demand(len(tensor.shape) == 2, f"'{tensor.name}': shape {list(tensor.shape)} must have 2 dimensions")
        found.append(tensor.shape)
    return found[0][0], found[1][1]


def _lstm_operands(op: Op) -> None:
    """Which operands have to be there, and which belong together."""
    there = {place: op.inputs[place] >= 0 for place in LstmInput}
    gates = GATES if there[LstmInput.INPUT_TO_INPUT] else GATES[1:]
    for part in ("INPUT_TO_{}", "RECURRENT_TO_{}", "{}_BIAS"):
        _all_or_none(there, [part.format(gate) for gate in gates], needed=True)
    peepholes = [f"CELL_TO_{gate}" for gate in gates if gate != "CELL"]
    norms = [f"{gate}_NORM" for gate in gates]
    _all_or_none(there, peepholes)
    _all_or_none(there, norms)
    if gates != GATES:
        for name in ("RECURRENT_TO_INPUT", "CELL_TO_INPUT", "INPUT_BIAS", "INPUT_NORM"):
            demand(not there[LstmInput[name]], f"{name.lower()} without weights of the input gate")
    demand(
        there[LstmInput.PROJECTION] or not there[LstmInput.PROJECTION_BIAS],
        "the bias of a projection that is missing",
    )


def _all_or_none(there: dict[LstmInput, bool], names: Sequence[str], *, needed: bool = False) -> None:
    absent = [name.lower() for name in names if not there[LstmInput[name]]]
    demand(not absent or (len(absent) == len(names) and not needed), f"{', '.join(absent)} is missing")


def _lstm_weights(graph: Graph, op: Op, inputs: int, cells: int, outputs: int) -> None:
    shapes: dict[str, tuple[DType, Shape]] = {
        "INPUT_TO_{}": (DType.INT8, (cells, inputs)),
        "RECURRENT_TO_{}": (DType.INT8, (cells, outputs)),
        "CELL_TO_{}": (DType.INT16, (cells,)),
        "{}_BIAS": (DType.INT32, (cells,)),
        "{}_NORM": (DType.INT16, (cells,)),
    }
    wanted = {part.format(gate): kind for part, kind in shapes.items() for gate in GATES}
    del wanted["CELL_TO_CELL"]
    wanted["PROJECTION"] = (DType.INT8, (outputs, cells))
    wanted["PROJECTION_BIAS"] = (DType.INT32, (outputs,))
    for name, (dtype, shape) in wanted.items():
        index = op.inputs[LstmInput[name]]
        if index >= 0:
            _weights(graph.tensors[index], dtype, shape, name.lower())
    has_projection = op.inputs[LstmInput.PROJECTION] >= 0
    demand(has_projection or outputs == cells, f"{outputs} outputs of {cells} cells without a projection")
    demand(max(inputs, outputs, cells) <= MAX_TAPS, f"a sum of more than {MAX_TAPS} products")


def _lstm_scales(graph: Graph, op: Op, attrs: LstmAttrs) -> None:
    """Scales that no integer could stand for, and sums that might leave 32 bits."""
    cell = graph.tensors[op.inputs[LstmInput.CELL_STATE]]
    scale, bits = _scale(cell), cell_bits(graph, op)
    if abs(np.log2(scale) + bits) >= 1e-3 or not LEAST_CELL_BITS <= bits <= MOST_CELL_BITS:
        ends = f"2^-{MOST_CELL_BITS} to 2^-{LEAST_CELL_BITS}"
        raise QuantError(f"the cell's scale {scale:g} is no power of two from {ends}", cell)
    out, hidden = graph.tensors[op.outputs[0]], attrs.hidden
    if not (hidden.scale > 0 and -128 <= hidden.zero_point <= 127):
        raise QuantError("the hidden product has no usable scale and zero point", out)
    _factor(2.0**-30 / hidden.scale, _HALF, "the hidden product", out)
    if not all(0 < scale < _MOST for scale in attrs.gates):
        raise QuantError("a gate's scale before layer normalisation is not a finite positive number", out)
    net = lstm_of(graph, op)
    for name, product, reach in _products(graph, op, net):
        real = product.factor[0] * 2.0 ** (product.factor[1] - 31)
        sums = np.abs(product.weights).sum(1) * 128 + np.abs(product.bias)
        if not real * float(sums.max()) < _MOST or float(sums.max()) >= 2.0**31:
            raise QuantError(f"sums of {name} may not fit 32 bits", reach)
    _check_peepholes(graph, op, attrs)


def _products(graph: Graph, op: Op, net: Lstm) -> list[tuple[str, Product, Tensor]]:
    """Every matrix of the operator with the tensor to name."""
    found = []
    for name, gate in zip(GATES, net.gates, strict=True):
        if gate is not None:
            for part, product in (("INPUT", gate.input), ("RECURRENT", gate.recurrent)):
                tensor = graph.tensors[op.inputs[LstmInput[f"{part}_TO_{name}"]]]
                found.append((f"{part.lower()}_to_{name.lower()}", product, tensor))
    if net.projection is not None:
        found.append(("the projection", net.projection, graph.tensors[op.inputs[LstmInput.PROJECTION]]))
    return found


def _check_peepholes(graph: Graph, op: Op, attrs: LstmAttrs) -> None:
    normalised = op.inputs[LstmInput.FORGET_NORM] >= 0
    for number, name in enumerate(GATES):
        norm = op.inputs[LstmInput[f"{name}_NORM"]]
        if norm >= 0:
            _factor(_scale(graph.tensors[norm]), 2.0**12, "the layer normalisation", graph.tensors[norm])
        peephole = op.inputs[LstmInput[f"CELL_TO_{name}"]] if name != "CELL" else -1
        if peephole >= 0:
            tensor = graph.tensors[peephole]
            real = 2.0 ** -cell_bits(graph, op) * _scale(tensor)
            _factor(real / float(gate_scale(attrs, number, normalised)), _HALF, "a peephole", tensor)


def _scale(tensor: Tensor) -> float:
    """The scale of what `_scaled` has passed."""
    assert tensor.quant is not None
    return tensor.quant.scale
