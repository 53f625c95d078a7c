"""Channels that may stay in place as views: the kernels of their readers and producers, and alignment."""

from __future__ import annotations

import dataclasses

import pytest
from loaded import load_target
from namednets import taken

from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import OpKind
from buildtool.plan.schedule.viewing import fits_words, possible_views
from buildtool.target.catalogue import select_all
from buildtool.target.types import Windows
from buildtool.zoo.drawn import NetBuilder


def _kinds(graph, target, *, joined=False):
    return [graph.ops[p].kind for p in possible_views(graph, select_all(target, graph), joined=joined)]


def _network(read):
    """One part that `read` reads, and another one that a convolution reads."""
    net = NetBuilder(6)
    x = net.conv(net.input((1, 6, 6, 3)), 8)
    return rewrite(net.graph([read(net, taken(net, x, 0, 4)), net.conv(taken(net, x, 4, 4), 3)]))


READERS = {
    "conv": (lambda net, x: net.conv(x, 3, kernel=(3, 3)), 2),
    "depthwise": (lambda net, x: net.conv(x, 0, kernel=(3, 3), depth_multiplier=1), 2),
    "pool": (lambda net, x: net.pool(OpKind.MAX_POOL_2D, x, (2, 2), (2, 2)), 2),
    "sum": (lambda net, x: net.elementwise(OpKind.ADD, x, x), 2),
    "table": (lambda net, x: net.unary(OpKind.HARD_SWISH, x), 2),
    "softmax": (lambda net, x: net.softmax(x), 2),
    "mean": (lambda net, x: net.mean(x), 1),  # its kernel reads contiguous memory, not a view
    "dense of a map": (lambda net, x: net.dense(net.flatten(x), 3), 1),
    "the application": (lambda net, x: x, 1),
}


@pytest.mark.parametrize("name", READERS)
def test_a_slice_is_a_view_if_every_reader_goes_from_pixel_to_pixel(name):
    read, count = READERS[name]
    graph = _network(read)
    for board in ("host", "cortex-m4", "cortex-m55", "qemu-virt-rv32", "esp8266", "xcore"):
        assert len(_kinds(graph, load_target(board))) == count


def test_kernels_of_whole_tensors_read_and_write_no_parts():
    graph = _network(lambda net, x: net.concat([net.conv(x, 4), net.conv(x, 4)]))
    target = load_target("host")
    kernels = select_all(target, graph)
    assert len(possible_views(graph, kernels, joined=True)) == 3
    whole = [kernel and dataclasses.replace(kernel, windows=Windows.WHOLE) for kernel in kernels]
    assert possible_views(graph, whole, joined=True) == ()


def test_odd_channels_stay_in_place_and_words_do_not_come_apart():
    net = NetBuilder(7)
    x = net.conv(net.input((1, 6, 6, 3)), 11)
    bounds = [(0, 3), (3, 7), (1, 5), (10, 1), (0, 4), (4, 6)]
    graph = rewrite(net.graph([net.conv(taken(net, x, *of), 2) for of in bounds]))
    found = possible_views(graph, select_all(load_target("host"), graph))
    kept = {graph.tensors[graph.ops[p].outputs[0]].shape[3] for p in found}
    assert kept == {3, 7, 5, 1}


def test_parts_are_written_in_place_if_their_makers_make_them_for_the_concatenation_alone():
    net = NetBuilder(8)
    x = net.conv(net.input((1, 6, 6, 3)), 8)
    inner = net.concat([net.conv(x, 8), net.pool(OpKind.MAX_POOL_2D, x, (3, 3), (1, 1), same=True)])
    outer = net.concat([inner, net.unary(OpKind.HARD_SWISH, net.conv(x, 16))])
    shared = net.conv(outer, 4)
    twice = net.concat([shared, net.conv(outer, 4)])
    graph = rewrite(net.graph([net.elementwise(OpKind.ADD, net.conv(twice, 4), shared)]))
    target = load_target("host")
    assert _kinds(graph, target) == []
    assert _kinds(graph, target, joined=True) == [OpKind.CONCATENATION] * 2


@pytest.mark.parametrize(
    ("first", "pixel", "pitch", "fits"),
    [
        (0, 8, 16, True),
        (8, 8, 16, True),
        (4, 8, 16, False),
        (3, 8, 16, False),
        (4, 4, 12, True),
        (2, 4, 12, False),
        (0, 4, 7, False),
        (1, 2, 4, False),
        (2, 2, 4, True),
        (3, 5, 9, True),
        (24, 16, 40, True),
    ],
)
def test_a_part_has_to_be_as_aligned_as_it_is_alone(first, pixel, pitch, fits):
    assert fits_words(first, pixel, pitch) is fits
