"""How a tensor lies in memory, relative to the element order of its ONNX file.

ONNX image tensors are NCHW, ours are NHWC. A tensor's layout is the permutation from the file's element order
to that of memory. It does not depend on the shape: the file's flat order is split into factors (slowest
first), and dimension j in memory is factor perm[j]. Layouts are canonical: no factor is 1, and factors that
are neighbours in both orders are joined. So equal layouts mean equal orders of bytes. A reshape in the file
keeps the layout. A transposition in the file changes only the layout. Neither moves a byte.
"""

import itertools
import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """The order of a tensor's n elements in memory.

    Element i in memory is the file's element p[i], where p is arange(n).reshape(factors).transpose(perm),
    flattened.
    """

    factors: Sizes
    perm: Sizes


def _split_runs(numbers: Iterable[int]) -> list[list[int]]:
    """Splits the numbers into runs of consecutive numbers: 3, 4, 1, 0 gives [3, 4], [1], [0]."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][-1] + 1 == n:
            runs[-1].append(n)
        else:
            runs.append([n])
    return runs


def canonical(factors: Sequence[int], perm: Sequence[int]) -> Layout:
    """Returns the canonical layout for these factors and their order.

    Factors of 1 are dropped. Factors that are neighbours both in the file and in memory are joined.
    """
    order = [p for p in perm if factors[p] != 1]
    numbers = sorted(order)
    runs = _split_runs(numbers.index(p) for p in order)  # in memory order; consecutive in the file
    in_file = sorted(runs)
    sizes = tuple(math.prod(factors[numbers[n]] for n in run) for run in in_file)
    return Layout(sizes, tuple(in_file.index(run) for run in runs))


def plain(shape: Sequence[int]) -> Layout:
    """Returns the layout whose memory order is the file's order."""
    return canonical(shape, range(len(shape)))


def place_in_memory(shape: Sequence[int], order: Sequence[int]) -> tuple[Sizes, Layout]:
    """Returns (shape in memory, layout) of a tensor with the shape `shape` in the file.

    Dimension i in memory is the file's dimension order[i].
    """
    return tuple(shape[d] for d in order), canonical(shape, order)


def _find_edges(sizes: Sequence[int]) -> Iterable[int]:
    """Returns the strides of dimensions of these sizes, in elements, from the last dimension to the first.

    The last number that it returns is that of all elements.
    """
    return itertools.accumulate(reversed(sizes), operator.mul, initial=1)


def _split(sizes: Sequence[int], edges: Sequence[int]) -> tuple[Sizes, list[Sizes]]:
    """Splits each size into factors at the strides `edges`.

    Returns (all factors, for each size the indices of its factors).
    """
    pieces: list[list[int]] = []
    for low, high in itertools.pairwise(_find_edges(sizes)):
        inside = [e for e in edges if low <= e <= high]
        pieces.append([b // a for a, b in itertools.pairwise(inside)][::-1])
    pieces.reverse()
    ends = itertools.accumulate(map(len, pieces), initial=0)
    return tuple(itertools.chain(*pieces)), [tuple(range(*pair)) for pair in itertools.pairwise(ends)]


def refine(layout: Layout, sizes: Sequence[int]) -> tuple[Layout, list[Sizes]] | None:
    """Splits the layout's factors further, so that each of `sizes` is a product of neighbouring factors.

    Returns (the layout with these factors, for each size the indices of its factors). This layout is not
    canonical. Returns None if there are no such factors.
    """
    edges = sorted({*_find_edges(layout.factors), *_find_edges(sizes)})
    if any(b % a for a, b in itertools.pairwise(edges)):
        return None
    factors, numbers = _split(layout.factors, edges)
    perm = tuple(k for p in layout.perm for k in numbers[p])
    return Layout(factors, perm), _split(sizes, edges)[1]


def transpose_layout(shape: Sequence[int], layout: Layout, perm: Sequence[int]) -> Layout | None:
    """Returns a tensor's layout after a transposition in the file. No byte moves in memory.

    The new dimension i is the old dimension perm[i]. Returns None if a dimension of `shape` cannot be made of
    the layout's factors. Then the tensor must first be transposed in memory.
    """
    refinement = refine(layout, shape)
    if refinement is None:
        return None
    fine, owners = refinement
    order = [k for p in perm for k in owners[p]]  # the new file order
    place = {k: i for i, k in enumerate(order)}
    return canonical([fine.factors[k] for k in order], [place[k] for k in fine.perm])


def order_of(shape: Sequence[int], layout: Layout) -> Sizes | None:
    """Returns the order of the file's dimensions in memory, None if a dimension is split in memory.

    Sizes of 1 may allow several orders. Channels last is preferred, then the file's order.
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
    """Returns (the last dimension's factors as in the file, their order in memory).

    Returns None unless memory has all other dimensions before the last one, in the file's order.
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


def find_transpose(source: Layout, target: Layout) -> tuple[Sizes, Sizes] | None:
    """Returns (shape, permutation) of the transposition in memory from `source` to `target`.

    `shape` is the source's shape in memory, with as few dimensions as possible. Returns None if the layouts
    have no common factors.
    """
    refinement = refine(source, target.factors)
    if refinement is None:
        return None
    fine, owners = refinement
    order = [k for p in target.perm for k in owners[p]]
    runs = _split_runs(order.index(k) for k in fine.perm)  # factors that stay neighbours
    shape = tuple(math.prod(fine.factors[order[n]] for n in run) for run in runs)
    return shape, tuple(sorted(range(len(runs)), key=runs.__getitem__))
