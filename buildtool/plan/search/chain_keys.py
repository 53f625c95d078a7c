"""Chains of geometry: what decides which blocks end at an element, and what they need and do.

Two elements with the same key end the same blocks in the same forms, each as far before its element in
one place as in the other. Keys have no number of an element or a tensor in them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import astuple, dataclass
from functools import cached_property

from buildtool.plan.search.blocks import MOST_OPERATORS, MOST_REPETITION, STEPS, Blocks
from buildtool.plan.search.chain import Elements

FAR = -1  # a tensor that feeds no element of the chain


@dataclass(frozen=True)
class ChainKeys:
    """The keys of a network's elements, each that of the longest chain that ends there."""

    blocks: Blocks

    @property
    def _e(self) -> Elements:
        return self.blocks.e

    def of(self, last: int) -> Hashable:
        """The key of the chains that end at an element; of a section's join its own, which no other has."""
        if self.blocks.sections[last] is not None:
            return last
        return self._elements[self.blocks.lowest(last) : last + 1]

    @cached_property
    def _elements(self) -> tuple[int, ...]:
        """Element -> the number of its geometry, the same for equal ones."""
        numbers: dict[Hashable, int] = {}
        kernels, loaded = self._e.kernels, self._e.loaded
        whole = (
            (self._element(e), kernels[p], loaded[p][0] if loaded else 0)
            for e, p in enumerate(self._e.positions)
        )
        return tuple(numbers.setdefault(key, len(numbers)) for key in whole)

    def plain(self, last: int, cost: bool) -> Hashable | None:
        """The key of the chains that end at an element, in plain values alone, for any network and process.

        It has all that the chains' forms depend on: the geometry of each element from the first one on, what
        the tables read of its kernel, the hand-offs and the alignment; with `cost` the costs' formulas, too.
        None where it cannot be said: of sections, and of kernels whose library is asked for its scratch.
        """
        first, e = self.blocks.lowest(last), self._e
        kernels = [e.kernels[position] for position in e.positions[first : last + 1]]
        if self.blocks.sections[last] is not None or any(k is not None and k.asks for k in kernels):
            return None
        rules = (STEPS, MOST_REPETITION, self.blocks.hand_offs, e.alignment, str(e.in_place))
        costs = tuple((k.cost if k else "") for k in kernels) + astuple(e.costs) if cost else ()
        return rules, costs, tuple(map(self._element, range(first, last + 1)))

    def _element(self, element: int) -> Hashable:
        """All of an element that its chains' forms depend on, but for the formulas of cost."""
        e, position = self._e, self._e.positions[element]
        of, tensors, kernel = e.topology.ops[position], e.topology.tensors, e.kernels[position]
        seen = e.graph.ops[position].seen
        operands = tuple(tuple(tensors[t]) if t >= 0 else None for t in (*of.inputs, *of.outputs, *seen))
        beside = tuple(
            (self._distance(element, t), e.roots[t] == t, t in e.rows_read[element])
            for _, t in e.beside(element, element)
        )
        asked = kernel and (kernel.scratch, kernel.asks, str(kernel.overlap), str(kernel.windows))
        image = e.graph.inputs[0] if e.graph.inputs else -1
        delivered = (
            (e.graph.tensors[image].nhwc, e.graph.tensors[image].row_bytes, image in of.inputs)
            if e.fed(element)
            else ()
        )
        by_rows = e.by_rows[element]
        return of.kind, of.attributes, operands, asked, by_rows, delivered, beside

    def _distance(self, element: int, tensor: int) -> int:
        """How many elements earlier a tensor feeds the chain."""
        driven = self._driven.get(tensor, ())
        nearest = min((element - first for first in driven if first <= element), default=FAR)
        return nearest if nearest < MOST_OPERATORS else FAR

    @cached_property
    def _driven(self) -> dict[int, tuple[int, ...]]:
        """Tensor -> the elements that it drives."""
        found: dict[int, tuple[int, ...]] = {}
        for element in range(len(self._e.positions)):
            main = self._e.main[element]
            found[main] = (*found.get(main, ()), element)
        return found
