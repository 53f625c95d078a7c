"""Removes TRANSPOSEs, joins them, and moves them after operators that make tensors smaller."""

import math
from dataclasses import replace

from buildtool.graph import types as g
from buildtool.graph.consistency import MAX_RANK
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.rewrite.draft import Draft, Node, variant
from buildtool.graph.rewrite.joins import chain_to_smaller, varying_operands
from buildtool.graph.rewrite.lookups import is_elementwise
from buildtool.graph.types import DType, OpKind, Source

Shape = tuple[int, ...]
Perm = tuple[int, ...]
Atom = tuple[int, float]  # elements, and the distance between them in the source


def simplify_transposes(draft: Draft) -> None:
    """Removes TRANSPOSEs, turns them into aliases, joins them, or moves them after other operators."""
    for node in draft.each(OpKind.TRANSPOSE):
        if not isinstance(node.attrs, g.TransposeAttrs):
            continue
        perm, shape = node.attrs.perm, draft.tensors[node.inputs[0]].shape
        larger = [p for p in perm if shape[p] != 1]
        if larger == sorted(larger):  # the order of bytes is the same
            draft.bypass(node)
        elif not draft.private(node.outputs[0]) or not (
            _compose(draft, node, perm)
            or _merge(draft, node)
            or _push(draft, node, perm)
            or _push_behind_pixels(draft, node, perm)
        ):
            _split_planes(draft, node)


def _compose(draft: Draft, node: Node, perm: Perm) -> bool:
    """Joins this TRANSPOSE with the TRANSPOSEs that read it. Returns whether this was possible.

    It is not possible if other operators read it, too.
    """
    readers = draft.readers(node.outputs[0])
    if not readers or any(not isinstance(r.attrs, g.TransposeAttrs) for r in readers):
        return False
    for reader in readers:
        reader.attrs = g.TransposeAttrs(tuple(perm[p] for p in reader.attributes(g.TransposeAttrs).perm))
        draft.set_input(reader, 0, node.inputs[0])
    draft.remove(node)
    return True


def _push(draft: Draft, node: Node, perm: Perm) -> bool:
    """Moves this TRANSPOSE after the MEANs that read it, as their results are smaller.

    Each mean adds the same integers and rounds in the same way. Returns whether this was possible.
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
    """Joins this TRANSPOSE with earlier ones that only RESHAPEs separate from it. Returns whether it did."""
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
    """Returns the one TRANSPOSE that equals the operators `moves`: (input shape, permutation, output shape).

    The moves are TRANSPOSEs and RESHAPEs. Elements that stay neighbours form one dimension. None if no
    TRANSPOSE of at most MAX_RANK dimensions equals them.
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
    """Returns the atoms of each dimension after a RESHAPE to `shape`; None if its sizes would cut an atom.

    An atom is a run of equally spaced elements that stay in order; a dimension is a list of atoms.
    """
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
    """Joins atoms that are contiguous in the source, and drops atoms of one element (see `_divide`)."""
    merged = list[Atom]()
    for size, stride in atoms:
        if merged and merged[-1][1] == size * stride:
            merged[-1] = merged[-1][0] * size, stride
        elif size > 1:
            merged.append((size, stride))
    return merged


# ---- behind operators of pixels ------------------------------------------------------------------------


def _push_behind_pixels(draft: Draft, node: Node, perm: Perm) -> bool:
    """Moves a TRANSPOSE of whole pixels after later operators, up to one that makes the pixels smaller.

    These operators then read, row by row, the image that the TRANSPOSE read. RESHAPEs among them that keep
    the pixels are removed. Returns whether this was possible.
    """
    source, chain = node.inputs[0], chain_to_smaller(draft, node.outputs[0])
    moves = [each for each in chain if each.kind in (*ALIAS_KINDS, OpKind.TRANSPOSE)]
    same = all(each.kind in ALIAS_KINDS and _keeps_channels(draft, each) for each in moves)
    if perm[-1] != len(perm) - 1 or not chain or not same:
        return False
    shape, last, result = draft.tensors[source].shape, chain[-1], chain[-1].outputs[0]
    turned, image = draft.tensors[node.outputs[0]].shape, _image(draft, source)
    t = draft.add_tensor(variant(draft.tensors[source], "pixels", image))
    draft.insert(chain[0], Node(OpKind.RESHAPE, [source], [t]), behind=False)
    draft.redirect(node.outputs[0], t)
    draft.remove(node)
    for each in chain:
        old = each.outputs[0]
        if each in moves:
            draft.redirect(old, each.inputs[0])
            draft.remove(each)
            continue
        t = draft.add_tensor(
            variant(draft.tensors[old], "pixels", (*image[:-1], draft.tensors[old].shape[-1]))
        )
        if each is not last:
            draft.redirect(old, t)
        draft.set_outputs(each, [t])
    smaller, channels = draft.tensors[result], draft.tensors[t].shape[-1:]
    before = draft.add_tensor(variant(smaller, "moved", (*shape[:-1], *channels)))
    after = draft.add_tensor(variant(smaller, "turned", (*turned[:-1], *channels)))
    draft.insert(last, Node(OpKind.RESHAPE, [after], [result]))
    draft.insert(last, Node(OpKind.TRANSPOSE, [before], [after], node.attrs, node.index))
    draft.insert(last, Node(OpKind.RESHAPE, [t], [before]))
    return True


def _keeps_channels(draft: Draft, node: Node) -> bool:
    """Whether a RESHAPE keeps the last dimension and the quantisation."""
    shape, source = draft.tensors[node.outputs[0]].shape, draft.tensors[node.inputs[0]].shape
    same = draft.same_quantization(node.inputs[0], node.outputs[0])
    return same and len(shape) > 1 and shape[-1:] == source[-1:]


def _image(draft: Draft, t: int) -> Shape:
    """Returns the shape of `t` as an image: (1, rows, columns, channels).

    If `t` is a RESHAPE of an image, it has that image's rows where its pixels fit into them.
    """
    shape, before = draft.tensors[t].shape, draft.producer(t)
    columns = shape[-2]
    if before is not None and before.kind in ALIAS_KINDS:
        *_, width, channels = draft.tensors[before.inputs[0]].nhwc
        pixels, rest = divmod(width * channels, shape[-1])
        columns = columns if rest else pixels
    return 1, math.prod(shape[:-1]) // columns, columns, shape[-1]


# ---- planes of joined maps -----------------------------------------------------------------------------


def _split_planes(draft: Draft, node: Node) -> bool:
    """Moves a TRANSPOSE from pixels to planes before a concatenation of feature maps.

    A plane has one channel of all pixels. Each map then becomes planes as soon as it is computed, and the
    planes are joined. Elementwise operators between the concatenation and the TRANSPOSE run on the joined
    planes. Returns whether this was possible.
    """
    source, result = (draft.tensors[t].shape for t in (node.inputs[0], node.outputs[0]))
    rows, channels = math.prod(source[:-1]), source[-1]
    matrix = [n for n in source if n != 1] == [rows, channels]
    if not matrix or [n for n in result if n != 1] != [channels, rows]:
        return False
    t, functions = node.inputs[0], list[Node]()
    while (before := draft.producer(t)) is not None and draft.only_reader(t) is not None:
        if before.kind is OpKind.CONCATENATION:
            return _join_planes(draft, node, before, functions)
        if before.kind in ALIAS_KINDS and _keeps_channels(draft, before):
            t = before.inputs[0]
        elif is_elementwise(draft, before) and len(varying := varying_operands(draft, before)) == 1:
            functions.insert(0, before)
            (t,) = varying
        else:
            return False
    return False


def _join_planes(draft: Draft, node: Node, join: Node, functions: list[Node]) -> bool:
    """Replaces the TRANSPOSE `node` by planes of the maps that the concatenation `join` joins.

    `functions` are the elementwise operators between `join` and `node`. Returns whether this was possible.
    """
    axis, joined = join.attributes(g.AxisAttrs).axis, draft.tensors[join.outputs[0]]
    images = [_map_of(draft, t, joined.shape[-1]) for t in join.inputs]
    maps = [t for t in images if t is not None and draft.same_quantization(t, join.outputs[0])]
    below = axis < len(joined.shape) - 1 and math.prod(joined.shape[:axis]) == 1
    if not below or len(set(maps)) < len(join.inputs):
        return False
    ends = [_put_planes(draft, node, t) for t in maps]
    shape = (1, joined.shape[-1], joined.elements // joined.shape[-1])
    t = draft.add_tensor(variant(joined, "planes", shape))
    draft.insert(node, Node(OpKind.CONCATENATION, ends, [t], g.AxisAttrs(2), join.index), behind=False)
    for each in functions:
        out = draft.add_tensor(variant(draft.tensors[each.outputs[0]], "planes", shape))
        (varying,) = varying_operands(draft, each)
        inputs = [t if i == varying else i for i in each.inputs]
        draft.insert(node, Node(each.kind, inputs, [out], each.attrs, each.index), behind=False)
        t = out
    draft.become(node, OpKind.RESHAPE, g.Attrs())
    draft.set_input(node, 0, t)
    return True


def _put_planes(draft: Draft, node: Node, t: int) -> int:
    """Inserts a TRANSPOSE of the image `t` to planes after its producer.

    Returns the planes as a tensor (1, channels, pixels). `node` is the TRANSPOSE that this replaces.
    """
    image, place = draft.tensors[t], draft.producer(t)
    _, rows, columns, channels = image.shape
    planes = draft.add_tensor(variant(image, "planes", (1, channels, rows, columns)))
    lines = draft.add_tensor(variant(image, "lines", (1, channels, rows * columns)))
    assert place is not None
    draft.insert(place, Node(OpKind.RESHAPE, [planes], [lines]))
    draft.insert(place, Node(OpKind.TRANSPOSE, [t], [planes], g.TransposeAttrs((0, 3, 1, 2)), node.index))
    return lines


def _map_of(draft: Draft, t: int, channels: int) -> int | None:
    """Returns the image with this many channels that `t` is a RESHAPE of, None if there is no such image."""
    while draft.only_reader(t) is not None and (before := draft.producer(t)) is not None:
        shape = draft.tensors[t].shape
        if before.kind not in ALIAS_KINDS:
            return t if len(shape) == 4 and shape[0] == 1 and shape[-1] == channels else None
        if not draft.same_quantization(before.inputs[0], t):
            return None
        t = before.inputs[0]
    return None
