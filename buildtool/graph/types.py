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

if TYPE_CHECKING:  # numpy costs a tenth of a second, which naming operators need not wait for
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
class AsUint8(Attrs):
    """An operator of a network of uint8 whose int8 form LiteRT's int8 kernel computes otherwise.

    Convolutions and dense layers: the filter has a zero point of its own, which is subtracted from it.
    AVERAGE_POOL_2D: halves are rounded up. QUANTIZE: the rescaling of a CONCATENATION's operand, in floats.
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
    """ADD whose second input has fewer channels than the first, in place of a PAD of channels.

    The third input is a constant of one dimension with equal elements, as long as the longer side: they stand
    for the missing channels, `before` of them below the second input's, the rest above.
    """

    before: int = 0


@dataclass(frozen=True)
class QuotientAttrs(ElementwiseAttrs):
    """DIV; `wraps`: whether tiny quotients are shifted modulo 32, as in LiteRT's kernel, or become 0."""

    wraps: bool = True


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
    """TRANSPOSE that moves channels only: channel i of group j of `groups` becomes channel i * groups + j."""

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
    """TILE: dimension d is the input's, `multiples[d]` times one after the other."""

    multiples: tuple[int, ...]


@dataclass(frozen=True)
class GatherAttrs(Attrs):
    """GATHER: element i of dimension `axis` is the input's element `indices[i]` of it."""

    axis: int
    indices: tuple[int, ...]


@dataclass(frozen=True)
class BlockAttrs(Attrs):
    """DEPTH_TO_SPACE, SPACE_TO_DEPTH: squares of `block` x `block` pixels from channels, or into them.

    The first of a square's pixels has the first channels, row by row.
    """

    block: int


@dataclass(frozen=True)
class BatchBlockAttrs(Attrs):
    """SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND: the dimensions behind the batch in blocks, each of its own size.

    `edges` (before, after): elements padded with the quantised `value` before the batch grows, or cropped
    after it has shrunk.
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
    """The tensor's index in the file, and the permutation of its dimensions: ours i is the file's perm[i].

    An empty perm: the elements have the file's order. For a network input with a RESHAPE before the
    permutation the dimensions are those of the RESHAPE's output.
    """

    index: int
    perm: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor; `data` (of `shape`, and read-only from now on) makes it a constant."""

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
        """Bytes."""
        return self.elements * self.dtype.size

    @property
    def is_constant(self) -> bool:
        """Whether the model holds its value."""
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
        """Bytes of a pixel: of all its channels."""
        return self.nhwc[3] * self.dtype.size

    @cached_property
    def row_bytes(self) -> int:
        """Bytes of a row of pixels."""
        return self.nhwc[2] * self.pixel_bytes


@dataclass(frozen=True, eq=False)
class Op:
    """An operator: indices into the graph's tensors.

    `index`: its place in the file, for messages (-1: of a rewrite). `seen`: the operands as its kernel sees
    them, where one is only some channels of the input at its place (see `partviews`); empty: the inputs.
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
    """Operators [first, last] run again right before operator `reader`, which reads their outputs.

    Positions in Graph.ops of the network without second passes.
    """

    first: int
    last: int
    reader: int


@dataclass(frozen=True, eq=False)
class State:
    """State between invokes: the tensor `before` as an invoke begins, and `after` as it ends.

    The bytes of `after` are the next invoke's `before`, which no operator makes; `after` is `before` where
    nothing assigns it. `initial` (like `before`, and read-only from now on): the value after init and reset.
    """

    before: int
    after: int
    initial: npt.NDArray[np.generic] = field(repr=False)
    name: str = ""

    def __post_init__(self) -> None:
        self.initial.setflags(write=False)


@dataclass(frozen=True, eq=False)
class Graph:
    """A network: operators in execution order over a pool of tensors, and its state, if it has any.

    `second_passes`: the operators that are there twice (see `secondpass`), by `reader`, ascending.
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
        """The answers of functions of the graph alone (see `of_graph`); a graph never changes."""
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
    """A function of a graph alone, whose answer is kept with the graph."""
    name = f"{function.__module__}.{function.__qualname__}"

    @functools.wraps(function)
    def kept(graph: Graph) -> _T:
        if name not in graph.facts:
            graph.facts[name] = function(graph)
        answer: _T = graph.facts[name]
        return answer

    return kept


@of_graph
def _consumers(graph: Graph) -> Mapping[int, tuple[int, ...]]:
    consumers: dict[int, list[int]] = {}
    for i, op in enumerate(graph.ops):
        for t in dict.fromkeys(op.inputs) if op.kind is not OpKind.VIEW else ():
            if t >= 0:
                consumers.setdefault(t, []).append(i)
    return {t: tuple(readers) for t, readers in consumers.items()}
