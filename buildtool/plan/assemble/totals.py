"""Totals of a plan: its work, and, in words, what the bytes of its arena count."""

from __future__ import annotations

from buildtool.graph.macs import pixel_macs
from buildtool.graph.types import Graph
from buildtool.plan.schedule.schedule import Steps
from buildtool.plan.schedule.timeline import pixels
from buildtool.target.types import Target


def executed_macs(graph: Graph, steps: Steps) -> dict[int, int]:
    """Operator -> multiply-accumulates of its steps, repetitions included."""
    return {op: pixel_macs(graph, graph.ops[op], n) for op, n in pixels(steps).items()}


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
