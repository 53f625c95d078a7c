"""Crops and samples before convolutions: folded where that is exact, in the reference and in firmware."""

import pytest
from boardruns import exact, file_of
from graphs import inputs_for, patterns, seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from litert import rewritten

from buildtool.graph import types as g
from buildtool.graph.geometry import is_cropped
from buildtool.graph.types import OpKind
from buildtool.zoo.drawn import NetBuilder, WideNetBuilder

WINDOWED = (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D)


def padded(net, x, sides):
    return net.pad(x, ((0, 0), *sides, (0, 0)))


def taken(net, x, first, step, left):
    """Adds a STRIDED_SLICE of rows and columns. `left`: rows and columns that it leaves out at the end."""
    batch, rows, columns, channels = net.shape(x)
    extent = [-(-(n - f - e) // s) for n, f, s, e in zip((rows, columns), first, step, left, strict=True)]
    attrs = g.SliceAttrs((0, *first, 0), (1, *step, 1), (batch, *extent, channels))
    return net.op(
        OpKind.STRIDED_SLICE, (x,), attrs, net.tensors[x].quant, net.tensors[x].dtype, shape=attrs.extent
    )


@st.composite
def crops(draw):
    """Draws a slice, or a pooling of one pixel, perhaps behind a PAD, before one or two convolutions."""
    net, few = draw(st.sampled_from((NetBuilder, NetBuilder, WideNetBuilder)))(draw(seeds)), st.integers(0, 2)
    pair = st.tuples(few, few)
    x = net.input((1, draw(st.integers(7, 12)), draw(st.integers(7, 12)), draw(st.sampled_from((1, 4, 8)))))
    p = padded(net, x, (draw(pair), draw(pair))) if draw(st.booleans()) else x
    step = draw(st.sampled_from(((1, 1), (1, 1), (2, 2), (2, 1))))
    if draw(st.booleans()):
        p = taken(net, p, draw(pair), (1, 1), draw(pair))
    if step != (1, 1):
        kind = draw(st.sampled_from((OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D, None)))
        p = taken(net, p, (0, 1), step, (0, 0)) if kind is None else net.pool(kind, p, (1, 1), step)
    outs = []
    for _ in range(draw(st.integers(1, 2))):
        kernel = draw(st.sampled_from(((1, 1), (1, 1), (3, 3), (2, 1))))
        more = {"depth_multiplier": 1} if draw(st.integers(0, 3)) == 0 else {}
        same, stride = draw(st.booleans()), draw(st.sampled_from(((1, 1), (2, 2))))
        outs.append(net.conv(p, net.shape(p)[3], kernel=kernel, stride=stride, same=same, **more))
    if draw(st.booleans()):
        outs.append(net.pool(OpKind.MAX_POOL_2D, x, (2, 2), (1, 1)))  # it reads the input last
    return net.graph(outs)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(graph=crops(), seed=seeds, pattern=patterns)
def test_folded_crops_equal_litert(graph, seed, pattern):
    rewritten(graph, inputs_for(graph, seed, pattern))


def shortcut(builder=NetBuilder, channels=16, size=(15, 18), out=8):
    """NASNet's shortcut to a smaller image: samples of it, and samples of it shifted by one pixel."""
    net = builder(3)
    x = net.conv(net.input((1, *size, 3)), channels, kernel=(3, 3), same=True)
    parts = []
    for shifted in (False, True):
        p = x
        if shifted:
            p = taken(net, padded(net, x, ((0, 1), (0, 1))), (1, 1), (1, 1), (0, 0))
        parts.append(net.conv(net.pool(OpKind.AVERAGE_POOL_2D, p, (1, 1), (2, 2)), out))
    return net.graph(parts)


@pytest.mark.parametrize(("out", "folded"), [(8, True), (64, False)])
def test_a_shift_is_folded_where_no_step_needs_more(out, folded):
    graph = shortcut(out=out)
    after = rewritten(graph, inputs_for(graph, 1, "random"))
    assert ({op.kind for op in after.ops} == {OpKind.CONV_2D}) == folded
    assert any(is_cropped(op.attrs) for op in after.ops) == folded


@pytest.mark.parametrize("options", [{"strategy": "layerwise"}, {"objective": "ram", "image": "stream"}])
@pytest.mark.parametrize("builder", [NetBuilder, WideNetBuilder])
def test_firmware_equals_litert(tmp_path, builder, options):
    run = exact(file_of(shortcut(builder), tmp_path), "host", options, inputs=2)
    assert any(is_cropped(op.attrs) for op in run.made.graph.ops)


@pytest.mark.slow
@pytest.mark.parametrize(
    "board", ["cortex-m4", "cortex-m55", "cortex-m0plus", "hifive1", "qemu-virt-rv32v", "xcore"]
)
def test_emulated_firmware_equals_litert(tmp_path, board):
    run = exact(
        file_of(shortcut(channels=32, out=16), tmp_path), board, {"objective": "ram", "image": "stream"}
    )
    assert any(is_cropped(op.attrs) for op in run.made.graph.ops)
