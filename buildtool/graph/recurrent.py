"""Checks SVDF and UNIDIRECTIONAL_SEQUENCE_LSTM: shapes, types, quantisation, sums that fit 32 bits.

LiteRT's integer kernels check too little. So this file also refuses tensors that are shorter than what the
kernels read, and factors that do not fit int32.
"""

from collections.abc import Sequence

import numpy as np

from buildtool.base.errors import UnsupportedError
from buildtool.graph.geometry import attributes, demand
from buildtool.graph.limits import MAX_TAPS
from buildtool.graph.quantrules import QuantError
from buildtool.graph.reference import recurrent as reference
from buildtool.graph.reference.lstm16 import wide_lstm_of
from buildtool.graph.reference.recurrent import GATES, Product, cell_bits, gate_scale
from buildtool.graph.types import DType, Graph, LstmAttrs, LstmInput, Op, SvdfAttrs, Tensor

Shape = tuple[int, ...]
LEAST_CELL_BITS, MOST_CELL_BITS = 9, 15  # fractional bits; the tanh's input has 6 to 0 integer bits
_MOST = 2.0**30  # limit of a requantised sum, and of a factor
_MOST_WIDE = 2.0**46  # limit of a sum of int16
_HALF = 0.5  # limit of a factor for sums that may use all 32 bits


def _check_ends(graph: Graph, op: Op, dtype: DType = DType.INT8) -> None:
    """Demands an input and an output of type `dtype`, each with one scale."""
    for tensor in (graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]):
        if tensor.dtype != dtype:
            raise QuantError(f"type {tensor.dtype}: the kernel takes only {dtype}", tensor)
        _check_one_scale(tensor)
        if dtype is DType.INT16:
            _check_symmetric(tensor, "int16")


def _check_one_scale(tensor: Tensor) -> None:
    """Demands one scale for the whole tensor."""
    if tensor.quant is None:
        raise QuantError(f"{tensor.dtype} without a scale and zero point", tensor)
    if len(tensor.quant.scales) != 1:
        raise QuantError(f"{len(tensor.quant.scales)} scales, expected one for the whole tensor", tensor)
    if not tensor.quant.scale > 0:
        raise QuantError("a scale is not positive", tensor)


def _check_weights(tensor: Tensor, dtype: DType, shape: Shape, what: str) -> None:
    """Demands a symmetrically quantised constant of type `dtype` and shape `shape`.

    An int32 constant needs no scale. `what` names the tensor in the error.
    """
    if tensor.dtype != dtype or tensor.data is None:
        raise QuantError(f"{what} must be an {dtype} constant", tensor)
    text = f"{what} '{tensor.name}': shape {list(tensor.shape)}, expected {list(shape)}"
    demand(tensor.shape == shape, text)
    if dtype not in (DType.INT32, DType.INT64):
        _check_one_scale(tensor)
        _check_symmetric(tensor, what)


def _check_symmetric(tensor: Tensor, what: str) -> None:
    if tensor.quant is not None and any(tensor.quant.zero_points):
        raise QuantError(f"the zero point of {what} must be 0", tensor)


def _check_state(graph: Graph, op: Op, operand: int, dtype: DType, elements: int, what: str) -> None:
    """Demands that an operand is a state of type `dtype` with `elements` elements.

    An int16 state must be symmetrically quantised.
    """
    tensor = graph.tensors[op.inputs[operand]]
    if tensor.dtype != dtype or tensor.is_constant:
        raise QuantError(f"{what} must be a variable tensor of {dtype}", tensor)
    text = f"{what} '{tensor.name}': {tensor.elements} elements, expected {elements}"
    demand(tensor.elements == elements, text)
    _check_one_scale(tensor)
    if dtype is DType.INT16:
        _check_symmetric(tensor, what)


def _check_outputs(graph: Graph, op: Op, first: Shape, states: Sequence[int]) -> None:
    """Demands a first output of shape `first`, and one more output for the new value of each state."""
    demand(len(op.outputs) == 1 + len(states), f"{len(op.outputs)} outputs, expected {1 + len(states)}")
    shape = graph.tensors[op.outputs[0]].shape
    demand(shape == first, f"the output has shape {list(shape)}, expected {list(first)}")
    for output, operand in zip(op.outputs[1:], states, strict=True):
        old, new = graph.tensors[op.inputs[operand]], graph.tensors[output]
        demand(old.shape == new.shape and old.dtype == new.dtype, "a state that changes its shape or type")
    tensors = [op.inputs[operand] for operand in states]
    distinct = op.inputs[0] not in tensors and len(set(tensors)) == len(tensors)
    demand(distinct, "a state that is an operand twice")


def _check_factor(value: float, limit: float, what: str, tensor: Tensor) -> None:
    if not 0.0 < value < limit:
        raise QuantError(f"the factor of {what} is {value:g}: the scales are too far apart", tensor)


# ---- SVDF --------------------------------------------------------------------------------------


def svdf(graph: Graph, op: Op) -> None:
    """Raises GeometryError or QuantError unless an SVDF's tensors fit together."""
    _check_ends(graph, op)
    attrs = attributes(op, SvdfAttrs)
    x, feature, time = (graph.tensors[t] for t in op.inputs[:3])
    for tensor in (x, feature, time):
        demand(len(tensor.shape) == 2, f"'{tensor.name}': shape {list(tensor.shape)} must have 2 dimensions")
    (batch, inputs), (features, memory) = x.shape, time.shape
    demand(inputs <= MAX_TAPS, f"{inputs} products in a sum, more than {MAX_TAPS}")
    divides = attrs.rank >= 1 and features % attrs.rank == 0
    demand(divides, f"{features} features do not divide into units of {attrs.rank}")
    units = features // attrs.rank
    _check_weights(feature, DType.INT8, (features, inputs), "the weights of the features")
    _check_weights(time, DType.INT16, (features, memory), "the weights over time")
    if op.inputs[3] >= 0:
        _check_weights(graph.tensors[op.inputs[3]], DType.INT32, (units,), "the bias")
    _check_state(graph, op, 4, DType.INT16, batch * features * memory, "the state")
    _check_outputs(graph, op, (batch, units), (4,))
    first, second = reference.svdf_scales(graph, op)
    assert feature.data is not None and x.quant is not None
    # the largest possible sum of products of a weight row and inputs less their zero point
    largest = (128 + abs(x.quant.zero_point)) * float(np.abs(feature.data.astype(np.int64)).sum(1).max())
    _check_factor(first, _MOST / max(largest, 1.0), "the sums over the inputs", feature)
    _check_factor(second, _HALF, "the sums over time", time)


# ---- LSTM --------------------------------------------------------------------------------------


def lstm(graph: Graph, op: Op) -> None:
    """Raises GeometryError or QuantError unless an LSTM's tensors fit together."""
    attrs = attributes(op, LstmAttrs)
    x = graph.tensors[op.inputs[LstmInput.X]]
    wide = x.dtype is DType.INT16
    _check_ends(graph, op, DType.INT16 if wide else DType.INT8)
    demand(len(x.shape) == 3, f"shape {list(x.shape)} must have 3 dimensions")
    batch = x.shape[1 if attrs.time_major else 0]
    cells, outputs = _read_sizes(graph, op)
    _check_lstm_operands(op, wide)
    _check_lstm_weights(graph, op, x.shape[2], cells, outputs)
    _check_state(graph, op, LstmInput.HIDDEN_STATE, x.dtype, batch * outputs, "the state of the output")
    _check_state(graph, op, LstmInput.CELL_STATE, DType.INT16, batch * cells, "the cell")
    _check_outputs(graph, op, (*x.shape[:2], outputs), (LstmInput.HIDDEN_STATE, LstmInput.CELL_STATE))
    if wide:
        _check_wide_scales(graph, op)
        return
    if op.inputs[LstmInput.FORGET_NORM] >= 0:
        demand(len(attrs.gates) == 4, "layer normalisation needs the scales of four gates")
    if op.inputs[LstmInput.CELL_TO_OUTPUT] >= 0 and (
        outputs > cells or (outputs < cells and batch > 1 and attrs.time_major)
    ):
        text = f"peepholes with {outputs} outputs of {cells} cells: LiteRT's kernel reads beyond its rows"
        raise QuantError(text, graph.tensors[op.outputs[0]])
    _check_lstm_scales(graph, op, attrs)


def _read_sizes(graph: Graph, op: Op) -> tuple[int, int]:
    """Returns (cells, outputs) from the weights that every LSTM has."""
    shapes = []
    for place in (LstmInput.INPUT_TO_OUTPUT, LstmInput.RECURRENT_TO_OUTPUT):
        demand(op.inputs[place] >= 0, f"{place.name.lower()} is missing")
        tensor = graph.tensors[op.inputs[place]]
        if len(tensor.shape) == 1:
            raise QuantError("diagonal weights, which LiteRT's integer kernel does not take", tensor)
        demand(len(tensor.shape) == 2, f"'{tensor.name}': shape {list(tensor.shape)} must have 2 dimensions")
        shapes.append(tensor.shape)
    return shapes[0][0], shapes[1][1]


def _check_lstm_operands(op: Op, wide: bool) -> None:
    """Demands the operands that every LSTM needs. Each optional group must be complete or absent.

    `wide`: the activations are int16.
    """
    present = {place.name for place in LstmInput if op.inputs[place] >= 0}
    if wide:
        _refuse_parts(present)
    gates = GATES if "INPUT_TO_INPUT" in present else GATES[1:]
    for part, needed in (
        *(("INPUT_TO_{}", True), ("RECURRENT_TO_{}", True), ("{}_BIAS", True)),
        *(("CELL_TO_{}", False), ("{}_NORM", False)),
    ):
        names = [part.format(gate) for gate in gates if (part, gate) != ("CELL_TO_{}", "CELL")]
        absent = [name.lower() for name in names if name not in present]
        demand(not absent or (len(absent) == len(names) and not needed), f"{', '.join(absent)} is missing")
    if gates != GATES:
        for name in ("RECURRENT_TO_INPUT", "CELL_TO_INPUT", "INPUT_BIAS", "INPUT_NORM"):
            demand(name not in present, f"{name.lower()} without weights of the input gate")
    has_projection = "PROJECTION" in present or "PROJECTION_BIAS" not in present
    demand(has_projection, "projection_bias without the weights of a projection")


def _refuse_parts(present: set[str]) -> None:
    """Raises one error that names the optional parts `present` of an int16 LSTM; no kernel computes them."""
    places = {
        "peepholes": "CELL_TO_INPUT CELL_TO_FORGET CELL_TO_OUTPUT",
        "a projection": "PROJECTION PROJECTION_BIAS",
        "layer normalisation": "INPUT_NORM FORGET_NORM CELL_NORM OUTPUT_NORM",
    }
    parts = [part for part, names in places.items() if present & set(names.split())]
    if present.isdisjoint({"INPUT_TO_INPUT", "RECURRENT_TO_INPUT", "INPUT_BIAS"}):
        parts.append("no input gate (CIFG)")
    if parts:
        text = f"an LSTM of int16 with {', '.join(parts)}: LiteRT and TensorFlow Lite Micro compute none"
        hint = "convert with OpsSet.TFLITE_BUILTINS_INT8: an LSTM of int8 with 16-bit cells may have these"
        raise UnsupportedError(text, hint=hint)


def _check_lstm_weights(graph: Graph, op: Op, inputs: int, cells: int, outputs: int) -> None:
    wide = graph.tensors[op.inputs[LstmInput.X]].dtype is DType.INT16
    shapes: dict[str, tuple[DType, Shape]] = {
        "INPUT_TO_{}": (DType.INT8, (cells, inputs)),
        "RECURRENT_TO_{}": (DType.INT8, (cells, outputs)),
        "CELL_TO_{}": (DType.INT16, (cells,)),
        "{}_BIAS": (DType.INT64 if wide else DType.INT32, (cells,)),
        "{}_NORM": (DType.INT16, (cells,)),
    }
    expected = {part.format(gate): kind for part, kind in shapes.items() for gate in GATES}
    del expected["CELL_TO_CELL"]
    expected["PROJECTION"] = (DType.INT8, (outputs, cells))
    expected["PROJECTION_BIAS"] = (DType.INT32, (outputs,))
    for name, (dtype, shape) in expected.items():
        index = op.inputs[LstmInput[name]]
        if index >= 0:
            _check_weights(graph.tensors[index], dtype, shape, name.lower())
    has_projection = op.inputs[LstmInput.PROJECTION] >= 0
    demand(has_projection or outputs == cells, f"{outputs} outputs of {cells} cells without a projection")
    demand(max(inputs, outputs, cells) <= MAX_TAPS, f"a sum of more than {MAX_TAPS} products")


def _check_lstm_scales(graph: Graph, op: Op, attrs: LstmAttrs) -> None:
    """Refuses scales that integer arithmetic cannot use, and sums that may not fit 32 bits."""
    _check_cell_scale(graph, op)
    out, hidden = graph.tensors[op.outputs[0]], attrs.hidden
    if not (hidden.scale > 0 and -128 <= hidden.zero_point <= 127):
        raise QuantError("the hidden product has no usable scale and zero point", out)
    _check_factor(2.0**-30 / hidden.scale, _HALF, "the hidden product", out)
    if not all(0 < scale < _MOST for scale in attrs.gates):
        raise QuantError("a gate's scale before layer normalisation is not a finite positive number", out)
    net = reference.lstm_of(graph, op)
    products: dict[str, Product] = {}
    for name, gate in zip(GATES, net.gates, strict=True):
        if gate is not None:
            products |= {f"INPUT_TO_{name}": gate.input, f"RECURRENT_TO_{name}": gate.recurrent}
    if net.projection is not None:
        products["PROJECTION"] = net.projection
    for place, product in products.items():
        real = product.factor[0] * 2.0 ** (product.factor[1] - 31)
        sums = np.abs(product.weights).sum(1) * 128 + np.abs(product.bias)
        if not real * float(sums.max()) < _MOST or float(sums.max()) >= 2.0**31:
            what = "the projection" if place == "PROJECTION" else place.lower()
            tensor = graph.tensors[op.inputs[LstmInput[place]]]
            raise QuantError(f"sums of {what} may not fit 32 bits", tensor)
    normalised = op.inputs[LstmInput.FORGET_NORM] >= 0
    for number, name in enumerate(GATES):
        norm = op.inputs[LstmInput[f"{name}_NORM"]]
        if norm >= 0:
            _check_factor(
                _scale(graph.tensors[norm]), 2.0**12, "the layer normalisation", graph.tensors[norm]
            )
        peephole = op.inputs[LstmInput[f"CELL_TO_{name}"]] if name != "CELL" else -1
        if peephole >= 0:
            tensor = graph.tensors[peephole]
            real = 2.0 ** -cell_bits(graph, op) * _scale(tensor)
            _check_factor(real / float(gate_scale(attrs, number, normalised)), _HALF, "a peephole", tensor)


def _check_cell_scale(graph: Graph, op: Op) -> None:
    cell = graph.tensors[op.inputs[LstmInput.CELL_STATE]]
    scale, bits = _scale(cell), cell_bits(graph, op)
    if abs(np.log2(scale) + bits) >= 1e-3 or not LEAST_CELL_BITS <= bits <= MOST_CELL_BITS:
        ends = f"2^-{MOST_CELL_BITS} to 2^-{LEAST_CELL_BITS}"
        raise QuantError(f"the cell's scale {scale:g} is not a power of two from {ends}", cell)


def _check_wide_scales(graph: Graph, op: Op) -> None:
    """Refuses scales that the arithmetic of int16 cannot use, and sums of more than 2^46."""
    _check_cell_scale(graph, op)
    hidden = graph.tensors[op.inputs[LstmInput.HIDDEN_STATE]]
    _check_factor(2.0**-30 / _scale(hidden), _HALF, "the hidden product", hidden)
    for name, gate in zip(GATES, wide_lstm_of(graph, op).gates, strict=True):
        for part, weights, bias, (multiplier, shift) in (
            (f"INPUT_TO_{name}", gate.input, gate.bias, gate.input_factor),
            (f"RECURRENT_TO_{name}", gate.recurrent, np.zeros(1, np.int64), gate.recurrent_factor),
        ):
            largest = float((np.abs(weights).sum(1) * 32768.0 + np.abs(bias.astype(np.float64))).max())
            fits = largest < _MOST_WIDE and largest * multiplier * 2.0 ** (shift - 31) < _MOST
            if not fits or shift > 14:
                tensor = graph.tensors[op.inputs[LstmInput[part]]]
                raise QuantError(f"sums of {part.lower()} are too large", tensor)


def _scale(tensor: Tensor) -> float:
    """Returns the scale of a tensor that `_check_one_scale` has checked."""
    assert tensor.quant is not None
    return tensor.quant.scale
