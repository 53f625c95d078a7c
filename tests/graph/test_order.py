"""Operator orders: the search equals trying every order of small random networks, and it saves memory."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_nets import graphs
from zeronet import wired_net

from buildtool.graph.flow import Flow, FlowOp, Value, flow_of, lives, peak, reorder
from buildtool.graph.liveness import live_sum_bound
from buildtool.graph.order import chains, in_order, is_order, least_peak_of_chains, least_peak_order
from buildtool.graph.rewrite import rewrite


@st.composite
def flows(draw, most=8):
    """Random operators with one or two results, which any later operators may read, or none."""
    draw_int = draw(st.randoms(use_true_random=False)).randint
    values = [Value("in", draw_int(1, 40))]
    ops, last = [], draw_int(1, most)
    for i in range(last):
        reads = sorted({draw_int(0, len(values) - 1) for _ in range(draw_int(1, 3))})
        writes = [len(values) + k for k in range(draw_int(1, 4) // 4 + 1)]
        values += [Value(f"v{v}", draw_int(0, 40)) for v in writes]
        ops.append(FlowOp(f"op{i}", "OP", tuple(reads), tuple(writes), i))
    if not any(0 in op.reads for op in ops):
        ops[0] = FlowOp("op0", "OP", (0,), ops[0].writes, 0)
    outputs = sorted({len(values) - 1, *(draw_int(0, len(values) - 1) for _ in range(draw_int(0, 2)))})
    return Flow("random", tuple(values), tuple(ops), (0,), tuple(outputs))


def every_order(flow):
    """Yields all orders in which the operators can run."""
    maker = {v: i for i, op in enumerate(flow.ops) for v in op.writes}
    needs = [{maker[v] for v in op.reads if v in maker} for op in flow.ops]

    def extend(order):
        if len(order) == len(flow.ops):
            yield tuple(order)
        for i in range(len(flow.ops)):
            if i not in order and needs[i] <= set(order):
                yield from extend([*order, i])

    return extend([])


def least_peak(flow):
    """The lowest peak of all orders, directly by the definition of liveness."""

    def peak_of(order):
        place = {op: i for i, op in enumerate(order)}
        spans = []
        for v, value in enumerate(flow.values):
            writes = [place[i] for i, op in enumerate(flow.ops) if v in op.writes] or [0]
            reads = [place[i] for i, op in enumerate(flow.ops) if v in op.reads]
            end = len(order) - 1 if v in flow.outputs else max([*writes, *reads])
            spans.append((writes[0], end, value.size))
        return max(sum(s for a, b, s in spans if a <= t <= b) for t in range(len(order)))

    return min(peak_of(order) for order in every_order(flow))


@settings(derandomize=True, deadline=None, max_examples=80)
@given(flows())
def test_no_order_of_a_small_network_has_a_lower_peak(flow):
    best = least_peak_order(flow)
    assert best.status == "optimal"
    assert best.peak == least_peak(flow)
    assert best.order in set(every_order(flow))
    assert peak(lives(reorder(flow, best.order))) == best.peak <= best.given_peak


@settings(derandomize=True, deadline=None, max_examples=60)
@given(flows(most=14), st.integers(0, 30))
def test_a_small_budget_never_gives_a_worse_order_and_says_when_it_ended_the_search(flow, budget):
    whole, cut = least_peak_order(flow), least_peak_order(flow, budget=budget)
    assert whole.peak <= cut.peak <= cut.given_peak
    assert peak(lives(reorder(flow, cut.order))) == cut.peak
    if cut.status == "optimal":
        assert cut.peak == whole.peak


def written_out(graph):
    """Every operator with the tensors themselves instead of their numbers."""
    return [
        (op.index, str(op.kind), *(id(graph.tensors[t]) if t >= 0 else -1 for t in (*op.inputs, *op.outputs)))
        for op in graph.ops
    ]


@settings(derandomize=True, deadline=None, max_examples=30)
@given(graphs())
def test_a_reordered_graph_is_sound_and_computes_the_same_tensors(graph):
    order = least_peak_order(flow_of(graph))
    after = in_order(graph, order)
    assert sorted(written_out(after)) == sorted(written_out(graph))
    available = set(after.inputs)
    for op in after.ops:
        assert all(t in available or t < 0 or after.tensors[t].is_constant for t in op.inputs)
        available.update(op.outputs)
    assert live_sum_bound(after).bytes == order.peak
    assert live_sum_bound(graph).bytes == order.given_peak


@pytest.mark.slow
def test_thousands_of_operators_take_bounded_effort():
    draw = random.Random(7)
    values, ops = [Value("in", 8)], []
    for i in range(1500):
        reads = tuple({max(0, len(values) - 1 - draw.randint(0, 12)) for _ in range(2)} | {0} - {i})
        ops.append(FlowOp("op", "OP", reads, (len(values),), i))
        values.append(Value("v", draw.randint(1, 99)))
    flow = Flow("long", tuple(values), tuple(ops), (0,), (len(values) - 1,))
    best = least_peak_order(flow)
    assert best.peak <= best.given_peak
    assert best.nodes <= 20_000


# ---- orders in which chains stay together ------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 3, 11])
def test_chains_stay_together_in_the_best_order_between_them(seed):
    graph = rewrite(wired_net(seed, nodes=5, stages=1))
    flow = flow_of(graph)
    best, groups = least_peak_of_chains(flow), chains(flow)
    assert is_order(graph, best)
    assert best.status == "optimal"
    assert sorted(itertools.chain(*groups)) == list(range(len(flow.ops)))
    place = {op: number for number, op in enumerate(best.order)}
    if best.order != tuple(range(len(flow.ops))):
        for chain in groups:
            assert [place[op] for op in chain] == list(range(place[chain[0]], place[chain[0]] + len(chain)))
    assert peak_between(flow, groups, best.order) == min(
        peak_between(flow, groups, order) for order in orders(flow, groups)
    )


def peak_between(flow, groups, order):
    """The largest number of bytes between chains that are live while a chain runs."""
    number = {op: i for i, chain in enumerate(groups) for op in chain}
    sequence = list(dict.fromkeys(number[op] for op in order))
    live = [0] * len(sequence)
    for value, item in enumerate(flow.values):
        makers = [s for s, g in enumerate(sequence) if value in flow.ops[groups[g][-1]].writes]
        readers = [s for s, g in enumerate(sequence) if value in flow.ops[groups[g][0]].reads]
        if value not in flow.inputs and not makers:
            continue  # inside a chain
        first = 0 if value in flow.inputs else makers[0]
        last = len(sequence) - 1 if value in flow.outputs else max([first, *readers])
        for s in range(first, last + 1):
            live[s] += item.size
    return max(live)


def orders(flow, groups):
    """Yields every valid order of the chains."""

    def go(done, available):
        if len(done) == len(groups):
            yield [op for g in done for op in groups[g]]
        for g, chain in enumerate(groups):
            if g not in done and all(v in available or v in flow.inputs for v in flow.ops[chain[0]].reads):
                yield from go([*done, g], available | set(flow.ops[chain[-1]].writes))

    return itertools.islice(go([], set()), 20_000)
