"""Which rows of each tensor a hop computes, and which rows it keeps for the next one.

Needs go from the outputs to the input: an operator computes the rows that are read and not kept, and reads
the rows of its inputs from which it computes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from buildtool.graph.hop.moments import MAXIMA, Analysis, Moments, Reach, Role, Work
from buildtool.graph.hop.spans import Span, Spans, count, union, within, without
from buildtool.graph.hop.types import Hop, Kept
from buildtool.graph.macs import op_macs
from buildtool.graph.types import DType, Graph, Op

STATE_ALIGNMENT = 16  # bytes, of each state, where choices are compared; a plan has the board's
PLACE_BYTES = 4  # a ring's place of the oldest row, or one sum

# (tensor, wanted rows) -> the first row to keep, or None. Wanted rows are read, and could be kept.
Choose = Callable[[int, Spans], int | None]


@dataclass
class Needs:
    """What a hop computes and keeps. `made` and `kept` map tensors to rows, and `sums` are poolings.

    `macs`: multiply-accumulates of a hop. `work`: the same, and the elements that operators read or write
    without any. `state_bytes`: bytes that are kept from hop to hop.
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
        """The choices, as a plan records them."""
        kept = tuple(Kept(t, span[0]) for t, span in sorted(self.kept.items()))
        return Hop(self.analysis.hop, kept, tuple(sorted(self.sums)))


def find_needs(analysis: Analysis, choose: Choose, keeps_sums: Callable[[int], bool]) -> Needs:
    """Returns what a hop computes if `choose` says what is kept of each tensor.

    `keeps_sums` says it for each pooling over all moments, by the operator's position.
    """
    return _Finder(Needs(analysis), choose, keeps_sums).find()


def needs_of(analysis: Analysis, hop: Hop) -> Needs:
    """Returns what a hop computes with the choices of a plan. Rows that nothing reads are not kept."""
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
        of = next((moments[t] for t in op.inputs if t in moments), None)
        if role.work in (Work.ROWS, Work.SAME, Work.MOVED):
            self._visit_rows(op, role)
            return
        self._add_work(op_macs(graph, op))
        if role.work is Work.NONE or of is None:
            return
        rows: Spans = ((0, of.rows),)
        if role.work is Work.PICKS:
            rows = ((-role.reach.pad, -role.reach.pad + 1),)
        elif role.work is Work.POOLS and can_keep_sums(graph, op, of) and self.keeps_sums(position):
            rows = union(((0, of.top), (of.kept_end, of.rows)))
            needs.sums.append(position)
            needs.state_bytes += _aligned(sums_bytes(graph, op, of))
        for t in op.inputs:
            self._need(t, rows)
        needs.work += count(rows) * of.width * of.channels

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
        of, out = next(moments[t] for t in op.inputs if t in moments), moments[op.outputs[0]]
        made = union(_grown(span, role.reach, of.rows, out.rows) for span in made)
        for t in op.outputs:
            needs.made[t] = made
        graph = needs.analysis.graph
        self._add_work(op_macs(graph, op) * count(made) // out.rows)
        needs.work += count(made) * out.width * out.channels
        read = tuple(read_rows(span, role.reach, of.rows) for span in made)
        for t in op.inputs:
            self._need(t, read)

    def _keep(self, t: int) -> Spans:
        """Decides what is kept of a tensor. Returns the rows that have to be computed."""
        needs, of = self.needs, self.needs.analysis.moments[t]
        rows = needs.needed.get(t, ())
        tensor = needs.analysis.graph.tensors[t]
        wanted = within(rows, of.top, of.kept_end)
        needs.wanted[t] = wanted
        first = self.choose(t, wanted) if wanted else None
        if first is None or first >= of.kept_end:
            return rows
        first = max(first, of.top)
        needs.kept[t] = (first, of.kept_end)
        needs.state_bytes += _aligned(ring_bytes(of, of.kept_end - first, tensor.dtype))
        return union((*without(rows, first, of.kept_end), entering(of, first)))


def entering(of: Moments, first: int) -> Span:
    """The rows of this window that a ring takes over, which keeps rows from `first` on."""
    end = of.kept_end + of.shift
    return end - min(of.shift, of.kept_end - first), end


def ring_bytes(of: Moments, rows: int, dtype: DType) -> int:
    """Bytes of a ring of `rows` rows of a tensor."""
    size = rows * of.width * of.channels * dtype.size
    return size + -size % PLACE_BYTES + PLACE_BYTES


def can_keep_sums(graph: Graph, op: Op, of: Moments) -> bool:
    """Whether a pooling over all moments can keep its sums or maxima."""
    source = graph.tensors[op.inputs[0]]
    return source.dtype in (DType.INT8, DType.INT16) and of.kept_end > of.top


def sums_blocks(of: Moments) -> tuple[int, tuple[int, ...]]:
    """Blocks of rows whose sums (or maxima) a pooling keeps: how many, and the rows of each that enters.

    The rows that leave at a hop entered some whole hops ago, and `late` rows before. So a hop's rows enter as
    two blocks, and leave as the second block of one hop and the first one of the next.
    """
    hops, late = divmod(of.rows - of.bottom - of.top, of.shift)
    if not late:
        return hops, (of.shift,)
    return 2 * hops + 1, (of.shift - late, late)


def sums_element(graph: Graph, op: Op, of: Moments) -> int:
    """Bytes of an element of a ring of sums (or maxima), which holds those of a block of rows."""
    size, most = graph.tensors[op.inputs[0]].dtype.size, max(sums_blocks(of)[1]) * of.width
    if op.kind in MAXIMA or most == 1:
        return size
    return 2 if size == 1 and most < 256 else 4


def sums_bytes(graph: Graph, op: Op, of: Moments) -> int:
    """Bytes of the state of a pooling that keeps sums or maxima."""
    ring = sums_blocks(of)[0] * of.channels * sums_element(graph, op, of)
    totals = 0 if op.kind in MAXIMA else of.channels * PLACE_BYTES
    return ring + -ring % PLACE_BYTES + PLACE_BYTES + totals


def _aligned(size: int) -> int:
    return size + -size % STATE_ALIGNMENT


def read_rows(span: Span, reach: Reach, rows: int) -> Span:
    """The rows of an input that an operator reads for some rows of its output."""
    low = span[0] * reach.stride - reach.pad
    high = (span[1] - 1) * reach.stride - reach.pad + reach.extent
    return max(0, low), min(rows, high)


def _grown(span: Span, reach: Reach, rows: int, out_rows: int) -> Span:
    """The span, made longer until it reads at least one row: all of its windows may lie in the padding."""
    low, high = span
    while True:
        first, end = read_rows((low, high), reach, rows)
        if first < end or (low == 0 and high == out_rows):
            return low, high
        if low * reach.stride - reach.pad < 0:
            high = min(high + 1, out_rows)
        else:
            low = max(low - 1, 0)
