"""Operands of networks on a moving window: constants over time, operands at different paces, all types."""

import pytest
from listeningnets import assert_hops_equal

from buildtool.graph import types as g
from buildtool.graph.consistency import check_graph
from buildtool.graph.hop.build import build
from buildtool.graph.hop.choices import choices
from buildtool.graph.hop.moments import Work, analyse
from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import DType, OpKind
from buildtool.zoo.drawn import NetBuilder


def _different_paces(net, x):
    """Rows 2 moments apart, and as many rows that are 1 moment apart."""
    begin, extent = (0, 3, 0, 0), (1, 8, 2, 4)
    late = net.move(OpKind.STRIDED_SLICE, x, attrs=g.SliceAttrs(begin, (1,) * 4, extent))
    return net.elementwise(OpKind.ADD, net.conv(x, 4, kernel=(2, 1), stride=(2, 1)), late)


def _truth_values(net, x):
    later = net.conv(x, 4, kernel=(3, 1), same=True)
    return net.select(net.pair(OpKind.GREATER, x, later), x, net.constant((16, 1, 1)))


def _missed(net, x):
    """Both taps of the first and of the last rows lie in the padding."""
    return net.conv(x, 4, kernel=(2, 1), dilation=(20, 1), pad=g.Pad(10, 10, 0, 0))


def _bytes_out(net, x):
    return net.requantize(net.conv(x, 4, kernel=(3, 1), same=True), DType.UINT8)


def _floats_in(net, _):
    net.inputs.clear()
    x = net.input((1, 16, 2, 4), DType.FLOAT32)
    squares = net.op(OpKind.SQUARE, (x,), dtype=DType.FLOAT32)
    return net.conv(net.requantize(squares), 4, kernel=(3, 1), same=True)


WHOLE = {Work.WHOLE}
NETWORKS = {
    "paces": (_different_paces, {Work.ROWS, Work.MOVED, Work.WHOLE}),
    "truths": (_truth_values, {Work.ROWS, Work.WHOLE}),
    "missed": (_missed, {Work.ROWS}),
    "bytes": (_bytes_out, {Work.ROWS}),
    "floats": (_floats_in, {Work.ROWS}),
    "first constant": (lambda n, x: n.elementwise(OpKind.SUB, n.constant((1, 2, 4)), x), {Work.ROWS}),
    "slopes over time": (lambda n, x: n.prelu(x, (16, 1, 4)), WHOLE),
    "slopes": (lambda n, x: n.prelu(x, (1, 2, 4)), {Work.ROWS}),
}


@pytest.mark.parametrize("make, works", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("hop", [2, 6])
def test_every_choice_is_exact(make, works, hop):
    net = NetBuilder(3)
    graph = rewrite(net.graph([make(net, net.input((1, 16, 2, 4)))]))
    analysis = analyse(graph, hop)
    assert {role.work for role in analysis.roles} == works
    for needs in choices(analysis):
        built = build(needs)
        check_graph(built.graph)
        assert_hops_equal(graph, analysis, built, 12)
