"""What the search adds up: blocks as plain numbers, and what surrounds a region.

A region's memory is the sum of everything in it: tensors that cross it, its input and output (which
may overlap row by row), its rings, accumulators, and the largest of its blocks' windows.

Weights are what is to be least: multiply-accumulates, or the target's cost in 1 / COST_UNITS. A
block's `extra` is its weight beyond that of its elements run once, one by one; below 0 where rows
are left out that nothing needs.
"""

from __future__ import annotations

import enum
from bisect import bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from buildtool.base.modes import Image, InPlace
from buildtool.base.session import Level
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.axis import Axis
from buildtool.plan.schedule.overlap import distance, slices_in_place
from buildtool.plan.search.blocks import Block, Blocks, Form, Lags, Rows
from buildtool.plan.search.chain import Elements
from buildtool.plan.search.forms import SCHEMA, ChainKeys, FormRow, as_rows, packed, unpacked
from buildtool.target.costs import COST_UNITS
from buildtool.target.types import Contract

MOST_CHAINS = 2048  # whose block forms a session keeps, of a few kilobytes each
_LEAST_EXTRA = FormRow._fields.index("least_extra")
_CONTRACTS: dict[InPlace, tuple[Contract, ...]] = {
    InPlace.ROWS: (Contract.ROW, Contract.PIXEL, Contract.PARTS),
    InPlace.ELEMENTWISE: (Contract.PIXEL,),
    InPlace.NONE: (),
}


class Objective(enum.Enum):
    """What is to be least."""

    WORK = "work"  # multiply-accumulates
    COST = "cost"  # the target's estimate


class BlockForm(NamedTuple):
    """A block in one of its forms."""

    first: int
    step: int
    window: int
    sums: int
    extra: int
    least_extra: int  # of as few rows as anything ever wants
    axis: Axis
    lags: Lags
    block: Block
    form: Form


@dataclass(frozen=True)
class Source:
    """The tensor through which a region that begins here is fed.

    `rows` of `row` bytes, as it is read; `size`: aligned bytes of the whole; `last`: the last element that
    needs it; `streamed`: delivered row by row, so that a ring is enough.
    """

    tensor: int
    rows: int
    row: int
    size: int
    last: int
    streamed: bool


@dataclass(frozen=True)
class Tables:
    """Everything the search asks of a graph, for one objective."""

    e: Elements
    blocks: Blocks
    objective: Objective

    @cached_property
    def count(self) -> int:
        """Elements."""
        return len(self.e.positions)

    @cached_property
    def before(self) -> tuple[int, ...]:
        """Cut -> weight of all elements before it, run once, one by one."""
        if self.objective is Objective.WORK:
            return self.e.work_before
        return (0, *accumulate(round(cost * COST_UNITS) for cost in self.e.cost))

    # ---- blocks ----------------------------------------------------------------------------------

    def endings(self, last: int) -> list[BlockForm]:
        """The blocks that end at an element, in all forms worth a look."""
        return [self._placed(row, last) for row in self.rows_of(last).tolist()]

    def form(self, number: int) -> BlockForm:
        """A block form by its number: all are counted through, by the element that they end at."""
        last = bisect_right(self.starts, number) - 1
        return self._placed(self.rows_of(last)[number - self.starts[last]].tolist(), last)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Element -> the number of the first block form that ends there; then the number of all."""
        return (0, *accumulate(len(self.rows_of(last)) for last in range(self.count)))

    @cached_property
    def spare(self) -> int:
        """The most weight that blocks which leave rows out may win back, over all elements."""
        least = {
            key: min(0, int(self.rows_of(last)[:, _LEAST_EXTRA].min(initial=0)))
            for key, last in self._distinct.items()
        }
        return -sum(least[key] for key in self.keys)

    def rows_of(self, last: int) -> Rows:
        """The block forms that end at an element, a row each, whose columns FormRow names.

        Elements with equal keys have the same rows. A session keeps them for all networks: `ChainKeys.plain`
        is the whole question, and no row has the number of an element or a tensor in it.
        """
        key = self.keys[last]
        if key not in self._by_key:
            kept_as = self._kept_as(last)
            self._by_key[key] = (
                self.blocks.session.keep(*kept_as, lambda: self._rows(last), MOST_CHAINS)
                if kept_as
                else self._rows(last)
            )
        return self._by_key[key]

    def _kept_as(self, last: int) -> tuple[Level[Rows], dict[str, Hashable]] | None:
        """Under what a session keeps an element's rows; None where no key says all that they depend on."""
        plain = self._chain_keys.plain(last, self.objective is Objective.COST)
        if plain is None:
            return None
        wanted = self.least_wanted[last + 1]
        parts = {"schema": SCHEMA, "objective": self.objective.value, "wanted": wanted, "chain": plain}
        longest = last - self.blocks.lowest(last)
        return Level("tables", packed, lambda data: unpacked(data, longest)), parts

    def _rows(self, last: int) -> Rows:
        """The rows of an element, made from its blocks."""
        return as_rows(self._row(block, form) for block, form in self._found(last))

    @cached_property
    def _by_key(self) -> dict[Hashable, Rows]:
        return {}

    @cached_property
    def keys(self) -> tuple[Hashable, ...]:
        """Last element -> the key of its chains: equal ones have equal block forms."""
        return tuple((self._chain_keys.of(last), self.least_wanted[last + 1]) for last in range(self.count))

    @cached_property
    def _chain_keys(self) -> ChainKeys:
        return ChainKeys(self.blocks)

    @cached_property
    def _distinct(self) -> dict[Hashable, int]:
        """Key -> the first element that has it."""
        first: dict[Hashable, int] = {}
        for last, key in enumerate(self.keys):
            first.setdefault(key, last)
        return first

    def _placed(self, row: Sequence[int], last: int) -> BlockForm:
        """A block form at an element with these rows."""
        it = FormRow(*row)
        first, axis = last - it.back, Axis(it.kernel, it.stride, it.pad)
        window = it.window + self.e.constants(first, last)
        block = self.blocks.block(first, last, it.step, axis, it.sums, it.work, it.section == 1)
        form = Form(self.blocks.group(block, it.hand_off), window, it.late)
        return BlockForm(
            first, it.step, window, it.sums, it.extra, it.least_extra, axis, block.lags, block, form
        )

    @cached_property
    def nothing_saves(self) -> bool:
        """Whether no way weighs less than all elements run one by one: no block weighs less than its own."""
        return all(
            self.extra(block, Form(group, 0, 0), rows) >= 0
            for last in self._distinct.values()
            for block in self.blocks.ending_at(last)
            for group in self.blocks.groups(block)
            for rows in {self.e.heights[last], min(self.e.heights[last], self.least_wanted[last + 1])}
        )

    def _found(self, last: int) -> Iterator[tuple[Block, Form]]:
        """The blocks that end at an element, and the forms of each that are worth a look."""
        fewest: dict[int, int] = {}  # first element -> work
        for block in self.blocks.ending_at(last):
            if self.objective is Objective.COST:
                yield from ((block, form) for form, _ in self.blocks.forms(block))
            elif block.work < fewest.get(block.first, block.work + 1):  # more rows in one go save work
                fewest[block.first] = block.work
                yield from ((block, form) for form in self.blocks.lean(block))

    def _row(self, block: Block, form: Form) -> FormRow:
        extra = least = self.extra(block, form, self.e.heights[block.last])
        if self.least_wanted[block.last + 1] < self.e.heights[block.last]:
            least = min(least, self.extra(block, form, self.least_wanted[block.last + 1]))
        return FormRow(
            block.last - block.first,
            block.step,
            form.group.hand_off,
            form.window,
            block.sums,
            block.work,
            extra,
            least,
            form.late,
            block.axis.kernel,
            block.axis.stride,
            block.axis.pad,
            int(block.section is not None),
        )

    def extra(self, block: Block, form: Form, wanted: int) -> int:
        """Weight beyond the elements' own of a block of which `wanted` rows are wanted."""
        height = self.e.heights[block.last]
        made = min(height, -(-wanted // block.step) * block.step)
        once = self.before[block.last + 1] - self.before[block.first]
        if self.objective is Objective.COST:
            return round(self.blocks.block_cost(block, form.group, made) * COST_UNITS) - once
        if made == height:
            return block.work - once
        return self.blocks.work_of(block, made) - once

    @cached_property
    def least_wanted(self) -> tuple[int, ...]:
        """Cut -> the least rows of the tensor before it that any region's later elements want of it."""
        sections = [section for section in self.blocks.sections if section is not None]
        found = [0] * (self.count + 1)
        for cut in range(self.count, 0, -1):
            found[cut] = self.e.heights[cut - 1]
            if cut < self.count and self.e.feeds[cut - 1]:
                found[cut] = min(found[cut], max(0, self.e.axes_of[cut][0].high(found[cut + 1])))
                for section in sections:
                    if section.first == cut:
                        found[cut] = min(found[cut], section.lanes.wanted(found[section.last + 1])[-1])
        return tuple(found)

    # ---- boundaries ------------------------------------------------------------------------------

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Element -> aligned bytes of its output."""
        return tuple(self.e.sizes[t] for t in self.e.makes)

    @cached_property
    def least_rows(self) -> tuple[int, ...]:
        """Cut -> rows that a ring there has at the least, for additions that read it later."""
        found = [1] * (self.count + 1)
        for cut in range(1, self.count):
            for reader in self.e.readers.get(self.e.makes[cut - 1], ()):
                if reader > cut and all(self.e.feeds[cut:reader]):  # else a section counts it
                    found[cut] = max(found[cut], self._ahead(cut, reader))
        return tuple(found)

    def _ahead(self, cut: int, reader: int) -> int:
        """Rows of the tensor at a cut that are there when `reader` reads them, which it feeds, too."""
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
        """Cut -> aligned bytes of what has to be whole there."""
        return tuple(sum(self.e.sizes[t] for t in held) for held in self.e.live)

    @cached_property
    def held(self) -> tuple[int, ...]:
        """Region's end -> aligned bytes of its output and of what has to be whole there."""
        made = (frozenset(), *(frozenset({t}) for t in self.e.makes))
        return tuple(
            sum(self.e.sizes[t] for t in live | own) for live, own in zip(self.e.live, made, strict=True)
        )

    @cached_property
    def lowest_first(self) -> tuple[int, ...]:
        """Region's end -> the lowest first element; else something made inside were read after it."""
        found = []
        for end in range(self.count + 1):
            result = self.e.makes[end - 1] if end else -1
            inside = [self.e.made_at[t] for t in self.e.live[end] if t != result]
            found.append(max(inside, default=-1) + 1)
        return tuple(found)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """First element -> what feeds a region that begins with it."""
        found = []
        for read in self.e.main:
            root, tensor = self.e.roots[read], self.e.graph.tensors[read]
            streamed = root in self.e.graph.inputs and self.e.image == Image.STREAM
            sizes = tensor.nhwc[1], tensor.row_bytes, self.e.sizes[root]
            found.append(Source(root, *sizes, self.e.last_read[root], streamed))
        return tuple(found)

    @cached_property
    def wholes(self) -> tuple[int, ...]:
        """Element -> bytes while it runs alone, all rows in one step; of a fusion by slices, all of it."""
        fused = self.e.fused
        return tuple(
            self._whole_fusion(fused[e]) if e in fused else self._whole(e) for e in range(self.count)
        )

    def _whole_fusion(self, elements: range) -> int:
        """Each slice lies where a branch's end lay, and a row of the joined map is beside them."""
        row = self.e.graph.tensors[self.e.makes[elements.start]].row_bytes
        scratch = max(self.e.scratch[element] for element in elements)
        return self.live[elements.start] + round_up(row, self.e.alignment) + scratch

    def _whole(self, element: int) -> int:
        held = self.e.live[element] | {self.e.roots[t] for t in self.e.ops[element].outputs}
        whole, least = self.e.constants(element, element), self.e.constants_alone(element)
        saved = self._saved(element)
        beside = whole - saved
        if least < whole:
            beside = min(beside, least - (saved if self._slices_in_place(element) else 0))
        return sum(self.e.sizes[t] for t in held) + self.e.scratch[element] + beside

    def _slices_in_place(self, element: int) -> bool:
        """Whether an operator that computes slices of its channels may write over its input in each of them.

        A depthwise convolution may, where its output lies whole pixels below its input.
        """
        op = self.e.ops[element]
        apart = self._apart(element, op.inputs[0]) if self.e.loaded else None
        if apart is None or not slices_in_place(self.e.graph, op):
            return False
        pixel = self.e.graph.tensors[op.outputs[0]].pixel_bytes
        return round_up(max(0, apart), self.e.alignment) % pixel == 0

    def _saved(self, element: int) -> int:
        """Bytes that a kernel over whole tensors may save by writing over its input."""
        e = self.e
        op, kernel = e.ops[element], e.own_kernels[element]
        allowed = _CONTRACTS[InPlace(e.in_place)]
        if kernel is None or kernel.overlap not in allowed or len(op.outputs) != 1:
            return 0
        own, lows = e.sizes[op.outputs[0]], list[tuple[int, int]]()  # lowest offset over the output's, bytes
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


def _saved_by_parts(own: int, lows: Sequence[tuple[int, int]]) -> int:
    """Bytes saved where the parts of a concatenation of `own` bytes lie side by side as low as they may.

    `lows`: of each part the lowest offset over the output's, and its bytes.
    """
    end = 0
    for low, size in lows:
        end = max(low, end) + size
    return own + sum(size for _, size in lows) - max(own, end)
