"""PAD of channels on the way into an ADD: left out, the ADD reads the operand as it is (`WidenedAttrs`).

Detectors in the manner of BlazeFace widen their shortcuts so. Of the channels that the PAD would add, all
have its filling: adding that is a requantisation of the other operand, which the ADD's kernel makes of a
constant as exactly as of a tensor.
"""

from __future__ import annotations

import numpy as np

from buildtool.graph.quantrules import same_quantization
from buildtool.graph.rewrite.draft import Draft, Node
from buildtool.graph.types import ElementwiseAttrs, OpKind, PadAttrs, PadMode, Tensor, WidenedAttrs


def widen_additions(draft: Draft) -> None:
    """Folds every PAD of channels into the additions that read it, if nothing else does."""
    for node in draft.nodes:
        if not node.dead and _adds_channels(draft, node):
            padded = node.outputs[0]
            readers = draft.readers(padded)
            if readers and draft.private(padded) and all(_serves(draft, r, padded) for r in readers):
                for reader in readers:
                    _fold(draft, node, reader)
                draft.remove(node)


def _adds_channels(draft: Draft, node: Node) -> bool:
    """Whether it is a PAD of the last dimension of an image alone, which keeps the quantisation."""
    attrs = node.attrs
    if node.kind is not OpKind.PAD or not isinstance(attrs, PadAttrs) or attrs.mode != PadMode.CONSTANT:
        return False
    x, padded = draft.tensors[node.inputs[0]], draft.tensors[node.outputs[0]]
    outer = any(map(any, attrs.paddings[:-1]))
    plain = not x.is_constant and x.quant is not None and same_quantization(x.quant, padded.quant)
    return len(x.shape) == 4 and not outer and plain


def _serves(draft: Draft, reader: Node, padded: int) -> bool:
    """Whether it is an addition that reads the padded tensor as one of two operands of one shape."""
    if reader.kind is not OpKind.ADD or len(reader.inputs) != 2 or reader.inputs[0] == reader.inputs[1]:
        return False
    other = draft.tensors[reader.inputs[1 - reader.inputs.index(padded)]]
    same = other.shape == draft.tensors[padded].shape
    return same and not other.is_constant and type(reader.attrs) is ElementwiseAttrs


def _fold(draft: Draft, pad: Node, reader: Node) -> None:
    """The addition of the other operand and the PAD's input: a sum does not depend on their order."""
    assert isinstance(pad.attrs, PadAttrs)
    assert isinstance(reader.attrs, ElementwiseAttrs)
    x = draft.tensors[pad.inputs[0]]
    before, behind = pad.attrs.paddings[-1]
    values = np.full(max(before, behind), pad.attrs.value, x.dtype.value)
    values.flags.writeable = False
    name = draft.tensors[pad.outputs[0]].name + "/filling"
    filling = draft.add_tensor(Tensor(name, values.shape, x.dtype, x.quant, values))
    other = reader.inputs[1 - reader.inputs.index(pad.outputs[0])]
    draft.set_inputs(reader, [other, pad.inputs[0], filling])
    attrs = WidenedAttrs(reader.attrs.activation, before)
    draft.become(reader, OpKind.ADD, attrs)
