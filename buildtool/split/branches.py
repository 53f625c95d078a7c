"""Splitting on records: the steps of the network that a choice makes of an original.

A region (a block, or all blocks where nothing fuses them) has layers that stay whole, computed once, and
layers of which every branch has a part. What enters the region is whole. A branch's convolution of it reads
all of it, or, with "slice", the branch's share of its channels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from buildtool.base.errors import UnsupportedError, UsageError
from buildtool.split.types import DEPTHWISE, FUSION_ENDING, Block, Choice, Fusion, Part, Step, partition

Channels = tuple[int, ...]


def split_steps(steps: Sequence[Step], blocks: Sequence[Block], choice: Choice) -> tuple[Step, ...]:
    """The steps of the split network, in an order in which they can run, one branch after the other.

    Steps of `steps` that no split block has keep their records but for the names of their inputs.
    """
    if len(choice.factors) != len(blocks):
        raise UsageError(
            f"{len(choice.factors)} splitting factors ({choice.text}) for {len(blocks)} blocks",
            hint="one factor a block; 1 leaves a block whole",
        )
    for block, factor in zip(blocks, choice.factors, strict=True):
        _check_factor(block, factor)
    work = _Network(steps, choice)
    for region in _regions(blocks, choice):
        work.whole_until(region.layers[0])
        work.split(region)
    work.whole_until("")
    return tuple(work.made.values())


def _check_factor(block: Block, factor: int) -> None:
    if block.allows(factor):
        return
    if block.reason:
        raise UnsupportedError(f"{block.name} cannot be split: {block.reason}", hint="leave its factor at 1")
    allowed = ", ".join(str(k) for k in range(1, min(block.largest, 16) + 1) if block.allows(k))
    why = f"its narrowest layer has {block.largest} channels"
    if factor <= block.largest:
        why = f"its grouped convolutions have {' and '.join(map(str, sorted(set(block.groups))))} groups"
    raise UsageError(
        f"{block.name} cannot be split into {factor} branches: {why}", hint=f"factors up to 16: {allowed}"
    )


@dataclass(frozen=True)
class _Region:
    """Layers that are split together; `fused`: whether a fusion block ends them."""

    name: str
    factor: int
    layers: tuple[str, ...]
    fused: bool


def _regions(blocks: Sequence[Block], choice: Choice) -> Iterator[_Region]:
    """The regions that are split."""
    paired = [pair for pair in zip(blocks, choice.factors, strict=True) if pair[1] > 1]
    if choice.fusion is Fusion.FUSED:
        for block, factor in paired:
            yield _Region(block.name, factor, block.layers, True)
    elif paired:
        layers = tuple(name for block, _ in paired for name in block.layers)
        yield _Region("blocks", paired[0][1], layers, False)


class _Network:
    """The split network while it is made.

    `original`: the steps that it is made of; `made`: its own so far; `values`: the step that has all of an
    original step's output.
    """

    def __init__(self, steps: Sequence[Step], choice: Choice) -> None:
        self.original = {step.name: step for step in steps}
        self.made: dict[str, Step] = {}
        self.values: dict[str, str] = {}
        self._choice = choice
        self._waiting = list(steps)
        self._raw: set[str] = set()  # steps that still have the network's input: no convolution before them
        for step in steps:
            if not step.is_mixing and self._raw.issuperset(step.inputs):
                self._raw.add(step.name)

    def add(self, step: Step) -> Step:
        self.made[step.name] = step
        return step

    def whole_until(self, name: str) -> None:
        """Takes over original steps as they are, up to the one of this name ("": to the end)."""
        while self._waiting and self._waiting[0].name != name:
            self._keep(self._waiting.pop(0))

    def _keep(self, step: Step) -> None:
        inputs = tuple(self.values[name] for name in step.inputs)
        self.values[step.name] = self.add(replace(step, inputs=inputs)).name

    def split(self, region: _Region) -> None:
        """Makes the region's branches and joins them."""
        steps = [self._waiting.pop(0) for _ in region.layers]
        held = self._held(steps)
        for step in steps:
            if step.name in held:
                self._keep(step)
        last = steps[-1]
        if last.name in held:
            return
        ends = []
        for index in range(region.factor):
            branch = _Branch(self, region.factor, index)
            for step in steps:
                if step.name not in held:
                    branch.take(step)
            ends.append(branch.pieces[last.name])
        self.values[last.name] = self._joined(region, last, ends).name

    def _held(self, steps: Sequence[Step]) -> set[str]:
        """The steps of a region that stay whole: shared ones, and cheap ones before the first split ones."""
        inside = {step.name for step in steps}
        held: set[str] = set()
        shared = self._choice.shared
        for step in steps:
            if any(name in inside - held for name in step.inputs):
                continue
            if step.is_mixing:
                if shared == 0:
                    continue
                shared -= 1
            elif step.kind in DEPTHWISE and self.is_sliced(step.inputs[0]):
                continue
            held.add(step.name)
        return held

    def is_sliced(self, name: str) -> bool:
        """Whether a branch's convolution of a whole tensor reads its share of the channels only."""
        return self._choice.first == "slice" and name not in self._raw

    def sliced(self, name: str, channels: Channels) -> Step:
        """The step that takes channels (one run of them) of an original step's whole output."""
        whole = self.values[name]
        taken = f"{whole}_{channels[0]}_{channels[-1] + 1}"
        if channels[-1] - channels[0] + 1 != len(channels):
            text = "a branch needs channels of it that do not lie side by side"
            raise UnsupportedError(text, operator=name)
        if taken not in self.made:
            shape = (*self.made[whole].shape[:-1], len(channels))
            self.add(Step(taken, "Slice", (whole,), shape, part=Part(name, None, channels)))
        return self.made[taken]

    def _joined(self, region: _Region, last: Step, ends: Sequence[Step]) -> Step:
        """The concatenation of the branches' ends, and the fusion's 1x1 convolution.

        Each branch's end is joined to those before it as soon as it is there. One concatenation of all would
        need memory for all ends and for itself; so each grows over the one before it, beside one end alone.
        """
        name, joined = f"{region.name}_k{region.factor}", ends[0]
        for count, end in enumerate(ends[1:], 2):
            order = joined.writes + end.writes
            ending = "concat" if end is ends[-1] else f"{count}_concat"
            inputs, shape = (joined.name, end.name), (*last.shape[:-1], len(order))
            joined = self.add(
                Step(f"{name}_{ending}", "Concatenate", inputs, shape, part=Part("", None, order))
            )
        if not region.fused:
            return joined
        rank = len(last.shape) - 1
        part = Part("", joined.writes, tuple(range(last.channels)))
        kind, ones = f"Conv{rank}D" if rank else "Dense", (1,) * rank
        return self.add(
            Step(f"{name}{FUSION_ENDING}", kind, (joined.name,), last.shape, ones, ones, part=part)
        )


class _Branch:
    """One branch of a region while it is made: `pieces`, its parts of the original steps, by their names."""

    def __init__(self, network: _Network, factor: int, index: int) -> None:
        self._network = network
        self._factor = factor
        self._index = index
        self.pieces: dict[str, Step] = {}

    def take(self, step: Step) -> None:
        """Adds this branch's part of an original step."""
        if step.refused:
            raise UnsupportedError(f"it cannot be split: {step.refused}", operator=step.name)
        if step.is_mixing:
            reads, writes, inputs = self._mixing(step)
        elif step.kind == "Concatenate":
            reads, writes, inputs = self._concatenated(step)
        else:
            reads, writes, inputs = self._channelwise(step)
        if not writes:
            text = f"it has {step.channels} channels, too few for {self._factor} branches"
            raise UnsupportedError(text, operator=step.name)
        made = replace(
            step,
            name=f"{step.name}_k{self._factor}b{self._index}",
            inputs=inputs,
            shape=(*step.shape[:-1], len(writes)),
            groups=step.groups // self._factor if step.groups > 1 else 1,
            part=Part(step.name, reads, writes),
        )
        self.pieces[step.name] = self._network.add(made)

    def _share(self, name: str) -> Channels:
        """The branch's share of the channels of an original step."""
        return partition(self._network.original[name].channels, self._factor)[self._index]

    def _mixing(self, step: Step) -> tuple[Channels | None, Channels, tuple[str, ...]]:
        (source,) = step.inputs
        writes, piece = self._share(step.name), self.pieces.get(source)
        if piece is None:
            enough = self._network.original[source].channels >= self._factor
            if step.groups == 1 and not (enough and self._network.is_sliced(source)):
                return None, writes, (self._network.values[source],)
            piece = self._network.sliced(source, self._share(source))
        # The output channels of a grouped convolution's branch must read its own input channels.
        if step.groups > 1 and (step.groups % self._factor or piece.writes != self._share(source)):
            text = f"its {step.groups} groups do not fall into {self._factor} branches"
            raise UnsupportedError(text, operator=step.name)
        return piece.writes, writes, (piece.name,)

    def _concatenated(self, step: Step) -> tuple[None, Channels, tuple[str, ...]]:
        writes: list[int] = []
        inputs: list[str] = []
        start = 0
        for name in step.inputs:
            piece = self.pieces.get(name) or self._network.sliced(name, self._share(name))
            writes += (start + channel for channel in piece.writes)
            inputs.append(piece.name)
            start += self._network.original[name].channels
        return None, tuple(writes), tuple(inputs)

    def _channelwise(self, step: Step) -> tuple[Channels, Channels, tuple[str, ...]]:
        known = [self.pieces[name].writes for name in step.inputs if name in self.pieces]
        reads = max(known, key=len) if known else self._share(step.inputs[0])
        inputs = []
        for name in step.inputs:
            piece = self.pieces.get(name)
            if piece is None and self._network.original[name].channels == 1 < step.channels:
                inputs.append(self._network.values[name])  # broadcast over the channels
                continue
            piece = piece or self._network.sliced(name, reads)
            if piece.writes != reads:
                raise UnsupportedError("its inputs have different channels in one branch", operator=step.name)
            inputs.append(piece.name)
        writes = tuple(channel * step.multiplier + i for channel in reads for i in range(step.multiplier))
        return reads, writes, tuple(inputs)
