"""Functions of the elements at one place of several operands, which broadcast as numpy does."""

from collections.abc import Mapping

from buildtool.graph import quantrules
from buildtool.graph.geometry import broadcast, demand
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
from buildtool.graph.quantrules import QuantError, int8_activations, per_tensor, quants, ratio, typed
from buildtool.graph.types import DType, Graph, Op, OpKind, WidenedAttrs

_LARGEST_QUOTIENT = 2.0**22  # of DIV: beyond it LiteRT's shift turns negative


def _pair_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    if isinstance(op.attrs, WidenedAttrs):
        return _widened(op.attrs, shapes)
    demand(len(shapes) == 2, f"{len(shapes)} inputs, expected 2")
    return broadcast(shapes[0], shapes[1])


def _widened(attrs: WidenedAttrs, shapes: list[Shape]) -> Shape:
    demand(len(shapes) == 3, f"{len(shapes)} inputs, expected 3")
    whole, narrow, filling = shapes
    demand(len(whole) > 0 and whole[:-1] == narrow[:-1], f"shapes {list(whole)} and {list(narrow)}")
    behind = whole[-1] - narrow[-1] - attrs.before
    demand(min(attrs.before, behind) >= 0, f"{narrow[-1]} channels from {attrs.before} on of {whole[-1]}")
    demand(filling == (max(attrs.before, behind),), f"a filling of shape {list(filling)}")
    return whole


def _select_shape(_op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    demand(len(shapes) == 3, f"{len(shapes)} inputs, expected 3")
    return broadcast(shapes[0], broadcast(shapes[1], shapes[2]))


def _prelu_shape(_op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    demand(len(shapes) == 2, f"{len(shapes)} inputs, expected 2")
    demand(broadcast(shapes[0], shapes[1]) == shapes[0], "alpha is larger than the input")
    return shapes[0]


def _compared_types(graph: Graph, op: Op) -> None:
    """EQUAL and its kin: int8, or truth values where there is no order to ask for; truth values out."""
    typed(graph.tensors[op.outputs[0]], DType.BOOL)
    operands = [graph.tensors[t] for t in op.inputs]
    unordered = op.kind in (OpKind.EQUAL, OpKind.NOT_EQUAL)
    if unordered and all(tensor.dtype == DType.BOOL for tensor in operands):
        return
    for tensor in operands:
        if per_tensor(tensor, DType.INT8).scale >= 1:  # the reference kernel shifts by a negative distance
            raise QuantError(
                "compared elements of a scale of 1 or more, for which LiteRT has no result", tensor
            )


def _selected_types(graph: Graph, op: Op) -> None:
    """SELECT_V2: truth values choose among elements of one type, which are moved as they are."""
    condition, *others = (graph.tensors[t] for t in (*op.inputs, *op.outputs))
    typed(condition, DType.BOOL)
    for tensor in others:
        typed(tensor, DType.BOOL if others[0].dtype == DType.BOOL else DType.INT8)


def _sums_scales(graph: Graph, op: Op) -> None:
    """ADD, SUB: TFLite scales both operands to twice the larger scale, times 2^-20; factors below 1."""
    (a, b, *_), out = quants(graph, op)
    twice = 2.0 * max(a.scale, b.scale)
    left = 15 if graph.tensors[op.outputs[0]].dtype is DType.INT16 else 20
    ratio(twice / ((1 << left) * out.scale), graph.tensors[op.outputs[0]], 1.0)


def _difference_scales(graph: Graph, op: Op) -> None:
    """SQUARED_DIFFERENCE: the square of 2^7 steps of twice the larger scale is never scaled up."""
    (a, b), out = quants(graph, op)
    twice = 2.0 * max(a.scale, b.scale)
    ratio(twice * twice / ((1 << 14) * out.scale), graph.tensors[op.outputs[0]], 1.0)


def _quotient_scales(graph: Graph, op: Op) -> None:
    (a, b), out = quants(graph, op)
    ratio(a.scale / (b.scale * out.scale), graph.tensors[op.outputs[0]], _LARGEST_QUOTIENT)


def _arithmetic(
    kind: OpKind,
    reference: str,
    quant: QuantRule,
    numpy: str,
    onnx: Mapping[str, str],
) -> OpDef:
    """ADD, SUB, MUL: with a fused activation."""
    return OpDef(
        kind,
        _pair_shape,
        reference,
        read=(Spelling(kind, "pointwise:arithmetic", Int16.READ),),
        written="pointwise:write_arithmetic",
        types=quantrules.int16_too,
        quant=quant,
        call=CallForm.SEVERAL,
        case="elementwise",
        traits=Trait.ARITHMETIC,
        operands=2,
        onnx=onnx,
        numpy=numpy,
    )


def _plain(
    kind: OpKind,
    reference: str,
    written: Plain,
    types: QuantRule = int8_activations,
    quant: QuantRule | None = None,
    int16: Int16 = Int16.NOT_HERE,
    traits: Trait = Trait.PAIR,
    onnx: str = "",
    numpy: str = "",
    no_uint8: str = "",
) -> OpDef:
    """Two operands and no parameters."""
    return OpDef(
        kind,
        _pair_shape,
        reference,
        read=(Spelling(kind, int16=int16),),
        written=written,
        types=types,
        quant=quant,
        call=CallForm.SEVERAL,
        case="pair_of",
        traits=traits,
        operands=2,
        onnx={onnx: "elementwise:extreme"} if onnx else {},
        numpy=numpy,
        no_uint8=no_uint8,
    )


def _comparison(kind: OpKind, reference: str, options: str) -> OpDef:
    types = _compared_types
    return _plain(kind, reference, Plain(2, options), types, traits=Trait.COMPARISON)


def _logical(kind: OpKind, reference: str, options: str) -> OpDef:
    """Of truth values."""
    types = quantrules.truth_values
    return _plain(kind, reference, Plain(1, options), types, int16=Int16.NOT_IN_LITERT)


_EXTREME = Plain(2, "MaximumMinimumOptions")

DEFS = (
    _arithmetic(
        OpKind.ADD,
        "elementwise:add_sub",
        _sums_scales,
        "add",
        {"Add": "elementwise:elementwise", "Sum": "elementwise:summed"},
    ),
    _arithmetic(
        OpKind.SUB,
        "elementwise:add_sub",
        _sums_scales,
        "subtract",
        {"Sub": "elementwise:elementwise"},
    ),
    _arithmetic(
        OpKind.MUL,
        "elementwise:mul",
        quantrules.product,
        "multiply",
        {
            "Mul": "activations:multiply",
            "Neg": "elementwise:negated",
            "HardSigmoid": "activations:hard_sigmoid",
        },
    ),
    _plain(OpKind.MAXIMUM, "pairs:larger", _EXTREME, onnx="Max", numpy="maximum"),
    _plain(OpKind.MINIMUM, "pairs:smaller", _EXTREME, onnx="Min", numpy="minimum"),
    _plain(
        OpKind.SQUARED_DIFFERENCE,
        "pairs:squared_difference",
        Plain(2, "SquaredDifferenceOptions"),
        quant=_difference_scales,
        int16=Int16.NOT_IN_LITERT,
        no_uint8=NO_UINT8,
    ),
    OpDef(
        OpKind.DIV,
        _pair_shape,
        "pairs:divide",
        read=(Spelling("DIV", "pointwise:arithmetic"),),
        written="pointwise:write_div",
        quant=_quotient_scales,
        call=CallForm.SEVERAL,
        case="quotient",
        traits=Trait.PAIR,
        operands=2,
        onnx={"Div": "elementwise:divide", "Reciprocal": "elementwise:reciprocal"},
    ),
    _comparison(OpKind.EQUAL, "pairs:equal", "EqualOptions"),
    _comparison(OpKind.NOT_EQUAL, "pairs:not_equal", "NotEqualOptions"),
    _comparison(OpKind.LESS, "pairs:less", "LessOptions"),
    _comparison(OpKind.LESS_EQUAL, "pairs:less_equal", "LessEqualOptions"),
    _comparison(OpKind.GREATER, "pairs:greater", "GreaterOptions"),
    _comparison(OpKind.GREATER_EQUAL, "pairs:greater_equal", "GreaterEqualOptions"),
    _logical(OpKind.LOGICAL_AND, "pairs:smaller", "LogicalAndOptions"),
    _logical(OpKind.LOGICAL_OR, "pairs:larger", "LogicalOrOptions"),
    OpDef(
        OpKind.SELECT_V2,
        _select_shape,
        "pairs:select",
        read=(Spelling("SELECT", "pointwise:select"), Spelling("SELECT_V2", "pointwise:select_v2")),
        written=Plain(1, "SelectV2Options"),
        types=_selected_types,
        call=CallForm.SEVERAL,
        case="select",
        traits=Trait.PAIR,
        operands=3,
    ),
    OpDef(
        OpKind.PRELU,
        _prelu_shape,
        "elementwise:prelu",
        read=(Spelling("PRELU", "pointwise:prelu"),),
        written=Plain(1),
        quant=quantrules.product,
        call=CallForm.SEVERAL,
        case="prelu",
        traits=Trait.PIXEL,
        operands=2,
        onnx={"PRelu": "activations:prelu"},
    ),
)
