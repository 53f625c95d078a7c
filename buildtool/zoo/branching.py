"""Layer tables of the zoo's networks that fork and join: fire modules, gated bottlenecks, dense blocks.

Sources: SqueezeNet v1.1 (Iandola et al., 2016, and its authors' release), MobileNet V3 small (Howard
et al., 2019, table 2), DenseNet-BC (Huang et al., 2017, section 3; activations follow convolutions
here, so that normalisation folds into them).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from buildtool.zoo import tables
from buildtool.zoo.tables import Feed, image, rounded_channels


@dataclass(frozen=True)
class Fire:
    """1x1 to `squeeze`, from there 1x1 and 3x3 to `expand` channels each; `pooled`: after a pooling."""

    squeeze: int
    expand: int
    pooled: bool


@dataclass(frozen=True)
class Fires:
    """A 3x3 stem of stride 2, fire modules, a 1x1 convolution to the classes, average pooling; all RELU."""

    feed: Feed
    stem: int
    blocks: tuple[Fire, ...]
    classes: int


@dataclass(frozen=True)
class GatedBottleneck:
    """Inverted residual through `expanded` channels; `gated`: squeeze and excite; `swish`: hard swish."""

    kernel: int
    expanded: int
    channels: int
    gated: bool
    swish: bool
    stride: int


@dataclass(frozen=True)
class GatedBottlenecks:
    """A 3x3 stem of stride 2, bottlenecks, a last 1x1 convolution, a mean, two dense layers as 1x1 ones."""

    feed: Feed
    stem: int
    blocks: tuple[GatedBottleneck, ...]
    last: int
    hidden: int
    classes: int


@dataclass(frozen=True)
class DenseBlocks:
    """Blocks of layers (`blocks`: how many) that each add `growth` channels to what they read.

    A layer is a 1x1 convolution to four times the growth, and a 3x3. Between blocks a 1x1 convolution to
    half the channels and 2x2 average pooling.
    """

    feed: Feed
    growth: int
    blocks: tuple[int, ...]
    classes: int


Table = tables.Table | Fires | GatedBottlenecks | DenseBlocks

# (squeeze, expand, pooled before)
_SQUEEZENET = (
    (16, 64, True),
    (16, 64, False),
    (32, 128, True),
    (32, 128, False),
    (48, 192, True),
    (48, 192, False),
    (64, 256, False),
    (64, 256, False),
)

# (kernel, expanded, channels, gated, swish, stride)
_MOBILENET_V3_SMALL = (
    (3, 16, 16, True, False, 2),
    (3, 72, 24, False, False, 2),
    (3, 88, 24, False, False, 1),
    (5, 96, 40, True, True, 2),
    (5, 240, 40, True, True, 1),
    (5, 240, 40, True, True, 1),
    (5, 120, 48, True, True, 1),
    (5, 144, 48, True, True, 1),
    (5, 288, 96, True, True, 2),
    (5, 576, 96, True, True, 1),
    (5, 576, 96, True, True, 1),
)


def squeezenet(size: int, classes: int) -> Fires:
    """SqueezeNet v1.1."""
    return Fires(image(size), 64, tuple(Fire(*row) for row in _SQUEEZENET), classes)


def mobilenet_v3_small(size: int, classes: int) -> GatedBottlenecks:
    """MobileNet V3 small of width 1."""
    blocks = tuple(GatedBottleneck(*row) for row in _MOBILENET_V3_SMALL)
    feed = replace(image(size), samples=16 if size > 128 else 48)  # gates are seen once a sample
    return GatedBottlenecks(feed, 16, blocks, 576, 1024, classes)


def gate_channels(channels: int) -> int:
    """Channels between the two layers of a gate."""
    return rounded_channels(Fraction(channels, 4))


DENSENET = DenseBlocks(
    feed=replace(image(32), scale=Fraction(1)), growth=12, blocks=(6, 6, 6), classes=10
)  # pixels of 0 ... 255
