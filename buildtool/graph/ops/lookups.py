"""Functions of one element: of int8 a table of 256 bytes says all; and changes of an element's type."""

import math
from functools import partial

from buildtool.graph import geometry, quantrules
from buildtool.graph.geometry import demand
from buildtool.graph.ops.types import (
    NO_UINT8,
    CallForm,
    Int16,
    OpDef,
    Plain,
    Shape,
    Trait,
)
from buildtool.graph.quantrules import (
    ACTIVATIONS,
    QuantError,
    int8_activations,
    is_share,
    per_tensor,
    quants,
    ratio,
    typed,
)
from buildtool.graph.types import DType, GeluAttrs, Graph, LeakyReluAttrs, Op, OpKind, Quantization

_CAST = (DType.INT8, DType.INT16, DType.INT32)
_NO_QUANTIZE = {
    *((DType.INT16, DType.UINT8), (DType.UINT8, DType.INT16), (DType.UINT8, DType.INT32)),
    *((DType.INT8, DType.INT32), (DType.INT32, DType.INT32), (DType.INT32, DType.UINT8)),
}


def _lookup_shape(_op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    demand(shapes[1] == (256,), f"a table of shape {list(shapes[1])}, expected [256]")
    return shapes[0]


def _leaky_scales(graph: Graph, op: Op) -> None:
    quantrules.one_to_one(graph, op)
    alpha = getattr(op.attrs, "alpha", 0.0)
    if not math.isfinite(alpha):
        raise QuantError(f"alpha is {alpha}")


def _root_scales(graph: Graph, op: Op) -> None:
    (a,), out = quants(graph, op)
    inverse = op.kind is OpKind.RSQRT
    factor = 1 / (math.sqrt(a.scale) * out.scale) if inverse else 16 * math.sqrt(a.scale) / out.scale
    ratio(factor, graph.tensors[op.outputs[0]])


def _lookup_types(graph: Graph, op: Op) -> None:
    """LOOKUP: bytes stand for bytes, by a constant of int8; scales take no part."""
    source, table, out = (graph.tensors[t] for t in (*op.inputs, *op.outputs))
    for tensor in (source, out):
        typed(tensor, DType.BOOL if tensor.dtype is DType.BOOL else DType.INT8)
    if table.dtype is not DType.INT8 or table.data is None:
        raise QuantError("the table must be an int8 constant", table)


def _cast_types(graph: Graph, op: Op) -> None:
    """CAST among integers moves values, whatever scales the tensors have, or none."""
    for t in (op.inputs[0], op.outputs[0]):
        if graph.tensors[t].dtype not in _CAST:
            raise QuantError(f"a CAST of {graph.tensors[t].dtype}", graph.tensors[t])


def _quantize_types(graph: Graph, op: Op) -> None:
    x, out = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    if x.dtype == DType.FLOAT32:
        per_tensor(out, *ACTIVATIONS)
        return
    if is_share(x) and out.dtype is DType.INT32:
        source = x.quant
    else:
        source = per_tensor(x, DType.INT8, DType.UINT8, DType.INT16, DType.INT32)
    assert source is not None
    result = per_tensor(out, DType.INT8, DType.UINT8, DType.INT16, DType.INT32)
    if (x.dtype, out.dtype) in _NO_QUANTIZE:
        raise QuantError(f"{x.dtype} to {out.dtype}, which LiteRT's kernel does not take", out)
    if x.dtype == out.dtype == DType.UINT8:
        raise QuantError("uint8 on both sides", out)
    ratio(source.scale / result.scale, out)


def _dequantize_types(graph: Graph, op: Op) -> None:
    per_tensor(graph.tensors[op.inputs[0]], *ACTIVATIONS)
    out = graph.tensors[op.outputs[0]]
    if out.dtype != DType.FLOAT32:
        raise QuantError(f"type {out.dtype}, expected float32", out)


# A table of a function of one byte.
_function = partial(
    OpDef,
    shape=geometry.same,
    reference="activation:apply_table",
    types=int8_activations,
    call=CallForm.ONE_TO_ONE,
    case="unary",
    traits=Trait.TABLE,
)
# One that int16 goes through as well.
_wide_function = partial(
    _function, types=quantrules.int16_too, int16=Int16.READ, wide="activation:apply_wide"
)
_SCALED = quantrules.one_to_one
_NO_INT16 = Int16.NOT_IN_LITERT
_CURVE = "activation:transformed"
_FLOAT = "activation:float_table"
_CLAMP = "activation:clamped"
_UNARY = "elementwise:unary"

DEFS = (
    _wide_function(
        OpKind.LOGISTIC,
        byte=_FLOAT,
        written=Plain(2),
        output=Quantization((1 / 256,), (-128,)),
        wide="wide:logistic",
        onnx={"Sigmoid": _UNARY},
    ),
    _wide_function(
        OpKind.TANH,
        byte=_FLOAT,
        written=Plain(2),
        output=Quantization((1 / 128,), (0,)),
        wide="wide:tanh",
        onnx={"Tanh": _UNARY},
    ),
    _function(
        OpKind.HARD_SWISH,
        byte="activation:hard_swish",
        written=Plain(1, "HardSwishOptions"),
        quant=_SCALED,
        int16=_NO_INT16,
        onnx={"HardSwish": _UNARY},
    ),
    _wide_function(
        OpKind.RELU,
        byte=_CLAMP,
        written=Plain(2),
        quant=_SCALED,
        onnx={"Relu": "elementwise:clamp", "Clip": "elementwise:clamp"},
    ),
    _wide_function(OpKind.RELU6, byte=_CLAMP, written=Plain(2), quant=_SCALED),
    _wide_function(
        OpKind.LEAKY_RELU,
        byte="activation:leaky_relu",
        written=Plain(2, "LeakyReluOptions", LeakyReluAttrs, {"Alpha": "alpha"}, needed=True),
        quant=_leaky_scales,
        onnx={"LeakyRelu": _UNARY},
    ),
    _function(
        OpKind.ABS,
        byte="activation:absolute",
        written=Plain(2, "AbsOptions"),
        quant=_SCALED,
        onnx={"Abs": _UNARY},
        no_uint8=NO_UINT8,
    ),
    _function(
        OpKind.EXP, byte=_CURVE, written=Plain(2, "ExpOptions"), onnx={"Exp": _UNARY}, no_uint8=NO_UINT8
    ),
    _function(OpKind.LOG, byte=_CURVE, written=Plain(2), onnx={"Log": _UNARY}, no_uint8=NO_UINT8),
    _function(
        OpKind.GELU,
        byte=_CURVE,
        written=Plain(2, "GeluOptions", GeluAttrs, {"Approximate": "approximate"}),
        onnx={"Gelu": _UNARY},
    ),
    _function(OpKind.NEG, byte="activation:negated", written=Plain(1, "NegOptions"), no_uint8=NO_UINT8),
    _function(
        OpKind.SQRT,
        byte="activation:root",
        written=Plain(1),
        quant=_root_scales,
        onnx={"Sqrt": _UNARY},
        no_uint8=NO_UINT8,
    ),
    _function(
        OpKind.RSQRT,
        byte="activation:inverse_square_root",
        written=Plain(2),
        quant=_root_scales,
        no_uint8=NO_UINT8,
    ),
    _function(
        OpKind.ELU,
        byte=_CURVE,
        written=Plain(1),
        int16=_NO_INT16,
        onnx={"Elu": _UNARY},
        no_uint8=NO_UINT8,
    ),
    _function(OpKind.RELU_N1_TO_1, byte=_CLAMP, written=Plain(1), quant=_SCALED, int16=_NO_INT16),
    _function(OpKind.RELU_0_TO_1, byte=_CLAMP, written=Plain(1), quant=_SCALED, int16=_NO_INT16),
    _function(
        OpKind.LOGICAL_NOT,
        reference="pairs:negate",
        written=Plain(1, "LogicalNotOptions"),
        types=quantrules.truth_values,
        int16=_NO_INT16,
        case="denied",
    ),
    _function(
        OpKind.LOOKUP,  # only the rewrite makes it; its table, by the bit patterns, is its second operand
        shape=_lookup_shape,
        types=_lookup_types,
        case="looked_up",
        operands=2,
    ),
    _wide_function(
        OpKind.QUANTIZE,
        reference="activation:quantize",
        byte="activation:rescaled",
        written=Plain(1, "QuantizeOptions"),
        types=_quantize_types,
        case="requantize",
        conversions=((16, 16), (16, 8), (8, 16), (16, 32), (32, 16), (32, 8)),
    ),
    OpDef(
        OpKind.CAST,
        geometry.same,
        "wide:cast",
        decode="opview:plain",
        int16=Int16.READ,
        written="pointwise:write_cast",
        types=_cast_types,
        call=CallForm.ONE_TO_ONE,
        traits=Trait.PIXEL,
        no_uint8="it takes the stored numbers, 0 to 255, which int8 does not hold",
        conversions=((8, 16), (16, 8), (16, 32), (32, 16), (8, 32), (32, 8)),
    ),
    OpDef(
        OpKind.DEQUANTIZE,
        geometry.same,
        "activation:dequantize",
        int16=Int16.READ,
        written=Plain(2, "DequantizeOptions"),
        types=_dequantize_types,
    ),
)
