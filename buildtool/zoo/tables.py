"""Layer tables of the zoo's networks: rows of numbers, one row a block.

Sources: MobileNet V2 (Sandler et al., 2018, table 2; channels rounded as Keras' applications do),
MCUNet (Lin et al., 2020, released configurations), MLPerf Tiny v1.x reference networks.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from fractions import Fraction


class Head(enum.StrEnum):
    """How the last feature map becomes the outputs."""

    MEAN_DENSE = "mean over rows and columns, dense"
    MEAN_DENSE_SOFTMAX = "mean over rows and columns, dense, softmax"
    TRANSPOSED_MEANS_DENSE = "transpose to channels first, mean over columns, mean over rows, dense"
    POOL_DENSE_SOFTMAX = "average pooling, reshape, dense, softmax"
    POOL_CONV = "average pooling, dense as a 1x1 convolution, reshape"


class Border(enum.StrEnum):
    """The zeros around a strided layer's input."""

    SAME = "SAME"  # TensorFlow's: what is odd goes below and to the right
    SYMMETRIC = "SYMMETRIC"  # PyTorch's: kernel // 2 on every side


@dataclass(frozen=True)
class Feed:
    """The input tensor: (rows, columns, channels) or (features,), and its quantisation."""

    shape: tuple[int, ...]
    scale: Fraction
    zero_point: int
    samples: int  # calibration inputs


@dataclass(frozen=True)
class Bottleneck:
    """Inverted residual: 1x1 to `expansion` * inputs (absent for 1), depthwise, 1x1 to `channels`."""

    expansion: int
    kernel: int
    stride: int
    channels: int
    residual: bool


@dataclass(frozen=True)
class InvertedResiduals:
    """A 3x3 stem of stride 2, bottlenecks, a last 1x1 convolution (0: none), a head; all RELU6."""

    feed: Feed
    stem: int
    blocks: tuple[Bottleneck, ...]
    last: int
    head: Head
    classes: int
    border: Border
    shortcut_first: bool  # the order of the additions' operands


@dataclass(frozen=True)
class Separable:
    """3x3 depthwise of `stride`, 1x1 to `channels`."""

    stride: int
    channels: int


@dataclass(frozen=True)
class Separables:
    """A stem convolution of stride 2, separable blocks, a head; all RELU."""

    feed: Feed
    stem_kernel: tuple[int, int]
    stem: int
    blocks: tuple[Separable, ...]
    classes: int


@dataclass(frozen=True)
class Stack:
    """Residual stack: two 3x3 convolutions beside a shortcut, which is a 1x1 convolution when strided."""

    stride: int
    channels: int


@dataclass(frozen=True)
class Stacks:
    """A 3x3 stem of stride 1, residual stacks, a head; all RELU."""

    feed: Feed
    stem: int
    blocks: tuple[Stack, ...]
    classes: int


@dataclass(frozen=True)
class Perceptron:
    """Dense layers with RELU between them."""

    feed: Feed
    widths: tuple[int, ...]


Table = InvertedResiduals | Separables | Stacks | Perceptron

UNIT = Fraction(1, 255)  # an image of 0 ... 1
SIGNED_UNIT = Fraction(2, 255)  # an image of -1 ... 1


def image(size: int, channels: int = 3, scale: Fraction = UNIT, zero_point: int = -128) -> Feed:
    """A square image; smaller ones are calibrated on more samples, so that the last map has enough pixels."""
    return Feed((size, size, channels), scale, zero_point, max(4, min(16, 4 * 160 * 160 // (size * size))))


def _bottlenecks(inputs: int, rows: str) -> tuple[Bottleneck, ...]:
    """Blocks from rows of "expansion kernel stride channels"; residual where the shape is kept."""
    blocks = []
    for row in rows.strip().splitlines():
        expansion, kernel, stride, channels = map(int, row.split())
        blocks.append(Bottleneck(expansion, kernel, stride, channels, stride == 1 and channels == inputs))
        inputs = channels
    return tuple(blocks)


# (expansion, channels, repeats, stride of the first)
_MOBILENET_V2 = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def rounded_channels(channels: Fraction) -> int:
    """The nearest multiple of 8, at least 8, and never more than 10 % below (Keras' rule)."""
    nearest = max(8, int(channels + 4) // 8 * 8)
    return nearest + 8 if nearest < Fraction(9, 10) * channels else nearest


def mobilenet_v2(size: int, alpha: Fraction, classes: int) -> InvertedResiduals:
    """MobileNet V2 of width `alpha`; the last convolution only ever grows, as in Keras."""
    stem = rounded_channels(32 * alpha)
    rows = [
        f"{expansion} 3 {stride if i == 0 else 1} {rounded_channels(Fraction(int(channels * alpha)))}"
        for expansion, channels, repeats, stride in _MOBILENET_V2
        for i in range(repeats)
    ]
    return InvertedResiduals(
        feed=image(size),
        stem=stem,
        blocks=_bottlenecks(stem, "\n".join(rows)),
        last=rounded_channels(1280 * alpha) if alpha > 1 else 1280,
        head=Head.MEAN_DENSE_SOFTMAX,
        classes=classes,
        border=Border.SAME,
        shortcut_first=True,
    )


MBV2_W035_144 = InvertedResiduals(
    feed=image(144, 3, SIGNED_UNIT, -1),
    stem=16,
    blocks=_bottlenecks(
        16,
        """
        1 3 1 8
        6 3 2 8
        6 3 1 8
        6 3 2 16
        6 3 1 16
        6 3 1 16
        6 3 2 24
        6 3 1 24
        6 3 1 24
        6 3 1 24
        6 3 1 32
        6 3 1 32
        6 3 1 32
        6 3 2 56
        6 3 1 56
        6 3 1 56
        6 3 1 112
        """,
    ),
    last=448,
    head=Head.MEAN_DENSE,
    classes=1000,
    border=Border.SYMMETRIC,
    shortcut_first=False,
)

MCUNET_VWW5 = InvertedResiduals(
    feed=image(80, 3, SIGNED_UNIT, 0),
    stem=16,
    blocks=_bottlenecks(
        16,
        """
        1 3 1 8
        6 3 2 16
        3 3 1 16
        3 3 1 16
        3 7 2 24
        6 3 1 24
        5 5 1 24
        6 7 2 40
        6 7 1 40
        6 3 1 48
        4 3 1 48
        5 5 2 96
        5 3 1 96
        4 3 1 96
        3 7 1 160
        """,
    ),
    last=0,
    head=Head.TRANSPOSED_MEANS_DENSE,
    classes=2,
    border=Border.SYMMETRIC,
    shortcut_first=False,
)

MCUNET_320K = InvertedResiduals(
    feed=image(176, 3, SIGNED_UNIT, 0),
    stem=16,
    blocks=_bottlenecks(
        16,
        """
        1 3 1 8
        3 7 2 16
        5 3 1 16
        5 7 1 16
        4 5 1 16
        5 5 2 24
        5 5 1 24
        5 5 1 24
        5 3 2 40
        6 7 1 40
        4 5 1 40
        5 5 1 48
        5 7 1 48
        5 3 1 48
        6 3 2 96
        5 7 1 96
        4 3 1 96
        5 7 1 160
        """,
    ),
    last=0,
    head=Head.POOL_CONV,
    classes=1000,
    border=Border.SYMMETRIC,
    shortcut_first=False,
)

MOBILENETV1_025_96 = Separables(
    feed=image(96),
    stem_kernel=(3, 3),
    stem=8,
    blocks=(
        Separable(1, 16),
        Separable(2, 32),
        Separable(1, 32),
        Separable(2, 64),
        Separable(1, 64),
        Separable(2, 128),
        *(Separable(1, 128),) * 5,
        Separable(2, 256),
        Separable(1, 256),
    ),
    classes=2,
)

DS_CNN = Separables(
    feed=Feed((49, 10, 1), Fraction(3, 5), 83, 16),  # 49 frames of 10 cepstral coefficients
    stem_kernel=(10, 4),
    stem=64,
    blocks=(Separable(1, 64),) * 4,
    classes=12,
)

RESNET8 = Stacks(
    feed=replace(image(32), scale=Fraction(1)),  # pixels of 0 ... 255
    stem=16,
    blocks=(Stack(1, 16), Stack(2, 32), Stack(2, 64)),
    classes=10,
)

AUTOENCODER = Perceptron(
    feed=Feed((640,), Fraction(2, 5), 89, 64),  # five frames of 128 log-mel bins
    widths=(128, 128, 128, 128, 8, 128, 128, 128, 128, 640),
)
