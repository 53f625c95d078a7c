"""Splitting on records: the steps of the network that a choice makes of an original.

A region (a block, or all blocks where nothing fuses them) has layers that stay whole, computed once, and
layers of which every branch has a part. What enters the region is whole. A branch's convolution of it reads
all of it, or, with "slice", the branch's share of its channels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from buildtool.base.errors import UnsupportedError, UsageError
from buildtool.split.steps import (
    DEPTHWISE,
    FUSION_ENDING,
    Part,
    Step,
    partition,
)
from buildtool.split.types import Block, Choice, Fusion


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
    for region, fused in _regions(blocks, choice):
        work.whole_until(region.layers[0])
        work.split(region, fused)
    work.whole_until("")
    return tuple(work.made)


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
    """Layers that are split together."""

    name: str
    factor: int
    layers: tuple[str, ...]


def _regions(blocks: Sequence[Block], choice: Choice) -> Iterable[tuple[_Region, bool]]:
    """The regions that are split, and whether a fusion block ends each."""
    paired = [pair for pair in zip(blocks, choice.factors, strict=True) if pair[1] > 1]
    if choice.fusion is Fusion.FUSED:
        for block, factor in paired:
            yield _Region(block.name, factor, block.layers), True
    elif paired:
        layers = tuple(name for block, _ in paired for name in block.layers)
        yield _Region("blocks", paired[0][1], layers), False


class _Network:
    """The split network while it is made: `values` says where each original step's output is."""

    def __init__(self, steps: Sequence[Step], choice: Choice) -> None:
        self.made: list[Step] = []
        self._choice = choice
        self._steps = {step.name: step for step in steps}
        self._waiting = list(steps)
        self._values: dict[str, str] = {}
        self._shapes: dict[str, tuple[int | None, ...]] = {}
        self._raw = _before_mixing(steps)

    def add(self, step: Step) -> str:
        self.made.append(step)
        self._shapes[step.name] = step.shape
        return step.name

    def whole_until(self, name: str) -> None:
        """Takes over original steps as they are, up to the one of this name ("": to the end)."""
        while self._waiting and self._waiting[0].name != name:
            self._keep(self._waiting.pop(0))

    def _keep(self, step: Step) -> None:
        inputs = tuple(self._values[name] for name in step.inputs)
        self._values[step.name] = self.add(replace(step, inputs=inputs))

    def split(self, region: _Region, fused: bool) -> None:
        """Makes the region's branches and joins them."""
        steps = [self._waiting.pop(0) for _ in region.layers]
        held = self._held(steps)
        for step in steps:
            if step.name in held:
                self._keep(step)
        last = steps[-1]
        if last.name in held:
            return
        rest = [step for step in steps if step.name not in held]
        branches = [_Branch(self, region, index) for index in range(region.factor)]
        for branch in branches:
            for step in rest:
                branch.take(step)
        self._values[last.name] = self._joined(region, last, branches, fused)

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

    def original(self, name: str) -> Step:
        return self._steps[name]

    def sliced(self, name: str, channels: tuple[int, ...]) -> str:
        """The step that takes channels (one run of them) of an original step's whole output."""
        whole = self._values[name]
        taken = f"{whole}_{channels[0]}_{channels[-1] + 1}"
        if channels[-1] - channels[0] + 1 != len(channels):
            text = "a branch needs channels of it that do not lie side by side"
            raise UnsupportedError(text, operator=name)
        if taken not in self._shapes:
            shape = (*self._shapes[whole][:-1], len(channels))
            self.add(Step(taken, "Slice", (whole,), shape, part=Part(name, None, channels)))
        return taken

    def value(self, name: str) -> str:
        return self._values[name]

    def _joined(self, region: _Region, last: Step, branches: Sequence[_Branch], fused: bool) -> str:
        """The concatenation of the branches' ends, and the fusion's 1x1 convolution.

        Each branch's end is joined to those before it as soon as it is there. One concatenation of all would
        need memory for all ends and for itself; so each grows over the one before it, beside one end alone.
        """
        name = f"{region.name}_k{region.factor}"
        joined, order = branches[0].pieces[last.name].step, branches[0].pieces[last.name].channels
        for branch in branches[1:]:
            end = branch.pieces[last.name]
            order += end.channels
            shape = (*last.shape[:-1], len(order))
            ending = "concat" if branch is branches[-1] else f"{branches.index(branch) + 1}_concat"
            part = Part("", None, order)
            joined = self.add(Step(f"{name}_{ending}", "Concatenate", (joined, end.step), shape, part=part))
        if not fused:
            return joined
        rank = len(last.shape) - 1
        fusion = Step(
            f"{name}{FUSION_ENDING}", "Dense" if rank == 0 else f"Conv{rank}D", (joined,), last.shape
        )
        ones = (1,) * rank
        part = Part("", order, tuple(range(last.channels)))
        return self.add(replace(fusion, kernel=ones, strides=ones, has_bias=True, part=part))


@dataclass(frozen=True)
class _Piece:
    """A branch's part of an original step's output: the step that has it, and which channels it has."""

    step: str
    channels: tuple[int, ...]


class _Branch:
    """One branch of a region while it is made: `pieces` by the original steps' names."""

    def __init__(self, network: _Network, region: _Region, index: int) -> None:
        self._network = network
        self._region = region
        self._index = index
        self.pieces: dict[str, _Piece] = {}

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
        factor = self._region.factor
        if not writes:
            text = f"it has {step.channels} channels, too few for {factor} branches"
            raise UnsupportedError(text, operator=step.name)
        name = f"{step.name}_k{factor}b{self._index}"
        groups = step.groups // factor if step.groups > 1 else 1
        weights = step.weights * len(writes) // max(step.channels, 1)
        shape = (*step.shape[:-1], len(writes))
        part = Part(step.name, reads, writes)
        made = replace(step, name=name, inputs=inputs, shape=shape, groups=groups, weights=weights, part=part)
        self.pieces[step.name] = _Piece(self._network.add(made), writes)

    def _share(self, channels: int) -> tuple[int, ...]:
        return partition(channels, self._region.factor)[self._index]

    def _sliced(self, name: str, channels: tuple[int, ...]) -> _Piece:
        return _Piece(self._network.sliced(name, channels), channels)

    def _mixing(self, step: Step) -> tuple[tuple[int, ...] | None, tuple[int, ...], tuple[str, ...]]:
        (source,) = step.inputs
        writes, piece = self._share(step.channels), self.pieces.get(source)
        if piece is None:
            wide = self._network.original(source).channels
            enough = wide >= self._region.factor
            if step.groups == 1 and not (enough and self._network.is_sliced(source)):
                return None, writes, (self._network.value(source),)
            piece = self._sliced(source, self._share(wide))
        if step.groups > 1:
            self._check_groups(step, piece)
        return piece.channels, writes, (piece.step,)

    def _check_groups(self, step: Step, piece: _Piece) -> None:
        """A branch's output channels must read its own input channels."""
        wide = self._network.original(step.inputs[0]).channels
        if step.groups % self._region.factor or piece.channels != self._share(wide):
            text = f"its {step.groups} groups do not fall into {self._region.factor} branches"
            raise UnsupportedError(text, operator=step.name)

    def _concatenated(self, step: Step) -> tuple[None, tuple[int, ...], tuple[str, ...]]:
        writes: list[int] = []
        inputs: list[str] = []
        start = 0
        for name in step.inputs:
            wide = self._network.original(name).channels
            piece = self.pieces.get(name) or self._sliced(name, self._share(wide))
            writes += (start + channel for channel in piece.channels)
            inputs.append(piece.step)
            start += wide
        return None, tuple(writes), tuple(inputs)

    def _channelwise(self, step: Step) -> tuple[tuple[int, ...], tuple[int, ...], tuple[str, ...]]:
        known = [self.pieces[name].channels for name in step.inputs if name in self.pieces]
        wide = self._network.original(step.inputs[0]).channels
        reads = max(known, key=len) if known else self._share(wide)
        inputs = []
        for name in step.inputs:
            piece = self.pieces.get(name)
            if piece is None and self._network.original(name).channels == 1 < step.channels:
                inputs.append(self._network.value(name))  # broadcast over the channels
                continue
            piece = piece or self._sliced(name, reads)
            if piece.channels != reads:
                text = "its inputs have different channels in one branch"
                raise UnsupportedError(text, operator=step.name)
            inputs.append(piece.step)
        return reads, _multiplied(reads, step.multiplier), tuple(inputs)


def _multiplied(channels: Iterable[int], multiplier: int) -> tuple[int, ...]:
    """The output channels of a depthwise convolution for these input channels."""
    return tuple(channel * multiplier + i for channel in channels for i in range(multiplier))


def _before_mixing(steps: Sequence[Step]) -> set[str]:
    """The steps that still have the network's input: no convolution lies before them."""
    found: set[str] = set()
    for step in steps:
        if not step.is_mixing and found.issuperset(step.inputs):
            found.add(step.name)
    return found
