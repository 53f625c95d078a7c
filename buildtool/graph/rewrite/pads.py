"""Simplifies PADs: removes empty ones, merges consecutive ones, and folds them into convolutions.

A causal one-dimensional convolution pads before the EXPAND_DIMS that makes an image of its input. In this
case the PAD first moves after the alias.

A PAD of channels before an ADD is removed, and the ADD reads the unpadded operand (`WidenedAttrs`). Detectors
such as BlazeFace widen their shortcuts in this way. The ADD's kernel adds the padding value as a constant;
the result is the same.
"""

from dataclasses import replace

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.rewrite.draft import Draft, Node, variant
from buildtool.graph.types import Attrs, OpKind, Pad, Tensor

_CONVOLUTIONS = (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D)


def simplify_pads(draft: Draft) -> None:
    """Removes, merges, folds or moves every PAD, in execution order, including PADs that have been moved."""
    for node in draft.each(OpKind.PAD, OpKind.MIRROR_PAD):
        attrs = node.attributes(g.PadAttrs)
        if not any(map(any, attrs.paddings)):
            draft.bypass(node)
        elif attrs.mode == g.PadMode.CONSTANT and draft.private(node.outputs[0]):
            _merge(draft, node, attrs) or _fold(draft, node, attrs) or _move_behind_alias(draft, node, attrs)


def _merge(draft: Draft, node: Node, attrs: g.PadAttrs) -> bool:
    """Adds this PAD's sizes to the PADs that read it. Nothing else may read it.

    All PADs must pad with the same value.
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


def _fold(draft: Draft, node: Node, attrs: g.PadAttrs) -> bool:
    """Moves the padding of rows and columns into the convolutions that read this PAD.

    A convolution pads with its input's zero point, which adds nothing to its sums. So the PAD must pad with
    the zero point and must not change the quantisation.
    """
    readers, x = draft.readers(node.outputs[0]), draft.tensors[node.inputs[0]]
    fits = (
        len(attrs.paddings) == 4
        and attrs.paddings[0] == attrs.paddings[3] == (0, 0)
        and x.quant is not None
        and draft.same_quantization(node.inputs[0], node.outputs[0])
        and attrs.value == x.quant.zero_point
        and all(r.kind in _CONVOLUTIONS and r.inputs.count(node.outputs[0]) == 1 for r in readers)
    )
    if not fits or not readers or x.is_constant:
        return False
    (top, bottom), (left, right) = attrs.paddings[1:3]
    for reader in readers:
        conv = reader.attributes(g.ConvAttrs)
        own = conv.pad
        pad = Pad(own.top + top, own.bottom + bottom, own.left + left, own.right + right)
        reader.attrs = replace(conv, pad=pad)
        draft.set_input(reader, 0, node.inputs[0])
    draft.remove(node)
    return True


def _move_behind_alias(draft: Draft, node: Node, attrs: g.PadAttrs) -> bool:
    """Moves this PAD after the alias that reads it, which then reshapes the unpadded input.

    This is possible if the alias only adds or removes dimensions of size 1. Such dimensions are never padded.
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
    """Returns whether `reader` is an ADD of the padded tensor and another activation of the same shape."""
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
