"""What a network is: tensors, operators, and the graph they form.

Everything is frozen. Activations are NHWC. Parameters that TFLite passes as constant tensors
(axes, paddings, permutations, shapes, begins, strides) are attributes here; an operator's inputs
are its activations, then its weights (filter, bias, PRELU's alpha), -1 where one is absent.
Padding is always explicit: the reader turns SAME and VALID into rows and columns.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # numpy costs a tenth of a second, which naming operators need not wait for
    import numpy as np
    import numpy.typing as npt


class DType(enum.StrEnum):
    """Element types; the value is numpy's name of it."""

    INT8 = "int8"
    UINT8 = "uint8"
    INT32 = "int32"
    FLOAT32 = "float32"

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return 1 if self in (DType.INT8, DType.UINT8) else 4


class OpKind(enum.StrEnum):
    """Operators, by TFLite's names."""

    CONV_2D = "CONV_2D"
    DEPTHWISE_CONV_2D = "DEPTHWISE_CONV_2D"
    TRANSPOSE_CONV = "TRANSPOSE_CONV"
    FULLY_CONNECTED = "FULLY_CONNECTED"
    ADD = "ADD"
    SUB = "SUB"
    MUL = "MUL"
    PAD = "PAD"
    MIRROR_PAD = "MIRROR_PAD"
    AVERAGE_POOL_2D = "AVERAGE_POOL_2D"
    MAX_POOL_2D = "MAX_POOL_2D"
    MEAN = "MEAN"
    SOFTMAX = "SOFTMAX"
    LOGISTIC = "LOGISTIC"
    TANH = "TANH"
    HARD_SWISH = "HARD_SWISH"
    RELU = "RELU"
    RELU6 = "RELU6"
    LEAKY_RELU = "LEAKY_RELU"
    PRELU = "PRELU"
    RESHAPE = "RESHAPE"
    SQUEEZE = "SQUEEZE"
    EXPAND_DIMS = "EXPAND_DIMS"
    TRANSPOSE = "TRANSPOSE"
    CONCATENATION = "CONCATENATION"
    SPLIT = "SPLIT"
    STRIDED_SLICE = "STRIDED_SLICE"
    SLICE = "SLICE"
    RESIZE_NEAREST_NEIGHBOR = "RESIZE_NEAREST_NEIGHBOR"
    RESIZE_BILINEAR = "RESIZE_BILINEAR"
    QUANTIZE = "QUANTIZE"
    DEQUANTIZE = "DEQUANTIZE"


# The output is the input's bytes under another shape: no code runs, both share one buffer.
ALIAS_KINDS = frozenset({OpKind.RESHAPE, OpKind.SQUEEZE, OpKind.EXPAND_DIMS})

# int8 (or uint8) to int8 (or uint8) functions of one element: a table of 256 bytes says all.
TABLE_KINDS = frozenset(
    {
        OpKind.LOGISTIC,
        OpKind.TANH,
        OpKind.HARD_SWISH,
        OpKind.RELU,
        OpKind.RELU6,
        OpKind.LEAKY_RELU,
        OpKind.QUANTIZE,
    }
)


class Activation(enum.StrEnum):
    """Fused activations."""

    NONE = "NONE"
    RELU = "RELU"
    RELU_N1_TO_1 = "RELU_N1_TO_1"
    RELU6 = "RELU6"


@dataclass(frozen=True)
class Pad:
    """Rows above and below, columns left and right."""

    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0


@dataclass(frozen=True)
class Attrs:
    """Base of operator attributes; itself: no attributes."""


@dataclass(frozen=True)
class ConvAttrs(Attrs):
    """CONV_2D (filter OHWI; cin / filter's I groups) and TRANSPOSE_CONV (filter OHWI)."""

    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pad: Pad = Pad()
    activation: Activation = Activation.NONE


@dataclass(frozen=True)
class DepthwiseAttrs(ConvAttrs):
    """DEPTHWISE_CONV_2D; filter (1, H, W, cin * depth_multiplier)."""

    depth_multiplier: int = 1


@dataclass(frozen=True)
class PoolAttrs(Attrs):
    """AVERAGE_POOL_2D, MAX_POOL_2D; padded positions do not count."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    pad: Pad = Pad()
    activation: Activation = Activation.NONE


@dataclass(frozen=True)
class FullyConnectedAttrs(Attrs):
    """FULLY_CONNECTED; filter (outputs, inputs)."""

    activation: Activation = Activation.NONE
    keep_num_dims: bool = False


@dataclass(frozen=True)
class ElementwiseAttrs(Attrs):
    """ADD, SUB, MUL; inputs broadcast as numpy does."""

    activation: Activation = Activation.NONE


class PadMode(enum.StrEnum):
    """PAD is CONSTANT (with the zero point), MIRROR_PAD one of the others."""

    CONSTANT = "CONSTANT"
    REFLECT = "REFLECT"
    SYMMETRIC = "SYMMETRIC"


@dataclass(frozen=True)
class PadAttrs(Attrs):
    """PAD, MIRROR_PAD; (before, after) of every dimension; `value` is the quantised filling."""

    paddings: tuple[tuple[int, int], ...]
    mode: PadMode = PadMode.CONSTANT
    value: int = 0


@dataclass(frozen=True)
class MeanAttrs(Attrs):
    """MEAN; axes non-negative, ascending, without repetition."""

    axes: tuple[int, ...]
    keep_dims: bool = False


@dataclass(frozen=True)
class SoftmaxAttrs(Attrs):
    """SOFTMAX over the last dimension."""

    beta: float = 1.0


@dataclass(frozen=True)
class LeakyReluAttrs(Attrs):
    """LEAKY_RELU."""

    alpha: float = 0.2


@dataclass(frozen=True)
class TransposeAttrs(Attrs):
    """TRANSPOSE; output dimension i is input dimension perm[i]."""

    perm: tuple[int, ...]


@dataclass(frozen=True)
class AxisAttrs(Attrs):
    """CONCATENATION, SPLIT; axis non-negative."""

    axis: int


@dataclass(frozen=True)
class SliceAttrs(Attrs):
    """SLICE, STRIDED_SLICE: element i of output dimension d is input element begin[d] + i*stride[d].

    One entry an input dimension; `extent` the elements taken. Shrunk axes vanish from the output
    tensor's shape only.
    """

    begin: tuple[int, ...]
    stride: tuple[int, ...]
    extent: tuple[int, ...]


@dataclass(frozen=True)
class ResizeAttrs(Attrs):
    """RESIZE_NEAREST_NEIGHBOR, RESIZE_BILINEAR."""

    align_corners: bool = False
    half_pixel_centers: bool = False


@dataclass(frozen=True)
class Quantization:
    """real = scale * (q - zero_point); one pair, or one each along `axis`.

    Scales are float32 values held as Python floats.
    """

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int = 0

    @property
    def scale(self) -> float:
        """The scale of a per-tensor quantisation."""
        return self.scales[0]

    @property
    def zero_point(self) -> int:
        """The zero point of a per-tensor quantisation."""
        return self.zero_points[0]


@dataclass(frozen=True)
class Source:
    """Where a tensor comes from: its index in the file read, and how its dimensions were permuted.

    Our dimension i is the file's dimension perm[i] once the file's tensor is reshaped to
    `shape` (its own shape); perm empty: unchanged.
    """

    index: int
    perm: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor; `data` (read-only, of `shape`) makes it a constant."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    quant: Quantization | None = None
    data: npt.NDArray[np.generic] | None = field(default=None, repr=False)
    source: Source | None = None

    @cached_property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @cached_property
    def size(self) -> int:
        """Bytes."""
        return self.elements * self.dtype.size

    @property
    def is_constant(self) -> bool:
        """Whether the value is part of the model."""
        return self.data is not None

    @cached_property
    def nhwc(self) -> tuple[int, int, int, int]:
        """The shape as (batch, rows, columns, channels).

        The last three dimensions are rows, columns, channels; missing ones are 1, earlier ones
        multiply into the batch. A (batch, features) matrix has `batch` columns of one row.
        """
        tail = (1, 1, 1, *self.shape)[-3:]
        batch = 1
        for n in self.shape[:-3]:
            batch *= n
        return (batch, tail[0], tail[1], tail[2])


@dataclass(frozen=True, eq=False)
class Op:
    """An operator: indices into the graph's tensors.

    `index` is its place in the file read (-1: made by a rewrite), for messages.
    """

    kind: OpKind
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attrs: Attrs = Attrs()
    index: int = -1

    @property
    def place(self) -> str:
        """For error messages: "#12 CONV_2D"."""
        return f"#{self.index} {self.kind}"


@dataclass(frozen=True, eq=False)
class Graph:
    """A network: operators in execution order over a pool of tensors."""

    name: str
    tensors: tuple[Tensor, ...]
    ops: tuple[Op, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What functions of the graph alone have told of it, by their names; a graph never changes."""
        return {}

    def producers(self) -> dict[int, int]:
        """Tensor index -> index in `ops` of the operator that makes it."""
        return {t: i for i, op in enumerate(self.ops) for t in op.outputs}

    def consumers(self) -> Mapping[int, tuple[int, ...]]:
        """Tensor index -> indices in `ops` of the operators that read it, in order."""
        return self._consumers

    @cached_property
    def _consumers(self) -> Mapping[int, tuple[int, ...]]:
        found: dict[int, list[int]] = {}
        for i, op in enumerate(self.ops):
            for t in dict.fromkeys(op.inputs):
                if t >= 0:
                    found.setdefault(t, []).append(i)
        return {t: tuple(readers) for t, readers in found.items()}

    def activations(self) -> Iterator[int]:
        """Indices of the non-constant tensors: inputs first, then in order of production."""
        yield from self.inputs
        for op in self.ops:
            yield from op.outputs

    def op_name(self, position: int) -> str:
        """A short name for tables: the last part of the first output's name."""
        return self.tensors[self.ops[position].outputs[0]].name
