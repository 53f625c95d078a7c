"""Functions of one element: of int8 a table of 256 bytes says all; and changes of an element's type."""

import math
from collections.abc import Mapping
from types import MappingProxyType

from buildtool.graph import geometry, quantrules
from buildtool.graph.geometry import demand
from buildtool.graph.ops.types import (
    NO_UINT8,
    CallForm,
    Int16,
    OpDef,
    Plain,
    QuantRule,
    Shape,
    Spelling,
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


def _function(
    kind: OpKind,
    byte: str,
    written: Plain,
    quant: QuantRule | None = None,
    int16: Int16 = Int16.NOT_HERE,
    wide: str = "",
    onnx: Mapping[str, str] = MappingProxyType({}),
    output: Quantization | None = None,
    no_uint8: str = "",
) -> OpDef:
    """A table of `byte`; where int16 is read, `wide` is its arithmetic."""
    return OpDef(
        kind,
        geometry.same,
        "activation:apply_table",
        read=(Spelling(kind, int16=Int16.READ if wide else int16),),
        written=written,
        types=quantrules.int16_too if wide else int8_activations,
        quant=quant,
        wide=wide,
        byte=byte,
        call=CallForm.ONE_TO_ONE,
        case="unary",
        traits=Trait.TABLE,
        onnx=onnx,
        output=output,
        no_uint8=no_uint8,
    )


_SCALED = quantrules.one_to_one
_NO_INT16 = Int16.NOT_IN_LITERT
_WIDE = "activation:apply_wide"
_CURVE = "activation:transformed"
_CLAMP = "activation:clamped"
_UNARY = "activations:unary"

DEFS = (
    _function(
        OpKind.LOGISTIC,
        "activation:float_table",
        Plain(2),
        output=Quantization((1 / 256,), (-128,)),
        wide="wide:logistic",
        onnx={"Sigmoid": _UNARY},
    ),
    _function(
        OpKind.TANH,
        "activation:float_table",
        Plain(2),
        output=Quantization((1 / 128,), (0,)),
        wide="wide:tanh",
        onnx={"Tanh": _UNARY},
    ),
    _function(
        OpKind.HARD_SWISH,
        "activation:hard_swish",
        Plain(1, "HardSwishOptions"),
        _SCALED,
        int16=_NO_INT16,
        onnx={"HardSwish": _UNARY},
    ),
    _function(
        OpKind.RELU,
        _CLAMP,
        Plain(2),
        _SCALED,
        wide=_WIDE,
        onnx={"Relu": "activations:clamp", "Clip": "activations:clamp"},
    ),
    _function(OpKind.RELU6, _CLAMP, Plain(2), _SCALED, wide=_WIDE),
    _function(
        OpKind.LEAKY_RELU,
        "activation:leaky_relu",
        Plain(2, "LeakyReluOptions", LeakyReluAttrs, {"Alpha": "alpha"}, needed=True),
        _leaky_scales,
        wide=_WIDE,
        onnx={"LeakyRelu": _UNARY},
    ),
    _function(
        OpKind.ABS,
        "activation:absolute",
        Plain(2, "AbsOptions"),
        _SCALED,
        onnx={"Abs": _UNARY},
        no_uint8=NO_UINT8,
    ),
    _function(OpKind.EXP, _CURVE, Plain(2, "ExpOptions"), onnx={"Exp": _UNARY}, no_uint8=NO_UINT8),
    _function(OpKind.LOG, _CURVE, Plain(2), onnx={"Log": _UNARY}, no_uint8=NO_UINT8),
    _function(
        OpKind.GELU,
        _CURVE,
        Plain(2, "GeluOptions", GeluAttrs, {"Approximate": "approximate"}),
        onnx={"Gelu": _UNARY},
    ),
    _function(OpKind.NEG, "activation:negated", Plain(1, "NegOptions"), no_uint8=NO_UINT8),
    _function(
        OpKind.SQRT, "activation:root", Plain(1), _root_scales, onnx={"Sqrt": _UNARY}, no_uint8=NO_UINT8
    ),
    _function(OpKind.RSQRT, "activation:inverse_square_root", Plain(2), _root_scales, no_uint8=NO_UINT8),
    _function(
        OpKind.ELU,
        _CURVE,
        Plain(1),
        int16=_NO_INT16,
        onnx={"Elu": _UNARY},
        no_uint8=NO_UINT8,
    ),
    _function(OpKind.RELU_N1_TO_1, _CLAMP, Plain(1), _SCALED, int16=_NO_INT16),
    _function(OpKind.RELU_0_TO_1, _CLAMP, Plain(1), _SCALED, int16=_NO_INT16),
    OpDef(
        OpKind.LOGICAL_NOT,
        geometry.same,
        "pairs:negate",
        read=(Spelling("LOGICAL_NOT", int16=_NO_INT16),),
        written=Plain(1, "LogicalNotOptions"),
        types=quantrules.truth_values,
        call=CallForm.ONE_TO_ONE,
        case="denied",
        traits=Trait.TABLE,
    ),
    OpDef(
        OpKind.LOOKUP,  # only the rewrite makes it; its table, by the bit patterns, is its second operand
        _lookup_shape,
        "activation:apply_table",
        types=_lookup_types,
        call=CallForm.ONE_TO_ONE,
        case="looked_up",
        traits=Trait.TABLE,
        operands=2,
    ),
    OpDef(
        OpKind.QUANTIZE,
        geometry.same,
        "activation:quantize",
        read=(Spelling("QUANTIZE", int16=Int16.READ),),
        written=Plain(1, "QuantizeOptions"),
        types=_quantize_types,
        wide=_WIDE,
        byte="activation:rescaled",
        call=CallForm.ONE_TO_ONE,
        case="requantize",
        traits=Trait.TABLE,
        conversions=((16, 16), (16, 8), (8, 16), (16, 32), (32, 16), (32, 8)),
    ),
    OpDef(
        OpKind.CAST,
        geometry.same,
        "wide:cast",
        read=(Spelling("CAST", int16=Int16.READ),),
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
        read=(Spelling("DEQUANTIZE", int16=Int16.READ),),
        written=Plain(2, "DequantizeOptions"),
        types=_dequantize_types,
    ),
)
