"""How a tensor lies in memory, relative to the order of its ONNX file; moves that cost nothing.

ONNX images are NCHW, ours are NHWC. A tensor's layout says which permutation of the file's element
order memory holds, independent of shapes: the file's flat order is split into factors (slowest
first), and memory dimension j is factor perm[j]. Layouts are canonical (no factor is 1, factors that
are neighbours in both orders are one), so equal layouts are equal orders of bytes. A reshape leaves
the layout as it is, a transposition in the file only changes it: neither moves a byte.
"""

import itertools
import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """Memory is arange(n).reshape(factors).transpose(perm), flattened."""

    factors: Sizes
    perm: Sizes

    @property
    def plain(self) -> bool:
        """Whether memory has the file's own order."""
        return len(self.perm) <= 1


def _runs(numbers: Iterable[int]) -> list[list[int]]:
    """The numbers, each with those that follow it and are its successors."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][-1] + 1 == n:
            runs[-1].append(n)
        else:
            runs.append([n])
    return runs


def canonical(factors: Sequence[int], perm: Sequence[int]) -> Layout:
    """The one layout of this order: ones dropped, neighbours in both orders joined."""
    order = [p for p in perm if factors[p] != 1]
    kept = sorted(order)
    runs = _runs(kept.index(p) for p in order)  # in the order of memory; each run is consecutive in the file
    in_file = sorted(runs)
    sizes = tuple(math.prod(factors[kept[n]] for n in run) for run in in_file)
    return Layout(sizes, tuple(in_file.index(run) for run in runs))


def plain(shape: Sequence[int]) -> Layout:
    """The file's own order."""
    return canonical(shape, range(len(shape)))


def lying(shape: Sequence[int], order: Sequence[int]) -> tuple[Sizes, Layout]:
    """(shape in memory, layout) of a tensor of the file whose dimensions lie in that order."""
    return tuple(shape[d] for d in order), canonical(shape, order)


def _edges(sizes: Sequence[int]) -> Iterable[int]:
    """Products of the last k sizes, k = 0.. : where the sizes lie in the flat order."""
    return itertools.accumulate(reversed(sizes), operator.mul, initial=1)


def _split(sizes: Sequence[int], edges: Sequence[int]) -> tuple[Sizes, list[Sizes]]:
    """(all factors between the given edges, the numbers of those that each of `sizes` is a product of)."""
    pieces: list[list[int]] = []
    for low, high in itertools.pairwise(_edges(sizes)):
        inside = [e for e in edges if low <= e <= high]
        pieces.append([b // a for a, b in itertools.pairwise(inside)][::-1])
    pieces.reverse()
    ends = itertools.accumulate(map(len, pieces), initial=0)
    return tuple(itertools.chain(*pieces)), [tuple(range(*pair)) for pair in itertools.pairwise(ends)]


def refine(layout: Layout, sizes: Sequence[int]) -> tuple[Layout, list[Sizes]] | None:
    """The layout with factors that `sizes` are products of, and the factors' numbers of each size.

    None if the two have no common factors. The result is not canonical.
    """
    edges = sorted({*_edges(layout.factors), *_edges(sizes)})
    if any(b % a for a, b in itertools.pairwise(edges)):
        return None
    factors, numbers = _split(layout.factors, edges)
    perm = tuple(k for p in layout.perm for k in numbers[p])
    return Layout(factors, perm), _split(sizes, edges)[1]


def transpose_layout(shape: Sequence[int], layout: Layout, perm: Sequence[int]) -> Layout | None:
    """The layout of the file's transposition: its dimension i is dimension perm[i]. None: must move."""
    refinement = refine(layout, shape)
    if refinement is None:
        return None
    fine, owners = refinement
    order = [k for p in perm for k in owners[p]]  # the new file order
    place = {k: i for i, k in enumerate(order)}
    return canonical([fine.factors[k] for k in order], [place[k] for k in fine.perm])


def order_of(shape: Sequence[int], layout: Layout) -> Sizes | None:
    """The order of the file's dimensions in memory, None if a dimension is torn apart.

    Dimensions of size 1 lie where channels-last images and the file's order have them, if either fits.
    """
    rank = len(shape)
    last = (0, *range(2, rank), 1) if rank >= 3 else tuple(range(rank))
    for order in (last, tuple(range(rank))):
        if canonical(shape, order) == layout:
            return order
    refinement = refine(layout, shape)
    if refinement is None:
        return None
    fine, owners = refinement
    place = {k: i for i, k in enumerate(fine.perm)}
    owned = [d for d in range(rank) if owners[d]]
    order = tuple(sorted(owned, key=lambda d: place[owners[d][0]]))
    ones = tuple(d for d in range(rank) if not owners[d])
    whole = (*ones, *order)
    return whole if canonical(shape, whole) == layout else None


def tail_order(shape: Sequence[int], layout: Layout) -> tuple[Sizes, Sizes] | None:
    """How the last dimension is permuted where all others lie in order before it.

    (factors of the last dimension in the file's order, their order in memory); None if it is not so.
    """
    refinement = refine(layout, shape)
    if refinement is None:
        return None
    fine, owners = refinement
    lead = [k for part in owners[:-1] for k in part]
    if list(fine.perm[: len(lead)]) != lead:
        return None
    first = len(lead)
    return tuple(fine.factors[k] for k in owners[-1]), tuple(k - first for k in fine.perm[first:])


def between(source: Layout, target: Layout) -> tuple[Sizes, Sizes] | None:
    """(shape of the source in memory, permutation) that turns one order into the other.

    As few dimensions as possible; None if there are no common factors (then by way of the plain order).
    """
    refinement = refine(source, target.factors)
    if refinement is None:
        return None
    fine, owners = refinement
    wanted = [k for p in target.perm for k in owners[p]]
    runs = _runs(wanted.index(k) for k in fine.perm)  # of factors that stay neighbours
    shape = tuple(math.prod(fine.factors[wanted[n]] for n in run) for run in runs)
    return shape, tuple(sorted(range(len(runs)), key=runs.__getitem__))
