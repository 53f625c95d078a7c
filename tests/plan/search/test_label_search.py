"""The label search in C (labels.c): its budget suffices for networks, and errors come through.

That what it finds is exact is said by `test_front`, that its lower bounds are some by `test_search_budget`.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from namednets import blazeface, u_net
from plan_nets import make_target
from test_front import IMAGES
from zeronet import Net

from buildtool.base.session import Session
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import Pad
from buildtool.plan.models import load_network
from buildtool.plan.search import blocks
from buildtool.plan.search.front import Settings, front
from buildtool.plan.search.paths import MOST_LABELS, Search


def dense(layers):
    """Layers of a 1x1 and a 3x3 convolution, each joined to all before it; a pooling halfway."""
    net = Net((1, 16, 16, 3))
    x = net.conv(net.inputs[0], 8, (3, 3), pad=Pad(1, 1, 1, 1))
    for layer in range(layers):
        x = net.max_pool(x) if 2 * layer == layers else x
        x = net.concat([x, net.conv(net.conv(x, 16), 4, (3, 3), pad=Pad(1, 1, 1, 1))])
    return net.graph(net.mean(x))


NETWORKS = {
    "dense": lambda: dense(8),
    "detector": lambda: rewrite(blazeface()),
    "nearest": lambda: rewrite(u_net(64, 8, 2, "nearest")),
    "transpose": lambda: rewrite(u_net(64, 8, 2, "transpose")),
    "resnet8": lambda: load_network("resnet8", Session()).graph,
}


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("network", NETWORKS)
def test_a_quarter_of_the_budget_suffices_for_the_least_cost_and_every_bound_holds(network, image):
    tables = front(NETWORKS[network](), make_target(), Settings(image=image)).space.cost_tables
    search, ended = (Search(tables, most_labels=most) for most in (MOST_LABELS // 4, 1))
    bounds = Search(tables, relaxed=True)
    ways = list(search.falling())
    assert search.exact and len(ways) > 10
    assert all(a.bytes > b.bytes and a.weight < b.weight for a, b in pairwise(ways))
    for way in ended.falling():
        assert any(best.bytes <= way.bytes and best.weight <= way.weight for best in ways)
    for way in ways:
        assert bounds.lower_bound(way.bytes) <= way.weight
    assert bounds.lower_bound(ways[-1].bytes // 16) is None


@pytest.mark.parametrize("image", IMAGES)
def test_dense_networks_need_few_labels(image):
    search = Search(front(dense(8), make_target(), Settings(image=image)).space.tables)
    found = list(search.falling())
    assert search.exact and len(found) > 1 and search.labels < 3 * search.searched


def test_an_error_in_a_table_ends_the_search(monkeypatch):
    net = Net((1, 9, 9, 2))
    graph = net.graph(net.conv(net.depthwise(net.inputs[0]), 4, (2, 2), (2, 2)))  # nobody reads the last row
    monkeypatch.setattr(blocks, "MOST_OPERATORS", 1)
    made = front(graph, make_target(), Settings())

    def fails(*_):
        raise ZeroDivisionError

    made.space.tables.starts  # noqa: B018 - made before
    monkeypatch.setattr(type(made.space.tables), "extra", fails)
    with pytest.raises(ZeroDivisionError):
        list(Search(made.space.tables).falling())
