"""Constants of operators as they are brought into the arena: their bytes, and the ways in which they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from buildtool.graph.types import Graph
from buildtool.plan.place.arena import round_up
from buildtool.target.catalogue import ChannelBytes, channel_bytes, constants_bytes, features, operands
from buildtool.target.types import KernelVariant

HEAD = 16  # bytes in front of the channels' constants; both parts are rounded up to this


@dataclass(frozen=True)
class Constants:
    """What an operator's kernel reads besides its inputs, in bytes.

    `channels` output channels of `factors` and `weights` bytes each, in this order behind a head;
    0 channels: the block cannot be cut, and where it can, then at multiples of `step`. There are bytes for
    a multiple of `unit` channels, and `tail` bytes behind them that are read, whatever is in them. The
    factors of `group` channels belong together: a slice lies within such a group, whose factors all come, or
    consists of whole groups. `scattered`: they are several blocks of the weight image.
    """

    size: int
    channels: int = 0
    factors: int = 0
    weights: int = 0
    step: int = 1
    unit: int = 1
    group: int = 1
    tail: int = 0
    scattered: bool = False

    def least_bytes(self) -> int:
        """The least that an operator needs of the arena for its constants while it runs alone."""
        whole = round_up(self.size, HEAD)
        return whole if self.channels <= self.step else min(whole, self.slice_bytes(self.step))

    def slice_bytes(self, channels: int) -> int:
        """Bytes of the block for some of the channels."""
        weights = self.weights * round_up(channels, self.unit) + self.tail
        factors = self.factors * round_up(channels, max(self.unit, self.group))
        return round_up(HEAD + factors, HEAD) + round_up(weights, HEAD)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """How many channels a slice can have that are not all of them, ascending."""
        steps = range(self.step, self.channels, self.step)
        return tuple(n for n in steps if self.least_width(n) == n)

    def least_width(self, channels: int) -> int:
        """The fewest channels of a slice, `channels` or more, that it can have wherever it begins."""
        found = round_up(channels, self.step)
        while found % self.group and self.group % found:
            found += self.step
        return found


@dataclass(frozen=True)
class Way:
    """How one operator's constants come: see Load."""

    channels: int
    slots: int
    bytes: int  # of the buffer
    by_turns: bool = False
    behind: bool = False  # on dead rows of the region's input

    @property
    def lasting(self) -> bool:
        """Whether the buffer is there throughout the region."""
        return not (self.by_turns or self.behind)


def constants(graph: Graph, kernels: Sequence[KernelVariant | None]) -> dict[int, Constants]:
    """By operator: what its kernel reads besides its inputs, by the catalogue's formulas."""
    found = {}
    for position, kernel in enumerate(kernels):
        if kernel is None:
            continue
        op = graph.ops[position]
        block = constants_bytes(kernel, graph, op)
        read = [graph.tensors[t] for t in operands(kernel, graph, op) if graph.tensors[t].is_constant]
        size = block + sum(round_up(tensor.size, HEAD) for tensor in read)
        if size:
            channel = channel_bytes(kernel, graph, op)
            one_image = graph.tensors[op.outputs[0]].nhwc[0] == 1
            cuts = channel is not None and one_image and not read
            cut = (features(graph, op)["cout"], *channel) if channel and cuts else (0, *ChannelBytes())
            found[position] = Constants(size, *cut, len(read) + bool(block) > 1)
    return found
