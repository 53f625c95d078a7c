"""Orders in which chains stay together: real orders, the best of all that keep chains, by brute force too."""

import itertools

import pytest
from wired import wired_net

from buildtool.graph.flow import flow_of, lives, peak, reordered
from buildtool.graph.order import chains, in_order, is_order, least_peak_of_chains
from buildtool.graph.rewrite import rewrite
from buildtool.graph.topology import topology


@pytest.mark.parametrize("seed", [0, 3, 11])
def test_chains_stay_together_in_the_best_order_between_them(seed):
    graph = rewrite(wired_net(seed, nodes=5, stages=1))
    flow = flow_of(graph)
    found, groups = least_peak_of_chains(flow), chains(flow)
    assert is_order(graph, found)
    assert found.status == "optimal"
    assert sorted(itertools.chain(*groups)) == list(range(len(flow.ops)))
    place = {op: number for number, op in enumerate(found.order)}
    if found.order != tuple(range(len(flow.ops))):
        for chain in groups:
            assert [place[op] for op in chain] == list(range(place[chain[0]], place[chain[0]] + len(chain)))
    assert peak_between(flow, groups, found.order) == min(
        peak_between(flow, groups, order) for order in orders(flow, groups)
    )


def peak_between(flow, groups, order):
    """The most bytes of values between chains that are live while a chain runs."""
    number = {op: i for i, chain in enumerate(groups) for op in chain}
    sequence = list(dict.fromkeys(number[op] for op in order))
    live = [0] * len(sequence)
    for value, item in enumerate(flow.values):
        makers = [s for s, g in enumerate(sequence) if value in flow.ops[groups[g][-1]].writes]
        readers = [s for s, g in enumerate(sequence) if value in flow.ops[groups[g][0]].reads]
        if value not in flow.inputs and not makers:
            continue  # inside of a chain
        first = 0 if value in flow.inputs else makers[0]
        last = len(sequence) - 1 if value in flow.outputs else max([first, *readers])
        for s in range(first, last + 1):
            live[s] += item.size
    return max(live)


def orders(flow, groups):
    """Every order of chains that can run."""

    def go(done, made):
        if len(done) == len(groups):
            yield [op for g in done for op in groups[g]]
        for g, chain in enumerate(groups):
            if g not in done and all(v in made or v in flow.inputs for v in flow.ops[chain[0]].reads):
                yield from go([*done, g], made | set(flow.ops[chain[-1]].writes))

    return itertools.islice(go([], set()), 20_000)


def test_a_larger_network_is_ordered_with_a_proof():
    graph = rewrite(wired_net(1, nodes=24, stages=1))
    found = least_peak_of_chains(flow_of(graph))
    assert found.status == "optimal" and found.peak < found.given_peak
    flow = flow_of(in_order(graph, found))
    assert peak(lives(flow)) == found.peak == peak(lives(reordered(flow_of(graph), found.order)))
    assert len(topology(in_order(graph, found)).ops) == len(graph.ops)
