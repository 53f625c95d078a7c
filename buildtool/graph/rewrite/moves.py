"""Removes copies and unused operators; simplifies SPLITs, channel shuffles and TILEs."""

import math

from buildtool.graph import types as g
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.quantrules import WORDS
from buildtool.graph.rewrite.draft import Draft, Node, variant
from buildtool.graph.types import Activation, Attrs, DType, OpKind, Pad

_EXACT = (DType.INT8, DType.INT16)  # types in which a factor of 1 changes nothing


def drop_noops(draft: Draft) -> None:
    """Bypasses every operator that only copies, in execution order. Joins chains of aliases."""
    for node in draft.nodes:
        if node.dead:
            continue
        if node.kind is OpKind.CAST and _is_relabelling(draft, node):
            draft.become(node, OpKind.RESHAPE, Attrs())
        before = draft.producer(node.inputs[0]) if node.kind in ALIAS_KINDS else None
        if before and before.kind in ALIAS_KINDS and draft.only_reader(before.outputs[0]) is node:
            draft.become(node, OpKind.RESHAPE, type(node.attrs)())
            draft.set_input(node, 0, before.inputs[0])
            draft.remove(before)
        if _is_copy(draft, node):
            draft.bypass(node)


def _is_relabelling(draft: Draft, node: Node) -> bool:
    """Whether an operator is a CAST that keeps all bits: from int32 to uint32, or back."""
    tensors = [draft.tensors[t] for t in (node.inputs[0], node.outputs[0])]
    plain = all(tensor.quant is None and tensor.dtype in WORDS for tensor in tensors)
    return plain and tensors[0].dtype is not tensors[1].dtype


def _is_copy(draft: Draft, node: Node) -> bool:
    """Returns whether the operator's output has the same bytes as its input."""
    if not node.inputs or len(node.outputs) != 1:
        return False
    x, y = draft.tensors[node.inputs[0]], draft.tensors[node.outputs[0]]
    same = x.dtype == y.dtype and draft.same_quantization(node.inputs[0], node.outputs[0])
    turns_nan = x.dtype is DType.FLOAT32  # an extreme makes the largest finite number of NaN and infinity
    match node.kind:
        case OpKind.RESHAPE | OpKind.SQUEEZE | OpKind.EXPAND_DIMS:
            return x.shape == y.shape and same
        case OpKind.QUANTIZE:
            return same and x.dtype in _EXACT
        case OpKind.CAST:
            return same
        case OpKind.SLICE | OpKind.STRIDED_SLICE:
            part = node.attributes(g.SliceAttrs)
            steps = zip(part.extent, part.stride, strict=True)
            return part.extent == x.shape and all(s > 0 or n == 1 for n, s in steps)
        case OpKind.CONCATENATION:
            return len(node.inputs) == 1
        case OpKind.SPLIT:
            return True
        case OpKind.TILE | OpKind.SPACE_TO_BATCH_ND | OpKind.BATCH_TO_SPACE_ND:
            return x.shape == y.shape and not any(map(any, getattr(node.attrs, "edges", ())))
        case OpKind.DEPTH_TO_SPACE | OpKind.SPACE_TO_DEPTH:
            return x.shape == y.shape
        case OpKind.REDUCE_MAX | OpKind.REDUCE_MIN:
            return x.elements == y.elements and not turns_nan
        case OpKind.MAX_POOL_2D if not turns_nan:
            window = node.attributes(g.PoolAttrs)
            plain = window.pad == Pad() and window.activation == Activation.NONE
            return plain and window.kernel == window.stride == (1, 1)
    return False


def drop_dead(draft: Draft) -> None:
    """Removes states that are never read, and operators whose results are not used, from last to first."""
    for index in reversed(range(len(draft.states))):
        at, end = len(draft.inputs) - len(draft.states), len(draft.outputs) - len(draft.states)
        before = draft.inputs[at + index]
        others = [*draft.outputs[: end + index], *draft.outputs[end + index + 1 :]]
        if not draft.readers(before) and before not in others:
            del draft.states[index], draft.inputs[at + index], draft.outputs[end + index]
            draft.changed = True
    for node in reversed(draft.nodes):
        if not node.dead and not any(draft.readers(t) or t in draft.outputs for t in node.outputs):
            draft.remove(node)


# ---- channels ----------------------------------------------------------------------------------------


def slice_channels(draft: Draft) -> None:
    """Turns every SPLIT of an image's channels into one SLICE per output, which can run row by row."""
    for node in draft.each(OpKind.SPLIT):
        source, shape = node.inputs[0], draft.tensors[node.inputs[0]].shape
        if node.attrs != g.AxisAttrs(3) or len(shape) != 4 or shape[0] != 1 or shape[1] * shape[2] == 1:
            continue
        draft.remove(node)
        start, last = 0, node
        for t in node.outputs:
            extent = draft.tensors[t].shape
            attrs = g.SliceAttrs((0, 0, 0, start), (1, 1, 1, 1), extent)
            part = Node(OpKind.SLICE, [source], [t], attrs, node.index)
            draft.insert(last, part)
            start, last = start + extent[3], part


def shuffle_channels(draft: Draft) -> None:
    """Turns RESHAPE, TRANSPOSE and RESHAPE that shuffle channels into one operator, which can run row by row.

    The first RESHAPE splits the channels into (groups, channels of a group); the TRANSPOSE swaps the two.
    """
    for node in draft.each(OpKind.TRANSPOSE):
        before, after = draft.producer(node.inputs[0]), draft.only_reader(node.outputs[0])
        if before is None or after is None or draft.only_reader(node.inputs[0]) is None:
            continue
        if before.kind is not OpKind.RESHAPE or after.kind is not OpKind.RESHAPE:
            continue
        image, grouped = (draft.tensors[t].shape for t in (before.inputs[0], node.inputs[0]))
        last = len(grouped) - 1
        swaps = node.attrs == g.TransposeAttrs((*range(last - 1), last, last - 1))
        same = len(image) == 4 and image == draft.tensors[after.outputs[0]].shape
        if last >= 2 and swaps and same and image[3] == math.prod(grouped[-2:]):
            draft.become(node, OpKind.TRANSPOSE, g.ShuffleAttrs(grouped[-2]))
            draft.set_input(node, 0, before.inputs[0])
            draft.remove(before)
            draft.remove(after)
            draft.set_outputs(node, list(after.outputs))


# ---- repetitions -------------------------------------------------------------------------------------


def drop_repeats(draft: Draft) -> None:
    """Makes arithmetic operators read a TILE's input directly, because they can broadcast it."""
    for node in draft.each(OpKind.TILE):
        (source, *_), (repeated,) = node.inputs, node.outputs
        for reader in draft.readers(repeated):
            if isinstance(reader.attrs, g.ElementwiseAttrs) and _broadcasts(draft, node, reader):
                draft.set_input(reader, reader.inputs.index(repeated), source)
        if draft.private(repeated) and not draft.readers(repeated):
            draft.remove(node)


def _broadcasts(draft: Draft, tile: Node, reader: Node) -> bool:
    """Whether the arithmetic operator `reader` computes the same values if it reads the TILE's input."""
    x, same = draft.tensors[tile.inputs[0]], draft.same_quantization(tile.inputs[0], tile.outputs[0])
    if reader.inputs.count(tile.outputs[0]) != 1 or not same:
        return False
    multiples = tile.attributes(g.TileAttrs).multiples
    if any(n != 1 and times != 1 for n, times in zip(x.shape, multiples, strict=True)):
        return False
    out = draft.tensors[reader.outputs[0]].shape
    other = reader.inputs[1 - reader.inputs.index(tile.outputs[0])]
    leading = x.shape[: len(x.shape) - 3]
    whole = leading == out[: len(out) - 3] or all(n == 1 for n in leading)
    return draft.tensors[other].shape == out and whole


def pool_extremes(draft: Draft) -> None:
    """Turns REDUCE_MAX over rows and columns of images into MAX_POOL_2D, for which there are kernels."""
    for node in draft.each(OpKind.REDUCE_MAX):
        attrs, x = node.attributes(g.MeanAttrs), draft.tensors[node.inputs[0]]
        if len(x.shape) != 4 or attrs.axes != (1, 2) or x.dtype is DType.FLOAT32:
            continue
        draft.become(node, OpKind.MAX_POOL_2D, g.PoolAttrs(x.shape[1:3], (1, 1)))
        if not attrs.keep_dims:
            out = draft.tensors[node.outputs[0]]
            pooled = variant(out, "pooled", (x.shape[0], 1, 1, x.shape[3]))
            draft.put_after(node, pooled, OpKind.RESHAPE, Attrs())
