"""Finds which rows of each tensor a hop computes, and which rows it keeps for the next hop.

The search goes from the network's outputs to its input. An operator computes the output rows that are read
and not kept. These determine the input rows that it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from buildtool.graph.hop.moments import MAXIMA, Analysis, Moments, Reach, Role, Work
from buildtool.graph.hop.spans import Span, Spans, count, union, within, without
from buildtool.graph.hop.types import Hop, Kept
from buildtool.graph.macs import op_macs
from buildtool.graph.types import DType, Graph, Op

STATE_ALIGNMENT = (
    16  # bytes; states are aligned to them when choices are compared. A plan uses the board's alignment
)
PLACE_BYTES = 4  # a ring's place of the oldest row, or one sum

# (tensor, rows that are read and could be kept) -> the first row to keep, or None to keep none.
Choose = Callable[[int, Spans], int | None]


@dataclass
class Needs:
    """What a hop computes and keeps. The mappings are from tensors to rows of the window.

    `needed`: rows that are read.
    `made`: rows that the hop computes.
    `kept`: rows that are kept for the next hop.
    `wanted`: rows that are read and could be kept, as the last hop had them, too.
    `sums`: positions of the poolings that keep sums or maxima.
    `macs`: multiply-accumulates of a hop.
    `work`: `macs`, plus the elements that operators on rows write and all other operators read.
    `state_bytes`: bytes that are kept from hop to hop.
    """

    analysis: Analysis
    needed: dict[int, Spans] = field(default_factory=dict)
    made: dict[int, Spans] = field(default_factory=dict)
    kept: dict[int, Span] = field(default_factory=dict)
    wanted: dict[int, Spans] = field(default_factory=dict)
    sums: list[int] = field(default_factory=list)
    macs: int = 0
    work: int = 0
    state_bytes: int = 0

    @property
    def hop(self) -> Hop:
        """What is kept, as a plan records it."""
        kept = tuple(Kept(t, span[0]) for t, span in sorted(self.kept.items()))
        return Hop(self.analysis.hop, kept, tuple(sorted(self.sums)))


def find_needs(analysis: Analysis, choose: Choose, keeps_sums: Callable[[int], bool]) -> Needs:
    """Returns what a hop computes and keeps.

    `choose` decides which rows of each tensor are kept. `keeps_sums` decides for each pooling over all
    moments, given its position, whether it keeps sums or maxima.
    """
    return _Finder(Needs(analysis), choose, keeps_sums).find()


def needs_of(analysis: Analysis, hop: Hop) -> Needs:
    """Returns what a hop computes with what a plan keeps. Rows that no operator reads are not kept."""
    first = {one.tensor: one.first for one in hop.kept}
    return find_needs(analysis, lambda t, _: first.get(t), lambda position: position in hop.sums)


@dataclass
class _Finder:
    needs: Needs
    choose: Choose
    keeps_sums: Callable[[int], bool]

    def find(self) -> Needs:
        needs, graph = self.needs, self.needs.analysis.graph
        moments = needs.analysis.moments
        for t in graph.outputs:
            self._need(t, ((0, moments[t].rows),) if t in moments else ())
        for position in reversed(range(len(graph.ops))):
            self._visit(position, graph.ops[position], needs.analysis.roles[position])
        first = needs.analysis.input
        self.choose = lambda _, wanted: wanted[0][0]  # nothing can compute the input's rows again
        self._keep(first)
        needs.made[first] = ((moments[first].rows - moments[first].shift, moments[first].rows),)
        return needs

    def _need(self, t: int, rows: Spans) -> None:
        if t in self.needs.analysis.moments:
            self.needs.needed[t] = union((*self.needs.needed.get(t, ()), *rows))

    def _visit(self, position: int, op: Op, role: Role) -> None:
        needs, moments = self.needs, self.needs.analysis.moments
        graph = needs.analysis.graph
        layout = next((moments[t] for t in op.inputs if t in moments), None)
        if role.work in (Work.ROWS, Work.SAME, Work.MOVED):
            self._visit_rows(op, role)
            return
        self._add_work(op_macs(graph, op))
        if role.work is Work.NONE or layout is None:
            return
        rows: Spans = ((0, layout.rows),)
        if role.work is Work.PICKS:
            rows = ((-role.reach.pad, -role.reach.pad + 1),)
        elif role.work is Work.POOLS and can_keep_sums(graph, op, layout) and self.keeps_sums(position):
            rows = union(((0, layout.top), (layout.kept_end, layout.rows)))
            needs.sums.append(position)
            needs.state_bytes += _aligned(sums_bytes(graph, op, layout))
        for t in op.inputs:
            self._need(t, rows)
        needs.work += count(rows) * layout.width * layout.channels

    def _add_work(self, macs: int) -> None:
        self.needs.macs += macs
        self.needs.work += macs

    def _visit_rows(self, op: Op, role: Role) -> None:
        needs = self.needs
        if role.work is not Work.ROWS:
            shift = -role.reach.pad
            rows = needs.needed.get(op.outputs[0], ())
            self._need(op.inputs[0], tuple((a + shift, b + shift) for a, b in rows))
            return
        made: Spans = ()
        for t in op.outputs:
            made = union((*made, *self._keep(t)))
        moments = needs.analysis.moments
        layout, out = next(moments[t] for t in op.inputs if t in moments), moments[op.outputs[0]]
        made = union(_grown(span, role.reach, layout.rows, out.rows) for span in made)
        for t in op.outputs:
            needs.made[t] = made
        graph = needs.analysis.graph
        self._add_work(op_macs(graph, op) * count(made) // out.rows)
        needs.work += count(made) * out.width * out.channels
        read = tuple(read_rows(span, role.reach, layout.rows) for span in made)
        for t in op.inputs:
            self._need(t, read)

    def _keep(self, t: int) -> Spans:
        """Decides which rows of tensor `t` are kept. Returns the rows that have to be computed."""
        needs, layout = self.needs, self.needs.analysis.moments[t]
        rows = needs.needed.get(t, ())
        tensor = needs.analysis.graph.tensors[t]
        wanted = within(rows, layout.top, layout.kept_end)
        needs.wanted[t] = wanted
        first = self.choose(t, wanted) if wanted else None
        if first is None or first >= layout.kept_end:
            return rows
        first = max(first, layout.top)
        needs.kept[t] = (first, layout.kept_end)
        needs.state_bytes += _aligned(ring_bytes(layout, layout.kept_end - first, tensor.dtype))
        return union((*without(rows, first, layout.kept_end), entering(layout, first)))


def entering(layout: Moments, first: int) -> Span:
    """Returns the rows of the window that a hop adds to a ring. The ring keeps rows from row `first` on."""
    end = layout.kept_end + layout.shift
    return end - min(layout.shift, layout.kept_end - first), end


def ring_bytes(layout: Moments, rows: int, dtype: DType) -> int:
    """Returns the bytes of a ring that keeps `rows` rows of a tensor."""
    size = rows * layout.width * layout.channels * dtype.size
    return size + -size % PLACE_BYTES + PLACE_BYTES


def can_keep_sums(graph: Graph, op: Op, layout: Moments) -> bool:
    """Whether a pooling over all moments can keep its sums or maxima."""
    source = graph.tensors[op.inputs[0]]
    return source.dtype in (DType.INT8, DType.INT16) and layout.kept_end > layout.top


def sums_blocks(layout: Moments) -> tuple[int, tuple[int, ...]]:
    """Returns (number of blocks whose sums or maxima a pooling keeps, rows of each block that a hop adds).

    A block is rows that enter the window together and leave it together. A hop adds `shift` rows. If the
    pooling's rows are not a multiple of `shift`, the rows that leave at a hop entered at two hops: the later
    rows of one hop, and the earlier rows of the next one. So a hop then adds two blocks, of shift - late and
    of `late` rows, where `late` is the remainder.
    """
    hops, late = divmod(layout.rows - layout.bottom - layout.top, layout.shift)
    if not late:
        return hops, (layout.shift,)
    return 2 * hops + 1, (layout.shift - late, late)


def sums_element(graph: Graph, op: Op, layout: Moments) -> int:
    """Returns the bytes of an element in a pooling's ring.

    An element is the sum, or the maximum, of a block of rows.
    """
    size, most = graph.tensors[op.inputs[0]].dtype.size, max(sums_blocks(layout)[1]) * layout.width
    if op.kind in MAXIMA or most == 1:
        return size
    return 2 if size == 1 and most < 256 else 4


def sums_bytes(graph: Graph, op: Op, layout: Moments) -> int:
    """Returns the bytes of the state of a pooling that keeps sums or maxima."""
    ring = sums_blocks(layout)[0] * layout.channels * sums_element(graph, op, layout)
    totals = 0 if op.kind in MAXIMA else layout.channels * PLACE_BYTES
    return ring + -ring % PLACE_BYTES + PLACE_BYTES + totals


def _aligned(size: int) -> int:
    return size + -size % STATE_ALIGNMENT


def read_rows(span: Span, reach: Reach, rows: int) -> Span:
    """Returns the input rows that an operator reads for the output rows `span`.

    `rows`: how many rows the input has.
    """
    low = span[0] * reach.stride - reach.pad
    high = (span[1] - 1) * reach.stride - reach.pad + reach.extent
    return max(0, low), min(rows, high)


def _grown(span: Span, reach: Reach, rows: int, out_rows: int) -> Span:
    """Returns the output rows `span`, and more rows if all windows of `span` lie in the padding.

    The windows of the result meet at least one of the input's `rows` rows. `out_rows`: the rows of the
    output.
    """
    low, high = span
    while True:
        first, end = read_rows((low, high), reach, rows)
        if first < end or (low == 0 and high == out_rows):
            return low, high
        if low * reach.stride - reach.pad < 0:
            high = min(high + 1, out_rows)
        else:
            low = max(low - 1, 0)
