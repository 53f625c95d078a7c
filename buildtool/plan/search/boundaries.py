"""The surroundings of a region: the live tensors at its ends, its input, and elements that run alone.

Elements are the operators that run. A region's memory is the sum of everything in it: tensors that cross it,
its input and output (which may overlap row by row), its rings, its accumulators, and the largest of its
blocks' windows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from buildtool.base.modes import InPlace
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.axis import Numbers
from buildtool.plan.schedule.overlap import distance, slices_in_place
from buildtool.plan.search.blocks import Blocks
from buildtool.plan.search.chain import Elements
from buildtool.plan.search.forms import ChainKeys
from buildtool.plan.search.sections import section_progress
from buildtool.target.types import Contract

_CONTRACTS: dict[InPlace, tuple[Contract, ...]] = {
    InPlace.ROWS: (Contract.ROW, Contract.PIXEL, Contract.PARTS),
    InPlace.ELEMENTWISE: (Contract.PIXEL,),
    InPlace.NONE: (),
}


@dataclass(frozen=True)
class Source:
    """The tensor that feeds a region at its first element.

    tensor: its root (see alias_roots).
    rows, row: the region reads it as `rows` rows of `row` bytes each.
    size: aligned bytes of the whole tensor.
    last: the last element that needs it.
    streamed: whether it is delivered row by row, so that a ring is enough.
    """

    tensor: int
    rows: int
    row: int
    size: int
    last: int
    streamed: bool


@dataclass(frozen=True)
class Boundaries:
    """The properties of a network's cuts and elements that the search reads.

    A cut is a position between elements (operators that run). `blocks` has the properties of blocks.
    """

    blocks: Blocks

    @property
    def e(self) -> Elements:
        """Returns the network's elements (operators that run)."""
        return self.blocks.e

    @cached_property
    def chain_keys(self) -> ChainKeys:
        """Returns the cache keys of chains. They do not contain how many rows later elements need."""
        return ChainKeys(self.blocks)

    @cached_property
    def keys(self) -> tuple[Hashable, ...]:
        """Returns element -> the key of the chains that end with it. Equal keys mean equal block forms."""
        return tuple((self.chain_keys.of(last), self.least_wanted[last + 1]) for last in range(self.e.count))

    @cached_property
    def least_wanted(self) -> tuple[int, ...]:
        """Returns cut -> the fewest rows of the tensor before it that later elements of a region need."""
        e = self.e
        needed = [0, *e.heights]
        for cut in range(e.count - 1, 0, -1):
            if e.feeds[cut - 1]:
                needed[cut] = min(needed[cut], max(0, e.axes_of[cut][0].high(needed[cut + 1])))
                for section in filter(None, self.blocks.sections):
                    if section.first == cut:
                        needed[cut] = min(needed[cut], section.lanes.wanted(needed[section.last + 1])[-1])
        return tuple(needed)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Returns element -> aligned bytes of its output."""
        return tuple(self.e.sizes[t] for t in self.e.makes)

    @cached_property
    def least_rows(self) -> tuple[int, ...]:
        """Returns cut -> the fewest rows that a ring at this cut must have.

        It must keep rows until later additions have read them, too.
        """
        least = [1] * (self.e.count + 1)
        for cut in range(1, self.e.count):
            for reader in self.e.readers.get(self.e.makes[cut - 1], ()):
                if reader > cut and all(self.e.feeds[cut:reader]):  # else a section counts it
                    least[cut] = max(least[cut], self._ahead(cut, reader))
        return tuple(least)

    def _ahead(self, cut: int, reader: int) -> int:
        """Returns the rows that a ring at a cut needs until `reader` has read them.

        `reader`: a later element that also reads the ring's tensor.
        """
        elements = range(cut, reader + 1)
        steps = [self.e.axes_of[e][0] for e in elements]
        if not any(self.e.uneven[e] for e in elements):
            return 1 + sum(a.kernel - 1 - a.pad for a in steps)
        rows = np.arange(1, self.least_wanted[reader + 1] + 1)
        there = rows
        for e, axis in zip(reversed(elements), reversed(steps), strict=True):
            there = np.clip(axis.highs(there), 0, self.e.input_rows(e))
        return int((there - rows).max(initial=0)) + 1

    # ---- regions ---------------------------------------------------------------------------------

    @cached_property
    def live(self) -> tuple[int, ...]:
        """Returns cut -> aligned bytes of the tensors that must be complete in memory at this cut."""
        return tuple(sum(self.e.sizes[t] for t in held) for held in self.e.live)

    @cached_property
    def held(self) -> tuple[int, ...]:
        """Returns end of a region -> aligned bytes of its output and of all complete tensors at this cut."""
        both = zip(self.e.live, ((), *((t,) for t in self.e.makes)), strict=True)
        return tuple(sum(self.e.sizes[t] for t in live.union(own)) for live, own in both)

    @cached_property
    def lowest_first(self) -> tuple[int, ...]:
        """Returns end of a region -> the lowest element with which the region may begin.

        Elements after the region may read no tensor that the region computes, except its output.
        """
        both = zip(self.e.live, (-1, *self.e.makes), strict=True)
        return tuple(max((self.e.made_at[t] for t in live - {own}), default=-1) + 1 for live, own in both)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """Returns element -> the tensor that feeds a region that begins with this element."""
        sources = []
        for element, read in enumerate(self.e.main):
            root, tensor = self.e.roots[read], self.e.graph.tensors[read]
            streamed = self.e.fed(element)
            sizes = tensor.nhwc[1], tensor.row_bytes, self.e.sizes[root]
            sources.append(Source(root, *sizes, self.e.last_read[root], streamed))
        return tuple(sources)

    @cached_property
    def wholes(self) -> tuple[int, ...]:
        """Returns element -> the aligned bytes that are live when it runs alone, all rows in one step.

        For an element of a fusion in slices, they are the bytes of the whole fusion.
        """
        fused = self.e.fused
        return tuple(
            self._whole_fusion(fused[e]) if e in fused else self._whole(e) for e in range(self.e.count)
        )

    def _whole_fusion(self, elements: range) -> int:
        """Returns the live bytes of a fusion in slices.

        Each slice of the output overwrites the end of a branch. One row of the joined tensor needs extra
        space.
        """
        row = self.e.graph.tensors[self.e.makes[elements.start]].row_bytes
        scratch = max(self.e.scratch[element] for element in elements)
        return self.live[elements.start] + round_up(row, self.e.alignment) + scratch

    def _whole(self, element: int) -> int:
        e, saved = self.e, self._saved(element)
        tensors = e.live[element] | {e.roots[t] for t in e.ops[element].outputs}
        least = sum(e.sizes[t] for t in tensors) + e.scratch[element] - saved
        if not e.loaded:
            return least
        whole, part = e.loaded[e.positions[element]]  # bytes of all constants, and of the smallest slices
        if part < whole and not self._slices_in_place(element):
            part += saved
        return least + min(whole, part)

    def _slices_in_place(self, element: int) -> bool:
        """Returns whether an operator that computes its channels slice by slice may write over its input.

        A depthwise convolution may, if its output lies whole pixels below its input.
        """
        op = self.e.ops[element]
        apart = self._apart(element, op.inputs[0])
        if apart is None or not slices_in_place(self.e.graph, op):
            return False
        pixel = self.e.graph.tensors[op.outputs[0]].pixel_bytes
        return round_up(max(0, apart), self.e.alignment) % pixel == 0

    def _saved(self, element: int) -> int:
        """Returns the bytes that a kernel over whole tensors may save by writing over its input."""
        e = self.e
        op, kernel = e.ops[element], e.own_kernels[element]
        contracts = _CONTRACTS[InPlace(e.in_place)]
        if kernel is None or kernel.overlap not in contracts or len(op.outputs) != 1:
            return 0
        own, lows = e.sizes[op.outputs[0]], list[tuple[int, int]]()  # lowest offset above the output, bytes
        for t in op.inputs:
            if t not in e.roots or [e.roots.get(u) for u in op.inputs].count(e.roots[t]) > 1:
                continue
            apart = None if e.last_read[e.roots[t]] > element else self._apart(element, t)
            if apart is not None:
                lows.append((round_up(max(0, apart), e.alignment), e.sizes[e.roots[t]]))
        if kernel.overlap is Contract.PARTS:
            return _saved_by_parts(own, [(low, size) for low, size in lows if low < own])
        return max((own + size - max(own, low + size) for low, size in lows), default=0)

    def _apart(self, element: int, operand: int) -> int | None:
        kernel = self.e.own_kernels[element]
        return distance(self.e.graph, self.e.ops[element], operand, kernel.overlap) if kernel else None

    # ---- the same as arrays, with the columns of labels.c ------------------------------------------

    @cached_property
    def element_rows(self) -> Numbers:
        """Returns the properties of each element as a row of numbers, with the columns of labels.c."""
        e, rows = self.e, list[tuple[int, ...]]()
        for k, (source_tensor, output_tensor, source) in enumerate(
            zip(e.main, e.makes, self.sources, strict=True)
        ):
            axis, fed, output = (
                e.axes_of[k][0],
                e.graph.tensors[source_tensor],
                e.graph.tensors[output_tensor],
            )
            rows.append(
                (
                    *(e.heights[k], source.rows, axis.kernel, axis.stride, axis.pad),
                    *(
                        output.nhwc[1],
                        output.row_bytes,
                        output_tensor,
                        fed.row_bytes,
                        source_tensor in e.read_whole[k],
                    ),
                    *(source.tensor, source.row, source.last, source.size, source.streamed),
                    *(
                        e.feeds[k],
                        e.last_read[output_tensor],
                        self.sizes[k],
                        self.wholes[k],
                        e.fed_in_parts[k],
                    ),
                )
            )
        return table(rows, 20)

    @cached_property
    def cut_columns(self) -> tuple[Sequence[int], ...]:
        """Returns the numbers of all cuts that labels.c reads, as columns with one number per cut.

        The last column has the index of the first row in `read_besides` for the element after the cut.
        """
        firsts = np.cumsum([0, *map(len, self.e.beside)]).tolist()
        return self.live, self.held, self.lowest_first, self.least_rows, self.least_wanted, firsts

    @cached_property
    def read_besides(self) -> Numbers:
        """Returns a row of numbers for each input of an element other than its main input.

        The inputs are those of `Elements.beside`. The columns are the input's root, the bytes of a row,
        whether a ring of rows is enough, and whether the element needs all rows for every row that it makes.
        """
        e, rows = self.e, list[tuple[int, ...]]()
        for element, beside in enumerate(e.beside):
            for tensor in beside:
                root = e.roots[tensor]
                in_ring = root == tensor and tensor in e.rows_read[element]
                row_bytes = e.graph.tensors[tensor].row_bytes
                rows.append((root, row_bytes, in_ring, tensor in e.read_whole[element]))
        return table(rows, 4)

    @cached_property
    def section_rows(self) -> tuple[Numbers, Numbers]:
        """Returns the numbers of all sections that labels.c reads.

        For each section these are five lists: the input rows that each number of output rows needs, both
        lists of `section_progress`, `Section.read_from` and `Section.read_after`. The first result has a row
        per section, which says where its lists begin in the second result. That is an array with all lists,
        one after the other.
        """
        rows, begins = list[int](), list[list[int]]()
        for section in filter(None, self.blocks.sections):
            progress = section_progress(section, self.sources[section.first].rows)
            heights = range(section.lanes.lanes[-1].height + 1)  # of the output
            needed = [section.lanes.wanted(height)[-1] for height in heights]  # of the input
            begins.append([])
            for numbers in (needed, *progress, section.read_from, section.read_after):
                begins[-1].append(len(rows))
                rows += numbers
        return table(begins, 5), np.array([*rows, 0], np.int64)


def table(rows: Iterable[Sequence[int]], columns: int) -> Numbers:
    """Returns an array of rows of numbers, with a row of zeros at the end, so that it is never empty."""
    return np.ascontiguousarray([*rows, (0,) * columns], np.int64)


def _saved_by_parts(own: int, lows: Sequence[tuple[int, int]]) -> int:
    """Returns the bytes saved if the parts of a concatenation lie one after the other over its output.

    Each part lies as low as possible. `own`: bytes of the output. `lows`: for each part its lowest offset
    from the output's beginning, and its bytes.
    """
    end = 0
    for low, size in lows:
        end = max(low, end) + size
    return own + sum(size for _, size in lows) - max(own, end)
