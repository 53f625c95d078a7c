"""Which of an operator's operands vary: with constants of one element beside one tensor it is a lookup."""

from __future__ import annotations

from buildtool.graph.ops import PAIR_KINDS, TABLE_KINDS
from buildtool.graph.types import Graph, Op


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
