"""What is known of a region by itself, whatever runs before and after it, computed once.

The points of a front share most of their regions, and so do the plans that a limit is tried with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from buildtool.base.modes import Image, InPlace
from buildtool.base.session import Session
from buildtool.base.store.recent import Recent
from buildtool.graph.liveness import alias_roots, live_ranges, state_of
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import Graph
from buildtool.plan.assemble.overlaps import RegionOverlap, of_region
from buildtool.plan.assemble.workspace import Workspace, workspace
from buildtool.plan.schedule.costs import CostModel
from buildtool.plan.schedule.overlap import permitted
from buildtool.plan.schedule.rings import LineBuffer, rings
from buildtool.plan.schedule.schedule import Run, executed_macs
from buildtool.plan.types import Overlap, Region
from buildtool.target.digest import planning_digest
from buildtool.target.types import KernelVariant, Target

MOST_REGIONS = 4096  # that are kept, of about a kilobyte each


class RegionFacts(NamedTuple):
    """A region's workspace, rings, multiply-accumulates, cost, and where its output may cover its inputs."""

    workspace: Workspace
    rings: tuple[LineBuffer, ...]
    macs: int
    cost: float
    overlaps: tuple[RegionOverlap, ...]


def known_costs(
    session: Session,
    graph: Graph,
    kernels: Sequence[KernelVariant | None],
    target: Target,
    model: CostModel | None = None,
) -> CostModel:
    """What a session knows of the costs of a graph's operators; without any, `model` or a new one."""
    key = (topology_digest(graph), planning_digest(target), _names(kernels))
    return session.remember("costs", key, lambda: model or CostModel(graph, kernels, target.costs))


def _names(kernels: Sequence[KernelVariant | None]) -> tuple[str, ...]:
    return tuple(kernel.name if kernel else "" for kernel in kernels)


@dataclass(frozen=True, eq=False)
class Regions:
    """The regions of one graph with one set of kernels; the fields are as in `assemble`."""

    graph: Graph
    kernels: Sequence[KernelVariant | None]
    target: Target
    image: str
    in_place: str
    model: CostModel

    @staticmethod
    def of(
        graph: Graph,
        kernels: Sequence[KernelVariant | None],
        target: Target,
        image: str,
        in_place: str,
        session: Session | None,
    ) -> Regions:
        """The same; a session has those of every graph with equal topology and numbers of tensors."""
        if session is None:
            return Regions(graph, kernels, target, image, in_place, CostModel(graph, kernels, target.costs))
        numbers = (graph.inputs, graph.outputs, tuple((op.inputs, op.outputs) for op in graph.ops))
        key = (topology_digest(graph), numbers, planning_digest(target), _names(kernels), image, in_place)
        model = known_costs(session, graph, kernels, target)
        return session.remember(
            "regions", key, lambda: Regions(graph, kernels, target, image, in_place, model)
        )

    @cached_property
    def permitted(self) -> tuple[Overlap, ...]:
        """What the kernels' contracts allow, by numbers of live ranges."""
        resident = self.image == Image.RESIDENT
        return permitted(self.graph, live_ranges(self.graph), self.kernels, self.in_place, resident)

    @cached_property
    def _last_reads(self) -> Mapping[int, int]:
        """Root (see alias_roots) -> the operator that reads its bytes last; without what lives to the end."""
        roots = alias_roots(self.graph)
        lasting = {roots[t] for t in (*self.graph.outputs, *state_of(self.graph)) if t in roots}
        lasting |= set(self.graph.inputs) if self.image == Image.RESIDENT else set()
        reads = {roots[t]: p for p, op in enumerate(self.graph.ops) for t in op.inputs if t in roots}
        return {t: p for t, p in reads.items() if t not in lasting}

    @cached_property
    def _known(self) -> Recent[Region, RegionFacts]:
        return Recent(MOST_REGIONS)

    def facts(self, run: Run) -> RegionFacts:
        """What is known of a run's region."""
        known = self._known.get(run.region)
        if known is not None:
            return known
        graph, region, alignment = self.graph, run.region, self.target.board.alignment
        columns = {op: activity.columns for op, activity in run.activities.items()}
        space = workspace(graph, region, self.kernels, alignment, self.in_place, columns)
        in_rings = tuple(rings(graph, run))
        kept = {*space.windows, *(ring.tensor for ring in in_rings)}
        overlaps: tuple[RegionOverlap, ...] = ()
        if self.in_place == InPlace.ROWS and region.is_streamed:
            overlaps = tuple(of_region(graph, run, self.kernels, self._last_reads, kept))
        cost = self.model.region(region, self.image)
        known = RegionFacts(space, in_rings, executed_macs(graph, run), cost, overlaps)
        self._known.put(region, known)
        return known
