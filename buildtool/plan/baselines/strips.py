"""Plans in horizontal strips: segments of operators that run several times, each on a part of the rows.

The method of xcore-opt: within a strip operators run one after the other on whole rows, and what
neighbouring strips share (the halo) is computed for each anew. A segment's input and output are
whole; so is what something outside of it reads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from buildtool.base.errors import UsageError
from buildtool.base.modes import Image, InPlace
from buildtool.base.session import Session
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.types import Graph
from buildtool.plan.assemble.assemble import assemble
from buildtool.plan.schedule.inner import objection
from buildtool.plan.schedule.receptive import rows
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Group, Plan, Region, Scheme
from buildtool.target import catalogue
from buildtool.target.types import KernelVariant, Target

STRATEGY = "xcore-strips"
FORM = "such as 0-6x20,7-14x10: first and last operator (numbers of the file), then the number of strips"
_SEGMENT = re.compile(r"\s*(\d{1,6})\s*-\s*(\d{1,6})\s*x\s*(\d{1,6})\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Segment:
    """Operators `first` to `last`, as the file numbers them, in `strips` strips (at most)."""

    first: int
    last: int
    strips: int

    def __str__(self) -> str:
        return f"{self.first}-{self.last}x{self.strips}"


def parse_segments(text: str) -> tuple[Segment, ...]:
    """Segments in ascending order from "0-6x20,7-14x10"; UsageError for anything else."""
    found: list[Segment] = []
    for word in text.split(","):
        match = _SEGMENT.fullmatch(word)
        if match is None:
            raise UsageError(f"segments: '{word.strip()}' is not a segment", hint=FORM)
        segment = Segment(*(int(number) for number in match.groups()))
        if segment.last < segment.first or segment.strips < 1:
            raise UsageError(f"segments: '{segment}' has no operators or no strips", hint=FORM)
        if found and segment.first <= found[-1].last:
            raise UsageError(f"segments: '{segment}' does not come after '{found[-1]}'", hint=FORM)
        found.append(segment)
    return tuple(found)


def plan_strips(
    graph: Graph,
    target: Target,
    segments: Sequence[Segment],
    *,
    in_place: str = InPlace.ROWS,
    image: str = Image.OVERWRITABLE,
    session: Session | None = None,
) -> Plan:
    """The plan that runs `segments` in strips and all other operators one by one.

    Raises UsageError for a segment that cannot run in strips, naming the operator.
    """
    kernels = catalogue.select_all(target, graph)
    groups: dict[int, Group] = {}
    for segment in segments:
        group = segment_group(graph, segment, kernels)
        groups |= dict.fromkeys(group.ops, group)
    regions = [
        Region((groups.get(position, Group((position,))),))
        for position, kernel in enumerate(kernels)
        if kernel is not None and groups.get(position, Group((position,))).ops[0] == position
    ]
    timeline = Timeline.of(graph, regions, image, session)
    return assemble(timeline, target, kernels, strategy=STRATEGY, in_place=in_place)


def segment_group(graph: Graph, segment: Segment, kernels: Sequence[KernelVariant | None]) -> Group:
    """The group of a segment; UsageError where the graph has no such segment."""
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
    """A group that makes so many rows of its last operator in each strip."""
    return Group(ops, Scheme.HALO if len(ops) > 1 else Scheme.OPERATOR, rows_per_step)
