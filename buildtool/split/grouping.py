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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from buildtool.split.types import Step, partition

Floats = NDArray[np.float64]
Groups = NDArray[np.int64]  # of each channel the branch that has it
STARTS = 3  # the order as it is, and random ones
SWEEPS = 8
GAIN = 1e-9  # what a change must gain, so that rounding makes none


def orders(
    split: Sequence[Step],
    original: Mapping[str, Step],
    kernel_of: Callable[[str], NDArray[np.float32]],
    settled: Callable[[str], bool],
) -> dict[str, NDArray[np.int64]]:
    """Of each split original step its channels in the order in which branches have them, one after the other.

    `kernel_of`: the kernel (..., in, out) of an original convolution or dense layer. `settled`: whether a
    layer of the split network has weights already, so that its channels keep their order.
    """
    spaces = _Spaces(split, original, settled)
    links, best = _links(split, original, kernel_of, spaces)
    joined = {name for link in links for name in (link.source, link.target)}
    free = [name for name in dict.fromkeys(map(spaces.of, spaces.sizes)) if name in joined - spaces.settled]
    found = best
    for start in range(STARTS if free else 0):
        random = np.random.default_rng(start)
        begun = {**best, **{name: random.permutation(best[name]) for name in free if start}}
        tried = _raised(begun, free, links, spaces.sizes)
        if _kept(links, tried) > _kept(links, found) + GAIN:
            found = tried
    return {name: np.argsort(found[spaces.of(name)], kind="stable") for name in spaces.sizes}


def is_part(step: Step) -> bool:
    """Whether a step of a split network is a branch's part of a layer, whose channels may change order."""
    return step.part is not None and step.part.source != "" and step.kind != "Slice"


class _Spaces:
    """Sets of channels that have one order: of a convolution and all that follows channel by channel.

    Each has the name of one of its original steps. `sizes`: of the branches' parts of each step; `settled`:
    the sets whose order stays.
    """

    def __init__(
        self, split: Sequence[Step], original: Mapping[str, Step], settled: Callable[[str], bool]
    ) -> None:
        self.sizes: dict[str, tuple[int, ...]] = {}
        self.settled: set[str] = set()
        self._above: dict[str, str] = {}
        made = {step.name: step for step in split}
        joining = [step for step in split if step.part is not None and not step.part.source]
        ends = {name for step in joining for name in step.inputs}
        fused = any(step.is_mixing for step in joining)
        parts = [(step, step.part.source) for step in split if step.part is not None and is_part(step)]
        for step, source in parts:
            self.sizes[source] = (*self.sizes.get(source, ()), step.channels)
        for step, source in parts:
            self._relate(original[source], [is_part(made[name]) for name in step.inputs], original)
            if (step.name in ends and not fused) or settled(step.name):
                self._settle(source)

    def of(self, name: str) -> str:
        """The set that has the channels of an original step."""
        while name in self._above:
            name = self._above[name]
        return name

    def _settle(self, name: str) -> None:
        self.settled.add(self.of(name))

    def _relate(self, step: Step, inner: Sequence[bool], original: Mapping[str, Step]) -> None:
        """Joins a step's channels with its inputs' where they have one order, or settles them.

        `inner`: of each input whether it is a part as well.
        """
        fixed = step.kind == "Concatenate" or step.multiplier > 1 or step.groups > 1
        for name, is_inner in zip(step.inputs, inner, strict=True):
            if fixed:
                self._settle(step.name)
                if is_inner:
                    self._settle(name)
            elif step.is_mixing:
                continue
            elif is_inner:
                one, other = self.of(step.name), self.of(name)
                if one != other:
                    self._above[one] = other
                    if one in self.settled:
                        self.settled.add(other)
            elif original[name].channels == step.channels:  # of a whole tensor, whose order stays
                self._settle(step.name)


class _Link(NamedTuple):
    """A kernel between two sets of channels, by their names."""

    source: str
    target: str
    weight: Floats  # (in, out)


def _links(
    split: Sequence[Step],
    original: Mapping[str, Step],
    kernel_of: Callable[[str], NDArray[np.float32]],
    spaces: _Spaces,
) -> tuple[list[_Link], dict[str, Groups]]:
    """The kernels, and the groups of all sets as they are; what is read whole is a set " STEP" of its own."""
    made = {step.name: step for step in split}
    first = {step.part.source: step for step in reversed(split) if step.part is not None and is_part(step)}
    links = []
    groups = {spaces.of(name): _natural(spaces.sizes[name]) for name in spaces.sizes}
    for name, sizes in spaces.sizes.items():
        step, branch = original[name], first[name]
        assert branch.part is not None
        if not step.is_mixing or step.groups > 1 or step.multiplier > 1 or branch.part.reads is None:
            continue
        kernel = np.asarray(kernel_of(name), np.float64)
        weight = (kernel**2).sum(tuple(range(kernel.ndim - 2)))
        weight /= np.maximum(weight.sum(0), 1e-30)
        source = spaces.of(step.inputs[0])
        if not is_part(made[branch.inputs[0]]):
            source = f" {name}"
            groups[source] = _natural([len(part) for part in partition(len(weight), len(sizes))])
        links.append(_Link(source, spaces.of(name), weight))
    return links, groups


def _natural(sizes: Sequence[int]) -> Groups:
    return np.repeat(np.arange(len(sizes)), sizes)


def _kept(links: Sequence[_Link], groups: Mapping[str, Groups]) -> float:
    """The weight between channels of one branch, over all layers."""
    return sum(
        float(weight[groups[source][:, None] == groups[target][None, :]].sum())
        for source, target, weight in links
    )


def _raised(
    groups: dict[str, Groups],
    free: Sequence[str],
    links: Sequence[_Link],
    sizes: Mapping[str, tuple[int, ...]],
) -> dict[str, Groups]:
    """Groups that no new assignment of one set of channels makes better, or those after SWEEPS."""
    kept = _kept(links, groups)
    for _ in range(SWEEPS):
        before = kept
        for name in free:
            worth = _worth(name, links, groups, len(sizes[name]))
            tried = {**groups, name: _assigned(worth, sizes[name])}
            if (now := _kept(links, tried)) > kept + GAIN:
                groups, kept = tried, now
        if kept <= before + GAIN:
            break
    return groups


def _worth(name: str, links: Sequence[_Link], groups: Mapping[str, Groups], branches: int) -> Floats:
    """(channels, branches): the weight that each channel would keep in each branch."""
    found: Floats = np.zeros((len(groups[name]), branches))
    for source, target, weight in links:
        if target == name:
            found += weight.T @ np.eye(branches)[groups[source]]
        if source == name:
            found += weight @ np.eye(branches)[groups[target]]
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
