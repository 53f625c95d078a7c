"""Orders of operators in which chains stay together.

Where an operator's output is read by one operator alone, which reads nothing else, the two can run row by
row as long as they are neighbours. So such chains are ordered as if each were one operator: there are fewer
of them, so that the search ends with a proof more often, and none is torn apart, as an order may do that
looks at the live bytes of whole tensors alone. Neither order is better in all networks: both are planned.
"""

from __future__ import annotations

from dataclasses import replace

from buildtool.graph.flow import Flow, lives, peak, reordered
from buildtool.graph.order import BUDGET, Order, least_peak_order


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
    found = []
    for last in (i for i in range(len(flow.ops)) if i not in behind):
        chain = [last]
        while chain[-1] in before:
            chain.append(before[chain[-1]])
        found.append(chain[::-1])
    return found


def least_peak_of_chains(flow: Flow, *, budget: int = BUDGET) -> Order:
    """An order in which chains stay together, with the least peak of what is live between them.

    Its `peak` and `given_peak` are the flow's own, as those of `least_peak_order`; it is the given order
    where no other is better between chains.
    """
    found = chains(flow)
    ops = tuple(
        replace(flow.ops[chain[-1]], reads=flow.ops[chain[0]].reads, position=chain[-1]) for chain in found
    )
    given = peak(lives(flow))
    least = least_peak_order(replace(flow, ops=ops), budget=budget)
    if least.peak >= least.given_peak:
        return Order(tuple(range(len(flow.ops))), least.status, given, given, least.nodes)
    order = tuple(i for number in least.order for i in found[number])
    return Order(order, least.status, peak(lives(reordered(flow, order))), given, least.nodes)
