"""The space of ways: what they are made of, and the undominated ones.

Ways are regions of the graph's operators in their order, each an operator in one step or a chain of
groups that feed each other row by row; what is made inside a region is not read after it, and what a
group reads besides its input, across a stride of its own, is whole. A group of several operators has at most
MOST_OPERATORS, none of whose tensors but the last is read by another than the next, makes STEPS rows
in one go, of HAND_OFFS pixels or whole rows, and repeats at most MOST_REPETITION of its work. Of the
points, groups make more rows in one go only where that saves work. Branches between a fork and the join
of all that it feeds are one group (see `sections`). A fusion in slices is a region by itself, in which its
operators run by rows together (see `graph.fusions` and `Elements.fused`). What enlarges an image (or makes
it less by a table of rows, see `schedule.receptive`) is a group by itself, or among branches, of one row a
step. Where a later block leaves out rows of branches, the bytes inside of them are those of a group that
makes all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from buildtool.base.distinct import undominated
from buildtool.base.errors import UsageError, suggest
from buildtool.base.modes import Image, InPlace
from buildtool.base.session import Session, remembered
from buildtool.graph.macs import total_macs
from buildtool.graph.topology import topology
from buildtool.graph.types import Graph
from buildtool.plan.schedule.receptive import by_rows
from buildtool.plan.search import blocks
from buildtool.plan.search.blocks import Blocks
from buildtool.plan.search.boundaries import Boundaries
from buildtool.plan.search.chain import Elements
from buildtool.plan.search.paths import MOST_LABELS, Search, Way, factor
from buildtool.plan.search.regions import INFINITE
from buildtool.plan.search.tables import Tables
from buildtool.target import catalogue
from buildtool.target.types import KernelVariant, Target

HAND_OFFS = (1, 4, 8)  # pixels; whole rows are always tried
MOST_FORMS = 200  # of all blocks: in larger networks a point's way is not looked for again by cost


@dataclass(frozen=True)
class Settings:
    """What a front depends on besides the graph and the target.

    `hand_off`: least pixels that go from operator to operator inside a group; `max_f`: ways that do more than
    this times the network's own work are left out; `most_labels`: a search is exact within this many labels.
    `loaded`: see `Elements.loaded`.
    """

    in_place: str = InPlace.ROWS
    image: str = Image.OVERWRITABLE
    hand_off: int | None = None
    max_f: float = blocks.MOST_REPETITION  # no way of the space does more
    loaded: tuple[tuple[int, int], ...] = ()
    most_labels: int = MOST_LABELS

    @property
    def hand_offs(self) -> tuple[int, ...]:
        """The hand-offs that are tried, ascending."""
        least = self.hand_off or HAND_OFFS[0]
        return (least, *(n for n in HAND_OFFS if n > least))


@dataclass(frozen=True)
class Ways:
    """The undominated ways in bytes and weight, in ascending order of bytes.

    `factor`: 1 where no way of the space beats any of them. Where the budget ended the search: for every way
    of the space one of these needs at most `factor` times its bytes, and does at most `factor` times its
    work.
    """

    ways: tuple[Way, ...]
    factor: float


@dataclass(frozen=True, eq=False)
class Space:
    """What ways are searched in: the same for all networks of a topology, and for all boards with the same
    kernels and alignment.
    """

    elements: Elements
    hand_offs: tuple[int, ...]
    session: Session  # caches the forms of equal chains

    @cached_property
    def blocks(self) -> Blocks:
        """The blocks that ways are made of."""
        return Blocks(self.elements, self.hand_offs, self.session)

    @cached_property
    def boundaries(self) -> Boundaries:
        """What surrounds regions, the same for all weights."""
        return Boundaries(self.blocks)

    @cached_property
    def tables(self) -> Tables:
        """What the search for the least work adds up."""
        return Tables(self.boundaries, per_work=1)

    @cached_property
    def cost_tables(self) -> Tables:
        """What the search for the least cost adds up."""
        return Tables(self.boundaries, per_cost=1)

    @remembered
    def cheapest(self, way: Way) -> Way | None:
        """The cheapest way with the work of a way of least work, in at most its bytes.

        A price on work is so high that the least work that can be saved outweighs all that ways may differ by
        in cost: so the work decides first. None in networks too large to look, where weights would leave 64
        bits, and where the search ends before it is proven.
        """
        if self.tables.starts[-1] > MOST_FORMS:
            return None
        # beyond the elements one by one, if every block makes all of its rows
        heights, tables = self.elements.heights, self.cost_tables
        forms = [form for region in way.regions for form in region.block_forms]
        cost = sum(tables.extra(form, heights[form.block.last]) for form in forms)
        work, once = self.elements.work_before[-1], tables.before[-1]
        price = 1 << ((once + cost) // self._least_saving).bit_length()
        if (max(work, way.weight) * price + once + max(cost, 0)) * 4 >= INFINITE:
            return None
        search = Search(self._priced(price), cost + price * (way.weight - work))
        cheapest = search.least(way.bytes)
        return cheapest if search.exact else None

    @remembered
    def _priced(self, price: int) -> Tables:
        return Tables(self.boundaries, 1, price)

    @cached_property
    def _least_saving(self) -> int:
        """A divisor of every way's work: what one pixel of each operator takes, as far as they share it."""
        e, shared = self.elements, 0
        for work, height, width in zip(np.diff(e.work_before).tolist(), e.heights, e.widths, strict=True):
            shared = math.gcd(shared, 1 if work % (height * width) else work // (height * width))
        return max(shared, 1)

    @cached_property
    def once(self) -> int:
        """Multiply-accumulates of the network run layer by layer, without second passes: an F of 1."""
        return total_macs(self.elements.graph)

    def most_extra(self, max_f: float) -> int:
        """Work beyond the elements' own that a way of at most this F may do."""
        return int(self.once * (max_f - 1.0)) + self.once - self.tables.before[-1]

    @remembered
    def ways(self, max_f: float, most_labels: int = MOST_LABELS) -> Ways:
        """Returns the undominated ways with at most this F that a search of `most_labels` labels finds."""
        extra = self.most_extra(max_f)
        search = Search(self.tables, extra, most_labels)
        ways = tuple(undominated(search.falling(), lambda way: (way.bytes, way.weight)))
        missed = 1.0 if search.exact else factor(self.tables, extra, ways, search.exact_way)
        return Ways(ways, missed)


def space_of(graph: Graph, target: Target, settings: Settings, session: Session) -> Space:
    """What the ways of a graph are searched in; UsageError where its image cannot be streamed."""
    kernels = catalogue.select_all(target, graph)
    if settings.image == Image.STREAM:
        refuse_unstreamable(graph, kernels)
    board, image = target.board, settings.image
    elements = Elements(
        *(topology(graph), kernels, board.alignment, target.costs, image, settings.in_place, settings.loaded)
    )
    return session.remember(
        "space",
        (elements, settings.hand_offs, blocks.STEPS),
        lambda: Space(elements, settings.hand_offs, session),
    )


def refuse_unstreamable(graph: Graph, kernels: Sequence[KernelVariant | None]) -> None:
    """UsageError unless the network has one image, read by one operator, in rows."""
    hint = [suggest(image="overwritable"), suggest(image="resident")]
    if len(graph.inputs) != 1:
        raise UsageError(f"a network of {len(graph.inputs)} inputs cannot stream its image", hint=hint)
    readers = graph.consumers().get(graph.inputs[0], ())
    image = graph.tensors[graph.inputs[0]]
    if len(readers) != 1 or graph.inputs[0] in graph.outputs:
        raise UsageError(f"an image that {len(readers)} operators read cannot be streamed", hint=hint)
    reader = readers[0]
    by_row = by_rows(graph, graph.ops[reader], kernels[reader])
    if len(image.shape) != 4 or image.shape[0] != 1 or not by_row:
        raise UsageError("an input that is not read row by row cannot be streamed", hint=hint)
