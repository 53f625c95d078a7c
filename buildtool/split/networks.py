"""Networks by name: VGG16 and ResNet18 in their forms for small images, at any width.

Convolutions are 3x3 without a bias, each with batch normalisation and ReLU, so that converting to int8 folds
them into one operator. Inputs are (size, size, 3); the last layer is dense with softmax. K. Simonyan and
A. Zisserman, arXiv 1409.1556; K. He et al., arXiv 1512.03385, whose form for small images begins with a 3x3
convolution and no pooling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buildtool.base.errors import UsageError
from buildtool.split.types import Step

if TYPE_CHECKING:
    import keras

VGG16 = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
RESNET18 = ((64, 1), (128, 2), (256, 2), (512, 2))  # channels and first stride of stages of two blocks
_MULTIPLES = {"vgg16": 32, "resnet18": 8}  # of which the rows and columns of images are


class _Drawing:
    """The steps of a network while it is written down; every method returns its last step's name."""

    def __init__(self, width: float, size: int) -> None:
        self._width = width
        self.steps = {"image": Step("image", "InputLayer", (), (size, size, 3))}

    def rows(self, name: str) -> int:
        return self.steps[name].shape[0] or 0

    def add(self, name: str, kind: str, *inputs: str, shape: tuple[int, ...] = (), **fields: Any) -> str:
        """A layer; its output has the shape of its first input if no other is given."""
        self.steps[name] = Step(name, kind, inputs, shape or self.steps[inputs[0]].shape, **fields)
        return name

    def conv(self, name: str, source: str, channels: int, kernel: int = 3, stride: int = 1) -> str:
        """A convolution with padding, and batch normalisation."""
        rows = -(-self.rows(source) // stride)
        shape = (rows, rows, max(1, round(channels * self._width)))
        self.add(name, "Conv2D", source, shape=shape, kernel=(kernel, kernel), strides=(stride, stride))
        return self.add(f"{name}_bn", "BatchNormalization", name)

    def head(self, source: str, classes: int, pooling: bool) -> None:
        kind, name = ("GlobalAveragePooling2D", "average") if pooling else ("Flatten", "flatten")
        self.add(name, kind, source, shape=(self.steps[source].channels,))
        self.add("classes", "Dense", name, shape=(classes,))

    def vgg16(self, classes: int) -> None:
        """13 convolutions in five blocks with max poolings, and one dense layer."""
        last = "image"
        for block, widths in enumerate(VGG16, 1):
            for index, channels in enumerate(widths, 1):
                name = f"block{block}_conv{index}"
                last = self.add(f"{name}_relu", "ReLU", self.conv(name, last, channels))
            half, two = self.rows(last) // 2, (2, 2)
            shape = (half, half, self.steps[last].channels)
            last = self.add(f"block{block}_pool", "MaxPooling2D", last, shape=shape, kernel=two, strides=two)
        self.head(last, classes, pooling=self.rows(last) > 1)

    def resnet18(self, classes: int) -> None:
        """A 3x3 convolution, four stages of two residual blocks, one dense layer."""
        last = self.add("stem_relu", "ReLU", self.conv("stem", "image", RESNET18[0][0]))
        for stage, (channels, first) in enumerate(RESNET18, 1):
            for index, stride in enumerate((first, 1), 1):
                last = self._residual(f"stage{stage}_{index}", last, channels, stride)
        self.head(last, classes, pooling=True)

    def _residual(self, name: str, source: str, channels: int, stride: int) -> str:
        """Two convolutions with a shortcut, which is a 1x1 convolution where the stride is above 1."""
        inner = self.conv(f"{name}_conv1", source, channels, stride=stride)
        outer = self.conv(f"{name}_conv2", self.add(f"{name}_relu1", "ReLU", inner), channels)
        shortcut = source
        if stride > 1:
            shortcut = self.conv(f"{name}_shortcut", source, channels, kernel=1, stride=stride)
        return self.add(f"{name}_relu2", "ReLU", self.add(f"{name}_add", "Add", outer, shortcut))


def steps_by_name(text: str, width: float = 1.0, size: int = 32, classes: int = 10) -> tuple[Step, ...]:
    """The records of a network by its name: "vgg16" or "resnet18"."""
    multiple = _MULTIPLES[text]
    if size % multiple:
        hint = f"a multiple of {multiple}"
        raise UsageError(f"the input size {size} does not fit the network's poolings and strides", hint=hint)
    drawing = _Drawing(width, size)
    (drawing.vgg16 if text == "vgg16" else drawing.resnet18)(classes)
    return tuple(drawing.steps.values())


def by_name(text: str, width: float = 1.0, size: int = 32, classes: int = 10, seed: int = 0) -> keras.Model:
    """The Keras model of a network by its name, with random weights; equal seeds give equal weights."""
    import keras

    steps = steps_by_name(text, width, size, classes)
    made: dict[str, Any] = {steps[0].name: keras.Input(steps[0].shape, name=steps[0].name)}
    for index, step in enumerate(steps[1:], 1):
        inputs = [made[name] for name in step.inputs]
        made[step.name] = _layer(step, seed * len(steps) + index)(inputs if len(inputs) > 1 else inputs[0])
    return keras.Model(made[steps[0].name], made[steps[-1].name], name=text)


def _layer(step: Step, seed: int) -> Any:
    """The Keras layer of a step."""
    from keras import initializers, layers

    settings: dict[str, Any] = {"name": step.name}
    if step.kind == "Conv2D":
        settings |= {"filters": step.channels, "kernel_size": step.kernel, "strides": step.strides}
        settings |= {"padding": "same", "use_bias": False, "kernel_initializer": initializers.HeNormal(seed)}
    elif step.kind == "Dense":
        start = initializers.GlorotUniform(seed)
        settings |= {"units": step.channels, "activation": "softmax", "kernel_initializer": start}
    elif step.kind == "MaxPooling2D":
        settings |= {"pool_size": step.kernel, "strides": step.strides}
    return getattr(layers, step.kind)(**settings)
