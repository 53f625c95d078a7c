"""The forms of blocks as plain numbers, independent of their place in a network, and their cache keys.

A key has all that decides which blocks end with an element, and what they need and do. If two elements have
the same key, the same blocks end with them, in the same forms. Keys contain no number of an element or a
tensor.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from buildtool.plan.schedule.axis import Numbers
from buildtool.plan.search.blocks import MOST_OPERATORS, MOST_REPETITION, MOST_WITH_EDGES, STEPS, Blocks
from buildtool.plan.search.chain import Elements

FAR = -1  # for a tensor that is the main input of no element of the chain


class FormRow(NamedTuple):
    """A block form as plain numbers. Fields that are not below are those of Block, Form and Group.

    back: how many elements before its last one the block begins.
    window: bytes of its windows, without constants that are loaded into the arena.
    extra: the block's extra weight (see Tables) if it computes all rows.
    least_extra: the least extra weight that it may have if fewer rows are needed.
    kernel, stride, pad: of its row axis.
    section: 1 if the block is a section of branches.
    up, down: the two numbers of Block.more.
    """

    back: int
    step: int
    hand_off: int
    window: int
    sums: int
    work: int
    extra: int
    least_extra: int
    late: int
    kernel: int
    stride: int
    pad: int
    section: int
    bands: int
    ahead: int
    up: int
    down: int


def as_rows(rows: Iterable[FormRow]) -> Numbers:
    """Returns block forms as one array, with a row for each form."""
    return np.array([*rows], np.int64).reshape(-1, len(FormRow._fields))


@dataclass(frozen=True)
class ChainKeys:
    """The cache keys of a network's elements.

    An element's key identifies the longest chain (block in which each element feeds the next one) that ends
    with it.
    """

    blocks: Blocks

    @property
    def _e(self) -> Elements:
        return self.blocks.e

    def of(self, last: int) -> Hashable:
        """Returns the key of the chains that end with an element, for this network.

        The key of a section's last element is unique.
        """
        if self.blocks.sections[last] is not None:
            return last
        return self._numbers[self.blocks.lowest[last] : last + 1]

    @cached_property
    def _numbers(self) -> tuple[int, ...]:
        """Returns element -> the number of its geometry; equal geometries have equal numbers."""
        numbers: dict[Hashable, int] = {}
        loaded = self._e.loaded
        keys = (
            (self._element(e), kernel, loaded[p][0] if loaded else 0)
            for e, (p, kernel) in enumerate(zip(self._e.positions, self._e.own_kernels, strict=True))
        )
        return tuple(numbers.setdefault(key, len(numbers)) for key in keys)

    def plain(self, last: int, cost: bool) -> Hashable | None:
        """Returns a key, valid in every network, of the chains that end with an element.

        It contains all that the chains' forms depend on: the geometry of each element, the properties of its
        kernel that the tables read, the hand-offs and the alignment. With `cost` it also contains the cost
        formulas. None for sections, and for kernels whose library is called for the size of the scratch.
        """
        first, e = self.blocks.lowest[last], self._e
        kernels = e.own_kernels[first : last + 1]
        if self.blocks.sections[last] is not None or any(k is not None and k.asks for k in kernels):
            return None
        rules = (STEPS, MOST_WITH_EDGES, MOST_REPETITION, self.blocks.hand_offs, e.alignment, str(e.in_place))
        costs = tuple((k.cost if k else "") for k in kernels) + astuple(e.costs) if cost else ()
        return rules, costs, tuple(map(self._element, range(first, last + 1)))

    def _element(self, element: int) -> Hashable:
        """Returns all properties of an element that its chains' forms depend on, except cost formulas."""
        e, position, kernel = self._e, self._e.positions[element], self._e.own_kernels[element]
        of, tensors = e.topology.ops[position], e.topology.tensors
        seen = e.ops[element].seen
        operands = tuple(tuple(tensors[t]) if t >= 0 else None for t in (*of.inputs, *of.outputs, *seen))
        beside = tuple(
            (self._distance(element, t), e.roots[t] == t, t in e.rows_read[element])
            for t in e.beside[element]
        )
        properties = kernel and (kernel.scratch, kernel.asks, str(kernel.overlap), str(kernel.windows))
        delivered: tuple[Hashable, ...] = ()
        if e.asks(element):
            image = e.graph.tensors[e.delivered.tensor]
            delivered = image.nhwc, image.row_bytes, e.fed(element)
        return of.kind, of.attributes, operands, properties, e.by_rows[element], delivered, beside

    def _distance(self, element: int, tensor: int) -> int:
        """Returns how many elements before `element` the element is whose main input is `tensor`.

        FAR if no element that can be in the same block has it as its main input.
        """
        nearest = range(element, max(-1, element - MOST_OPERATORS), -1)
        return next((element - first for first in nearest if self._e.main[first] == tensor), FAR)
