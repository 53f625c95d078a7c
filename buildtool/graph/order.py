"""Finds the operator order with the lowest peak of live bytes. It is exact if a bounded search suffices.

Some operators run before or after every other one. They cut the order into segments, which are solved one by
one. A best-first search visits sets of executed operators (the bytes live after a set do not depend on its
order): the set with the lowest peak first, and of equal ones the largest. Two facts keep the search small:

- No order is below the floor: while an operator runs, the values that its predecessors make and that
  it or its successors read are live. A segment need not be better than the highest floor of all segments.
- An operator that frees at least as much as it adds, and fits under the peak so far, can run at once:
  moving it forward raises no later live sum.

A budget limits the number of visited sets. Where it ends the search, the result is the best order of a beam
search, which is never worse than the given order, and `status` is "feasible".

`least_peak_of_chains` orders chains. Where one operator alone reads an operator's output, and reads nothing
else, the two can run row by row as long as they are neighbours. So it orders each such chain like one
operator: more searches end with a proof, and no chain is torn apart. Neither order is better in all networks,
so both are planned.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from buildtool.graph.flow import Flow, flow_of, lives, peak, reorder
from buildtool.graph.numbering import number_tensors
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.ordersearch import Segment, Uses, beam, search
from buildtool.graph.types import Graph

BUDGET = 40_000  # visited sets of executed operators, in total
MOST_OPS = 4096  # operators of a network; the ancestors take one bit per pair
MOST_SEGMENT = 1024  # operators of a segment; longer ones are not searched
SHORT_BUDGET = 2_000  # visited sets of a short search: some tenths of a second
BEAM = 24  # sets that the beam search keeps at each length; a short search keeps fewer
_READY = 4  # typical number of operators that can run next


@dataclass(frozen=True)
class Order:
    """An order of a flow's operators, and its peak of live bytes.

    `order`: positions in Flow.ops.
    `status`: "optimal" (no order has a lower peak) or "feasible".
    `peak`: the peak of this order, never above `given_peak`.
    `given_peak`: the peak of the given order. If the two are equal, `order` is the given order.
    `nodes`: the number of sets of operators that the search visited.
    """

    order: tuple[int, ...]
    status: str
    peak: int
    given_peak: int
    nodes: int


def least_peak_order(flow: Flow, *, budget: int = BUDGET) -> Order:
    """Searches for the order of operators with the lowest peak. It visits at most `budget` sets."""
    given = tuple(range(len(flow.ops)))
    before = peak(lives(flow))
    if len(given) > MOST_OPS:
        return Order(given, "feasible", before, before, 0)
    width = BEAM if budget >= BUDGET else 0
    uses = Uses.of(flow)
    segments = [Segment.of(uses, ops) for ops in _segments(uses)]
    goal = max((s.floor for s in segments if s.count <= MOST_SEGMENT), default=0)
    highest, nodes, exact = 0, 0, True
    # The segments with the highest peaks first: the others may use as many bytes as these need anyway.
    solved: dict[int, tuple[int, ...]] = {}
    for number in sorted(range(len(segments)), key=lambda i: (-segments[i].given_peak, i)):
        segment = segments[number]
        solved[number], reached, visited, proven = _solve(segment, max(goal, highest), budget - nodes, width)
        nodes += visited
        if reached > highest:
            highest, exact = reached, proven
    order = [i for number in range(len(segments)) for i in solved[number]]
    # An input that nothing reads is live at the first operator of any order. The search ignores it.
    read = {v for op in flow.ops for v in op.reads}
    exact = exact and all(v in read or v in flow.outputs for v in flow.inputs)
    status, after = "optimal" if exact else "feasible", peak(lives(reorder(flow, order)))
    if after >= before:
        return Order(given, status, before, before, nodes)
    return Order(tuple(order), status, after, before, nodes)


def _solve(segment: Segment, goal: int, budget: int, width: int) -> tuple[tuple[int, ...], int, int, bool]:
    """Searches for a segment's best order. Returns (order, its peak, number of visited sets, proven).

    The search ends at a peak of at most `goal`, as other segments need that anyway. `proven` tells whether no
    order has a peak below max(goal, peak). `budget`: the largest number of visited sets. `width`: the beam's
    width; if it is 0, the budget determines it.
    """
    best, reached = segment.given, segment.given_peak
    if reached <= goal:
        return best, reached, 0, True
    if segment.count > MOST_SEGMENT:
        return best, reached, 0, False
    draft = beam(segment, goal, width or max(1, min(BEAM, budget // (_READY * segment.count))))
    if draft.order is not None and draft.peak < reached:
        best, reached = draft.order, draft.peak
    if reached <= goal:
        return best, reached, draft.nodes, True
    result = search(segment, goal, reached, max(0, budget - draft.nodes))
    nodes = draft.nodes + result.nodes
    if result.order is not None:
        return result.order, result.peak, nodes, True
    return best, reached, nodes, result.exhausted


def in_order(graph: Graph, found: Order) -> Graph:
    """Returns `graph` with its operators in another order, or `graph` itself where that is the same order.

    Each alias directly follows the operator that makes its source. The tensors get new canonical numbers.
    """
    if found.order == tuple(range(len(found.order))):
        return graph
    waiting: dict[int, list[int]] = {}
    for position, op in enumerate(graph.ops):
        if op.kind in ALIAS_KINDS:
            waiting.setdefault(op.inputs[0], []).append(position)
    order: list[int] = []

    def follow(tensors: Sequence[int]) -> None:
        todo = list(tensors)
        while todo:
            for position in waiting.get(todo.pop(), ()):
                order.append(position)
                todo += graph.ops[position].outputs

    flow = flow_of(graph)
    follow((*graph.inputs, *(state.before for state in graph.states)))
    for i in found.order:
        order.append(flow.ops[i].position)
        follow(graph.ops[order[-1]].outputs)
    return number_tensors(replace(graph, ops=tuple(graph.ops[i] for i in order)))


def is_order(graph: Graph, order: Order) -> bool:
    """Whether `order` is a valid order of the graph's operators, and states its peaks correctly."""
    flow = flow_of(graph)
    if sorted(order.order) != list(range(len(flow.ops))):
        return False
    produced = {v for i, op in enumerate(flow.ops) for v in op.writes}
    available = set[int]()
    for i in order.order:
        if any(v in produced and v not in available for v in flow.ops[i].reads):
            return False
        available.update(flow.ops[i].writes)
    peaks = peak(lives(reorder(flow, order.order))), peak(lives(flow))
    return peaks == (order.peak, order.given_peak)


def _segments(uses: Uses) -> list[tuple[int, ...]]:
    """Returns runs of operators that stay together in every order.

    If an operator runs before or after every other one in all orders, it is a segment of its own. The
    operators between two such operators are a segment.
    """
    segments: list[tuple[int, ...]] = []
    run: list[int] = []
    for i, (below, above) in enumerate(zip(uses.below, uses.above, strict=True)):
        run.append(i)
        if below.bit_count() + above.bit_count() == len(uses.below) - 1:
            segments += [tuple(run[:-1])] if len(run) > 1 else []
            segments.append((i,))
            run = []
    return [*segments, tuple(run)] if run else segments


def chains(flow: Flow) -> list[list[int]]:
    """Returns the flow's chains, sorted by their last operators. A chain is positions in Flow.ops.

    In a chain, each operator is the only reader of the output of the one before it, and reads nothing else.
    """
    readers: dict[int, list[int]] = {}
    for i, op in enumerate(flow.ops):
        for v in op.reads:
            readers.setdefault(v, []).append(i)
    follower: dict[int, int] = {}  # operator -> its only reader, which reads nothing else
    for i, op in enumerate(flow.ops):
        own_readers = readers.get(op.writes[0], []) if len(op.writes) == 1 else []
        alone = len(own_readers) == 1 and len(flow.ops[own_readers[0]].reads) == 1
        if alone and op.writes[0] not in flow.outputs:
            follower[i] = own_readers[0]
    before = {after: i for i, after in follower.items()}
    groups = []
    for last in (i for i in range(len(flow.ops)) if i not in follower):
        chain = [last]
        while chain[-1] in before:
            chain.append(before[chain[-1]])
        groups.append(chain[::-1])
    return groups


def least_peak_of_chains(flow: Flow, *, budget: int = BUDGET) -> Order:
    """Returns an order that does not interrupt chains and needs the fewest bytes between chains.

    `peak` and `given_peak` count all live bytes, like those of `least_peak_order`. If no other order is
    better between chains, the result is the given order.
    """
    groups = chains(flow)
    ops = tuple(
        replace(flow.ops[chain[-1]], reads=flow.ops[chain[0]].reads, position=chain[-1]) for chain in groups
    )
    given = peak(lives(flow))
    least = least_peak_order(replace(flow, ops=ops), budget=budget)
    if least.peak >= least.given_peak:
        return Order(tuple(range(len(flow.ops))), least.status, given, given, least.nodes)
    order = tuple(i for number in least.order for i in groups[number])
    return Order(order, least.status, peak(lives(reorder(flow, order))), given, least.nodes)
