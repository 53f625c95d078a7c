"""TRANSPOSE: dropped, turned into a byte alias, composed, or pushed behind the means that read it."""

from __future__ import annotations

from dataclasses import replace

from buildtool.graph.rewrite.draft import Draft, Node
from buildtool.graph.types import MeanAttrs, OpKind, Source, TransposeAttrs

Perm = tuple[int, ...]


def simplify_transposes(draft: Draft) -> None:
    """Applies all of it to every TRANSPOSE, in execution order, those it makes included."""
    position = 0
    while position < len(draft.nodes):
        node = draft.nodes[position]
        position += 1
        if node.dead or not isinstance(node.attrs, TransposeAttrs):
            continue
        if moves_nothing(_perm(node), draft.tensors[node.inputs[0]].shape):
            draft.bypass(node)
        elif draft.private(node.outputs[0]):
            _compose(draft, node) or _push(draft, node)


def moves_nothing(perm: Perm, shape: tuple[int, ...]) -> bool:
    """Whether the bytes stay: dimensions larger than 1 keep their order."""
    moved = [p for p in perm if shape[p] != 1]
    return moved == sorted(moved)


def _perm(node: Node) -> Perm:
    assert isinstance(node.attrs, TransposeAttrs)
    return node.attrs.perm


def _compose(draft: Draft, node: Node) -> bool:
    """Makes the TRANSPOSEs that read this one read its input, if nothing else reads it."""
    first, readers = _perm(node), draft.readers(node.outputs[0])
    if not readers or any(not isinstance(r.attrs, TransposeAttrs) for r in readers):
        return False
    for reader in readers:
        reader.attrs = TransposeAttrs(tuple(first[p] for p in _perm(reader)))
        draft.set_input(reader, 0, node.inputs[0])
    draft.remove(node)
    return True


def _push(draft: Draft, node: Node) -> bool:
    """Lets the MEANs that read this TRANSPOSE read its input, and transposes their results instead.

    Each mean sums the same integers and rounds as before. The transposition that is left works on
    less, and vanishes once it moves nothing.
    """
    readers = draft.readers(node.outputs[0])
    if not readers or any(r.kind != OpKind.MEAN for r in readers):
        return False
    for reader in readers:
        _push_one(draft, _perm(node), node.inputs[0], reader)
    draft.remove(node)
    return True


def _push_one(draft: Draft, perm: Perm, source: int, mean: Node) -> None:
    """`mean` read source transposed by `perm`; afterwards it reads `source`."""
    attrs = mean.attrs
    assert isinstance(attrs, MeanAttrs)
    axes = tuple(sorted(perm[a] for a in attrs.axes))
    shape = draft.tensors[source].shape
    # For each of the mean's own output dimensions, in the old and the new order: the source's axis.
    kept_before = [p for i, p in enumerate(perm) if attrs.keep_dims or i not in attrs.axes]
    kept_after = sorted(kept_before)
    back = tuple(kept_after.index(p) for p in kept_before)  # the old output from the new one
    forth = tuple(kept_before.index(p) for p in kept_after)
    target = mean.outputs[0]
    old = draft.tensors[target]
    origin = old.source
    if origin is not None:
        place = tuple(origin.perm[i] for i in forth) if origin.perm else forth
        origin = Source(origin.index, () if place == tuple(range(len(place))) else place)
    new_shape = tuple(1 if p in axes else shape[p] for p in kept_after)
    mean.attrs = replace(attrs, axes=axes)
    draft.set_input(mean, 0, source)
    if back == tuple(range(len(back))):
        return
    made = draft.add_tensor(replace(old, shape=new_shape, source=origin))
    draft.set_outputs(mean, [made])
    draft.insert_after(mean, Node(OpKind.TRANSPOSE, [made], [target], TransposeAttrs(back)))
