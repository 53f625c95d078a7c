"""Crops and samples before convolutions: folded where that is exact, in the reference and in firmware."""

from random import Random

import pytest
from boardruns import exact, file_of
from graphs import inputs_for
from litert import rewritten

from buildtool.graph import types as g
from buildtool.graph.geometry import is_cropped
from buildtool.graph.types import OpKind
from buildtool.target.catalogue import scratch_bytes, select
from buildtool.target.registry import load_target
from buildtool.zoo.drawn import NetBuilder, WideNetBuilder

BOARDS = ("cortex-m4", "cortex-m55", "cortex-m0plus", "hifive1", "qemu-virt-rv32v", "xcore")


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


def crops(rng):
    """Draws a slice, or a pooling of one pixel, perhaps behind a PAD, before one or two convolutions."""

    def pair():
        return rng.choice((0, 0, 1, 2)), rng.choice((0, 0, 1, 2))

    net = rng.choice((NetBuilder, NetBuilder, WideNetBuilder))(rng.randrange(1000))
    x = net.input((1, rng.randint(11, 14), rng.randint(11, 14), rng.choice((1, 4, 8))))
    source = p = padded(net, x, (pair(), pair())) if rng.random() < 0.5 else x
    step = rng.choice(((1, 1), (2, 2), (2, 1)))
    if step == (1, 1) or rng.random() < 0.5:
        p = taken(net, p, pair(), (1, 1), pair())
    if step != (1, 1):
        kind = rng.choice((OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D, None))
        p = taken(net, p, (0, 1), step, (0, 0)) if kind is None else net.pool(kind, p, (1, 1), step)
    outs = []
    for _ in range(rng.choice((1, 1, 2))):
        window = {"kernel": rng.choice(((1, 1), (3, 3), (2, 1))), "stride": rng.choice(((1, 1), (2, 2)))}
        own = {"pad": g.Pad(*pair(), *pair())} if rng.random() < 0.4 else {}
        more = {"depth_multiplier": 1} if rng.random() < 0.3 else {}
        outs.append(net.conv(p, net.shape(p)[3], **window, **own, **more))
    outs.append(net.pool(OpKind.MAX_POOL_2D, source, (2, 2), (1, 1)))  # it reads the crop's input last
    return net.graph(outs)


@pytest.mark.slow
def test_folded_crops_equal_litert():
    folded = 0
    for seed in range(150):
        graph = crops(Random(seed))
        after = rewritten(graph, inputs_for(graph, seed))
        folded += len(graph.ops) - len(after.ops)
    assert folded > 60


def shortcut(builder=NetBuilder, channels=16, size=(15, 18), out=8, shifts=(False, True)):
    """NASNet's shortcut to a smaller image: samples of it, and samples of it shifted by one pixel.

    A crop without samples is read before them.
    """
    net = builder(3)
    x = net.conv(net.input((1, *size, 3)), channels, kernel=(3, 3), same=True)
    parts = [] if shifts == (True,) else [net.conv(taken(net, x, (1, 1), (1, 1), (0, 0)), out)]
    for shifted in shifts:
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
    assert sum(is_cropped(op.attrs) for op in after.ops) == 1 + folded


@pytest.mark.parametrize("options", [{"strategy": "layerwise"}, {"objective": "ram", "image": "stream"}])
@pytest.mark.parametrize("builder", [NetBuilder, WideNetBuilder])
def test_firmware_equals_litert(tmp_path, builder, options):
    run = exact(file_of(shortcut(builder), tmp_path), "host", options, inputs=2)
    assert any(is_cropped(op.attrs) for op in run.made.graph.ops)


def one_conv(pad, size):
    net = NetBuilder(1)
    return net.graph([net.conv(net.input((1, size, size, 32)), 32, pad=pad)])


@pytest.mark.parametrize("board", BOARDS)
def test_a_crop_needs_the_scratch_of_a_padded_convolution(board):
    """Kernels take neither as an image whose pixels lie as those of the output do."""
    target, scratch = load_target(board), set()
    for graph in (one_conv(g.Pad(-1, 0, -1, 0), 9), one_conv(g.Pad(1, 0, 1, 0), 7)):
        (op,) = graph.ops
        kernel = select(target, graph, op)
        scratch.add((kernel.name, scratch_bytes(kernel, graph, op)))
    assert len(scratch) == 1


def test_a_shifted_image_is_streamed(tmp_path):
    run = exact(file_of(shortcut(shifts=(True,)), tmp_path), "host", {"objective": "ram", "image": "stream"})
    assert [region.is_streamed for region in run.plan.regions] == [True]


@pytest.mark.slow
@pytest.mark.parametrize("board", BOARDS)
def test_emulated_firmware_equals_litert(tmp_path, board):
    run = exact(
        file_of(shortcut(channels=32, out=16), tmp_path), board, {"objective": "ram", "image": "stream"}
    )
    assert any(is_cropped(op.attrs) for op in run.made.graph.ops)
