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
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT32 = "float32"

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return _SIZES[self]


_SIZES = dict(zip(DType, (1, 1, 1, 2, 4, 8, 4, 8, 4), strict=True))


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
    SQUARE = "SQUARE"
    ERF = "ERF"  # of ONNX; .tflite has none
    RSQRT = "RSQRT"
    ELU = "ELU"
    RELU_N1_TO_1 = "RELU_N1_TO_1"
    RELU_0_TO_1 = "RELU_0_TO_1"
    LOGICAL_NOT = "LOGICAL_NOT"
    PRELU = "PRELU"
    MAXIMUM = "MAXIMUM"
    MINIMUM = "MINIMUM"
    SQUARED_DIFFERENCE = "SQUARED_DIFFERENCE"
    POW = "POW"
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
    SUM = "SUM"
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
    DETECTION_POSTPROCESS = "DETECTION_POSTPROCESS"
    SVDF = "SVDF"
    UNIDIRECTIONAL_SEQUENCE_LSTM = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    READ_VARIABLE = "READ_VARIABLE"
    ASSIGN_VARIABLE = "ASSIGN_VARIABLE"
    SHIFT = "SHIFT"
    RING_PUSH = "RING_PUSH"
    ROWS = "ROWS"
    ROW_SUMS = "ROW_SUMS"
    SLIDING_SUM = "SLIDING_SUM"
    SLIDING_MAX = "SLIDING_MAX"
    MEAN_OF_SUMS = "MEAN_OF_SUMS"
    AVERAGE_OF_SUMS = "AVERAGE_OF_SUMS"
    SIGNAL_WINDOW = "SIGNAL_WINDOW"
    SIGNAL_FFT_AUTO_SCALE = "SIGNAL_FFT_AUTO_SCALE"
    SIGNAL_RFFT = "SIGNAL_RFFT"
    SIGNAL_IRFFT = "SIGNAL_IRFFT"
    SIGNAL_ENERGY = "SIGNAL_ENERGY"
    SIGNAL_FILTER_BANK = "SIGNAL_FILTER_BANK"
    SIGNAL_FILTER_BANK_SQUARE_ROOT = "SIGNAL_FILTER_BANK_SQUARE_ROOT"
    SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION = "SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION"
    SIGNAL_PCAN = "SIGNAL_PCAN"
    SIGNAL_FILTER_BANK_LOG = "SIGNAL_FILTER_BANK_LOG"
    SIGNAL_FRAMER = "SIGNAL_FRAMER"
    SIGNAL_OVERLAP_ADD = "SIGNAL_OVERLAP_ADD"
    SIGNAL_STACKER = "SIGNAL_STACKER"
    SIGNAL_DELAY = "SIGNAL_DELAY"
    LOOKUP = "LOOKUP"
    VIEW = "VIEW"
    JOINED = "JOINED"


class Activation(enum.StrEnum):
    """Activation functions that are fused into an operator."""

    NONE = "NONE"
    RELU = "RELU"
    RELU_N1_TO_1 = "RELU_N1_TO_1"
    RELU6 = "RELU6"


@dataclass(frozen=True)
class Pad:
    """The number of padded rows (`top`, `bottom`) and columns (`left`, `right`).

    For a convolution, a number below 0 is how many rows or columns at that side its windows leave out.
    """

    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0


@dataclass(frozen=True)
class Attrs:
    """Base class of operator attributes. An operator without attributes has an instance of this class."""


@dataclass(frozen=True)
class WeightedAttrs(Attrs):
    """Attributes of an operator with a filter.

    `expanded` and `stored` are 0 unless the weight image stores the filter in four bits.
    `expanded`: the number of output channels whose weights are expanded to bytes at a time.
    `stored`: the number of bytes that the operator has in the weight image.
    """

    expanded: int = field(default=0, kw_only=True)
    stored: int = field(default=0, kw_only=True)


@dataclass(frozen=True)
class ConvAttrs(WeightedAttrs):
    """Attributes of CONV_2D and TRANSPOSE_CONV. The filter is OHWI.

    The number of groups of a CONV_2D is its input channels divided by the filter's I.
    """

    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pad: Pad = Pad()
    activation: Activation = Activation.NONE


@dataclass(frozen=True)
class DepthwiseAttrs(ConvAttrs):
    """Attributes of DEPTHWISE_CONV_2D. The filter has shape (1, H, W, cin * depth_multiplier)."""

    depth_multiplier: int = 1


@dataclass(frozen=True)
class PoolAttrs(Attrs):
    """Attributes of AVERAGE_POOL_2D and MAX_POOL_2D. Padded positions do not count."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    pad: Pad = Pad()
    activation: Activation = Activation.NONE


@dataclass(frozen=True)
class FilledPoolAttrs(PoolAttrs):
    """Attributes of a pooling that a PAD was folded into. Padded positions count as elements of `value`."""

    value: int = 0


@dataclass(frozen=True)
class AsUint8(Attrs):
    """Attributes of an operator in a uint8 network whose results differ from LiteRT's int8 kernel.

    In convolutions and dense layers, also of ONNX networks, the filter has its own zero point, which is
    subtracted from its values.
    AVERAGE_POOL_2D rounds halves up. QUANTIZE rescales the operand of a CONCATENATION in floats.
    RESIZE_BILINEAR interpolates in floats.
    """


@dataclass(frozen=True)
class ConvAsUint8(ConvAttrs, AsUint8):
    """Attributes of CONV_2D in a uint8 network."""


@dataclass(frozen=True)
class DepthwiseAsUint8(DepthwiseAttrs, AsUint8):
    """Attributes of DEPTHWISE_CONV_2D in a uint8 network."""


@dataclass(frozen=True)
class FullyConnectedAttrs(WeightedAttrs):
    """Attributes of FULLY_CONNECTED. The filter has shape (outputs, inputs)."""

    activation: Activation = Activation.NONE
    keep_num_dims: bool = False


@dataclass(frozen=True)
class FullyConnectedAsUint8(FullyConnectedAttrs, AsUint8):
    """Attributes of FULLY_CONNECTED in a uint8 network."""


# Attributes of an operator with weights -> the same where its filter has a zero point.
WITH_ZERO_POINT: dict[type[Attrs], type[Attrs]] = {
    ConvAttrs: ConvAsUint8,
    DepthwiseAttrs: DepthwiseAsUint8,
    FullyConnectedAttrs: FullyConnectedAsUint8,
}


@dataclass(frozen=True)
class PoolAsUint8(PoolAttrs, AsUint8):
    """Attributes of AVERAGE_POOL_2D in a uint8 network."""


@dataclass(frozen=True)
class ElementwiseAttrs(Attrs):
    """Attributes of ADD, SUB and MUL. Their inputs broadcast as in numpy."""

    activation: Activation = Activation.NONE


@dataclass(frozen=True)
class WidenedAttrs(ElementwiseAttrs):
    """Attributes of an ADD whose second input has fewer channels. It replaces a PAD of channels.

    The third input is a constant vector of equal elements, which replace the missing channels. `before` of
    these channels come before the second input's channels, and the others after them. The vector is as long
    as the longer of these two parts.
    """

    before: int = 0


@dataclass(frozen=True)
class QuotientAttrs(ElementwiseAttrs):
    """Attributes of DIV.

    If `wraps`, tiny quotients are shifted modulo 32, as in LiteRT's kernel. Otherwise they become 0.
    """

    wraps: bool = True


class PadMode(enum.StrEnum):
    """What padding is filled with. PAD has CONSTANT (the zero point), MIRROR_PAD one of the other members."""

    CONSTANT = "CONSTANT"
    REFLECT = "REFLECT"
    SYMMETRIC = "SYMMETRIC"


@dataclass(frozen=True)
class PadAttrs(Attrs):
    """Attributes of PAD and MIRROR_PAD.

    `paddings` are (before, after) for every dimension. `value` is the quantised value of the padding, or the
    bits of a float32.
    """

    paddings: tuple[tuple[int, int], ...]
    mode: PadMode = PadMode.CONSTANT
    value: int = 0


@dataclass(frozen=True)
class MeanAttrs(Attrs):
    """Attributes of MEAN, SUM, REDUCE_MAX, REDUCE_MIN and REDUCE_PROD.

    The axes are non-negative, in ascending order and without repetition.
    """

    axes: tuple[int, ...]
    keep_dims: bool = False


@dataclass(frozen=True)
class SoftmaxAttrs(Attrs):
    """Attributes of SOFTMAX over the last dimension."""

    beta: float = 1.0


@dataclass(frozen=True)
class LeakyReluAttrs(Attrs):
    """Attributes of LEAKY_RELU."""

    alpha: float = 0.2


@dataclass(frozen=True)
class GeluAttrs(Attrs):
    """Attributes of GELU.

    If `approximate`, it uses a hyperbolic tangent in place of the error function.
    """

    approximate: bool = False


@dataclass(frozen=True)
class TransposeAttrs(Attrs):
    """Attributes of TRANSPOSE. Output dimension i is input dimension perm[i]."""

    perm: tuple[int, ...]


@dataclass(frozen=True)
class ShuffleAttrs(Attrs):
    """Attributes of a TRANSPOSE that only moves channels.

    Channel i of group j becomes channel i * `groups` + j.
    """

    groups: int


@dataclass(frozen=True)
class AxisAttrs(Attrs):
    """Attributes of CONCATENATION, SPLIT, SHIFT, ARG_MAX and ARG_MIN. The axis is not negative."""

    axis: int


@dataclass(frozen=True)
class SliceAttrs(Attrs):
    """Attributes of SLICE and STRIDED_SLICE.

    In dimension d, output element i is input element begin[d] + i*stride[d], and there are extent[d]
    elements. The tuples have one entry for each input dimension. Shrunk axes are only missing in the output's
    shape.
    """

    begin: tuple[int, ...]
    stride: tuple[int, ...]
    extent: tuple[int, ...]


@dataclass(frozen=True)
class ViewAttrs(SliceAttrs):
    """Attributes of a VIEW, which replaces a slice of kind `was`."""

    was: OpKind = OpKind.SLICE


@dataclass(frozen=True)
class TileAttrs(Attrs):
    """Attributes of TILE, which repeats dimension d of the input `multiples[d]` times."""

    multiples: tuple[int, ...]


@dataclass(frozen=True)
class GatherAttrs(Attrs):
    """Attributes of GATHER. In dimension `axis`, output element i is the input's element `indices[i]`.

    If `indices` is empty, the second operand has the indices, as int32 of any shape, and the axis is 0. An
    index outside of the dimension counts as the nearest one inside it.
    """

    axis: int
    indices: tuple[int, ...]


@dataclass(frozen=True)
class BlockAttrs(Attrs):
    """Attributes of DEPTH_TO_SPACE and SPACE_TO_DEPTH.

    DEPTH_TO_SPACE moves channels into squares of `block` x `block` pixels. The pixels of a square take the
    channels in order, row by row. SPACE_TO_DEPTH moves them back.
    """

    block: int


@dataclass(frozen=True)
class BatchBlockAttrs(Attrs):
    """Attributes of SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND.

    SPACE_TO_BATCH_ND moves blocks of the dimensions after the batch into the batch. BATCH_TO_SPACE_ND moves
    them back. `block` is the size of a block in each of these dimensions. `edges` are (before, after) for
    each of them: elements that are padded with the quantised `value` before the batch grows, or cropped after
    it has shrunk.
    """

    block: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    value: int = 0


@dataclass(frozen=True)
class MatmulAttrs(Attrs):
    """Attributes of a BATCH_MATMUL of (..., M, K) and (..., K, N). Leading dimensions broadcast.

    If `adj_x` or `adj_y`, the last two dimensions of the first or second operand are swapped in memory.
    """

    adj_x: bool = False
    adj_y: bool = False


@dataclass(frozen=True)
class ResizeAttrs(Attrs):
    """Attributes of RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR."""

    align_corners: bool = False
    half_pixel_centers: bool = False


@dataclass(frozen=True)
class ResizeAsUint8(ResizeAttrs, AsUint8):
    """Attributes of RESIZE_BILINEAR in a uint8 network."""


@dataclass(frozen=True)
class Quantization:
    """A quantisation: real = scale * (q - zero_point).

    There is one pair (scale, zero point) for the tensor, or one for each index along `axis`. Scales are
    float32 values, stored as Python floats.
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
    """Attributes of SVDF. Its filters are (features, inputs) and (features, memory).

    There are `rank` features per output. The fused RELU clamps to the output's type alone, as in LiteRT's
    kernel.
    """

    rank: int


@dataclass(frozen=True)
class DetectionAttrs(Attrs):
    """Attributes of DETECTION_POSTPROCESS, which is TFLite_Detection_PostProcess in a file.

    `classes`: the number of classes of objects, without the background.
    `detections`: the largest number of detections.
    `classes_each`: the number of output rows for each detection, unless `regular`.
    `per_class`: the largest number of boxes in each class, if `regular`.
    `regular`: whether boxes are suppressed in each class separately, and not by their best scores.
    `least_score`: boxes with a lower score are suppressed.
    `most_overlap`: a box that overlaps a better one by more than this (intersection over union) is
    suppressed.
    `scales`: the numbers by which encoded y, x, height and width are divided.
    Numbers that are not integers are float32 values.
    """

    classes: int
    detections: int
    classes_each: int
    per_class: int
    regular: bool
    least_score: float = 0.0
    most_overlap: float = 0.5
    scales: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)


@dataclass(frozen=True)
class RingAttrs(Attrs):
    """Attributes of RING_PUSH, which replaces the oldest rows of a ring by new rows.

    The first input is a ring of `rows` rows, and `count` rows of the second input, from row `first` on,
    replace its oldest rows. A ring is an array of one dimension: the rows as they are stored, then, aligned
    to 4 bytes, the index of the oldest row in 32 bits.
    """

    rows: int
    first: int
    count: int


@dataclass(frozen=True)
class RowsAttrs(Attrs):
    """Attributes of ROWS, which joins rows of several inputs.

    Each of `pieces` is (input, first row, number of rows). Row 0 of a ring is its oldest one. `ring_rows` has
    the number of rows of each input that is a ring, and 0 for other inputs.
    """

    pieces: tuple[tuple[int, int, int], ...]
    ring_rows: tuple[int, ...]


@dataclass(frozen=True)
class SlidingAttrs(Attrs):
    """Attributes of SLIDING_SUM and SLIDING_MAX: each channel's sum or maximum over a sliding window.

    The inputs are the last rows of the window, a state and, if the first rows of the window are computed
    again, their sums or maxima. The state contains a ring of the sums (or maxima) of blocks of rows.
    `entries`: the number of blocks in the ring.
    `blocks`: the number of rows of each block that a hop adds to the ring, in order. Together, these blocks
    are the first rows of the first input.
    `bytes`: the bytes of an element of the ring.
    """

    entries: int
    blocks: tuple[int, ...]
    bytes: int

    @property
    def entering(self) -> int:
        """The number of rows that enter the ring at a hop."""
        return sum(self.blocks)


@dataclass(frozen=True)
class PooledAttrs(Attrs):
    """Attributes of MEAN_OF_SUMS and AVERAGE_OF_SUMS, which finish a pooling of `height` x `width` pixels.

    `of` is the pooling's kind: MEAN, SUM or AVERAGE_POOL_2D. The operator's input is the sums. `source` is
    the quantisation of the summed elements.
    """

    height: int
    width: int
    of: OpKind
    activation: Activation = Activation.NONE
    source: Quantization = Quantization((1.0,), (0,))


@dataclass(frozen=True)
class ShiftedAttrs(Attrs):
    """Attributes of SIGNAL_WINDOW and SIGNAL_PCAN. Their products are shifted right by `shift` bits."""

    shift: int


@dataclass(frozen=True)
class FftAttrs(Attrs):
    """Attributes of SIGNAL_RFFT and SIGNAL_IRFFT: the number of real samples that a transform takes."""

    points: int


@dataclass(frozen=True)
class EnergyAttrs(Attrs):
    """Attributes of SIGNAL_ENERGY, which computes bins `first` to `end` - 1. The other bins are 0."""

    first: int
    end: int


@dataclass(frozen=True)
class SubtractionAttrs(Attrs):
    """Attributes of SIGNAL_FILTER_BANK_SPECTRAL_SUBTRACTION, which subtracts an estimate of the noise.

    `smoothing` and `remaining`: the factors of the signal and of the last estimate, for even channels.
    `odd_smoothing` and `odd_remaining`: the same for odd channels.
    `least`: the smallest share of the signal that is left.
    `smoothing_bits`: how many more fractional bits the estimate has than the signal.
    `bits`: the fractional bits of these factors.
    `clamps`: whether the estimate is at most the signal.
    """

    smoothing: int
    remaining: int
    odd_smoothing: int
    odd_remaining: int
    least: int
    smoothing_bits: int
    bits: int
    clamps: bool


@dataclass(frozen=True)
class SignalLogAttrs(Attrs):
    """Attributes of SIGNAL_FILTER_BANK_LOG: `scale` times the natural logarithm of input * 2^`bits`."""

    scale: int
    bits: int


@dataclass(frozen=True)
class FramerAttrs(Attrs):
    """Attributes of SIGNAL_FRAMER: frames of `size` samples, which begin `step` samples apart.

    If `prefilled`, zeros come before the first samples. Otherwise the first frames are not valid.
    """

    size: int
    step: int
    prefilled: bool


@dataclass(frozen=True)
class OverlapAddAttrs(Attrs):
    """Attributes of SIGNAL_OVERLAP_ADD: frames begin `step` samples apart, and overlaps are added."""

    step: int


@dataclass(frozen=True)
class StackerAttrs(Attrs):
    """Attributes of SIGNAL_STACKER, which joins a frame with its neighbours to a stack.

    A stack has `before` frames before that frame, and `after` frames after it. The next stack is `step`
    frames later.
    """

    before: int
    after: int
    step: int


@dataclass(frozen=True)
class DelayAttrs(Attrs):
    """Attributes of SIGNAL_DELAY: the number of samples by which the output is delayed."""

    length: int


@dataclass(frozen=True)
class LstmAttrs(Attrs):
    """Attributes of UNIDIRECTIONAL_SEQUENCE_LSTM. `LstmInput` names its 24 operands.

    `hidden`: the quantisation of the output gate multiplied by the cell.
    `gates`: the scales of the sums before layer normalisation, for the input, forget, cell and output gate;
    () without layer normalisation.
    `time_major`: whether the first dimension counts steps and the second one the sequences of a batch, and
    not the reverse.
    `cell_clip` and `projection_clip`: limits for magnitudes; 0 means no limit.
    """

    hidden: Quantization = Quantization((1.0,), (0,))
    gates: tuple[float, ...] = ()
    time_major: bool = False
    cell_clip: float = 0.0
    projection_clip: float = 0.0


class LstmInput(enum.IntEnum):
    """The positions of an LSTM's operands, as in TFLite. An absent operand is tensor -1."""

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
    """Where a tensor is in the file: its index, and how its dimensions are permuted.

    Our dimension i is the file's dimension perm[i]. If `perm` is empty, the elements have the file's order.
    If a network input has a RESHAPE before the permutation, the file's dimensions are those of the RESHAPE's
    output. If `channels` is not empty, our channel i (of the last dimension) is the file's channels[i], and
    the file's other channels are removed.
    """

    index: int
    perm: tuple[int, ...] = ()
    channels: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor. It is a constant if it has `data`, an array of `shape` that becomes read-only.

    `is_int4`: whether the file stores four bits for each value. The type is INT8 here.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    quant: Quantization | None = None
    data: npt.NDArray[np.generic] | None = field(default=None, repr=False)
    source: Source | None = None
    is_int4: bool = False

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

    def for_channels(self, first: int, end: int) -> Tensor:
        """Returns the part of filters or biases for the output channels [first, end).

        Their first dimension is the output channels.
        """
        assert self.data is not None
        data, quant = self.data[first:end], self.quant
        if quant is not None and len(quant.scales) > 1:
            quant = Quantization(quant.scales[first:end], quant.zero_points[first:end], quant.axis)
        return replace(self, shape=data.shape, data=data, quant=quant, source=None)

    @cached_property
    def nhwc(self) -> tuple[int, int, int, int]:
        """The shape as (batch, rows, columns, channels).

        Missing dimensions are 1. The dimensions before the last three are multiplied to give the batch. A
        matrix (batch, features) counts as one row of `batch` pixels, whose channels are the features.
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

    `index` is its number in the file, for messages. It is -1 if a rewrite made the operator. `seen` is empty,
    unless an input is replaced by a view of it (see `partviews`): then it has the operands that the kernel
    sees.
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
        """The operator's name in error messages, such as "#12 CONV_2D"."""
        return f"#{self.index} {self.kind}"


@dataclass(frozen=True)
class SecondPass:
    """Recomputation: operators `first` to `last` run again right before `reader`, which reads their outputs.

    These are positions in Graph.ops of the network without second passes.
    """

    first: int
    last: int
    reader: int


@dataclass(frozen=True, eq=False)
class State:
    """A value that lasts from one invoke to the next.

    The tensor `before` has this value when an invoke begins, and the tensor `after` when the invoke ends. In
    the next invoke, `before` has the bytes of `after`. No operator writes `before`. If no operator assigns
    the state, `after` is `before`. `initial` is the value after init and reset: an array of the shape and
    type of `before`, which becomes read-only.
    """

    before: int
    after: int
    initial: npt.NDArray[np.generic] = field(repr=False)
    name: str = ""

    def __post_init__(self) -> None:
        self.initial.setflags(write=False)


@dataclass(frozen=True)
class Window:
    """The sliding window of a network that runs once per hop (see `hop`).

    `rows`: the window's rows. `hops`: how often the network runs on inputs of zero points after init and
    reset, so that the window then holds zero points. `macs`: the multiply-accumulates of the network on the
    whole window.
    """

    rows: int
    hops: int
    macs: int


@dataclass(frozen=True, eq=False)
class Graph:
    """A network: operators in execution order, their tensors, and states.

    `second_passes` says which operators are repeated (see `secondpass`), in ascending order of `reader`.
    `window` is the sliding window of a network that runs once per hop (see `hop`), None for other networks.
    """

    name: str
    tensors: tuple[Tensor, ...]
    ops: tuple[Op, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    states: tuple[State, ...] = ()
    second_passes: tuple[SecondPass, ...] = ()
    window: Window | None = None

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Results that `cached_on_graph` has cached. A graph never changes, so they stay valid."""
        return {}

    @cached_property
    def constant_bytes(self) -> int:
        """Bytes of all constants, before packing for the kernels."""
        return sum(tensor.size for tensor in self.tensors if tensor.is_constant)

    def producers(self) -> Mapping[int, int]:
        """Maps each tensor's index to the index in `ops` of the operator that writes it."""
        return _producers(self)

    def consumers(self) -> Mapping[int, tuple[int, ...]]:
        """Maps each tensor's index to the indices in `ops` of its readers, in order. A VIEW is no reader."""
        return _consumers(self)

    def activations(self) -> Iterator[int]:
        """Indices of the non-constant tensors: inputs and states first, then in order of production."""
        yield from self.inputs
        yield from (state.before for state in self.states)
        for op in self.ops:
            yield from op.outputs

    def op_name(self, position: int) -> str:
        """Returns the name of the first output of the operator at `position`, for tables."""
        return self.tensors[self.ops[position].outputs[0]].name


_T = TypeVar("_T")


def cached_on_graph(function: Callable[[Graph], _T]) -> Callable[[Graph], _T]:
    """Makes a function cache its result in the graph. The graph must be all that the result depends on."""
    name = f"{function.__module__}.{function.__qualname__}"

    @functools.wraps(function)
    def cached(graph: Graph) -> _T:
        if name not in graph.facts:
            graph.facts[name] = function(graph)
        result: _T = graph.facts[name]
        return result

    return cached


@cached_on_graph
def _producers(graph: Graph) -> Mapping[int, int]:
    return {t: i for i, op in enumerate(graph.ops) for t in op.outputs}


@cached_on_graph
def _consumers(graph: Graph) -> Mapping[int, tuple[int, ...]]:
    consumers: dict[int, list[int]] = {}
    for i, op in enumerate(graph.ops):
        for t in dict.fromkeys(op.inputs) if op.kind is not OpKind.VIEW else ():
            if t >= 0:
                consumers.setdefault(t, []).append(i)
    return {t: tuple(readers) for t, readers in consumers.items()}
