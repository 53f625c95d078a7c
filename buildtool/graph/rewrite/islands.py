"""Makes float islands smaller: what only moves elements does so in integers.

A DEQUANTIZE moves behind an operator that moves elements, and a QUANTIZE before it: both compute each element
for itself, so the results are the same. The moved tensors then have one byte an element, and functions of one
byte that a RESHAPE or a SPLIT divided become lookups.
"""

from dataclasses import replace

from buildtool.graph.ops import DEFS
from buildtool.graph.rewrite.draft import Draft, Node
from buildtool.graph.types import Attrs, DType, OpKind, Tensor

# Operators that move numbers of four bytes as they move bytes.
_MOVES = frozenset(
    kind
    for kind, definition in DEFS.items()
    if definition.floats == definition.reference and definition.reference.startswith("shape:")
)


def undo_round_trips(draft: Draft) -> None:
    """Removes every QUANTIZE with the same scale and zero point after a DEQUANTIZE: the bytes are the same.

    (q - z) * s / s differs from q - z by less than 1/2 in float32, so rounding restores it.
    """
    for node in draft.each(OpKind.DEQUANTIZE):
        _undo_round_trip(draft, node)


def _undo_round_trip(draft: Draft, node: Node) -> None:
    source, middle = node.inputs[0], node.outputs[0]
    for reader in draft.readers(middle):
        target = reader.outputs[0]
        if reader.kind is not OpKind.QUANTIZE or not draft.same_quantization(source, target):
            continue
        if target in draft.outputs:  # `drop_noops` removes the copy, where it can
            draft.become(reader, OpKind.RESHAPE, Attrs())
            draft.set_input(reader, 0, source)
        else:
            draft.redirect(target, source)
            draft.remove(reader)
    if not draft.readers(middle) and middle not in draft.outputs:
        draft.remove(node)


def shrink_islands(draft: Draft) -> None:
    """Moves every conversion beyond the operators next to it that only move elements."""
    undo_round_trips(draft)
    for node in draft.each(*_MOVES):
        if draft.tensors[node.outputs[0]].dtype is DType.FLOAT32:
            _dequantise_later(draft, node) or _quantise_earlier(draft, node)


def _elements(draft: Draft, tensors: list[int]) -> int:
    return sum(draft.tensors[t].elements for t in tensors)


def _as_integers(draft: Draft, t: int, like: Tensor) -> int:
    """Adds a tensor of the shape of the float tensor `t` with the type and quantisation of `like`."""
    of = draft.tensors[t]
    return draft.add_tensor(Tensor(f"{of.name}/integers", of.shape, like.dtype, like.quant))


def _dequantise_later(draft: Draft, node: Node) -> bool:
    """Lets the operator move the integers of the DEQUANTIZEs that it reads.

    They must have the same quantisation, and nothing else may read their floats but other moves.
    """
    makers = [draft.producer(t) for t in node.inputs]
    sources = [m.inputs[0] for m in makers if m is not None and m.kind is OpKind.DEQUANTIZE]
    if len(sources) != len(node.inputs) or _elements(draft, node.outputs) > _elements(draft, node.inputs):
        return False
    like = draft.tensors[sources[0]]
    same = all(
        draft.tensors[t].dtype is like.dtype and draft.same_quantization(t, sources[0]) for t in sources
    )
    readers = (reader for t in node.inputs for reader in draft.readers(t))
    if not same or not all(draft.private(t) for t in node.inputs):
        return False
    if any(reader.kind not in _MOVES for reader in readers):
        return False
    floats = list(node.outputs)
    moved = [_as_integers(draft, t, like) for t in floats]
    draft.set_inputs(node, sources)
    draft.set_outputs(node, moved)
    for integers, t in zip(moved, floats, strict=True):
        draft.insert(node, Node(OpKind.DEQUANTIZE, [integers], [t], index=node.index))
    return True


def _quantise_earlier(draft: Draft, node: Node) -> bool:
    """Lets the operator move the integers of the QUANTIZE that is its only reader."""
    if len(node.outputs) != 1 or _elements(draft, node.outputs) != _elements(draft, node.inputs):
        return False
    reader = draft.only_reader(node.outputs[0])
    floats = list(dict.fromkeys(node.inputs))
    if reader is None or reader.kind is not OpKind.QUANTIZE or len(floats) != len(node.inputs):
        return False
    if any(draft.only_reader(t) is not node or draft.tensors[t].is_constant for t in floats):
        return False
    result = reader.outputs[0]
    like = replace(draft.tensors[result], source=None)
    quantised = [_as_integers(draft, t, like) for t in floats]
    draft.remove(reader)
    for t, integers in zip(floats, quantised, strict=True):
        draft.insert(node, Node(OpKind.QUANTIZE, [t], [integers], reader.attrs, reader.index), behind=False)
    draft.set_inputs(node, quantised)
    draft.set_outputs(node, [result])
    return True
