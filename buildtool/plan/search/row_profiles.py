"""How far a region has got when it writes each row of its output, and what the output may then lie on.

A mark has a number for every row of a region's output (of a pooling's: one for all): rows of a tensor
that are there by then, or the first byte of one that is still to be read. Other marks have a number for
every row of a tensor inside: the lowest row of it, or of another one, that is still read while this row
is made. Marks are kept once each and are known by their place.
"""

from __future__ import annotations

from collections.abc import Sequence

from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.receptive import accumulates, through
from buildtool.plan.search.progress import Stand, held
from buildtool.plan.search.sections import NEVER
from buildtool.plan.search.tables import Entry, Tables

Mark = tuple[int, ...]


class Marks:
    """The marks of the regions that end at one cut.

    `follows`: whether the output may lie over rows of the input at all; if not, marks have one number.
    """

    def __init__(self, tables: Tables, end: int) -> None:
        self.t, self.end = tables, end
        pooling = accumulates(tables.e.graph, tables.e.op(end - 1))
        self.follows = tables.e.in_place == "rows" and not pooling
        self.marks: list[Mark] = []
        self._places: dict[Mark, int] = {}
        self._made: dict[tuple[int, int, int], int] = {}
        self._asked: dict[tuple[int, int, int], int] = {}
        self._reads: dict[tuple[int, int, int, int, int, int, bool], int] = {}
        self._less: dict[tuple[int, int], bool] = {}
        self._held: dict[tuple[int, int, int], int] = {}
        self._moved: dict[tuple[int, int, int, int], int] = {}

    def place(self, mark: Mark) -> int:
        """Where a mark is kept."""
        found = self._places.setdefault(mark, len(self.marks))
        if found == len(self.marks):
            self.marks.append(mark)
        return found

    def at_the_end(self) -> int:
        """Rows of the output itself."""
        height = self.t.e.heights[self.end - 1]
        return self.place(tuple(range(1, height + 1)) if self.follows else (height,))

    def made(self, asked: int, entry: Entry) -> int:
        """Rows that a block has made, of which `asked` are asked for."""
        key = (asked, entry.block.last, entry.step)
        if key not in self._made:
            height, step = self.t.e.heights[entry.block.last], entry.step
            self._made[key] = self.place(tuple(min(height, -(-n // step) * step) for n in self.marks[asked]))
        return self._made[key]

    def asked(self, made: int, entry: Entry) -> int:
        """Rows of a block's input that are there when it has made so many."""
        key = (made, entry.first, entry.block.last)
        if key not in self._asked:
            axis, tall = entry.axis, self.t.rows[entry.first - 1][0]
            section = entry.block.section
            if section is None:
                asked = tuple(min(tall, max(0, axis.high(n))) for n in self.marks[made])
            else:
                asked = tuple(section.lanes.wanted(n)[-1] for n in self.marks[made])
            self._asked[key] = self.place(asked)
        return self._asked[key]

    def no_worse(self, a: int, b: int) -> bool:
        """Whether mark `a` is nowhere below `b`."""
        if a == b:
            return True
        key = (a, b)
        if key not in self._less:
            self._less[key] = all(x >= y for x, y in zip(self.marks[a], self.marks[b], strict=True))
        return self._less[key]

    def lower(self, a: int, b: int) -> int:
        """The lower of two marks, number by number."""
        if a == b:
            return a
        return self.place(tuple(map(min, self.marks[a], self.marks[b])))

    def reads(self, made: int, entry: Entry, element: int, tensor: int) -> int:
        """First byte of `tensor` that an element of a block still has to read, when it has made so many rows.

        Of a region's last block, the element may still be at the rows that are being written.
        """
        final = entry.block.last + 1 == self.end
        late = final and element - entry.first in entry.form.late
        key = (made, entry.first, entry.block.last, entry.step, element, tensor, late)
        if key not in self._reads:
            _, _, width, channels = self.t.e.graph.tensors[tensor].nhwc
            rows = self._next_rows(made, entry, element, tensor, late)
            self._reads[key] = self.place(tuple(n if n == NEVER else n * width * channels for n in rows))
        return self._reads[key]

    def _next_rows(self, made: int, entry: Entry, element: int, tensor: int, late: bool) -> Sequence[int]:
        mark, step, section = self.marks[made], entry.step, entry.block.section
        if tensor in self.t.e.read_whole[element]:
            return [0 if late or n < mark[-1] else NEVER for n in mark]
        if section is not None:
            return section.read_from[: len(mark)] if late else [section.read_after[n] for n in mark]
        axis = through(self.t.e.graph, self.t.e.positions[element : entry.block.last + 1])
        if late:
            return [max(0, axis.low(q // step * step)) for q in range(len(mark))]
        return [max(0, axis.low(n)) if n < mark[-1] else NEVER for n in mark]

    def saved(self, lows: int, source: int, result: int) -> int:
        """Bytes of the output that may lie on the input, of which bytes below `lows` are dead."""
        _, row = self.t.rows[self.end - 1]
        apart = max(0, *((q + 1) * row - low for q, low in enumerate(self.marks[lows])))
        return max(0, min(source, result - round_up(apart, self.t.e.alignment)))

    def held(self, low: int, step: int, asked: int) -> int:
        """Rows of a ring: see stands.held."""
        key = (low, step, asked)
        if key not in self._held:
            self._held[key] = held(self.marks[low], step, asked)
        return self._held[key]

    def moved(self, low: int, entry: Entry, stand: Stand) -> int:
        """A mark by row of a block's output, by row of its input."""
        key = (low, entry.first, entry.block.last, entry.step)
        if key not in self._moved:
            mark = (*self.marks[low], NEVER)
            self._moved[key] = self.place(tuple(mark[n] for n in stand.made))
        return self._moved[key]

    def added(self, entry: Entry, element: int, stand: Stand) -> int:
        """By row of a block's input, the row that an element of it is at; it reads it of another tensor."""
        key = (-1 - element, entry.first, entry.block.last, entry.step)
        if key not in self._moved:
            axis = through(self.t.e.graph, self.t.e.positions[element : entry.block.last + 1])
            self._moved[key] = self.place(tuple(max(0, axis.low(n)) for n in stand.made))
        return self._moved[key]
