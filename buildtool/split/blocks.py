"""The blocks of a network: where it is cut at poolings and strides.

A cut is a place that one tensor alone crosses. Between cuts that follow one another lies a segment: one layer
of a chain, or a residual block. A block ends behind a pooling and before a segment with strides, and has a
convolution at least. What prepares the input (layers before the first convolution) and the head (what follows
the global pooling or begins with Flatten, or the last convolution where only softmax or pooling follows it)
belong to no block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from buildtool.base.errors import BuildtoolError, UnsupportedError
from buildtool.split.branches import split_steps
from buildtool.split.graphs import steps_of
from buildtool.split.types import (
    CONVOLUTIONS,
    DEPTHWISE,
    GLOBAL_POOLINGS,
    PADDINGS,
    POOLINGS,
    Block,
    Choice,
    Step,
)

if TYPE_CHECKING:
    import keras

Segment = list[Step]
ENDS = frozenset(("Flatten", "Dense"))  # a chain's first layer of this kind begins the head


def find_blocks(model: keras.Model) -> tuple[Block, ...]:
    """The blocks of a Keras 3 model (functional or Sequential) in order."""
    return find_in(steps_of(model))


def find_in(steps: Sequence[Step]) -> tuple[Block, ...]:
    """The blocks of a network's records in order; an error where no block can be split."""
    groups = _cut(_trunk(segments(steps)))
    if not groups:
        raise UnsupportedError(
            "the network has no convolution that splitting could divide",
            hint="a network of convolutions, poolings and dense layers, such as vgg16",
        )
    whole = [_block(index, [step for part in group for step in part]) for index, group in enumerate(groups)]
    blocks = tuple(_tried(block, whole, steps) for block in whole)
    if all(block.largest == 1 for block in blocks):
        raise UnsupportedError(f"no block of the network can be split; {blocks[0].name}: {blocks[0].reason}")
    return blocks


def segments(steps: Sequence[Step]) -> list[Segment]:
    """The steps between places that one tensor alone crosses, in order."""
    last_use = {name: index for index, step in enumerate(steps) for name in step.inputs}
    found: list[Segment] = []
    current: Segment = []
    open_until = -1
    for index, step in enumerate(steps):
        current.append(step)
        # Whatever was made before this step and is read after it crosses this place as well.
        if open_until <= index:
            found.append(current)
            current = []
        open_until = max(open_until, last_use.get(step.name, index))
    return [*found, current] if current else found


def _has(segment: Iterable[Step], kinds: Iterable[str]) -> bool:
    return any(step.kind in kinds for step in segment)


def _trunk(parts: list[Segment]) -> list[Segment]:
    """The segments without what prepares the input and without the head."""
    first = next((i for i, part in enumerate(parts) if _has(part, CONVOLUTIONS | DEPTHWISE)), len(parts))
    while first and _is_single(parts[first - 1], PADDINGS):
        first -= 1
    inner = parts[first:]
    end = next((i for i, part in enumerate(inner) if _is_single(part, GLOBAL_POOLINGS | ENDS)), len(inner))
    if end < len(inner) and _is_single(inner[end], GLOBAL_POOLINGS):
        end += 1
    if any(step.is_mixing for part in inner[end:] for step in part):
        return inner[:end]
    if inner and _is_single(inner[-1], POOLINGS):
        return inner
    mixing = [i for i, part in enumerate(inner) if any(step.is_mixing for step in part)]
    return inner[: mixing[-1]] if mixing else []


def _is_single(segment: Segment, kinds: Iterable[str]) -> bool:
    return len(segment) == 1 and segment[0].kind in kinds


def _cut(trunk: list[Segment]) -> list[list[Segment]]:
    """The trunk's segments by blocks; what follows the last block's end without a convolution is left out."""
    blocks: list[list[Segment]] = []
    current: list[Segment] = []
    for part in trunk:
        pools = _is_single(part, GLOBAL_POOLINGS) or (_is_single(part, POOLINGS) and part[0].is_strided)
        strided = any(step.is_strided for step in part)
        if strided and not pools and _convolves(current):
            keep = _before_expansion(current, part)
            blocks.append(current[:keep])
            current = current[keep:]
        current.append(part)
        if pools and _convolves(current):
            blocks.append(current)
            current = []
    return [*blocks, current] if _convolves(current) else blocks


def _before_expansion(current: list[Segment], strided: Segment) -> int:
    """How many segments the block before a strided segment keeps.

    Paddings belong to the convolution behind them. A depthwise convolution belongs to the convolution that
    widens its input (an inverted residual), or the fusion would be as wide as that.
    """
    keep = len(current)
    while _is_single(current[keep - 1], PADDINGS):
        keep -= 1
    if not _is_single(strided, DEPTHWISE):
        return keep
    widens = keep - 1
    while widens > 0 and not any(step.is_mixing for step in current[widens]):
        widens -= 1
    narrow = widens > 0 and 2 * current[widens - 1][-1].channels < strided[-1].channels
    return widens if narrow and _convolves(current[:widens]) else keep


def _convolves(parts: Iterable[Segment]) -> bool:
    return any(_has(part, CONVOLUTIONS) for part in parts)


def _block(index: int, steps: Segment) -> Block:
    """A block before it is known whether it can be split."""
    named = [step for step in steps if step.is_mixing or step.kind in DEPTHWISE]
    return Block(
        index,
        f"block{index + 1}",
        tuple(step.name for step in steps),
        steps[-1].channels,
        largest=min(step.channels // step.multiplier for step in named),
        groups=tuple(step.groups for step in named if step.groups > 1),
    )


def _tried(block: Block, blocks: Sequence[Block], steps: Sequence[Step]) -> Block:
    """The block with its reason, where it cannot be split at all."""
    factors = [factor for factor in range(2, block.largest + 1) if block.allows(factor)]
    if not factors:
        mixing = [step for step in steps if step.is_mixing and step.name in block.layers]
        narrow = min(mixing, key=lambda step: step.channels)
        reason = f"layer {narrow.name} has {narrow.channels} channels"
        if block.largest > 1:
            reason = f"no factor divides its grouped convolutions' groups {block.groups}"
        return replace(block, largest=1, reason=reason)
    try:
        split_steps(steps, blocks, Choice.whole(len(blocks)).with_factor(block.index, factors[0]))
    except BuildtoolError as error:
        layer = f"layer {error.operator}: " if error.operator else ""
        return replace(block, largest=1, reason=f"{layer}{error.text}")
    return block
