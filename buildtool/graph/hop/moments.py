"""Finds the tensors that have moments (steps in time), and the rows whose values move with the window.

Every such tensor is treated as an image of shape (1, rows, width, channels) with one row for each moment,
whichever of its dimensions counts the moments. If an operator's images have one row, whose columns are the
moments, it runs with rows and columns exchanged.

A row depends on the window's edges if any tap of its receptive field, through all layers, lies in the
padding. The other rows move: if the window moves by `shift` rows of this tensor, the values of row r + shift
are afterwards those of row r.
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
    """How a tensor with moments is treated as an image of (1, rows, width, channels).

    `dim`: the tensor's dimension that counts the moments.
    `inner`: the number of dimensions after `dim`.
    `top`: how many rows, the first ones, depend on where the window begins.
    `bottom`: how many rows, the last ones, depend on where the window ends.
    `shift`: the rows by which the window moves at a hop.
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
        """One past the last row whose values the previous window had, too, `shift` rows further down.

        The first such row is `top`. If this number is `top`, there is no such row.
        """
        return max(self.top, self.rows - self.bottom - self.shift)

    @property
    def image(self) -> tuple[int, int, int]:
        """Rows, width and channels."""
        return self.rows, self.width, self.channels

    def of_rows(self, count: int) -> tuple[int, int, int, int]:
        """Returns the shape of the tensor's image if it had `count` rows."""
        return 1, count, self.width, self.channels

    def dimension(self, d: int) -> int:
        """Returns the image's dimension that dimension `d` of the tensor becomes."""
        if d == self.dim:
            return 1
        if d < self.dim:
            return 2 if self.dim == 2 and d == 1 else 0
        return 3 if d == self.dim + self.inner else 2


class Work(enum.Enum):
    """How an operator uses the moments (steps in time) of its inputs. A row of a tensor is one moment."""

    ROWS = "rows"  # computes each output row from some input rows
    SAME = "same"  # the output has the input's bytes in another shape
    MOVED = "moved"  # the output is some of the input's rows
    PICKS = "picks"  # takes one row; the output has no moments
    POOLS = "pools"  # sums or maxima over all rows and columns
    WHOLE = "whole"  # reads all rows; the output has no moments
    NONE = "none"  # its inputs have no moments


class Reach(NamedTuple):
    """Which input rows an operator reads for its output rows.

    Row q of the output reads rows [q * stride - pad, q * stride - pad + extent) of the input.
    """

    extent: int = 1
    stride: int = 1
    pad: int = 0


class Role(NamedTuple):
    """What an operator does with moments, and which rows it reads for its output rows.

    `why`: the reason why it runs on the whole window, if it does.
    """

    work: Work
    reach: Reach = Reach()
    why: str = ""


@dataclass(frozen=True)
class Analysis:
    """Which tensors of a network have moments, by number, and each operator's role, in the operators' order.

    `hop`: the rows by which the window moves.
    """

    graph: Graph
    hop: int
    input: int  # the first tensor with a row for each moment: the input, or an alias of it
    moments: Mapping[int, Moments]
    roles: Sequence[Role]


def analyse(graph: Graph, hop: int) -> Analysis:
    """Analyses a network whose window moves by `hop` rows.

    Raises UsageError if the window has fewer rows, or if an operator's windows would not move by a whole
    number of rows. Raises UnsupportedError for a network with states, with several inputs or without a window
    as input.
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
    joined: set[int] = set()  # tensors with all moments, in a shape that has no dimension for them
    moments = {first: Moments(*image, dim, len(shape) - 1 - dim, shift=hop)}
    roles: list[Role] = []
    for op in graph.ops:
        if first in op.outputs or (
            op.kind in ALIAS_KINDS and op.outputs[0] in _find_input_aliases(graph, first)
        ):
            roles.append(Role(Work.NONE))
            continue
        role, outputs = _role(graph, op, moments)
        if role.work is Work.NONE and joined.intersection(op.inputs):
            role = Role(Work.WHOLE, why=_why(op))
        if role.work is Work.WHOLE and op.kind in ALIAS_KINDS:
            joined.update(op.outputs)
        roles.append(role)
        for t, one in outputs.items():
            moments[t] = _find_edges(op, role, moments, one, hop)
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


def _find_input_aliases(graph: Graph, first: int) -> set[int]:
    """Returns the network's input, the tensor `first`, and the aliases between them."""
    makers, chain = graph.producers(), {first}
    while first in makers:
        first = graph.ops[makers[first]].inputs[0]
        chain.add(first)
    return chain


def _find_first(graph: Graph) -> int:
    """Returns the network's input or, if only aliases read it, the last alias before operators with code."""
    t = graph.inputs[0]
    while True:
        readers = graph.consumers().get(t, ())
        if len(readers) != 1 or graph.ops[readers[0]].kind not in ALIAS_KINDS or t in graph.outputs:
            return t
        t = graph.ops[readers[0]].outputs[0]


def _image_of(shape: Sequence[int], rows: int, dim: int | None = None) -> tuple[int, int, int] | None:
    """Returns (rows, width, channels) of a tensor of shape `shape` as an image with `rows` moments.

    `dim` is the dimension of the moments, by default the first one of more than one element. Returns None if
    the tensor is not such an image.
    """
    if dim is None:
        dim = next((d for d, n in enumerate(shape) if n > 1 or rows == 1), 0)
    if dim >= len(shape) or shape[dim] != rows or math.prod(shape[:dim]) != 1 or len(shape) - dim > 3:
        return None
    rest = tuple(shape[dim + 1 :])
    if len(rest) == 2 and dim != 1:
        return None
    width, channels = (1, 1, *rest)[-2:]
    return rows, width, channels


_Outputs = dict[int, Moments]  # outputs with moments; `top`, `bottom` and `shift` are not set
_NO_OUTPUTS: _Outputs = {}


def _role(graph: Graph, op: Op, moments: Mapping[int, Moments]) -> tuple[Role, _Outputs]:
    """Returns an operator's role, and the layout of those outputs that have moments.

    `top`, `bottom` and `shift` of these layouts are not set yet (see `_find_edges`).
    """
    timed = [t for t in op.inputs if t in moments]
    if not timed:
        return Role(Work.NONE), _NO_OUTPUTS
    layout = moments[timed[0]]
    if any(moments[t].shift != layout.shift for t in timed):
        why = "the rows of its operands are not equally far apart in time"
        return Role(Work.WHOLE, why=why), _NO_OUTPUTS
    find = _RULES.get(op.kind)
    if find is None and op.kind in SLIDING_KINDS:
        find = _slide
    elif find is None and op.kind in ALIAS_KINDS:
        find = _reshape
    elif find is None and (op.kind in PIXEL_KINDS or isinstance(op.attrs, WidenedAttrs | ShuffleAttrs)):
        find = _by_pixel
    result = find(graph, op, layout, moments) if find else None
    if result is None:
        return Role(Work.WHOLE, why=_why(op)), _NO_OUTPUTS
    return result


def _why(op: Op) -> str:
    """Returns the reason why an operator runs on the whole window; "" if it runs no code."""
    if op.kind in ALIAS_KINDS:
        return ""
    if op.kind is OpKind.FULLY_CONNECTED:
        return "each moment has weights of its own"
    if op.kind in (OpKind.BATCH_MATMUL, OpKind.SOFTMAX):
        return "its results depend on all moments"
    return "it has no rule for moments"


_Result = tuple[Role, _Outputs] | None


def _make_outputs(graph: Graph, op: Op, dim: int, rows: int | None = None) -> _Outputs | None:
    """Returns the layout of the outputs, whose dimension `dim` counts the moments.

    Returns None if an output cannot be treated as an image of `rows` rows (default: the size of that
    dimension).
    """
    outputs = {}
    for t in op.outputs:
        shape = graph.tensors[t].shape
        image = _image_of(shape, shape[dim] if rows is None else rows, dim) if dim < len(shape) else None
        if image is None:
            return None
        outputs[t] = Moments(*image, dim, len(shape) - 1 - dim)
    return outputs


_SAME_ROW = Reach()


def _same_dim(graph: Graph, op: Op, layout: Moments, reach: Reach = _SAME_ROW) -> _Result:
    outputs = _make_outputs(graph, op, layout.dim)
    return None if outputs is None else (Role(Work.ROWS, reach), outputs)


def _slide(graph: Graph, op: Op, layout: Moments, moments: Mapping[int, Moments]) -> _Result:
    """Returns the role of an operator whose windows slide over rows; None if it runs on the whole window."""
    shapes = [graph.tensors[t].shape for t in (op.inputs[0], op.outputs[0])]
    if any(len(shape) != 4 for shape in shapes) or layout.dim not in (1, 2) or op.inputs[0] not in moments:
        return None
    along = layout.dim - 1
    attrs = op.attrs
    if isinstance(attrs, BlockAttrs):
        return _same_dim(graph, op, layout, Reach(attrs.block, attrs.block)) if layout.dim == 1 else None
    if isinstance(attrs, PoolAttrs) and _pools_all(attrs, shapes):
        if isinstance(attrs, AsUint8) or (op.kind in MAXIMA and attrs.activation != "NONE"):
            return None
        return Role(Work.POOLS), _NO_OUTPUTS
    assert isinstance(attrs, ConvAttrs | PoolAttrs)
    if is_cropped(attrs):
        return None
    kernel = attrs.kernel if isinstance(attrs, PoolAttrs) else graph.tensors[op.inputs[1]].shape[1:3]
    dilation = attrs.dilation[along] if isinstance(attrs, ConvAttrs) else 1
    pad = (attrs.pad.top, attrs.pad.left)[along]
    if along and shapes[1][1] != 1:
        return None
    return _same_dim(
        graph, op, layout, Reach(dilated_extent(kernel[along], dilation), attrs.stride[along], pad)
    )


def _pools_all(attrs: PoolAttrs, shapes: Sequence[Sequence[int]]) -> bool:
    """Whether a pooling has a single window, which covers the whole input.

    `shapes` are those of the input and the output.
    """
    no_pad = not any((attrs.pad.top, attrs.pad.bottom, attrs.pad.left, attrs.pad.right))
    return no_pad and attrs.kernel == tuple(shapes[0][1:3]) and tuple(shapes[1][1:3]) == (1, 1)


def _reshape(graph: Graph, op: Op, layout: Moments, _moments: Mapping[int, Moments]) -> _Result:
    if op.kind in (OpKind.VIEW, OpKind.JOINED):
        return None
    shape = graph.tensors[op.outputs[0]].shape
    image = _image_of(shape, layout.rows)
    if image is None:
        return None
    dim = next(d for d, n in enumerate(shape) if n > 1 or layout.rows == 1)
    is_same = image == layout.image
    return Role(Work.SAME if is_same else Work.ROWS), {
        op.outputs[0]: Moments(*image, dim, len(shape) - 1 - dim)
    }


def _by_pixel(graph: Graph, op: Op, layout: Moments, moments: Mapping[int, Moments]) -> _Result:
    """Returns the role of an operator that computes each pixel from the inputs' pixels at the same place.

    Returns None if it runs on the whole window.
    """
    rank = len(graph.tensors[op.outputs[0]].shape)
    if op.kind not in ELEMENT_KINDS and layout.dim >= rank - 1:
        return None  # the moments are the channels
    pairs = broadcasts(op)
    for t in op.inputs:
        if t < 0:
            continue
        tensor = graph.tensors[t]
        if not tensor.is_constant:
            other = moments.get(t)
            narrower = isinstance(op.attrs, WidenedAttrs) or pairs
            if other is None or other.rows != layout.rows or other.dim != layout.dim:
                return None
            if not narrower and other.image != layout.image:
                return None
        elif pairs and tensor.elements > 1:
            place = layout.dim - (rank - len(tensor.shape))
            if place >= 0 and tensor.shape[place] != 1:
                return None  # the constant has an element for each moment
    return _same_dim(graph, op, layout)


def broadcasts(op: Op) -> bool:
    """Whether the operator's constants of several elements are operands that it broadcasts."""
    return op.kind in (*PAIR_KINDS, OpKind.PRELU) and not isinstance(op.attrs, WidenedAttrs)


def _dense(graph: Graph, op: Op, layout: Moments, _moments: Mapping[int, Moments]) -> _Result:
    """Returns the role of a dense layer that computes each moment from its own channels; None for others.

    `layout`: that of the layer's input.
    """
    shape, (cout, inputs) = (graph.tensors[t].shape for t in op.inputs[:2])
    if inputs != shape[-1] or layout.dim >= len(shape) - 1 or not isinstance(op.attrs, FullyConnectedAttrs):
        return None
    out = graph.tensors[op.outputs[0]].shape
    if len(out) == len(shape):
        return _same_dim(graph, op, layout)
    if out != (layout.rows, cout) or layout.width != 1:
        return None
    return Role(Work.ROWS), {op.outputs[0]: Moments(layout.rows, 1, cout, 0, 1)}


def _join(graph: Graph, op: Op, layout: Moments, moments: Mapping[int, Moments]) -> _Result:
    assert isinstance(op.attrs, AxisAttrs)
    every = [moments.get(t) for t in op.inputs]
    fits = all(one is not None and (one.rows, one.dim) == (layout.rows, layout.dim) for one in every)
    return _same_dim(graph, op, layout) if fits and op.attrs.axis > layout.dim else None


def _split(graph: Graph, op: Op, layout: Moments, _moments: Mapping[int, Moments]) -> _Result:
    assert isinstance(op.attrs, AxisAttrs)
    return _same_dim(graph, op, layout) if op.attrs.axis > layout.dim else None


def _slice(graph: Graph, op: Op, layout: Moments, _moments: Mapping[int, Moments]) -> _Result:
    """Returns the role of a slice: it shortens each row, takes some of the rows, or takes one row.

    Returns None for other slices.
    """
    attrs, shape, out = op.attrs, graph.tensors[op.inputs[0]].shape, graph.tensors[op.outputs[0]].shape
    assert isinstance(attrs, SliceAttrs)
    begin, stride, extent = attrs.begin[layout.dim], attrs.stride[layout.dim], attrs.extent[layout.dim]
    rest = [d for d in range(len(shape)) if d != layout.dim]
    others = all(attrs.extent[d] == shape[d] for d in rest) and all(attrs.stride[d] == 1 for d in rest)
    if extent == layout.rows and stride == 1:
        return _same_dim(graph, op, layout) if len(out) == len(shape) else None
    if not others:
        return None
    if extent == 1:
        return Role(Work.PICKS, Reach(1, 1, -begin)), _NO_OUTPUTS
    outputs = _make_outputs(graph, op, layout.dim)
    if stride != 1 or outputs is None or len(out) != len(shape):
        return None
    return Role(Work.MOVED, Reach(1, 1, -begin)), outputs


def _gather(graph: Graph, op: Op, layout: Moments, _moments: Mapping[int, Moments]) -> _Result:
    attrs = op.attrs
    assert isinstance(attrs, GatherAttrs)
    if len(attrs.indices) != 1 or attrs.axis != layout.dim:
        return None
    return Role(Work.PICKS, Reach(1, 1, -attrs.indices[0])), _NO_OUTPUTS


def _pad(graph: Graph, op: Op, layout: Moments, _moments: Mapping[int, Moments]) -> _Result:
    attrs = op.attrs
    assert isinstance(attrs, PadAttrs)
    if attrs.mode is not PadMode.CONSTANT or any(map(any, attrs.paddings[: layout.dim])):
        return None
    return _same_dim(graph, op, layout, Reach(1, 1, attrs.paddings[layout.dim][0]))


def _reduce(graph: Graph, op: Op, layout: Moments, _moments: Mapping[int, Moments]) -> _Result:
    """Returns the role of a reduction over all moments, None for other reductions."""
    attrs, rank = op.attrs, len(graph.tensors[op.inputs[0]].shape)
    assert isinstance(attrs, MeanAttrs)
    if layout.dim not in attrs.axes or op.kind not in (*_SUMS, *MAXIMA) or layout.dim >= rank - 1:
        return None
    inner = set(range(layout.dim + 1, rank - 1))
    if rank - 1 in attrs.axes or (inner and not inner <= set(attrs.axes)):
        return None
    return Role(Work.POOLS), _NO_OUTPUTS


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


def _find_edges(op: Op, role: Role, moments: Mapping[int, Moments], out: Moments, hop: int) -> Moments:
    """Returns the layout `out` of an output with its `top`, `bottom` and `shift`.

    They follow from those of the operator's inputs (`moments`) and from the rows that it reads. Raises
    UsageError if the operator's windows would not move by a whole number of rows. `hop`: the rows by which
    the network's window moves.
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
