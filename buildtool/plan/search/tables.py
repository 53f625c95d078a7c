"""The weights that the search adds up, and the blocks that have them, as plain numbers.

The search minimises weights: multiply-accumulates, the target's cost in 1 / COST_UNITS, or a sum of both with
a price on every multiply-accumulate. A way with the least such sum is the cheapest among all ways with no
more work. So a price that brings the work just below a limit gives the cheapest way on the lower convex hull
of cost over work.

A block is a chain of elements (operators) that runs as one group. Its `extra` weight is its weight beyond
that of its elements when each runs once, alone. It is below 0 if the block leaves out rows that nothing
needs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np

from buildtool.plan.schedule.axis import Axis, Numbers
from buildtool.plan.search.blocks import Block, Blocks, Form
from buildtool.plan.search.boundaries import Boundaries
from buildtool.plan.search.chain import Elements
from buildtool.plan.search.chain_ends import Bands
from buildtool.plan.search.forms import FormRow, as_rows
from buildtool.target.costs import COST_UNITS

MOST_CHAINS = 2048  # chains whose block forms a session caches, a few kilobytes each
_EXTRA, _LEAST_EXTRA, _HAND_OFF, _FORM_WINDOW, _BANDS = map(
    FormRow._fields.index, ("extra", "least_extra", "hand_off", "window", "bands")
)
_OF_BLOCK = [*map(FormRow._fields.index, ("back", "step", "section", "bands", "up", "down"))]
# The columns of a form that labels.c reads, in its order.
_SEARCHED = "back step window sums extra least_extra kernel stride pad late section".split()
_SEARCHED += "bands ahead up down".split()
_WINDOW, _SECTION = _SEARCHED.index("window"), _SEARCHED.index("section")


@dataclass(frozen=True)
class Tables:
    """The tables that the search reads, for one definition of weight.

    The weight is `per_cost` times the cost in units of 1 / COST_UNITS, plus `per_work` times the
    multiply-accumulates. `bands`: a way may have groups of bands of the kinds in `Bands` up to this one; with
    Bands.NONE it has none of them.
    """

    boundaries: Boundaries
    per_cost: int = 0
    per_work: int = 0
    bands: Bands = Bands.SWAPPED

    @property
    def blocks(self) -> Blocks:
        """Returns the blocks that have weights."""
        return self.boundaries.blocks

    @property
    def e(self) -> Elements:
        """Returns the network's elements (operators that run)."""
        return self.boundaries.e

    @cached_property
    def before(self) -> tuple[int, ...]:
        """Returns cut -> the weight of all elements before it if each runs once and alone."""
        work = tuple(self.per_work * work for work in self.e.work_before)
        if not self.per_cost:
            return work
        return tuple(self.per_cost * a + b for a, b in zip(self.e.cost_before, work, strict=True))

    def extra(self, form: Form, wanted: int) -> int:
        """Returns how much more a block weighs in this form than its elements run one by one.

        `wanted`: how many of the block's output rows later elements need.
        """
        block, blocks = form.block, self.blocks
        rows = blocks.pace(block).made(wanted)
        weight = self.before[block.first] - self.before[block.last + 1]
        if self.per_cost:
            weight += self.per_cost * round(blocks.block_cost(block, form.group, rows) * COST_UNITS)
        return weight + self.per_work * blocks.work_of(block, rows) if self.per_work else weight

    @cached_property
    def spare(self) -> int:
        """Returns the most weight that blocks may save by leaving out rows, summed over all elements."""
        return -sum(int(self.rows_of(last)[:, _LEAST_EXTRA].min(initial=0)) for last in range(self.e.count))

    @cached_property
    def nothing_saves(self) -> bool:
        """Returns whether no block weighs less than its elements run one by one; then no way does either."""
        distinct = {key: last for last, key in reversed([*enumerate(self.boundaries.keys)])}
        return not any(map(self._saves, distinct.values()))

    def _saves(self, last: int) -> bool:
        """Returns whether a block that ends with an element weighs less than its elements run one by one.

        The result is cached in the same way as `rows_of`.
        """

        def saves() -> bool:
            height = self.e.heights[last]
            return any(
                self.extra(Form(block, group, 0, 0), rows) < 0
                for block in self.blocks.ending_at(last)
                for group in self.blocks.groups(block)
                for rows in {height, min(height, self.boundaries.least_wanted[last + 1])}
            )

        key = self._chain_key(last)
        return saves() if key is None else self.blocks.session.remember("savings", key, saves, MOST_CHAINS)

    # ---- block forms -----------------------------------------------------------------------------

    def form(self, number: int) -> Form:
        """Returns the block form with this number. Forms are numbered in the order of their last elements."""
        last = bisect_right(self.starts, number) - 1
        row = FormRow(*self.rows_of(last)[number - self.starts[last]].tolist())
        if row.section:
            block = self.blocks.ending_at(last)[-1]
        else:
            axis, first = Axis(row.kernel, row.stride, row.pad), last - row.back
            bands = Bands(row.bands)
            fixed = bands is Bands.SWAPPED or self.blocks.leaps(first, last)
            pixels, more = row.hand_off if fixed else None, (row.up, row.down)
            numbers = first, last, row.step, axis, row.sums, row.work
            block = Block(*numbers, None, bands, row.ahead, pixels, more)
        window = row.window + self.e.constants(block.first, last)
        return Form(block, self.blocks.group(block, row.hand_off), window, row.late)

    def cheapest(self, block: Block, most_window: float) -> Form | None:
        """Returns the cheapest form of a block whose windows need at most `most_window` bytes, or None.

        The result is that of `Blocks.cheapest`. It is read from the element's rows where these are known:
        they hold all promising forms.
        """
        rows = self._by_key.get(self.boundaries.keys[block.last]) if self.per_cost == 1 else None
        if rows is None or self.per_work or block.section is not None:
            return self.blocks.cheapest(block, most_window)
        same = (block.last - block.first, block.step, 0, block.bands, *block.more)
        own = (rows[:, _OF_BLOCK] == same).all(axis=1)
        if block.pixels is not None:
            own &= rows[:, _HAND_OFF] == block.pixels
        fitting = np.flatnonzero(own & (rows[:, _FORM_WINDOW] <= most_window))
        if not len(fitting):
            return None
        row = FormRow(*rows[fitting[np.argmin(rows[fitting, _EXTRA])]].tolist())
        return Form(block, self.blocks.group(block, row.hand_off), row.window, row.late)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Returns element -> the number of the first block form that ends with it.

        One more item counts all forms.
        """
        return (0, *accumulate(len(self.rows_of(last)) for last in range(self.e.count)))

    def rows_of(self, last: int) -> Numbers:
        """Returns the block forms that end with an element, one row each, with the columns of FormRow.

        Elements with equal keys have the same rows.
        """
        key = self.boundaries.keys[last]
        if key not in self._by_key:
            self._by_key[key] = self._cached_rows(last)
        return self._by_key[key]

    @cached_property
    def _by_key(self) -> dict[Hashable, Numbers]:
        return {}

    def _cached_rows(self, last: int) -> Numbers:
        """Returns the rows of an element.

        A session keeps them for all networks, unless weights mix cost and work.
        """
        if self.bands < Bands.SWAPPED:
            rows = self._with_all_bands.rows_of(last)
            fewer: Numbers = rows[rows[:, _BANDS] <= self.bands]
            return fewer
        key = self._chain_key(last)
        if key is None:
            return self._rows(last)
        return self.blocks.session.remember("rows of blocks", key, lambda: self._rows(last), MOST_CHAINS)

    @cached_property
    def _with_all_bands(self) -> Tables:
        return replace(self, bands=Bands.SWAPPED)

    def _chain_key(self, last: int) -> Hashable | None:
        """Returns a key of all that the blocks which end with an element depend on.

        None if the blocks' numbers hold only in this network, or if weights mix cost and work. The key is
        that of `ChainKeys.plain`, as no row contains the number of an element or a tensor.
        """
        has_price = self.per_cost and self.per_work
        chain = None if has_price else self.boundaries.chain_keys.plain(last, bool(self.per_cost))
        if chain is None:
            return None
        return bool(self.per_cost), self.boundaries.least_wanted[last + 1], chain

    def _rows(self, last: int) -> Numbers:
        """Returns the rows of an element, computed from its blocks."""
        return as_rows(map(self._row, self._forms(last)))

    def _forms(self, last: int) -> Iterator[Form]:
        """Yields the promising forms of the blocks that end with an element.

        Their windows do not contain constants that are loaded into the arena.
        """
        fewest: dict[tuple[int, int | None, bool], int] = {}  # first element, hand-off, longer edges -> work
        late: dict[int, int] = {}  # first element of a swapping block -> Form.late with fewer pixels
        for block in self.blocks.ending_at(last):
            if self.per_cost:
                yield from self.blocks.forms(block)
            elif block.bands is Bands.SWAPPED:
                (form,) = self.blocks.lean(block)
                if late.get(block.first, -1) & ~form.late:
                    late[block.first] = form.late
                    yield form
            elif block.bands:
                yield from self.blocks.lean(block)
            else:
                alike = block.first, block.pixels, any(block.more)
                if block.work < fewest.get(alike, block.work + 1):
                    fewest[alike] = block.work  # more rows in one go save work
                    yield from self.blocks.lean(block)

    def _row(self, form: Form) -> FormRow:
        block, axis = form.block, form.block.axis
        height, needed = self.e.heights[block.last], self.boundaries.least_wanted[block.last + 1]
        extra = least = self.extra(form, height)
        if needed < height:
            least = min(least, self.extra(form, needed))
        return FormRow(
            *(block.last - block.first, block.step, form.group.hand_off, form.window, block.sums, block.work),
            *(extra, least, form.late, axis.kernel, axis.stride, axis.pad, int(block.section is not None)),
            *(int(block.bands), block.ahead, *block.more),
        )

    # ---- as arrays, with the columns of labels.c ---------------------------------------------------

    @cached_property
    def arrays(self) -> tuple[Numbers, ...]:
        """Returns the arrays that C reads.

        They have the elements, the cuts, the block forms, the elements' other inputs, the sections, and the
        sections' lists.
        """
        fixed = self.boundaries
        starts, forms = self._form_rows()
        *of_cuts, firsts = fixed.cut_columns
        cuts = np.ascontiguousarray(np.array([*of_cuts, self.starts, firsts, [*starts, 0]], np.int64).T)
        return fixed.element_rows, cuts, forms, fixed.read_besides, *fixed.section_rows

    def _form_rows(self) -> tuple[list[int], Numbers]:
        """Returns the index of each element's first row, and the array of rows. Equal chains share rows."""
        with_section = [last for last, section in enumerate(self.blocks.sections) if section is not None]
        columns = [FormRow._fields.index(name) for name in _SEARCHED]
        starts, parts, count = list[int](), list[Numbers](), 0
        by_key: dict[Hashable, int] = {}
        for last, key in enumerate(self.boundaries.keys):
            if key not in by_key:
                by_key[key] = count
                part = self.rows_of(last)[:, columns]
                number = with_section.index(last) if last in with_section else -1
                part[:, _SECTION] = np.where(part[:, _SECTION] == 1, number, -1)
                if self.e.loaded:
                    constants = [self.e.constants(last - back, last) for back in part[:, 0].tolist()]
                    part[:, _WINDOW] += np.array(constants, np.int64)
                parts.append(part)
                count += len(part)
            starts.append(by_key[key])
        return starts, np.ascontiguousarray(np.concatenate([*parts, np.zeros((1, len(columns)), np.int64)]))
