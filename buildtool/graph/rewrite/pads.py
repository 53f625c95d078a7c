"""Simplifies PADs: removes empty ones, merges them, and folds them into convolutions and poolings.

A causal one-dimensional convolution pads before the EXPAND_DIMS that makes an image of its input. In this
case the PAD first moves after the alias.

A PAD of channels before an ADD is removed, and the ADD reads the unpadded operand (`WidenedAttrs`). Detectors
such as BlazeFace widen their shortcuts in this way. The ADD's kernel adds the padding value as a constant;
the result is the same.
"""

from dataclasses import replace

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.fixedpoint import RANGES
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.rewrite.draft import Draft, Node, variant
from buildtool.graph.types import Attrs, OpKind, Pad, Tensor

_CONVOLUTIONS = (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D)
_POOLINGS = (OpKind.MAX_POOL_2D, OpKind.AVERAGE_POOL_2D)


def simplify_pads(draft: Draft) -> None:
    """Removes, merges, folds or moves every PAD, in execution order, including PADs that have been moved."""
    for node in draft.each(OpKind.PAD, OpKind.MIRROR_PAD):
        attrs = node.attributes(g.PadAttrs)
        if not any(map(any, attrs.paddings)):
            draft.bypass(node)
        elif attrs.mode == g.PadMode.CONSTANT:
            _fold(draft, node, attrs)
            if not node.dead and draft.private(node.outputs[0]):
                _merge(draft, node, attrs) or _move_behind_alias(draft, node, attrs)


def _merge(draft: Draft, node: Node, attrs: g.PadAttrs) -> bool:
    """Adds this PAD's sizes to the PADs that read it, and removes it. Returns whether this was possible.

    It is possible if only PADs read it, and all of them pad with the same value.
    """
    readers = draft.readers(node.outputs[0])
    others = [r.attrs for r in readers if isinstance(r.attrs, g.PadAttrs)]
    alike = all((other.mode, other.value) == (attrs.mode, attrs.value) for other in others)
    if not readers or len(others) != len(readers) or not alike:
        return False
    for reader, other in zip(readers, others, strict=True):
        pairs = zip(attrs.paddings, other.paddings, strict=True)
        reader.attrs = replace(other, paddings=tuple((a[0] + b[0], a[1] + b[1]) for a, b in pairs))
        draft.set_input(reader, 0, node.inputs[0])
    draft.remove(node)
    return True


def _fold(draft: Draft, node: Node, attrs: g.PadAttrs) -> None:
    """Moves the padding of rows and columns into the convolutions and poolings that read this PAD.

    The PAD must not change the quantisation. If other operators read it, too, it stays; padding then moves
    only if the PAD's input is in memory until the last reader has run, so that no operator needs more memory.
    """
    (source, *_), (padded,) = node.inputs, node.outputs
    x, readers = draft.tensors[source], draft.readers(padded)
    plain = len(attrs.paddings) == 4 and attrs.paddings[0] == attrs.paddings[3] == (0, 0)
    if not plain or x.quant is None or x.is_constant or not draft.same_quantization(source, padded):
        return
    folded = [(r, made) for r in readers if (made := _with_padding(draft, node, attrs, r)) is not None]
    others = [r for r in readers if all(r is not one for one, _ in folded)]
    stays = bool(others) or not draft.private(padded)
    if stays and not outlives(draft, source, node, [*others, *(r for r, _ in folded)]):
        return
    for reader, made in folded:
        reader.attrs = made
        draft.set_input(reader, 0, source)
    if not stays and readers:
        draft.remove(node)


def outlives(draft: Draft, source: int, pad: Node, readers: list[Node]) -> bool:
    """Whether `source` is in memory until all `readers` of the PAD have run.

    That is so if an operator reads `source` later, or if it is a network output.
    """
    if source in draft.outputs:
        return True
    last = max((draft.nodes.index(reader) for reader in readers), default=-1)
    return any(draft.nodes.index(other) > last for other in draft.readers(source) if other is not pad)


def _with_padding(draft: Draft, pad: Node, attrs: g.PadAttrs, reader: Node) -> Attrs | None:
    """Returns attributes with which `reader` can read the PAD's input and pad it itself, or None.

    A convolution pads with its input's zero point, which adds nothing to its sums. So the PAD must pad with
    the zero point. `attrs`: the PAD's attributes.
    """
    x, (top, bottom), (left, right) = draft.tensors[pad.inputs[0]], *attrs.paddings[1:3]
    if reader.inputs.count(pad.outputs[0]) != 1 or reader.inputs[0] != pad.outputs[0]:
        return None
    if reader.kind in _CONVOLUTIONS and x.quant is not None and attrs.value == x.quant.zero_point:
        conv = reader.attributes(g.ConvAttrs)
        return replace(conv, pad=_add(conv.pad, Pad(top, bottom, left, right)))
    if reader.kind in _POOLINGS:
        pool, shapes = reader.attributes(g.PoolAttrs), (x.shape, draft.tensors[reader.outputs[0]].shape)
        return _pool_with_padding(reader.kind, pool, Pad(top, bottom, left, right), attrs.value, x, shapes[1])
    return None


def _add(a: Pad, b: Pad) -> Pad:
    return Pad(a.top + b.top, a.bottom + b.bottom, a.left + b.left, a.right + b.right)


def _pool_with_padding(
    kind: OpKind, pool: g.PoolAttrs, fill: Pad, value: int, x: Tensor, out: tuple[int, ...]
) -> Attrs | None:
    """Returns the attributes of a pooling of `x` that also does the padding of a PAD; None if no pooling can.

    `pool`: the pooling's attributes, `out`: its output's shape. `fill` and `value`: the PAD's padding.

    Positions that a pooling pads do not count, but those of a PAD do. A maximum is the same either way if the
    PAD's value is the least of the type. Otherwise the padding that windows meet must be only the PAD's or
    only the pooling's. Every window has to meet the input.
    """
    both, own = _add(pool.pad, fill), pool.pad
    axes = (
        ((both.top, both.bottom), (fill.top, fill.bottom), (own.top, own.bottom)),
        ((both.left, both.right), (fill.left, fill.right), (own.left, own.right)),
    )
    met: list[int] = []  # the padding of each side that windows meet
    counts, others = list[bool](), list[bool]()  # whether they meet the PAD's there, or the pooling's own
    for axis, (sizes, filled, ignored) in enumerate(axes):
        last = (out[axis + 1] - 1) * pool.stride[axis] - sizes[0]  # where the last window begins
        if sizes[0] >= pool.kernel[axis] or last >= x.shape[axis + 1]:
            return None
        over = max(0, last + pool.kernel[axis] - x.shape[axis + 1])
        met += (here := [sizes[0], min(sizes[1], over)])
        counts += [bool(n and side) for n, side in zip(here, filled, strict=True)]
        others += [bool(n and side) for n, side in zip(here, ignored, strict=True)]
    moved = replace(pool, pad=Pad(*met))
    is_least = kind is OpKind.MAX_POOL_2D and value <= RANGES[x.dtype][0]
    if isinstance(pool, g.FilledPoolAttrs):
        return None
    if is_least or not any(counts):
        return moved
    mixed = any(other and not count for count, other in zip(counts, others, strict=True))
    average = kind is OpKind.AVERAGE_POOL_2D and (any(others) or isinstance(pool, g.AsUint8))
    return None if mixed or average else g.FilledPoolAttrs(**vars(moved), value=value)


def _move_behind_alias(draft: Draft, node: Node, attrs: g.PadAttrs) -> bool:
    """Moves this PAD after the alias that reads it. Returns whether this was possible.

    The alias then reshapes the unpadded input. It may only add or remove dimensions of size 1, which are
    never padded.
    """
    alias = draft.only_reader(node.outputs[0])
    if alias is None or alias.kind not in ALIAS_KINDS:
        return False
    x, padded = draft.tensors[node.inputs[0]], draft.tensors[node.outputs[0]]
    target = draft.tensors[alias.outputs[0]]
    larger = [d for d, n in enumerate(padded.shape) if n != 1]
    places = [d for d, n in enumerate(target.shape) if n != 1]
    same = [padded.shape[d] for d in larger] == [target.shape[d] for d in places]
    if not same or not draft.same_quantization(node.outputs[0], alias.outputs[0]) or x.is_constant:
        return False
    shape, paddings = list(target.shape), [(0, 0)] * len(target.shape)
    for d, place in zip(larger, places, strict=True):
        shape[place], paddings[place] = x.shape[d], attrs.paddings[d]
    moved = replace(attrs, paddings=tuple(paddings))
    draft.become(alias, OpKind.RESHAPE, Attrs())
    draft.set_input(alias, 0, node.inputs[0])
    draft.put_after(alias, variant(x, "unpadded", tuple(shape)), OpKind.PAD, moved, node.index)
    draft.remove(node)
    return True


# ---- channels ----------------------------------------------------------------------------------------


def widen_additions(draft: Draft) -> None:
    """Folds every PAD that only pads channels into the ADDs that read it, if they are its only readers."""
    for node in draft.each(OpKind.PAD):
        (source, *_), (padded,) = node.inputs, node.outputs
        x, paddings = draft.tensors[source], node.attributes(g.PadAttrs).paddings
        plain = not x.is_constant and x.quant is not None and draft.same_quantization(source, padded)
        if not plain or len(x.shape) != 4 or any(map(any, paddings[:-1])):
            continue
        readers = draft.readers(padded)
        if readers and draft.private(padded) and all(_can_widen(draft, reader, padded) for reader in readers):
            for reader in readers:
                _widen(draft, node, reader)
            draft.remove(node)


def _can_widen(draft: Draft, reader: Node, padded: int) -> bool:
    """Whether `reader` is an ADD of the padded tensor and another activation of the same shape."""
    if reader.kind is not OpKind.ADD or len(reader.inputs) != 2 or reader.inputs[0] == reader.inputs[1]:
        return False
    other = draft.tensors[reader.inputs[1 - reader.inputs.index(padded)]]
    same = other.shape == draft.tensors[padded].shape
    return same and not other.is_constant and type(reader.attrs) is g.ElementwiseAttrs


def _widen(draft: Draft, pad: Node, reader: Node) -> None:
    """Makes the ADD `reader` read the PAD's input in place of its output.

    The PAD's input becomes the second operand, as the order of operands does not matter.
    """
    x, attrs = draft.tensors[pad.inputs[0]], pad.attributes(g.PadAttrs)
    before, after = attrs.paddings[-1]
    values = np.full(max(before, after), attrs.value, x.dtype.value)
    name = draft.tensors[pad.outputs[0]].name + "/filling"
    filling = draft.add_tensor(Tensor(name, values.shape, x.dtype, x.quant, values))
    other = reader.inputs[1 - reader.inputs.index(pad.outputs[0])]
    draft.set_inputs(reader, [other, pad.inputs[0], filling])
    activation = reader.attributes(g.ElementwiseAttrs).activation
    draft.become(reader, OpKind.ADD, g.WidenedAttrs(activation, before))
