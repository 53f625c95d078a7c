"""Makes the network that runs once per hop from the network that runs on the whole window."""

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
    """Where a tensor's values are in the window: the tensor and the rows, in order."""

    tensor: int
    rows: Spans


@dataclass(frozen=True)
class Built:
    """The network of a hop. `origins`: by name, the rows of the window's tensors that its tensors hold.

    `has_columns`: whether operators read moments as columns.
    """

    graph: Graph
    origins: Mapping[str, Origin]
    has_columns: bool = False


def build(needs: Needs, *, in_columns: bool = False) -> Built:
    """Returns the network that computes one hop. For `in_columns` see `Hop`."""
    work = _Building(needs, in_columns)
    work.run()
    return work.result()


@dataclass(frozen=True)
class _Segment:
    """Some rows of a tensor in the network of the hop."""

    tensor: int
    span: Span


_Piece = tuple[int, int, int]  # a tensor, the first row there, and the number of rows
_SMALL = 512  # bytes of rows that are copied rather than joined by a CONCATENATION, which may leave them


@dataclass
class _Building:
    needs: Needs
    in_columns: bool
    tensors: list[Tensor] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    segments: dict[int, list[_Segment]] = field(default_factory=dict)
    rings: dict[int, int] = field(default_factory=dict)  # tensor of the window -> state
    same: dict[int, int] = field(default_factory=dict)  # tensors as they are in both networks
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
        """Adds the operators of the hop."""
        analysis = self.needs.analysis
        first, of = analysis.input, self._moments[analysis.input]
        (span,) = self.needs.made[first]
        fed = self._add(replace(self._graph.tensors[first], shape=of.of_rows(of.shift), source=None))
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
        """Returns the network, with its states in place."""
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
        """The operators in order. Rows enter a ring as soon as nothing reads the ring any more."""
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
        """Adds a tensor for rows of the window's tensor `t`."""
        source = self._graph.tensors[t]
        text = ", ".join(f"{low}-{high - 1}" if high > low + 1 else str(low) for low, high in rows)
        new = self._add(replace(source, name=f"{source.name} [{text}]", shape=tuple(shape), source=None))
        self.origins[new] = Origin(t, rows)
        return new

    def _add_state(self, name: str, dtype: DType, size: int) -> int:
        """Adds a state of `size` bytes, all 0."""
        shape = (size // dtype.size,)
        t = self._add(Tensor(name, shape, dtype))
        zeros = np.broadcast_to(np.zeros((), dtype.value), shape)
        self.states.append(State(t, t, zeros, name))
        return t

    def _same(self, t: int) -> int:
        """A constant, or a tensor without moments, in the network of the hop."""
        if t < 0:
            return t
        if t not in self.same:
            self.same[t] = self._add(self._graph.tensors[t])
        return self.same[t]

    def _add_ring(self, t: int) -> None:
        """Adds the ring of a tensor, and the operator that takes over the rows that enter it."""
        if t not in self.needs.kept:
            return
        of, (first, end) = self._moments[t], self.needs.kept[t]
        source = self._graph.tensors[t]
        size = ring_bytes(of, end - first, source.dtype)
        ring = self._add_state(f"{source.name} (kept)", source.dtype, size)
        self.rings[t] = ring
        low, high = entering(of, first)
        segment = next(s for s in self.segments[t] if s.span[0] <= low and high <= s.span[1])
        after = self._add(replace(self.tensors[ring], name=f"{source.name} (kept next)"))
        attrs = RingAttrs(end - first, low - segment.span[0], high - low)
        self.pushes.append(Op(OpKind.RING_PUSH, (ring, segment.tensor), (after,), attrs))
        self._set_after(ring, after)

    def _set_after(self, before: int, after: int) -> None:
        self.states = [replace(s, after=after) if s.before == before else s for s in self.states]

    # ---- rows ----------------------------------------------------------------------------------------

    def rows(self, t: int, spans: Spans) -> int:
        """Returns a tensor with these rows of a tensor of the window, in order. Spans may overlap."""
        role = self._maker(t)
        if role is not None:
            source, shift = role
            return self.rows(source, tuple((low + shift, high + shift) for low, high in spans))
        key = (t, spans)
        if key not in self.joined:
            self.joined[key] = self._join(t, spans)
        return self.joined[key]

    def _maker(self, t: int) -> tuple[int, int] | None:
        """For a tensor that is some rows of another one: that one, and the first row."""
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
        """A tensor with the rows of some pieces: the tensor that has no others, or joined rows."""
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
        """The rows of the window that a piece is."""
        tensor, first, rows = piece
        begin = next((s.span[0] for s in self.segments.get(t, ()) if s.tensor == tensor), None)
        begin = self.needs.kept[t][0] if begin is None else begin
        return begin + first, begin + first + rows

    def _piece(self, t: int, low: int, high: int) -> _Piece:
        """Where the rows from `low` on are: the tensor, the first row there, and how many of them."""
        for segment in self.segments.get(t, ()):
            first, end = segment.span
            if first <= low < end:
                return segment.tensor, low - first, min(high, end) - low
        first, end = self.needs.kept[t]
        assert first <= low < end, (t, low, high)
        return self.rings[t], low - first, min(high, end) - low

    def _whole(self, t: int) -> int:
        """All rows of a tensor of the window, in the window's shape; or a tensor without moments."""
        if t not in self._moments:
            return self._same(t)
        if t not in self.same:
            tensor = self._graph.tensors[t]
            rows = self.rows(t, ((0, self._moments[t].rows),))
            self.same[t] = self._as_shape(rows, t, tensor.shape)
        return self.same[t]

    def _as_shape(self, rows: int, t: int, shape: Sequence[int]) -> int:
        """The tensor `rows`, with the values of the window's tensor `t`, in a shape."""
        if self.tensors[rows].shape == tuple(shape):
            return rows
        new = self._add(replace(self._graph.tensors[t], shape=tuple(shape), source=None))
        if rows in self.origins:
            self.origins[new] = self.origins[rows]
        self.ops.append(Op(OpKind.RESHAPE, (rows,), (new,)))
        return new

    # ---- operators -----------------------------------------------------------------------------------

    def _copy(self, op: Op) -> None:
        """Adds an operator as it is, on the whole window."""
        inputs = tuple(self._whole(t) if t >= 0 else t for t in op.inputs)
        self.ops.append(replace(op, inputs=inputs, outputs=tuple(self._same(t) for t in op.outputs)))
        for t in op.outputs:
            self.origins[self.same[t]] = Origin(t, ())

    def _reshape(self, rows: int, op: Op) -> None:
        """Makes the output of `op` from rows that have its bytes."""
        (result,) = op.outputs
        out = self._same(result)
        self.origins[out] = Origin(result, ())
        self.ops.append(Op(OpKind.RESHAPE, (rows,), (out,), index=op.index))

    def _make_rows(self, op: Op, reach: Reach) -> None:
        """Adds an operator for each span of rows that it computes."""
        spans = self.needs.made[op.outputs[0]]
        for span in spans:
            outputs = []
            for t in op.outputs:
                of = self._moments[t]
                new = self._add_rows(t, (span,), of.of_rows(span[1] - span[0]))
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
        of = self._moments[source]
        attrs, taps = self._attrs(op, of, reach, span)
        inputs = []
        for place, t in enumerate(op.inputs):
            if t in self._moments:
                inputs.append(self.rows(t, taps))
            elif t >= 0:
                inputs.append(self._constant(op, place, t, of))
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
        """Whether an operator is a convolution or a pooling that reads and makes images of one column."""
        images = (op.inputs[0], *op.outputs)
        is_sliding = isinstance(op.attrs, ConvAttrs | PoolAttrs)
        is_column = self.tensors[op.inputs[0]].shape[1] > 1
        return is_sliding and is_column and all(self.tensors[t].shape[2] == 1 for t in images)

    def _with_columns(self, op: Op, original: Op) -> Op:
        """The operator with rows and columns exchanged, on images of one row."""
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
        """The image of one column `t` as an image of one row; a RESHAPE makes it if `t` is there already."""
        if t not in self.columns:
            image = self.tensors[t]
            of, rows, width, channels = image.shape
            self.columns[t] = self._add(replace(image, shape=(of, width, rows, channels)))
            self.origins[self.columns[t]] = self.origins[t]
            if t == self.input or any(t in op.outputs for op in self.ops):
                self.ops.append(Op(OpKind.RESHAPE, (t,), (self.columns[t],)))
        return self.columns[t]

    def _constant(self, op: Op, place: int, t: int, of: Moments) -> int:
        """A constant operand in the layout of images: filters are turned, other operands get 4 dimensions."""
        tensor = self._graph.tensors[t]
        if isinstance(op.attrs, ConvAttrs) and place == 1 and of.dim == 2:
            return self._turn(t, "filter", tensor, (0, 2, 1, 3))
        if broadcasts(op) and tensor.elements > 1:
            rank = len(self._graph.tensors[op.outputs[0]].shape)
            shape = [1, 1, 1, 1]
            for d, n in enumerate(tensor.shape, rank - len(tensor.shape)):
                if n > 1:
                    shape[of.dimension(d)] = n
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

    def _attrs(self, op: Op, of: Moments, reach: Reach, span: Span) -> tuple[Attrs, Spans]:
        """An operator's attributes for some rows of its output, and the rows that it reads for them."""
        attrs = op.attrs
        low, high = read_rows(span, reach, of.rows)
        made = span[1] - span[0]
        top = low - (span[0] * reach.stride - reach.pad)
        bottom = (made - 1) * reach.stride + reach.extent - (high - low) - top
        if isinstance(attrs, ConvAttrs | PoolAttrs):
            turned = _turned(attrs) if of.dim == 2 else attrs
            pad = Pad(top, bottom, turned.pad.left, turned.pad.right)
            if isinstance(turned, ConvAttrs) and turned.dilation[0] > made and turned.stride[0] == 1:
                compact, spans = self._compact(turned, of, reach, span)
                if spans:  # not if all taps lie in the padding
                    return compact, spans
            return replace(turned, pad=pad), ((low, high),)
        if isinstance(attrs, PadAttrs):
            inner = {of.dimension(d): sides for d, sides in enumerate(attrs.paddings) if d > of.dim}
            edges = ((0, 0), (top, bottom), inner.get(2, (0, 0)), inner.get(3, (0, 0)))
            return replace(attrs, paddings=edges), ((low, high),)
        if isinstance(attrs, AxisAttrs):
            return replace(attrs, axis=of.dimension(attrs.axis)), ((low, high),)
        if isinstance(attrs, SliceAttrs):
            return _sliced(attrs, of, made), ((low, high),)
        if isinstance(attrs, FullyConnectedAttrs):
            return replace(attrs, keep_num_dims=True), ((low, high),)
        return attrs, ((low, high),)

    def _compact(self, attrs: ConvAttrs, of: Moments, reach: Reach, span: Span) -> tuple[Attrs, Spans]:
        """The attributes of a dilated convolution of few rows, which reads only the rows of its taps.

        Tap k of `made` rows reads as many rows, `dilation` rows after those of tap k - 1. One behind the
        other they are the input of a convolution whose dilation is `made`.
        """
        made, dilation = span[1] - span[0], attrs.dilation[0]
        taps = (reach.extent - 1) // dilation + 1
        begins = [span[0] - reach.pad + k * dilation for k in range(taps)]
        missing = [(max(0, min(made, -b)), max(0, min(made, b + made - of.rows))) for b in begins]
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
        """Adds a pooling that keeps the sums, or the maxima, of the rows that both windows have."""
        graph, (t,) = self._graph, op.inputs[:1]
        of, source = self._moments[t], graph.tensors[t]
        last = self.rows(t, ((of.kept_end, of.rows),))
        first = (self._pool_first(op, of, self.rows(t, ((0, of.top),))),) if of.top else ()
        state = self._add_state(f"{source.name} (kept sums)", DType.INT8, sums_bytes(graph, op, of))
        after = self._add(replace(self.tensors[state], name=f"{source.name} (kept sums next)"))
        self._set_after(state, after)
        attrs = SlidingAttrs(*sums_blocks(of), sums_element(graph, op, of))
        result, (out,) = graph.tensors[op.outputs[0]], op.outputs
        shape = (1, 1, 1, of.channels)
        if op.kind in MAXIMA:
            maxima = self._add(replace(result, name=f"{result.name} (maxima)", shape=shape))
            self.ops.append(Op(OpKind.SLIDING_MAX, (last, state, *first), (maxima, after), attrs, op.index))
            self._reshape(maxima, op)
            return
        sums = self._add(Tensor(f"{result.name} (sums)", shape, DType.INT32))
        self.ops.append(Op(OpKind.SLIDING_SUM, (last, state, *first), (sums, after), attrs, op.index))
        activation = op.attrs.activation if isinstance(op.attrs, PoolAttrs) else PooledAttrs.activation
        assert source.quant is not None
        pooled = PooledAttrs(of.rows, of.width, op.kind, activation, source.quant)
        is_average = op.kind is OpKind.AVERAGE_POOL_2D
        kind = OpKind.AVERAGE_OF_SUMS if is_average else OpKind.MEAN_OF_SUMS
        new = self._same(out)
        self.origins[new] = Origin(out, ())
        self.ops.append(Op(kind, (sums,), (new,), pooled, op.index))

    def _pool_first(self, op: Op, of: Moments, rows: int) -> int:
        """The sums, or the maxima, of the window's first rows, which are computed anew."""
        shape, name = (1, 1, 1, of.channels), self.tensors[rows].name
        if op.kind in MAXIMA:
            if self.tensors[rows].shape[1:3] == (1, 1):
                return rows
            maxima = self._add(replace(self.tensors[rows], name=f"{name} (maxima)", shape=shape))
            attrs = PoolAttrs((of.top, of.width), (1, 1))
            self.ops.append(Op(OpKind.MAX_POOL_2D, (rows,), (maxima,), attrs, op.index))
            return maxima
        sums = self._add(Tensor(f"{name} (sums)", shape, DType.INT32))
        self.ops.append(Op(OpKind.ROW_SUMS, (rows,), (sums,), index=op.index))
        return sums


def _without_unread(ops: Sequence[Op], read: set[int]) -> list[Op]:
    """The operators without RESHAPEs whose results nothing reads."""
    read = read.union(*(op.inputs for op in ops))
    return [op for op in ops if op.kind is not OpKind.RESHAPE or read.intersection(op.outputs)]


def _runs(pieces: Sequence[_Piece], tensors: Sequence[Tensor]) -> list[list[_Piece]]:
    """Groups pieces that have to be copied. A piece that is a whole tensor stands alone."""
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
    """The attributes of the same operator with rows and columns exchanged."""
    stride, pad = attrs.stride[::-1], attrs.pad
    turned = Pad(pad.left, pad.right, pad.top, pad.bottom)
    if isinstance(attrs, ConvAttrs):
        return replace(attrs, stride=stride, pad=turned, dilation=attrs.dilation[::-1])
    return replace(attrs, stride=stride, pad=turned, kernel=attrs.kernel[::-1])


def _sliced(attrs: SliceAttrs, of: Moments, rows: int) -> SliceAttrs:
    """The attributes of a slice of `rows` rows as an image."""
    begin, stride, extent = [0] * 4, [1] * 4, [1, rows, of.width, of.channels]
    for d in range(of.dim + 1, len(attrs.begin)):
        at = of.dimension(d)
        begin[at], stride[at], extent[at] = attrs.begin[d], attrs.stride[d], attrs.extent[d]
    return replace(attrs, begin=tuple(begin), stride=tuple(stride), extent=tuple(extent))
