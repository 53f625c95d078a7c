"""Moves operators before the concatenations of feature maps at a detector's end, if this saves memory.

A detector joins the feature maps of all scales, cuts the result into boxes and classes, and reduces each box
to fewer channels. Then all joined maps are in memory at once, two or three times. If the same operators run
on each map instead, they can follow its convolution row by row, and only the results are joined. Every
element is computed as before.
"""

import math
from dataclasses import replace
from typing import NamedTuple

from buildtool.graph import types as g
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.partviews import SLICES
from buildtool.graph.rewrite.draft import Draft, Node, variant
from buildtool.graph.rewrite.lookups import is_elementwise
from buildtool.graph.types import OpKind

MOST_BYTES = 1 << 12  # constants of an operator that each map may get for itself
Shape = tuple[int, ...]


def simplify_joins(draft: Draft) -> None:
    """Runs operators that follow a concatenation on its parts instead.

    It does so if the parts get smaller, or if the concatenation disappears.
    """
    for node in draft.each(OpKind.CONCATENATION):
        if _is_plain(draft, node):
            _cut_parts(draft, node) or _shrink_parts(draft, node)


def _is_plain(draft: Draft, node: Node) -> bool:
    """Whether a concatenation is the only reader of its parts, and they have its output's quantisation.

    Operators must make the parts, and the concatenation's output must not be a network output.
    """
    joined = node.outputs[0]
    return draft.private(joined) and all(
        draft.only_reader(t) is node
        and node.inputs.count(t) == 1
        and draft.producer(t) is not None
        and draft.same_quantization(t, joined)
        for t in node.inputs
    )


# ---- cuts across all parts -----------------------------------------------------------------------------


class _Part(NamedTuple):
    """How a slice of one operand of a concatenation is computed.

    `source`: the tensor that it is computed from.
    `functions`: the elementwise operators that run on it first.
    `moves`: the RESHAPEs and TRANSPOSEs that follow, each with the shape that its output has for the slice.
    """

    source: int
    functions: tuple[Node, ...]
    moves: tuple[tuple[Node, Shape], ...]


def _cut_parts(draft: Draft, node: Node) -> bool:
    """Replaces a concatenation and the slices that read it by one concatenation for each slice.

    Only slices may read the concatenation. What a slice takes from each operand must be computed from one
    whole operand of an earlier concatenation, by elementwise operators, RESHAPEs and TRANSPOSEs. These then
    run on that operand alone. Returns whether the replacement was possible.
    """
    axis, joined = node.attributes(g.AxisAttrs).axis, node.outputs[0]
    readers, found = draft.readers(joined), list[list[_Part]]()
    for reader in readers:
        along = _axis_of_slice(draft, reader)
        if along is None or along == axis or not draft.same_quantization(joined, reader.outputs[0]):
            return False
        cut = reader.attributes(g.SliceAttrs)
        traced = [_trace(draft, t, along, cut.begin[along], cut.extent[along]) for t in node.inputs]
        found.append([part for part in traced if part is not None])
        if len(found[-1]) < len(traced):
            return False
    sources = [part.source for parts in found for part in parts]
    if len(set(sources)) < len(sources):  # nothing is computed twice
        return False
    for reader, parts in zip(readers, found, strict=True):
        begin = max(reader.attributes(g.SliceAttrs).begin)  # in the dimension that it cuts
        ends = [_repeat(draft, part, str(begin)) for part in parts]
        draft.become(reader, OpKind.CONCATENATION, node.attrs)
        draft.set_inputs(reader, ends)
    if readers:
        draft.remove(node)
    return bool(readers)


def _axis_of_slice(draft: Draft, node: Node) -> int | None:
    """Returns the one dimension that a slice shortens.

    Returns None if it shortens several dimensions, or takes elements that are not adjacent.
    """
    if node.kind not in SLICES:
        return None
    cut, shape = node.attributes(g.SliceAttrs), draft.tensors[node.inputs[0]].shape
    shorter = [d for d, (n, whole) in enumerate(zip(cut.extent, shape, strict=True)) if n != whole]
    plain = set(cut.stride) == {1} and draft.tensors[node.outputs[0]].shape == cut.extent
    return shorter[0] if plain and len(shorter) == 1 else None


def _trace(draft: Draft, t: int, axis: int, begin: int, extent: int) -> _Part | None:
    """Returns how a slice of `t` is computed from an operand of an earlier concatenation.

    The slice takes elements [begin, begin + extent) along `axis`. Returns None if they are not computed from
    one whole operand.
    """
    functions, moves = list[Node](), list[tuple[Node, Shape]]()
    while (node := draft.producer(t)) is not None and draft.only_reader(t) is not None:
        if is_elementwise(draft, node) and len(varying := varying_operands(draft, node)) == 1:
            functions.insert(0, node)
            (t,) = varying
            continue
        if not draft.same_quantization(node.inputs[0], t):
            return None
        if node.kind is OpKind.CONCATENATION:
            source = _operand(draft, node, axis, begin, extent)
            return None if source is None else _Part(source, tuple(functions), tuple(moves))
        shape, before = draft.tensors[t].shape, _axis_before(draft, node, axis)
        if before is None:
            return None
        moves.insert(0, (node, (*shape[:axis], extent, *shape[axis + 1 :])))
        t, axis = node.inputs[0], before
    return None


def _operand(draft: Draft, node: Node, axis: int, begin: int, extent: int) -> int | None:
    first = 0
    for t in node.inputs if node.attrs == g.AxisAttrs(axis) else ():
        length = draft.tensors[t].shape[axis]
        if (first, length) == (begin, extent) and draft.producer(t) is not None:
            return t
        first += length
    return None


def _repeat(draft: Draft, part: _Part, suffix: str) -> int:
    """Inserts copies of a part's operators directly after the producer of its source.

    Returns the output of the last one. `suffix` is added to the names of the tensors.
    """
    t = part.source
    for original in part.functions:
        t = _copy(draft, original, t, draft.tensors[t].shape, suffix)
    for original, shape in part.moves:
        t = _copy(draft, original, t, shape, suffix)
    return t


def _copy(draft: Draft, original: Node, t: int, shape: Shape, suffix: str) -> int:
    """Inserts a copy of `original` that reads `t`, directly after the producer of `t`.

    Returns its output. Its shape is `shape`, and its name is that of the output of `original` with `suffix`.
    """
    tensor, read = variant(draft.tensors[original.outputs[0]], suffix, shape), draft.tensors[t]
    out = draft.add_tensor(
        replace(tensor, dtype=read.dtype, quant=read.quant) if _is_move(original) else tensor
    )
    (varying,), place = varying_operands(draft, original), draft.producer(t)
    inputs = [t if i == varying else i for i in original.inputs]
    assert place is not None
    draft.insert(place, Node(original.kind, inputs, [out], original.attrs, original.index))
    return out


# ---- reductions of all parts ---------------------------------------------------------------------------


def _shrink_parts(draft: Draft, node: Node) -> bool:
    """Runs the operators after a concatenation, up to one that reduces channels, on each part instead.

    They are inserted directly after each part's producer. Returns whether this was possible.
    """
    axis = along = node.attributes(g.AxisAttrs).axis
    chain, axes = chain_to_smaller(draft, node.outputs[0]), list[int]()
    for each in chain:
        after = _axis_after(draft, each, along)
        if after is None or sum(draft.tensors[t].size for t in each.inputs[1:] if t >= 0) > MOST_BYTES:
            return False
        along = after
        axes.append(after)
    ends = []
    for number, t in enumerate(node.inputs if chain else ()):
        end, length = t, draft.tensors[t].shape[axis]
        for each, along in zip(chain, axes, strict=True):
            whole = draft.tensors[each.outputs[0]].shape
            end = _copy(draft, each, end, (*whole[:along], length, *whole[along + 1 :]), str(number))
        ends.append(end)
    if chain:
        for each in chain:
            draft.remove(each)
        draft.become(node, OpKind.CONCATENATION, g.AxisAttrs(axes[-1]))
        draft.set_inputs(node, ends)
        draft.set_outputs(node, chain[-1].outputs)
    return bool(chain)


def chain_to_smaller(draft: Draft, t: int) -> list[Node]:
    """Returns the operators after `t` up to one that makes pixels smaller; [] if there is no such chain.

    Each operator is the only reader of the one before it. Those before the last one keep each pixel's place
    and size, or are RESHAPEs and TRANSPOSEs.
    """
    chain = list[Node]()
    while (node := draft.only_reader(t)) is not None:
        chain.append(node)
        if _makes_pixels_smaller(draft, node):
            return chain
        if not _is_move(node) and not _keeps_pixels(draft, node):
            break
        t = node.outputs[0]
    return []


def _makes_pixels_smaller(draft: Draft, node: Node) -> bool:
    """Whether the operator is a 1x1 convolution that has fewer output channels than input channels."""
    if node.kind is not OpKind.CONV_2D or not all(
        draft.tensors[t].is_constant for t in node.inputs[1:] if t >= 0
    ):
        return False
    window, attrs = draft.tensors[node.inputs[1]].shape[1:3], node.attributes(g.ConvAttrs)
    single = window == attrs.stride == (1, 1) and attrs.pad == g.Pad()
    return single and draft.tensors[node.outputs[0]].size < draft.tensors[node.inputs[0]].size


def _keeps_pixels(draft: Draft, node: Node) -> bool:
    """Whether the operator has one operand, and computes each pixel from the operand's pixel at its place."""
    if node.kind is OpKind.SOFTMAX:
        return True
    return is_elementwise(draft, node) and len(varying_operands(draft, node)) == 1


def _is_move(node: Node) -> bool:
    """Whether the operator is a RESHAPE or TRANSPOSE."""
    return node.kind in ALIAS_KINDS or isinstance(node.attrs, g.TransposeAttrs)


def varying_operands(draft: Draft, node: Node) -> set[int]:
    """Returns the operator's operands that are not constants."""
    return {t for t in node.inputs if t >= 0 and not draft.tensors[t].is_constant}


# ---- dimensions ----------------------------------------------------------------------------------------


def _axis_before(draft: Draft, node: Node, axis: int) -> int | None:
    """Returns which input dimension becomes dimension `axis` of the output of a RESHAPE or TRANSPOSE.

    None if there is no such dimension.
    """
    if isinstance(node.attrs, g.TransposeAttrs):
        return node.attrs.perm[axis]
    if node.kind not in ALIAS_KINDS:
        return None
    return _same_axis(draft.tensors[node.outputs[0]].shape, draft.tensors[node.inputs[0]].shape, axis)


def _axis_after(draft: Draft, node: Node, axis: int) -> int | None:
    """Returns which output dimension of an operator dimension `axis` of its input becomes, or None."""
    if isinstance(node.attrs, g.TransposeAttrs):
        return node.attrs.perm.index(axis)
    shape = draft.tensors[node.outputs[0]].shape
    if node.kind in ALIAS_KINDS:
        return _same_axis(draft.tensors[node.inputs[0]].shape, shape, axis)
    along_pixels = node.kind in (OpKind.SOFTMAX, OpKind.CONV_2D)
    return None if along_pixels and axis == len(shape) - 1 else axis


def _same_axis(shape: Shape, other: Shape, axis: int) -> int | None:
    """Returns the dimension of `other` that corresponds to dimension `axis` of `shape`, or None.

    A tensor of one shape is reshaped to the other one. Dimensions correspond if they have the same size, and
    the same number of elements lies inside them.
    """
    inner = math.prod(shape[axis + 1 :])
    places = (d for d, n in enumerate(other) if n == shape[axis] and math.prod(other[d + 1 :]) == inner)
    return next(places, None)
