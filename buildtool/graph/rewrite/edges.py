"""Float edges: a network quantised inside gets an int8 interface.

The QUANTIZE of a float input and the DEQUANTIZE before a float output leave; the int8 tensors
beside them become the network's inputs and outputs, and carry the scale and zero point.
"""

from __future__ import annotations

from buildtool.base.errors import UnsupportedError
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.rewrite.draft import Draft, Node
from buildtool.graph.types import DType, OpKind

_HINT = "re-export with full-integer int8 quantisation, so that no float operator is left inside"


def strip_float_edges(draft: Draft) -> None:
    """Removes float edges; UnsupportedError if a float tensor is left."""
    for node in draft.nodes:
        if node.kind == OpKind.DEQUANTIZE and not node.dead:
            _undo_round_trip(draft, node)
    for position, t in enumerate(draft.inputs):
        if draft.tensors[t].dtype == DType.FLOAT32:
            _strip_input(draft, position)
    for position, t in enumerate(draft.outputs):
        if draft.tensors[t].dtype == DType.FLOAT32:
            _strip_output(draft, position)
    for node in draft.nodes:
        for t in (*node.inputs, *node.outputs):
            if not node.dead and t >= 0 and draft.tensors[t].dtype == DType.FLOAT32:
                _refuse(draft, t, node)


def _refuse(draft: Draft, tensor: int, node: Node | None, text: str = "a float32 tensor") -> None:
    place = node.place if node is not None else ""
    name = draft.tensors[tensor].name
    raise UnsupportedError(f"{text} inside the network", operator=place, tensor=name, hint=_HINT)


def _undo_round_trip(draft: Draft, node: Node) -> None:
    """DEQUANTIZE then QUANTIZE with the same scale and zero point: every byte comes back.

    (q - z) * s / s differs from q - z by less than 1/2 in float32, so rounding restores it.
    """
    source, middle = node.inputs[0], node.outputs[0]
    for reader in draft.readers(middle):
        target = reader.outputs[0]
        same = same_quantization(draft.tensors[source].quant, draft.tensors[target].quant)
        if reader.kind == OpKind.QUANTIZE and same and target not in draft.outputs:
            draft.redirect(target, source)
            draft.remove(reader)
    if not draft.readers(middle) and middle not in draft.outputs:
        draft.remove(node)


def _strip_input(draft: Draft, position: int) -> None:
    """Makes the int8 side of the QUANTIZE at network input `position` the input."""
    source = draft.inputs[position]
    readers = draft.readers(source)
    if not readers or source in draft.outputs:
        text = "a float32 network input that no operator quantises"
        raise UnsupportedError(text, tensor=draft.tensors[source].name, hint=_HINT)
    first = readers[0].outputs[0]
    for reader in readers:
        target = reader.outputs[0]
        if reader.kind != OpKind.QUANTIZE:
            _refuse(draft, source, reader)
        if not same_quantization(draft.tensors[first].quant, draft.tensors[target].quant):
            _refuse(draft, target, reader, "a float32 input that is quantised in two ways")
        if target != first:
            draft.redirect(target, first)
            draft.outputs = [first if t == target else t for t in draft.outputs]
        draft.remove(reader)
    draft.inputs[position] = first


def _strip_output(draft: Draft, position: int) -> None:
    """Makes the int8 side of the DEQUANTIZE at network output `position` the output."""
    target = draft.outputs[position]
    node = draft.producer(target)
    if node is None or node.kind != OpKind.DEQUANTIZE:
        _refuse(draft, target, node)
        return
    draft.outputs = [node.inputs[0] if t == target else t for t in draft.outputs]
    if not draft.readers(target):
        draft.remove(node)
