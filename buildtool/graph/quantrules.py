"""Rules for the types and quantisation of operators' tensors, the same as in TFLite's kernels.

Each rule raises QuantError if a tensor's type or quantisation does not fit its operator. `ops` lists the
rules of each kind of operator. `check_tensor` checks a tensor by itself.
"""

import math

from buildtool.graph.types import Activation, DType, Graph, Op, OpKind, Quantization, Tensor

# All other types allow only 0. An int16 tensor has another zero point only between a SOFTMAX from int8 and a
# QUANTIZE.
_ZERO_POINTS = {DType.INT8: (-128, 127), DType.UINT8: (0, 255), DType.INT16: (-32768, 0)}
ACTIVATIONS = (DType.INT8, DType.INT16)
WORDS = frozenset({DType.INT32, DType.UINT32})  # types of numbers without a scale
LARGEST_RATIO = 2.0**30  # a larger requantisation factor saturates every result
_FLOAT32_ENDS = 2.0**128 - 2.0**103  # this number and larger ones are infinite as a float32


class QuantError(ValueError):
    """An operator's types or quantisation do not fit. `tensor` is the one that does not fit."""

    def __init__(self, text: str, tensor: Tensor | None = None) -> None:
        super().__init__(text)
        self.tensor = tensor


def check_tensor(tensor: Tensor) -> None:
    """Raises QuantError unless scales are finite and positive, zero points in range, and lengths right."""
    quant = tensor.quant
    if quant is None:
        return
    if len(quant.scales) != len(quant.zero_points) or not quant.scales:
        raise QuantError(f"{len(quant.scales)} scales, {len(quant.zero_points)} zero points", tensor)
    # Converters that fold batch norm late give a channel a negative scale, or 0 where all its weights are 0.
    any_sign = tensor.is_constant and (tensor.dtype in (DType.INT32, DType.INT64) or len(quant.scales) > 1)
    if not all(map(math.isfinite, quant.scales)) or not (any_sign or min(quant.scales) > 0):
        raise QuantError("a scale is not a finite positive number", tensor)
    low, high = _ZERO_POINTS.get(tensor.dtype, (0, 0))
    if min(quant.zero_points) < low or max(quant.zero_points) > high:
        raise QuantError(f"a zero point is outside {low}..{high}", tensor)
    if len(quant.scales) > 1:
        if not 0 <= quant.axis < len(tensor.shape):
            raise QuantError(f"quantised along axis {quant.axis} of {len(tensor.shape)}", tensor)
        if tensor.shape[quant.axis] != len(quant.scales):
            raise QuantError(f"{len(quant.scales)} scales for {tensor.shape[quant.axis]} channels", tensor)


def same_quantization(a: Quantization | None, b: Quantization | None) -> bool:
    """Whether two per-tensor quantisations are equal. Their scales must have the same bits."""
    if a is None or b is None:
        return a is b
    return a.scales == b.scales and a.zero_points == b.zero_points


def per_tensor(tensor: Tensor, *dtypes: DType) -> Quantization:
    """Returns an activation's quantisation. Demands one scale for the tensor and a type in `dtypes`."""
    if tensor.dtype not in dtypes:
        raise QuantError(f"type {tensor.dtype}, expected {' or '.join(dtypes)}", tensor)
    if tensor.quant is None:
        raise QuantError(f"{tensor.dtype} without a scale and zero point", tensor)
    if len(tensor.quant.scales) != 1:
        raise QuantError("an activation quantised per channel", tensor)
    if tensor.dtype is DType.INT16 and tensor.quant.zero_point:
        raise QuantError("int16 with a zero point other than 0", tensor)
    return tensor.quant


def check_int8_or_int16(graph: Graph, op: Op) -> None:
    """Demands that all activations are int8 or that all are int16."""
    first = graph.tensors[op.inputs[0]].dtype if op.inputs and op.inputs[0] >= 0 else DType.INT8
    for t in dict.fromkeys((*op.inputs, *op.outputs)):
        if t < 0:
            raise QuantError("an operand is missing")
        per_tensor(graph.tensors[t], first if first in ACTIVATIONS else DType.INT8)


def check_moved_types(graph: Graph, op: Op) -> None:
    """Demands one type for operators that only move bytes. Scales have no effect and may be missing.

    A RESHAPE may be from int32 to uint32, or back: a rewrite turns a CAST between these types into a RESHAPE.
    """
    first = graph.tensors[op.inputs[0]].dtype
    words = WORDS if op.kind is OpKind.RESHAPE else WORDS & {first}
    for t in dict.fromkeys((*op.inputs, *op.outputs)):
        tensor = graph.tensors[t]
        if tensor.dtype == first == DType.BOOL or (tensor.quant is None and {first, tensor.dtype} <= words):
            continue
        if tensor.quant is not None or tensor.dtype != first or first not in ACTIVATIONS:
            per_tensor(tensor, first if first in ACTIVATIONS else DType.INT8)


def refuse_integers(graph: Graph, op: Op) -> None:
    """Raises QuantError: only float32 is allowed, as LiteRT's integer kernel is missing or wrong."""
    raise QuantError(f"type {graph.tensors[op.outputs[0]].dtype}, expected {DType.FLOAT32}")


def is_unscaled(graph: Graph, op: Op) -> bool:
    """Whether an operator computes int32 numbers that have no scale."""
    out = graph.tensors[op.outputs[0]]
    return out.dtype is DType.INT32 and out.quant is None


def check_unscaled(graph: Graph, op: Op) -> None:
    """Demands int32 numbers without scales, and no fused activation.

    A divisor must be a constant without zeros.
    """
    for t in op.inputs:
        check_type(graph.tensors[t], DType.INT32)
        if graph.tensors[t].quant is not None:
            raise QuantError("int32 with a scale", graph.tensors[t])
    if getattr(op.attrs, "activation", Activation.NONE) is not Activation.NONE:
        raise QuantError("int32 without a scale, and a fused activation", graph.tensors[op.outputs[0]])
    if op.kind is OpKind.DIV:
        divisor = graph.tensors[op.inputs[1]]
        if divisor.data is None or not divisor.data.all():
            raise QuantError("the divisor of int32 numbers must be a constant other than 0", divisor)


def check_truth_values(graph: Graph, op: Op) -> None:
    """Demands that all inputs and outputs are truth values, as in LOGICAL_AND."""
    for t in (*op.inputs, *op.outputs):
        check_type(graph.tensors[t], DType.BOOL)


def check_type(tensor: Tensor, dtype: DType) -> None:
    """Demands that a tensor has the type `dtype`."""
    if tensor.dtype != dtype:
        raise QuantError(f"type {tensor.dtype}, expected {dtype}", tensor)


def check_ratio(value: float, tensor: Tensor, limit: float = LARGEST_RATIO) -> None:
    """Demands that a requantisation factor is above 0 and below `limit`. The error names `tensor`."""
    if not 0.0 < value < limit:
        raise QuantError(f"a requantisation factor of {value:g}: the scales are too far apart", tensor)


def is_share(tensor: Tensor) -> bool:
    """Whether a tensor has the quantisation of a SOFTMAX from int8 to int16: 0 to 1 in steps of 1 / 65536."""
    quant = tensor.quant
    return (
        tensor.dtype is DType.INT16
        and quant is not None
        and quant.zero_points == (-32768,)
        and abs(quant.scale - 2.0**-16) <= 0.001 * 2.0**-16
    )


def quants(graph: Graph, op: Op) -> tuple[list[Quantization], Quantization]:
    """Returns the quantisations of the inputs, and that of the first output. Expects valid types."""
    quants = [q for t in (*op.inputs, op.outputs[0]) if (q := graph.tensors[t].quant) is not None]
    return quants[:-1], quants[-1]


def check_product_scales(graph: Graph, op: Op) -> None:
    """Checks a product's requantisation factor: the product of both operands' scales / the output's scale."""
    (a, b), out = quants(graph, op)
    check_ratio(a.scale * b.scale / out.scale, graph.tensors[op.outputs[0]])


def check_first_scale(graph: Graph, op: Op) -> None:
    """Checks the requantisation factor of the first operand: its scale divided by the output's."""
    (a, *_), out = quants(graph, op)
    check_ratio(a.scale / out.scale, graph.tensors[op.outputs[0]])


def check_same_quant(graph: Graph, op: Op) -> None:
    """Demands that input and output have the same quantisation, as LiteRT does for REDUCE_MAX."""
    (a,), out = quants(graph, op)
    if not same_quantization(a, out):
        text = "input and output have different quantisations"
        raise QuantError(text, graph.tensors[op.outputs[0]])


def check_fixed_output(graph: Graph, op: Op, int8: Quantization) -> None:
    """Demands that an int8 output has the quantisation `int8`, or an int16 output the range -1 to 1."""
    (a,), out = quants(graph, op)
    tensor = graph.tensors[op.outputs[0]]
    scale, zero = int8.scale, int8.zero_point
    if tensor.dtype is DType.INT16:
        scale, zero = 1.0 / 32768.0, 0
    wrong = out.zero_point != zero or abs(out.scale - scale) > 0.001 * scale
    if wrong and not is_share(tensor):
        raise QuantError(f"the output's scale must be {scale:g}, its zero point {zero}", tensor)
    check_ratio(a.scale, tensor)
    beta = getattr(op.attrs, "beta", 1.0)
    if not abs(beta) < _FLOAT32_ENDS:
        raise QuantError(f"beta is {beta}")
