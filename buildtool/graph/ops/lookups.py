"""Functions of one element, functions of a pixel's channels, and type conversions.

A function of one int8 element is computed with a table of 256 bytes.
"""

import math
from functools import partial

from buildtool.graph import geometry, quantrules
from buildtool.graph.geometry import demand
from buildtool.graph.ops.types import NO_INT16, NO_UINT8, CallForm, OpDef, Plain, Shape, Trait
from buildtool.graph.quantrules import QuantError, check_ratio, check_type, per_tensor, quants
from buildtool.graph.types import (
    DType,
    GeluAttrs,
    Graph,
    LeakyReluAttrs,
    Op,
    OpKind,
    Quantization,
    SoftmaxAttrs,
)

_QUANTIZED = (DType.INT8, DType.UINT8, DType.INT16, DType.INT32)
_NO_QUANTIZE = {
    *((DType.INT16, DType.UINT8), (DType.UINT8, DType.INT16), (DType.UINT8, DType.INT32)),
    *((DType.INT8, DType.INT32), (DType.INT32, DType.INT32), (DType.INT32, DType.UINT8)),
}


def _lookup_shape(_op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    demand(shapes[1] == (256,), f"the table has shape {list(shapes[1])}, expected [256]")
    return shapes[0]


def _channelwise_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    demand(len(shapes[0]) >= 1, f"{op.kind} needs at least one dimension")
    return shapes[0]


def _leaky_scales(graph: Graph, op: Op) -> None:
    quantrules.check_first_scale(graph, op)
    alpha = getattr(op.attrs, "alpha", 0.0)
    if not math.isfinite(alpha):
        raise QuantError(f"alpha is {alpha}")


def _root_scales(graph: Graph, op: Op) -> None:
    (a,), out = quants(graph, op)
    inverse, result = op.kind is OpKind.RSQRT, graph.tensors[op.outputs[0]]
    largest = 256 if result.dtype is DType.INT16 else 16  # at least the root of the largest input
    factor = 1 / (math.sqrt(a.scale) * out.scale) if inverse else largest * math.sqrt(a.scale) / out.scale
    check_ratio(factor, result)


def _log_softmax_scales(graph: Graph, op: Op) -> None:
    """Demands that the scale of LOG_SOFTMAX's input is above 2^-26 and below 16.

    In units of 2^-26, the scale is then above 1 and has at most 30 bits.
    """
    (x,), _ = quants(graph, op)
    if not 2.0**-26 < x.scale < 16.0:
        text = f"the scale of a log softmax's input is {x.scale:g}, but must be above 2^-26 and below 16"
        raise QuantError(text, graph.tensors[op.inputs[0]])


def _softmax_types(graph: Graph, op: Op) -> None:
    """Demands that SOFTMAX is from int8 to int8, from int16 to int16, or from int8 to int16."""
    source, out = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    if (source.dtype, out.dtype) != (DType.INT8, DType.INT16):
        quantrules.check_int8_or_int16(graph, op)
        return
    per_tensor(source, DType.INT8)
    if not quantrules.is_share(out):
        raise QuantError("the output's scale must be 1/65536, its zero point -32768", out)


def _lookup_types(graph: Graph, op: Op) -> None:
    """Checks the types of LOOKUP, which maps bytes to bytes by an int8 constant. Scales have no effect."""
    source, table, out = (graph.tensors[t] for t in (*op.inputs, *op.outputs))
    for tensor in (source, out):
        check_type(tensor, DType.BOOL if tensor.dtype is DType.BOOL else DType.INT8)
    if table.dtype is not DType.INT8 or table.data is None:
        raise QuantError("the table must be an int8 constant", table)


def _cast_types(graph: Graph, op: Op) -> None:
    """Checks the types of CAST: integers, and float32 from and to integers and truth values.

    Scales have no effect and may be missing. uint32 is converted from and to int32 alone.
    """
    tensors = [graph.tensors[t] for t in (op.inputs[0], op.outputs[0])]
    real = DType.FLOAT32 in (t.dtype for t in tensors)
    if DType.UINT32 in (t.dtype for t in tensors) and {t.dtype for t in tensors} <= quantrules.WORDS:
        return
    for tensor in tensors:
        others = (DType.FLOAT32, DType.BOOL) if real else ()
        if tensor.dtype not in (DType.INT8, DType.INT16, DType.INT32, *others):
            raise QuantError(f"a CAST of {tensor.dtype}", tensor)


def _quantize_types(graph: Graph, op: Op) -> None:
    x, out = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    if x.dtype == DType.FLOAT32:
        per_tensor(out, *quantrules.ACTIVATIONS)
        return
    widens = quantrules.is_share(x) and out.dtype is DType.INT32
    source = x.quant if widens else per_tensor(x, *_QUANTIZED)
    assert source is not None
    result = per_tensor(out, *_QUANTIZED)
    if (x.dtype, out.dtype) in _NO_QUANTIZE:
        raise QuantError(f"{x.dtype} to {out.dtype}, which LiteRT's kernel does not take", out)
    if x.dtype == out.dtype == DType.UINT8:
        raise QuantError("uint8 on both sides", out)
    check_ratio(source.scale / result.scale, out)


def _dequantize_types(graph: Graph, op: Op) -> None:
    per_tensor(graph.tensors[op.inputs[0]], *quantrules.ACTIVATIONS)
    check_type(graph.tensors[op.outputs[0]], DType.FLOAT32)


_FLOAT, _CURVE, _UNARY = "activation:float_table", "activation:apply_curve", "elementwise:unary"

# A function of one element. For bytes a table computes it.
_function = partial(
    OpDef,
    shape=geometry.same,
    reference="activation:apply_table",
    wide="activation:apply_wide",
    call=CallForm.ONE_TO_ONE,
    case="unary",
    traits=Trait.TABLE,
)
_signed = partial(_function, no_uint8=NO_UINT8)
_curve = partial(_signed, byte=_FLOAT, wide=_CURVE)
_clamp = partial(_function, byte="activation:clamp", quant=quantrules.check_first_scale)
_byte_clamp = partial(_clamp, written=Plain(1, ""), no_int16=NO_INT16)
# Functions of all channels of a pixel.
_channelwise = partial(OpDef, shape=_channelwise_shape, call=CallForm.ONE_TO_ONE, traits=Trait.PIXEL)

DEFS = (
    _function(
        OpKind.LOGISTIC,
        floats="floats:sigmoid",
        byte=_FLOAT,
        written=Plain(2, ""),
        output=Quantization((1 / 256,), (-128,)),
        onnx={"Sigmoid": _UNARY, "Swish": "floats:swish"},
        wide="wide:logistic",
    ),
    _function(
        OpKind.TANH,
        floats="floats:tanh",
        byte=_FLOAT,
        written=Plain(2, ""),
        output=Quantization((1 / 128,), (0,)),
        onnx={"Tanh": _UNARY, "Mish": "floats:mish"},
        wide="wide:tanh",
    ),
    _function(
        OpKind.HARD_SWISH,
        floats="floats:hard_swish",
        byte="activation:hard_swish",
        written=Plain(1),
        quant=quantrules.check_first_scale,
        no_int16=NO_INT16,
        onnx={"HardSwish": _UNARY},
    ),
    _clamp(
        OpKind.RELU,
        floats="floats:relu",
        written=Plain(2, ""),
        onnx={"Relu": "elementwise:clamp", "Clip": "elementwise:clamp"},
    ),
    _clamp(OpKind.RELU6, floats="floats:relu6", written=Plain(2, "")),
    _function(
        OpKind.LEAKY_RELU,
        floats="floats:leaky_relu",
        byte="activation:leaky_relu",
        written=Plain(2, None, LeakyReluAttrs, {"Alpha": "alpha"}, needed=True),
        quant=_leaky_scales,
        onnx={"LeakyRelu": _UNARY},
    ),
    _signed(
        OpKind.ABS,
        floats="floats:absolute",
        byte="activation:absolute",
        written=Plain(2),
        quant=quantrules.check_first_scale,
        onnx={"Abs": _UNARY, "Softsign": "floats:softsign"},
    ),
    _signed(
        OpKind.EXP, floats="floats:exp", byte=_FLOAT, wide=_CURVE, written=Plain(2), onnx={"Exp": _UNARY}
    ),
    _signed(
        OpKind.LOG,
        floats="floats:log",
        byte=_FLOAT,
        wide=_CURVE,
        written=Plain(2, ""),
        onnx={"Log": _UNARY, "Softplus": "floats:softplus"},
    ),
    _function(
        OpKind.GELU,
        floats="floats:gelu",
        byte=_FLOAT,
        wide=_CURVE,
        written=Plain(2, None, GeluAttrs, {"Approximate": "approximate"}),
        onnx={"Gelu": _UNARY},
    ),
    _signed(OpKind.NEG, floats="floats:negate", byte="activation:negate", written=Plain(1)),
    _signed(
        OpKind.SQRT,
        floats="floats:root",
        byte="activation:root",
        written=Plain(1, ""),
        quant=_root_scales,
        onnx={"Sqrt": _UNARY},
    ),
    _signed(
        OpKind.RSQRT,
        floats="floats:inverse_root",
        byte="activation:inverse_square_root",
        wide=_CURVE,
        written=Plain(2, ""),
        quant=_root_scales,
    ),
    _signed(
        OpKind.ELU,
        floats="floats:elu",
        byte=_FLOAT,
        written=Plain(1, ""),
        no_int16=NO_INT16,
        onnx={"Elu": _UNARY},
    ),
    _byte_clamp(OpKind.RELU_N1_TO_1, floats="floats:relu_n1_to_1"),
    _byte_clamp(OpKind.RELU_0_TO_1, floats="floats:relu_0_to_1"),
    _function(
        OpKind.LOGICAL_NOT,
        reference="pairs:negate",
        written=Plain(1),
        types=quantrules.check_truth_values,
        no_int16=NO_INT16,
        case="denied",
    ),
    _function(
        OpKind.LOOKUP,  # made by the rewrite; the second operand is its table, indexed by bit patterns
        shape=_lookup_shape,
        types=_lookup_types,
        case="looked_up",
        operands=2,
    ),
    _function(
        OpKind.QUANTIZE,
        floats="activation:quantize",
        reference="activation:quantize",
        byte="activation:rescale",
        written=Plain(1),
        types=_quantize_types,
        case="requantize",
        conversions=((16, 16), (16, 8), (8, 16), (16, 32), (32, 16), (32, 8)),
    ),
    OpDef(
        OpKind.CAST,
        geometry.same,
        "wide:cast",
        floats="wide:cast",
        decode="opview:decode_plain",
        written="pointwise:write_cast",
        onnx={"Cast": "movement:cast"},
        types=_cast_types,
        call=CallForm.ONE_TO_ONE,
        traits=Trait.PIXEL,
        no_uint8="it takes the stored numbers, 0 to 255, which int8 does not hold; to float32 it is read",
        conversions=((8, 16), (16, 8), (16, 32), (32, 16), (8, 32), (32, 8)),
    ),
    OpDef(
        OpKind.DEQUANTIZE,
        geometry.same,
        "activation:dequantize",
        floats="activation:dequantize",
        written=Plain(2),
        types=_dequantize_types,
        call=CallForm.ONE_TO_ONE,
        traits=Trait.ELEMENT,
    ),
    OpDef(
        OpKind.ERF,
        geometry.same,
        "",
        floats="floats:error",
        no_integers="TFLite has no such operator",
        onnx={"Erf": _UNARY},
        types=quantrules.refuse_integers,
        call=CallForm.ONE_TO_ONE,
        traits=Trait.ELEMENT,
    ),
    OpDef(
        OpKind.SQUARE,
        geometry.same,
        "",
        floats="floats:square",
        no_integers="LiteRT's kernel does not support int8; use MUL of a tensor with itself",
        written=Plain(1),
        onnx={
            "ReduceL2": "floats:norm",
            "ReduceSumSquare": "floats:norm",
            "LayerNormalization": "floats:layer_normalization",
            "RMSNormalization": "floats:layer_normalization",
            "InstanceNormalization": "floats:group_normalization",
            "GroupNormalization": "floats:group_normalization",
        },
        types=quantrules.refuse_integers,
        call=CallForm.ONE_TO_ONE,
        traits=Trait.ELEMENT,
    ),
    _channelwise(
        OpKind.SOFTMAX,
        floats="floats:softmax",
        reference="softmax:softmax",
        written=Plain(2, None, SoftmaxAttrs, {"Beta": "beta"}, needed=True),
        types=_softmax_types,
        output=Quantization((1 / 256,), (-128,)),
        wide="wide:softmax",
        case="softmax",
        onnx={"Softmax": "elementwise:softmax"},
    ),
    _channelwise(
        OpKind.L2_NORMALIZATION,
        floats="floats:l2_normalization",
        reference="softmax:l2_normalization",
        decode="pointwise:decode_l2_normalization",
        no_int16=NO_INT16,
        written=Plain(2, "L2NormOptions"),
        output=Quantization((1 / 128,), (0,)),
        case="normalised",
        no_uint8="LiteRT's uint8 kernel rounds at another place",
    ),
    _channelwise(
        OpKind.LOG_SOFTMAX,
        floats="floats:log_softmax",
        reference="softmax:log_softmax",
        no_int16=NO_INT16,
        written=Plain(2),
        output=Quantization((1 / 16,), (127,)),
        quant=_log_softmax_scales,
        case="normalised",
        onnx={"LogSoftmax": "elementwise:softmax"},
    ),
)
