"""TRANSPOSE: dropped, turned into a byte alias, composed, or pushed behind the means that read it."""

from __future__ import annotations

from dataclasses import replace

from buildtool.graph.rewrite.draft import Draft, Node
from buildtool.graph.types import MeanAttrs, OpKind, Source, TransposeAttrs

Perm = tuple[int, ...]


def simplify_transposes(draft: Draft) -> None:
    """Applies all of it to every TRANSPOSE, in execution order, those it makes included."""
    for node in draft.each(OpKind.TRANSPOSE):
        if not isinstance(node.attrs, TransposeAttrs):
            continue
        perm, shape = node.attrs.perm, draft.tensors[node.inputs[0]].shape
        larger = [p for p in perm if shape[p] != 1]
        if larger == sorted(larger):  # the bytes stay
            draft.bypass(node)
        elif draft.private(node.outputs[0]):
            _compose(draft, node, perm) or _push(draft, node, perm)


def _compose(draft: Draft, node: Node, perm: Perm) -> bool:
    """Makes the TRANSPOSEs that read this one read its input, if nothing else reads it."""
    readers = draft.readers(node.outputs[0])
    if not readers or any(not isinstance(r.attrs, TransposeAttrs) for r in readers):
        return False
    for reader in readers:
        reader.attrs = TransposeAttrs(tuple(perm[p] for p in reader.attributes(TransposeAttrs).perm))
        draft.set_input(reader, 0, node.inputs[0])
    draft.remove(node)
    return True


def _push(draft: Draft, node: Node, perm: Perm) -> bool:
    """Lets the MEANs that read this TRANSPOSE read its input, and transposes their results instead.

    Each mean sums the same integers and rounds as before. The transposition that is left works on
    less, and vanishes once it moves nothing.
    """
    readers = draft.readers(node.outputs[0])
    if not readers or any(r.kind != OpKind.MEAN for r in readers):
        return False
    for reader in readers:
        _push_one(draft, perm, node.inputs[0], reader)
    draft.remove(node)
    return True


def _push_one(draft: Draft, perm: Perm, source: int, mean: Node) -> None:
    """`mean` read source transposed by `perm`; afterwards it reads `source`."""
    attrs = mean.attributes(MeanAttrs)
    axes = tuple(sorted(perm[a] for a in attrs.axes))
    shape = draft.tensors[source].shape
    # For each of the mean's own output dimensions, in the old and the new order: the source's axis.
    kept_before = [p for i, p in enumerate(perm) if attrs.keep_dims or i not in attrs.axes]
    kept_after = sorted(kept_before)
    back = tuple(kept_after.index(p) for p in kept_before)  # the old output from the new one
    forth = tuple(kept_before.index(p) for p in kept_after)
    old = draft.tensors[mean.outputs[0]]
    origin = old.source
    if origin is not None:
        place = tuple(origin.perm[i] for i in forth) if origin.perm else forth
        origin = Source(origin.index, () if place == tuple(range(len(place))) else place)
    new_shape = tuple(1 if p in axes else shape[p] for p in kept_after)
    mean.attrs = replace(attrs, axes=axes)
    draft.set_input(mean, 0, source)
    if back != tuple(range(len(back))):
        made = replace(old, shape=new_shape, source=origin)
        draft.put_behind(mean, made, OpKind.TRANSPOSE, TransposeAttrs(back))
