"""What a plan of whole operators computes, in which order, and when each tensor's bytes have to be there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from buildtool.base.errors import PlanError
from buildtool.base.modes import Image
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.types import Graph
from buildtool.plan.types import Step

Life = tuple[int, int]  # first and last step


def check_coverage(steps: Sequence[Step], graph: Graph) -> None:
    """Every operator that runs computes every pixel of its output exactly once, after its inputs."""
    windows: dict[int, list[Step]] = {}
    for step in steps:
        windows.setdefault(step.op, []).append(step)
    last = {step.op: number for number, step in enumerate(steps)}
    done = dict.fromkeys(graph.inputs, -1)  # tensor -> the step that completes it
    for position, op in enumerate(graph.ops):
        if op.kind in ALIAS_KINDS:
            if position in windows:
                raise PlanError("an alias has steps", operator=op.place)
            done[op.outputs[0]] = max(done.get(t, -1) for t in op.inputs)
        else:
            _, rows, columns, _ = graph.tensors[op.outputs[0]].nhwc
            _check_tiling(windows.get(position, []), rows, columns, op.place)
            done.update((t, last[position]) for t in op.outputs)
    for number, step in enumerate(steps):
        for t in graph.ops[step.op].inputs:
            if t in done and done[t] >= number:
                place, name = graph.ops[step.op].place, graph.tensors[t].name
                raise PlanError("runs before its input is complete", operator=place, tensor=name)


def _check_tiling(windows: Sequence[Step], rows: int, columns: int, place: str) -> None:
    """The windows tile `rows` x `columns`: they lie inside, no two meet, and their areas add up."""
    area = 0
    ordered = sorted(windows, key=lambda s: (s.y0, s.x0))
    for index, a in enumerate(ordered):
        if not (0 <= a.y0 <= a.y1 <= rows and 0 <= a.x0 <= a.x1 <= columns):
            window = f"rows {a.y0} to {a.y1}, columns {a.x0} to {a.x1}"
            raise PlanError(f"a step computes {window} of {rows} x {columns}", operator=place)
        area += (a.y1 - a.y0) * (a.x1 - a.x0)
        for b in ordered[index + 1 :]:
            if b.y0 >= a.y1:
                break
            if a.x0 < b.x1 and b.x0 < a.x1:
                raise PlanError(f"row {b.y0} is computed twice", operator=place)
    if area != rows * columns or not windows:
        raise PlanError(f"its steps compute {area} of {rows * columns} output pixels", operator=place)


def lives_in_steps(
    steps: Sequence[Step], graph: Graph, groups: Mapping[int, int], image: str
) -> dict[int, Life]:
    """First and last step in which the bytes of each group have to be there."""
    end = max(len(steps) - 1, 0)
    lives: dict[int, Life] = {}

    def touch(tensor: int, step: int) -> None:
        first, last = lives.get(groups[tensor], (step, step))
        lives[groups[tensor]] = (min(first, step), max(last, step))

    for t in graph.inputs:
        touch(t, 0)
        if image == Image.RESIDENT:
            touch(t, end)
    for number, step in enumerate(steps):
        op = graph.ops[step.op]
        for t in (*op.inputs, *op.outputs):
            if t in groups:
                touch(t, number)
    for t in graph.outputs:
        if t in groups:
            touch(t, end)
    return lives
