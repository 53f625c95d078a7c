"""The memory of a network that is analysed without a plan: sums, lower bound, and a placement."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate

from buildtool.base import modes
from buildtool.graph.flow import Flow, Life, lives, peak, reorder
from buildtool.graph.order import BUDGET, SHORT_BUDGET, Order, least_peak_order
from buildtool.plan.assemble.placement import SEARCH_NODES
from buildtool.plan.place import greedy
from buildtool.plan.place.arena import Item, Problem, validate
from buildtool.plan.place.solver import improve

MOST_PLACED = 2048  # buffers; more take long to place


@dataclass(frozen=True)
class Footprint:
    """The memory of a network. Sizes are in bytes.

    activations, weights: sums over all tensors.
    total: the bytes if no tensors shared memory.
    bound: the most bytes that are live at once. With mode `load`, weights are live from the first operator
        that reads them to the last one. With mode `flash`, they are never in memory.
    planned: the height of a placement; None if there are too many buffers to place.
    fullest: the first operator at which `bound` bytes are live.
    order: the best order found; None if the file's order was kept without a search.
    """

    activations: int
    weights: int
    total: int
    bound: int
    planned: int | None
    fullest: int
    order: Order | None  # None: the file's order was kept without a search


def footprint(flow: Flow, *, weights: str = "flash", order: str = "given") -> tuple[Flow, Footprint]:
    """Returns the flow with its operators in the requested order, and its footprint.

    `weights`: "flash" or "load" (see Footprint). `order`: see `modes.Order`.
    """
    loads = weights == "load"
    budget = {modes.Order.BETTER: SHORT_BUDGET, modes.Order.BEST: BUDGET}.get(modes.Order(order))
    best = least_peak_order(flow, budget=budget) if budget is not None else None
    if best is not None and best.peak < best.given_peak:
        other = reorder(flow, best.order)
        # the order is best for activations alone; with loaded weights the given order may be better
        if peak(lives(other, weights=loads)) < peak(lives(flow, weights=loads)):
            flow = other
    buffers = lives(flow, weights=loads)
    activations = sum(flow.values[v].size for v in flow.activations())
    weight_bytes = sum(flow.values[v].size for v in flow.weights())
    bound, planned = peak(buffers), None
    if len(buffers) <= MOST_PLACED:
        problem = Problem(tuple(Item(life.first, life.last + 1, life.size) for life in buffers))
        solution = improve(problem, greedy.solve(problem), SEARCH_NODES)
        validate(problem, solution.offsets)
        planned = solution.height
    total = activations + (weight_bytes if loads else 0)
    return flow, Footprint(activations, weight_bytes, total, bound, planned, _fullest(buffers, bound), best)


def _fullest(buffers: tuple[Life, ...], bound: int) -> int:
    """Returns the first operator at which the buffers have `bound` live bytes."""
    change = Counter[int]()
    for life in buffers:
        change[life.first] += life.size
        change[life.last + 1] -= life.size
    live = accumulate(change[position] for position in sorted(change))
    return next((at for at, size in zip(sorted(change), live, strict=True) if size == bound), 0)
