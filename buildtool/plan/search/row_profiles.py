"""How far a region has got when it writes each row of its output, and what the output may then lie on.

A profile has a number for every row of a region's output (of a pooling's: one for all): rows of a tensor
that are there by then, or the first byte of one that is still to be read. Other profiles have a number for
every row of a tensor inside: the lowest row of it, or of another one, that is still read while this row
is made. Profiles are kept once each and are known by their place.
"""

from __future__ import annotations

from collections.abc import Sequence

from buildtool.base.modes import InPlace
from buildtool.base.remembered import remembered
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.receptive import accumulates, through
from buildtool.plan.search.progress import BlockProgress, held
from buildtool.plan.search.sections import NEVER
from buildtool.plan.search.tables import BlockForm, Tables

RowProfile = tuple[int, ...]


class RowProfiles:
    """The profiles of the regions that end at one cut.

    `follows`: whether the output may lie over rows of the input at all; if not, profiles have one number.
    """

    def __init__(self, tables: Tables, end: int) -> None:
        self.t, self.end = tables, end
        pooling = accumulates(tables.e.graph, tables.e.op(end - 1))
        self.follows = tables.e.in_place == InPlace.ROWS and not pooling
        self.profiles: list[RowProfile] = []
        self._places: dict[RowProfile, int] = {}
        self._made: dict[tuple[int, int, int], int] = {}
        self._asked: dict[tuple[int, int, int], int] = {}
        self._reads: dict[tuple[int, int, int, int, int, int, bool], int] = {}
        self._moved: dict[tuple[int, int, int, int], int] = {}

    def place(self, profile: RowProfile) -> int:
        """Where a profile is kept."""
        found = self._places.setdefault(profile, len(self.profiles))
        if found == len(self.profiles):
            self.profiles.append(profile)
        return found

    def at_the_end(self) -> int:
        """Rows of the output itself."""
        height = self.t.e.heights[self.end - 1]
        return self.place(tuple(range(1, height + 1)) if self.follows else (height,))

    def made(self, asked: int, block_form: BlockForm) -> int:
        """Rows that a block has made, of which `asked` are asked for."""
        key = (asked, block_form.block.last, block_form.step)
        if key not in self._made:
            height, step = self.t.e.heights[block_form.block.last], block_form.step
            self._made[key] = self.place(
                tuple(min(height, -(-n // step) * step) for n in self.profiles[asked])
            )
        return self._made[key]

    def asked(self, made: int, block_form: BlockForm) -> int:
        """Rows of a block's input that are there when it has made so many."""
        key = (made, block_form.first, block_form.block.last)
        if key not in self._asked:
            axis, tall = block_form.axis, self.t.rows[block_form.first - 1][0]
            section = block_form.block.section
            if section is None:
                asked = tuple(min(tall, max(0, axis.high(n))) for n in self.profiles[made])
            else:
                asked = tuple(section.lanes.wanted(n)[-1] for n in self.profiles[made])
            self._asked[key] = self.place(asked)
        return self._asked[key]

    @remembered
    def no_worse(self, a: int, b: int) -> bool:
        """Whether profile `a` is nowhere below `b`."""
        return a == b or all(x >= y for x, y in zip(self.profiles[a], self.profiles[b], strict=True))

    def lower(self, a: int, b: int) -> int:
        """The lower of two profiles, number by number."""
        if a == b:
            return a
        return self.place(tuple(map(min, self.profiles[a], self.profiles[b])))

    def reads(self, made: int, block_form: BlockForm, element: int, tensor: int) -> int:
        """First byte of `tensor` that an element of a block still has to read, when it has made so many rows.

        Of a region's last block, the element may still be at the rows that are being written.
        """
        final = block_form.block.last + 1 == self.end
        late = final and block_form.form.late >> (block_form.block.last - element) & 1 == 1
        key = (made, block_form.first, block_form.block.last, block_form.step, element, tensor, late)
        if key not in self._reads:
            row = self.t.e.graph.tensors[tensor].row_bytes
            rows = self._next_rows(made, block_form, element, tensor, late)
            self._reads[key] = self.place(tuple(n if n == NEVER else n * row for n in rows))
        return self._reads[key]

    def _next_rows(
        self, made: int, block_form: BlockForm, element: int, tensor: int, late: bool
    ) -> Sequence[int]:
        profile, step, section = self.profiles[made], block_form.step, block_form.block.section
        if tensor in self.t.e.read_whole[element]:
            return [0 if late or n < profile[-1] else NEVER for n in profile]
        if section is not None:
            if late:
                return section.read_from[: len(profile)]
            return [section.read_after[n] if n < profile[-1] else NEVER for n in profile]
        axis = through(self.t.e.graph, self.t.e.positions[element : block_form.block.last + 1])
        if late:
            return [max(0, axis.low(q // step * step)) for q in range(len(profile))]
        return [max(0, axis.low(n)) if n < profile[-1] else NEVER for n in profile]

    def saved(self, lows: int, source: int, result: int) -> int:
        """Bytes of the output that may lie on the input, of which bytes below `lows` are dead."""
        _, row = self.t.rows[self.end - 1]
        apart = max(0, *((q + 1) * row - low for q, low in enumerate(self.profiles[lows])))
        return max(0, min(source, result - round_up(apart, self.t.e.alignment)))

    @remembered
    def held(self, low: int, step: int, asked: int) -> int:
        """Rows of a ring: see `progress.held`."""
        return held(self.profiles[low], step, asked)

    def moved(self, low: int, block_form: BlockForm, progress: BlockProgress) -> int:
        """A profile by row of a block's output, by row of its input."""
        key = (low, block_form.first, block_form.block.last, block_form.step)
        if key not in self._moved:
            profile = (*self.profiles[low], NEVER)
            self._moved[key] = self.place(tuple(profile[n] for n in progress.made))
        return self._moved[key]

    def added(self, block_form: BlockForm, element: int, progress: BlockProgress) -> int:
        """By row of a block's input, the row that an element of it is at; it reads it of another tensor."""
        key = (-1 - element, block_form.first, block_form.block.last, block_form.step)
        if key not in self._moved:
            axis = through(self.t.e.graph, self.t.e.positions[element : block_form.block.last + 1])
            self._moved[key] = self.place(tuple(max(0, axis.low(n)) for n in progress.made))
        return self._moved[key]
