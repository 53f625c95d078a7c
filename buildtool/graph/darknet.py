"""Reads Darknet's .cfg files for analysis as a Flow: layers with the sizes of their outputs and weights.

All numbers are float32. A layer gives up to three operators: its own, its batch normalisation and its
activation. Sizes follow Darknet: `pad=1` pads a convolution by half of its size, and a maximum pooling is
padded by its size - 1 by default.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from buildtool.base.errors import BuildtoolError, ModelError, UnsupportedError
from buildtool.graph.flow import Flow, FlowOp, Value

MAX_FILE = 1 << 20  # bytes
MAX_LAYERS = 4096
MAX_NUMBER = 1 << 24
ITEM = 4  # bytes: float32

Shape = tuple[int, int, int]  # channels, rows, columns


@dataclass(frozen=True)
class Section:
    """A [section] with its options. `line` is the number of its first line, from 1."""

    kind: str
    line: int
    options: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The section in error messages, e.g. "line 5 [route]"."""
        return f"line {self.line} [{self.kind}]"

    def number(self, name: str, default: int | None = None, least: int = 0) -> int:
        """Returns an option that is a whole number from `least` to MAX_NUMBER."""
        text = self.options.get(name)
        if text is None:
            if default is None:
                raise ModelError(f"the option '{name}' is missing")
            return default
        if not re.fullmatch("[0-9]{1,8}", text) or not least <= int(text) <= MAX_NUMBER:
            raise ModelError(f"{name}={_printable(text)}, expected a number from {least} to {MAX_NUMBER}")
        return int(text)

    def numbers(self, name: str) -> list[int]:
        """Returns an option that is a list of whole numbers, possibly negative, separated by commas."""
        text = self.options.get(name, "")
        words = [word.strip() for word in text.split(",")]
        if not all(re.fullmatch("-?[0-9]{1,8}", word) for word in words):
            raise ModelError(f"{name}={_printable(text)}, expected whole numbers")
        return [int(word) for word in words]


def read_cfg(data: bytes, *, path: str = "", batch: int = 1, size: tuple[int, int] | None = None) -> Flow:
    """Returns the network of a .cfg file for `batch` input images of `size` (rows, columns).

    The default of `size` is the size in the file. The file's batch size is for training and is ignored.
    Raises ModelError for malformed files and UnsupportedError for unknown layers.
    """
    try:
        return _Network(_read_sections(data), batch, size).flow()
    except BuildtoolError as error:
        raise error.at(path=path) from None


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text[:40])


def _read_sections(data: bytes) -> list[Section]:
    if len(data) > MAX_FILE:
        raise ModelError(f"the file has {len(data)} bytes, more than {MAX_FILE}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ModelError("the file is not text", hint="give a Darknet .cfg file") from None
    sections: list[Section] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].partition(";")[0].strip()
        if line.startswith("[") and line.endswith("]"):
            sections.append(Section(_printable(line[1:-1].strip().lower()), number))
        elif line:
            name, equals, value = line.partition("=")
            if not equals or not sections:
                text = f"'{_printable(line)}' is not an option of a section"
                raise ModelError(text, operator=f"line {number}")
            sections[-1].options[name.strip().lower()] = value.strip()
        if len(sections) > MAX_LAYERS:
            raise ModelError(f"more than {MAX_LAYERS} sections")
    if not sections or sections[0].kind not in ("net", "network"):
        raise ModelError("the file does not begin with [net]", hint="give a Darknet .cfg file")
    return sections


class _Network:
    """The network that is being read: the values and operators so far, and the current value."""

    def __init__(self, sections: list[Section], batch: int, size: tuple[int, int] | None) -> None:
        net, *self.layers = sections
        self.batch = batch
        self.values: list[Value] = []
        self.ops: list[FlowOp] = []
        self.outputs: list[tuple[int, Shape]] = []  # one per layer
        try:
            height, width = size or (net.number("height", least=1), net.number("width", least=1))
            self.shape = (net.number("channels", 3, 1), height, width)
        except ModelError as error:
            raise error.at(operator=net.place) from None
        self.x = self.value("input", self.shape)

    def flow(self) -> Flow:
        """Reads all layers. The network's outputs are the values that no operator reads."""
        source = self.x
        for section in self.layers:
            layer = _LAYERS.get(section.kind)
            try:
                if layer is None:
                    hint = "supported: " + ", ".join(sorted(_LAYERS))
                    raise UnsupportedError("an unknown layer", hint=hint)
                layer(self, section)
            except BuildtoolError as error:
                raise error.at(operator=section.place) from None
            self.outputs.append((self.x, self.shape))
        if not self.ops:
            raise ModelError("no layer computes anything")
        read = {v for op in self.ops for v in op.reads}
        outputs = [v for op in self.ops for v in op.writes if v not in read]
        return Flow("", tuple(self.values), tuple(self.ops), (source,), tuple(outputs))

    def value(self, name: str, shape: Shape) -> int:
        """Adds an activation and returns its number."""
        if min(shape) < 1:
            raise ModelError(f"an output of {shape[1]}x{shape[2]}x{shape[0]}: its input is too small")
        self.values.append(Value(name, self.batch * math.prod(shape) * ITEM))
        return len(self.values) - 1

    def apply(self, kind: str, shape: Shape, reads: list[int] | None = None, weights: int = 0) -> None:
        """Adds an operator that reads the current value or `reads`. Its output becomes the current value.

        `kind` is its name, `shape` the shape of its output, and `weights` the number of its weights.
        """
        name = f"{len(self.outputs)} {kind}"
        inputs = [self.x] if reads is None else list(dict.fromkeys(reads))
        if weights:
            inputs.append(len(self.values))
            self.values.append(Value(f"{name} weights", weights * ITEM, is_weight=True))
        out = self.value(name, shape)
        self.ops.append(FlowOp(name, kind, tuple(inputs), (out,), len(self.ops)))
        self.x, self.shape = out, shape

    def finish(self, section: Section, channels: int) -> None:
        """Adds the batch normalisation and the activation that the layer's options request."""
        if section.number("batch_normalize", 0):
            self.apply("batchnorm", self.shape, weights=4 * channels)
        if section.options.get("activation", "logistic") != "linear":
            self.apply("activation", self.shape)

    def layer(self, index: int) -> tuple[int, Shape]:
        """Returns an earlier layer's output. A negative `index` counts back from the current layer."""
        number = len(self.outputs) + index if index < 0 else index
        if not 0 <= number < len(self.outputs):
            raise ModelError(f"refers to layer {index}, but only {len(self.outputs)} layers are before it")
        return self.outputs[number]

    def _count_windows(self, section: Section, pad: int, size: int) -> tuple[int, int]:
        """Returns the output's (rows, columns) if windows of `size` x `size` move over the current value.

        `pad` is the sum of the padding on both sides of the input.
        """
        stride, (_, *sides) = section.number("stride", 1, 1), self.shape
        rows, columns = ((n + pad - size) // stride + 1 if n + pad >= size else 0 for n in sides)
        return rows, columns

    def _count_bias(self, section: Section, channels: int) -> int:
        """Returns the number of biases. With a batch normalisation it is 0: its weights include them."""
        return 0 if section.number("batch_normalize", 0) else channels

    def _read_convolutional(self, s: Section) -> None:
        size, filters, groups = s.number("size", 1, 1), s.number("filters", 1, 1), s.number("groups", 1, 1)
        pad = size // 2 if s.number("pad", 0) else s.number("padding", 0)
        channels = self.shape[0]
        if channels % groups or filters % groups:
            raise ModelError(f"{groups} groups of {channels} channels and {filters} filters")
        count = filters * (channels // groups) * size * size + self._count_bias(s, filters)
        self.apply("convolutional", (filters, *self._count_windows(s, 2 * pad, size)), weights=count)
        self.finish(s, filters)

    def _read_local(self, s: Section) -> None:
        size, filters = s.number("size", 1, 1), s.number("filters", 1, 1)
        pad = size // 2 if s.number("pad", 0) else 0
        out = (filters, *self._count_windows(s, 2 * pad, size))
        self.apply("local", out, weights=math.prod(out) * (self.shape[0] * size * size + 1))
        self.finish(s, filters)

    def _read_connected(self, s: Section) -> None:
        outputs = s.number("output", 1, 1)
        count = math.prod(self.shape) * outputs + self._count_bias(s, outputs)
        self.apply("connected", (outputs, 1, 1), weights=count)
        self.finish(s, outputs)

    def _read_maxpool(self, s: Section) -> None:
        size = s.number("size", s.number("stride", 1, 1), 1)
        self.apply("maxpool", (self.shape[0], *self._count_windows(s, s.number("padding", size - 1), size)))

    def _read_reorg(self, s: Section) -> None:
        stride = s.number("stride", 1, 1)
        channels, height, width = self.shape
        if height % stride or width % stride:
            raise ModelError(f"{height}x{width} pixels do not divide by a stride of {stride}")
        self.apply("reorg", (channels * stride * stride, height // stride, width // stride))

    def _read_upsample(self, s: Section) -> None:
        stride = s.number("stride", 2, 1)
        channels, height, width = self.shape
        self.apply("upsample", (channels, height * stride, width * stride))

    def _read_route(self, s: Section) -> None:
        """Reads [route], which joins the outputs of layers, or parts of them, along the channels.

        If it names one layer and takes all its channels, no operator is added.
        """
        parts = [self.layer(index) for index in s.numbers("layers")]
        groups, group = s.number("groups", 1, 1), s.number("group_id", 0)
        if any(shape[0] % groups for _, shape in parts) or group >= groups:
            channels = [shape[0] for _, shape in parts]
            raise ModelError(f"group {group} of {groups} groups for {channels} channels")
        if any(shape[1:] != parts[0][1][1:] for _, shape in parts):
            raise ModelError("joins layers of different sizes")
        if len(parts) == 1 and groups == 1:
            self.x, self.shape = parts[0]
            return
        total = sum(shape[0] // groups for _, shape in parts)
        self.apply("route", (total, *parts[0][1][1:]), [v for v, _ in parts])

    def _read_shortcut(self, s: Section) -> None:
        """Reads [shortcut], which adds the outputs of other layers. Their shapes may differ."""
        reads = [self.x, *(self.layer(index)[0] for index in s.numbers("from"))]
        self.apply("shortcut", self.shape, reads)
        if s.options.get("activation", "linear") != "linear":
            self.apply("activation", self.shape)


_LAYERS: dict[str, Callable[[_Network, Section], None]] = {
    **dict.fromkeys(("convolutional", "conv"), _Network._read_convolutional),
    "local": _Network._read_local,
    "connected": _Network._read_connected,
    **dict.fromkeys(("maxpool", "max"), _Network._read_maxpool),
    **dict.fromkeys(("avgpool", "avg"), lambda net, _: net.apply("avgpool", (net.shape[0], 1, 1))),
    "reorg": _Network._read_reorg,
    "upsample": _Network._read_upsample,
    "route": _Network._read_route,
    "shortcut": _Network._read_shortcut,
    "batchnorm": lambda net, s: net.apply(s.kind, net.shape, weights=4 * net.shape[0]),
    **dict.fromkeys(
        ("activation", "softmax", "soft", "normalization", "lrn"), lambda net, s: net.apply(s.kind, net.shape)
    ),
    # These matter in training only, or read boxes from the output before them.
    **dict.fromkeys(("dropout", "cost", "region", "detection", "yolo"), lambda _net, _: None),
}
