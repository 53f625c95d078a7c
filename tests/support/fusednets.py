"""Split networks: blocks of slim branches, whose ends a 1x1 convolution mixes before the next block."""

from __future__ import annotations

from buildtool.graph.rewrite import rewrite
from buildtool.graph.types import Graph, OpKind
from buildtool.zoo.drawn import NetBuilder


def split_network(
    branches: int = 4,
    *,
    blocks: int = 2,
    side: int = 16,
    channels: int = 16,
    is_chain: bool = True,
    residual: bool = False,
    seed: int = 0,
) -> Graph:
    """A network of `blocks` blocks, each behind a fusion that the branches of the next one read in slices.

    `is_chain`: each branch's end is joined to those before it as soon as it is there; else all are at once.
    """
    net = NetBuilder(seed)
    image = net.input((1, side, side, 3))
    sources: tuple[int, ...] = (image,) * branches
    slim = channels // branches
    for block in range(blocks):
        made = _block(net, sources, slim, is_chain, residual)
        fused = net.conv(made, channels)
        sources = net.split(fused, branches)
        if block + 1 == blocks:
            made = net.concat([net.conv(x, slim, kernel=(3, 3), same=True) for x in sources])
    return rewrite(net.graph([net.dense(net.mean(made), 4)]))


def _block(net: NetBuilder, sources: tuple[int, ...], slim: int, is_chain: bool, residual: bool) -> int:
    """Branches, joined: that is how they are written one behind the other."""
    ends: list[int] = []
    for x in sources:
        y = net.conv(x, slim, kernel=(3, 3), same=True)
        z = net.conv(y, slim, kernel=(3, 3), same=True)
        end = net.elementwise(OpKind.ADD, z, y) if residual else z
        ends = [net.concat([*ends, end])] if ends and is_chain else [*ends, end]
    return ends[0] if is_chain else net.concat(ends)
