"""What a block of fused layers costs: the RAM and the multiply-accumulates of msf-CNN's model.

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
"""

from __future__ import annotations

from collections.abc import Sequence
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
