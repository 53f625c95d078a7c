"""The zoo's networks: tables with one row of numbers per block, and functions that build the blocks.

Sources: MobileNet V2 (Sandler et al., 2018, table 2; channels rounded as Keras' applications do), MCUNet
(Lin et al., 2020, released configurations), MLPerf Tiny v1.x reference networks, SqueezeNet v1.1 (Iandola
et al., 2016, and its authors' release), MobileNet V3 small (Howard et al., 2019, table 2), DenseNet-BC
(Huang et al., 2017, section 3; activations follow convolutions here, so that normalisation folds into
them), the magic wand of TensorFlow Lite Micro's examples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from buildtool.graph.geometry import same_pad
from buildtool.graph.types import Activation, Graph, Pad, Quantization
from buildtool.zoo import seeded
from buildtool.zoo.builder import Builder, Window
from buildtool.zoo.calibrate import Int8s, Spread, float32, spread_before_pooling
from buildtool.zoo.catalogue import Choice

NONE, RELU, RELU6 = Activation.NONE, Activation.RELU, Activation.RELU6
UNIT = Fraction(1, 255)  # an image of 0 ... 1
SIGNED_UNIT = Fraction(2, 255)  # an image of -1 ... 1
_GATE = Spread((-0.5, 1.0), (0.3, 0.5))  # hard sigmoids are flat outside -3 to 3
_POINT = Window()
Rows = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Feed:
    """A network's input tensor: shape (rows, columns, channels) or (features,), and quantisation."""

    shape: tuple[int, ...]
    scale: Fraction
    zero_point: int
    samples: int  # calibration inputs


def image(size: int, scale: Fraction = UNIT, zero_point: int = -128) -> Feed:
    """Returns a square RGB input image of `size` rows with this quantisation.

    The smaller it is, the more calibration samples it has, so that the last feature map has enough pixels in
    all samples together.
    """
    return Feed((size, size, 3), scale, zero_point, max(4, min(16, 4 * 160 * 160 // (size * size))))


def feed(choice: Choice) -> Feed:
    """Returns the input tensor of a network of the zoo."""
    entry = _FEEDS[choice.name]
    return entry if isinstance(entry, Feed) else entry(int(choice.values["size"]))


def network(choice: Choice) -> Graph:
    """Builds a network of the zoo. Its name and seed determine its random weights."""
    source, seed = feed(choice), f"{choice.name}/{choice.values['seed']}"
    quant = Quantization((float32(float(source.scale)),), (source.zero_point,))
    b = Builder(choice.slug, seed, source.shape, quant, calibration_input(source, f"{seed}/input"))
    values = {name: value for name, value in choice.values.items() if name in ("alpha", "classes")}
    return b.graph([_MAKERS[choice.name](b, **values)])


def calibration_input(source: Feed, key: str) -> Int8s:
    """Returns seeded inputs, (samples, *shape): alternately smooth pictures and plain noise."""
    shape = source.shape if len(source.shape) == 3 else (1, source.shape[0], 1)
    kinds = (seeded.picture, seeded.noise)
    samples = [kinds[i % 2](f"{key}/{i}", shape) for i in range(source.samples)]
    return np.stack(samples).reshape(source.samples, *source.shape)


def round_channels(channels: Fraction) -> int:
    """Returns the nearest multiple of 8, at least 8, and never more than 10 % below (Keras' rule)."""
    nearest = max(8, int(channels + 4) // 8 * 8)
    return nearest + 8 if nearest < Fraction(9, 10) * channels else nearest


def _same(b: Builder, x: int, kernel: int | tuple[int, int], stride: int = 1) -> Window:
    """Returns a window with SAME padding."""
    sides = (kernel, kernel) if isinstance(kernel, int) else kernel
    return Window(sides, (stride, stride), same_pad(b.shape(x)[1:3], sides, (stride, stride)))


def _spread(is_pooled: bool, activation: Activation) -> Spread | None:
    """Returns the distribution of a layer's outputs if average pooling reads them, otherwise None.

    None stands for the usual distribution. `is_pooled`: whether average pooling reads the outputs.
    """
    return spread_before_pooling(activation) if is_pooled else None


# ---- heads -----------------------------------------------------------------------------------------


def _logits(classes: int) -> Spread:
    """Returns a distribution of logits whose softmax is neither flat nor 1 for a single class.

    The largest of n normally distributed numbers has a fair share of the softmax if their standard deviation
    is a little below sqrt(2 ln n). The deviation here is 0.8 times that, with log2(n) rounded up so that it
    is exact.
    """
    deviation = math.sqrt(0.887 * max(1, (classes - 1).bit_length()))
    return Spread((-0.2 * deviation, 0.2 * deviation), (deviation, deviation))


def _dense(b: Builder, features: int, classes: int) -> int:
    return b.dense(features, classes, NONE, "logits", spread=_logits(classes))


def _pool_dense_softmax(b: Builder, x: int, classes: int) -> int:
    x = b.average_pool(x, "pool")
    return b.softmax(_dense(b, b.reshape(x, (1, b.shape(x)[3]), "features"), classes), "probabilities")


def _mean_dense(b: Builder, x: int, classes: int) -> int:
    return _dense(b, b.mean(x, (1, 2), "features"), classes)


def _mean_dense_softmax(b: Builder, x: int, classes: int) -> int:
    return b.softmax(_mean_dense(b, x, classes), "probabilities")


def _transposed_means_dense(b: Builder, x: int, classes: int) -> int:
    x = b.mean(b.transpose(x, (0, 3, 1, 2), "channels_first"), (3,), "columns")
    return _dense(b, b.mean(x, (2,), "features"), classes)


def _pool_conv(b: Builder, x: int, classes: int) -> int:
    x = b.conv(b.average_pool(x, "pool"), classes, _POINT, NONE, "classifier", spread=_logits(classes))
    return b.reshape(x, (1, classes), "logits")


# ---- inverted residuals ----------------------------------------------------------------------------


def _inverted_residuals(
    b: Builder,
    classes: int,
    *,
    rows: Rows,
    stem: int,
    last: int,
    head: Callable[[Builder, int, int], int],
    is_keras: bool = False,
) -> int:
    """Adds a 3x3 stem of stride 2, bottlenecks, a 1x1 convolution and a head. All use RELU6.

    A row is a bottleneck's expansion, kernel, stride and channels. The stem has `stem` channels, and the 1x1
    convolution `last` channels; with 0 there is none. If `is_keras`, the padding is TensorFlow's SAME (an odd
    row or column goes below or to the right), and the shortcut is an addition's first operand. Otherwise the
    padding is PyTorch's, half a kernel on every side, and the shortcut is the second operand.
    """
    window, x = _same(b, b.input, 3, 2), b.input
    if not is_keras:
        window, x = Window((3, 3), (2, 2)), b.pad(x, Pad(1, 1, 1, 1), "stem/pad")
    x = b.conv(x, stem, window, RELU6, "stem")
    for number, (expansion, kernel, stride, channels) in enumerate(rows, 1):
        name, before = f"block{number}", x
        if expansion > 1:
            x = b.conv(x, expansion * b.shape(x)[3], _POINT, RELU6, f"{name}/expand")
        window = _same(b, x, kernel, stride)
        if stride > 1:  # the padding is an operator of its own
            half = kernel // 2
            pad = window.pad if is_keras else Pad(half, half, half, half)
            window, x = replace(window, pad=Pad()), b.pad(x, pad, f"{name}/pad")
        x = b.depthwise(x, window, RELU6, f"{name}/depthwise")
        spread = _spread(last == 0 and number == len(rows), NONE)
        x = b.conv(x, channels, _POINT, NONE, f"{name}/project", spread=spread)
        if stride == 1 and channels == b.shape(before)[3]:
            x = b.add(*((before, x) if is_keras else (x, before)), NONE, f"{name}/add")
    if last:
        x = b.conv(x, last, _POINT, RELU6, "last")
    return head(b, x, classes)


def _parse_rows(text: str) -> Rows:
    """Parses rows of numbers that are separated by commas."""
    return tuple(tuple(map(int, row.split())) for row in text.split(","))


_MBV2_W035_144 = _parse_rows(
    "1 3 1 8, 6 3 2 8, 6 3 1 8, 6 3 2 16, 6 3 1 16, 6 3 1 16, 6 3 2 24, 6 3 1 24, 6 3 1 24, 6 3 1 24, "
    "6 3 1 32, 6 3 1 32, 6 3 1 32, 6 3 2 56, 6 3 1 56, 6 3 1 56, 6 3 1 112"
)
_MCUNET_VWW5 = _parse_rows(
    "1 3 1 8, 6 3 2 16, 3 3 1 16, 3 3 1 16, 3 7 2 24, 6 3 1 24, 5 5 1 24, 6 7 2 40, 6 7 1 40, 6 3 1 48, "
    "4 3 1 48, 5 5 2 96, 5 3 1 96, 4 3 1 96, 3 7 1 160"
)
_MCUNET_320K = _parse_rows(
    "1 3 1 8, 3 7 2 16, 5 3 1 16, 5 7 1 16, 4 5 1 16, 5 5 2 24, 5 5 1 24, 5 5 1 24, 5 3 2 40, 6 7 1 40, "
    "4 5 1 40, 5 5 1 48, 5 7 1 48, 5 3 1 48, 6 3 2 96, 5 7 1 96, 4 3 1 96, 5 7 1 160"
)
# expansion, channels, repeats, stride of the first
_MOBILENET_V2 = _parse_rows("1 16 1 1, 6 24 2 2, 6 32 3 2, 6 64 4 2, 6 96 3 1, 6 160 3 2, 6 320 1 1")


def _mobilenet_v2(b: Builder, alpha: Fraction, classes: int) -> int:
    """Adds MobileNet V2 of width `alpha`. As in Keras, widths below 1 do not shrink the last convolution."""
    rows = tuple(
        (expansion, 3, 1 if i else stride, round_channels(Fraction(int(channels * alpha))))
        for expansion, channels, repeats, stride in _MOBILENET_V2
        for i in range(repeats)
    )
    last = round_channels(1280 * alpha) if alpha > 1 else 1280
    stem, head = round_channels(32 * alpha), _mean_dense_softmax
    return _inverted_residuals(b, classes, rows=rows, stem=stem, last=last, head=head, is_keras=True)


# ---- chains and residuals --------------------------------------------------------------------------


def _separables(b: Builder, kernel: tuple[int, int], stem: int, rows: Rows, classes: int) -> int:
    """Adds a stem of stride 2, then a 3x3 depthwise and a 1x1 convolution per row. All use RELU.

    A row is (stride, channels).
    """
    x = b.conv(b.input, stem, _same(b, b.input, kernel, 2), RELU, "stem")
    for number, (stride, channels) in enumerate(rows, 1):
        spread = _spread(number == len(rows), RELU)
        x = b.depthwise(x, _same(b, x, 3, stride), RELU, f"block{number}/depthwise")
        x = b.conv(x, channels, _POINT, RELU, f"block{number}/pointwise", spread=spread)
    return _pool_dense_softmax(b, x, classes)


_MOBILENET_V1_025 = _parse_rows(
    "1 16, 2 32, 1 32, 2 64, 1 64, 2 128, 1 128, 1 128, 1 128, 1 128, 1 128, 2 256, 1 256"
)


def _resnet8(b: Builder) -> int:
    """Adds a 3x3 stem, then stacks of two 3x3 convolutions and a shortcut.

    Where a stack has a stride of 2, the shortcut is a 1x1 convolution.
    """
    x = b.conv(b.input, 16, _same(b, b.input, 3), RELU, "stem")
    for number, (stride, channels) in enumerate(((1, 16), (2, 32), (2, 64)), 1):
        name, spread = f"stack{number}", _spread(number == 3, NONE)
        y = b.conv(x, channels, _same(b, x, 3, stride), RELU, f"{name}/conv1")
        y = b.conv(y, channels, _same(b, y, 3), NONE, f"{name}/conv2", spread=spread)
        if stride > 1:
            strided = Window(stride=(stride, stride))
            x = b.conv(x, channels, strided, NONE, f"{name}/shortcut", spread=spread)
        x = b.add(x, y, RELU, f"{name}/add")
    return _pool_dense_softmax(b, x, 10)


def _autoencoder(b: Builder) -> int:
    """Adds dense layers with RELU between them."""
    x, widths = b.input, (128, 128, 128, 128, 8, 128, 128, 128, 128, 640)
    for number, width in enumerate(widths, 1):
        x = b.dense(x, width, RELU if number < len(widths) else NONE, f"dense{number}")
    return x


# ---- branches --------------------------------------------------------------------------------------


def _squeezenet(b: Builder, classes: int) -> int:
    """Adds a stem, fire modules, a 1x1 convolution to the classes, and average pooling. All use RELU.

    A fire module is a 1x1 convolution to few channels, then a 1x1 and a 3x3 convolution side by side.
    """
    x = b.conv(b.input, 64, Window((3, 3), (2, 2)), RELU, "stem")
    for number, squeeze in enumerate((16, 16, 32, 32, 48, 48, 64, 64), 2):  # the paper's numbers
        name = f"fire{number}"
        if number in (2, 4, 6):
            x = b.max_pool(x, Window((3, 3), (2, 2)), f"{name}/pool")
        x = b.conv(x, squeeze, _POINT, RELU, f"{name}/squeeze")
        branches = [(_POINT, f"{name}/expand1x1"), (_same(b, x, 3), f"{name}/expand3x3")]
        x = b.concat(b.convs(x, 4 * squeeze, branches, RELU), f"{name}/concat")
    x = b.conv(x, classes, _POINT, RELU, "classifier", spread=spread_before_pooling(RELU))
    return b.softmax(b.reshape(b.average_pool(x, "pool"), (1, classes), "logits"), "probabilities")


# kernel, expanded channels, channels, whether gated, whether with hard swish, stride
_MOBILENET_V3_SMALL = _parse_rows(
    "3 16 16 1 0 2, 3 72 24 0 0 2, 3 88 24 0 0 1, 5 96 40 1 1 2, 5 240 40 1 1 1, 5 240 40 1 1 1, "
    "5 120 48 1 1 1, 5 144 48 1 1 1, 5 288 96 1 1 2, 5 576 96 1 1 1, 5 576 96 1 1 1"
)


def _mobilenet_v3_small(b: Builder, classes: int) -> int:
    """Adds a stem, gated bottlenecks, a 1x1 convolution, a mean, and two dense layers.

    The dense layers are 1x1 convolutions.
    """
    x = b.hard_swish(b.conv(b.input, 16, _same(b, b.input, 3, 2), NONE, "stem"), "stem/swish")
    for number, row in enumerate(_MOBILENET_V3_SMALL, 1):
        x = _gated_bottleneck(b, x, row, f"block{number}")
    x = b.conv(x, 576, _POINT, NONE, "last", spread=spread_before_pooling(NONE))
    x = b.mean(b.hard_swish(x, "last/swish"), (1, 2), "features", keep_dims=True)
    x = b.hard_swish(b.conv(x, 1024, _POINT, NONE, "hidden"), "hidden/swish")
    x = b.conv(x, classes, _POINT, NONE, "classifier", spread=_logits(classes))
    return b.softmax(b.reshape(x, (1, classes), "logits"), "probabilities")


def _gated_bottleneck(b: Builder, x: int, row: tuple[int, ...], name: str) -> int:
    kernel, expanded, channels, is_gated, is_swish, stride = row
    activation, y = NONE if is_swish else RELU, x

    def activate(tensor: int) -> int:
        return b.hard_swish(tensor, f"{b.name(tensor)}/swish") if is_swish else tensor

    if expanded != b.shape(x)[3]:
        y = activate(b.conv(y, expanded, _POINT, activation, f"{name}/expand"))
    y = activate(b.depthwise(y, _same(b, y, kernel, stride), activation, f"{name}/depthwise"))
    if is_gated:
        z = b.mean(y, (1, 2), f"{name}/squeeze", keep_dims=True)
        z = b.conv(z, round_channels(Fraction(expanded, 4)), _POINT, RELU, f"{name}/reduce")
        z = b.conv(z, expanded, _POINT, NONE, f"{name}/gate", spread=_GATE)
        y = b.multiply(y, b.hard_sigmoid(z, f"{name}/sigmoid"), f"{name}/excite")
    y = b.conv(y, channels, _POINT, NONE, f"{name}/project")
    return b.add(x, y, NONE, f"{name}/add") if b.shape(x) == b.shape(y) else y


def _densenet(b: Builder) -> int:
    """Adds three blocks of six layers, each of which adds 12 channels to its input.

    A layer is a 1x1 convolution to 48 channels, then a 3x3 convolution. Between blocks there are a 1x1
    convolution to half the channels and a 2x2 average pooling.
    """
    growth = 12
    x = b.conv(b.input, 2 * growth, _same(b, b.input, 3), RELU, "stem")
    for number in (1, 2, 3):
        spread = _spread(number == 3, RELU)
        if number > 1:
            name = f"transition{number - 1}"
            x = b.conv(x, b.shape(x)[3] // 2, _POINT, RELU, name, spread=spread)
            x = b.average_pool(x, f"{name}/pool", Window((2, 2), (2, 2)))
        for layer in range(1, 7):
            name = f"block{number}/layer{layer}"
            y = b.conv(x, 4 * growth, _POINT, RELU, f"{name}/bottleneck")
            y = b.conv(y, growth, _same(b, y, 3), RELU, name, spread=spread, like=x)
            x = b.concat([x, y], f"{name}/concat")
    return _pool_dense_softmax(b, x, 10)


def _magic_wand(b: Builder) -> int:
    """Adds two convolutions along time, with maximum poolings of three samples, and two dense layers."""
    x = b.conv(b.input, 8, _same(b, b.input, (4, 3)), RELU, "conv1")
    x = b.max_pool(x, Window((3, 3), (3, 3)), "pool1")
    x = b.conv(x, 16, _same(b, x, (4, 1)), RELU, "conv2")
    x = b.max_pool(x, Window((3, 1), (3, 1)), "pool2")
    x = b.reshape(x, (1, math.prod(b.shape(x)[1:])), "features")
    return b.softmax(_dense(b, b.dense(x, 16, RELU, "dense"), 4), "probabilities")


def _v3_image(size: int) -> Feed:
    """Returns a square input image for MobileNet V3, with more calibration samples than `image` has.

    Its squeeze-and-excitation layers have only one value per channel in each sample.
    """
    return replace(image(size), samples=16 if size > 128 else 48)


_BYTES = replace(image(32), scale=Fraction(1))  # pixels of 0 ... 255
_FEEDS: dict[str, Feed | Callable[[int], Feed]] = {
    "autoencoder": Feed((640,), Fraction(2, 5), 89, 64),  # five frames of 128 log-mel bins
    "densenet": _BYTES,
    "ds_cnn": Feed((49, 10, 1), Fraction(3, 5), 83, 16),  # 49 frames of 10 cepstral coefficients
    "magic_wand": Feed((128, 3, 1), Fraction(32), 0, 16),  # 128 samples of three axes, in thousandths of g
    "mbv2_w035_144": image(144, SIGNED_UNIT, -1),
    "mcunet_320k": image(176, SIGNED_UNIT, 0),
    "mcunet_vww5": image(80, SIGNED_UNIT, 0),
    "mobilenetv1_025_96": image(96),
    "mobilenetv2": image,
    "mobilenetv3_small": _v3_image,
    "resnet8": _BYTES,
    "squeezenet": image,
}
_mcunet = partial(_inverted_residuals, stem=16, last=0)
# Called with the builder, and with `alpha` and `classes` where the network has these options.
_MAKERS: dict[str, Callable[..., int]] = {
    "autoencoder": _autoencoder,
    "densenet": _densenet,
    "ds_cnn": partial(_separables, kernel=(10, 4), stem=64, rows=((1, 64),) * 4, classes=12),
    "magic_wand": _magic_wand,
    "mbv2_w035_144": partial(
        _inverted_residuals, rows=_MBV2_W035_144, stem=16, last=448, head=_mean_dense, classes=1000
    ),
    "mcunet_320k": partial(_mcunet, rows=_MCUNET_320K, head=_pool_conv, classes=1000),
    "mcunet_vww5": partial(_mcunet, rows=_MCUNET_VWW5, head=_transposed_means_dense, classes=2),
    "mobilenetv1_025_96": partial(_separables, kernel=(3, 3), stem=8, rows=_MOBILENET_V1_025, classes=2),
    "mobilenetv2": _mobilenet_v2,
    "mobilenetv3_small": _mobilenet_v3_small,
    "resnet8": _resnet8,
    "squeezenet": _squeezenet,
}
