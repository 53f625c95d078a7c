"""Which channels of a layer come into one branch, so that the weights that stay are the heaviest.

Inside a block the order of a layer's channels is free: its readers and its own kernel change with it, and the
1x1 convolution at the block's end puts the outputs back. So channels that read one another strongly come into
one branch. Of a kernel, the weight between an input and an output channel is the sum of squares over its
window, divided by the output channel's sum, since batch normalisation makes all outputs alike. The sum over
all layers is raised one layer at a time, by a greedy assignment and swaps, until nothing is gained. Where
channels are joined with some that are not split, concatenated or grouped, their order stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from buildtool.split.types import Step, partition

Floats = NDArray[np.float64]
Groups = NDArray[np.int64]  # of each channel the branch that has it
STARTS = 3  # the order as it is, and random ones
SWEEPS = 8
GAIN = 1e-9  # what a change must gain, so that rounding makes none


@dataclass
class _Link:
    """A kernel between two sets of channels; `source` None: channels that keep the groups `fixed`."""

    source: str | None
    target: str
    weight: Floats  # (in, out)
    fixed: Groups | None = None


@dataclass
class _Spaces:
    """Sets of channels that have one order: of a convolution and all that follows channel by channel."""

    above: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, tuple[int, ...]] = field(default_factory=dict)  # of branches, by any name of the set
    settled: set[str] = field(default_factory=set)

    def of(self, name: str) -> str:
        while name in self.above:
            name = self.above[name]
        return name

    def join(self, one: str, other: str) -> None:
        one, other = self.of(one), self.of(other)
        if one != other:
            self.above[one] = other
            if one in self.settled:
                self.settled.add(other)

    def settle(self, name: str) -> None:
        self.settled.add(self.of(name))

    def natural(self, name: str) -> Groups:
        return _natural(self.sizes[name])


def orders(
    split: Sequence[Step],
    original: Mapping[str, Step],
    kernel_of: Callable[[str], NDArray[np.float32]],
    settled: Callable[[str], bool] = lambda name: False,
) -> dict[str, NDArray[np.int64]]:
    """Of each split original step its channels in the order in which branches have them, one after the other.

    `kernel_of`: the kernel (..., in, out) of an original convolution or dense layer. `settled`: whether a
    layer of the split network has weights already, so that its channels keep their order.
    """
    spaces = _spaces(split, original, settled)
    links = _links(split, original, kernel_of, spaces)
    free = [name for name in dict.fromkeys(map(spaces.of, spaces.sizes)) if name not in spaces.settled]
    free = [name for name in free if any(name in (link.source, link.target) for link in links)]
    best = {spaces.of(name): spaces.natural(name) for name in spaces.sizes}
    found = best
    for start in range(STARTS if free else 0):
        tried = _raised(_started(best, free, start), free, links, spaces)
        if _kept(links, tried) > _kept(links, found) + GAIN:
            found = tried
    return {name: np.argsort(found[spaces.of(name)], kind="stable") for name in spaces.sizes}


def _spaces(split: Sequence[Step], original: Mapping[str, Step], settled: Callable[[str], bool]) -> _Spaces:
    spaces = _Spaces()
    parts = [(step, step.part) for step in split if step.part is not None and step.kind != "Slice"]
    fused = any(step.is_mixing for step, part in parts if not part.source)
    ends = {name for step, part in parts if not part.source for name in step.inputs}
    for step, part in parts:
        if part.source:
            spaces.sizes[part.source] = (*spaces.sizes.get(part.source, ()), step.channels)
    made = {step.name: step for step in split}
    for step, part in parts:
        if part.source:
            inner = [is_part(made[name]) for name in step.inputs]
            _relate(spaces, original[part.source], inner, original)
            if (step.name in ends and not fused) or settled(step.name):
                spaces.settle(part.source)
    return spaces


def is_part(step: Step) -> bool:
    """Whether a step of a split network is a branch's part of a layer, whose channels may change order."""
    return step.part is not None and step.part.source != "" and step.kind != "Slice"


def _relate(spaces: _Spaces, step: Step, inner: Sequence[bool], original: Mapping[str, Step]) -> None:
    """Joins a step's channels with its inputs' where they have one order, or settles them.

    `inner`: of each input whether it is a part as well.
    """
    fixed = step.kind == "Concatenate" or step.multiplier > 1 or step.groups > 1
    for name, is_inner in zip(step.inputs, inner, strict=True):
        if fixed:
            spaces.settle(step.name)
            if is_inner:
                spaces.settle(name)
        elif step.is_mixing:
            continue
        elif is_inner:
            spaces.join(step.name, name)
        elif original[name].channels == step.channels:  # of a whole tensor, whose order stays
            spaces.settle(step.name)


def _links(
    split: Sequence[Step],
    original: Mapping[str, Step],
    kernel_of: Callable[[str], NDArray[np.float32]],
    spaces: _Spaces,
) -> list[_Link]:
    made = {step.name: step for step in split}
    first = {step.part.source: step for step in reversed(split) if step.part is not None and is_part(step)}
    links = []
    for name, sizes in spaces.sizes.items():
        step, branch = original[name], first[name]
        assert branch.part is not None
        if not step.is_mixing or step.groups > 1 or step.multiplier > 1 or branch.part.reads is None:
            continue
        kernel = np.asarray(kernel_of(name), np.float64)
        weight = (kernel**2).sum(tuple(range(kernel.ndim - 2)))
        weight /= np.maximum(weight.sum(0), 1e-30)
        if is_part(made[branch.inputs[0]]):
            links.append(_Link(spaces.of(step.inputs[0]), spaces.of(name), weight))
        else:
            fixed = _natural([len(part) for part in partition(len(weight), len(sizes))])
            links.append(_Link(None, spaces.of(name), weight, fixed))
    return links


def _natural(sizes: Sequence[int]) -> Groups:
    return np.repeat(np.arange(len(sizes)), sizes)


def _started(best: Mapping[str, Groups], free: Sequence[str], start: int) -> dict[str, Groups]:
    random = np.random.default_rng(start)
    shuffled = {name: random.permutation(best[name]) for name in free} if start else {}
    return {**best, **shuffled}


def _groups_in(link: _Link, groups: Mapping[str, Groups]) -> Groups:
    if link.source is None:
        assert link.fixed is not None
        return link.fixed
    return groups[link.source]


def _kept(links: Sequence[_Link], groups: Mapping[str, Groups]) -> float:
    """The weight between channels of one branch, over all layers."""
    return sum(
        float(link.weight[_groups_in(link, groups)[:, None] == groups[link.target][None, :]].sum())
        for link in links
    )


def _raised(
    groups: dict[str, Groups], free: Sequence[str], links: Sequence[_Link], spaces: _Spaces
) -> dict[str, Groups]:
    """Groups that no new assignment of one set of channels makes better, or those after SWEEPS."""
    kept = _kept(links, groups)
    for _ in range(SWEEPS):
        before = kept
        for name in free:
            worth = _worth(name, links, groups, len(spaces.sizes[name]))
            tried = {**groups, name: _assigned(worth, spaces.sizes[name])}
            if (now := _kept(links, tried)) > kept + GAIN:
                groups, kept = tried, now
        if kept <= before + GAIN:
            break
    return groups


def _worth(name: str, links: Sequence[_Link], groups: Mapping[str, Groups], branches: int) -> Floats:
    """(channels, branches): the weight that each channel would keep in each branch."""
    found: Floats = np.zeros((len(groups[name]), branches))
    for link in links:
        if link.target == name:
            found += link.weight.T @ np.eye(branches)[_groups_in(link, groups)]
        if link.source == name:
            found += link.weight @ np.eye(branches)[groups[link.target]]
    return found


def _assigned(worth: Floats, sizes: Sequence[int]) -> Groups:
    """Groups of these sizes: the channels that lose most elsewhere choose first, then pairs change places."""
    ranked = np.sort(worth, axis=1)
    left = list(sizes)
    groups = np.zeros(len(worth), np.int64)
    for channel in np.argsort(ranked[:, -2] - ranked[:, -1], kind="stable"):
        group = next(int(k) for k in np.argsort(-worth[channel], kind="stable") if left[k])
        groups[channel] = group
        left[group] -= 1
    rows = np.arange(len(worth))
    for _ in range(len(worth)):
        there = worth[:, groups]  # of each channel in the group of each other
        here = worth[rows, groups]
        gain = there + there.T - here[:, None] - here[None, :]
        one, other = np.unravel_index(int(gain.argmax()), gain.shape)
        if gain[one, other] <= GAIN:
            break
        groups[one], groups[other] = groups[other], groups[one]
    return groups
