"""Plans in horizontal strips: segments of operators that run several times, each time on some of the rows.

This is the method of xcore-opt. Within a strip, operators run one after the other on whole rows. Rows that
neighbouring strips share (the halo) are computed again for each. A segment's input and output are whole
tensors, and so are tensors that are read outside of it.

The search chooses segments and numbers of strips, between cuts where little is live. It estimates the memory
of the candidates region by region: live tensors, the segment's workspace, less the output that may lie over
the input. The front of bytes and work over all chains of candidates is exact for these estimates. Each chain
of the front is then planned and placed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from buildtool.base.errors import UsageError
from buildtool.base.modes import Image, InPlace
from buildtool.base.session import Session
from buildtool.graph.liveness import LiveRange, live_ranges
from buildtool.graph.macs import op_macs
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.types import Graph
from buildtool.plan.assemble.assemble import assemble
from buildtool.plan.assemble.workspace import workspace
from buildtool.plan.baselines.chains import Part, undominated_chains
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.inner import objection
from buildtool.plan.schedule.overlap import permitted_overlaps, region_distance
from buildtool.plan.schedule.receptive import fed_in_parts, rows
from buildtool.plan.schedule.rings import windows
from buildtool.plan.schedule.schedule import Run, count_executed_macs, run
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Group, Plan, Region, Scheme
from buildtool.target import catalogue
from buildtool.target.types import KernelVariant, Target

STRATEGY = "xcore-strips"
FORM = "such as 0-6x20,7-14x10: first and last operator (numbers of the file), then the number of strips"
_SEGMENT = re.compile(r"\s*(\d{1,6})\s*-\s*(\d{1,6})\s*x\s*(\d{1,6})\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Segment:
    """Operators `first` to `last`, by their numbers in the file, in at most `strips` strips."""

    first: int
    last: int
    strips: int

    def __str__(self) -> str:
        return f"{self.first}-{self.last}x{self.strips}"


def parse_segments(text: str) -> tuple[Segment, ...]:
    """Parses segments in ascending order, such as "0-6x20,7-14x10". Raises UsageError for other text."""
    segments: list[Segment] = []
    for word in text.split(","):
        match = _SEGMENT.fullmatch(word)
        if match is None:
            raise UsageError(f"segments: '{word.strip()}' is not a segment", hint=FORM)
        segment = Segment(*(int(number) for number in match.groups()))
        if segment.last < segment.first or segment.strips < 1:
            raise UsageError(f"segments: '{segment}' has no operators or no strips", hint=FORM)
        if segments and segment.first <= segments[-1].last:
            raise UsageError(f"segments: '{segment}' does not come after '{segments[-1]}'", hint=FORM)
        segments.append(segment)
    return tuple(segments)


def plan_strips(
    graph: Graph,
    target: Target,
    segments: Sequence[Segment],
    *,
    in_place: str = InPlace.ROWS,
    image: str = Image.OVERWRITABLE,
    session: Session | None = None,
) -> Plan:
    """Returns the plan that runs `segments` in strips, and all other operators one by one.

    Raises UsageError for a segment that cannot run in strips; the error names the operator.
    """
    kernels = catalogue.select_all(target, graph)
    groups = [Group((position,)) for position in range(len(kernels))]
    for segment in segments:
        group = segment_group(graph, segment, kernels)
        for position in group.ops:
            groups[position] = group
    regions = [
        Region((group,))
        for position, (group, kernel) in enumerate(zip(groups, kernels, strict=True))
        if kernel is not None and group.ops[0] == position
    ]
    timeline = Timeline.of(graph, regions, image, session)
    return assemble(timeline, target, kernels, strategy=STRATEGY, in_place=in_place)


def segment_group(graph: Graph, segment: Segment, kernels: Sequence[KernelVariant | None]) -> Group:
    """Returns the group that runs a segment.

    Raises UsageError if the graph has no such segment, or if the segment cannot run in this many strips.
    """
    inside = [p for p, op in enumerate(graph.ops) if segment.first <= op.index <= segment.last]
    most = max((op.index for op in graph.ops), default=-1)
    if segment.last > most or not inside:
        raise UsageError(
            f"segments: the network has no operators {segment.first} to {segment.last}",
            hint=f"its operators are numbered 0 to {most}; see 'buildtool plan'",
        )
    between = range(inside[0], inside[-1] + 1)
    ops = tuple(p for p in between if graph.ops[p].kind not in ALIAS_KINDS)
    problem = objection(graph, ops, kernels)
    if problem is not None:
        position, why = problem
        raise UsageError(
            f"segments: '{segment}' cannot run in strips: it {why}",
            operator=graph.ops[position].place,
            hint="end the segment before it",
        )
    height = rows(graph, graph.ops[ops[-1]])
    if segment.strips > height:
        raise UsageError(
            f"segments: '{segment}' has more strips than rows",
            operator=graph.ops[ops[-1]].place,
            hint=f"its output has {height} rows",
        )
    return strip_group(ops, -(-height // segment.strips))


def strip_group(ops: tuple[int, ...], rows_per_step: int) -> Group:
    """Returns a group that computes this many rows of its last operator in each strip."""
    return Group(ops, Scheme.HALO if len(ops) > 1 else Scheme.OPERATOR, rows_per_step)


# ---- the search for segments --------------------------------------------------------------------------

MOST_OPERATORS = 24  # in a segment
MOST_REPETITION = 2.0  # limit on a segment's work, as a multiple of its operators' own


def plans(
    graph: Graph,
    target: Target,
    in_place: str = InPlace.ROWS,
    image: str = Image.OVERWRITABLE,
    session: Session | None = None,
) -> tuple[Plan, ...]:
    """Returns a plan for each choice of segments that `promising` returns."""
    # Segments use the operators' numbers in the file, on which no plan may depend. So use positions here.
    ops = tuple(replace(op, index=position) for position, op in enumerate(graph.ops))
    graph = replace(graph, ops=ops)
    return tuple(
        plan_strips(graph, target, segments, in_place=in_place, image=image, session=session)
        for segments in promising(graph, target, in_place)
    )


def promising(graph: Graph, target: Target, in_place: str = InPlace.ROWS) -> list[tuple[Segment, ...]]:
    """Returns the choices of segments on the estimated front, least bytes first.

    The last choice has no segments.
    """
    search = _Search.of(graph, target, in_place)
    singles = list(search.singles())
    choices = []
    for chain in undominated_chains([*singles, *search.segments()], len(search.elements)):
        # leave out segments that are no better than their operators one by one
        needed = [
            part
            for part in chain.parts
            if part.rows and max(s.ram for s in singles[part.first : part.end]) > chain.ram
        ]
        choices.append(tuple(search.name_segment(part) for part in needed))
    return list(dict.fromkeys([*choices, ()]))


@dataclass(frozen=True)
class _Search:
    """A search for the segments of a graph that are worth running in strips.

    `elements`: the operators that run, without aliases.
    """

    graph: Graph
    kernels: tuple[KernelVariant | None, ...]
    alignment: int
    in_place: str
    elements: tuple[int, ...]
    ranges: tuple[LiveRange, ...]

    @staticmethod
    def of(graph: Graph, target: Target, in_place: str) -> _Search:
        running = tuple(i for i, op in enumerate(graph.ops) if op.kind not in ALIAS_KINDS)
        kernels = catalogue.select_all(target, graph)
        return _Search(graph, kernels, target.board.alignment, in_place, running, live_ranges(graph))

    def size(self, r: LiveRange) -> int:
        """Returns the aligned size of a live range's tensors in bytes."""
        return round_up(r.size, self.alignment)

    def singles(self) -> Iterator[Part]:
        """Yields every operator by itself, over all rows."""
        saved = {
            o.op: min(self.size(self.ranges[o.input]), self.size(self.ranges[o.output]) - max(0, o.distance))
            for o in permitted_overlaps(self.graph, self.ranges, self.kernels, self.in_place, False)
        }
        for element, position in enumerate(self.elements):
            op, kernel = self.graph.ops[position], self.kernels[position]
            live = sum(self.size(r) for r in self.ranges if r.first <= position <= r.last)
            scratch = catalogue.scratch_bytes(kernel, self.graph, op) if kernel else 0
            ram = live + round_up(scratch, self.alignment) - saved.get(position, 0)
            yield Part(element, element + 1, ram, op_macs(self.graph, op))

    def cuts(self) -> list[int]:
        """Returns the cuts with at most as many live bytes as both cuts next to them.

        Cut c is before element c.
        """
        live = [
            sum(r.size for r in self.ranges if r.first < position <= r.last) for position in self.elements
        ]
        live = [sum(self.graph.tensors[t].size for t in self.graph.inputs), *live[1:], 0]
        end = len(live) - 1
        return [c for c in range(end + 1) if c in (0, end) or live[c] <= min(live[c - 1], live[c + 1])]

    def segments(self) -> Iterator[Part]:
        """Yields every segment between two cuts, once for each possible height of its strips."""
        cuts = self.cuts()
        for first in cuts:
            for end in cuts:
                if not 2 <= end - first <= MOST_OPERATORS:
                    continue
                ops = self.elements[first:end]
                last = self.graph.ops[ops[-1]]
                if objection(self.graph, ops, self.kernels) is None and not fed_in_parts(self.graph, last):
                    height = rows(self.graph, last)
                    for each in sorted({-(-height // n) for n in range(2, height + 1)}, reverse=True):
                        part = self.part(first, end, each)
                        if part is None:
                            break
                        yield part

    def part(self, first: int, end: int, strip_rows: int) -> Part | None:
        """Returns a segment that runs in strips of `strip_rows` rows; None if it repeats too much work."""
        graph, ops = self.graph, self.elements[first:end]
        region = Region((strip_group(ops, strip_rows),))
        part = run(region, graph)
        macs = count_executed_macs(graph, part)
        if macs > MOST_REPETITION * sum(op_macs(graph, graph.ops[p]) for p in ops):
            return None
        inner = {k.tensor for k in windows(graph, region.groups[0])}
        live = [
            r for r in self.ranges if r.last >= ops[0] and r.first <= ops[-1] and r.tensors[0] not in inner
        ]
        ram = sum(self.size(r) for r in live)
        ram += workspace(graph, region, self.kernels, self.alignment, self.in_place).size
        return Part(first, end, ram - self._saved(part, live), macs, strip_rows)

    def _saved(self, part: Run, live: Sequence[LiveRange]) -> int:
        """Returns the bytes of a segment's output that may lie over its input, if the input dies there.

        `part`: how the segment runs. `live`: live ranges, among them the input's.
        """
        graph, ops = self.graph, part.region.ops
        result, source = graph.ops[ops[-1]].outputs[0], graph.ops[ops[0]].inputs[0]
        dies = any(r.tensors[0] == source and r.last in ops and not r.is_output for r in live)
        if self.in_place != InPlace.ROWS or not dies:
            return 0
        distance = region_distance(graph, part.steps, source, result, ops)
        return 0 if distance is None else max(0, graph.tensors[result].size - distance)

    def name_segment(self, part: Part) -> Segment:
        """Returns the segment as users name it, by its operators' numbers in the file."""
        ops = self.elements[part.first : part.end]
        height = rows(self.graph, self.graph.ops[ops[-1]])
        first, last = (self.graph.ops[p].index for p in (ops[0], ops[-1]))
        return Segment(first, last, -(-height // part.rows))
