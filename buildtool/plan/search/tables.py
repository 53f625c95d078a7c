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
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
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
from buildtool.plan.search.blocks import STEPS, Block, Blocks, Form, Rows
from buildtool.plan.search.chain import Elements
from buildtool.plan.search.chain_keys import ChainKeys
from buildtool.plan.search.sections import Section
from buildtool.target.costs import COST_UNITS
from buildtool.target.types import Contract

MOST_CHAINS = 2048  # whose block forms a session keeps, of a few kilobytes each
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
    """A block in one of its forms, whose windows here include its constants in the arena."""

    block: Block
    form: Form
    extra: int
    least_extra: int  # of as few rows as anything ever wants


class FormRow(NamedTuple):
    """A block form in plain numbers, wherever its chain stands: see Block, Form and BlockForm.

    `back`: elements before the last one that the block begins; `window`: without constants in the arena.
    """

    back: int
    step: int
    hand_off: int
    window: int
    sums: int
    work: int
    extra: int
    least_extra: int
    late: int
    kernel: int
    stride: int
    pad: int
    section: int


LEAST_EXTRA = FormRow._fields.index("least_extra")


_SCHEMA = 2  # of a chain's rows
_MOST = 1 << 60  # of any number in them
_LEAST = FormRow(0, 1, 0, 0, 0, 0, -_MOST, -_MOST, 0, 1, 1, 0, 0)


def _packed(rows: Rows) -> bytes:
    return _PLACE + rows.astype("<i8").tobytes()


def _unpacked(data: bytes, longest: int) -> Rows:
    """Rows from bytes; ValueError for numbers that no chain has which begins `longest` elements earlier.

    What reads them counts in them, in C: a wrong number must not get there.
    """
    if not data.startswith(_PLACE):
        raise ValueError("not the forms of a chain's blocks")
    rows = np.frombuffer(data[len(_PLACE) :], "<i8").astype(np.int64).reshape(-1, len(FormRow._fields))
    most = _LEAST._replace(
        back=longest, step=max(STEPS), extra=_MOST, least_extra=_MOST, late=(2 << longest) - 1, section=0
    )
    high = [value if value > low else _MOST for low, value in zip(_LEAST, most, strict=True)]
    high[0], high[-1] = longest, 0
    if ((rows < np.array(_LEAST)) | (rows > np.array(high))).any():
        raise ValueError("no chain's blocks have such forms")
    return rows


_PLACE = b"rows"  # so that a chain without blocks has bytes, too


def as_rows(rows: Iterable[FormRow]) -> Rows:
    """Rows as one array."""
    return np.array([*rows], np.int64).reshape(-1, len(FormRow._fields))


@dataclass(frozen=True)
class Source:
    """The tensor through which a region that begins here is fed.

    `rows` of `row` bytes, as it is read; `size`: aligned bytes of the whole; `last`: the last
    element that needs it; `streamed`: delivered row by row, so that a ring is enough.
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

    @cached_property
    def block_forms(self) -> tuple[tuple[BlockForm, ...], ...]:
        """Last element -> the blocks that end there, in all forms worth a look."""
        return tuple(tuple(self.endings(last)) for last in range(self.count))

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
            key: min(0, int(self.rows_of(last)[:, LEAST_EXTRA].min(initial=0)))
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
        """Under what a session keeps an element's rows; None where that cannot be said."""
        plain = self._chain_keys.plain(last, self.objective is Objective.COST)
        if plain is None:
            return None
        wanted = self.least_wanted[last + 1]
        parts = {"schema": _SCHEMA, "objective": self.objective.value, "wanted": wanted, "chain": plain}
        longest = last - self.blocks.lowest(last)
        return Level("tables", _packed, lambda data: _unpacked(data, longest)), parts

    def _rows(self, last: int) -> Rows:
        """Made from the blocks."""
        return as_rows(self._row(block, form) for block, form in self._found(last))

    @cached_property
    def _by_key(self) -> dict[Hashable, Rows]:
        return {}

    @cached_property
    def keys(self) -> tuple[Hashable, ...]:
        """Last element -> the key of its chains: equal ones have equal block forms."""
        chains = self._chain_keys
        return tuple((chains.of(last), self.least_wanted[last + 1]) for last in range(self.count))

    @cached_property
    def _chain_keys(self) -> ChainKeys:
        return ChainKeys(self.blocks)

    def _placed(self, row: Sequence[int], last: int) -> BlockForm:
        """A block form at an element with these rows."""
        it = FormRow(*row)
        first, axis = last - it.back, Axis(it.kernel, it.stride, it.pad)
        window = it.window + self.e.constants(first, last)
        block = self.blocks.block(first, last, it.step, axis, it.sums, it.work, it.section == 1)
        form = Form(self.blocks.group(block, it.hand_off), window, it.late)
        return BlockForm(block, form, it.extra, it.least_extra)

    @cached_property
    def nothing_saves(self) -> bool:
        """Whether no way weighs less than all elements run one by one: no block weighs less than its own."""
        return all(extra >= 0 for last in self._distinct.values() for extra in self._extras(last))

    def _extras(self, last: int) -> Iterator[int]:
        """What blocks that end at an element weigh beyond their elements, whatever windows they need."""
        wanted = {self.e.heights[last], min(self.e.heights[last], self.least_wanted[last + 1])}
        for block in self.blocks.ending_at(last):
            for group in self.blocks.groups(block):
                yield from (self.extra(block, Form(group, 0, 0), rows) for rows in wanted)

    @cached_property
    def _distinct(self) -> dict[Hashable, int]:
        """The first element of each key."""
        first: dict[Hashable, int] = {}
        for last, key in enumerate(self.keys):
            first.setdefault(key, last)
        return first

    def _found(self, last: int) -> Iterator[tuple[Block, Form]]:
        """The blocks that end at an element, and the forms of each that are worth a look."""
        fewest: dict[int, int] = {}  # first element -> work
        for block in self.blocks.ending_at(last):
            if self.objective is Objective.COST:
                yield from ((block, form) for form, _ in self.blocks.forms(block))
            elif block.work < fewest.get(
                block.first, block.work + 1
            ):  # else more rows in one go save nothing
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
        found = [0] * (self.count + 1)
        for cut in range(self.count, 0, -1):
            found[cut] = self.e.heights[cut - 1]
            if cut < self.count and self.e.feeds[cut - 1]:
                found[cut] = min(found[cut], max(0, self.e.axes_of[cut][0].high(found[cut + 1])))
                for section in self.sections_from.get(cut, ()):
                    found[cut] = min(found[cut], section.lanes.wanted(found[section.last + 1])[-1])
        return tuple(found)

    @cached_property
    def sections_from(self) -> Mapping[int, tuple[Section, ...]]:
        """First element -> the sections that begin there."""
        found: dict[int, tuple[Section, ...]] = {}
        for section in self.blocks.sections:
            if section is not None:
                found[section.first] = (*found.get(section.first, ()), section)
        return found

    # ---- boundaries ------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> tuple[tuple[int, int], ...]:
        """Element -> rows of its output, bytes of a row."""
        tensors = [self.e.graph.tensors[t] for t in self.e.makes]
        return tuple((tensor.nhwc[1], tensor.row_bytes) for tensor in tensors)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Element -> aligned bytes of its output."""
        return tuple(self.e.sizes[t] for t in self.e.makes)

    @cached_property
    def last_reader(self) -> tuple[int, ...]:
        """Element -> the last element that reads its output."""
        return tuple(self.e.last_read[t] for t in self.e.makes)

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
        made = ([self.e.makes[cut - 1]] if cut else [] for cut in range(self.count + 1))
        return tuple(
            sum(self.e.sizes[t] for t in live.union(m)) for live, m in zip(self.e.live, made, strict=True)
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
        for element in range(self.count):
            read = self.e.main[element]
            root = self.e.roots[read]
            tensor = self.e.graph.tensors[read]
            image = root in self.e.graph.inputs
            row, last = tensor.row_bytes, self.e.last_read[root]
            streamed = image and self.e.image == Image.STREAM
            found.append(Source(root, tensor.nhwc[1], row, self.e.sizes[root], last, streamed))
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
        _, row = self.rows[elements.start]
        scratch = max(self.e.scratch[element] for element in elements)
        return self.live[elements.start] + round_up(row, self.e.alignment) + scratch

    def _whole(self, element: int) -> int:
        made = [self.e.roots[t] for t in self.e.op(element).outputs]
        held = self.e.live[element] | frozenset(made)
        whole, least = self.e.constants(element, element), self.e.constants_alone(element)
        saved = self._saved(element)
        sliced = least - (saved if self._slices_in_place(element) else 0)
        beside = min(whole - saved, sliced) if least < whole else whole - saved
        return sum(self.e.sizes[t] for t in held) + self.e.scratch[element] + beside

    def _slices_in_place(self, element: int) -> bool:
        """Whether an operator that computes slices of its channels may write over its input in each of them.

        A depthwise convolution may, where its output lies whole pixels below its input.
        """
        apart = self._apart(element, self.e.op(element).inputs[0]) if self.e.loaded else None
        if apart is None or not slices_in_place(self.e.graph, self.e.op(element)):
            return False
        pixel = self.e.graph.tensors[self.e.op(element).outputs[0]].pixel_bytes
        return round_up(max(0, apart), self.e.alignment) % pixel == 0

    def _saved(self, element: int) -> int:
        """Bytes that a kernel over whole tensors may save by writing over its input."""
        e = self.e
        op, kernel = e.op(element), e.kernels[e.positions[element]]
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
        kernel = self.e.kernels[self.e.positions[element]]
        return distance(self.e.graph, self.e.op(element), operand, kernel.overlap) if kernel else None


def _saved_by_parts(own: int, lows: Sequence[tuple[int, int]]) -> int:
    """Bytes saved where the parts of a concatenation of `own` bytes lie side by side as low as they may.

    `lows`: of each part the lowest offset over the output's, and its bytes.
    """
    end = 0
    for low, size in lows:
        end = max(low, end) + size
    return own + sum(size for _, size in lows) - max(own, end)
