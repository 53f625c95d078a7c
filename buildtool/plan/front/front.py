"""The front as the rest of the product sees it: points, each of which can be made into a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from buildtool.errors import UsageError
from buildtool.graph.types import ALIAS_KINDS, Graph
from buildtool.plan.front.chain import Elements, elements
from buildtool.plan.front.search import Way, search
from buildtool.plan.receptive import streams
from buildtool.plan.streamed import assemble_streamed
from buildtool.plan.types import Plan
from buildtool.target import catalogue
from buildtool.target.types import KernelVariant, Target


@dataclass(frozen=True)
class Settings:
    """What a front depends on besides the graph and the target."""

    in_place: str = "rows"
    image: str = "overwritable"
    hand_off: int = 4
    max_f: float = 2.0


@dataclass(frozen=True)
class Point:
    """One way to run the network.

    `live_bytes`: the largest region's memory, aligned; `work`: multiply-accumulates; `f`: the same
    over those of the network run layer by layer.
    """

    live_bytes: int
    work: int
    f: float
    way: Way


@dataclass(frozen=True)
class Front:
    """All ways that no other beats in memory and in work, least memory first."""

    graph: Graph
    target: Target
    settings: Settings
    kernels: tuple[KernelVariant | None, ...]
    elements: Elements

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """The points; each needs more memory and does less work than the one before it."""
        total = self.elements.work_before[-1]
        ways = search(
            self.elements, self.settings.image, self.settings.in_place == "rows", self.settings.max_f
        )
        return tuple(Point(w.bytes, w.work, w.work / total if total else 1.0, w) for w in ways)

    @cached_property
    def _plans(self) -> dict[int, Plan]:
        return {}

    def plan(self, index: int) -> Plan:
        """The placed plan of a point."""
        if index not in self._plans:
            self._plans[index] = assemble_streamed(
                self.graph,
                self.target,
                self.points[index].way.regions(self.elements),
                self.kernels,
                strategy="best",
                in_place=self.settings.in_place,
                image=self.settings.image,
            )
        return self._plans[index]


def front(graph: Graph, target: Target, settings: Settings) -> Front:
    """The front of `graph` on `target`; UsageError where its image cannot be streamed."""
    if settings.image == "stream":
        refuse_unstreamable(graph)
    kernels: Sequence[KernelVariant | None] = [
        None if op.kind in ALIAS_KINDS else catalogue.select(target, graph, op) for op in graph.ops
    ]
    e = elements(graph, kernels, target.board.alignment, settings.hand_off)
    return Front(graph, target, settings, tuple(kernels), e)


def refuse_unstreamable(graph: Graph) -> None:
    """UsageError unless the network has one image, read by one operator, in rows."""
    hint = "use image overwritable or resident"
    if len(graph.inputs) != 1:
        raise UsageError(f"a network of {len(graph.inputs)} inputs cannot stream its image", hint=hint)
    readers = graph.consumers().get(graph.inputs[0], ())
    image = graph.tensors[graph.inputs[0]]
    if len(readers) != 1 or graph.inputs[0] in graph.outputs:
        raise UsageError(f"an image that {len(readers)} operators read cannot be streamed", hint=hint)
    if len(image.shape) != 4 or image.shape[0] != 1 or not streams(graph, graph.ops[readers[0]]):
        raise UsageError("an input that is not read row by row cannot be streamed", hint=hint)
