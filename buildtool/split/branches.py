"""Finds the blocks of a network, and makes the steps of the split network, without Keras.

A cut is a place that only one tensor crosses. Between two cuts lies a segment: one layer of a chain, or a
residual block. A block ends after a pooling and before a segment with strides, and has at least one
convolution. The layers before the first convolution, which prepare the input, belong to no block. Nor does
the head: what follows the global pooling or begins with Flatten, or the last convolution where only softmax
or pooling follows it.

With fusion, branches are built for each block and joined at its end; without fusion, they are built once for
all blocks. Branches read a whole tensor, and some layers at their beginning may be computed once for all of
them. The other layers are divided among the branches. A branch's convolution reads the whole tensor or, with
"slice", the branch's share of its channels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from buildtool.base.errors import BuildtoolError, UnsupportedError, UsageError
from buildtool.split.graphs import steps_of
from buildtool.split.types import (
    CONVOLUTIONS,
    DEPTHWISE,
    FUSION_ENDING,
    GLOBAL_POOLINGS,
    PADDINGS,
    POOLINGS,
    Block,
    Choice,
    Fusion,
    Part,
    Step,
    partition,
)

if TYPE_CHECKING:
    import keras

Channels = tuple[int, ...]
ChannelUse = tuple[Channels | None, Channels, tuple[str, ...]]  # channels it reads, writes, and its inputs
Segment = list[Step]
ENDS = frozenset(("Flatten", "Dense"))  # a chain's first layer of this kind begins the head


def find_blocks(model: keras.Model) -> tuple[Block, ...]:
    """Finds the blocks of a Keras 3 model (functional or Sequential), in order."""
    return find_in(steps_of(model))


def find_in(steps: Sequence[Step]) -> tuple[Block, ...]:
    """Finds a network's blocks in its steps, in order. Raises UnsupportedError if none can be split."""
    groups = _cut(_find_trunk(segments(steps)))
    if not groups:
        text = "the network has no convolution that can be split"
        hint = "choose a network of convolutions, poolings and dense layers, such as vgg16"
        raise UnsupportedError(text, hint=hint)
    whole = []
    for index, group in enumerate(groups):
        layers = [step for part in group for step in part]
        convolving = [step for step in layers if step.is_mixing or step.kind in DEPTHWISE]
        largest = min(step.channels // step.multiplier for step in convolving)
        divided = tuple(step.groups for step in convolving if step.groups > 1)
        names, channels = tuple(step.name for step in layers), layers[-1].channels
        whole.append(Block(index, f"block{index + 1}", names, channels, largest, divided))
    blocks = tuple(_try_block(block, whole, steps) for block in whole)
    if all(block.largest == 1 for block in blocks):
        raise UnsupportedError(f"no block of the network can be split; {blocks[0].name}: {blocks[0].reason}")
    return blocks


def segments(steps: Sequence[Step]) -> list[Segment]:
    """Divides the steps into segments, in order. Only one tensor passes from a segment to the next one."""
    last_use = {name: index for index, step in enumerate(steps) for name in step.inputs}
    complete: list[Segment] = []
    current: Segment = []
    open_until = -1
    for index, step in enumerate(steps):
        current.append(step)
        # A tensor that was computed before this step and is read after it crosses this place as well.
        if open_until <= index:
            complete.append(current)
            current = []
        open_until = max(open_until, last_use.get(step.name, index))
    return [*complete, current] if current else complete


def _is_single(segment: Segment, kinds: Iterable[str]) -> bool:
    return len(segment) == 1 and segment[0].kind in kinds


def _convolves(parts: Iterable[Segment], kinds: Iterable[str] = CONVOLUTIONS) -> bool:
    return any(step.kind in kinds for part in parts for step in part)


def _find_trunk(parts: list[Segment]) -> list[Segment]:
    """Returns the segments that can be in blocks: all but those that prepare the input, and the head."""
    with_depthwise = CONVOLUTIONS | DEPTHWISE
    first = next((i for i, part in enumerate(parts) if _convolves([part], with_depthwise)), len(parts))
    while first and _is_single(parts[first - 1], PADDINGS):
        first -= 1
    inner = parts[first:]
    end = next((i for i, part in enumerate(inner) if _is_single(part, GLOBAL_POOLINGS | ENDS)), len(inner))
    if end < len(inner) and _is_single(inner[end], GLOBAL_POOLINGS):
        end += 1
    mixing = [i for i, part in enumerate(inner) if any(step.is_mixing for step in part)]
    if mixing and mixing[-1] >= end:
        return inner[:end]
    if inner and _is_single(inner[-1], POOLINGS):
        return inner
    return inner[: mixing[-1]] if mixing else []


def _cut(trunk: list[Segment]) -> list[list[Segment]]:
    """Groups the trunk's segments into blocks. Segments at the end without a convolution are left out."""
    blocks: list[list[Segment]] = []
    current: list[Segment] = []
    for part in trunk:
        pools = _is_single(part, GLOBAL_POOLINGS) or (_is_single(part, POOLINGS) and part[0].is_strided)
        strided = any(step.is_strided for step in part)
        if strided and not pools and _convolves(current):
            keep = _count_kept(current, part)
            blocks.append(current[:keep])
            current = current[keep:]
        current.append(part)
        if pools and _convolves(current):
            blocks.append(current)
            current = []
    return [*blocks, current] if _convolves(current) else blocks


def _count_kept(current: list[Segment], strided: Segment) -> int:
    """Counts the segments in `current` that belong to the block which ends before the segment `strided`.

    The others belong to the next block. These are paddings directly before `strided` and, if `strided` is a
    depthwise convolution, the convolution that widens its input (an inverted residual). Otherwise the block's
    fusion would have to be as wide as that input.
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


def _try_block(block: Block, blocks: Sequence[Block], steps: Sequence[Step]) -> Block:
    """Returns the block. If no factor can split it, its `largest` becomes 1, and `reason` says why."""
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


# ---- the split network -----------------------------------------------------------------------------


def split_steps(steps: Sequence[Step], blocks: Sequence[Block], choice: Choice) -> tuple[Step, ...]:
    """Returns the steps of the split network, in an order in which they can run, branch after branch.

    Steps outside the split blocks do not change, except for the names of their inputs.
    """
    if len(choice.factors) != len(blocks):
        text = f"{len(choice.factors)} splitting factors ({choice.text}) for {len(blocks)} blocks"
        raise UsageError(text, hint="give one factor per block; 1 leaves a block whole")
    for block, factor in zip(blocks, choice.factors, strict=True):
        if block.allows(factor):
            continue
        if block.reason:
            hint = "leave its factor at 1"
            raise UnsupportedError(f"{block.name} cannot be split: {block.reason}", hint=hint)
        allowed = ", ".join(str(k) for k in range(1, min(block.largest, 16) + 1) if block.allows(k))
        why = f"its narrowest layer has {block.largest} channels"
        if factor <= block.largest:
            why = f"its grouped convolutions have {' and '.join(map(str, sorted(set(block.groups))))} groups"
        text = f"{block.name} cannot be split into {factor} branches: {why}"
        raise UsageError(text, hint=f"factors up to 16: {allowed}")
    split = [pair for pair in zip(blocks, choice.factors, strict=True) if pair[1] > 1]
    network = _Network(steps, choice)
    if split and choice.fusion is not Fusion.FUSED:
        layers = tuple(name for block, _ in split for name in block.layers)
        network.split(f"blocks_k{split[0][1]}", layers, split[0][1])
    else:
        for block, factor in split:
            network.split(f"{block.name}_k{factor}", block.layers, factor)
    network.keep_until("")
    return tuple(network.steps.values())


class _Network:
    """The split network while it is built.

    `original`: the steps of the original network by name.
    `steps`: the steps of the split network so far, by name.
    `values`: for an original step's name, the name of the step of the split network with its whole output.
    """

    def __init__(self, steps: Sequence[Step], choice: Choice) -> None:
        self.original = {step.name: step for step in steps}
        self.steps: dict[str, Step] = {}
        self.values: dict[str, str] = {}
        self._choice = choice
        self._waiting = list(steps)
        self._raw: set[str] = set()  # steps without a convolution before them: forms of the network's input
        for step in steps:
            if not step.is_mixing and self._raw.issuperset(step.inputs):
                self._raw.add(step.name)

    def add(self, step: Step) -> Step:
        self.steps[step.name] = step
        return step

    def keep_until(self, name: str) -> None:
        """Copies original steps unchanged, up to the last one before the step `name` ("": all steps)."""
        while self._waiting and self._waiting[0].name != name:
            self._keep(self._waiting.pop(0))

    def _keep(self, step: Step) -> None:
        inputs = tuple(self.values[name] for name in step.inputs)
        self.values[step.name] = self.add(replace(step, inputs=inputs)).name

    def split(self, name: str, layers: tuple[str, ...], factor: int) -> None:
        """Builds `factor` branches for the layers `layers`, and joins them.

        The first convolutions stay whole if the choice shares them, and so do cheap steps before the first
        split step. `name`: the beginning of the names of the steps that join the branches.
        """
        self.keep_until(layers[0])
        steps = [self._waiting.pop(0) for _ in layers]
        split: dict[str, Step] = {}
        shared = self._choice.shared
        for step in steps:
            is_split = any(source in split for source in step.inputs)
            if not is_split and step.is_mixing:
                is_split = shared == 0
                shared -= 0 if is_split else 1
            elif not is_split:
                is_split = step.kind in DEPTHWISE and self.is_sliced(step.inputs[0])
            if is_split:
                split[step.name] = step
            else:
                self._keep(step)
        last = steps[-1]
        if last.name not in split:
            return
        ends = []
        for index in range(factor):
            branch = _Branch(self, factor, index)
            for step in split.values():
                branch.take(step)
            ends.append(branch.parts[last.name])
        self.values[last.name] = self._join(name, last, ends).name

    def is_sliced(self, name: str) -> bool:
        """Whether a convolution in a branch reads only the branch's share of this whole tensor's channels."""
        return self._choice.first == "slice" and name not in self._raw

    def slice_channels(self, name: str, channels: Channels) -> Step:
        """Returns the step that slices these channels from an original step's output; adds it if needed."""
        whole = self.values[name]
        part = f"{whole}_{channels[0]}_{channels[-1] + 1}"
        if channels[-1] - channels[0] + 1 != len(channels):
            raise UnsupportedError("a branch needs channels of it that are not adjacent", operator=name)
        if part not in self.steps:
            shape = (*self.steps[whole].shape[:-1], len(channels))
            self.add(Step(part, "Slice", (whole,), shape, part=Part(name, None, channels)))
        return self.steps[part]

    def _join(self, name: str, last: Step, ends: Sequence[Step]) -> Step:
        """Adds the concatenation of the branches' last steps `ends` and, with fusion, its 1x1 convolution.

        Each branch's end is joined to the earlier ones as soon as it is computed. So each concatenation can
        overwrite the one before it, and only one further end is in memory. A single concatenation would need
        memory for all ends and for itself. `name`: the beginning of the steps' names. `last`: the original
        layer that is joined.
        """
        joined = ends[0]
        for count, end in enumerate(ends[1:], 2):
            part = Part("", None, joined.writes + end.writes)
            ending = "concat" if end is ends[-1] else f"{count}_concat"
            inputs, shape = (joined.name, end.name), (*last.shape[:-1], len(part.writes))
            joined = self.add(Step(f"{name}_{ending}", "Concatenate", inputs, shape, part=part))
        if self._choice.fusion is not Fusion.FUSED:
            return joined
        rank = len(last.shape) - 1
        part = Part("", joined.writes, tuple(range(last.channels)))
        kind, ones = f"Conv{rank}D" if rank else "Dense", (1,) * rank
        fusion = Step(f"{name}{FUSION_ENDING}", kind, (joined.name,), last.shape, ones, ones, part=part)
        return self.add(fusion)


class _Branch:
    """One branch while it is built. `parts` maps an original step's name to its part in this branch."""

    def __init__(self, network: _Network, factor: int, index: int) -> None:
        self._network, self._factor, self._index = network, factor, index
        self.parts: dict[str, Step] = {}

    def take(self, step: Step) -> None:
        """Adds this branch's part of an original step."""
        if step.refused:
            raise UnsupportedError(f"it cannot be split: {step.refused}", operator=step.name)
        take = self._concatenate if step.kind == "Concatenate" else self._take_channels
        reads, writes, inputs = self._mix(step) if step.is_mixing else take(step)
        if not writes:
            text = f"it has {step.channels} channels, too few for {self._factor} branches"
            raise UnsupportedError(text, operator=step.name)
        own = replace(
            step,
            name=f"{step.name}_k{self._factor}b{self._index}",
            inputs=inputs,
            shape=(*step.shape[:-1], len(writes)),
            groups=step.groups // self._factor if step.groups > 1 else 1,
            part=Part(step.name, reads, writes),
        )
        self.parts[step.name] = self._network.add(own)

    def _share(self, name: str) -> Channels:
        """Returns the branch's share of the channels of an original step."""
        return partition(self._network.original[name].channels, self._factor)[self._index]

    def _mix(self, step: Step) -> ChannelUse:
        (source,) = step.inputs
        writes, part = self._share(step.name), self.parts.get(source)
        if part is None:
            enough = self._network.original[source].channels >= self._factor
            if step.groups == 1 and not (enough and self._network.is_sliced(source)):
                return None, writes, (self._network.values[source],)
            part = self._network.slice_channels(source, self._share(source))
        # The output channels of a grouped convolution's branch must read its own input channels.
        if step.groups > 1 and (step.groups % self._factor or part.writes != self._share(source)):
            text = f"its {step.groups} groups cannot be divided among {self._factor} branches"
            raise UnsupportedError(text, operator=step.name)
        return part.writes, writes, (part.name,)

    def _concatenate(self, step: Step) -> ChannelUse:
        writes: Channels = ()
        inputs: list[str] = []
        start = 0
        for name in step.inputs:
            part = self.parts.get(name) or self._network.slice_channels(name, self._share(name))
            writes += tuple(start + channel for channel in part.writes)
            inputs.append(part.name)
            start += self._network.original[name].channels
        return None, writes, tuple(inputs)

    def _take_channels(self, step: Step) -> ChannelUse:
        splits = [self.parts[name].writes for name in step.inputs if name in self.parts]
        reads = max(splits, key=len) if splits else self._share(step.inputs[0])
        inputs = []
        for name in step.inputs:
            part = self.parts.get(name)
            if part is None and self._network.original[name].channels == 1 < step.channels:
                inputs.append(self._network.values[name])  # broadcast over the channels
                continue
            part = part or self._network.slice_channels(name, reads)
            if part.writes != reads:
                raise UnsupportedError("its inputs have different channels in one branch", operator=step.name)
            inputs.append(part.name)
        writes = tuple(channel * step.multiplier + i for channel in reads for i in range(step.multiplier))
        return reads, writes, tuple(inputs)
