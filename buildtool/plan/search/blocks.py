"""Blocks of elements that can be one group of a streamed region, and the forms in which a block can run.

Elements are the operators that run. Each element of a block feeds the next one and nothing else, or the block
is a section of branches. The forms of a block differ in the hand-off: the pixels that an operator computes
before the next one runs. Fewer pixels need less memory and more calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter

from buildtool.base.session import Session, remembered
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.axis import Axis, union
from buildtool.plan.schedule.bands import bands_objection, without_repeats
from buildtool.plan.schedule.costs import branch_calls
from buildtool.plan.schedule.pace import Pace, edge_rows
from buildtool.plan.schedule.receptive import accumulates
from buildtool.plan.schedule.rings import accumulator_bytes
from buildtool.plan.search.chain import Elements
from buildtool.plan.search.chain_ends import Bands, ChainEnds
from buildtool.plan.search.sections import Section, section
from buildtool.plan.types import Group, Scheme
from buildtool.target.costs import COST_UNITS

MOST_OPERATORS = 10  # in one block
STEPS = (1, 2, 3, 4, 6, 8)  # rows that a block may compute per step
MOST_WITH_EDGES = 3  # of them, where the first and the last step make more: in taller steps that saves little
MOST_REPETITION = 6.0  # limit on a block's work, as a multiple of its elements' own
ROW = 0  # Group.hand_off: a whole row


@dataclass(frozen=True)
class Block:
    """Elements [first, last] (operators) as one group that computes `step` rows per step.

    axis: the row axis from the group's input to its output.
    sums: aligned bytes that the group keeps from step to step: accumulators of a pooling, ring buffers of its
        branches, kept rows of bands.
    work: multiply-accumulates of all its steps.
    section: its branches, if it is a section (see `sections`); else None.
    bands: whether it keeps the rows that two neighbouring steps both read, and how.
    ahead: with bands, how many first steps make only rows of tensors inside the group, and no row of its
        output.
    pixels: the hand-off for which the other fields hold; None: they hold for every hand-off.
    more: how many rows more its first and its last step make than the others (see `schedule.pace`).
    """

    first: int
    last: int
    step: int
    axis: Axis
    sums: int
    work: int
    section: Section | None = None
    bands: Bands = Bands.NONE
    ahead: int = 0
    pixels: int | None = None
    more: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Form:
    """A block that runs as `group`.

    window: aligned bytes of its windows and scratch.
    late: a bit for each operator; the lowest bit is the last operator's. The bit is 1 if the operator still
        runs after the first pixels of an output row are computed. Then this row must not lie over input that
        the operator still reads.
    """

    block: Block
    group: Group
    window: int
    late: int


@dataclass(frozen=True)
class Blocks:
    """All blocks of a graph.

    `hand_offs`: the numbers of pixels that a call may hand over, ascending. `session` caches the forms of
    equal chains.
    """

    e: Elements
    hand_offs: tuple[int, ...]
    session: Session = field(compare=False)

    @cached_property
    def sections(self) -> tuple[Section | None, ...]:
        """Returns element -> the section that ends with it; None if no section does."""
        return tuple(section(self.e, last) for last in range(self.e.count))

    @remembered
    def ending_at(self, last: int) -> tuple[Block, ...]:
        """Returns the blocks whose last element is `last`, for all promising first elements and steps."""
        blocks, branches = [*self._chains(last)], self.sections[last]
        if branches is not None:
            work = self._section_work(branches, self.e.heights[last])
            blocks.append(Block(branches.first, last, 1, branches.axis, branches.rings, work, branches))
        return tuple(blocks)

    def _chains(self, last: int) -> Iterator[Block]:
        """Yields the blocks that end with `last` and in which each element feeds the next one."""
        if not self.e.by_rows[last] or self.e.uneven[last]:
            return
        height, sums = self.e.heights[last], 0
        if accumulates(self.e.graph, self.e.ops[last]):
            sums = round_up(accumulator_bytes(self.e.graph, self.e.positions[last]), self.e.alignment)
        for first in self._firsts(last):
            once = self.e.work_before[last + 1] - self.e.work_before[first]
            axis = self._axis(first, last)
            if axis is None:
                continue
            for step in STEPS if first < last else STEPS[:1]:
                if step > 1 and step >= 2 * height:
                    break
                for pixels in self._hand_offs(first, last) if self.leaps(first, last) else (None,):
                    work = self._works(last, Pace.even(height, step), height, pixels or ROW)[last - first]
                    if work <= MOST_REPETITION * once:
                        yield Block(first, last, step, axis, sums, work, pixels=pixels)
            if first < last:
                yield from self._with_edges(first, last, axis, sums)
            if first < last and self._keeps(first, last):
                yield from self._bands(first, last, axis, sums)

    def _with_edges(self, first: int, last: int, axis: Axis, sums: int) -> Iterator[Block]:
        """Yields the blocks that run a chain with a longer first and last step, if that saves work.

        `axis`: the row axis of the chain. `sums`: aligned bytes of its accumulators.
        """
        e, height = self.e, self.e.heights[last]
        after = self._through(last)[last - first - 1]  # from the first element's output on
        more = edge_rows(after, height, e.graph.tensors[e.makes[first]].nhwc[1])
        if not any(more) or self.leaps(first, last):
            return
        most = MOST_REPETITION * (e.work_before[last + 1] - e.work_before[first])
        for step in STEPS:
            if step > MOST_WITH_EDGES or step + max(more) >= height:
                return  # or one step makes all
            even = self._works(last, Pace.even(height, step), height, ROW)[last - first]
            work = self._works(last, Pace.even(height, step, more), height, ROW)[last - first]
            if work < even and work <= most:
                yield Block(first, last, step, axis, sums, work, more=more)

    def leaps(self, first: int, last: int) -> bool:
        """Returns whether an element of a chain skips columns of its input.

        Then the chain's work depends on the hand-off, since columns are skipped only between hand-offs.
        """
        inner = (self.e.axes_of[e][1] for e in range(first + 1, last + 1))
        return any(axis.kernel < axis.stride for axis in inner)

    def _keeps(self, first: int, last: int) -> bool:
        """Returns whether a chain can be a group of bands, and has rows to keep (see `schedule.bands`)."""
        e = self.e
        again = any(e.axes_of[k][0].kernel > e.axes_of[k][0].stride for k in range(first + 1, last + 1))
        return (
            again
            and not self.leaps(first, last)
            and not bands_objection(e.graph, e.positions[first : last + 1])
        )

    def _bands(self, first: int, last: int, through: Axis, sums: int) -> Iterator[Block]:
        """Yields the blocks that run a chain as a group of bands, one row per step.

        `through`: the row axis of the chain. `sums`: aligned bytes of its accumulators.
        """
        e, after = self.e, self._through(last)[last - first - 1]
        axis, ends = without_repeats(e.axes_of[first][0], through, after), self._chain_ends
        work, lines = self._band_works(last, e.heights[last])[last - first], ends.lines(first, last)
        ahead = ends.leading(first, last, 1)
        bands = Bands.POOLED if e.fed_in_parts[last] else Bands.COPIED
        block = Block(first, last, 1, axis, sums + lines, work, bands=bands, ahead=ahead)
        yield block
        if all(e.axes_of[k][1].pad >= 0 for k in range(first + 1, last + 1)):
            for pixels in self._hand_offs(first, last):
                if pixels:
                    lasting = sums + ends.lasting(first, last, self.pace(block), pixels)
                    yield replace(block, bands=Bands.SWAPPED, sums=lasting, pixels=pixels)

    def alternatives(self, block: Block) -> tuple[Block, ...]:
        """Returns the blocks that may take a block's place: only itself, unless it swaps rows.

        For a block that swaps, these are the groups of bands of the same elements: with copies or swaps, and
        any hand-off.
        """
        if block.bands is not Bands.SWAPPED:
            return (block,)
        first, last = block.first, block.last
        return tuple(b for b in self.ending_at(last) if b.first == first and b.bands)

    @remembered
    def _band_works(self, last: int, rows: int) -> list[int]:
        """Returns for each chain that ends with `last` the multiply-accumulates of `rows` output rows.

        Item i is for the chain of i + 1 elements. The chains run as groups of bands, so no row is made twice.
        """
        columns, work, works = self.e.widths[last], 0, list[int]()
        for e in range(last, self.lowest[last] - 1, -1):
            if not self.e.fed_in_parts[e]:
                work += self._work(e, max(0, rows) * columns)
            works.append(work)
            if e > self.lowest[last]:
                vertical, horizontal = self.e.axes_of[e]
                rows = min(vertical.reach(self.e.heights[e - 1]), vertical.high(rows))
                columns = max(0, min(horizontal.reach(self.e.widths[e - 1]), horizontal.high(columns)))
        return works

    def _axis(self, first: int, last: int) -> Axis | None:
        """Returns the row axis of a block.

        If an addition in the block also reads the block's input, the axis covers both paths from the input;
        None if their strides differ.
        """
        axis = self._through(last)[last - first]
        for e in range(first, last + 1):
            if self.e.main[first] in self.e.beside[e]:
                after = self._through(last)[last - e]
                if after.stride != axis.stride:
                    return None
                axis = union(axis, after)
        return axis

    @remembered
    def _through(self, last: int) -> list[Axis]:
        """Returns for each chain that ends with `last` the row axis from its input to its output.

        Item i is for the chain of i + 1 elements.
        """
        through = [self.e.axes_of[last][0]]
        for e in range(last - 1, self.lowest[last] - 1, -1):
            through.append(through[-1].after(self.e.axes_of[e][0]))
        return through

    def _firsts(self, last: int) -> Iterator[int]:
        """Yields the first elements of the blocks that end with `last`, from `last` backwards."""
        first = last
        yield first
        while (
            first
            and not self.e.uneven[first]
            and not self.e.uneven[first - 1]
            and self.e.feeds[first - 1]
            and last - first + 1 < MOST_OPERATORS
        ):
            inner = self.e.makes[first - 1]
            if self.e.readers[inner] != (first,) or inner in self.e.outputs:
                return
            first -= 1
            yield first

    @cached_property
    def lowest(self) -> tuple[int, ...]:
        """Returns last element -> the first element of the longest chain that ends with it."""
        by_rows = self.e.by_rows
        return tuple(min(self._firsts(last)) if by_rows[last] else last for last in range(self.e.count))

    def work_of(self, block: Block, rows: int) -> int:
        """Returns the multiply-accumulates of a block that computes `rows` rows."""
        if rows == self.e.heights[block.last]:
            return block.work
        if block.section is not None:
            return self._section_work(block.section, rows)
        if block.bands:
            return self._band_works(block.last, rows)[block.last - block.first]
        return self._works(block.last, self.pace(block), rows, block.pixels or ROW)[block.last - block.first]

    def pace(self, block: Block) -> Pace:
        """Returns the rows of a block's steps."""
        return Pace.even(self.e.heights[block.last], block.step, block.more)

    @remembered
    def _works(self, last: int, pace: Pace, rows: int, pixels: int) -> list[int]:
        """Returns for each chain that ends with `last` the multiply-accumulates that `rows` output rows need.

        Item i is for the chain of i + 1 elements. Steps are clipped at the borders. A global pooling outputs
        nothing until the end. `pace`: the rows of the steps. `pixels`: the hand-off.
        """
        ranges, (columns, _) = pace.steps(rows), self._chain_ends.columns(last, pixels)
        work, works = 0, list[int]()
        for e in range(last, self.lowest[last] - 1, -1):
            if not self.e.fed_in_parts[e]:
                work += self._work(e, ranges.length * columns[last - e].length)
            works.append(work)
            if e > self.lowest[last]:
                ranges = ranges.read(self.e.axes_of[e][0], self.e.heights[e - 1])
        return works

    def _section_work(self, section: Section, height: int) -> int:
        elements = range(section.first, section.last + 1)
        made_by = zip(elements, section.lanes.wanted(height), strict=False)
        return sum(self._work(e, rows * self.e.widths[e]) for e, rows in made_by)

    def _work(self, element: int, pixels: int) -> int:
        """Returns the multiply-accumulates of an element for this number of output pixels."""
        once = self.e.work_before[element + 1] - self.e.work_before[element]
        return once * pixels // (self.e.heights[element] * self.e.widths[element])

    # ---- forms -----------------------------------------------------------------------------------

    def lean(self, block: Block) -> tuple[Form, ...]:
        """Returns the forms of a block with the least memory, at most one for each value of `Form.late`."""
        if block.bands or any(block.more):
            return self._lean_by_pixels(block)
        *cached, rows = self.groups(block)
        strip = self._form(block, rows)
        forms = [strip]
        for group in cached:  # each with larger windows than the one before it
            late = self._chain_ends.late(block.first, block.last, group.hand_off)
            if len(forms) > 1 and forms[-1].late == late:
                continue
            form = self._form(block, group)
            if form.window < strip.window:
                forms.append(form)
            if form.window < strip.window and not form.late & ~strip.late:
                return tuple(forms[1:])
        return tuple(forms)

    def _lean_by_pixels(self, block: Block) -> tuple[Form, ...]:
        forms = list[Form]()
        for group in self.groups(block):
            form = self._form(block, group)
            if not forms or forms[-1].late & ~form.late:
                forms.append(form)
        return tuple(forms)

    def forms(self, block: Block) -> list[Form]:
        """Returns the Pareto front of memory and cost over the forms, in ascending order of memory."""
        return self._drop_dominated([self._form(block, group) for group in self.groups(block)])

    def cheapest(self, block: Block, most_window: float) -> Form | None:
        """Returns the cheapest form whose windows need at most `most_window` bytes; None if all need more."""
        every = (self._form(block, group) for group in self.groups(block))
        fitting = [form for form in every if form.window <= most_window]
        if len(fitting) < 2:
            return fitting[0] if fitting else None
        return min(
            fitting, key=lambda form: (round(self.block_cost(block, form.group) * COST_UNITS), form.window)
        )

    def _drop_dominated(self, forms: Iterable[Form]) -> list[Form]:
        costed = [(form.window, self.block_cost(form.block, form.group), form) for form in forms]
        undominated: list[tuple[float, Form]] = []
        for _, cost, form in sorted(costed, key=itemgetter(0, 1)):
            if not any(not other.late & ~form.late and less <= cost for less, other in undominated):
                undominated.append((cost, form))
        return [form for _, form in undominated]

    def _form(self, block: Block, group: Group) -> Form:
        """Returns the form of a block that runs as this group."""
        if block.section is not None:
            elements = slice(block.first, block.last + 1)
            return Form(
                block, group, max(self.e.scratch[elements]), (1 << (block.last - block.first + 1)) - 1
            )
        windows = self._chain_ends.windows(block.last, self.pace(block), group.hand_off, block.bands)
        window = windows[block.last - block.first]
        return Form(block, group, window, self._chain_ends.late(block.first, block.last, group.hand_off))

    @cached_property
    def _chain_ends(self) -> ChainEnds:
        return ChainEnds(self.e, self.lowest)

    def groups(self, block: Block) -> Iterator[Group]:
        """Yields the groups of a block, one for each hand-off.

        Whole rows come last, if the block can hand them over.
        """
        every = (ROW,) if block.section is not None else self._hand_offs(block.first, block.last)
        for pixels in every if block.pixels is None else (block.pixels,):
            if pixels or not (block.bands or any(block.more)):
                yield self.group(block, pixels)

    def _hand_offs(self, first: int, last: int) -> Iterator[int]:
        """Yields the hand-offs to try for a chain, in ascending order; whole rows come last."""
        if first < last:
            # pixels of the chain's output, or of its input if that is wider
            stride = math.prod(self.e.axes_of[e][1].stride for e in range(first + 1, last + 1))
            for pixels in dict.fromkeys(max(1, n // stride) for n in self.hand_offs):
                if pixels < self.e.widths[last]:
                    yield pixels
        yield ROW

    def group(self, block: Block, pixels: int) -> Group:
        """Returns the group of a block whose operators hand over `pixels` pixels per call (or ROW)."""
        if block.section is not None:
            return block.section.group
        ops = self.e.positions[block.first : block.last + 1]
        if len(ops) == 1:
            return Group(ops, Scheme.OPERATOR, block.step, ROW)
        if block.bands:
            scheme = Scheme.SWAPS if block.bands is Bands.SWAPPED else Scheme.BANDS
            return Group(ops, scheme, block.step, pixels)
        if any(block.more):
            return Group(ops, Scheme.EDGES, block.step, pixels)
        return Group(ops, Scheme.H_CACHED if pixels else Scheme.HALO, block.step, pixels)

    # ---- costs -----------------------------------------------------------------------------------

    def block_cost(self, block: Block, group: Group, rows: int | None = None) -> float:
        """Returns the estimated cost of all steps of a block that computes `rows` rows (None: all rows)."""
        rows = self.e.heights[block.last] if rows is None else rows
        if block.section is not None:
            return self._section_cost(block.last, rows)
        pace = self.pace(block)
        return self._chain_cost(block.first, block.last, pace, group.hand_off, rows, block.bands)

    @remembered
    def _section_cost(self, last: int, rows: int) -> float:
        section = self.sections[last]
        assert section is not None
        calls = branch_calls(section.lanes, self.e.widths[section.first : last + 1], rows)
        cost = sum(self.e.model.operator(position, own, True) for position, own in calls)
        return cost + self.e.delivery(section.first, section.lanes.wanted(rows)[-1])

    @remembered
    def _chain_cost(self, first: int, last: int, pace: Pace, hand_off: int, made: int, bands: Bands) -> float:
        cost = self._chain_ends.costs(last, pace, hand_off, made, bands)[last - first]
        if not self.e.asks(first):
            return cost
        rows, axis = self.e.input_rows(first), self._axis(first, last)
        needed_rows = rows if axis is None else max(0, min(rows, axis.high(made)))
        return cost + self.e.delivery(first, needed_rows)
