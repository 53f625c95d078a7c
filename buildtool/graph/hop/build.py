"""Builds the hop network from the window network.

The window network is the given one, which reads the whole window. The hop network runs once per hop: it
reads the window's new rows, and gives the outputs that the window network gives for the whole window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from buildtool.graph.hop.moments import MAXIMA, Moments, Reach, Work, broadcasts
from buildtool.graph.hop.needs import (
    Needs,
    entering,
    read_rows,
    ring_bytes,
    sums_blocks,
    sums_bytes,
    sums_element,
)
from buildtool.graph.hop.spans import Span, Spans, count
from buildtool.graph.macs import total_macs
from buildtool.graph.numbering import graph_of
from buildtool.graph.states import settle_states
from buildtool.graph.types import (
    Attrs,
    AxisAttrs,
    ConvAttrs,
    DType,
    FullyConnectedAttrs,
    Graph,
    Op,
    OpKind,
    Pad,
    PadAttrs,
    PoolAttrs,
    PooledAttrs,
    RingAttrs,
    RowsAttrs,
    SliceAttrs,
    SlidingAttrs,
    State,
    Tensor,
    Window,
)


@dataclass(frozen=True)
class Origin:
    """The values that a tensor of the hop network holds.

    `tensor`: the tensor of the window network that has these values, too. `rows`: which of its rows, in
    order; () for the whole tensor.
    """

    tensor: int
    rows: Spans


@dataclass(frozen=True)
class Built:
    """The hop network.

    `origins`: for each tensor that holds values of the window network, by the tensor's name, which ones.
    `has_columns`: whether an operator reads moments as columns (see `Hop.in_columns`).
    """

    graph: Graph
    origins: Mapping[str, Origin]
    has_columns: bool = False


def build(needs: Needs, *, in_columns: bool = False) -> Built:
    """Returns the hop network that keeps what `needs` says. `in_columns`: see `Hop`."""
    work = _Building(needs, in_columns)
    work.run()
    return work.result()


@dataclass(frozen=True)
class _Segment:
    """Neighbouring rows `span` of a tensor of the window network. The hop network has them in `tensor`."""

    tensor: int
    span: Span


_Piece = tuple[int, int, int]  # rows of a tensor of the hop network: tensor, first row, number of rows
_SMALL = 512  # bytes of rows that a ROWS copies; a CONCATENATION, which may run no code, joins more


@dataclass
class _Building:
    """The hop network while it is built."""

    needs: Needs
    in_columns: bool
    tensors: list[Tensor] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    segments: dict[int, list[_Segment]] = field(default_factory=dict)
    rings: dict[int, int] = field(default_factory=dict)  # tensor of the window network -> its ring, a state
    same: dict[int, int] = field(default_factory=dict)  # tensors that both networks have, with all their rows
    joined: dict[tuple[int, Spans], int] = field(default_factory=dict)
    turned: dict[tuple[int, str], int] = field(default_factory=dict)
    columns: dict[int, int] = field(default_factory=dict)  # images of one column -> images of one row
    origins: dict[int, Origin] = field(default_factory=dict)
    pushes: list[Op] = field(default_factory=list)

    @property
    def _graph(self) -> Graph:
        return self.needs.analysis.graph

    @property
    def _moments(self) -> Mapping[int, Moments]:
        return self.needs.analysis.moments

    def run(self) -> None:
        """Adds the input, the operators and the rings."""
        analysis = self.needs.analysis
        first, layout = analysis.input, self._moments[analysis.input]
        (span,) = self.needs.made[first]
        fed = self._add(replace(self._graph.tensors[first], shape=layout.of_rows(layout.shift), source=None))
        self.input = fed
        self.segments[first] = [_Segment(fed, span)]
        self.origins[fed] = Origin(first, (span,))
        self._add_ring(first)
        for position, (op, role) in enumerate(zip(self._graph.ops, analysis.roles, strict=True)):
            match role.work:
                case Work.NONE:
                    if all(t < 0 or self._graph.tensors[t].is_constant or t in self.same for t in op.inputs):
                        self._copy(op)
                case Work.ROWS:
                    self._make_rows(op, role.reach)
                case Work.PICKS:
                    row = -role.reach.pad
                    self._reshape(self.rows(op.inputs[0], ((row, row + 1),)), op)
                case Work.POOLS if position in self.needs.sums:
                    self._pool(op)
                case Work.POOLS | Work.WHOLE:
                    self._copy(op)

    def result(self) -> Built:
        """Returns the hop network; each state is written in place (see `settle_states`)."""
        graph = self._graph
        outputs = [self._whole(t) for t in graph.outputs]
        ops = _without_unread(self._ordered(), {*outputs, *(s.after for s in self.states)})
        bare = graph_of(graph.name, self.tensors, ops, [self.input], outputs, self.states)
        first = self._moments[self.needs.analysis.input]
        settled = replace(
            settle_states(bare), window=Window(first.rows, -(-first.rows // first.shift), total_macs(graph))
        )
        origins = {self.tensors[t].name: origin for t, origin in self.origins.items()}
        return Built(settled, origins, bool(self.columns))

    def _ordered(self) -> list[Op]:
        """Returns the operators in execution order. A ring takes new rows after its last reader has run."""
        ready: dict[int, list[Op]] = {}
        for push in self.pushes:
            ring, rows = push.inputs
            places = (i for i, op in enumerate(self.ops) if ring in op.inputs or rows in op.outputs)
            ready.setdefault(max(places, default=-1), []).append(push)
        ordered = list(ready.get(-1, ()))
        for i, op in enumerate(self.ops):
            ordered += [op, *ready.get(i, ())]
        return ordered

    # ---- tensors -------------------------------------------------------------------------------------

    def _add(self, tensor: Tensor) -> int:
        taken = {one.name for one in self.tensors}
        name, number = tensor.name, 1
        while name in taken:
            number += 1
            name = f"{tensor.name} ({number})"
        self.tensors.append(replace(tensor, name=name))
        return len(self.tensors) - 1

    def _add_rows(self, t: int, rows: Spans, shape: Sequence[int]) -> int:
        """Adds a tensor of shape `shape` for these rows of the window network's tensor `t`."""
        source = self._graph.tensors[t]
        text = ", ".join(f"{low}-{high - 1}" if high > low + 1 else str(low) for low, high in rows)
        new = self._add(replace(source, name=f"{source.name} [{text}]", shape=tuple(shape), source=None))
        self.origins[new] = Origin(t, rows)
        return new

    def _add_state(self, name: str, dtype: DType, size: int) -> int:
        """Adds a state of `size` bytes, which are 0 at first; returns its tensor."""
        shape = (size // dtype.size,)
        t = self._add(Tensor(name, shape, dtype))
        zeros = np.broadcast_to(np.zeros((), dtype.value), shape)
        self.states.append(State(t, t, zeros, name))
        return t

    def _same(self, t: int) -> int:
        """Returns the hop network's tensor for `t`, a constant or a tensor without moments; -1 for -1."""
        if t < 0:
            return t
        if t not in self.same:
            self.same[t] = self._add(self._graph.tensors[t])
        return self.same[t]

    def _add_ring(self, t: int) -> None:
        """Adds the ring of tensor `t`, if it keeps rows, and the RING_PUSH that writes new rows into it."""
        if t not in self.needs.kept:
            return
        layout, (first, end) = self._moments[t], self.needs.kept[t]
        source = self._graph.tensors[t]
        size = ring_bytes(layout, end - first, source.dtype)
        ring = self._add_state(f"{source.name} (kept)", source.dtype, size)
        self.rings[t] = ring
        low, high = entering(layout, first)
        segment = next(s for s in self.segments[t] if s.span[0] <= low and high <= s.span[1])
        after = self._add(replace(self.tensors[ring], name=f"{source.name} (kept next)"))
        attrs = RingAttrs(end - first, low - segment.span[0], high - low)
        self.pushes.append(Op(OpKind.RING_PUSH, (ring, segment.tensor), (after,), attrs))
        self._set_after(ring, after)

    def _set_after(self, before: int, after: int) -> None:
        self.states = [replace(s, after=after) if s.before == before else s for s in self.states]

    # ---- rows ----------------------------------------------------------------------------------------

    def rows(self, t: int, spans: Spans) -> int:
        """Returns a tensor with the rows `spans` of the window network's tensor `t`, in this order.

        Spans may overlap.
        """
        role = self._maker(t)
        if role is not None:
            source, shift = role
            return self.rows(source, tuple((low + shift, high + shift) for low, high in spans))
        key = (t, spans)
        if key not in self.joined:
            self.joined[key] = self._join(t, spans)
        return self.joined[key]

    def _maker(self, t: int) -> tuple[int, int] | None:
        """Returns (source, first row) if tensor `t` consists of rows of tensor `source`, otherwise None."""
        makers = self._graph.producers()
        if t not in makers:
            return None
        role, op = self.needs.analysis.roles[makers[t]], self._graph.ops[makers[t]]
        if role.work not in (Work.SAME, Work.MOVED):
            return None
        return op.inputs[0], -role.reach.pad

    def _join(self, t: int, spans: Spans) -> int:
        pieces: list[_Piece] = []
        for low, high in spans:
            begin = low
            while begin < high:
                pieces.append(self._piece(t, begin, high))
                begin += pieces[-1][2]
        row_bytes = self._graph.tensors[t].size // self._moments[t].rows
        is_small = len(pieces) > 1 and count(spans) * row_bytes <= _SMALL
        runs = [pieces] if is_small else _runs(pieces, self.tensors)
        parts = [self._part(t, run) for run in runs]
        if len(parts) == 1:
            return parts[0]
        out = self._add_rows(t, spans, self._moments[t].of_rows(count(spans)))
        self.ops.append(Op(OpKind.CONCATENATION, tuple(parts), (out,), AxisAttrs(1)))
        return out

    def _part(self, t: int, run: Sequence[_Piece]) -> int:
        """Returns a tensor with the rows of the pieces `run`, in order.

        If there is one piece and it is a whole tensor, the result is this tensor. Otherwise a ROWS copies the
        rows.
        """
        tensor, first, rows = run[0]
        if len(run) == 1 and (1, rows) == self.tensors[tensor].shape[:2] and not first:
            return tensor
        inputs = tuple(dict.fromkeys(tensor for tensor, _, _ in run))
        kept = self.needs.kept.get(t, (0, 0))
        attrs = RowsAttrs(
            tuple((inputs.index(tensor), first, rows) for tensor, first, rows in run),
            tuple(kept[1] - kept[0] if tensor == self.rings.get(t) else 0 for tensor in inputs),
        )
        spans = tuple(self._span(t, piece) for piece in run)
        out = self._add_rows(t, spans, self._moments[t].of_rows(count(spans)))
        self.ops.append(Op(OpKind.ROWS, inputs, (out,), attrs))
        return out

    def _span(self, t: int, piece: _Piece) -> Span:
        """Returns which rows of the window network's tensor `t` a piece holds."""
        tensor, first, rows = piece
        begin = next((s.span[0] for s in self.segments.get(t, ()) if s.tensor == tensor), None)
        begin = self.needs.kept[t][0] if begin is None else begin
        return begin + first, begin + first + rows

    def _piece(self, t: int, low: int, high: int) -> _Piece:
        """Returns a piece of tensor `t` that begins with row `low`, and ends at row `high` or before it.

        A piece is (tensor of the hop network, its first row, number of rows).
        """
        for segment in self.segments.get(t, ()):
            first, end = segment.span
            if first <= low < end:
                return segment.tensor, low - first, min(high, end) - low
        first, end = self.needs.kept[t]
        assert first <= low < end, (t, low, high)
        return self.rings[t], low - first, min(high, end) - low

    def _whole(self, t: int) -> int:
        """Returns the hop network's tensor that has all values and the shape of the window network's `t`."""
        if t not in self._moments:
            return self._same(t)
        if t not in self.same:
            tensor = self._graph.tensors[t]
            rows = self.rows(t, ((0, self._moments[t].rows),))
            self.same[t] = self._as_shape(rows, t, tensor.shape)
        return self.same[t]

    def _as_shape(self, rows: int, t: int, shape: Sequence[int]) -> int:
        """Returns the tensor `rows` in the shape `shape`. Adds a RESHAPE if it has another shape.

        `rows` has the values of the window network's tensor `t`.
        """
        if self.tensors[rows].shape == tuple(shape):
            return rows
        new = self._add(replace(self._graph.tensors[t], shape=tuple(shape), source=None))
        if rows in self.origins:
            self.origins[new] = self.origins[rows]
        self.ops.append(Op(OpKind.RESHAPE, (rows,), (new,)))
        return new

    # ---- operators -----------------------------------------------------------------------------------

    def _copy(self, op: Op) -> None:
        """Adds an operator of the window network unchanged. It reads whole tensors."""
        inputs = tuple(self._whole(t) if t >= 0 else t for t in op.inputs)
        self.ops.append(replace(op, inputs=inputs, outputs=tuple(self._same(t) for t in op.outputs)))
        for t in op.outputs:
            self.origins[self.same[t]] = Origin(t, ())

    def _reshape(self, rows: int, op: Op) -> None:
        """Adds a RESHAPE from the tensor `rows` to the output of `op`, which has the same bytes."""
        (result,) = op.outputs
        out = self._same(result)
        self.origins[out] = Origin(result, ())
        self.ops.append(Op(OpKind.RESHAPE, (rows,), (out,), index=op.index))

    def _make_rows(self, op: Op, reach: Reach) -> None:
        """Adds an operator once for each span of output rows that a hop computes, then its outputs' rings.

        `reach`: which input rows an output row needs.
        """
        spans = self.needs.made[op.outputs[0]]
        for span in spans:
            outputs = []
            for t in op.outputs:
                layout = self._moments[t]
                new = self._add_rows(t, (span,), layout.of_rows(span[1] - span[0]))
                self.segments.setdefault(t, []).append(_Segment(new, span))
                outputs.append(new)
            self._make_span(op, reach, span, tuple(outputs))
        for t in op.outputs:
            self._add_ring(t)

    def _make_span(self, op: Op, reach: Reach, span: Span, outputs: tuple[int, ...]) -> None:
        source = (
            op.inputs[0]
            if op.inputs[0] in self._moments
            else next(t for t in op.inputs if t in self._moments)
        )
        layout = self._moments[source]
        attrs, taps = self._attrs(op, layout, reach, span)
        inputs = []
        for place, t in enumerate(op.inputs):
            if t in self._moments:
                inputs.append(self.rows(t, taps))
            elif t >= 0:
                inputs.append(self._constant(op, place, t, layout))
            else:
                inputs.append(t)
        one = replace(op, inputs=tuple(inputs), outputs=outputs, attrs=attrs)
        if not (self.in_columns and self._has_one_column(one)):
            self.ops.append(one)
            return
        with_columns = self._with_columns(one, op)
        (image,), (row,) = outputs, with_columns.outputs
        self._exchange_names(image, row)
        self.ops += [with_columns, Op(OpKind.RESHAPE, (row,), (image,))]

    def _has_one_column(self, op: Op) -> bool:
        """Whether an operator is a convolution or pooling from images of one column to such images."""
        images = (op.inputs[0], *op.outputs)
        is_sliding = isinstance(op.attrs, ConvAttrs | PoolAttrs)
        is_column = self.tensors[op.inputs[0]].shape[1] > 1
        return is_sliding and is_column and all(self.tensors[t].shape[2] == 1 for t in images)

    def _with_columns(self, op: Op, original: Op) -> Op:
        """Returns the operator `op` with rows and columns exchanged, so that moments are columns.

        Its input and output become images of one row. `original` is the operator of the window network.
        """
        assert isinstance(op.attrs, ConvAttrs | PoolAttrs)
        inputs = [self._one_row(op.inputs[0]), *op.inputs[1:]]
        if isinstance(op.attrs, ConvAttrs):
            tensor = self.tensors[inputs[1]]
            inputs[1] = self._turn(original.inputs[1], "columns", tensor, (0, 2, 1, 3))
        outputs = tuple(map(self._one_row, op.outputs))
        return replace(op, inputs=tuple(inputs), outputs=outputs, attrs=_turned(op.attrs))

    def _exchange_names(self, a: int, b: int) -> None:
        one, other = self.tensors[a], self.tensors[b]
        self.tensors[a], self.tensors[b] = replace(one, name=other.name), replace(other, name=one.name)

    def _one_row(self, t: int) -> int:
        """Returns the image `t` of one column as an image of one row.

        A RESHAPE makes it if an operator has written `t` already, or if `t` is the input.
        """
        if t not in self.columns:
            image = self.tensors[t]
            batch, rows, width, channels = image.shape
            self.columns[t] = self._add(replace(image, shape=(batch, width, rows, channels)))
            self.origins[self.columns[t]] = self.origins[t]
            if t == self.input or any(t in op.outputs for op in self.ops):
                self.ops.append(Op(OpKind.RESHAPE, (t,), (self.columns[t],)))
        return self.columns[t]

    def _constant(self, op: Op, place: int, t: int, layout: Moments) -> int:
        """Returns a constant operand for an operator on images with one row per moment.

        The rows and columns of a filter are exchanged if the moments were columns. Operands that broadcast
        get the image's 4 dimensions.
        `place`: the operand's position. `t`: its tensor in the window network. `layout`: that of the
        operator's input.
        """
        tensor = self._graph.tensors[t]
        if isinstance(op.attrs, ConvAttrs) and place == 1 and layout.dim == 2:
            return self._turn(t, "filter", tensor, (0, 2, 1, 3))
        if broadcasts(op) and tensor.elements > 1:
            rank = len(self._graph.tensors[op.outputs[0]].shape)
            shape = [1, 1, 1, 1]
            for d, n in enumerate(tensor.shape, rank - len(tensor.shape)):
                if n > 1:
                    shape[layout.dimension(d)] = n
            data = tensor.data
            assert data is not None
            if tuple(shape) != tensor.shape:
                return self._replace_constant(
                    t, "image", replace(tensor, shape=tuple(shape), data=data.reshape(shape))
                )
        return self._same(t)

    def _turn(self, t: int, what: str, tensor: Tensor, perm: tuple[int, ...]) -> int:
        data = tensor.data
        assert data is not None
        turned = np.ascontiguousarray(data.transpose(perm))
        return self._replace_constant(t, what, replace(tensor, shape=turned.shape, data=turned))

    def _replace_constant(self, t: int, what: str, tensor: Tensor) -> int:
        if (t, what) not in self.turned:
            self.turned[t, what] = self._add(replace(tensor, source=None))
        return self.turned[t, what]

    def _attrs(self, op: Op, layout: Moments, reach: Reach, span: Span) -> tuple[Attrs, Spans]:
        """Returns (an operator's attributes for the output rows `span`, the input rows that it then reads).

        `layout`: that of the operator's input. `reach`: which input rows an output row needs.
        """
        attrs = op.attrs
        low, high = read_rows(span, reach, layout.rows)
        made = span[1] - span[0]
        top = low - (span[0] * reach.stride - reach.pad)
        bottom = (made - 1) * reach.stride + reach.extent - (high - low) - top
        if isinstance(attrs, ConvAttrs | PoolAttrs):
            turned = _turned(attrs) if layout.dim == 2 else attrs
            pad = Pad(top, bottom, turned.pad.left, turned.pad.right)
            if isinstance(turned, ConvAttrs) and turned.dilation[0] > made and turned.stride[0] == 1:
                compact, spans = self._compact(turned, layout, reach, span)
                if spans:  # not if all taps lie in the padding
                    return compact, spans
            return replace(turned, pad=pad), ((low, high),)
        if isinstance(attrs, PadAttrs):
            inner = {layout.dimension(d): sides for d, sides in enumerate(attrs.paddings) if d > layout.dim}
            edges = ((0, 0), (top, bottom), inner.get(2, (0, 0)), inner.get(3, (0, 0)))
            return replace(attrs, paddings=edges), ((low, high),)
        if isinstance(attrs, AxisAttrs):
            return replace(attrs, axis=layout.dimension(attrs.axis)), ((low, high),)
        if isinstance(attrs, SliceAttrs):
            return _sliced(attrs, layout, made), ((low, high),)
        if isinstance(attrs, FullyConnectedAttrs):
            return replace(attrs, keep_num_dims=True), ((low, high),)
        return attrs, ((low, high),)

    def _compact(self, attrs: ConvAttrs, layout: Moments, reach: Reach, span: Span) -> tuple[Attrs, Spans]:
        """Returns (the attributes of a dilated convolution that reads only its taps' rows, these rows).

        Each tap reads as many rows as there are output rows, `made`. Tap k reads rows that are `dilation`
        rows after those of tap k - 1. Joined one after the other, the taps' rows are the input of a
        convolution whose dilation is `made`. The result has no rows if all taps lie in the padding.
        """
        made, dilation = span[1] - span[0], attrs.dilation[0]
        taps = (reach.extent - 1) // dilation + 1
        begins = [span[0] - reach.pad + k * dilation for k in range(taps)]
        missing = [(max(0, min(made, -b)), max(0, min(made, b + made - layout.rows))) for b in begins]
        spans = tuple(
            (b + before, b + made - after)
            for b, (before, after) in zip(begins, missing, strict=True)
            if before + after < made
        )
        top, bottom = (sum(side) for side in zip(*missing, strict=True))
        pad = Pad(top, bottom, attrs.pad.left, attrs.pad.right)
        return replace(attrs, dilation=(made, attrs.dilation[1]), pad=pad), spans

    # ---- poolings over all moments ----------------------------------------------------------------------

    def _pool(self, op: Op) -> None:
        """Adds a pooling over all moments that keeps sums, or maxima, of the rows that two windows share."""
        graph, (t,) = self._graph, op.inputs[:1]
        layout, source = self._moments[t], graph.tensors[t]
        last = self.rows(t, ((layout.kept_end, layout.rows),))
        first = (self._pool_first(op, layout, self.rows(t, ((0, layout.top),))),) if layout.top else ()
        state = self._add_state(f"{source.name} (kept sums)", DType.INT8, sums_bytes(graph, op, layout))
        after = self._add(replace(self.tensors[state], name=f"{source.name} (kept sums next)"))
        self._set_after(state, after)
        attrs = SlidingAttrs(*sums_blocks(layout), sums_element(graph, op, layout))
        result, (out,) = graph.tensors[op.outputs[0]], op.outputs
        shape = (1, 1, 1, layout.channels)
        if op.kind in MAXIMA:
            maxima = self._add(replace(result, name=f"{result.name} (maxima)", shape=shape))
            self.ops.append(Op(OpKind.SLIDING_MAX, (last, state, *first), (maxima, after), attrs, op.index))
            self._reshape(maxima, op)
            return
        sums = self._add(Tensor(f"{result.name} (sums)", shape, DType.INT32))
        self.ops.append(Op(OpKind.SLIDING_SUM, (last, state, *first), (sums, after), attrs, op.index))
        activation = op.attrs.activation if isinstance(op.attrs, PoolAttrs) else PooledAttrs.activation
        assert source.quant is not None
        pooled = PooledAttrs(layout.rows, layout.width, op.kind, activation, source.quant)
        is_average = op.kind is OpKind.AVERAGE_POOL_2D
        kind = OpKind.AVERAGE_OF_SUMS if is_average else OpKind.MEAN_OF_SUMS
        new = self._same(out)
        self.origins[new] = Origin(out, ())
        self.ops.append(Op(kind, (sums,), (new,), pooled, op.index))

    def _pool_first(self, op: Op, layout: Moments, rows: int) -> int:
        """Returns a tensor with each channel's sum, or maximum, over the window's first rows.

        The tensor `rows` has these rows, and `op` is the pooling.
        """
        shape, name = (1, 1, 1, layout.channels), self.tensors[rows].name
        if op.kind in MAXIMA:
            if self.tensors[rows].shape[1:3] == (1, 1):
                return rows
            maxima = self._add(replace(self.tensors[rows], name=f"{name} (maxima)", shape=shape))
            attrs = PoolAttrs((layout.top, layout.width), (1, 1))
            self.ops.append(Op(OpKind.MAX_POOL_2D, (rows,), (maxima,), attrs, op.index))
            return maxima
        sums = self._add(Tensor(f"{name} (sums)", shape, DType.INT32))
        self.ops.append(Op(OpKind.ROW_SUMS, (rows,), (sums,), index=op.index))
        return sums


def _without_unread(ops: Sequence[Op], read: set[int]) -> list[Op]:
    """Drops RESHAPEs whose results no operator reads. `read`: results that are read in any case."""
    read = read.union(*(op.inputs for op in ops))
    return [op for op in ops if op.kind is not OpKind.RESHAPE or read.intersection(op.outputs)]


def _runs(pieces: Sequence[_Piece], tensors: Sequence[Tensor]) -> list[list[_Piece]]:
    """Groups neighbouring pieces that have to be copied.

    A piece that is a whole tensor is a group of its own.
    """
    runs: list[list[_Piece]] = []
    open_run = False
    for tensor, first, rows in pieces:
        alone = (1, rows) == tensors[tensor].shape[:2] and not first
        if open_run and not alone:
            runs[-1].append((tensor, first, rows))
        else:
            runs.append([(tensor, first, rows)])
        open_run = not alone
    return runs


def _turned(attrs: ConvAttrs | PoolAttrs) -> ConvAttrs | PoolAttrs:
    """Returns the attributes of an operator after its rows and columns have been exchanged."""
    stride, pad = attrs.stride[::-1], attrs.pad
    turned = Pad(pad.left, pad.right, pad.top, pad.bottom)
    if isinstance(attrs, ConvAttrs):
        return replace(attrs, stride=stride, pad=turned, dilation=attrs.dilation[::-1])
    return replace(attrs, stride=stride, pad=turned, kernel=attrs.kernel[::-1])


def _sliced(attrs: SliceAttrs, layout: Moments, rows: int) -> SliceAttrs:
    """Returns the attributes of a slice that takes `rows` rows of an image with one row per moment."""
    begin, stride, extent = [0] * 4, [1] * 4, [1, rows, layout.width, layout.channels]
    for d in range(layout.dim + 1, len(attrs.begin)):
        at = layout.dimension(d)
        begin[at], stride[at], extent[at] = attrs.begin[d], attrs.stride[d], attrs.extent[d]
    return replace(attrs, begin=tuple(begin), stride=tuple(stride), extent=tuple(extent))
