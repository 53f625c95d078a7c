"""Types and quantisation that operators demand of their tensors, as TFLite's kernels do.

Each rule raises QuantError where they do not fit; `ops` says which rules a kind has. `check_tensor` checks a
tensor by itself.
"""

import math

from buildtool.graph.types import DType, Graph, Op, Quantization, Tensor

# All other types have only 0; int16 has another one only where SOFTMAX makes it of int8, and QUANTIZE reads
# it.
_ZERO_POINTS = {DType.INT8: (-128, 127), DType.UINT8: (0, 255), DType.INT16: (-32768, 0)}
ACTIVATIONS = (DType.INT8, DType.INT16)
LARGEST_RATIO = 2.0**30  # a requantisation factor beyond this saturates every result
_FLOAT32_ENDS = 2.0**128 - 2.0**103  # from here on a number is infinite as a float32


class QuantError(ValueError):
    """An operator's types or quantisation do not fit; `tensor`: the one that does not."""

    def __init__(self, text: str, tensor: Tensor | None = None) -> None:
        super().__init__(text)
        self.tensor = tensor


def check_tensor(tensor: Tensor) -> None:
    """Raises QuantError unless scales are finite and positive, zero points in range, lengths right."""
    quant = tensor.quant
    if quant is None:
        return
    if len(quant.scales) != len(quant.zero_points) or not quant.scales:
        raise QuantError(f"{len(quant.scales)} scales, {len(quant.zero_points)} zero points", tensor)
    # Converters that fold batch norm late give channels a negative scale, or 0 where all weights are 0.
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
    """Whether two per-tensor quantisations are equal (scale to the bit)."""
    if a is None or b is None:
        return a is b
    return a.scales == b.scales and a.zero_points == b.zero_points


def per_tensor(tensor: Tensor, *dtypes: DType) -> Quantization:
    """The quantisation of an activation, which is one pair; its type is one of `dtypes`."""
    if tensor.dtype not in dtypes:
        raise QuantError(f"type {tensor.dtype}, expected {' or '.join(dtypes)}", tensor)
    if tensor.quant is None:
        raise QuantError(f"{tensor.dtype} without a scale and zero point", tensor)
    if len(tensor.quant.scales) != 1:
        raise QuantError("an activation quantised per channel", tensor)
    if tensor.dtype is DType.INT16 and tensor.quant.zero_point:
        raise QuantError("int16 with a zero point other than 0", tensor)
    return tensor.quant


def int8_activations(graph: Graph, op: Op) -> None:
    """All of int8."""
    _activations(graph, op, DType.INT8)


def _activations(graph: Graph, op: Op, *dtypes: DType) -> None:
    """All of one type, by default int8."""
    first = graph.tensors[op.inputs[0]].dtype if op.inputs and op.inputs[0] >= 0 else DType.INT8
    for t in dict.fromkeys((*op.inputs, *op.outputs)):
        if t < 0:
            raise QuantError("an operand is missing")
        per_tensor(graph.tensors[t], first if first in dtypes else dtypes[0])


def int16_too(graph: Graph, op: Op) -> None:
    """Operators that int16 activations may go through."""
    _activations(graph, op, *ACTIVATIONS)


def check_moved_types(graph: Graph, op: Op) -> None:
    """Bytes that are only moved: a scale has no effect, and may be missing."""
    first = graph.tensors[op.inputs[0]].dtype
    for t in dict.fromkeys((*op.inputs, *op.outputs)):
        tensor = graph.tensors[t]
        if tensor.dtype == first == DType.BOOL:
            continue
        if tensor.quant is not None or tensor.dtype != first or first not in ACTIVATIONS:
            per_tensor(tensor, first if first in ACTIVATIONS else DType.INT8)


def truth_values(graph: Graph, op: Op) -> None:
    """LOGICAL_AND and its kin: truth values in and out."""
    for t in (*op.inputs, *op.outputs):
        check_type(graph.tensors[t], DType.BOOL)


def check_type(tensor: Tensor, dtype: DType) -> None:
    """Demands a type."""
    if tensor.dtype != dtype:
        raise QuantError(f"type {tensor.dtype}, expected {dtype}", tensor)


def ratio(value: float, tensor: Tensor, limit: float = LARGEST_RATIO) -> None:
    """Demands that a requantisation factor is above 0 and below `limit`; `tensor` is named if not."""
    if not 0.0 < value < limit:
        raise QuantError(f"a requantisation factor of {value:g}: the scales are too far apart", tensor)


def is_share(tensor: Tensor) -> bool:
    """Whether a tensor is an int16 result of SOFTMAX of int8: from 0 to 1 in steps of 1 / 65536."""
    quant = tensor.quant
    return (
        tensor.dtype is DType.INT16
        and quant is not None
        and quant.zero_points == (-32768,)
        and abs(quant.scale - 2.0**-16) <= 0.001 * 2.0**-16
    )


def quants(graph: Graph, op: Op) -> tuple[list[Quantization], Quantization]:
    """Quantisation of the inputs, and of the first output; types were checked before."""
    quants = [graph.tensors[t].quant for t in (*op.inputs, op.outputs[0])]
    known = [q for q in quants if q is not None]
    return known[:-1], known[-1]


def product(graph: Graph, op: Op) -> None:
    """The product of both operands' scales over the output's."""
    (a, b), out = quants(graph, op)
    ratio(a.scale * b.scale / out.scale, graph.tensors[op.outputs[0]])


def one_to_one(graph: Graph, op: Op) -> None:
    """The first operand's scale over the output's."""
    (a, *_), out = quants(graph, op)
    ratio(a.scale / out.scale, graph.tensors[op.outputs[0]])


def check_same_quant(graph: Graph, op: Op) -> None:
    """REDUCE_MAX, blocks of the batch and their like: LiteRT demands one quantisation."""
    (a,), out = quants(graph, op)
    if not same_quantization(a, out):
        text = "the output is quantised otherwise than the input"
        raise QuantError(text, graph.tensors[op.outputs[0]])


def fixed_output(graph: Graph, op: Op, int8: Quantization) -> None:
    """An operator whose int8 output always has the quantisation `int8`; an int16 output ends at 1."""
    (a,), out = quants(graph, op)
    tensor = graph.tensors[op.outputs[0]]
    wanted, zero = int8.scale, int8.zero_point
    if tensor.dtype is DType.INT16:
        wanted, zero = 1.0 / 32768.0, 0
    wrong = out.zero_point != zero or abs(out.scale - wanted) > 0.001 * wanted
    if wrong and not is_share(tensor):
        raise QuantError(f"the output's scale must be {wanted:g}, its zero point {zero}", tensor)
    ratio(a.scale, tensor)
    beta = getattr(op.attrs, "beta", 1.0)
    if not abs(beta) < _FLOAT32_ENDS:
        raise QuantError(f"beta is {beta}")
