"""Recurrent layers, and state between invokes."""

from buildtool.graph import geometry
from buildtool.graph.geometry import axis_of, demand
from buildtool.graph.ops.types import NO_INT16, NO_UINT8, CallForm, OpDef, Shape
from buildtool.graph.quantrules import QuantError
from buildtool.graph.types import Graph, LstmInput, Op, OpKind


def _shift_shape(op: Op, shapes: list[Shape], outputs: list[Shape]) -> Shape:
    demand(len(shapes) == 2 and shapes[0] == outputs[0], "a shift's output must have its state's shape")
    axis = axis_of(op, len(shapes[0]))
    rest = [(a, b) for d, (a, b) in enumerate(zip(*shapes, strict=False)) if d != axis]
    fits = len(shapes[1]) == len(shapes[0]) and all(a == b for a, b in rest)
    text = f"values of shape {list(shapes[1])} cannot be shifted into {list(shapes[0])}"
    demand(fits and shapes[1][axis] < shapes[0][axis], text)
    return shapes[0]


def _state_types(graph: Graph, op: Op) -> None:
    """Demands one type for all tensors of READ_VARIABLE, ASSIGN_VARIABLE and SHIFT. It may be any type."""
    out = graph.tensors[op.outputs[0]]
    for t in op.inputs:
        if graph.tensors[t].dtype != out.dtype:
            raise QuantError(f"type {graph.tensors[t].dtype}, expected {out.dtype}", graph.tensors[t])


_NEEDED = {LstmInput.X, LstmInput.HIDDEN_STATE, LstmInput.CELL_STATE}

DEFS = (
    OpDef(
        OpKind.SVDF,
        None,
        "recurrent:svdf",
        decode="recurrent:decode_svdf",
        no_int16=NO_INT16,
        written="recurrent:write_svdf",
        call=CallForm.RECURRENT,
        case="svdf",
        operands=5,
        optional=frozenset({3}),
        state={4: 1},
        whole="recurrent:svdf",
        no_uint8=NO_UINT8,
    ),
    OpDef(
        OpKind.UNIDIRECTIONAL_SEQUENCE_LSTM,
        None,
        "recurrent:lstm",
        wide="lstm16:lstm",
        decode="recurrent:decode_lstm",
        written="recurrent:write_lstm",
        call=CallForm.RECURRENT,
        case="lstm",
        operands=len(LstmInput),
        optional=frozenset(set(LstmInput) - _NEEDED),
        state={LstmInput.HIDDEN_STATE: 1, LstmInput.CELL_STATE: 2},
        whole="recurrent:lstm",
        no_uint8=NO_UINT8,
    ),
    OpDef(
        OpKind.READ_VARIABLE,
        geometry.same,
        "shape:copy",
        written="writer:write_read_variable",
        types=_state_types,
        call=CallForm.COPIES,
        copies="strided:whole",
    ),
    OpDef(
        OpKind.ASSIGN_VARIABLE,
        geometry.same,
        "shape:copy",
        types=_state_types,
        call=CallForm.COPIES,
        copies="strided:whole",
    ),
    OpDef(
        OpKind.SHIFT,  # drops the first elements along an axis and appends its second operand at the end
        _shift_shape,
        "shape:shift",
        written="writer:write_shift",
        types=_state_types,
        call=CallForm.COPIES,
        operands=2,
        state={0: 0},
        copies="strided:shift",
    ),
)
