"""Functions of the elements at one place of several operands, which broadcast as in numpy."""

from functools import partial

from buildtool.graph import quantrules
from buildtool.graph.geometry import broadcast, demand
from buildtool.graph.ops.types import NO_INT16, NO_UINT8, CallForm, OpDef, Plain, Shape, Spelling, Trait
from buildtool.graph.quantrules import QuantError, check_ratio, check_type, per_tensor, quants
from buildtool.graph.types import DType, Graph, Op, OpKind, WidenedAttrs

# Factor of DIV: with a larger one LiteRT's shift becomes negative.
_LARGEST_QUOTIENTS = {DType.INT8: 2.0**22, DType.INT16: 2.0**15 - 0.5}


def _pair_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    attrs = op.attrs
    if not isinstance(attrs, WidenedAttrs):
        demand(len(shapes) == 2, f"{len(shapes)} inputs, expected 2")
        return broadcast(shapes[0], shapes[1])
    demand(len(shapes) == 3, f"{len(shapes)} inputs, expected 3")
    whole, narrow, filling = shapes
    demand(len(whole) > 0 and whole[:-1] == narrow[:-1], f"shapes {list(whole)} and {list(narrow)}")
    after = whole[-1] - narrow[-1] - attrs.before
    demand(min(attrs.before, after) >= 0, f"{narrow[-1]} channels from {attrs.before} on of {whole[-1]}")
    demand(filling == (max(attrs.before, after),), f"a filling of shape {list(filling)}")
    return whole


def _select_shape(_op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    demand(len(shapes) == 3, f"{len(shapes)} inputs, expected 3")
    return broadcast(shapes[0], broadcast(shapes[1], shapes[2]))


def _prelu_shape(_op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    demand(len(shapes) == 2, f"{len(shapes)} inputs, expected 2")
    demand(broadcast(shapes[0], shapes[1]) == shapes[0], "alpha is larger than the input")
    return shapes[0]


_UNORDERED = (OpKind.EQUAL, OpKind.NOT_EQUAL)


def compares_stored(graph: Graph, op: Op) -> bool:
    """Whether an operator is a comparison that compares stored values, whatever their scales are."""
    return graph.tensors[op.inputs[0]].dtype is DType.INT16 and op.kind not in _UNORDERED


def _comparison_types(graph: Graph, op: Op) -> None:
    """Checks the types of a comparison, from int8 or int16 to truth values.

    EQUAL and NOT_EQUAL also compare truth values.
    """
    check_type(graph.tensors[op.outputs[0]], DType.BOOL)
    operands = [graph.tensors[t] for t in op.inputs]
    if op.kind in _UNORDERED and all(tensor.dtype == DType.BOOL for tensor in operands):
        return
    dtype, stored = operands[0].dtype, compares_stored(graph, op)
    for tensor in operands:
        quant = per_tensor(tensor, dtype if dtype in quantrules.ACTIVATIONS else DType.INT8)
        if quant.scale >= 1 and not stored:  # the reference kernel shifts by a negative distance
            text = "compares elements with a scale of 1 or more, for which LiteRT's result is undefined"
            raise QuantError(text, tensor)


def _select_types(graph: Graph, op: Op) -> None:
    """Checks the types of SELECT_V2: truth values choose between elements of one type."""
    condition, *others = (graph.tensors[t] for t in (*op.inputs, *op.outputs))
    check_type(condition, DType.BOOL)
    dtype = others[0].dtype
    for tensor in others:
        check_type(tensor, dtype if dtype in (DType.BOOL, DType.INT16) else DType.INT8)


def _prelu_types(graph: Graph, op: Op) -> None:
    """Checks the types of PRELU. Alpha is int8: LiteRT reads the bytes of an int16 alpha as int8."""
    x, alpha, out = (graph.tensors[t] for t in (*op.inputs, *op.outputs))
    per_tensor(alpha, DType.INT8)
    for tensor in (x, out):
        per_tensor(tensor, DType.INT16 if x.dtype is DType.INT16 else DType.INT8)


def _sum_scales(graph: Graph, op: Op) -> None:
    """Checks the scales of ADD and SUB.

    TFLite converts both operands to steps of twice the larger scale times 2^-20 (int16: 2^-15). The factor
    from these steps to the output's scale must be below 1.
    """
    (a, b, *_), out = quants(graph, op)
    total = graph.tensors[op.outputs[0]]
    steps = 1 << (15 if total.dtype is DType.INT16 else 20)
    check_ratio(2.0 * max(a.scale, b.scale) / (steps * out.scale), total, 1.0)


def _difference_scales(graph: Graph, op: Op) -> None:
    """Checks the scales of SQUARED_DIFFERENCE.

    The operands are in steps of twice the larger scale times 2^-7 (int16: twice the larger scale). The factor
    from the square of such a step to the output's scale must be below 1.
    """
    (a, b), out = quants(graph, op)
    twice, result = 2.0 * max(a.scale, b.scale), graph.tensors[op.outputs[0]]
    steps = 1 if result.dtype is DType.INT16 else 1 << 14
    check_ratio(twice * twice / (steps * out.scale), result, 1.0)


def _quotient_scales(graph: Graph, op: Op) -> None:
    (a, b), out = quants(graph, op)
    result = graph.tensors[op.outputs[0]]
    check_ratio(a.scale / (b.scale * out.scale), result, _LARGEST_QUOTIENTS[result.dtype])


# Two operands and no parameters.
_plain = partial(
    OpDef, shape=_pair_shape, call=CallForm.SEVERAL, case="pair_of", traits=Trait.PAIR, operands=2
)
# ADD, SUB, MUL: with a fused activation.
_arithmetic = partial(
    _plain,
    bounds="bounds:corners",
    decode="pointwise:decode_arithmetic",
    written="pointwise:write_arithmetic",
    unscaled="wide:unscaled",
    case="elementwise",
    traits=Trait.ARITHMETIC,
)
_extreme = partial(
    _plain, bounds="bounds:corners", written=Plain(2, "MaximumMinimumOptions"), unscaled="wide:unscaled"
)
_comparison = partial(
    _plain,
    reference="pairs:compare",
    floats="floats:compare",
    written=Plain(2),
    types=_comparison_types,
    traits=Trait.COMPARISON,
)
# Operators on truth values.
_logical = partial(_plain, written=Plain(1), types=quantrules.check_truth_values, no_int16=NO_INT16)

DEFS = (
    _arithmetic(
        OpKind.ADD,
        floats="floats:add",
        reference="elementwise:add_sub",
        quant=_sum_scales,
        numpy="add",
        onnx={"Add": "elementwise:elementwise", "Sum": "elementwise:sum_operands"},
    ),
    _arithmetic(
        OpKind.SUB,
        floats="floats:subtract",
        reference="elementwise:add_sub",
        quant=_sum_scales,
        numpy="subtract",
        onnx={"Sub": "elementwise:elementwise"},
    ),
    _arithmetic(
        OpKind.MUL,
        floats="floats:multiply",
        reference="elementwise:mul",
        quant=quantrules.check_product_scales,
        numpy="multiply",
        onnx={
            "Mul": "elementwise:multiply",
            "Neg": "elementwise:negate",
            "HardSigmoid": "elementwise:hard_sigmoid",
        },
    ),
    _extreme(
        OpKind.MAXIMUM,
        floats="floats:larger",
        reference="pairs:larger",
        onnx={"Max": "elementwise:extreme"},
        numpy="maximum",
    ),
    _extreme(
        OpKind.MINIMUM,
        floats="floats:smaller",
        reference="pairs:smaller",
        onnx={"Min": "elementwise:extreme"},
        numpy="minimum",
    ),
    _plain(
        OpKind.SQUARED_DIFFERENCE,
        floats="floats:squared_difference",
        reference="pairs:squared_difference",
        written=Plain(2),
        quant=_difference_scales,
        no_uint8=NO_UINT8,
    ),
    _plain(
        OpKind.POW,
        floats="floats:power",
        reference="",
        no_integers="LiteRT's kernel does not support int8; use MUL for a square, SQRT for a root",
        written=Plain(1),
        onnx={"Pow": "floats:power"},
        types=quantrules.refuse_integers,
        case="",
    ),
    _plain(
        OpKind.DIV,
        floats="floats:divide",
        reference="pairs:divide",
        unscaled="wide:unscaled",
        decode="pointwise:decode_arithmetic",
        written="pointwise:write_div",
        quant=_quotient_scales,
        case="quotient",
        onnx={"Div": "elementwise:divide", "Reciprocal": "elementwise:reciprocal"},
    ),
    _comparison(OpKind.EQUAL),
    _comparison(OpKind.NOT_EQUAL),
    _comparison(OpKind.LESS),
    _comparison(OpKind.LESS_EQUAL),
    _comparison(OpKind.GREATER),
    _comparison(OpKind.GREATER_EQUAL),
    _logical(OpKind.LOGICAL_AND, reference="pairs:smaller"),
    _logical(OpKind.LOGICAL_OR, reference="pairs:larger"),
    _plain(
        OpKind.SELECT_V2,
        shape=_select_shape,
        reference="pairs:select",
        floats="pairs:select",
        decode="pointwise:decode_select_v2",
        also=(Spelling("SELECT", "pointwise:decode_select"),),
        written=Plain(1),
        types=_select_types,
        case="select",
        operands=3,
    ),
    _plain(
        OpKind.PRELU,
        shape=_prelu_shape,
        reference="elementwise:prelu",
        floats="floats:prelu",
        decode="pointwise:decode_prelu",
        written=Plain(1, ""),
        types=_prelu_types,
        quant=quantrules.check_product_scales,
        case="prelu",
        traits=Trait.ELEMENT,
        onnx={"PRelu": "elementwise:prelu"},
    ),
)
