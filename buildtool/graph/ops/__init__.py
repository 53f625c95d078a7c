"""The operators: one definition (`OpDef`) per kind, one file per family. Everything else derives from these.

A new operator needs a kind in `graph.types.OpKind`, a definition in its family's file, and the arithmetic
that the definition names.
"""

from buildtool.graph.ops import conv, detection, lookups, moves, moving, pairs, recurrent, reductions, signal
from buildtool.graph.ops.types import OpDef, Trait
from buildtool.graph.types import Graph, Op, OpKind

_FAMILIES = (
    conv.DEFS,
    reductions.WINDOWS,
    pairs.DEFS,
    lookups.DEFS,
    reductions.DEFS,
    moves.DEFS,
    detection.DEFS,
    recurrent.DEFS,
    moving.DEFS,
    signal.DEFS,
)
DEFS: dict[OpKind, OpDef] = {one.kind: one for family in _FAMILIES for one in family}


def _with(trait: Trait) -> frozenset[OpKind]:
    return frozenset(kind for kind, one in DEFS.items() if trait in one.traits)


# No code runs: input and output share one buffer.
ALIAS_KINDS = _with(Trait.ALIAS)
# Functions from one 8-bit element to 8 bits, so a table of 256 bytes can compute them.
TABLE_KINDS = _with(Trait.TABLE)
# Comparisons of two operands, with truth values as results.
COMPARISONS = _with(Trait.COMPARISON)
# Functions of the elements at one place of several operands, which broadcast as in numpy.
PAIR_KINDS = _with(Trait.PAIR)
# Operators whose output element depends only on the inputs' elements at the same place.
ELEMENT_KINDS = _with(Trait.ELEMENT)
# Operators whose output pixel depends only on the inputs' pixels at the same place.
PIXEL_KINDS = _with(Trait.PIXEL)
# Operators whose output channel depends only on the inputs' same channels, unless an attribute or a constant
# mixes them.
CHANNEL_KINDS = _with(Trait.CHANNEL)
# Operators whose output pixel depends on a window of the first input, which moves by a whole stride.
SLIDING_KINDS = _with(Trait.SLIDING)
# The same where the window does not move by a whole stride: operators that enlarge or shrink by any ratio.
UNEVEN_KINDS = _with(Trait.UNEVEN)
# ONNX operator -> the definition that it is read as.
ONNX: dict[str, OpDef] = {name: one for one in DEFS.values() for name in one.onnx}
# Operators that update state in place: operand -> the output that is its new value, in the same bytes.
STATEFUL = {kind: one.state for kind, one in DEFS.items() if one.state}
# Names that a kernel catalogue may use instead of a list of operators.
CLASSES: dict[str, tuple[OpKind, ...]] = {
    "@lookup": tuple(kind for kind in DEFS if kind in TABLE_KINDS),
    "@comparison": tuple(kind for kind in DEFS if kind in COMPARISONS),
    "@pair": tuple(kind for kind in DEFS if kind in PAIR_KINDS - _with(Trait.ARITHMETIC)),
}


def varying(graph: Graph, op: Op) -> int | None:
    """Returns the position of the one operand that determines the output, or None.

    Each output byte then depends only on the byte of this operand at the same place. TABLE_KINDS have such an
    operand. PAIR_KINDS have one if their other operands are constants of one element.
    """
    op = op.as_seen
    if op.kind in TABLE_KINDS:
        return 0
    if op.kind not in PAIR_KINDS:
        return None
    operands = [graph.tensors[t] for t in op.inputs]
    activations = [i for i, tensor in enumerate(operands) if not tensor.is_constant]
    if len(activations) != 1 or any(tensor.is_constant and tensor.elements != 1 for tensor in operands):
        return None
    same = operands[activations[0]].nhwc == graph.tensors[op.outputs[0]].nhwc
    return activations[0] if same else None
