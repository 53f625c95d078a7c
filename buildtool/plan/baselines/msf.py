"""msf-CNN: its model of a network, the costs of its blocks of fused layers, and its choices as plans.

A block of layers m..n-1 computes its output in columns of tiles. Each tile is as large as ONE element of
the block's output needs: going backwards from t = T = 1 through the block's layers (kernel k, stride
s, padding p), t <- (t - 1) * s + k rows, T <- T * s rows from tile to tile. So with layer i's t and T

    RAM  = |in| + |out| + sum over i of k_i * r_i * channels_i
    MACs = sum over i of Nh_i * Nw_i * ((t_i - k_i) div s_i + 1) * (MACs of an output pixel)
    Nh_i = (H_i + 2 p_i - t_i) div T_i + 1,   Nw_i = (W_i + 2 p_i - k_i) div s_i + 1

Of each layer's input, k_i columns of r_i rows stay in memory (the "H cache"), also for the first layer.
r_i are the rows of the last tile in the published code, on the input without its padding. The tile starts
at row y = ((H_m - t_m) div T_m) * T_m of the input, and at row y div (product of the strides up to and
including layer i) of layer i. Where it touches the upper or lower edge of the layer's input, the padding
adds to its output's rows. So r_i differs from t_i only in blocks that reach the lower edge (above all
those without strides). The tables of the paper follow r_i, not t_i.

A single layer has no cache: RAM = |in| + |out|. A block is impossible if t exceeds its input. The network's
input (for a block that starts at layer 0) and its last output do not count.

msf-CNN's two problems are the least RAM with a limit on work, and the least work with a limit on RAM. A
choice is a chain of blocks: its RAM is that of its largest block, its work is the sum. The model ignores
residuals, the network's input and its last output. So each choice on the model's front becomes a plan, in
which each block is a region of one H-cached group. Limits and figures are those of the plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from buildtool.base.errors import UnsupportedError, UsageError, suggest
from buildtool.base.modes import Image, InPlace
from buildtool.base.session import Session
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.types import ConvAttrs, DepthwiseAttrs, Graph, Op, OpKind
from buildtool.plan.assemble.assemble import assemble
from buildtool.plan.baselines.chains import Chain, Part, undominated_chains
from buildtool.plan.schedule.inner import objection
from buildtool.plan.schedule.receptive import streams
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Group, Plan, Region, Scheme
from buildtool.target import catalogue
from buildtool.target.types import KernelVariant, Target

STRATEGY = "msf-cnn"


@dataclass(frozen=True)
class Layer:
    """An int8 convolution with `rows` x `columns` x `channels` inputs and `filters` output channels.

    `kernel` and `stride` apply to both axes, `pad` to each of the four sides.
    """

    kernel: int
    stride: int
    pad: int
    channels: int
    filters: int
    rows: int
    columns: int
    depthwise: bool = False

    @property
    def rows_out(self) -> int:
        """Returns the rows of the output."""
        return (self.rows + 2 * self.pad - self.kernel) // self.stride + 1

    @property
    def columns_out(self) -> int:
        """Returns the columns of the output."""
        return (self.columns + 2 * self.pad - self.kernel) // self.stride + 1

    @property
    def input_bytes(self) -> int:
        """Returns the bytes of the whole input."""
        return self.rows * self.columns * self.channels

    @property
    def output_bytes(self) -> int:
        """Returns the bytes of the whole output."""
        return self.rows_out * self.columns_out * self.filters

    @property
    def pixel_macs(self) -> int:
        """Returns the multiply-accumulates of one output pixel over all channels."""
        return self.filters * self.kernel**2 * (1 if self.depthwise else self.channels)

    @property
    def macs(self) -> int:
        """Returns the multiply-accumulates of the layer run once."""
        return self.rows_out * self.columns_out * self.pixel_macs


def is_layer(graph: Graph, op: Op) -> bool:
    """Returns whether the model has a layer for `op`: a convolution of batch 1 that can run row by row.

    Kernel and stride have to be equal on both axes.
    """
    if op.kind not in (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D):
        return False
    assert isinstance(op.attrs, ConvAttrs)
    kernel = graph.tensors[op.inputs[1]].shape[1:3]
    square = kernel[0] == kernel[1] and op.attrs.stride[0] == op.attrs.stride[1]
    return streams(graph, op) and square and op.attrs.dilation == (1, 1)


def layer(graph: Graph, op: Op) -> Layer:
    """Returns the layer of `op`. Raises UnsupportedError if `is_layer` is false.

    The model has the same padding on all sides, so the largest padding counts.
    """
    if not is_layer(graph, op):
        raise UnsupportedError("it is not a layer of the msf-CNN model", operator=op.place)
    assert isinstance(op.attrs, ConvAttrs)
    _, rows, columns, channels = graph.tensors[op.inputs[0]].nhwc
    kernel = graph.tensors[op.inputs[1]].shape[1]
    pad, stride = op.attrs.pad, op.attrs.stride[0]
    return Layer(
        kernel,
        stride,
        max(pad.top, pad.bottom, pad.left, pad.right),
        channels,
        graph.tensors[op.outputs[0]].shape[3],
        rows,
        columns,
        isinstance(op.attrs, DepthwiseAttrs),
    )


def chain(graph: Graph, first: int = 0) -> tuple[int, ...]:
    """Returns the positions of the convolutions in the chain that starts at or after operator `first`.

    Elementwise operators (additions of residuals, activations) in between belong to the convolution before
    them. The chain ends before any other operator, and before a convolution that does not read the chain's
    last output.
    """
    positions: list[int] = []
    tip = -1
    for position in range(first, len(graph.ops)):
        op = graph.ops[position]
        if is_layer(graph, op):
            if positions and op.inputs[0] != tip:
                break
            positions.append(position)
        elif positions and not (tip in op.inputs and follows(graph, op)):
            break
        if positions:
            tip = op.outputs[0]
    return tuple(positions)


def follows(graph: Graph, op: Op) -> bool:
    """Returns whether an operator is elementwise and keeps its input's shape, so that it may join a block."""
    windowed = (OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D)
    same = graph.tensors[op.inputs[0]].shape == graph.tensors[op.outputs[0]].shape
    return op.kind not in windowed and op.kind is not OpKind.MEAN and streams(graph, op) and same


# ---- blocks ------------------------------------------------------------------------------------------


def all_blocks(layers: Sequence[Layer]) -> list[Part]:
    """Returns every possible block of a chain of layers, single layers included."""
    parts: list[Part] = []
    for end in range(1, len(layers) + 1):
        tiles = _tiles(layers, end)
        macs = 0
        for start in range(end - 1, -1, -1):
            rows, step = tiles[start]
            macs += _tile_macs(layers[start], rows, step)
            if end - start == 1:
                parts.append(Part(start, end, _outside(layers, start, end), layers[start].macs))
            elif rows <= min(layers[start].rows, layers[start].columns):
                cache = _cache(layers[start:end], rows, step)
                parts.append(Part(start, end, _outside(layers, start, end) + cache, macs))
    return parts


def _tiles(layers: Sequence[Layer], end: int) -> list[tuple[int, int]]:
    """Returns the rows of a tile and the step between tiles (t and T in the paper) at each layer's input.

    They are for blocks that end before layer `end`.
    """
    tiles = []
    rows = step = 1
    for each in reversed(layers[:end]):
        rows, step = (rows - 1) * each.stride + each.kernel, step * each.stride
        tiles.append((rows, step))
    return tiles[::-1]


def _tile_macs(each: Layer, rows: int, step: int) -> int:
    """Returns the multiply-accumulates of one layer of a block, over all its tiles.

    `rows` and `step`: of the tiles at the layer's input, see `_tiles`.
    """
    down = (each.rows + 2 * each.pad - rows) // step + 1
    return down * each.columns_out * ((rows - each.kernel) // each.stride + 1) * each.pixel_macs


def _cache(block: Sequence[Layer], rows: int, step: int) -> int:
    """Returns the bytes of the columns that a block keeps. `rows` and `step`: of its tiles, see `_tiles`."""
    top = (block[0].rows - rows) // step * step
    size, strides = 0, 1
    for each in block:
        strides *= each.stride
        y = top // strides
        size += each.kernel * rows * each.channels
        padded = rows + (each.pad if y == 0 else 0) + (each.pad if y + rows >= each.rows else 0)
        rows = (padded - each.kernel) // each.stride + 1
    return size


def _outside(layers: Sequence[Layer], start: int, end: int) -> int:
    """Returns the bytes of a block's input and output; the network's own input and output count 0."""
    source = layers[start].input_bytes if start else 0
    result = layers[end - 1].output_bytes if end < len(layers) else 0
    return source + result


def front(blocks: Sequence[Part], layers: int) -> list[Chain]:
    """Returns the choices of blocks on the Pareto front of RAM and work, in descending order of RAM."""
    return undominated_chains(blocks, layers, lambda choice: (choice.ram, choice.macs, choice.parts))[::-1]


# ---- plans -------------------------------------------------------------------------------------------


def plans(
    graph: Graph,
    target: Target,
    in_place: str = InPlace.ROWS,
    image: str = Image.OVERWRITABLE,
    session: Session | None = None,
) -> tuple[Plan, ...]:
    """Returns a plan for each choice on the model's front.

    Raises UsageError if no operator of the network is a layer of the model.
    """
    kernels = catalogue.select_all(target, graph)
    every = (_regions(fused, kernels) for fused in _fused_blocks(graph, kernels))
    timelines = (Timeline.of(graph, regions, image, session) for regions in every)
    return tuple(assemble(t, target, kernels, strategy=STRATEGY, in_place=in_place) for t in timelines)


def _fused_blocks(graph: Graph, kernels: Sequence[KernelVariant | None]) -> list[list[tuple[int, ...]]]:
    """Returns for each choice on the model's front the operators of each block with several layers."""
    layers = chain(graph)
    if not layers:
        raise UsageError(
            "msf-cnn plans chains of convolutions, and the network has none",
            hint=suggest("it plans every network", strategy="best"),
        )
    bounds = pairwise([*layers, layers[-1] + 1])  # a layer and the elementwise operators after it
    owned = [tuple(p for p in range(*ends) if graph.ops[p].kind not in ALIAS_KINDS) for ends in bounds]
    possible = [
        block
        for block in all_blocks([layer(graph, graph.ops[p]) for p in layers])
        if block.end - block.first == 1
        or objection(graph, _join(owned[block.first : block.end]), kernels) is None
    ]
    return [
        [_join(owned[block.first : block.end]) for block in choice.parts if block.end - block.first > 1]
        for choice in front(possible, len(layers))
    ]


def _join(parts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(position for part in parts for position in part)


def _regions(fused: Sequence[tuple[int, ...]], kernels: Sequence[KernelVariant | None]) -> tuple[Region, ...]:
    """Returns the regions of a plan: one for each fused block, and one for each other operator."""
    groups = {ops[0]: Group(ops, Scheme.H_CACHED, 1, 1) for ops in fused}
    covered = {p for ops in fused for p in ops[1:]}
    return tuple(
        Region((groups.get(position, Group((position,))),))
        for position, kernel in enumerate(kernels)
        if kernel is not None and position not in covered
    )
