"""msf-CNN's blocks of fused layers: what each costs, and which are chosen.

A block of layers m..n-1 makes its output in columns of tiles, each tile as large as ONE element of
the block's output needs: going backwards from t = T = 1 through the block's layers (kernel k, stride
s, padding p), t <- (t - 1) * s + k rows, T <- T * s rows from tile to tile. So with layer i's t and T

    RAM  = |in| + |out| + sum over i of k_i * r_i * channels_i
    MACs = sum over i of Nh_i * Nw_i * ((t_i - k_i) div s_i + 1) * (MACs of an output pixel)
    Nh_i = (H_i + 2 p_i - t_i) div T_i + 1,   Nw_i = (W_i + 2 p_i - k_i) div s_i + 1

k_i columns of r_i rows are kept of each layer's input (the "H cache"), the first layer's too. r_i are
the rows of the last tile that the published code walks through, on the input without its padding: it
starts at row y = ((H_m - t_m) div T_m) * T_m of the input, at row y div (product of the strides up to
and with layer i) of layer i, and where it touches the upper or lower edge of the layer's input there,
the padding adds to its output's rows. So r_i is t_i but for blocks that reach the lower edge (those
without strides, above all), and the tables of the paper follow r_i, not t_i.

A single layer has no cache: RAM = |in| + |out|. A block is impossible where t exceeds its input. The
network's input (of a block that starts at layer 0) and its last output do not count.

msf-CNN's two problems are here as it solves them, and the exact front that answers both at once. A choice
is a path through the graph whose nodes are the cuts between layers and whose edges are the blocks; its RAM
is that of its dearest block, its work the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from buildtool.plan.baselines.msf_layers import Layer


@dataclass(frozen=True)
class Cost:
    """Bytes that a block needs while it runs, and its multiply-accumulates."""

    ram: int
    macs: int


Blocks = dict[tuple[int, int], Cost]  # (first layer, one past the last) -> cost


def all_blocks(layers: Sequence[Layer]) -> Blocks:
    """Every possible block of the chain, single layers included."""
    found: Blocks = {}
    for end in range(1, len(layers) + 1):
        tiles = _tiles(layers, end)
        macs = 0
        for start in range(end - 1, -1, -1):
            rows, step = tiles[start]
            macs += _tile_macs(layers[start], rows, step)
            if end - start == 1:
                found[start, end] = Cost(_outside(layers, start, end), layers[start].macs)
            elif rows <= min(layers[start].rows, layers[start].columns):
                cache = _cache(layers[start:end], rows, step)
                found[start, end] = Cost(_outside(layers, start, end) + cache, macs)
    return found


def _tiles(layers: Sequence[Layer], end: int) -> list[tuple[int, int]]:
    """(t, T) at the input of each layer, of the block that ends before layer `end`."""
    tiles = []
    rows = step = 1
    for each in reversed(layers[:end]):
        rows, step = (rows - 1) * each.stride + each.kernel, step * each.stride
        tiles.append((rows, step))
    return tiles[::-1]


def _tile_macs(each: Layer, rows: int, step: int) -> int:
    """Multiply-accumulates of one layer of a block, over all its tiles."""
    down = (each.rows + 2 * each.pad - rows) // step + 1
    return down * each.columns_out * ((rows - each.kernel) // each.stride + 1) * each.pixel_macs


def _cache(block: Sequence[Layer], rows: int, step: int) -> int:
    """Bytes of the columns kept inside a block."""
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
    """Bytes of a block's input and output, where they count."""
    source = layers[start].input_bytes if start else 0
    result = layers[end - 1].output_bytes if end < len(layers) else 0
    return source + result


Edge = tuple[int, int]


@dataclass(frozen=True)
class Choice:
    """Blocks in order, each (first layer, one past the last); `ram` in bytes of the largest; all the MACs."""

    ram: int
    macs: int
    blocks: tuple[Edge, ...]


def least_ram(choices: Iterable[Choice], most_macs: float) -> Choice | None:
    """P1: the least RAM with no more than `most_macs`; None if nothing has so few.

    `choices` are those of `shrinking`, as msf-CNN has it, or of `front`: the answer is the same.
    """
    allowed = [choice for choice in choices if choice.macs <= most_macs]
    return min(allowed, key=lambda choice: (choice.ram, choice.macs), default=None)


def least_macs(choices: Iterable[Choice], most_ram: int) -> Choice | None:
    """P2: the least work with no more than `most_ram` bytes, of equal ones that of the least RAM.

    `choices` are those of `shrinking` over the blocks within the limit, or of `front`.
    """
    allowed = [choice for choice in choices if choice.ram <= most_ram]
    return min(allowed, key=lambda choice: (choice.macs, choice.ram), default=None)


def shrinking(blocks: Blocks, layers: int) -> list[Choice]:
    """msf-CNN's search: shortest paths by work, each without the edges of the largest RAM left."""
    edges, found = _by_end(blocks), []
    while (choice := _shortest(edges, layers)) is not None:
        found.append(choice)
        most = max(cost.ram for _, _, cost in edges)
        edges = [edge for edge in edges if edge[2].ram < most]
    return found


def _shortest(edges: Sequence[tuple[int, int, Cost]], layers: int) -> Choice | None:
    """The choice with the least work (of equal ones, the least RAM); None if no path is left."""
    best: dict[int, Choice] = {0: Choice(0, 0, ())}
    for end, start, cost in edges:
        if start in best:
            known, before = best.get(end), best[start]
            choice = _extended(before, (start, end), cost)
            if known is None or (choice.macs, choice.ram) < (known.macs, known.ram):
                best[end] = choice
    return best.get(layers)


def front(blocks: Blocks, layers: int) -> list[Choice]:
    """Every choice that no other beats in both RAM and work, by falling RAM.

    Dynamic programming over the cuts: a path to a cut that another one to the same cut equals or
    beats in both can be left out, whatever follows.
    """
    kept: dict[int, list[Choice]] = {0: [Choice(0, 0, ())]}
    at, coming = 0, list[Choice]()
    for end, start, cost in _by_end(blocks):
        if end != at:
            kept.setdefault(at, undominated(coming))
            at, coming = end, []
        coming += [_extended(choice, (start, end), cost) for choice in kept.get(start, ())]
    kept.setdefault(at, undominated(coming))
    return kept.get(layers, [])


def undominated(choices: Iterable[Choice]) -> list[Choice]:
    """Those that no other one equals or beats in both RAM and MACs, by falling RAM."""
    found: list[Choice] = []
    for choice in sorted(choices, key=lambda c: (c.ram, c.macs, c.blocks)):
        if not found or choice.macs < found[-1].macs:
            found.append(choice)
    return found[::-1]


def one_block(blocks: Blocks, layers: int) -> Choice | None:
    """A single block from the start, the other layers alone: the least RAM, then the least work."""
    found = []
    for end in range(1, layers + 1):
        edges = [(0, end), *((i, i + 1) for i in range(end, layers))]
        if all(edge in blocks for edge in edges):
            choice = Choice(0, 0, ())
            for edge in edges:
                choice = _extended(choice, edge, blocks[edge])
            found.append(choice)
    return min(found, key=lambda choice: (choice.ram, choice.macs), default=None)


def _extended(before: Choice, edge: Edge, cost: Cost) -> Choice:
    return Choice(max(before.ram, cost.ram), before.macs + cost.macs, (*before.blocks, edge))


def _by_end(blocks: Mapping[Edge, Cost]) -> list[tuple[int, int, Cost]]:
    """(end, start, cost), so that every path to a cut is known before the edges from it."""
    return sorted(((end, start, cost) for (start, end), cost in blocks.items()), key=lambda e: e[:2])
