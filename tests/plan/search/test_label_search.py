"""The label search in C (labels.c): as few labels and the same ways as before, and errors that come through.

That what it finds is exact is said by `test_front`, that its lower bounds are some by `test_search_budget`.
"""

from __future__ import annotations

import pytest
from namednets import blazeface, u_net
from plan_nets import make_target
from zeronet import Net

from buildtool.base.session import Session
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import Pad
from buildtool.plan.models import load_network
from buildtool.plan.search import blocks
from buildtool.plan.search.front import Settings, front
from buildtool.plan.search.paths import Search

LIMITS = (1 << 40, 100_000, 30_000, 10_000, 3_000, 1_000)  # bytes, for lower bounds


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


def told(columns, most_labels):
    """How many ways a search finds, their bytes and weights in all, the cuts searched, the labels made; the
    same of lower bounds."""
    search, bounds = Search(columns, most_labels=most_labels), Search(columns, relaxed=True)
    ways = list(search.falling())
    low = [bound for bytes_ in LIMITS if (bound := bounds.lower_bound(bytes_)) is not None]
    found = (len(ways), sum(way.bytes for way in ways), sum(way.weight for way in ways))
    return *found, search.searched, search.labels, len(low), sum(low), bounds.searched, bounds.labels


# of a network, an image and the labels that a search may make: see `told`
TOLD = {
    ("dense", "overwritable", 200_000): (53, 310688, 1814162336, 845, 4097, 4, 109562112, 54, 54),
    ("dense", "overwritable", 1): (24, 163632, 685830688, 416, 1132, 4, 109562112, 54, 54),
    ("dense", "resident", 200_000): (53, 351392, 1814162336, 845, 4189, 4, 109595264, 70, 80),
    ("dense", "resident", 1): (24, 182064, 685830688, 416, 1198, 4, 109595264, 70, 80),
    ("dense", "stream", 200_000): (52, 307456, 1774100448, 829, 3505, 4, 109620480, 54, 54),
    ("dense", "stream", 1): (24, 163632, 686180896, 416, 1163, 4, 109620480, 54, 54),
    ("detector", "overwritable", 200_000): (32, 3481200, 26996004912, 1557, 2872, 2, 1678992800, 159, 163),
    ("detector", "overwritable", 1): (14, 1976960, 11752109776, 737, 1465, 2, 1678992800, 159, 163),
    ("detector", "resident", 200_000): (42, 5961296, 35495318656, 1893, 4032, 1, 838942624, 112, 112),
    ("detector", "resident", 1): (14, 2668160, 11752011536, 737, 1793, 1, 838942624, 112, 112),
    ("detector", "stream", 200_000): (42, 3942864, 35534634304, 1897, 4012, 2, 1680484640, 159, 163),
    ("detector", "stream", 1): (15, 2092240, 12609797120, 784, 2655, 2, 1680484640, 159, 163),
    ("nearest", "overwritable", 200_000): (61, 2675712, 32086561792, 126, 17561, 3, 1560493952, 37, 62),
    ("nearest", "overwritable", 1): (5, 509952, 2484277504, 45, 422, 3, 1560493952, 37, 62),
    ("nearest", "resident", 200_000): (61, 2925568, 32086561792, 127, 17529, 2, 993470592, 38, 65),
    ("nearest", "resident", 1): (5, 530432, 2484277504, 45, 427, 2, 993470592, 38, 65),
    ("nearest", "stream", 200_000): (73, 3093472, 38871364608, 141, 24120, 2, 993469312, 36, 57),
    ("nearest", "stream", 1): (5, 509952, 2484651264, 45, 422, 2, 993469312, 36, 57),
    ("transpose", "overwritable", 200_000): (59, 2349696, 27567835008, 121, 25420, 3, 1356385664, 33, 62),
    ("transpose", "overwritable", 1): (4, 322560, 1773515520, 42, 334, 3, 1356385664, 33, 62),
    ("transpose", "resident", 200_000): (59, 2591360, 27567835008, 121, 25417, 2, 886245632, 36, 38),
    ("transpose", "resident", 1): (4, 338944, 1773515520, 42, 336, 2, 886245632, 36, 38),
    ("transpose", "stream", 200_000): (65, 2554576, 30590928128, 127, 34058, 3, 1364714880, 33, 61),
    ("transpose", "stream", 1): (4, 322560, 1773814528, 42, 334, 3, 1364714880, 33, 61),
    ("resnet8", "overwritable", 200_000): (14, 299216, 3231324832, 153, 359, 3, 655375888, 42, 67),
    ("resnet8", "overwritable", 1): (14, 299216, 3231324832, 153, 359, 3, 655375888, 42, 67),
    ("resnet8", "resident", 200_000): (16, 368528, 3670848048, 139, 378, 3, 655375888, 42, 67),
    ("resnet8", "resident", 1): (16, 368528, 3670848048, 139, 378, 3, 655375888, 42, 67),
    ("resnet8", "stream", 200_000): (16, 321680, 3671708208, 139, 378, 3, 655537168, 42, 67),
    ("resnet8", "stream", 1): (16, 321680, 3671708208, 139, 378, 3, 655537168, 42, 67),
}


@pytest.mark.parametrize(("network", "image", "most_labels"), TOLD)
def test_a_search_for_the_least_cost_finds_the_same_by_as_many_labels(network, image, most_labels):
    made = front(NETWORKS[network](), make_target(), Settings(image=image))
    assert told(made.space.cost_columns, most_labels) == TOLD[network, image, most_labels]


@pytest.mark.parametrize("image", ["overwritable", "resident", "stream"])
def test_dense_networks_need_few_labels(image):
    search = Search(front(dense(8), make_target(), Settings(image=image)).space.columns)
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
        list(Search(made.space.columns).falling())
