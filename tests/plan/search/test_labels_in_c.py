"""The label search in C is the twin of the Python one: the same ways, found by as many labels."""

from __future__ import annotations

import labels_twin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_nets import make_target
from test_front import IMAGES, IN_PLACE, networks, targets
from zeronet import Net

from buildtool.base.errors import UsageError
from buildtool.graph.types import Pad
from buildtool.plan.search import blocks, paths, regions
from buildtool.plan.search.front import Settings, front
from buildtool.plan.search.paths import Search


def _told(columns, regions, most_labels, relaxed):
    """All that a search tells of its ways within falling limits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "Regions", regions)
        search = Search(columns, most_labels=most_labels, relaxed=relaxed)
        if relaxed:
            found = [search.lower_bound(bytes_) for bytes_ in (1 << 40, 4000, 2000, 1000, 500, 250, 100)]
        else:
            found = list(search.falling())
    return found, search.searched, search.labels, search.exact


def _compare(graph, target, options, most_labels=paths.MOST_LABELS):
    try:
        made = front(graph, target, options)
    except UsageError:  # an image that several operators read
        return
    for columns in (made.space.columns, made.space.cost_columns):
        for relaxed in (False, True):
            own = _told(columns, regions.Regions, most_labels, relaxed)
            assert own == _told(columns, labels_twin.Regions, most_labels, relaxed)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=12)
@given(networks(2, 9), targets, st.sampled_from(IMAGES), st.sampled_from(IN_PLACE), st.sampled_from([1, 40]))
def test_both_find_the_same_ways_with_as_many_labels(graph, target, image, in_place, most_labels):
    options = Settings(in_place, image, max_f=1e9)
    _compare(graph, target, options)
    _compare(graph, target, options, most_labels)


def dense(layers):
    """Layers of a 1x1 and a 3x3 convolution, each joined to all before it; a pooling halfway."""
    net = Net((1, 16, 16, 3))
    x = net.conv(net.inputs[0], 8, (3, 3), pad=Pad(1, 1, 1, 1))
    for layer in range(layers):
        x = net.max_pool(x) if 2 * layer == layers else x
        x = net.concat([x, net.conv(net.conv(x, 16), 4, (3, 3), pad=Pad(1, 1, 1, 1))])
    return net.graph(net.mean(x))


@pytest.mark.parametrize("image", IMAGES)
def test_dense_networks_need_few_labels(image):
    made = front(dense(8), make_target(), Settings(image=image))
    found, searched, labels, exact = _told(made.space.columns, regions.Regions, paths.MOST_LABELS, False)
    assert exact and len(found) > 1 and labels < 3 * searched


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
        _told(made.space.columns, regions.Regions, paths.MOST_LABELS, False)
