"""Networks by name: VGG16 and ResNet18 in their forms for small images, with any width multiplier.

Convolutions are 3x3 without a bias, each with batch normalisation and ReLU, so that the int8 converter folds
all three into one operator. Inputs are (size, size, 3). The last layer is dense with softmax. Sources:
K. Simonyan and A. Zisserman, arXiv 1409.1556; K. He et al., arXiv 1512.03385. The form of ResNet18 for small
images begins with a 3x3 convolution and no pooling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from buildtool.base.errors import UsageError
from buildtool.split.types import Step

if TYPE_CHECKING:
    import keras

VGG16 = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
RESNET18 = ((64, 1), (128, 2), (256, 2), (512, 2))  # channels and first stride of stages of two blocks
_MULTIPLES = {"vgg16": 32, "resnet18": 8}  # an image's rows and columns are a multiple of this


class _Drawing:
    """The steps of a network while it is built. `last` is the name of the newest step."""

    def __init__(self, width: float, size: int) -> None:
        self._width = width
        self.last = "image"
        self.steps = {"image": Step("image", "InputLayer", (), (size, size, 3))}

    def add(self, name: str, kind: str, *inputs: str, shape: tuple[int, ...] = (), **fields: Any) -> str:
        """Adds a layer that reads `inputs` (default: the last step). The default shape is the input's."""
        inputs = inputs or (self.last,)
        self.steps[name] = Step(name, kind, inputs, shape or self.steps[inputs[0]].shape, **fields)
        self.last = name
        return name

    def conv(self, name: str, channels: int, kernel: int = 3, stride: int = 1) -> str:
        """Adds a padded convolution of the last step, and batch normalisation."""
        rows = -(-(self.steps[self.last].shape[0] or 0) // stride)
        shape = (rows, rows, max(1, round(channels * self._width)))
        self.add(name, "Conv2D", shape=shape, kernel=(kernel, kernel), strides=(stride, stride))
        return self.add(f"{name}_bn", "BatchNormalization")

    def vgg16(self) -> None:
        """Adds 13 convolutions in five blocks with max poolings."""
        for block, widths in enumerate(VGG16, 1):
            for index, channels in enumerate(widths, 1):
                self.conv(f"block{block}_conv{index}", channels)
                self.add(f"block{block}_conv{index}_relu", "ReLU")
            rows, columns, channels = (n or 0 for n in self.steps[self.last].shape)
            shape, two = (rows // 2, columns // 2, channels), (2, 2)
            self.add(f"block{block}_pool", "MaxPooling2D", shape=shape, kernel=two, strides=two)

    def resnet18(self) -> None:
        """Adds a 3x3 convolution, and four stages of two residual blocks; strided shortcuts are 1x1."""
        self.conv("stem", RESNET18[0][0])
        self.add("stem_relu", "ReLU")
        for stage, (channels, first) in enumerate(RESNET18, 1):
            for index, stride in enumerate((first, 1), 1):
                name, shortcut = f"stage{stage}_{index}", self.last
                self.conv(f"{name}_conv1", channels, stride=stride)
                self.add(f"{name}_relu1", "ReLU")
                outer = self.conv(f"{name}_conv2", channels)
                if stride > 1:
                    self.last = shortcut
                    shortcut = self.conv(f"{name}_shortcut", channels, kernel=1, stride=stride)
                self.add(f"{name}_add", "Add", outer, shortcut)
                self.add(f"{name}_relu2", "ReLU")


def steps_by_name(text: str, width: float = 1.0, size: int = 32, classes: int = 10) -> tuple[Step, ...]:
    """Returns the steps of the network with the name `text`, "vgg16" or "resnet18".

    `width` multiplies the numbers of channels. `size`: the rows and columns of an input image. `classes`: the
    number of outputs. Raises UsageError unless `size` fits the network's poolings and strides.
    """
    multiple = _MULTIPLES[text]
    if size % multiple:
        hint = f"a multiple of {multiple}"
        raise UsageError(f"the input size {size} does not fit the network's poolings and strides", hint=hint)
    drawing = _Drawing(width, size)
    getattr(drawing, text)()
    rows, _, channels = (n or 0 for n in drawing.steps[drawing.last].shape)
    if text == "resnet18" or rows > 1:
        drawing.add("average", "GlobalAveragePooling2D", shape=(channels,))
    else:
        drawing.add("flatten", "Flatten", shape=(channels,))
    drawing.add("classes", "Dense", shape=(classes,))
    return tuple(drawing.steps.values())


def by_name(text: str, width: float = 1.0, size: int = 32, classes: int = 10, seed: int = 0) -> keras.Model:
    """Returns the Keras model of the network with the name `text`. Equal seeds give equal random weights.

    The other arguments are those of `steps_by_name`.
    """
    import keras
    from keras import initializers, layers

    steps = steps_by_name(text, width, size, classes)
    tensors: dict[str, Any] = {steps[0].name: keras.Input(steps[0].shape, name=steps[0].name)}
    for index, step in enumerate(steps[1:], 1):
        settings: dict[str, Any] = {"name": step.name}
        number = seed * len(steps) + index
        if step.kind == "Conv2D":
            settings |= {"filters": step.channels, "kernel_size": step.kernel, "strides": step.strides}
            settings |= {"padding": "same", "use_bias": False}
            settings["kernel_initializer"] = initializers.HeNormal(number)
        elif step.kind == "Dense":
            settings |= {"units": step.channels, "activation": "softmax"}
            settings["kernel_initializer"] = initializers.GlorotUniform(number)
        elif step.kind == "MaxPooling2D":
            settings |= {"pool_size": step.kernel, "strides": step.strides}
        inputs = [tensors[name] for name in step.inputs]
        layer = getattr(layers, step.kind)(**settings)
        tensors[step.name] = layer(inputs if len(inputs) > 1 else inputs[0])
    return keras.Model(tensors[steps[0].name], tensors[steps[-1].name], name=text)
