"""Makes float islands smaller: operators that only move elements then move integers.

A float island is a part of an integer network that computes in float32, between DEQUANTIZEs and QUANTIZEs
(see `graph.floats`). A DEQUANTIZE is moved after an operator that only moves elements, and a QUANTIZE before
it. The results are the same, as both convert each element by itself. The moved tensors then have one byte per
element. A function of one byte that was divided by a RESHAPE or a SPLIT can then become a lookup.
"""

from buildtool.graph.ops import DEFS
from buildtool.graph.rewrite.draft import Draft, Node
from buildtool.graph.types import Attrs, DType, OpKind, Tensor

# Operators that only move elements, and move float32 as they move integers.
_MOVES = frozenset(
    kind
    for kind, definition in DEFS.items()
    if definition.floats == definition.reference and definition.reference.startswith("shape:")
)


def undo_round_trips(draft: Draft) -> None:
    """Removes every QUANTIZE that follows a DEQUANTIZE of the same scale and zero point.

    The bytes are the same: (q - z) * s / s differs from q - z by less than 1/2 in float32, so rounding
    restores it.
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
    """Moves every conversion past the neighbouring operators that only move elements."""
    undo_round_trips(draft)
    for node in draft.each(*_MOVES):
        if draft.tensors[node.outputs[0]].dtype is DType.FLOAT32:
            _dequantise_later(draft, node) or _quantise_earlier(draft, node)


def _elements(draft: Draft, tensors: list[int]) -> int:
    return sum(draft.tensors[t].elements for t in tensors)


def _as_integers(draft: Draft, t: int, integer: Tensor) -> int:
    """Adds a tensor with the shape of the float tensor `t` and the type and quantisation of `integer`."""
    real = draft.tensors[t]
    return draft.add_tensor(Tensor(f"{real.name}/integers", real.shape, integer.dtype, integer.quant))


def _dequantise_later(draft: Draft, node: Node) -> bool:
    """Moves the DEQUANTIZEs that the operator `node` reads after it. Returns whether this was possible.

    They must have the same quantisation, and only operators that move elements may read their floats.
    """
    producers = [draft.producer(t) for t in node.inputs]
    sources = [each.inputs[0] for each in producers if each is not None and each.kind is OpKind.DEQUANTIZE]
    if len(sources) != len(node.inputs) or _elements(draft, node.outputs) > _elements(draft, node.inputs):
        return False
    source = draft.tensors[sources[0]]
    are_alike = all(
        draft.tensors[t].dtype is source.dtype and draft.same_quantization(t, sources[0]) for t in sources
    )
    readers = (reader for t in node.inputs for reader in draft.readers(t))
    if not are_alike or not all(draft.private(t) for t in node.inputs):
        return False
    if any(reader.kind not in _MOVES for reader in readers):
        return False
    floats = list(node.outputs)
    moved = [_as_integers(draft, t, source) for t in floats]
    draft.set_inputs(node, sources)
    draft.set_outputs(node, moved)
    for integers, t in zip(moved, floats, strict=True):
        draft.insert(node, Node(OpKind.DEQUANTIZE, [integers], [t], index=node.index))
    return True


def _quantise_earlier(draft: Draft, node: Node) -> bool:
    """Moves the QUANTIZE that is the only reader of `node` before it. Returns whether this was possible."""
    if len(node.outputs) != 1 or _elements(draft, node.outputs) != _elements(draft, node.inputs):
        return False
    reader = draft.only_reader(node.outputs[0])
    floats = list(dict.fromkeys(node.inputs))
    if reader is None or reader.kind is not OpKind.QUANTIZE or len(floats) != len(node.inputs):
        return False
    if any(draft.only_reader(t) is not node or draft.tensors[t].is_constant for t in floats):
        return False
    result = reader.outputs[0]
    quantised = [_as_integers(draft, t, draft.tensors[result]) for t in floats]
    draft.remove(reader)
    for t, integers in zip(floats, quantised, strict=True):
        draft.insert(node, Node(OpKind.QUANTIZE, [t], [integers], reader.attrs, reader.index), behind=False)
    draft.set_inputs(node, quantised)
    draft.set_outputs(node, [result])
    return True
