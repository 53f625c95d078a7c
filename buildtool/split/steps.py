"""A network as plain records, one for each layer: what finding blocks, splitting and counting work on.

They are read from a Keras model (graphs.py) or written down (networks.py), so that all but the training of a
split network works without Keras.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

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


@dataclass(frozen=True)
class Part:
    """Which channels of an original layer a layer of a split network has.

    `source`: the original layer. `reads`: channels of the source's input, None: all. `writes`: channels of
    its output.
    """

    source: str
    reads: tuple[int, ...] | None
    writes: tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """One layer or operation of a network.

    `kind`: the class of the Keras layer or operation; "Slice" takes channels `part.writes` of its input.
    `inputs`: the steps that it reads. `shape`: of its output, channels last, without the batch (None: any
    size). `kernel`, `strides`: of convolutions and poolings, rows first. `multiplier`: output channels of a
    depthwise convolution for one input channel. `weights`: numbers in weights of layers that are neither
    convolutions nor dense (4 a channel for batch normalisation). `refused`: why it cannot be part of a split
    block, "" where it can. `part`: in split networks, what it has of an original layer; None: it is whole.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    shape: tuple[int | None, ...]
    kernel: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    groups: int = 1
    multiplier: int = 1
    has_bias: bool = False
    weights: int = 0
    refused: str = ""
    part: Part | None = None

    @property
    def channels(self) -> int:
        """Of its output; 0 where it has none that are known."""
        return (self.shape[-1] or 0) if self.shape else 0

    @property
    def is_mixing(self) -> bool:
        """Whether each of its output channels reads several input channels."""
        return self.kind in MIXING

    @property
    def is_strided(self) -> bool:
        """Whether its output has fewer rows or columns than its input because of its strides."""
        return max(self.strides, default=1) > 1 and not self.kind.endswith("Transpose")

    @property
    def is_fusion(self) -> bool:
        """Whether it is the 1x1 convolution of a fusion block."""
        return self.is_mixing and self.name.endswith(FUSION_ENDING)


def partition(channels: int, parts: int) -> tuple[tuple[int, ...], ...]:
    """Channels in `parts` slices whose sizes differ by one at most, the larger ones first."""
    small, larger = divmod(channels, parts)
    starts = [i * small + min(i, larger) for i in range(parts + 1)]
    return tuple(tuple(range(*pair)) for pair in pairwise(starts))
