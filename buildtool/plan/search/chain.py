"""A network as the search sees it: elements, the cuts between them, and the live tensors at each cut.

Elements are the operators that run (aliases do not), in the graph's order. At the cut before element c some
tensors lie whole in the arena.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from buildtool.base.modes import Image, InPlace
from buildtool.base.session import remembered
from buildtool.graph.fusions import fusions
from buildtool.graph.liveness import alias_roots, state_of
from buildtool.graph.macs import op_macs
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.topology import Topology
from buildtool.graph.types import Graph, Op
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.axis import Axis, AxisTable
from buildtool.plan.schedule.costs import CostModel
from buildtool.plan.schedule.delivery import Delivered, delivered_image, drives
from buildtool.plan.schedule.receptive import axes, by_rows, columns, fed_in_parts, row_inputs, rows
from buildtool.plan.types import Group, Region, Scheme
from buildtool.target import catalogue
from buildtool.target.costs import COST_UNITS
from buildtool.target.types import Costs, KernelVariant


@dataclass(frozen=True)
class Elements:
    """The properties of a network's elements (operators that run) and tensors that the search uses.

    `kernels`: one per operator, None for aliases. `alignment`: in bytes. `image` and `in_place`: as in
    PlanOptions. `loaded` is empty if weights are read in place. Otherwise it has two sizes for each operator:
    the bytes of its constants, which it needs in a streamed region, and the fewest bytes of constants that it
    needs when it runs alone, in slices of its output channels.
    """

    topology: Topology
    kernels: tuple[KernelVariant | None, ...]
    alignment: int
    costs: Costs
    image: str = Image.OVERWRITABLE
    in_place: str = InPlace.ROWS
    loaded: tuple[tuple[int, int], ...] = ()

    @cached_property
    def graph(self) -> Graph:
        """Returns the network without names, weights and quantisation. Its tensors have canonical numbers."""
        return self.topology.bare_graph()

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """Returns element -> its position in Graph.ops."""
        return tuple(i for i, op in enumerate(self.graph.ops) if op.kind not in ALIAS_KINDS)

    @cached_property
    def count(self) -> int:
        """Returns the number of elements."""
        return len(self.positions)

    @cached_property
    def ops(self) -> tuple[Op, ...]:
        """Returns element -> its operator."""
        return tuple(self.graph.ops[position] for position in self.positions)

    @cached_property
    def own_kernels(self) -> tuple[KernelVariant | None, ...]:
        """Returns element -> its kernel."""
        return tuple(self.kernels[position] for position in self.positions)

    # ---- tensors ---------------------------------------------------------------------------------

    @cached_property
    def roots(self) -> Mapping[int, int]:
        """Returns activation -> its root, the tensor whose bytes it shares (itself if it shares none)."""
        return alias_roots(self.graph)

    @cached_property
    def makes(self) -> tuple[int, ...]:
        """Returns element -> its first output."""
        return tuple(op.outputs[0] for op in self.ops)

    @cached_property
    def readers(self) -> Mapping[int, tuple[int, ...]]:
        """Returns tensor (root, see alias_roots) -> the elements that read it."""
        readers: dict[int, tuple[int, ...]] = {}
        for element, op in enumerate(self.ops):
            for root in dict.fromkeys(self.roots[t] for t in op.inputs if t in self.roots):
                readers[root] = (*readers.get(root, ()), element)
        return readers

    @cached_property
    def outputs(self) -> frozenset[int]:
        """Returns the roots (see `roots`) of the network's outputs and states."""
        tensors = (*self.graph.outputs, *state_of(self.graph))
        return frozenset(self.roots[t] for t in tensors if t in self.roots)

    @cached_property
    def made_at(self) -> Mapping[int, int]:
        """Returns tensor (root) -> the element that computes it; -1 for the network's inputs and states.

        For a streamed image it is the element before its first reader.
        """
        producers = dict.fromkeys((*self.graph.inputs, *(state.before for state in self.graph.states)), -1)
        if self.image == Image.STREAM:
            producers[self.delivered.input] = self.first_reader - 1
        producers.update((t, element) for element, op in enumerate(self.ops) for t in op.outputs)
        return producers

    @cached_property
    def last_read(self) -> Mapping[int, int]:
        """Returns tensor (root) -> the last element that needs it; for outputs, one past the last element."""
        last = {t: max(self.readers.get(t, (producer,))) for t, producer in self.made_at.items()}
        lasting = self.outputs | (
            frozenset(self.graph.inputs) if self.image == Image.RESIDENT else frozenset()
        )
        return last | dict.fromkeys(lasting, self.count)

    @cached_property
    def live(self) -> tuple[frozenset[int], ...]:
        """Returns cut -> the tensors (roots) that must be complete in memory at this cut.

        Cut c is before element c.
        """
        tensors: list[set[int]] = [set() for _ in range(self.count + 1)]
        for t, producer in self.made_at.items():
            for cut in range(producer + 1, self.last_read[t] + 1):
                tensors[cut].add(t)
        return tuple(map(frozenset, tensors))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Returns tensor -> aligned bytes of the whole tensor in the arena; 0 for a state."""
        elsewhere = state_of(self.graph)
        sizes = (0 if i in elsewhere else t.size for i, t in enumerate(self.graph.tensors))
        return tuple(round_up(size, self.alignment) for size in sizes)

    def constants(self, first: int, last: int) -> int:
        """Returns the bytes of constants that elements `first` to `last` need in the arena while they run.

        They run together as a block of a streamed region. 0 if weights are read in place.
        """
        return sum(self.loaded[p][0] for p in self.positions[first : last + 1]) if self.loaded else 0

    # ---- rows ------------------------------------------------------------------------------------

    @cached_property
    def by_rows(self) -> tuple[bool, ...]:
        """Returns element -> whether it can run row by row."""
        return tuple(
            self._can_run_by_rows(p) and element not in self.fused for element, p in enumerate(self.positions)
        )

    def _can_run_by_rows(self, position: int) -> bool:
        return by_rows(self.graph, self.graph.ops[position], self.kernels[position])

    @cached_property
    def fused(self) -> Mapping[int, range]:
        """Returns element of a fusion in slices -> all elements of the fusion. They always run as one region.

        A fusion in slices is a 1x1 convolution over joined branches that runs slice by slice (see
        `graph.fusions`). The result is empty if constants are loaded into the arena, or if outputs may not
        overwrite rows of inputs.
        """
        if self.loaded or self.in_place != InPlace.ROWS:
            return {}
        elements_of = {}
        for fusion in fusions(self.graph):
            if all(map(self._can_run_by_rows, range(fusion.first, fusion.last + 1))):
                elements = range(self.positions.index(fusion.first), self.positions.index(fusion.last) + 1)
                elements_of.update(dict.fromkeys(elements, elements))
        return elements_of

    def begins(self, element: int) -> bool:
        """Returns whether a region may begin with an element. It may not begin inside a fusion in slices."""
        return element not in self.fused or self.fused[element].start == element

    def region_of(self, element: int) -> Region:
        """Returns the region that runs one element over all rows in one step.

        For an element of a fusion in slices it is the region of the whole fusion.
        """
        elements = self.fused.get(element)
        if elements is None:
            return Region((Group((self.positions[element],)),))
        return Region((Group(tuple(self.positions[e] for e in elements), Scheme.BRANCHES, 1),))

    @cached_property
    def feeds(self) -> tuple[bool, ...]:
        """Returns element -> whether its output can go straight into the next element, row by row."""
        elements = zip(self.by_rows, self.fed_in_parts, self.makes, (*self.rows_read[1:], ()), strict=True)
        feeds = [rows and not sums and output in after for rows, sums, output, after in elements]
        if self.image == Image.STREAM and self.first_reader:
            feeds[self.first_reader - 1] = False  # the region that asks for the image begins with its reader
        return tuple(feeds)

    @cached_property
    def fed_in_parts(self) -> tuple[bool, ...]:
        """Returns element -> whether it ends a region: it reads rows one by one, but its output is whole."""
        return tuple(fed_in_parts(self.graph, op) for op in self.ops)

    @cached_property
    def rows_read(self) -> tuple[tuple[int, ...], ...]:
        """Returns element -> the activations that it reads row by row, if it can run row by row."""
        both = zip(self.ops, self.by_rows, strict=True)
        return tuple(row_inputs(self.graph, op) if streams else () for op, streams in both)

    @cached_property
    def read_whole(self) -> tuple[frozenset[int], ...]:
        """Returns element -> the activations of which it needs all rows for every row that it makes."""
        both = zip(self.ops, self.rows_read, strict=True)
        return tuple(
            frozenset(t for t in op.inputs if t in self.roots and t not in by_row) for op, by_row in both
        )

    @cached_property
    def main(self) -> tuple[int, ...]:
        """Returns element -> its main input.

        This is the previous element's output if the element reads that row by row. Otherwise it is the first
        tensor that it reads row by row, or the first one that it reads at all.
        """
        main = []
        for op, by_row, before in zip(self.ops, self.rows_read, (-1, *self.makes), strict=False):
            any_read = [t for t in op.inputs if t in self.roots] or op.inputs
            main.append(before if before in by_row else (by_row or any_read)[0])
        return tuple(main)

    @cached_property
    def beside(self) -> tuple[tuple[int, ...], ...]:
        """Returns element -> the activations that it reads in addition to its main input."""
        both = zip(self.ops, self.main, strict=True)
        return tuple(tuple(t for t in op.inputs if t in self.roots and t != main) for op, main in both)

    @cached_property
    def axes_of(self) -> tuple[tuple[Axis, Axis], ...]:
        """Returns element -> its row axis and its column axis, each from input to output."""
        return tuple(axes(self.graph, op) for op in self.ops)

    @cached_property
    def uneven(self) -> tuple[bool, ...]:
        """Returns element -> whether its rows follow a table and not a stride.

        Such an element is a group by itself.
        """
        return tuple(isinstance(axis, AxisTable) for axis, _ in self.axes_of)

    @cached_property
    def heights(self) -> tuple[int, ...]:
        """Returns element -> the number of rows that its kernel loops over (see `receptive.rows`)."""
        return tuple(rows(self.graph, op) for op in self.ops)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Returns element -> the number of columns that its kernel loops over (see `receptive.columns`)."""
        return tuple(columns(self.graph, op) for op in self.ops)

    def input_rows(self, element: int) -> int:
        """Returns the number of rows of an element's main input."""
        return self.graph.tensors[self.main[element]].nhwc[1]

    # ---- scratch, work, cost -----------------------------------------------------------------------

    @cached_property
    def scratch(self) -> tuple[int, ...]:
        """Returns element -> aligned bytes of scratch that its kernel needs for calls of whole rows."""
        return tuple(self.scratch_for(element, width) for element, width in enumerate(self.widths))

    @remembered
    def scratch_for(self, element: int, columns: int) -> int:
        """Returns the aligned bytes of scratch that an element's kernel needs for its calls.

        `columns`: the most columns of a call.
        """
        kernel = self.own_kernels[element]
        size = catalogue.scratch_bytes(kernel, self.graph, self.ops[element], columns) if kernel else 0
        return round_up(size, self.alignment)

    @cached_property
    def work_before(self) -> tuple[int, ...]:
        """Returns cut -> multiply-accumulates of all elements before it, each run once."""
        return (0, *accumulate(op_macs(self.graph, op) for op in self.ops))

    @cached_property
    def model(self) -> CostModel:
        """Returns the model that estimates the cost of kernel calls."""
        return CostModel(self.graph, self.kernels, self.costs)

    @cached_property
    def cost(self) -> tuple[float, ...]:
        """Returns element -> its estimated cost when it runs alone, all rows in one step.

        The first element of a fusion in slices has the cost of the fusion, its other elements 0.
        """
        return tuple(
            self.model.region(self.region_of(e), self.image) if self.begins(e) else 0.0
            for e in range(self.count)
        )

    @cached_property
    def cost_before(self) -> tuple[int, ...]:
        """Returns cut -> the cost of all elements before it, each run alone, in units of 1 / COST_UNITS."""
        return (0, *accumulate(round(cost * COST_UNITS) for cost in self.cost))

    def delivery(self, first: int, rows: int) -> float:
        """Returns the cost of delivering rows of an input image to a region that begins with element `first`.

        `rows`: how many rows the region needs. If the region does not get the rows one by one, all rows of
        the image are delivered before it. The cost is 0 if no image is delivered to this region.
        """
        if not self.asks(first):
            return 0.0
        image = self.graph.tensors[self.delivered.tensor]
        return self.model.delivery(rows if self.fed(first) else image.nhwc[1])

    def fed(self, first: int) -> bool:
        """Returns whether rows of an image are delivered one by one to a region that begins with `first`."""
        return self.asks(first) and drives(self.graph, self.delivered)

    def asks(self, first: int) -> bool:
        """Returns whether a region that begins with `first` asks for the rows of a delivered image."""
        return self.image == Image.STREAM and first == self.first_reader

    @property
    def delivered(self) -> Delivered:
        """Returns the network input that is delivered row by row if `image` is "stream"."""
        return delivered_image(self.graph)

    @cached_property
    def first_reader(self) -> int:
        """Returns the first element that reads the delivered image."""
        return self.positions.index(self.delivered.first)
