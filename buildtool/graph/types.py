"""A network: tensors, operators, and the graph they form.

Everything is frozen. Activations are NHWC. Parameters that TFLite passes as constant tensors (axes, paddings,
permutations, shapes, begins, strides) are attributes here; an operator's inputs are its activations, then its
weights (filter, bias, PRELU's alpha), -1 where one is absent. Padding is always explicit: rows and columns.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:  # importing numpy takes a tenth of a second, which code that only names operators saves
    import numpy as np
    import numpy.typing as npt


class DType(enum.StrEnum):
    """Element types, by numpy's names."""

    INT8 = "int8"
    UINT8 = "uint8"
    BOOL = "bool"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return _SIZES[self]


_SIZES = dict(zip(DType, (1, 1, 1, 2, 4, 8, 4), strict=True))


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
    ABS = "ABS"
    EXP = "EXP"
    LOG = "LOG"
    GELU = "GELU"
    NEG = "NEG"
    SQRT = "SQRT"
    RSQRT = "RSQRT"
    ELU = "ELU"
    RELU_N1_TO_1 = "RELU_N1_TO_1"
    RELU_0_TO_1 = "RELU_0_TO_1"
    LOGICAL_NOT = "LOGICAL_NOT"
    PRELU = "PRELU"
    MAXIMUM = "MAXIMUM"
    MINIMUM = "MINIMUM"
    SQUARED_DIFFERENCE = "SQUARED_DIFFERENCE"
    DIV = "DIV"
    EQUAL = "EQUAL"
    NOT_EQUAL = "NOT_EQUAL"
    LESS = "LESS"
    LESS_EQUAL = "LESS_EQUAL"
    GREATER = "GREATER"
    GREATER_EQUAL = "GREATER_EQUAL"
    LOGICAL_AND = "LOGICAL_AND"
    LOGICAL_OR = "LOGICAL_OR"
    SELECT_V2 = "SELECT_V2"
    L2_NORMALIZATION = "L2_NORMALIZATION"
    LOG_SOFTMAX = "LOG_SOFTMAX"
    RESHAPE = "RESHAPE"
    SQUEEZE = "SQUEEZE"
    EXPAND_DIMS = "EXPAND_DIMS"
    TRANSPOSE = "TRANSPOSE"
    CONCATENATION = "CONCATENATION"
    SPLIT = "SPLIT"
    STRIDED_SLICE = "STRIDED_SLICE"
    SLICE = "SLICE"
    TILE = "TILE"
    GATHER = "GATHER"
    DEPTH_TO_SPACE = "DEPTH_TO_SPACE"
    SPACE_TO_DEPTH = "SPACE_TO_DEPTH"
    BATCH_TO_SPACE_ND = "BATCH_TO_SPACE_ND"
    SPACE_TO_BATCH_ND = "SPACE_TO_BATCH_ND"
    REDUCE_MAX = "REDUCE_MAX"
    REDUCE_MIN = "REDUCE_MIN"
    REDUCE_PROD = "REDUCE_PROD"
    ARG_MAX = "ARG_MAX"
    ARG_MIN = "ARG_MIN"
    BATCH_MATMUL = "BATCH_MATMUL"
    RESIZE_NEAREST_NEIGHBOR = "RESIZE_NEAREST_NEIGHBOR"
    RESIZE_BILINEAR = "RESIZE_BILINEAR"
    QUANTIZE = "QUANTIZE"
    CAST = "CAST"
    DEQUANTIZE = "DEQUANTIZE"
    SVDF = "SVDF"
    UNIDIRECTIONAL_SEQUENCE_LSTM = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    READ_VARIABLE = "READ_VARIABLE"
    ASSIGN_VARIABLE = "ASSIGN_VARIABLE"
    SHIFT = "SHIFT"
    LOOKUP = "LOOKUP"
    VIEW = "VIEW"
    JOINED = "JOINED"


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
    """Base class of operator attributes. It stands itself for no attributes."""


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
class AsUint8(Attrs):
    """An operator of a uint8 network whose results differ from those of LiteRT's int8 kernel.

    Convolutions and dense layers: the filter has its own zero point, which is subtracted from its values.
    AVERAGE_POOL_2D: halves are rounded up. QUANTIZE: rescales a CONCATENATION's operand in floats.
    """


@dataclass(frozen=True)
class ConvAsUint8(ConvAttrs, AsUint8):
    """CONV_2D."""


@dataclass(frozen=True)
class DepthwiseAsUint8(DepthwiseAttrs, AsUint8):
    """DEPTHWISE_CONV_2D."""


@dataclass(frozen=True)
class FullyConnectedAttrs(Attrs):
    """FULLY_CONNECTED; filter (outputs, inputs)."""

    activation: Activation = Activation.NONE
    keep_num_dims: bool = False


@dataclass(frozen=True)
class FullyConnectedAsUint8(FullyConnectedAttrs, AsUint8):
    """FULLY_CONNECTED."""


@dataclass(frozen=True)
class PoolAsUint8(PoolAttrs, AsUint8):
    """AVERAGE_POOL_2D."""


@dataclass(frozen=True)
class ElementwiseAttrs(Attrs):
    """ADD, SUB, MUL; inputs broadcast as numpy does."""

    activation: Activation = Activation.NONE


@dataclass(frozen=True)
class WidenedAttrs(ElementwiseAttrs):
    """ADD whose second input has fewer channels than the first; it replaces a PAD of channels.

    The third input is a constant of one dimension with equal elements, as long as the longer side. Its
    elements are the missing channels: `before` of them come before the second input's, the rest after.
    """

    before: int = 0


@dataclass(frozen=True)
class QuotientAttrs(ElementwiseAttrs):
    """DIV. `wraps`: tiny quotients are shifted modulo 32, as in LiteRT's kernel; otherwise they become 0."""

    wraps: bool = True


class PadMode(enum.StrEnum):
    """How padding is filled: CONSTANT (with the zero point) for PAD, one of the others for MIRROR_PAD."""

    CONSTANT = "CONSTANT"
    REFLECT = "REFLECT"
    SYMMETRIC = "SYMMETRIC"


@dataclass(frozen=True)
class PadAttrs(Attrs):
    """PAD, MIRROR_PAD. `paddings`: (before, after) of every dimension. `value`: the quantised filling."""

    paddings: tuple[tuple[int, int], ...]
    mode: PadMode = PadMode.CONSTANT
    value: int = 0


@dataclass(frozen=True)
class MeanAttrs(Attrs):
    """MEAN, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD; axes non-negative, ascending, without repetition."""

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
class GeluAttrs(Attrs):
    """GELU; `approximate`: by a hyperbolic tangent in place of the error function."""

    approximate: bool = False


@dataclass(frozen=True)
class TransposeAttrs(Attrs):
    """TRANSPOSE; output dimension i is input dimension perm[i]."""

    perm: tuple[int, ...]


@dataclass(frozen=True)
class ShuffleAttrs(Attrs):
    """TRANSPOSE that only moves channels: channel i of group j of `groups` becomes channel i * groups + j."""

    groups: int


@dataclass(frozen=True)
class AxisAttrs(Attrs):
    """CONCATENATION, SPLIT, SHIFT, ARG_MAX, ARG_MIN; axis non-negative."""

    axis: int


@dataclass(frozen=True)
class SliceAttrs(Attrs):
    """SLICE, STRIDED_SLICE: element i of output dimension d is input element begin[d] + i*stride[d].

    One entry per input dimension; `extent`: how many elements. Shrunk axes vanish from the output's shape
    only.
    """

    begin: tuple[int, ...]
    stride: tuple[int, ...]
    extent: tuple[int, ...]


@dataclass(frozen=True)
class ViewAttrs(SliceAttrs):
    """VIEW, in place of a slice of kind `was`."""

    was: OpKind = OpKind.SLICE


@dataclass(frozen=True)
class TileAttrs(Attrs):
    """TILE: repeats dimension d of the input `multiples[d]` times."""

    multiples: tuple[int, ...]


@dataclass(frozen=True)
class GatherAttrs(Attrs):
    """GATHER: element i of dimension `axis` is the input's element `indices[i]`."""

    axis: int
    indices: tuple[int, ...]


@dataclass(frozen=True)
class BlockAttrs(Attrs):
    """DEPTH_TO_SPACE, SPACE_TO_DEPTH: move channels into squares of `block` x `block` pixels, or back.

    The pixels of a square take the channels in order, row by row.
    """

    block: int


@dataclass(frozen=True)
class BatchBlockAttrs(Attrs):
    """SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND: move blocks of the dimensions after the batch into it, or back.

    `block` is the size of a block in each of these dimensions. `edges` (before, after) are elements that are
    padded with the quantised `value` before the batch grows, or cropped after it has shrunk.
    """

    block: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    value: int = 0


@dataclass(frozen=True)
class MatmulAttrs(Attrs):
    """BATCH_MATMUL of (..., M, K) and (..., K, N); leading dimensions broadcast.

    `adj_x`, `adj_y`: the last two dimensions of the operand are swapped, in memory too.
    """

    adj_x: bool = False
    adj_y: bool = False


@dataclass(frozen=True)
class ResizeAttrs(Attrs):
    """RESIZE_NEAREST_NEIGHBOR, RESIZE_BILINEAR."""

    align_corners: bool = False
    half_pixel_centers: bool = False


@dataclass(frozen=True)
class Quantization:
    """real = scale * (q - zero_point), with one pair for the tensor or one for each index along `axis`.

    Scales are float32 values, stored as Python floats.
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
class SvdfAttrs(Attrs):
    """SVDF; filters (features, inputs) and (features, memory), `rank` features per output.

    Its fused RELU clamps to the output's type alone, as in LiteRT's kernel.
    """

    rank: int


@dataclass(frozen=True)
class LstmAttrs(Attrs):
    """UNIDIRECTIONAL_SEQUENCE_LSTM; its 24 operands are named by `LstmInput`.

    `time_major`: the first dimension counts steps, the second images of a batch; else the reverse. A clip of
    0 clips nothing. `gates`: the scales of the input, forget, cell and output gate's sums before layer
    normalisation (() without it); `hidden`: the quantisation of the product of output gate and cell.
    """

    hidden: Quantization = Quantization((1.0,), (0,))
    gates: tuple[float, ...] = ()
    time_major: bool = False
    cell_clip: float = 0.0
    projection_clip: float = 0.0


class LstmInput(enum.IntEnum):
    """The places of an LSTM's operands, as in TFLite; an absent one is -1."""

    X = 0
    INPUT_TO_INPUT = 1
    INPUT_TO_FORGET = 2
    INPUT_TO_CELL = 3
    INPUT_TO_OUTPUT = 4
    RECURRENT_TO_INPUT = 5
    RECURRENT_TO_FORGET = 6
    RECURRENT_TO_CELL = 7
    RECURRENT_TO_OUTPUT = 8
    CELL_TO_INPUT = 9
    CELL_TO_FORGET = 10
    CELL_TO_OUTPUT = 11
    INPUT_BIAS = 12
    FORGET_BIAS = 13
    CELL_BIAS = 14
    OUTPUT_BIAS = 15
    PROJECTION = 16
    PROJECTION_BIAS = 17
    HIDDEN_STATE = 18
    CELL_STATE = 19
    INPUT_NORM = 20
    FORGET_NORM = 21
    CELL_NORM = 22
    OUTPUT_NORM = 23


@dataclass(frozen=True)
class Source:
    """The tensor's index in the file, and the permutation: our dimension i is the file's dimension perm[i].

    With an empty perm the elements have the file's order. For a network input with a RESHAPE before the
    permutation, the file's dimensions are those of the RESHAPE's output.
    """

    index: int
    perm: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor. With `data`, an array of `shape` that becomes read-only, it is a constant."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    quant: Quantization | None = None
    data: npt.NDArray[np.generic] | None = field(default=None, repr=False)
    source: Source | None = None

    def __post_init__(self) -> None:
        if self.data is not None:
            self.data.setflags(write=False)

    @cached_property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @cached_property
    def size(self) -> int:
        """Size in bytes."""
        return self.elements * self.dtype.size

    @property
    def is_constant(self) -> bool:
        """Whether it has a value in the model."""
        return self.data is not None

    @cached_property
    def nhwc(self) -> tuple[int, int, int, int]:
        """The shape as (batch, rows, columns, channels).

        Missing dimensions are 1, earlier ones multiply into the batch. A (batch, features) matrix has `batch`
        columns of one row.
        """
        rows, columns, channels = (1, 1, 1, *self.shape)[-3:]
        return math.prod(self.shape[:-3]), rows, columns, channels

    @cached_property
    def pixel_bytes(self) -> int:
        """Bytes of a pixel, with all its channels."""
        return self.nhwc[3] * self.dtype.size

    @cached_property
    def row_bytes(self) -> int:
        """Bytes of a row of pixels."""
        return self.nhwc[2] * self.pixel_bytes


@dataclass(frozen=True, eq=False)
class Op:
    """An operator. `inputs` and `outputs` are indices into the graph's tensors.

    `index` is its place in the file, for messages (-1: a rewrite made it). `seen` are the operands that its
    kernel sees, where one of them is a view of an input (see `partviews`); otherwise it is empty.
    """

    kind: OpKind
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attrs: Attrs = Attrs()
    index: int = -1
    seen: tuple[int, ...] = ()

    @cached_property
    def as_seen(self) -> Op:
        """The operator with the inputs that its kernel sees."""
        return replace(self, inputs=self.seen, seen=()) if self.seen else self

    @property
    def place(self) -> str:
        """For error messages: "#12 CONV_2D"."""
        return f"#{self.index} {self.kind}"


@dataclass(frozen=True)
class SecondPass:
    """Operators `first` to `last` run again right before operator `reader`, which reads their outputs.

    These are positions in Graph.ops of the network without second passes.
    """

    first: int
    last: int
    reader: int


@dataclass(frozen=True, eq=False)
class State:
    """State between invokes: the tensor `before` when an invoke begins, and `after` when it ends.

    The bytes of `after` are `before` in the next invoke; no operator makes `before`. Where nothing assigns
    the state, `after` is `before`. `initial` is the value after init and reset: an array of the shape and
    type of `before`, which becomes read-only.
    """

    before: int
    after: int
    initial: npt.NDArray[np.generic] = field(repr=False)
    name: str = ""

    def __post_init__(self) -> None:
        self.initial.setflags(write=False)


@dataclass(frozen=True, eq=False)
class Graph:
    """A network: operators in execution order, their tensors, and states.

    `second_passes` says which operators are repeated (see `secondpass`), in ascending order of `reader`.
    """

    name: str
    tensors: tuple[Tensor, ...]
    ops: tuple[Op, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    states: tuple[State, ...] = ()
    second_passes: tuple[SecondPass, ...] = ()

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Cached results of functions of the graph only (see `of_graph`). A graph never changes."""
        return {}

    def producers(self) -> dict[int, int]:
        """Tensor index -> index in `ops` of its producer."""
        return {t: i for i, op in enumerate(self.ops) for t in op.outputs}

    def consumers(self) -> Mapping[int, tuple[int, ...]]:
        """Tensor index -> indices in `ops` of the operators that read it, in order; a VIEW reads nothing."""
        return _consumers(self)

    def activations(self) -> Iterator[int]:
        """Indices of the non-constant tensors: inputs and states first, then in order of production."""
        yield from self.inputs
        yield from (state.before for state in self.states)
        for op in self.ops:
            yield from op.outputs

    def op_name(self, position: int) -> str:
        """The name of the operator's first output, for tables."""
        return self.tensors[self.ops[position].outputs[0]].name


_T = TypeVar("_T")


def of_graph(function: Callable[[Graph], _T]) -> Callable[[Graph], _T]:
    """Makes a function that depends on a graph only keep its result with the graph."""
    name = f"{function.__module__}.{function.__qualname__}"

    @functools.wraps(function)
    def cached(graph: Graph) -> _T:
        if name not in graph.facts:
            graph.facts[name] = function(graph)
        result: _T = graph.facts[name]
        return result

    return cached


@of_graph
def _consumers(graph: Graph) -> Mapping[int, tuple[int, ...]]:
    consumers: dict[int, list[int]] = {}
    for i, op in enumerate(graph.ops):
        for t in dict.fromkeys(op.inputs) if op.kind is not OpKind.VIEW else ():
            if t >= 0:
                consumers.setdefault(t, []).append(i)
    return {t: tuple(readers) for t, readers in consumers.items()}
