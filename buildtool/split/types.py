"""A network as a split sees it: its layers (steps), its blocks, a splitting factor for each, and counts.

These are read from a Keras model (graphs.py) or drawn (networks.py), so only training needs Keras.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import Literal

from buildtool.base.errors import UsageError

CONVOLUTIONS = frozenset(("Conv1D", "Conv2D", "Conv1DTranspose", "Conv2DTranspose", "SeparableConv2D"))
MIXING = CONVOLUTIONS | {"Dense"}  # each output channel reads all input channels (of its group)
DEPTHWISE = frozenset(("DepthwiseConv1D", "DepthwiseConv2D"))
POOLINGS = frozenset(("MaxPooling1D", "MaxPooling2D", "AveragePooling1D", "AveragePooling2D"))
GLOBAL_POOLINGS = frozenset(f"Global{how}Pooling{rank}D" for how in ("Max", "Average") for rank in (1, 2))
JOINS = frozenset(("Add", "Subtract", "Multiply", "Maximum", "Minimum", "Average"))
PADDINGS = frozenset(("ZeroPadding1D", "ZeroPadding2D"))
# One input, and each output channel reads the same input channel alone.
CHANNELWISE = (
    POOLINGS
    | GLOBAL_POOLINGS
    | PADDINGS
    | {"BatchNormalization", "Activation", "ReLU", "LeakyReLU", "PReLU", "ELU", "Identity", "Reshape"}
    | {"Cropping1D", "Cropping2D", "UpSampling1D", "UpSampling2D", "Rescaling", "ActivityRegularization"}
    | {"Dropout", "SpatialDropout1D", "SpatialDropout2D", "GaussianDropout", "GaussianNoise"}
    | {"Relu", "Relu6", "Sigmoid", "Tanh", "Silu", "Gelu", "Elu", "HardSigmoid", "HardSilu"}  # keras.ops
)
SPLITTABLE = MIXING | DEPTHWISE | JOINS | CHANNELWISE | {"Concatenate"}
FUSION_ENDING = "_fusion"
First = Literal["full", "slice"]


@dataclass(frozen=True)
class Part:
    """A branch's part of the original layer `source`.

    `reads`: its input channels (None: all). `writes`: its output channels.
    """

    source: str
    reads: tuple[int, ...] | None
    writes: tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """One layer or operation of a network.

    `kind`: the class of the Keras layer or operation. A "Slice" takes channels `part.writes` of its input.
    `inputs`: the names of the steps that it reads.
    `shape`: the output's shape, channels last, without the batch (None: any size).
    `kernel` and `strides`: rows first.
    `multiplier`: a depthwise convolution's output channels per input channel.
    `refused`: why it cannot be part of a split block, or "".
    `part`: its part of an original layer, or None if it is whole.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    shape: tuple[int | None, ...]
    kernel: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    groups: int = 1
    multiplier: int = 1
    refused: str = ""
    part: Part | None = None

    @property
    def channels(self) -> int:
        """The number of output channels; 0 where it is unknown."""
        return (self.shape[-1] or 0) if self.shape else 0

    @property
    def is_mixing(self) -> bool:
        """Whether each of the step's output channels reads several input channels."""
        return self.kind in MIXING

    @property
    def is_strided(self) -> bool:
        """Whether the output has fewer rows or columns than the input because of strides."""
        return max(self.strides, default=1) > 1 and not self.kind.endswith("Transpose")

    @property
    def is_fusion(self) -> bool:
        """Whether the step is the 1x1 convolution of a fusion block."""
        return self.is_mixing and self.name.endswith(FUSION_ENDING)

    @property
    def writes(self) -> tuple[int, ...]:
        """The output channels of the original layer that this step computes."""
        assert self.part is not None
        return self.part.writes


@dataclass(frozen=True)
class Block:
    """A part of a network with one input tensor and one output tensor.

    `index`: its number, from 0. `name`: "block1", "block2" and so on.
    `layers`: the layers' names in order.
    `channels`: the number of output channels.
    `largest`: the largest splitting factor at which every branch has a channel of every layer.
    `groups`: the group counts of its grouped convolutions; a factor must divide all of them.
    `reason`: why it cannot be split, or "".
    """

    index: int
    name: str
    layers: tuple[str, ...]
    channels: int
    largest: int
    groups: tuple[int, ...] = ()
    reason: str = ""

    def allows(self, factor: int) -> bool:
        """Whether this block can be split into this many branches."""
        return 1 <= factor <= self.largest and all(count % factor == 0 for count in self.groups)


class Fusion(Enum):
    """How the branches are joined."""

    FUSED = "fused"  # at the end of every split block: pooling in each branch, concatenation, 1x1 convolution
    NAIVE = "naive"  # one concatenation after the last block, so that branches never see one another
    SHARED = "shared"  # as NAIVE, but the first convolutions are whole


@dataclass(frozen=True)
class Choice:
    """One structure of a split network.

    `factors`: the splitting factor of each block, in the network's order. With Fusion.NAIVE and Fusion.SHARED
    all are equal; with NAIVE, however, the first blocks may have factor 1.
    `first`: whether the first convolution of a branch reads all channels before the block ("full") or the
    branch's share of them ("slice"). The network's input is always read whole.
    `shared`: how many convolutions at the network's beginning are whole.
    """

    factors: tuple[int, ...]
    first: First = "slice"
    fusion: Fusion = Fusion.FUSED
    shared: int = 0

    def __post_init__(self) -> None:
        if min(self.factors, default=0) < 1:
            raise UsageError(f"splitting factors {self.factors} are not whole numbers above 0")
        if (self.shared > 0) != (self.fusion is Fusion.SHARED):
            raise UsageError("shared convolutions and Fusion.SHARED belong together")
        factors = self.factors
        if self.fusion is Fusion.NAIVE:
            factors = factors[next((i for i, factor in enumerate(factors) if factor > 1), 0) :]
        if self.fusion is not Fusion.FUSED and len(set(factors)) > 1:
            raise UsageError(f"without fusion the factors of all blocks are equal, not {self.text}")

    @classmethod
    def whole(cls, blocks: int, first: First = "slice") -> Choice:
        """Returns the original network of this many blocks: every factor is 1."""
        return cls((1,) * blocks, first)

    def with_factor(self, index: int, factor: int) -> Choice:
        """Returns the same choice with another factor for one block, counted from 0."""
        return replace(self, factors=(*self.factors[:index], factor, *self.factors[index + 1 :]))

    @property
    def is_whole(self) -> bool:
        """Whether no block is split."""
        return max(self.factors) == 1

    @property
    def average(self) -> float:
        """The mean of its blocks' factors."""
        return sum(self.factors) / len(self.factors)

    @property
    def text(self) -> str:
        """The factors as text, such as "8-2-2-4-4"."""
        return "-".join(map(str, self.factors))

    def key(self) -> str:
        """Returns a short text for records, files and tables, "8-2-2-4-4,slice" or "4-4,full,shared3"."""
        fusion = "" if self.fusion is Fusion.FUSED else f",{self.fusion.value}"
        return f"{self.text},{self.first}{fusion}{self.shared or ''}"


def partition(channels: int, parts: int) -> tuple[tuple[int, ...], ...]:
    """Divides channels into `parts` slices, larger slices first. Their sizes differ by one at most."""
    small, larger = divmod(channels, parts)
    starts = [i * small + min(i, larger) for i in range(parts + 1)]
    return tuple(tuple(range(*pair)) for pair in pairwise(starts))


# ---- counts ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Counts:
    """The number of weights in the kernels of convolutions and fusion blocks, and the MACs of an inference.

    Biases and batch normalisation do not count. The MACs include dense layers.
    """

    convolutions: int
    fusion: int
    macs: int


def parameters(steps: Sequence[Step]) -> dict[str, int]:
    """Returns the number of weights in each layer's kernels, by the layer's name."""
    channels = {step.name: step.channels for step in steps}
    weights = {}
    for step in steps:
        area, wide = math.prod(step.kernel), channels[step.inputs[0]] if step.inputs else 0
        if step.kind == "SeparableConv2D":
            weights[step.name] = wide * step.multiplier * (area + step.channels)
        elif step.kind in DEPTHWISE:
            weights[step.name] = wide * step.multiplier * area
        elif step.is_mixing:
            weights[step.name] = area * (wide // step.groups) * step.channels
    return weights


def counts_in(steps: Sequence[Step]) -> Counts:
    """Returns the counts for the network with these steps."""
    by_name = {step.name: step for step in steps}
    convolutions = fusion = macs = 0
    for name, count in parameters(steps).items():
        step = by_name[name]
        # A kernel is applied once at each position of the output; a transposed one, of the input.
        grid = by_name[step.inputs[0]] if step.kind.endswith("Transpose") else step
        macs += count * math.prod(size or 0 for size in grid.shape[:-1])
        if step.is_fusion:
            fusion += count
        elif step.kind != "Dense":
            convolutions += count
    return Counts(convolutions, fusion, macs)
