"""Chains of geometry: what decides which blocks end at an element, and what they need and do.

Two elements with the same key end the same blocks in the same forms, each as far before its element in
one place as in the other. Keys have no number of an element or a tensor in them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

from buildtool.plan.search.blocks import Blocks
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
        return tuple(
            numbers.setdefault(self._element(e), len(numbers)) for e in range(len(self._e.positions))
        )

    def _element(self, element: int) -> Hashable:
        """All of an element that its chains' forms depend on."""
        e, position = self._e, self._e.positions[element]
        op, tensors = e.op(element), e.graph.tensors
        operands = tuple(
            (tensors[t].shape, tensors[t].dtype, tensors[t].is_constant) if t >= 0 else None
            for t in (*op.inputs, *op.outputs)
        )
        loaded = e.loaded[position] if e.loaded else ()
        beside = tuple(
            (self._distance(element, t), e.roots[t] == t, t in e.rows_read[element])
            for _, t in e.beside(element, element)
        )
        by_rows, fed = e.by_rows(element), e.fed(element)
        return op.kind, op.attrs, operands, e.kernels[position], loaded, by_rows, fed, beside

    def _distance(self, element: int, tensor: int) -> int:
        """How many elements earlier a tensor feeds the chain."""
        driven = self._driven.get(tensor, ())
        return min((element - first for first in driven if first <= element), default=FAR)

    @cached_property
    def _driven(self) -> dict[int, tuple[int, ...]]:
        """Tensor -> the elements that it drives."""
        found: dict[int, tuple[int, ...]] = {}
        for element in range(len(self._e.positions)):
            main = self._e.main(element)
            found[main] = (*found.get(main, ()), element)
        return found
