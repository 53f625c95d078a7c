"""When the memory of tensors and operators is touched: the first step of the five in `assemble`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from buildtool.base.modes import Image
from buildtool.plan.schedule.timeline import Life, Timeline
from buildtool.plan.types import SOURCE


@dataclass(frozen=True)
class Lives:
    """First and last steps, of tensors by their root (see alias_roots), of operators by position."""

    tensors: Mapping[int, Life]
    ops: Mapping[int, Life]


def lives(timeline: Timeline) -> Lives:
    """Replays nothing: what an operator touches, it touches from its first step to its last.

    The network's inputs are there from step 0, unless rows of a streamed image are delivered; its
    outputs, and the inputs of a resident image, are there until the last step.
    """
    graph, roots = timeline.graph, timeline.roots
    found: dict[int, Life] = {}

    def touch(tensor: int, life: Life) -> None:
        if tensor in roots:
            known = found.get(roots[tensor], life)
            found[roots[tensor]] = Life(min(known.first, life.first), max(known.last, life.last))

    for t in graph.inputs if timeline.image != Image.STREAM else ():
        touch(t, Life(0, 0))
    for position, life in timeline.lives.items():
        op = graph.ops[position] if position != SOURCE else None
        for t in (*op.inputs, *op.outputs) if op else graph.inputs[:1]:
            touch(t, life)
    end = Life(timeline.last, timeline.last)
    for t in (*graph.outputs, *(graph.inputs if timeline.image == Image.RESIDENT else ())):
        touch(t, end)
    return Lives(found, timeline.lives)
