"""What the search may choose from: cuts, blocks of operators, and what each of them costs.

Elements are the operators that run (aliases do not), in the graph's order. A cut before element c
leaves some tensors whole in the arena. A block is a run of elements that can be one group of a
streamed region: each feeds the next one and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np

from buildtool.graph.liveness import alias_roots
from buildtool.graph.macs import op_macs
from buildtool.graph.types import ALIAS_KINDS, Graph
from buildtool.plan.arena import round_up
from buildtool.plan.receptive import Axis, accumulates, axes, columns, rows, streams, through
from buildtool.plan.rings import accumulator_bytes, windows
from buildtool.plan.types import Group, Scheme
from buildtool.target import catalogue
from buildtool.target.types import KernelVariant

MOST_OPERATORS = 10  # in one block
STEPS = (1, 2, 3, 4, 6, 8)  # rows a block may make in one go
MOST_REPETITION = 6.0  # a block that multiplies its own work by more is not worth a look


@dataclass(frozen=True)
class Block:
    """Elements [first, last] as one group that makes `step` rows in one go.

    `need`: rows of its input for one step; `axis`: from its input's rows to its output's; `bytes`:
    windows, scratch and accumulators while it runs, aligned; `work`: multiply-accumulates of all its
    steps; `calls`: kernel calls of all its steps.
    """

    first: int
    last: int
    step: int
    group: Group
    axis: Axis
    need: int
    window: int
    sums: int
    work: int
    calls: int


@dataclass(frozen=True)
class Elements:
    """A graph as the search sees it; everything by element, tensors by their root."""

    graph: Graph
    kernels: tuple[KernelVariant | None, ...]
    alignment: int
    hand_off: int

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """Element -> position in Graph.ops."""
        return tuple(i for i, op in enumerate(self.graph.ops) if op.kind not in ALIAS_KINDS)

    @cached_property
    def roots(self) -> Mapping[int, int]:
        """Activation -> the tensor whose bytes it is."""
        return alias_roots(self.graph)

    @cached_property
    def reads(self) -> tuple[tuple[int, ...], ...]:
        """Element -> the activations (roots) it reads."""
        return tuple(
            tuple(dict.fromkeys(self.roots[t] for t in self.graph.ops[p].inputs if t in self.roots))
            for p in self.positions
        )

    @cached_property
    def makes(self) -> tuple[int, ...]:
        """Element -> its first output."""
        return tuple(self.graph.ops[p].outputs[0] for p in self.positions)

    @cached_property
    def readers(self) -> Mapping[int, tuple[int, ...]]:
        """Root -> the elements that read it."""
        found: dict[int, list[int]] = {}
        for element, tensors in enumerate(self.reads):
            for t in tensors:
                found.setdefault(t, []).append(element)
        return {t: tuple(found[t]) for t in found}

    @cached_property
    def outputs(self) -> frozenset[int]:
        """Roots of the network's outputs."""
        return frozenset(self.roots[t] for t in self.graph.outputs if t in self.roots)

    @cached_property
    def live(self) -> tuple[frozenset[int], ...]:
        """Cut -> the roots that have to be whole there; cut c is before element c."""
        made = dict.fromkeys(self.graph.inputs, -1)
        for element, position in enumerate(self.positions):
            made.update((t, element) for t in self.graph.ops[position].outputs)
        end = len(self.positions)
        last = {t: max(self.readers.get(t, (made[t],))) for t in made}
        last.update((t, end) for t in self.outputs)
        return tuple(frozenset(t for t in made if made[t] < cut <= last[t]) for cut in range(end + 1))

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(round_up(t.size, self.alignment) for t in self.graph.tensors)

    @cached_property
    def _rows(self) -> tuple[tuple[int, int], ...]:
        """Tensor -> rows, bytes of a row."""
        shapes = [t.nhwc for t in self.graph.tensors]
        return tuple((height, width * channels) for _, height, width, channels in shapes)

    def size(self, tensor: int) -> int:
        """Aligned bytes of a whole tensor."""
        return self._sizes[tensor]

    def row_bytes(self, tensor: int) -> int:
        """Bytes of one row."""
        return self._rows[tensor][1]

    def height(self, tensor: int) -> int:
        """Rows."""
        return self._rows[tensor][0]

    @cached_property
    def _axes(self) -> dict[tuple[int, int], Axis]:
        return {}

    def axis(self, first: int, last: int) -> Axis:
        """The row axis from the input of element `first` to the output of `last` (before it: none)."""
        found = self._axes.get((first, last))
        if found is None:
            found = self._axes[first, last] = through(self.graph, self.positions[first : last + 1])
        return found

    @cached_property
    def distances(self) -> dict[tuple[int, int, int, int, int], int]:
        """Remembered by RegionSearch.distance."""
        return {}

    def feeds(self, element: int) -> bool:
        """Whether an element's output goes straight into the next element, row by row."""
        if element + 1 >= len(self.positions):
            return False
        here, after = (self.graph.ops[self.positions[e]] for e in (element, element + 1))
        return (
            streams(self.graph, here)
            and streams(self.graph, after)
            and not accumulates(self.graph, here)
            and here.outputs[0] in after.inputs
        )

    @cached_property
    def blocks(self) -> tuple[tuple[Block, ...], ...]:
        """Last element -> the blocks that end there."""
        return tuple(
            tuple(b for first in self._firsts(last) for b in self._steps(first, last))
            for last in range(len(self.positions))
        )

    def _firsts(self, last: int) -> list[int]:
        """First elements of the blocks that end at `last`."""
        if not streams(self.graph, self.graph.ops[self.positions[last]]):
            return []
        found = [last]
        first = last
        while first and self.feeds(first - 1) and len(found) < MOST_OPERATORS:
            inner = self.makes[first - 1]
            if self.readers[inner] != (first,) or inner in self.outputs:
                break
            first -= 1
            found.append(first)
        return found

    def _steps(self, first: int, last: int) -> list[Block]:
        position = self.positions[last]
        height = rows(self.graph, self.graph.ops[position])
        found: list[Block] = []
        least = self.work_before[last + 1] - self.work_before[first]
        fewest = 0
        for step in STEPS if first < last else STEPS[:1]:
            if step > 1 and step >= 2 * height:
                break
            tried = [self.block(first, last, step, pixels) for pixels in self._hand_offs(first, last)]
            if fewest and tried[0].work >= fewest:
                continue  # more rows in one go that save nothing
            fewest = tried[0].work
            if fewest <= MOST_REPETITION * least:
                found += tried
        return found

    def _hand_offs(self, first: int, last: int) -> list[int]:
        """Pixels of a block's output in one go: `hand_off`, or so many of its input where that is wider."""
        if first == last:
            return [0]
        stride = 1
        for position in self.positions[first + 1 : last + 1]:
            stride *= axes(self.graph, self.graph.ops[position])[1].stride
        return list(dict.fromkeys((self.hand_off, max(1, self.hand_off // stride))))

    @cached_property
    def work_before(self) -> tuple[int, ...]:
        """Cut -> multiply-accumulates of all elements before it, run once."""
        return (0, *accumulate(self.work(e) for e in range(len(self.positions))))

    def work(self, element: int) -> int:
        """Multiply-accumulates of an element run once."""
        return op_macs(self.graph, self.graph.ops[self.positions[element]])

    def block(self, first: int, last: int, step: int, hand_off: int) -> Block:
        """One candidate."""
        ops = self.positions[first : last + 1]
        alone = len(ops) == 1
        group = Group(ops, Scheme.OPERATOR if alone else Scheme.H_CACHED, step, hand_off)
        held = sum(round_up(k.size, self.alignment) for k in windows(self.graph, group))
        scratch = max(self.scratch(e) for e in range(first, last + 1))
        axis = through(self.graph, ops)
        work, calls = self._work(group)
        end = self.graph.ops[ops[-1]]
        sums = accumulator_bytes(self.graph, ops[-1]) if accumulates(self.graph, end) else 0
        need = axis.extent(step)
        return Block(
            first, last, step, group, axis, need, held + scratch, round_up(sums, self.alignment), work, calls
        )

    def scratch(self, element: int) -> int:
        """Aligned scratch bytes of an element's kernel."""
        position = self.positions[element]
        kernel = self.kernels[position]
        if kernel is None:
            return 0
        wanted = catalogue.scratch_bytes(kernel, self.graph, self.graph.ops[position])
        return round_up(wanted, self.alignment)

    def _work(self, group: Group) -> tuple[int, int]:
        """Multiply-accumulates and calls of a group over all its steps, rows clipped at the borders."""
        graph = self.graph
        last = graph.ops[group.ops[-1]]
        height = rows(graph, last)
        low = np.arange(0, height, group.rows_per_step)
        high = np.minimum(low + group.rows_per_step, height)
        chunks = -(-columns(graph, last) // (group.hand_off or columns(graph, last)))
        work = 0
        for index in range(len(group.ops) - 1, -1, -1):
            op = graph.ops[group.ops[index]]
            if not accumulates(graph, op):
                made = int((high - low).sum())
                work += op_macs(graph, op) * made // graph.tensors[op.outputs[0]].nhwc[1]
            if index:
                axis, _ = axes(graph, op)
                tall = graph.tensors[graph.ops[group.ops[index - 1]].outputs[0]].nhwc[1]
                low = np.maximum(0, low * axis.stride - axis.pad)
                high = np.minimum(tall, (high - 1) * axis.stride - axis.pad + axis.kernel)
        return work, len(group.ops) * chunks * -(-height // group.rows_per_step)


def elements(
    graph: Graph, kernels: Sequence[KernelVariant | None], alignment: int, hand_off: int
) -> Elements:
    """The graph as the search sees it; `hand_off` pixels go from operator to operator in a block."""
    return Elements(graph, tuple(kernels), alignment, hand_off)
