"""The operator order with the least peak of live bytes: exact where that takes a bounded search.

Operators that every other one comes before or after cut the order into segments, which are solved
one by one: a best-first search over sets of executed operators (the bytes live after a set do not
depend on its order), the smallest peak first, then the longest prefix. Two arguments keep it small:

- no order is below the floor: while an operator runs, the values that its predecessors make and that
  it or its successors read are live. A segment need not be better than the highest floor of all.
- an operator that frees at least as much as it adds, and fits under the peak so far, can run at once:
  moved forward in any order, it raises no later live sum.

Effort is counted in sets looked at; where the budget ends first, the best order of a beam search
stands, never worse than the given one, and the status says so.

`least_peak_of_chains` orders chains. Where an operator's output is read by one operator alone, which reads
nothing else, the two can run row by row as long as they are neighbours. So such chains are ordered as if each
were one operator: the search ends with a proof more often, and no chain is torn apart. Neither order is
better in all networks: both are planned.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from buildtool.graph.flow import Flow, flow_of, lives, peak, reorder
from buildtool.graph.numbering import number_tensors
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.ordersearch import Segment, Uses, beam, search
from buildtool.graph.types import Graph

BUDGET = 40_000  # sets of executed operators looked at, in all
MOST_OPS = 4096  # of a network; ancestors take a bit for each pair
MOST_SEGMENT = 1024  # operators of a segment that is searched
SHORT_BUDGET = 2_000  # of a search that nobody asked for: some tenths of a second
BEAM = 24  # sets kept at each length; fewer in a short search, so that it stays one
_READY = 4  # operators that can run next, about: a set's successors


@dataclass(frozen=True)
class Order:
    """`order`: places in Flow.ops in the new order; peaks in live bytes.

    `status`: "optimal" (no order has a lower peak) or "feasible". `peak` is never above `given_peak`,
    and where it is not below, the order is the given one.
    """

    order: tuple[int, ...]
    status: str
    peak: int
    given_peak: int
    nodes: int


def least_peak_order(flow: Flow, *, budget: int = BUDGET) -> Order:
    """An order of `flow`'s operators with the least peak that `budget` sets suffice to find."""
    given = tuple(range(len(flow.ops)))
    before = peak(lives(flow))
    if len(given) > MOST_OPS:
        return Order(given, "feasible", before, before, 0)
    width = BEAM if budget >= BUDGET else 0
    uses = Uses.of(flow)
    segments = [Segment.of(uses, ops) for ops in _segments(uses)]
    goal = max((s.floor for s in segments if s.count <= MOST_SEGMENT), default=0)
    most, nodes, exact = 0, 0, True
    # The worst segments first: the others may use as many bytes as these cannot avoid.
    solved: dict[int, tuple[int, ...]] = {}
    for number in sorted(range(len(segments)), key=lambda i: (-segments[i].given_peak, i)):
        segment = segments[number]
        solved[number], reached, spent, proven = _solve(segment, max(goal, most), budget - nodes, width)
        nodes += spent
        if reached > most:
            most, exact = reached, proven
    order = [i for number in range(len(segments)) for i in solved[number]]
    # An input that nothing reads is live at the first operator, whichever that is: not searched.
    read = {v for op in flow.ops for v in op.reads}
    exact = exact and all(v in read or v in flow.outputs for v in flow.inputs)
    status, after = "optimal" if exact else "feasible", peak(lives(reorder(flow, order)))
    if after >= before:
        return Order(given, status, before, before, nodes)
    return Order(tuple(order), status, after, before, nodes)


def _solve(segment: Segment, goal: int, budget: int, width: int) -> tuple[tuple[int, ...], int, int, bool]:
    """(order, peak, sets looked at, whether no order is below max(goal, peak)) of one segment.

    `width`: of the beam; 0: as the budget allows.
    """
    best, reached = segment.given, segment.given_peak
    if reached <= goal:
        return best, reached, 0, True
    if segment.count > MOST_SEGMENT:
        return best, reached, 0, False
    tried = beam(segment, goal, width or max(1, min(BEAM, budget // (_READY * segment.count))))
    if tried.order is not None and tried.peak < reached:
        best, reached = tried.order, tried.peak
    if reached <= goal:
        return best, reached, tried.nodes, True
    result = search(segment, goal, reached, max(0, budget - tried.nodes))
    nodes = tried.nodes + result.nodes
    if result.order is not None:
        return result.order, result.peak, nodes, True
    return best, reached, nodes, result.exhausted


def in_order(graph: Graph, found: Order) -> Graph:
    """`graph` with its operators in an order; the graph itself where that is its own.

    Aliases follow their source at once; the tensors are numbered anew.
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
    """Whether `order` is an order of the graph's operators, with the peaks that it has."""
    flow = flow_of(graph)
    if sorted(order.order) != list(range(len(flow.ops))):
        return False
    produced = {v for i, op in enumerate(flow.ops) for v in op.writes}
    made = set[int]()
    for i in order.order:
        if any(v in produced and v not in made for v in flow.ops[i].reads):
            return False
        made.update(flow.ops[i].writes)
    peaks = peak(lives(reorder(flow, order.order))), peak(lives(flow))
    return peaks == (order.peak, order.given_peak)


def _segments(uses: Uses) -> list[tuple[int, ...]]:
    """Runs of operators that stay together in every order, each up to one that all others relate to."""
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
    """The operators (places in Flow.ops) by chain, in the flow's order; chains by their last operators."""
    readers: dict[int, list[int]] = {}
    for i, op in enumerate(flow.ops):
        for v in op.reads:
            readers.setdefault(v, []).append(i)
    behind: dict[int, int] = {}  # operator -> the one that it feeds alone
    for i, op in enumerate(flow.ops):
        reading = readers.get(op.writes[0], []) if len(op.writes) == 1 else []
        alone = len(reading) == 1 and len(flow.ops[reading[0]].reads) == 1
        if alone and op.writes[0] not in flow.outputs:
            behind[i] = reading[0]
    before = {after: i for i, after in behind.items()}
    groups = []
    for last in (i for i in range(len(flow.ops)) if i not in behind):
        chain = [last]
        while chain[-1] in before:
            chain.append(before[chain[-1]])
        groups.append(chain[::-1])
    return groups


def least_peak_of_chains(flow: Flow, *, budget: int = BUDGET) -> Order:
    """An order in which chains stay together, with the least peak of the bytes live between them.

    Its `peak` and `given_peak` are the flow's own, as those of `least_peak_order`; it is the given order
    where no other is better between chains.
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
