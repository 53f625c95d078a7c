"""PAD: dropped where it pads nothing, merged with the next one, folded into convolutions.

A causal one-dimensional convolution pads before the EXPAND_DIMS that makes an image of its input:
there the PAD first moves behind the alias.
"""

from __future__ import annotations

from dataclasses import replace

from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.rewrite.draft import Draft, Node
from buildtool.graph.types import Attrs, ConvAttrs, OpKind, Pad, PadAttrs, PadMode

_CONVOLUTIONS = (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D)


def simplify_pads(draft: Draft) -> None:
    """Applies all of it to every PAD, in execution order, those it moves included."""
    position = 0
    while position < len(draft.nodes):
        node = draft.nodes[position]
        position += 1
        if not node.dead and isinstance(node.attrs, PadAttrs):
            if not any(map(any, node.attrs.paddings)):
                draft.bypass(node)
            elif node.attrs.mode == PadMode.CONSTANT and draft.private(node.outputs[0]):
                _merge(draft, node) or _fold(draft, node) or _move_behind_alias(draft, node)


def _merge(draft: Draft, node: Node) -> bool:
    """Adds this PAD's sizes to the PADs that read it, if nothing else does and they fill alike."""
    attrs, readers = _pad_attrs(node), draft.readers(node.outputs[0])
    for reader in readers:
        other = reader.attrs
        if not isinstance(other, PadAttrs) or (other.mode, other.value) != (attrs.mode, attrs.value):
            return False
    for reader in readers:
        other = _pad_attrs(reader)
        pairs = zip(attrs.paddings, other.paddings, strict=True)
        reader.attrs = replace(other, paddings=tuple((a[0] + b[0], a[1] + b[1]) for a, b in pairs))
        draft.set_input(reader, 0, node.inputs[0])
    if readers:
        draft.remove(node)
    return bool(readers)


def _fold(draft: Draft, node: Node) -> bool:
    """Adds rows and columns of zero points to the padding of the convolutions that read them.

    A convolution pads with its input's zero point, which contributes nothing: the same as PAD's
    filling if that is the zero point, and the quantisation does not change on the way.
    """
    attrs, readers = _pad_attrs(node), draft.readers(node.outputs[0])
    x, padded = draft.tensors[node.inputs[0]], draft.tensors[node.outputs[0]]
    fits = (
        len(attrs.paddings) == 4
        and attrs.paddings[0] == attrs.paddings[3] == (0, 0)
        and x.quant is not None
        and same_quantization(x.quant, padded.quant)
        and attrs.value == x.quant.zero_point
        and all(r.kind in _CONVOLUTIONS and r.inputs.count(node.outputs[0]) == 1 for r in readers)
    )
    if not fits or not readers or x.is_constant:
        return False
    (top, bottom), (left, right) = attrs.paddings[1:3]
    for reader in readers:
        conv = reader.attrs
        assert isinstance(conv, ConvAttrs)
        own = conv.pad
        pad = Pad(own.top + top, own.bottom + bottom, own.left + left, own.right + right)
        reader.attrs = replace(conv, pad=pad)
        draft.set_input(reader, 0, node.inputs[0])
    draft.remove(node)
    return True


def _move_behind_alias(draft: Draft, node: Node) -> bool:
    """Lets the alias that reads this PAD reshape the unpadded input, and pads what comes out of it.

    Possible where the alias only adds or drops dimensions of size 1: padded ones are larger.
    """
    readers = draft.readers(node.outputs[0])
    if len(readers) != 1 or readers[0].kind not in ALIAS_KINDS:
        return False
    alias, attrs = readers[0], _pad_attrs(node)
    x, padded = draft.tensors[node.inputs[0]], draft.tensors[node.outputs[0]]
    target = draft.tensors[alias.outputs[0]]
    larger = [d for d, n in enumerate(padded.shape) if n != 1]
    places = [d for d, n in enumerate(target.shape) if n != 1]
    same = [padded.shape[d] for d in larger] == [target.shape[d] for d in places]
    if not same or not same_quantization(padded.quant, target.quant) or x.is_constant:
        return False
    shape, paddings = list(target.shape), [(0, 0)] * len(target.shape)
    for d, place in zip(larger, places, strict=True):
        shape[place], paddings[place] = x.shape[d], attrs.paddings[d]
    name = f"{x.name}/unpadded"
    made = draft.add_tensor(replace(x, name=name, shape=tuple(shape), source=None))
    moved = replace(attrs, paddings=tuple(paddings))
    outputs = list(alias.outputs)
    draft.become(alias, OpKind.RESHAPE, Attrs())
    draft.set_input(alias, 0, node.inputs[0])
    draft.set_outputs(alias, [made])
    draft.insert_after(alias, Node(OpKind.PAD, [made], outputs, moved, node.index))
    draft.remove(node)
    return True


def _pad_attrs(node: Node) -> PadAttrs:
    assert isinstance(node.attrs, PadAttrs)
    return node.attrs
