"""The front by brute force: tries every sequence of regions of a small graph, each assembled into a plan.

    Twin(graph, target, image, in_place).front(Twin.work)   # [(live bytes, weight), ...]

It uses no part of the search. Regions follow from the graph alone. A region's bytes and work are those in a
plan in which every other operator runs alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import pytest
from hypothesis import reject
from window_twin import sizes
from window_twin import windows as least_windows

from buildtool.graph.liveness import alias_roots
from buildtool.graph.macs import op_macs
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.types import Graph, OpKind
from buildtool.plan.assemble.assemble import accumulators, band_lines, tensor_buffers
from buildtool.plan.place.arena import Item, Permission, Problem, round_up
from buildtool.plan.place.solver import Status, solve
from buildtool.plan.schedule.delivery import delivered_image
from buildtool.plan.schedule.overlap import distance, region_distance
from buildtool.plan.schedule.receptive import (
    accumulates,
    axes,
    fed_in_parts,
    row_inputs,
    scatters,
    streams,
    through,
)
from buildtool.plan.schedule.rings import rings
from buildtool.plan.schedule.schedule import Run, count_executed_macs, run
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.search import blocks
from buildtool.plan.search import front as fronts
from buildtool.plan.search import space as search_space
from buildtool.plan.search.paths import Search
from buildtool.plan.types import SOURCE, Buffer, BufferKind, Group, Region, Scheme, Step
from buildtool.target import catalogue
from buildtool.target.costs import COST_UNITS, Part, Pricer, Rings, geometry, part
from buildtool.target.types import Contract, Target
from buildtool.target.variables import Geometry

CONTRACTS = {
    "rows": (Contract.ROW, Contract.PIXEL, Contract.PARTS),
    "elementwise": (Contract.PIXEL,),
    "none": (),
}
ENLARGING = (OpKind.RESIZE_BILINEAR, OpKind.RESIZE_NEAREST_NEIGHBOR, OpKind.TRANSPOSE_CONV)
Front = list[tuple[int, int]]
MOST_REGIONS = 300


@dataclasses.dataclass(frozen=True)
class Space:
    """The limits of groups: rows per step, pixels handed on, operators, repeated work."""

    steps: tuple[int, ...] = (1, 2, 3, 4, 6, 8)
    hand_offs: tuple[int, ...] = (1, 4, 8)
    most_operators: int = 10
    most_repetition: float = 6.0
    most_with_edges: int = 3

    @contextlib.contextmanager
    def searched(self) -> Iterator[None]:
        """Gives the search this space during the block."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(blocks, "STEPS", self.steps)
            patch.setattr(blocks, "MOST_OPERATORS", self.most_operators)
            patch.setattr(search_space, "HAND_OFFS", self.hand_offs)
            yield


class Held(NamedTuple):
    """A plan's tensors, rings and sums; one region's window columns, workspace bytes and steps."""

    buffers: tuple[Buffer, ...]
    windows: dict[int, int]
    workspace: int
    begin: int
    end: int


@dataclasses.dataclass(frozen=True, eq=False)
class Twin:
    """Elements are the operators that run, in order. A region is [first, end) of them."""

    graph: Graph
    target: Target
    image: str = "overwritable"
    in_place: str = "rows"
    space: Space = Space()

    # ---- the graph -----------------------------------------------------------------------------------

    @functools.cached_property
    def running(self) -> list[int]:
        """Element -> position in Graph.ops."""
        return [p for p, op in enumerate(self.graph.ops) if op.kind not in ALIAS_KINDS]

    @functools.cached_property
    def roots(self) -> dict[int, int]:
        return dict(alias_roots(self.graph))

    def op(self, e: int):
        return self.graph.ops[self.running[e]]

    def made(self, e: int) -> int:
        return self.op(e).outputs[0]

    @functools.cache  # noqa: B019
    def readers(self, root: int) -> list[int]:
        """Returns the elements that read a tensor or an alias of it."""
        return [
            e
            for e in range(len(self.running))
            if root in {self.roots[t] for t in self.op(e).inputs if t in self.roots}
        ]

    @functools.cached_property
    def born(self) -> dict[int, int]:
        """Root -> the element that makes it, -1 for inputs."""
        outputs = {t: e for e in range(len(self.running)) for t in self.op(e).outputs}
        inputs = dict.fromkeys(self.graph.inputs, -1)
        if self.image == "stream":
            inputs[self.delivered.input] = self.first_reader - 1
        return inputs | outputs

    @functools.cached_property
    def delivered(self):
        return delivered_image(self.graph)

    @functools.cached_property
    def first_reader(self) -> int:
        """The element whose region asks for the image's rows; a region begins with it."""
        return self.running.index(self.delivered.first)

    @functools.cached_property
    def dies(self) -> dict[int, int]:
        """Root -> the last element that reads (or makes) it. Outputs live past the last element."""
        last = {t: max([e, *self.readers(t)]) for t, e in self.born.items()}
        ends = [*self.graph.outputs, *(self.graph.inputs if self.image == "resident" else ())]
        return last | {self.roots[t]: len(self.running) for t in ends if t in self.roots}

    @functools.cache  # noqa: B019
    def main(self, e: int) -> int:
        """Returns the tensor that feeds an element: the output of the one before it, or its first input."""
        op = self.op(e)
        inputs = row_inputs(self.graph, op) if streams(self.graph, op) else op.inputs
        return self.made(e - 1) if e and self.made(e - 1) in inputs else inputs[0]

    @functools.cache  # noqa: B019
    def feeds(self, e: int) -> bool:
        """Whether an element feeds the next one row by row."""
        here, after = self.op(e), self.op(e + 1)
        rows = streams(self.graph, here) and streams(self.graph, after)
        if self.image == "stream" and e + 1 == self.first_reader:
            return False
        return (
            rows and not fed_in_parts(self.graph, here) and here.outputs[0] in row_inputs(self.graph, after)
        )

    def through(self, first: int, end: int):
        return through(self.graph, tuple(self.running[first:end]))

    # ---- the space -----------------------------------------------------------------------------------

    def all_regions(self) -> Iterator[Region]:
        """Yields all regions of the network."""
        for end in range(1, len(self.running) + 1):
            for first in range(end):
                yield from self.regions(first, end, False)

    def regions(self, first: int, end: int, frugal: bool) -> Iterator[Region]:
        """Yields all regions of [first, end). `frugal`: groups have more rows per step only to save work."""
        if end == first + 1:
            yield Region((Group((self.running[first],)),))
        inside = range(first, end)
        if all(streams(self.graph, self.op(e)) for e in inside) and all(
            self.feeds(e) and self.dies[self.made(e)] < end for e in inside[:-1]
        ):
            chains = (groups for groups in self._chains(first, end, frugal) if self._rings_do(first, groups))
            yield from map(Region, chains)

    def _chains(self, first: int, end: int, frugal: bool) -> Iterator[tuple[Group, ...]]:
        """Yields all ways to cut [first, end) into groups."""
        if first == end:
            yield ()
        for stop in range(first + 1, min(end, first + self.space.most_operators) + 1):
            if stop == end or self._can_be_ring(stop, end):
                for group in self.groups(first, stop, frugal):
                    yield from ((group, *rest) for rest in self._chains(stop, end, frugal))

    def _can_be_ring(self, cut: int, end: int) -> bool:
        """Whether later readers of the tensor between two groups read it without an alias."""
        return all(
            self.made(cut - 1) in self.op(e).inputs for e in self.readers(self.made(cut - 1)) if cut < e < end
        )

    def _rings_do(self, first: int, groups: tuple[Group, ...]) -> bool:
        """Whether earlier tensors of the region that groups read advance together with their input."""
        begin, makers = first, {self.made(e): e for e in range(first, len(self.running))}
        if (
            self.image == "stream"
            and first == self.first_reader
            and self.main(first) == self.delivered.tensor
        ):
            last = first + sum(len(group.ops) for group in groups)
            if self.dies[self.delivered.input] < last:  # else it is whole
                makers[self.delivered.tensor] = first
        for group in groups:
            for e in range(begin, begin + len(group.ops)):
                beside = [t for t in self.op(e).inputs if makers.get(t, begin) < begin and t != self.main(e)]
                if beside and self.through(begin, e + 1).stride != 1:
                    return False
            begin += len(group.ops)
        return True

    @functools.cache  # noqa: B019
    def groups(self, first: int, stop: int, frugal: bool) -> tuple[Group, ...]:
        """Returns all groups of [first, stop)."""
        ops = tuple(self.running[first:stop])
        if len(ops) == 1:
            return (Group(ops, Scheme.OPERATOR, 1, 0),)
        if any(self.op(e).kind in ENLARGING for e in range(first, stop)):
            return ()  # they are only groups of their own
        if not self._only_neighbours(first, stop):
            return ()
        last = self.op(stop - 1)
        _, height, width, _ = self.graph.tensors[
            last.inputs[0] if fed_in_parts(self.graph, last) else last.outputs[0]
        ].nhwc
        stride = 1
        for p in ops[1:]:
            stride *= axes(self.graph, self.graph.ops[p])[1].stride
        once = sum(op_macs(self.graph, self.graph.ops[p]) for p in ops)
        groups, least = [], dict[tuple[Scheme, int], int]()  # scheme and hand-off -> work
        for step in self.space.steps:
            if step > 1 and step >= 2 * height:
                break
            pixels = sorted({max(1, n // stride) for n in self.space.hand_offs})
            hand_offs = (Group(ops, Scheme.H_CACHED, step, n) for n in pixels if n < width)
            even = [Group(ops, Scheme.HALO, step, 0), *hand_offs]
            for group in (*even, *self._with_edges(even, first)):
                work = self.work(Region((group,)), first)
                if work > self.space.most_repetition * once:
                    continue
                if frugal and work >= least.get((group.scheme, group.hand_off), work + 1):
                    continue
                least[group.scheme, group.hand_off] = work
                groups.append(group)
        if self._keeps_rows(first, stop):
            pixels = sorted({max(1, n // stride) for n in self.space.hand_offs})
            inner = [axes(self.graph, self.graph.ops[p])[1] for p in ops[1:]]
            schemes = [Scheme.BANDS] if any(axis.pad < 0 for axis in inner) else [Scheme.BANDS, Scheme.SWAPS]
            groups += [Group(ops, scheme, 1, n) for scheme in schemes for n in pixels if n < width]
        return tuple(groups)

    def _with_edges(self, groups: list[Group], first: int) -> Iterator[Group]:
        """Yields groups in longer steps at the edges, where that saves work and is not one step."""
        across = [axes(self.graph, self.graph.ops[p])[1] for p in groups[0].ops[1:]]
        for group in groups if all(axis.kernel >= axis.stride for axis in across) else ():
            if group.hand_off and group.rows_per_step <= self.space.most_with_edges:
                edges = Region((dataclasses.replace(group, scheme=Scheme.EDGES),))
                steps = sum(advance.group >= 0 for advance in self.run(edges).advances)
                if steps > 1 and self.work(edges, first) < self.work(Region((group,)), first):
                    yield edges.groups[0]

    def _keeps_rows(self, first: int, stop: int) -> bool:
        """Whether operators in a row, which read nothing else by rows, share rows between their steps."""
        inside = [self.op(e) for e in range(first, stop)]
        alone = all(len(row_inputs(self.graph, op)) == 1 for op in inside)
        windows = [axes(self.graph, op)[0] for op in inside[1:]]
        again = any(window.kernel > window.stride for window in windows)
        across = [axes(self.graph, op)[1] for op in inside[1:]]
        again = again and not any(window.kernel < window.stride for window in across)
        return alone and again and not scatters(self.graph, inside[-1])

    def _only_neighbours(self, first: int, stop: int) -> bool:
        """Whether only the next operator reads an inner tensor, and additions have one stride."""
        outputs = {self.roots.get(t) for t in self.graph.outputs}
        for e in range(first, stop - 1):
            if self.readers(self.made(e)) != [e + 1] or self.made(e) in outputs:
                return False
        beside = [
            e
            for e in range(first + 1, stop)
            if any(self.roots.get(t) == self.roots[self.main(first)] for t in self.op(e).inputs)
        ]
        stride = self.through(first, stop).stride
        return all(self.through(e, stop).stride == stride for e in beside)

    # ---- one region's numbers --------------------------------------------------------------------------

    @functools.cached_property
    def kernels(self):
        return tuple(
            None if op.kind in ALIAS_KINDS else catalogue.select(self.target, self.graph, op)
            for op in self.graph.ops
        )

    @functools.cache  # noqa: B019
    def run(self, region: Region) -> Run:
        return run(region, self.graph, self.image)

    @functools.cached_property
    def alone(self) -> list[Run]:
        """Each element as a region of its own."""
        return [self.run(Region((Group((p,)),))) for p in self.running]

    @functools.cache  # noqa: B019
    def held(self, region: Region, first: int) -> Held:
        """Returns the arena's content, without scratch, with this region and all other operators alone."""
        runs = (*self.alone[:first], self.run(region), *self.alone[first + len(region.ops) :])
        timeline = Timeline(self.graph, self.image, runs)
        windows, size = self.workspace(region, timeline.columns)
        in_rings = [ring for one in timeline.runs for ring in rings(self.graph, one)]
        buffers = [*tensor_buffers(timeline, set(windows), in_rings), *accumulators(timeline)]
        begin, swapping = timeline.starts[first], {}
        for group in region.groups:
            swapping |= self.lasting(group)
        buffers += [lines for lines in band_lines(timeline) if lines.op not in swapping]
        for kind in (BufferKind.RING, BufferKind.LINES):
            sizes = {p: pixels[kind is BufferKind.LINES] for p, pixels in swapping.items()}
            buffers += [Buffer(kind, "", (), size, begin, begin, op=p) for p, size in sizes.items()]
        return Held(tuple(buffers), windows, size, begin, begin + len(self.run(region).steps))

    def workspace(self, region: Region, widest: Mapping[int, int]) -> tuple[dict[int, int], int]:
        """Returns the columns of each window in a region, and the bytes of windows and scratch.

        The sizes of windows follow from the steps. `widest`: operator -> the most columns of a call.
        """
        columns, size = {}, 0
        for group in region.groups:
            scratch = {
                p: catalogue.scratch_bytes(kernel, self.graph, self.graph.ops[p], widest.get(p))
                for p in group.ops
                if (kernel := self.kernels[p]) is not None
            }
            in_windows = region.is_streamed and group.scheme is not Scheme.BRANCHES
            windows = dict(self.windows(group)) if in_windows else {}
            columns |= {t: x for t, (_, x) in windows.items()}
            for p in self.lasting(group):
                del windows[self.graph.ops[p].outputs[0]]
            rewrites = [
                self.graph.ops[p].outputs[0]
                for p in group.ops
                if self.in_place != "none" and self.kernels[p].overlap is Contract.PIXEL
            ]
            size = max(size, *sizes(group, self.graph, windows, self._aligned, scratch, rewrites))
        return columns, size

    @functools.cache  # noqa: B019
    def windows(self, group: Group) -> dict[int, tuple[int, int]]:
        """Returns inner tensor -> the rows and columns of its window, for all rows of the group."""
        steps = [Step(*line) for line in self.run(Region((group,))).steps.tolist() if line[0] != SOURCE]
        return least_windows(group, self.graph, steps) if len(group.ops) > 1 else {}

    @functools.cache  # noqa: B019
    def lasting(self, group: Group) -> dict[int, tuple[int, int]]:
        """Returns operator in a group that swaps -> the bytes of its window, and of all kept pixels outside.

        The window has the rows that a step makes or reads, and the kept ones above them.
        """
        if group.scheme is not Scheme.SWAPS:
            return {}
        found, steps = {}, [Step(*line) for line in self.run(Region((group,))).steps.tolist()]
        for p, kept in self.kept_rows(Region((group,))).items():
            (t,), own = self.graph.ops[p].outputs, [step for step in steps if step.op == p]
            pixel, (rows, columns) = self.graph.tensors[t].pixel_bytes, self.windows(group)[t]
            rows = max(rows, *(len(range(max(0, s.y0 - kept), s.y1)) for s in own))
            made = {x for step in own for x in range(step.x0, step.x1)}
            found[p] = rows * columns * pixel, kept * (len(made) - columns) * pixel
        return found

    def work(self, region: Region, first: int) -> int:
        """Returns the multiply-accumulates of the region's steps."""
        return count_executed_macs(self.graph, self.run(region))

    def cost(self, region: Region, first: int) -> int:
        """Returns the target's estimate in sixteenths: the sum of every step's own price."""
        total = 0.0
        poolings = {
            p for p in region.ops if region.is_streamed and accumulates(self.graph, self.graph.ops[p])
        }
        kept, swapping = self.kept_rows(region), {p for g in region.groups for p in self.lasting(g)}
        for s in (Step(*line) for line in self.run(region).steps.tolist()):
            if s.op in kept:
                pixel = self.graph.tensors[self.graph.ops[s.op].outputs[0]].pixel_bytes
                if s.op in swapping:
                    total += min(kept[s.op], s.y1) * self.pricer.swap((s.x1 - s.x0) * pixel)
                    copies = ()
                else:
                    copies = (min(kept[s.op], s.y0), min(kept[s.op], s.y1 - s.y0))
                total += sum(copied * self.pricer.keep((s.x1 - s.x0) * pixel) for copied in copies)
            if s.y0 == s.y1:
                continue  # copies alone
            if s.op == SOURCE:
                _, _, width, channels = self.graph.tensors[self.delivered.tensor].nhwc
                total += self.pricer.row(width * channels)
                continue
            of = self.geometries[s.op]
            rows, columns = s.y1 - s.y0, s.x1 - s.x0
            if s.op in poolings:
                total += self.pricer.sums(of, rows, columns)
            elif region.is_streamed and fed_in_parts(self.graph, self.graph.ops[s.op]):
                of = of._replace(oh=of.ih, ow=of.iw)
                lengths = (Part(n, n, n, 0) for n in (rows, columns))
                total += self.pricer.cost(self.kernels[s.op], of, *lengths)
            else:
                along = part(of, 0, s.y0, s.y1)
                across = part(of, 1, s.x0, s.x1, self.rings(region, s.op, first))
                total += self.pricer.cost(self.kernels[s.op], of, along, across)
        total += sum(self.pricer.sums_end(self.geometries[p]) for p in poolings)
        assert total * COST_UNITS == int(total * COST_UNITS)
        return int(total * COST_UNITS)

    def kept_rows(self, region: Region) -> dict[int, int]:
        """Returns the rows of each operator's output that are kept in groups of bands."""
        bands = [group for group in region.groups if group.in_bands]
        pairs = [pair for group in bands for pair in itertools.pairwise(group.ops)]
        windows = {maker: axes(self.graph, self.graph.ops[reader])[0] for maker, reader in pairs}
        heights = {maker: self.graph.tensors[self.graph.ops[maker].outputs[0]].nhwc[1] for maker in windows}
        return {
            maker: min(window.kernel - window.stride, heights[maker])
            for maker, window in windows.items()
            if window.kernel > window.stride
        }

    def rings(self, region: Region, position: int, first: int) -> Rings:
        """Returns the columns in memory of an operator's input and output windows."""
        handed_on = {p for g in region.groups if g.hand_off for p in g.ops}
        if position not in handed_on:
            return Rings()
        op, held = self.graph.ops[position], self.held(region, first).windows
        return Rings(max(held.get(t, 0) for t in op.inputs), held.get(op.outputs[0], 0))

    @functools.cached_property
    def geometries(self) -> list[Geometry]:
        return [geometry(self.graph, op) for op in self.graph.ops]

    @functools.cached_property
    def pricer(self) -> Pricer:
        return Pricer(self.target.costs)

    @functools.cache  # noqa: B019
    def bytes(self, region: Region, first: int) -> int:
        """Returns the aligned live bytes: all that a region ever holds, less what output and input share."""
        held = self.held(region, first)
        whole, total = set(), 0
        for b in held.buffers:
            if b.last < held.begin or b.first >= held.end:
                continue
            total += self._aligned(b.size)
            if b.kind is BufferKind.TENSOR:
                whole.add(b.tensors[0])
        return total + held.workspace - self.shared(region, first, whole)

    def _aligned(self, size: int) -> int:
        return round_up(size, self.target.board.alignment)

    def shared(self, region: Region, first: int, whole: set[int]) -> int:
        """Returns how many bytes of a region's output may lie on tensors that die in it.

        Streamed region: on the tensor that feeds it, or on the ring of a streamed image, once its first group
        has ended. Otherwise: what the lowest placement of its operator's inputs and output saves.
        """
        end, op = first + len(region.ops), self.graph.ops[region.ops[-1]]
        if len(op.outputs) != 1:
            return 0
        distances: dict[int, int] = {}
        for t in [self.main(first)] if region.is_streamed else op.inputs:
            root = self.roots.get(t)
            if root not in whole or self.dies[root] >= end:
                continue
            if region.is_streamed and self.in_place == "rows":
                apart = region_distance(self.graph, self.run(region).steps, root, op.outputs[0], region.ops)
            else:
                apart = None if region.is_streamed else self._apart(op, t, self.kernels[region.ops[0]])
            if apart is not None:
                distances[root] = apart
        alignment = self.target.board.alignment
        sizes = [self.graph.tensors[t].size for t in (op.outputs[0], *distances)]
        ring = self._image_ring(region, first)
        if ring and self.in_place == "rows" and not fed_in_parts(self.graph, op):
            made = self._made_before_first_ends(region)
            distances[self.delivered.input] = made * self.graph.tensors[op.outputs[0]].row_bytes
            sizes.append(ring)
        problem = Problem(
            tuple(Item(0, 1, size, alignment) for size in sizes),
            tuple(Permission(0, i + 1, apart) for i, apart in enumerate(distances.values())),
        )
        lowest = solve(problem, 100_000)
        assert lowest.status is Status.OPTIMAL
        return sum(map(self._aligned, sizes)) - lowest.solution.height

    def _image_ring(self, region: Region, first: int) -> int:
        """Returns the bytes of a streamed image's ring if only a region's first group reads it, else 0."""
        if self.image != "stream" or len(region.groups) < 2:
            return 0
        image, later = self.delivered.input, first + len(region.groups[0].ops)
        if any(e >= later for e in self.readers(image)):
            return 0
        held = self.held(region, first)
        return sum(b.size for b in held.buffers if b.rows and image in b.tensors and b.last >= held.begin)

    def _made_before_first_ends(self, region: Region) -> int:
        """Returns how many rows of its output a region has made when its first group makes its last rows."""
        steps = [Step(*line) for line in self.run(region).steps.tolist()]
        last = max(n for n, step in enumerate(steps) if step.op in (SOURCE, *region.groups[0].ops))
        return max((step.y1 for step in steps[:last] if step.op == region.ops[-1]), default=0)

    def _apart(self, op, operand: int, kernel) -> int | None:
        """Returns the distance by the kernel's contract, for an operator that runs as one step."""
        once = [self.roots.get(t) for t in op.inputs].count(self.roots[operand]) == 1
        if not once or kernel.overlap not in CONTRACTS[self.in_place]:
            return None
        return distance(self.graph, op, operand, kernel.overlap)

    # ---- the front -------------------------------------------------------------------------------------

    def front(self, weight: Callable[[Twin, Region, int], int]) -> Front:
        """Returns the Pareto front of (live bytes, weight) of all sequences of regions."""
        best: list[Front] = [[(0, 0)]]
        for end in range(1, len(self.running) + 1):
            points = []
            for first in range(end):
                frugal = weight is Twin.work
                own = undominated(
                    (self.bytes(region, first), weight(self, region, first))
                    for region in self.regions(first, end, frugal)
                )
                points += [(max(a, b), v + w) for a, v in best[first] for b, w in own]
            best.append(undominated(points))
        return best[-1]


def undominated(points) -> Front:
    """Returns the points that no other beats in both bytes and weight."""
    front: Front = []
    for size, weight in sorted(points):
        if not front or weight < front[-1][1]:
            front.append((size, weight))
    return front


def hold_front(graph: Graph, target: Target, image: str, in_place: str, space: Space, twin=Twin) -> None:
    """Fails unless the search's front, by work and by cost, is the twin's.

    Hypothesis draws another network where this one has more than `MOST_REGIONS` regions: a few such
    networks took most of the time. UsageError where the input image cannot be streamed.
    """
    with space.searched():
        every = twin(graph, target, image, in_place, space)
        if next(itertools.islice(every.all_regions(), MOST_REGIONS, None), None) is not None:
            reject()
        answer = fronts.front(graph, target, fronts.Settings(in_place, image, max_f=1e9))
        for tables, weight in ((answer.space.tables, Twin.work), (answer.space.cost_tables, Twin.cost)):
            ways = sorted((way.bytes, way.weight) for way in Search(tables).falling())
            assert ways == every.front(weight), weight.__name__
        assert [(point.live_bytes, point.work) for point in answer.points] == every.front(Twin.work)
