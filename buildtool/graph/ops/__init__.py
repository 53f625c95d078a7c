"""The operators: one definition a kind (`OpDef`), a file a family; what else is to know derives from it.

A new operator is a kind of `graph.types.OpKind`, a definition in its family's file, and the arithmetic that
the definition names.
"""

from buildtool.graph.ops import aliases, conv, lookups, moves, pairs, recurrent, reductions, rows, windows
from buildtool.graph.ops.types import OpDef, Trait
from buildtool.graph.types import Graph, Op, OpKind

_FAMILIES = (conv, windows, pairs, lookups, rows, reductions, moves, aliases, recurrent)
DEFS: dict[OpKind, OpDef] = {found.kind: found for family in _FAMILIES for found in family.DEFS}


def _with(trait: Trait) -> frozenset[OpKind]:
    return frozenset(kind for kind, found in DEFS.items() if trait in found.traits)


def _in_order(trait: Trait, without: frozenset[OpKind] = frozenset()) -> tuple[OpKind, ...]:
    return tuple(kind for kind, found in DEFS.items() if trait in found.traits and kind not in without)


# No code runs, input and output share one buffer.
ALIAS_KINDS = _with(Trait.ALIAS)
# int8 (or uint8) to int8 (or uint8) functions of one element: a table of 256 bytes says all.
TABLE_KINDS = _with(Trait.TABLE)
# Truth values of the order of two operands.
COMPARISONS = _with(Trait.COMPARISON)
# Functions of the elements at one place of several operands, which broadcast as numpy does.
PAIR_KINDS = _with(Trait.PAIR)
# Operators whose output pixel is made of the input's pixels at its place alone.
PIXEL_KINDS = _with(Trait.PIXEL)
# Operators whose output pixel is made of a window of the first input, which moves by a whole stride.
SLIDING_KINDS = _with(Trait.SLIDING)
# The same where the window moves by no whole stride: what enlarges its input, or makes it less by any ratio.
UNEVEN_KINDS = _with(Trait.UNEVEN)
# The definitions by the ONNX operators that are read as them.
ONNX: dict[str, OpDef] = {name: found for found in DEFS.values() for name in found.onnx}
# Operators that update state where it lies: operand -> the output that is its new value, the same bytes.
STATEFUL = {kind: found.state for kind, found in DEFS.items() if found.state}
# What a kernel catalogue may name in place of a list of operators.
CLASSES: dict[str, tuple[OpKind, ...]] = {
    "@lookup": _in_order(Trait.TABLE),
    "@comparison": _in_order(Trait.COMPARISON),
    "@pair": _in_order(Trait.PAIR, without=_with(Trait.ARITHMETIC)),
}


def varying(graph: Graph, op: Op) -> int | None:
    """The position of the only operand of `op` that decides its output's bytes, one for one; else None.

    So it is for TABLE_KINDS, and for PAIR_KINDS whose other operands are constants of one element.
    """
    op = op.as_seen
    if op.kind in TABLE_KINDS:
        return 0
    if op.kind not in PAIR_KINDS:
        return None
    found = [i for i, t in enumerate(op.inputs) if not graph.tensors[t].is_constant]
    if len(found) != 1:
        return None
    others = (graph.tensors[t] for i, t in enumerate(op.inputs) if i != found[0])
    same = graph.tensors[op.inputs[found[0]]].nhwc == graph.tensors[op.outputs[0]].nhwc
    return found[0] if same and all(tensor.elements == 1 for tensor in others) else None
