"""Stems of SPACE_TO_DEPTH and heads of DEPTH_TO_SPACE stream: every tensor equals the reference.

They run natively under sanitizers, at several points of the front, with odd sizes and channel counts.
"""

from __future__ import annotations

import pytest
from graphs import inputs_for
from nativebatch import TARGET, Job, differences, run

from buildtool.emit.sources import emit
from buildtool.graph import types as g
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Activation, Graph, OpKind
from buildtool.plan.check.check import check
from buildtool.plan.search.front import Settings, front
from buildtool.target.registry import load_target
from buildtool.zoo.drawn import NetBuilder

SQUARES = {OpKind.SPACE_TO_DEPTH, OpKind.DEPTH_TO_SPACE}


def conv(net: NetBuilder, x: int, channels: int, stride: int = 1) -> int:
    return net.conv(
        x, channels, kernel=(3, 3), stride=(stride, stride), same=True, activation=Activation.RELU
    )


def squeezed(net: NetBuilder, x: int, block: int) -> int:
    batch, rows, columns, depth = net.shape(x)
    shape = (batch, rows // block, columns // block, depth * block**2)
    return net.move(OpKind.SPACE_TO_DEPTH, x, shape, g.BlockAttrs(block))


def unfolded(net: NetBuilder, x: int, block: int) -> int:
    batch, rows, columns, depth = net.shape(x)
    shape = (batch, rows * block, columns * block, depth // block**2)
    return net.move(OpKind.DEPTH_TO_SPACE, x, shape, g.BlockAttrs(block))


def stem(block: int, rows: int, columns: int, seed: int) -> Graph:
    """As detectors begin: the image in squares, then a pyramid."""
    net = NetBuilder(seed)
    x = squeezed(net, net.input((1, rows * block, columns * block, 3)), block)
    x = conv(net, conv(net, conv(net, x, 7), 9, 2), 5)
    return net.graph([x])


def super_resolution(block: int, rows: int, columns: int, seed: int) -> Graph:
    """Convolutions, then channels become pixels, and a last convolution of those."""
    net = NetBuilder(seed)
    x = conv(net, conv(net, net.input((1, rows, columns, 1)), 8), 3 * block**2)
    return net.graph([conv(net, unfolded(net, x, block), 2)])


def both(block: int, rows: int, columns: int, seed: int) -> Graph:
    """Into squares and out of them, with the image added."""
    net = NetBuilder(seed)
    image = net.unary(OpKind.TANH, net.input((1, rows * block, columns * block, 2)))
    x = conv(net, conv(net, squeezed(net, image, block), 11), 2 * block**2)
    x = net.elementwise(OpKind.ADD, unfolded(net, x, block), image)
    return net.graph([conv(net, x, 3)])


def job(name: str, graph: Graph, image: str, part: float) -> Job:
    model = write_model(graph)
    source = read_model(model)
    rewritten, target = rewrite(source), load_target(TARGET)
    found = front(rewritten, target, Settings(image=image))
    plan = found.plan(round(part * (len(found.points) - 1)))
    check(plan, rewritten, target)
    inputs = [inputs_for(rewritten, 3, pattern) for pattern in ("random", "extremes")]
    return Job(model, source, rewritten, plan, emit(rewritten, plan, target, name), inputs)


CASES = [
    (stem(2, 13, 11, 1), "stream", 0.0),
    (stem(3, 8, 11, 4), "overwritable", 0.5),
    (super_resolution(3, 12, 7, 2), "overwritable", 0.0),
    (super_resolution(4, 9, 6, 5), "stream", 0.0),
    (both(2, 11, 9, 3), "resident", 0.0),
    (both(3, 8, 5, 6), "overwritable", 0.0),
]


@pytest.mark.slow
def test_squares_of_pixels_stream_exactly(tmp_path):
    jobs = [job(f"n{i}", *case) for i, case in enumerate(CASES)]
    inside = {j.graph.ops[p].kind for j in jobs for r in j.plan.regions if len(r.groups) > 1 for p in r.ops}
    assert inside >= SQUARES
    for one, runs in zip(jobs, run(jobs, tmp_path), strict=True):
        assert differences(one, runs) == [], one.plan
