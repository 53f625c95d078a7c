"""Simplifies TRANSPOSEs: removes them, composes them, and moves them behind what makes tensors smaller."""

import math
from dataclasses import replace

from buildtool.graph import types as g
from buildtool.graph.consistency import MAX_RANK
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.rewrite.draft import Draft, Node, variant
from buildtool.graph.rewrite.joins import chain_to_smaller
from buildtool.graph.types import DType, OpKind, Source

Shape = tuple[int, ...]
Perm = tuple[int, ...]
Atom = tuple[int, float]  # elements, and the distance between them in the source


def simplify_transposes(draft: Draft) -> None:
    """Removes TRANSPOSEs, makes them byte aliases, composes them, or moves them behind other operators."""
    for node in draft.each(OpKind.TRANSPOSE):
        if not isinstance(node.attrs, g.TransposeAttrs):
            continue
        perm, shape = node.attrs.perm, draft.tensors[node.inputs[0]].shape
        larger = [p for p in perm if shape[p] != 1]
        if larger == sorted(larger):  # the order of bytes is the same
            draft.bypass(node)
        elif draft.private(node.outputs[0]):
            (
                _compose(draft, node, perm)
                or _merge(draft, node)
                or _push(draft, node, perm)
                or _push_behind_pixels(draft, node, perm)
            )


def _compose(draft: Draft, node: Node, perm: Perm) -> bool:
    """Composes this TRANSPOSE with the TRANSPOSEs that read it, if it has no other readers."""
    readers = draft.readers(node.outputs[0])
    if not readers or any(not isinstance(r.attrs, g.TransposeAttrs) for r in readers):
        return False
    for reader in readers:
        reader.attrs = g.TransposeAttrs(tuple(perm[p] for p in reader.attributes(g.TransposeAttrs).perm))
        draft.set_input(reader, 0, node.inputs[0])
    draft.remove(node)
    return True


def _push(draft: Draft, node: Node, perm: Perm) -> bool:
    """Moves this TRANSPOSE behind the MEANs that read it, as their results are smaller.

    Each mean adds the same integers and rounds in the same way.
    """
    means, source = draft.readers(node.outputs[0]), node.inputs[0]
    if not means or any(mean.kind != OpKind.MEAN for mean in means):
        return False
    if draft.tensors[source].dtype is DType.FLOAT32:  # the order of a sum decides how it is rounded
        return False
    shape = draft.tensors[source].shape
    for mean in means:
        attrs, old = mean.attributes(g.MeanAttrs), draft.tensors[mean.outputs[0]]
        axes = tuple(sorted(perm[a] for a in attrs.axes))
        # the source's axis of each output dimension of the mean, in the old and in the new order
        before = [p for i, p in enumerate(perm) if attrs.keep_dims or i not in attrs.axes]
        after = sorted(before)
        back = tuple(after.index(p) for p in before)  # permutation from the new output to the old one
        forth = tuple(before.index(p) for p in after)
        origin = old.source
        if origin is not None:
            place = tuple(origin.perm[i] for i in forth) if origin.perm else forth
            origin = Source(origin.index, () if place == tuple(range(len(place))) else place)
        mean.attrs = replace(attrs, axes=axes)
        draft.set_input(mean, 0, source)
        if back != tuple(range(len(back))):
            reduced = replace(old, shape=tuple(1 if p in axes else shape[p] for p in after), source=origin)
            draft.put_after(mean, reduced, OpKind.TRANSPOSE, g.TransposeAttrs(back))
    draft.remove(node)
    return True


# ---- through RESHAPEs ----------------------------------------------------------------------------------


def _merge(draft: Draft, node: Node) -> bool:
    """Makes this TRANSPOSE and the last ones before it, with RESHAPEs in between, one TRANSPOSE."""
    chain, t, last = list[Node](), node.inputs[0], node
    while (before := draft.producer(t)) is not None and draft.only_reader(t) is not None:
        if not isinstance(before.attrs, g.TransposeAttrs) and before.kind not in ALIAS_KINDS:
            break
        if not draft.same_quantization(before.inputs[0], node.outputs[0]):
            break
        chain.append(before)
        t = before.inputs[0]
    while chain and chain[-1].kind in ALIAS_KINDS:
        chain.pop()
    moves = [*reversed(chain), last]
    order = _order(draft, moves) if chain else None
    if order is None:
        return False
    source, result = chain[-1].inputs[0], draft.tensors[node.outputs[0]]
    inner, perm, outer = order
    draft.set_input(node, 0, source)
    for each in chain:
        draft.remove(each)
    draft.put_reshape_before(node, variant(result, "atoms", inner))
    draft.become(node, OpKind.TRANSPOSE, g.TransposeAttrs(perm))
    if outer != result.shape:
        draft.put_after(node, variant(result, "moved", outer), OpKind.RESHAPE, g.Attrs())
    return True


def _order(draft: Draft, moves: list[Node]) -> tuple[Shape, Perm, Shape] | None:
    """Returns shape, permutation and transposed shape of the one TRANSPOSE that is all these moves.

    Elements that stay neighbours are one dimension. None if a RESHAPE joins elements that are no neighbours
    in an irregular way.
    """
    shape = draft.tensors[moves[0].inputs[0]].shape
    dims: list[list[Atom]] = [[(n, math.prod(shape[d + 1 :]))] for d, n in enumerate(shape)]
    for node in moves:
        if isinstance(node.attrs, g.TransposeAttrs):
            dims = [dims[p] for p in node.attrs.perm]
            continue
        divided = _divide(dims, draft.tensors[node.outputs[0]].shape)
        if divided is None:
            return None
        dims = divided
    groups = [_merged(atoms) for atoms in dims]
    if any(len(group) > 1 for group in groups):
        atoms = _merged([atom for group in groups for atom in group])
    else:  # the dimensions of the result; those of one element come first in the source
        atoms = [group[0] if group else (1, math.inf) for group in groups]
    by_place = sorted(range(len(atoms)), key=lambda i: -atoms[i][1])
    outer = tuple(n for n, _ in atoms)
    perm = tuple(map(by_place.index, range(len(atoms))))
    return (tuple(outer[i] for i in by_place), perm, outer) if len(outer) <= MAX_RANK else None


def _divide(dims: list[list[Atom]], shape: Shape) -> list[list[Atom]] | None:
    """Returns the atoms of each dimension after a RESHAPE to `shape`; None if it does not divide them."""
    rest = [atom for atoms in dims for atom in atoms if atom[0] != 1][::-1]
    divided = []
    for n in shape:
        missing, atoms = n, list[Atom]()
        while missing > 1:
            size, stride = rest.pop()
            taken = math.gcd(size, missing)
            if taken not in (size, missing):
                return None
            if taken < size:
                rest.append((size // taken, stride))
            atoms.append((taken, stride * (size // taken)))
            missing //= taken
        divided.append(atoms)
    return divided


def _merged(atoms: list[Atom]) -> list[Atom]:
    """Returns the atoms with neighbours in the source as one. Atoms of one element are left out."""
    merged = list[Atom]()
    for size, stride in atoms:
        if merged and merged[-1][1] == size * stride:
            merged[-1] = merged[-1][0] * size, stride
        elif size > 1:
            merged.append((size, stride))
    return merged


# ---- behind operators of pixels ------------------------------------------------------------------------


def _push_behind_pixels(draft: Draft, node: Node, perm: Perm) -> bool:
    """Moves a TRANSPOSE of whole pixels behind the operators up to one that makes the pixels smaller.

    These operators then read the image before it, row by row.
    """
    source, chain = node.inputs[0], chain_to_smaller(draft, node.outputs[0], moves=False)
    if perm[-1] != len(perm) - 1 or not chain:
        return False
    pixels, last, result = draft.tensors[source].shape, chain[-1], chain[-1].outputs[0]
    image = _image(draft, source)
    t = draft.add_tensor(variant(draft.tensors[source], "pixels", image))
    draft.insert(chain[0], Node(OpKind.RESHAPE, [source], [t]), behind=False)
    draft.redirect(node.outputs[0], t)
    draft.remove(node)
    for each in chain:
        old = each.outputs[0]
        t = draft.add_tensor(
            variant(draft.tensors[old], "pixels", (*image[:-1], draft.tensors[old].shape[-1]))
        )
        if each is not last:
            draft.redirect(old, t)
        draft.set_outputs(each, [t])
    smaller = draft.add_tensor(variant(draft.tensors[t], "moved", (*pixels[:-1], draft.tensors[t].shape[-1])))
    draft.insert(last, Node(OpKind.TRANSPOSE, [smaller], [result], node.attrs, node.index))
    draft.insert(last, Node(OpKind.RESHAPE, [t], [smaller]))
    return True


def _image(draft: Draft, t: int) -> Shape:
    """Returns a shape with the pixels of `t`, and the rows of the image that it is a RESHAPE of, if any."""
    shape, before = draft.tensors[t].shape, draft.producer(t)
    if before is None or before.kind not in ALIAS_KINDS:
        return shape
    *_, columns, channels = draft.tensors[before.inputs[0]].nhwc
    pixels, rest = divmod(columns * channels, shape[-1])
    return shape if rest else (1, math.prod(shape[:-1]) // pixels, pixels, shape[-1])
