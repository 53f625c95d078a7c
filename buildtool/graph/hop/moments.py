"""Which tensors of a network have moments as rows, and which of their rows move from window to window.

Every such tensor becomes an image of shape (1, rows, width, channels) with one row for each moment, whichever
of its dimensions has the moments: operators along the columns of one row are turned.

A row depends on the window's edges if any tap of its receptive field, however deep, lies in the padding. The
other rows move: if the window moves by `shift` rows of this tensor, row r + shift becomes row r.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from buildtool.base.errors import UnsupportedError, UsageError, suggest
from buildtool.graph.geometry import dilated_extent, is_cropped
from buildtool.graph.ops import ALIAS_KINDS, ELEMENT_KINDS, PAIR_KINDS, PIXEL_KINDS, SLIDING_KINDS
from buildtool.graph.types import (
    AsUint8,
    AxisAttrs,
    BlockAttrs,
    ConvAttrs,
    FullyConnectedAttrs,
    GatherAttrs,
    Graph,
    MeanAttrs,
    Op,
    OpKind,
    PadAttrs,
    PadMode,
    PoolAttrs,
    ShuffleAttrs,
    SliceAttrs,
    WidenedAttrs,
)

_SUMS = (OpKind.MEAN, OpKind.SUM, OpKind.AVERAGE_POOL_2D)
MAXIMA = (OpKind.REDUCE_MAX, OpKind.MAX_POOL_2D)


class Moments(NamedTuple):
    """A tensor that has moments in dimension `dim`, as an image of (1, rows, width, channels).

    `inner`: the number of dimensions after `dim`. `top` rows see the window's beginning, and `bottom` rows
    its end. `shift`: rows that the window moves.
    """

    rows: int
    width: int
    channels: int
    dim: int
    inner: int
    top: int = 0
    bottom: int = 0
    shift: int = 0

    @property
    def kept_end(self) -> int:
        """One past the last row that had the same values `shift` rows further down in the last window.

        The first such row is `top`. No row had them if this is at most `top`.
        """
        return max(self.top, self.rows - self.bottom - self.shift)

    @property
    def image(self) -> tuple[int, int, int]:
        """Rows, width and channels."""
        return self.rows, self.width, self.channels

    def of_rows(self, count: int) -> tuple[int, int, int, int]:
        """The shape of `count` rows as an image."""
        return 1, count, self.width, self.channels

    def dimension(self, d: int) -> int:
        """The image's dimension for dimension `d` of the tensor."""
        if d == self.dim:
            return 1
        if d < self.dim:
            return 2 if self.dim == 2 and d == 1 else 0
        return 3 if d == self.dim + self.inner else 2


class Work(enum.Enum):
    """How an operator works on moments."""

    ROWS = "rows"  # makes each row from a window of rows
    SAME = "same"  # its output is the input, with another shape
    MOVED = "moved"  # its output is some rows of the input
    PICKS = "picks"  # takes single rows, which are then no moments any more
    POOLS = "pools"  # sums or maxima over all rows and columns
    WHOLE = "whole"  # reads all rows, and its output has no moments
    NONE = "none"  # reads no moments


class Reach(NamedTuple):
    """Row q of the output reads rows [q * stride - pad, q * stride - pad + extent) of the input."""

    extent: int = 1
    stride: int = 1
    pad: int = 0


class Role(NamedTuple):
    """What an operator does with moments. `why`: why it runs on the whole window."""

    work: Work
    reach: Reach = Reach()
    why: str = ""


@dataclass(frozen=True)
class Analysis:
    """The tensors with moments, and the roles of the operators, in their order."""

    graph: Graph
    hop: int
    input: int  # the first tensor with a row for each moment: the input, or an alias of it
    moments: Mapping[int, Moments]
    roles: Sequence[Role]


def analyse(graph: Graph, hop: int) -> Analysis:
    """Returns what moves in a network if its window moves by `hop` rows.

    Raises UsageError for a hop that the network cannot have, and UnsupportedError for a network that cannot
    run on a moving window.
    """
    _check_network(graph)
    first = _find_first(graph)
    shape = graph.tensors[first].shape
    dim = next((d for d, n in enumerate(shape) if n > 1), len(shape) - 1)
    rows = shape[dim]
    image = _image_of(shape, rows, dim)
    if image is None:
        text = f"an input of shape {list(shape)} is no window, as [1, rows, columns, channels] would be"
        raise UnsupportedError(text, tensor=graph.tensors[first].name, hint=suggest(hop=None))
    if hop > rows:
        text = f"the window has {rows:,} rows, and cannot move by {hop:,}"
        raise UsageError(text, option="hop", hint=suggest(hop=rows))
    joined: set[int] = set()  # all moments, with another shape
    moments = {first: Moments(*image, dim, len(shape) - 1 - dim, shift=hop)}
    roles: list[Role] = []
    for op in graph.ops:
        if first in op.outputs or (op.kind in ALIAS_KINDS and op.outputs[0] in _before(graph, first)):
            roles.append(Role(Work.NONE))
            continue
        role, outputs = _role(graph, op, moments)
        if role.work is Work.NONE and joined.intersection(op.inputs):
            role = Role(Work.WHOLE, why=_why(op))
        if role.work is Work.WHOLE and op.kind in ALIAS_KINDS:
            joined.update(op.outputs)
        roles.append(role)
        for t, one in outputs.items():
            moments[t] = _spans(op, role, moments, one, hop)
    return Analysis(graph, hop, first, moments, tuple(roles))


def _check_network(graph: Graph) -> None:
    if graph.states:
        raise UnsupportedError(
            "a network with state of its own keeps its past itself",
            tensor=graph.states[0].name or graph.tensors[graph.states[0].before].name,
            hint=suggest("run it once for each of its inputs", hop=None),
        )
    if len(graph.inputs) != 1:
        text = f"a network with {len(graph.inputs)} inputs has no single window that moves"
        raise UnsupportedError(text, hint=suggest(hop=None))


def _before(graph: Graph, first: int) -> set[int]:
    """The tensors between the network's input and `first`, both included."""
    makers, chain = graph.producers(), {first}
    while first in makers:
        first = graph.ops[makers[first]].inputs[0]
        chain.add(first)
    return chain


def _find_first(graph: Graph) -> int:
    """The input, or the alias of it that the first operators with code read."""
    t = graph.inputs[0]
    while True:
        readers = graph.consumers().get(t, ())
        if len(readers) != 1 or graph.ops[readers[0]].kind not in ALIAS_KINDS or t in graph.outputs:
            return t
        t = graph.ops[readers[0]].outputs[0]


def _image_of(shape: Sequence[int], rows: int, dim: int | None = None) -> tuple[int, int, int] | None:
    """Returns (rows, width, channels) of a tensor with moments in `dim`, or None if it is no such image."""
    if dim is None:
        dim = next((d for d, n in enumerate(shape) if n > 1 or rows == 1), 0)
    if dim >= len(shape) or shape[dim] != rows or math.prod(shape[:dim]) != 1 or len(shape) - dim > 3:
        return None
    rest = tuple(shape[dim + 1 :])
    if len(rest) == 2 and dim != 1:
        return None
    width, channels = (1, 1, *rest)[-2:]
    return rows, width, channels


_Outputs = dict[int, Moments]  # without spans
_WHOLE: _Outputs = {}


def _role(graph: Graph, op: Op, moments: Mapping[int, Moments]) -> tuple[Role, _Outputs]:
    """Returns an operator's role, and its outputs with moments."""
    timed = [t for t in op.inputs if t in moments]
    if not timed:
        return Role(Work.NONE), _WHOLE
    of = moments[timed[0]]
    if any(moments[t].shift != of.shift for t in timed):
        why = "the rows of its operands are not equally far apart in time"
        return Role(Work.WHOLE, why=why), _WHOLE
    find = _RULES.get(op.kind)
    if find is None and op.kind in SLIDING_KINDS:
        find = _slide
    elif find is None and op.kind in ALIAS_KINDS:
        find = _reshape
    elif find is None and (op.kind in PIXEL_KINDS or isinstance(op.attrs, WidenedAttrs | ShuffleAttrs)):
        find = _by_pixel
    result = find(graph, op, of, moments) if find else None
    if result is None:
        return Role(Work.WHOLE, why=_why(op)), _WHOLE
    return result


def _why(op: Op) -> str:
    """Why an operator runs on the whole window; "" for one that runs no code."""
    if op.kind in ALIAS_KINDS:
        return ""
    if op.kind is OpKind.FULLY_CONNECTED:
        return "each moment has weights of its own"
    if op.kind in (OpKind.BATCH_MATMUL, OpKind.SOFTMAX):
        return "its results depend on all moments"
    return "it has no rule for moments"


_Result = tuple[Role, _Outputs] | None


def _make_outputs(graph: Graph, op: Op, dim: int, rows: int | None = None) -> _Outputs | None:
    """Returns the outputs with moments in `dim`; None if one of them is no such image."""
    outputs = {}
    for t in op.outputs:
        shape = graph.tensors[t].shape
        image = _image_of(shape, shape[dim] if rows is None else rows, dim) if dim < len(shape) else None
        if image is None:
            return None
        outputs[t] = Moments(*image, dim, len(shape) - 1 - dim)
    return outputs


_SAME_ROW = Reach()


def _same_dim(graph: Graph, op: Op, of: Moments, reach: Reach = _SAME_ROW) -> _Result:
    outputs = _make_outputs(graph, op, of.dim)
    return None if outputs is None else (Role(Work.ROWS, reach), outputs)


def _slide(graph: Graph, op: Op, of: Moments, moments: Mapping[int, Moments]) -> _Result:
    """The role of an operator with windows."""
    shapes = [graph.tensors[t].shape for t in (op.inputs[0], op.outputs[0])]
    if any(len(shape) != 4 for shape in shapes) or of.dim not in (1, 2) or op.inputs[0] not in moments:
        return None
    along = of.dim - 1
    attrs = op.attrs
    if isinstance(attrs, BlockAttrs):
        return _same_dim(graph, op, of, Reach(attrs.block, attrs.block)) if of.dim == 1 else None
    if isinstance(attrs, PoolAttrs) and _pools_all(attrs, shapes):
        if isinstance(attrs, AsUint8) or (op.kind in MAXIMA and attrs.activation != "NONE"):
            return None
        return Role(Work.POOLS), _WHOLE
    assert isinstance(attrs, ConvAttrs | PoolAttrs)
    if is_cropped(attrs):
        return None
    kernel = attrs.kernel if isinstance(attrs, PoolAttrs) else graph.tensors[op.inputs[1]].shape[1:3]
    dilation = attrs.dilation[along] if isinstance(attrs, ConvAttrs) else 1
    pad = (attrs.pad.top, attrs.pad.left)[along]
    if along and shapes[1][1] != 1:
        return None
    return _same_dim(graph, op, of, Reach(dilated_extent(kernel[along], dilation), attrs.stride[along], pad))


def _pools_all(attrs: PoolAttrs, shapes: Sequence[Sequence[int]]) -> bool:
    """Whether a pooling's only window is the whole input."""
    no_pad = not any((attrs.pad.top, attrs.pad.bottom, attrs.pad.left, attrs.pad.right))
    return no_pad and attrs.kernel == tuple(shapes[0][1:3]) and tuple(shapes[1][1:3]) == (1, 1)


def _reshape(graph: Graph, op: Op, of: Moments, _moments: Mapping[int, Moments]) -> _Result:
    if op.kind in (OpKind.VIEW, OpKind.JOINED):
        return None
    shape = graph.tensors[op.outputs[0]].shape
    image = _image_of(shape, of.rows)
    if image is None:
        return None
    dim = next(d for d, n in enumerate(shape) if n > 1 or of.rows == 1)
    is_same = image == of.image
    return Role(Work.SAME if is_same else Work.ROWS), {
        op.outputs[0]: Moments(*image, dim, len(shape) - 1 - dim)
    }


def _by_pixel(graph: Graph, op: Op, of: Moments, moments: Mapping[int, Moments]) -> _Result:
    """The role of an operator whose output depends on the inputs at the same place."""
    rank = len(graph.tensors[op.outputs[0]].shape)
    if op.kind not in ELEMENT_KINDS and of.dim >= rank - 1:
        return None  # the moments are the channels
    pairs = broadcasts(op)
    for t in op.inputs:
        if t < 0:
            continue
        tensor = graph.tensors[t]
        if not tensor.is_constant:
            other = moments.get(t)
            narrower = isinstance(op.attrs, WidenedAttrs) or pairs
            if other is None or other.rows != of.rows or other.dim != of.dim:
                return None
            if not narrower and other.image != of.image:
                return None
        elif pairs and tensor.elements > 1:
            place = of.dim - (rank - len(tensor.shape))
            if place >= 0 and tensor.shape[place] != 1:
                return None  # a constant for each moment
    return _same_dim(graph, op, of)


def broadcasts(op: Op) -> bool:
    """Whether an operator's constants of several elements are operands that broadcast."""
    return op.kind in (*PAIR_KINDS, OpKind.PRELU) and not isinstance(op.attrs, WidenedAttrs)


def _dense(graph: Graph, op: Op, of: Moments, _moments: Mapping[int, Moments]) -> _Result:
    """The role of a dense layer: of the channels of each pixel, or of the whole window."""
    shape, (cout, inputs) = (graph.tensors[t].shape for t in op.inputs[:2])
    if inputs != shape[-1] or of.dim >= len(shape) - 1 or not isinstance(op.attrs, FullyConnectedAttrs):
        return None
    out = graph.tensors[op.outputs[0]].shape
    if len(out) == len(shape):
        return _same_dim(graph, op, of)
    if out != (of.rows, cout) or of.width != 1:
        return None
    return Role(Work.ROWS), {op.outputs[0]: Moments(of.rows, 1, cout, 0, 1)}


def _join(graph: Graph, op: Op, of: Moments, moments: Mapping[int, Moments]) -> _Result:
    assert isinstance(op.attrs, AxisAttrs)
    every = [moments.get(t) for t in op.inputs]
    fits = all(one is not None and (one.rows, one.dim) == (of.rows, of.dim) for one in every)
    return _same_dim(graph, op, of) if fits and op.attrs.axis > of.dim else None


def _split(graph: Graph, op: Op, of: Moments, _moments: Mapping[int, Moments]) -> _Result:
    assert isinstance(op.attrs, AxisAttrs)
    return _same_dim(graph, op, of) if op.attrs.axis > of.dim else None


def _slice(graph: Graph, op: Op, of: Moments, _moments: Mapping[int, Moments]) -> _Result:
    """The role of a slice: of each row, or of some of the rows."""
    attrs, shape, out = op.attrs, graph.tensors[op.inputs[0]].shape, graph.tensors[op.outputs[0]].shape
    assert isinstance(attrs, SliceAttrs)
    begin, stride, extent = attrs.begin[of.dim], attrs.stride[of.dim], attrs.extent[of.dim]
    rest = [d for d in range(len(shape)) if d != of.dim]
    others = all(attrs.extent[d] == shape[d] for d in rest) and all(attrs.stride[d] == 1 for d in rest)
    if extent == of.rows and stride == 1:
        return _same_dim(graph, op, of) if len(out) == len(shape) else None
    if not others:
        return None
    if extent == 1:
        return Role(Work.PICKS, Reach(1, 1, -begin)), _WHOLE
    outputs = _make_outputs(graph, op, of.dim)
    if stride != 1 or outputs is None or len(out) != len(shape):
        return None
    return Role(Work.MOVED, Reach(1, 1, -begin)), outputs


def _gather(graph: Graph, op: Op, of: Moments, _moments: Mapping[int, Moments]) -> _Result:
    attrs = op.attrs
    assert isinstance(attrs, GatherAttrs)
    if len(attrs.indices) != 1 or attrs.axis != of.dim:
        return None
    return Role(Work.PICKS, Reach(1, 1, -attrs.indices[0])), _WHOLE


def _pad(graph: Graph, op: Op, of: Moments, _moments: Mapping[int, Moments]) -> _Result:
    attrs = op.attrs
    assert isinstance(attrs, PadAttrs)
    if attrs.mode is not PadMode.CONSTANT or any(map(any, attrs.paddings[: of.dim])):
        return None
    return _same_dim(graph, op, of, Reach(1, 1, attrs.paddings[of.dim][0]))


def _reduce(graph: Graph, op: Op, of: Moments, _moments: Mapping[int, Moments]) -> _Result:
    """The role of a reduction over all moments."""
    attrs, rank = op.attrs, len(graph.tensors[op.inputs[0]].shape)
    assert isinstance(attrs, MeanAttrs)
    if of.dim not in attrs.axes or op.kind not in (*_SUMS, *MAXIMA) or of.dim >= rank - 1:
        return None
    inner = set(range(of.dim + 1, rank - 1))
    if rank - 1 in attrs.axes or (inner and not inner <= set(attrs.axes)):
        return None
    return Role(Work.POOLS), _WHOLE


_RULES = {
    OpKind.FULLY_CONNECTED: _dense,
    OpKind.CONCATENATION: _join,
    OpKind.SPLIT: _split,
    OpKind.SLICE: _slice,
    OpKind.STRIDED_SLICE: _slice,
    OpKind.GATHER: _gather,
    OpKind.PAD: _pad,
    OpKind.MEAN: _reduce,
    OpKind.SUM: _reduce,
    OpKind.REDUCE_MAX: _reduce,
}


def _spans(op: Op, role: Role, moments: Mapping[int, Moments], out: Moments, hop: int) -> Moments:
    """Returns an output with the rows that see the window's edges, and its shift.

    Raises UsageError if the operator's windows do not move by a whole number of rows.
    """
    sources = [moments[t] for t in op.inputs if t in moments]
    extent, stride, pad = role.reach
    shift = sources[0].shift
    if shift % stride:
        step, rows = hop // shift * stride, max(one.rows for one in moments.values())
        better = max(1, round(hop / step)) * step
        text = f"its windows move by {step:,} rows of the input, and the network's window by {hop:,}"
        hint = suggest(hop=better if better <= rows else None)
        raise UsageError(text, option="hop", operator=op.place, hint=hint)
    top, end = 0, out.rows
    for one in sources:
        top = max(top, -(-(one.top + pad) // stride))
        end = min(end, (one.rows - one.bottom - extent + pad) // stride + 1)
    top = min(max(top, 0), out.rows)
    return out._replace(top=top, bottom=out.rows - max(end, 0), shift=shift // stride)
