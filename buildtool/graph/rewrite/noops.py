"""Dropped, or turned into byte aliases: operators that copy their input, and what no output needs."""

from __future__ import annotations

from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.rewrite.draft import Draft, Node
from buildtool.graph.types import Activation, DType, OpKind, PoolAttrs, SliceAttrs

_EXACT = (DType.INT8, DType.INT16)  # types in which a factor of 1 changes nothing


def drop_noops(draft: Draft) -> None:
    """Bypasses every operator that does nothing, in execution order; joins chains of aliases."""
    for node in draft.nodes:
        if node.dead:
            continue
        if node.kind in ALIAS_KINDS:
            _skip_alias(draft, node)
        if _copies(draft, node):
            draft.bypass(node)


def _skip_alias(draft: Draft, node: Node) -> None:
    """Lets an alias of an alias read the first one's input, if nothing else needs what is between."""
    before = draft.producer(node.inputs[0])
    if before is None or before.kind not in ALIAS_KINDS:
        return
    if draft.only_reader(before.outputs[0]) is node:
        draft.become(node, OpKind.RESHAPE, type(node.attrs)())
        draft.set_input(node, 0, before.inputs[0])
        draft.remove(before)


def _copies(draft: Draft, node: Node) -> bool:
    """Whether the operator's output is its input, byte by byte."""
    if not node.inputs or len(node.outputs) != 1:
        return False
    x, y = draft.tensors[node.inputs[0]], draft.tensors[node.outputs[0]]
    match node.kind:
        case OpKind.RESHAPE | OpKind.SQUEEZE | OpKind.EXPAND_DIMS:
            return x.shape == y.shape and same_quantization(x.quant, y.quant)
        case OpKind.QUANTIZE:
            return x.dtype == y.dtype and x.dtype in _EXACT and same_quantization(x.quant, y.quant)
        case OpKind.CAST:
            return x.dtype == y.dtype and same_quantization(x.quant, y.quant)
        case OpKind.SLICE | OpKind.STRIDED_SLICE:
            part = node.attributes(SliceAttrs)
            taken = zip(part.extent, part.stride, strict=True)
            return part.extent == x.shape and all(s > 0 or n == 1 for n, s in taken)
        case OpKind.CONCATENATION:
            return len(node.inputs) == 1
        case OpKind.SPLIT:
            return True
        case OpKind.TILE | OpKind.SPACE_TO_BATCH_ND | OpKind.BATCH_TO_SPACE_ND:
            return x.shape == y.shape and not any(map(any, getattr(node.attrs, "edges", ())))
        case OpKind.DEPTH_TO_SPACE | OpKind.SPACE_TO_DEPTH:
            return x.shape == y.shape
        case OpKind.REDUCE_MAX | OpKind.REDUCE_MIN:
            return x.elements == y.elements
        case OpKind.MAX_POOL_2D:
            window = node.attributes(PoolAttrs)
            return window.kernel == window.stride == (1, 1) and window.activation == Activation.NONE
    return False


def drop_dead(draft: Draft) -> None:
    """Removes operators whose results are never used, last ones first."""
    _drop_states(draft)
    for node in reversed(draft.nodes):
        if not node.dead and not any(draft.readers(t) or t in draft.outputs for t in node.outputs):
            draft.remove(node)


def _drop_states(draft: Draft) -> None:
    """Removes states that are assigned and never read."""
    for index in reversed(range(len(draft.states))):
        at, end = len(draft.inputs) - len(draft.states), len(draft.outputs) - len(draft.states)
        before = draft.inputs[at + index]
        others = [*draft.outputs[: end + index], *draft.outputs[end + index + 1 :]]
        if not draft.readers(before) and before not in others:
            del draft.states[index], draft.inputs[at + index], draft.outputs[end + index]
            draft.changed = True
