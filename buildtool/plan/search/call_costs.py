"""What the calls of an operator in a streamed region cost, asked for again and again by the blocks it is in.

Most of what is asked was asked before: equal ranges of rows come from blocks of other elements behind it,
equal operators from other places of the network. Parts and costs are made once each, and parts are known
by a number.
"""

from __future__ import annotations

from functools import cached_property

from buildtool.plan.schedule.calls import Ranges
from buildtool.plan.schedule.costs import CostModel, Parts
from buildtool.target.costs import Geometry, Rings


class CallCosts:
    """The costs of a graph's operators in streamed regions."""

    def __init__(self, model: CostModel) -> None:
        self._model = model
        self._numbers: dict[Parts, int] = {}
        self._parts: list[Parts] = []
        self._of_ranges: dict[tuple[int, int, bytes, bytes, Rings], int] = {}
        self._costs: dict[tuple[int, int, int], float] = {}

    @cached_property
    def _alike(self) -> tuple[int, ...]:
        """Operator -> the first one with the same geometry and kernel, which costs the same."""
        model = self._model
        first: dict[tuple[Geometry | None, str, bool], int] = {}
        return tuple(
            first.setdefault(
                (model.geometries.get(p), kernel.cost if kernel else "", p in model.fed_in_parts), p
            )
            for p, kernel in enumerate(model.kernels)
        )

    def parts(self, position: int, axis: int, ranges: Ranges, rings: Rings = Rings()) -> int:  # noqa: B008
        """The number of what ranges along an axis are to the cost of an operator: see CostModel.parts."""
        alike = self._alike[position]
        key = (alike, axis, ranges.low.tobytes(), ranges.high.tobytes(), rings)
        found = self._of_ranges.get(key)
        if found is None:
            parts = self._model.parts(alike, axis, ranges, True, rings)
            found = self._of_ranges[key] = self._numbers.setdefault(parts, len(self._parts))
            if found == len(self._parts):
                self._parts.append(parts)
        return found

    def cost(self, position: int, rows: int, columns: int) -> float:
        """All calls of an operator for rows and columns by their numbers."""
        key = (self._alike[position], rows, columns)
        found = self._costs.get(key)
        if found is None:
            model = self._model
            found = self._costs[key] = model.priced(key[0], self._parts[rows], self._parts[columns], True)
        return found
