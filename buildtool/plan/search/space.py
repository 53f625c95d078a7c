"""The search space: the ways to run a network, and the undominated ones among them.

A way is a sequence of regions over the graph's operators in their order. A region is one operator in one
step, or a chain of groups that feed each other row by row. Tensors computed inside a region are not read
after it. Other inputs of a group that are read across one of its strides are whole tensors.

A group has at most MOST_OPERATORS operators. Only the next operator reads each one's output, except the
last one's. A group computes STEPS rows per step, by HAND_OFFS pixels or by whole rows, and does at most
MOST_REPETITION times its own work. In steps of up to MOST_WITH_EDGES rows, the first and the last one may
make more rows where that saves work (see `schedule.pace`). In the points of the front, groups compute several
rows per step only if that saves work.

Branches between a fork and the join of its readers are one group (see `sections`). A fusion in slices is a
region by itself, in which its operators run together by rows (see `graph.fusions` and `Elements.fused`). An
operator that resizes by a table of rows (see `schedule.receptive`) is a group by itself, or one among
branches, with one row per step. If a later block leaves out rows of branches, their bytes are still counted
for all rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from buildtool.base.distinct import undominated
from buildtool.base.errors import UsageError, suggest
from buildtool.base.modes import Image, InPlace
from buildtool.base.session import Session, remembered
from buildtool.graph.macs import total_macs
from buildtool.graph.topology import topology
from buildtool.graph.types import Graph
from buildtool.plan.schedule.delivery import delivered_image, objection
from buildtool.plan.schedule.receptive import MOST_ROWS, by_rows
from buildtool.plan.search import blocks
from buildtool.plan.search.blocks import Blocks
from buildtool.plan.search.boundaries import Boundaries
from buildtool.plan.search.chain import Elements
from buildtool.plan.search.chain_ends import Bands
from buildtool.plan.search.paths import MOST_LABELS, Search, Way, factor
from buildtool.plan.search.regions import INFINITE
from buildtool.plan.search.tables import Tables
from buildtool.target import catalogue
from buildtool.target.types import KernelVariant, Target

HAND_OFFS = (1, 4, 8)  # pixels; whole rows are always tried
MOST_FORMS = 200  # limit on the forms of all blocks for the search for a point's cheapest way


@dataclass(frozen=True)
class Settings:
    """The settings that a front depends on, besides the graph and the target.

    in_place, image: as in PlanOptions.
    hand_off: the fewest pixels that an operator makes before the next one of its group runs; None: any
        number.
    max_f: limit on a way's work, as a multiple of the network's own.
    loaded: see `Elements.loaded`.
    most_labels: the budget of a search, which is exact if it needs no more labels.
    """

    in_place: str = InPlace.ROWS
    image: str = Image.OVERWRITABLE
    hand_off: int | None = None
    max_f: float = blocks.MOST_REPETITION  # an upper bound for all ways of the space
    loaded: tuple[tuple[int, int], ...] = ()
    most_labels: int = MOST_LABELS

    @property
    def hand_offs(self) -> tuple[int, ...]:
        """Returns the hand-offs (pixels) to try, in ascending order."""
        least = self.hand_off or HAND_OFFS[0]
        return (least, *(n for n in HAND_OFFS if n > least))


@dataclass(frozen=True)
class Ways:
    """The Pareto front of bytes and weight, in ascending order of bytes.

    `factor`: the optimality gap. For every way of the space, one of `ways` has at most `factor` times its
    bytes and at most `factor` times its work. It is 1 if the budget did not end the search.
    """

    ways: tuple[Way, ...]
    factor: float


@dataclass(frozen=True, eq=False)
class Space:
    """The search space of a network. Equal topologies share it on boards with equal kernels and alignment."""

    elements: Elements
    hand_offs: tuple[int, ...]
    session: Session  # caches the forms of equal chains

    @cached_property
    def blocks(self) -> Blocks:
        """Returns the blocks that ways are made of."""
        return Blocks(self.elements, self.hand_offs, self.session)

    @cached_property
    def boundaries(self) -> Boundaries:
        """Returns the properties of cuts and elements, which are the same for all weights."""
        return Boundaries(self.blocks)

    @cached_property
    def tables(self) -> Tables:
        """Returns the tables of the search for the least work."""
        return Tables(self.boundaries, per_work=1)

    @cached_property
    def plain_tables(self) -> Tables:
        """Returns the tables of the search for the least work, without groups of bands."""
        return replace(self.tables, bands=Bands.NONE)

    @cached_property
    def copying_tables(self) -> Tables:
        """Returns the tables of the search for the least work, with bands only if they copy rows.

        Groups that swap rows, and groups of bands that end with a global pooling, are left out.
        """
        return replace(self.tables, bands=Bands.COPIED)

    @cached_property
    def cost_tables(self) -> Tables:
        """Returns the tables of the search for the least cost."""
        return Tables(self.boundaries, per_cost=1)

    @remembered
    def cheapest(self, way: Way) -> Way | None:
        """Returns the cheapest way with the same work as `way`, within its bytes; None if it is not proven.

        `way` has the least work within its bytes. The search minimises cost plus a price for each
        multiply-accumulate. The price is so high that the smallest difference in work outweighs every
        difference in cost. So work decides first. The result is None if the network is too large for this
        search, if weights would exceed 64 bits, or if the search ends before its result is proven.
        """
        if self.plain_tables.starts[-1] > MOST_FORMS:
            return None
        # the cost beyond the elements one by one, if every block computes all of its rows
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
        """Returns the greatest common divisor of the operators' work per pixel. It divides all ways' work."""
        e, shared = self.elements, 0
        for work, height, width in zip(np.diff(e.work_before).tolist(), e.heights, e.widths, strict=True):
            shared = math.gcd(shared, 1 if work % (height * width) else work // (height * width))
        return max(shared, 1)

    @cached_property
    def once(self) -> int:
        """Returns the multiply-accumulates of the network layer by layer, that is, the work at F = 1.

        Second passes are not counted.
        """
        return total_macs(self.elements.graph)

    def most_extra(self, max_f: float) -> int:
        """Returns the limit for a way's extra work: multiply-accumulates beyond those of its elements.

        Each element counts once, as if it made no row twice. `max_f`: the limit for all work of the way, as a
        multiple of the network's own.
        """
        return int(self.once * (max_f - 1.0)) + self.once - self.tables.before[-1]

    @remembered
    def ways(self, max_f: float, most_labels: int = MOST_LABELS) -> Ways:
        """Returns the Pareto front of the ways within `max_f` that a search of `most_labels` labels finds."""
        extra = self.most_extra(max_f)
        search = Search(self.tables, extra, most_labels)
        falling = self.plainly(search, INFINITE)
        ways = tuple(undominated(falling, lambda way: (way.bytes, way.weight)))
        gap = 1.0 if search.exact else factor(self.tables, extra, ways, search.exact_way)
        return Ways(ways, gap)

    def plainly(self, search: Search, most_bytes: int) -> Iterator[Way]:
        """Yields the ways of a search with falling limits, without groups of bands where these do not pay.

        Copying rows costs more than keeping them in a ring, which bytes and work do not show. So a way with
        groups of bands is replaced by a way without them that has the same bytes and work. In the same way, a
        way that swaps rows is replaced by one that copies them: swapping keeps windows in memory for longer.
        `most_bytes`: the first limit.
        """
        plain, copying = (
            Search(tables, search.most_extra, search.most_labels)
            for tables in (self.plain_tables, self.copying_tables)
        )
        for way in search.falling(most_bytes):
            forms = (form for region in way.regions for form in region.block_forms)
            bands = max((form.block.bands for form in forms), default=Bands.NONE)
            plain.most_labels = search.most_labels - copying.labels  # both have one budget
            found = _find_like(way, plain) if bands else None
            copying.most_labels = search.most_labels - plain.labels
            yield found or (_find_like(way, copying) if bands > Bands.COPIED else None) or way


def _find_like(way: Way, search: Search) -> Way | None:
    """Returns the way of another search with the same bytes and weight as `way`; None if it finds none.

    Each call must ask for fewer bytes than the call before it.
    """
    found = search.least(way.bytes)
    return found if found and (found.bytes, found.weight) == (way.bytes, way.weight) else None


def space_of(graph: Graph, target: Target, settings: Settings, session: Session) -> Space:
    """Returns the search space of a graph.

    Raises UsageError if the settings stream the input image, but this network's image cannot be streamed.
    """
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
    """Raises UsageError unless all readers of an input image can read it row by row.

    `kernels`: one per operator, None for aliases.
    """
    image = delivered_image(graph)
    found = objection(graph, image)
    for position in image.readers if found is None else ():
        op, kernel = graph.ops[position], kernels[position]
        if not by_rows(graph, op, kernel):
            found = (
                position,
                f"has kernel '{kernel.name if kernel else ''}', which computes whole tensors only",
            )
            if graph.tensors[image.tensor].nhwc[1] > MOST_ROWS:
                found = position, f"reads more than {MOST_ROWS} rows"
            break
    if found is not None:
        position, why = found
        text = "the input image cannot be streamed" if len(graph.inputs) == 1 else "no input can be streamed"
        text += f": the operator {why}" if position >= 0 else f": it {why}"
        name, place = graph.tensors[image.input].name, graph.ops[position].place if position >= 0 else ""
        hint = [suggest(image="overwritable"), suggest(image="resident")]
        raise UsageError(text, tensor=name, operator=place, hint=hint)
