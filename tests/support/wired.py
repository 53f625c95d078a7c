"""Random-wired networks: seeded Watts-Strogatz graphs turned into operators, as RandWire has them."""

import random

from zeronet import NO_PAD, Net


def watts_strogatz(nodes, neighbours, probability, seed):
    """Edges (low, high) of a small world: a ring of `neighbours` each, rewired with `probability`."""
    draw = random.Random(seed)
    edges = {(i, (i + d) % nodes) for d in range(1, neighbours // 2 + 1) for i in range(nodes)}
    linked = {frozenset(e) for e in edges}
    for d in range(1, neighbours // 2 + 1):
        for i in range(nodes):
            old = frozenset((i, (i + d) % nodes))
            free = [j for j in range(nodes) if j != i and frozenset((i, j)) not in linked]
            if draw.random() < probability and old in linked and free:
                linked.remove(old)
                linked.add(frozenset((i, draw.choice(free))))
    return sorted(tuple(sorted(e)) for e in linked)


def wired_stage(net, x, channels, edges, nodes):
    """Each node adds what comes in, then ReLU, a 3x3 depthwise and a 1x1 convolution; sinks are added."""
    sources = {i: [a for a, b in edges if b == i] for i in range(nodes)}
    made = {}
    for i in range(nodes):
        total = x if not sources[i] else made[sources[i][0]]
        for a in sources[i][1:]:
            total = net.add(total, made[a])
        stride = (1, 1) if sources[i] else (2, 2)
        made[i] = net.conv(net.depthwise(net.relu(total), stride=stride), channels)
    ends = [made[i] for i in range(nodes) if all(a != i for a, _ in edges)]
    result = ends[0]
    for end in ends[1:]:
        result = net.add(result, end)
    return result


def wired_net(seed, nodes=32, stages=2, channels=16, side=33):
    """A strided convolution, then stages of WS(nodes, 4, 0.75), channels doubling, then a dense layer."""
    net = Net((1, side, side, 3))
    x = net.conv(net.inputs[0], channels, (3, 3), (2, 2), NO_PAD)
    for stage in range(stages):
        channels *= 2
        x = wired_stage(net, x, channels, watts_strogatz(nodes, 4, 0.75, seed * 100 + stage), nodes)
    return net.graph(net.dense(net.mean(x), 10))
