"""From regions to a placed plan: lifetimes replayed from the schedule, scratch, overlaps, offsets, totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from buildtool.errors import UnsupportedError
from buildtool.graph.digest import topology_digest
from buildtool.graph.liveness import LiveRange, live_ranges
from buildtool.graph.macs import pixel_macs, total_macs
from buildtool.graph.types import Graph
from buildtool.plan.place import arena, greedy
from buildtool.plan.place.bounds import bound
from buildtool.plan.place.solver import decide, improve
from buildtool.plan.schedule.costs import CostModel
from buildtool.plan.schedule.overlap import permitted
from buildtool.plan.schedule.schedule import plan_steps
from buildtool.plan.types import Buffer, BufferKind, Overlap, Plan, Region, Step
from buildtool.target import catalogue
from buildtool.target.registry import target_digest
from buildtool.target.types import KernelVariant, Target

QUICK_NODES = 2_000  # of the exact search for offsets that meet the bound
SEARCH_NODES = 20_000  # of the exact search for lower offsets, where greedy orders leave a gap


def assemble(
    graph: Graph,
    target: Target,
    regions: tuple[Region, ...],
    kernels: Sequence[KernelVariant | None],
    *,
    strategy: str,
    in_place: str,
    image: str,
) -> Plan:
    """The plan that runs `regions` with `kernels` (one an operator, None for aliases), placed.

    Overlaps are used where they lower the arena, and only there.
    """
    steps = plan_steps(regions, graph)
    ranges = live_ranges(graph)
    tensors = tensor_buffers(graph, ranges, steps, image)
    buffers = (*tensors, *scratch_buffers(graph, kernels, steps))
    options = permitted(graph, ranges, kernels, in_place, image == "resident", parts=True)
    placed = place(buffers, options, target.board.alignment)
    return Plan(
        strategy=strategy,
        topology=topology_digest(graph),
        target=target_digest(target),
        image=image,
        regions=regions,
        kernels=tuple(kernel.name if kernel else "" for kernel in kernels),
        buffers=placed.buffers,
        overlaps=placed.overlaps,
        alignment=target.board.alignment,
        arena_bytes=placed.height,
        arena_bound_bytes=placed.bound,
        macs=sum(pixel_macs(graph, graph.ops[s.op], (s.y1 - s.y0) * (s.x1 - s.x0)) for s in steps),
        macs_layerwise=total_macs(graph),
        cost=CostModel(graph, kernels, target.costs).regions(regions, image),
        accounting=accounting(target, image, in_place),
    )


def tensor_buffers(
    graph: Graph, ranges: Sequence[LiveRange], steps: Sequence[Step], image: str
) -> tuple[Buffer, ...]:
    """One buffer for each range, its life in steps; in the ranges' order, offsets still open.

    Network inputs live from step 0 (a resident image to the end), network outputs to the last step.
    """
    first_step: dict[int, int] = {}
    last_step: dict[int, int] = {}
    for number, step in enumerate(steps):
        first_step.setdefault(step.op, number)
        last_step[step.op] = number
    end = max(len(steps) - 1, 0)
    names = _names(graph)
    buffers = []
    for r in ranges:
        kept = r.is_output or (r.is_input and image == "resident")
        first = 0 if r.is_input else first_step[r.first]
        last = end if kept else last_step.get(r.last, 0)
        buffers.append(Buffer(BufferKind.TENSOR, names[r.tensors[0]], r.tensors, r.size, first, last))
    return tuple(buffers)


def _names(graph: Graph) -> dict[int, str]:
    """Names of what is fed or computed, by place alone: a plan does not change with tensors' names."""
    names = {t: f"input {i}" for i, t in enumerate(graph.inputs)}
    for position, op in enumerate(graph.ops):
        for i, t in enumerate(op.outputs):
            names[t] = f"operator {position}" if len(op.outputs) == 1 else f"operator {position} output {i}"
    return names


def scratch_buffers(
    graph: Graph, kernels: Sequence[KernelVariant | None], steps: Sequence[Step]
) -> tuple[Buffer, ...]:
    """One buffer for each run of steps of an operator whose kernel wants scratch."""
    last_step = {step.op: number for number, step in enumerate(steps)}
    buffers: dict[int, Buffer] = {}
    for number, step in enumerate(steps):
        kernel = kernels[step.op]
        if kernel is None or step.op in buffers:
            continue
        size = catalogue.scratch_bytes(kernel, graph, graph.ops[step.op])
        if size:
            name = f"operator {step.op} scratch"
            life = (number, last_step[step.op])
            buffers[step.op] = Buffer(BufferKind.SCRATCH, name, (), size, *life, op=step.op)
    return tuple(buffers.values())


@dataclass(frozen=True)
class Placed:
    """Buffers with their offsets, and the overlaps they use.

    `height`: the end of the highest, rounded up to the alignment; `bound`: what no placement of
    these buffers with any of the overlaps offered can be lower than.
    """

    buffers: tuple[Buffer, ...]
    overlaps: tuple[Overlap, ...]
    height: int
    bound: int


def place(buffers: Sequence[Buffer], options: Sequence[Overlap], alignment: int) -> Placed:
    """Offsets as low as found, with as few of the overlaps as that needs.

    A placement without any overlap counts too, so that offering them never costs a byte. First the
    exact search has a short look at the bound itself; where that is not met, greedy orders find a
    placement, and the search goes on from there.
    """
    least = bound(arena_problem(buffers, options, alignment)).bytes
    needed = _needed(buffers, options, alignment, least)
    for offered in dict.fromkeys(((), needed, tuple(options))):
        met = _within(arena_problem(buffers, offered, alignment), least)
        if met is not None:
            return _placed(buffers, offered, met, least)
    placed = _by_greedy_orders(buffers, options, alignment, least)
    return placed if placed.height <= least else _searched(placed, options, alignment)


def _within(problem: arena.Problem, capacity: int) -> arena.Solution | None:
    """A placement within a capacity, if a short search finds one."""
    try:
        return decide(problem, capacity, QUICK_NODES).solution
    except UnsupportedError:
        return None


def _placed(
    buffers: Sequence[Buffer], offered: Sequence[Overlap], solution: arena.Solution, least: int
) -> Placed:
    placed = tuple(replace(b, offset=o) for b, o in zip(buffers, solution.offsets, strict=True))
    used = tuple(o for o in offered if _touch(placed[o.input], placed[o.output]))
    return Placed(placed, used, solution.height, least)


def _by_greedy_orders(
    buffers: Sequence[Buffer], options: Sequence[Overlap], alignment: int, least: int
) -> Placed:
    best: tuple[int, tuple[Overlap, ...], arena.Solution] | None = None
    elementwise = tuple(o for o in options if not o.distance)
    for offered in dict.fromkeys(((), elementwise, tuple(options))):
        solution = greedy.solve(arena_problem(buffers, offered, alignment))
        if best is None or solution.height < best[0]:
            best = (solution.height, offered, solution)
        if best[0] <= least:
            break
    assert best is not None
    height, offered, solution = best
    needed = _needed(buffers, offered, alignment, height)
    if len(needed) < len(offered):
        frugal = greedy.solve(arena_problem(buffers, needed, alignment))
        if frugal.height <= height:
            offered, solution = needed, frugal
    return _placed(buffers, offered, solution, least)


def _searched(placed: Placed, options: Sequence[Overlap], alignment: int) -> Placed:
    """The same, or what the exact search finds to be lower."""
    problem = arena_problem(placed.buffers, options, alignment)
    start = arena.Solution(tuple(b.offset for b in placed.buffers), placed.height)
    found = improve(problem, start, SEARCH_NODES)
    if found.height >= placed.height:
        return placed
    return _placed(placed.buffers, options, found, placed.bound)


def arena_problem(buffers: Sequence[Buffer], overlaps: Sequence[Overlap], alignment: int) -> arena.Problem:
    """The same in the arena's terms: times are steps."""
    return arena.Problem(
        tuple(arena.Item(b.first, b.last + 1, b.size, alignment) for b in buffers),
        tuple(arena.Permission(o.output, o.input, o.distance) for o in overlaps),
    )


def _needed(
    buffers: Sequence[Buffer], offered: Sequence[Overlap], alignment: int, height: int
) -> tuple[Overlap, ...]:
    """Those of the overlaps without which the bytes live in their step would exceed `height`."""
    end = max((b.last for b in buffers), default=0) + 1
    change = [0] * (end + 1)
    for b in buffers:
        change[b.first] += arena.round_up(b.size, alignment)
        change[b.last + 1] -= arena.round_up(b.size, alignment)
    live = list(accumulate(change))
    return tuple(o for o in offered if live[buffers[o.input].last] > height)


def _touch(a: Buffer, b: Buffer) -> bool:
    """Whether two placed buffers share bytes."""
    return a.offset < b.offset + b.size and b.offset < a.offset + a.size


def accounting(target: Target, image: str, in_place: str) -> tuple[str, ...]:
    """What the arena's bytes count, in words."""
    overlaps = {
        "rows": "an output may lie over rows of its input that are dead",
        "elementwise": "an output may lie over its dying input element by element",
        "none": "no output lies over its input",
    }
    inputs = {
        "overwritable": "the network's inputs are in the arena; their memory is used again once read",
        "resident": "the network's inputs are in the arena to the end",
        "stream": "the network's input comes row by row; the rows still needed are in the arena",
    }
    return (
        inputs[image],
        "the network's outputs are in the arena until the end",
        "reshaped tensors share their bytes",
        overlaps[in_place],
        "kernel scratch is in the arena during its operator",
        f"offsets and sizes are rounded up to {target.board.alignment} bytes",
        "stack, weights and the application's memory are not in the arena",
    )
