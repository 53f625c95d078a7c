"""Networks by name: VGG16 and ResNet18 in their forms for small images, at any width.

Convolutions are 3x3 without a bias, each with batch normalisation and ReLU, so that converting to int8 folds
them into one operator. Inputs are (size, size, 3); the last layer is dense with softmax. K. Simonyan and
A. Zisserman, arXiv 1409.1556; K. He et al., arXiv 1512.03385, whose form for small images begins with a 3x3
convolution and no pooling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from buildtool.base.errors import UsageError
from buildtool.split.steps import Step

if TYPE_CHECKING:
    import keras

VGG16 = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
RESNET18 = ((64, 1), (128, 2), (256, 2), (512, 2))  # channels and first stride of stages of two blocks


class _Drawing:
    """The steps of a network while it is written down; every method returns its last step's name."""

    def __init__(self, width: float, size: int) -> None:
        if width <= 0:
            raise UsageError(f"the width {width} is not above 0", hint="1.0 is the published network")
        self._width = width
        self.steps = [Step("image", "InputLayer", (), (size, size, 3))]

    @property
    def last(self) -> Step:
        return self.steps[-1]

    def add(self, name: str, kind: str, inputs: Sequence[str], shape: tuple[int, ...], **fields: Any) -> str:
        self.steps.append(Step(name, kind, tuple(inputs), shape, **fields))
        return name

    def rows(self, source: str) -> int:
        return next(step.shape[0] or 0 for step in self.steps if step.name == source)

    def conv(self, name: str, source: str, channels: int, kernel: int = 3, stride: int = 1) -> str:
        """A convolution with padding, and batch normalisation."""
        wide = max(1, round(channels * self._width))
        rows = -(-self.rows(source) // stride)
        shape = (rows, rows, wide)
        self.add(name, "Conv2D", [source], shape, kernel=(kernel, kernel), strides=(stride, stride))
        return self.add(f"{name}_bn", "BatchNormalization", [name], shape, weights=4 * wide)

    def relu(self, name: str, source: str) -> str:
        shape = (self.rows(source), self.rows(source), self.last.channels)
        return self.add(name, "ReLU", [source], shape)

    def head(self, source: str, classes: int, pooling: bool) -> None:
        channels = self.last.channels
        kind, name = ("GlobalAveragePooling2D", "average") if pooling else ("Flatten", "flatten")
        self.add(name, kind, [source], (channels,))
        self.add("classes", "Dense", [name], (classes,), has_bias=True)


def vgg16_steps(width: float = 1.0, size: int = 32, classes: int = 10) -> tuple[Step, ...]:
    """VGG16 as records: 13 convolutions in five blocks with max poolings, and one dense layer."""
    drawing, last = _Drawing(width, _fitting(size, 32)), "image"
    for block, widths in enumerate(VGG16, 1):
        for index, channels in enumerate(widths, 1):
            name = f"block{block}_conv{index}"
            last = drawing.relu(f"{name}_relu", drawing.conv(name, last, channels))
        half, pool = drawing.rows(last) // 2, f"block{block}_pool"
        shape = (half, half, drawing.last.channels)
        last = drawing.add(pool, "MaxPooling2D", [last], shape, kernel=(2, 2), strides=(2, 2))
    drawing.head(last, classes, pooling=drawing.rows(last) > 1)
    return tuple(drawing.steps)


def resnet18_steps(width: float = 1.0, size: int = 32, classes: int = 10) -> tuple[Step, ...]:
    """ResNet18 as records: a 3x3 convolution, four stages of two residual blocks, one dense layer."""
    drawing = _Drawing(width, _fitting(size, 8))
    last = drawing.relu("stem_relu", drawing.conv("stem", "image", RESNET18[0][0]))
    for stage, (channels, first) in enumerate(RESNET18, 1):
        for index, stride in enumerate((first, 1), 1):
            last = _residual(drawing, f"stage{stage}_{index}", last, channels, stride)
    drawing.head(last, classes, pooling=True)
    return tuple(drawing.steps)


def _residual(drawing: _Drawing, name: str, source: str, channels: int, stride: int) -> str:
    """Two convolutions with a shortcut, which is a 1x1 convolution where the stride is above 1."""
    inner = drawing.relu(f"{name}_relu1", drawing.conv(f"{name}_conv1", source, channels, stride=stride))
    outer = drawing.conv(f"{name}_conv2", inner, channels)
    shortcut = source
    if stride > 1:
        shortcut = drawing.conv(f"{name}_shortcut", source, channels, kernel=1, stride=stride)
    rows = drawing.rows(outer)
    drawing.add(f"{name}_add", "Add", [outer, shortcut], (rows, rows, drawing.last.channels))
    return drawing.relu(f"{name}_relu2", f"{name}_add")


def _fitting(size: int, multiple: int) -> int:
    if size < multiple or size % multiple:
        raise UsageError(
            f"the input size {size} does not fit the network's poolings and strides",
            hint=f"a multiple of {multiple}",
        )
    return size


DRAWINGS: dict[str, Callable[[float, int, int], tuple[Step, ...]]] = {
    "vgg16": vgg16_steps,
    "resnet18": resnet18_steps,
}


def steps_by_name(text: str, width: float = 1.0, size: int = 32, classes: int = 10) -> tuple[Step, ...]:
    """The records of a network by its name: "vgg16" or "resnet18"."""
    draw = DRAWINGS.get(text)
    if draw is None:
        raise UsageError(f"'{text}' is not a network's name", hint=f"one of {', '.join(DRAWINGS)}")
    return draw(width, size, classes)


def vgg16(width: float = 1.0, size: int = 32, classes: int = 10, seed: int = 0) -> keras.Model:
    """VGG16 as a Keras model with random weights; equal seeds give equal weights."""
    return model_of(vgg16_steps(width, size, classes), "vgg16", seed)


def resnet18(width: float = 1.0, size: int = 32, classes: int = 10, seed: int = 0) -> keras.Model:
    """ResNet18 as a Keras model with random weights; equal seeds give equal weights."""
    return model_of(resnet18_steps(width, size, classes), "resnet18", seed)


def by_name(text: str, width: float = 1.0, size: int = 32, classes: int = 10, seed: int = 0) -> keras.Model:
    """The Keras model of a network by its name."""
    return model_of(steps_by_name(text, width, size, classes), text, seed)


def model_of(steps: Sequence[Step], name: str, seed: int) -> keras.Model:
    """The Keras model of a network written down above."""
    import keras

    made: dict[str, Any] = {}
    for index, step in enumerate(steps):
        if step.kind == "InputLayer":
            made[step.name] = keras.Input(step.shape, name=step.name)
            continue
        inputs = [made[name] for name in step.inputs]
        layer = _layer(step, seed * len(steps) + index)
        made[step.name] = layer(inputs[0] if len(inputs) == 1 else inputs)
    return keras.Model(made[steps[0].name], made[steps[-1].name], name=name)


def _layer(step: Step, seed: int) -> Any:
    from keras import initializers, layers

    if step.kind == "Conv2D":
        return layers.Conv2D(
            step.channels,
            step.kernel,
            step.strides,
            padding="same",
            use_bias=step.has_bias,
            kernel_initializer=initializers.HeNormal(seed),
            name=step.name,
        )
    if step.kind == "Dense":
        start = initializers.GlorotUniform(seed)
        return layers.Dense(step.channels, "softmax", kernel_initializer=start, name=step.name)
    if step.kind == "MaxPooling2D":
        return layers.MaxPooling2D(step.kernel, step.strides, name=step.name)
    return getattr(layers, step.kind)(name=step.name)
