"""What a plan comes to: its work, its cost, and what the bytes of its arena count, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from buildtool.graph.macs import pixel_macs
from buildtool.graph.types import Graph
from buildtool.plan.schedule.receptive import accumulates
from buildtool.plan.schedule.schedule import Steps
from buildtool.plan.schedule.timeline import calls, pixels
from buildtool.target import catalogue
from buildtool.target.types import KernelVariant, Target

CALL_COST = 120.0  # of one kernel call beside its work, in the catalogue's unit
MOVE_COST = 0.75  # of a byte that is moved within the arena, in the catalogue's unit


def executed_macs(graph: Graph, steps: Steps) -> dict[int, int]:
    """Operator -> multiply-accumulates of its steps, repetitions included."""
    return {op: pixel_macs(graph, graph.ops[op], n) for op, n in pixels(steps).items()}


def costs(graph: Graph, kernels: Sequence[KernelVariant | None], steps: Steps) -> dict[int, float]:
    """Operator (SOURCE: deliveries of rows) -> the target's estimate for its steps.

    In proportion to the pixels computed, and the calls on top; a pooling that is fed part by part
    costs what it costs as a whole.
    """
    computed, found = pixels(steps), {}
    for position, count in calls(steps).items():
        kernel = kernels[position] if position >= 0 else None
        if kernel is None:
            found[position] = 0.0
            continue
        op = graph.ops[position]
        _, height, width, _ = graph.tensors[op.outputs[0]].nhwc
        share = 1.0 if accumulates(graph, op) else computed[position] / max(1, height * width)
        found[position] = CALL_COST * count + catalogue.cost(kernel, graph, op) * share
    return found


def move_cost(size: int) -> float:
    """The target's estimate for a tensor of so many bytes that is copied within the arena."""
    return CALL_COST + MOVE_COST * size


def plan_cost(
    graph: Graph, kernels: Sequence[KernelVariant | None], steps: Steps, moved: Iterable[int]
) -> float:
    """The target's estimate for a whole plan; `moved`: bytes of each tensor that is moved."""
    return sum(costs(graph, kernels, steps).values()) + sum(map(move_cost, moved))


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
