"""Checks of plans of whole operators: their order, the lives of tensors' bytes, and safe overlaps.

A declared overlap is proven by replaying the operator: which bytes each write hits, and which reads still
need them. This does not use the planner's formula. It goes through output rows (or elements) one by one at
their addresses, and looks up the last read of every input row that they overwrite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import PlanError
from buildtool.base.modes import Image
from buildtool.graph.ops import ALIAS_KINDS, PIXEL_KINDS, SLIDING_KINDS
from buildtool.graph.partviews import parts
from buildtool.graph.types import AxisAttrs, Graph, Op, OpKind, Tensor
from buildtool.plan.check.reads import windows
from buildtool.plan.types import Step
from buildtool.target.types import Contract

Life = tuple[int, int]  # first and last step
Numbers = npt.NDArray[np.int64]


def check_coverage(steps: Sequence[Step], graph: Graph) -> None:
    """Raises PlanError unless every operator computes every output pixel exactly once, after its inputs."""
    windows: dict[int, list[Step]] = {}
    for step in steps:
        windows.setdefault(step.op, []).append(step)
    last = {step.op: number for number, step in enumerate(steps)}
    completed = dict.fromkeys(graph.inputs, -1)  # tensor -> the step that completes it
    for position, op in enumerate(graph.ops):
        if op.kind in ALIAS_KINDS:
            if position in windows:
                raise PlanError("an alias has steps", operator=op.place)
            completed[op.outputs[0]] = max(completed.get(t, -1) for t in op.inputs)
        else:
            _, rows, columns, _ = graph.tensors[op.outputs[0]].nhwc
            _check_tiling(windows.get(position, []), rows, columns, op.place)
            completed.update((t, last[position]) for t in op.outputs)
    for number, step in enumerate(steps):
        for t in graph.ops[step.op].inputs:
            if t in completed and completed[t] >= number:
                place, name = graph.ops[step.op].place, graph.tensors[t].name
                raise PlanError("runs before its input is complete", operator=place, tensor=name)


def _check_tiling(windows: Sequence[Step], rows: int, columns: int, place: str) -> None:
    """Raises PlanError unless windows tile `rows` x `columns`.

    They do if they lie inside, no two overlap, and the areas add up. `windows`: the steps of one operator.
    `place`: the operator's, for the error.
    """
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
    """Returns group of tensors that share bytes -> the first and the last step in which these are needed.

    `groups`: see `alias_groups`. `image`: as in Plan.
    """
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


def unsafe(graph: Graph, op: Op, operand: int, contract: Contract, shift: int) -> str:
    """Returns why an output may not lie `shift` bytes below its input tensor `operand`; "" if it may.

    `shift` = offset(input) - offset(output), in bytes. Rows and elements are written in ascending order, as
    the contracts of kernels promise.
    """
    if len(op.outputs) != 1:
        return "it has several outputs"
    if op.outputs[0] in parts(graph):
        return "its output is a part of a wider tensor"
    source, result = graph.tensors[operand], graph.tensors[op.outputs[0]]
    if contract is Contract.PIXEL:
        return _replay_elements(source, result, shift)
    if contract is Contract.ROW:
        spans = _windows(op, operand, source, result, graph)
        reason = "it does not read this input row by row"
        return reason if spans is None else _replay_rows(spans, source, result, shift)
    if contract is Contract.PARTS:
        return _replay_parts(graph, op, operand, shift)
    return "its kernel allows no overlap"


def _replay_parts(graph: Graph, op: Op, operand: int, shift: int) -> str:
    """Replays the copies of a concatenation part by part, line by line.

    Returns which copy overwrites a byte that is still to be copied; "" if none does.
    """
    if op.kind is not OpKind.CONCATENATION or not isinstance(op.attrs, AxisAttrs):
        return "it has no parts"
    if op.inputs.count(operand) != 1:
        return "it reads this input more than once"
    source, result = graph.tensors[operand], graph.tensors[op.outputs[0]]
    width, mine = (math.prod(t.shape[op.attrs.axis :]) * t.dtype.size for t in (result, source))
    line = np.arange(source.size // mine, dtype=np.int64)
    column = 0
    for t in op.inputs:
        part = graph.tensors[t]
        size = math.prod(part.shape[op.attrs.axis :]) * part.dtype.size
        first = line * width + column - shift  # the first byte written, as an offset in the operand
        if t == operand:  # a byte that goes upwards hits one that follows it
            bad = (first > line * mine) & (first < source.size)
        else:
            bad = (first + size > 0) & (first < source.size)
        if bad.any():
            return f"line {int(np.argmax(bad))} of tensor {part.name} is written over this input"
        if t == operand:
            break
        column += size
    return ""


def _replay_elements(source: Tensor, result: Tensor, shift: int) -> str:
    """Replays a kernel that writes output element e after it has read input elements up to e.

    Returns which element overwrites input too early; "" if none does.
    """
    if source.shape != result.shape:
        return "the input's elements are not the output's"
    element = np.arange(result.elements, dtype=np.int64)
    last_byte = (element + 1) * result.dtype.size - 1 - shift  # within the input
    hit = np.minimum(last_byte // source.dtype.size, source.elements - 1)
    bad = (last_byte >= 0) & (element * result.dtype.size - shift < source.size) & (hit > element)
    if bad.any():
        first = int(np.argmax(bad))
        return f"output element {first} hits input element {int(hit[first])} before it is read"
    return ""


def _windows(
    op: Op, operand: int, source: Tensor, result: Tensor, graph: Graph
) -> tuple[Numbers, Numbers] | None:
    """Returns the input rows [first, end) that a kernel of contract `row` may read for each output row.

    The first array has `first`, the second one `end`, for all output rows. The result is None if the operator
    does not read this input row by row.
    """
    (in_batch, in_rows, _, _), (out_batch, out_rows, _, _) = source.nhwc, result.nhwc
    if in_batch != 1 or out_batch != 1:
        return None
    q = np.arange(out_rows, dtype=np.int64)
    if op.kind in PIXEL_KINDS and source.shape == result.shape:
        return q, q + 1
    if op.kind not in SLIDING_KINDS or operand != op.inputs[0]:
        return None
    extent, stride, pad = windows(graph, op)[0]
    top = q * stride - pad
    return np.maximum(top, 0), np.minimum(top + extent, in_rows)


def _replay_rows(spans: tuple[Numbers, Numbers], source: Tensor, result: Tensor, shift: int) -> str:
    """Replays a kernel that may write an output row as soon as it begins to compute it.

    Returns which row overwrites input too early; "" if none does. `spans`: for each output row the input rows
    that it reads. Windows slide downwards. So a row's last reader is the last window that begins at this row
    or above it. Of the rows that a write hits, the lowest one that has a reader is read last.
    """
    in_rows, out_rows = source.nhwc[1], result.nhwc[1]
    if not source.size or not result.size:
        return ""
    in_row, out_row = source.size // in_rows, result.size // out_rows
    (first, end), q = spans, np.arange(out_rows, dtype=np.int64)
    # for each output row, how many of the input rows that it reads no later window reads
    count = np.maximum(0, np.minimum(end, np.append(first[1:], in_rows)) - first)
    readers = np.repeat(q, count)
    last_reader = np.full(in_rows, -1, np.int64)
    last_reader[np.repeat(first - np.cumsum(count) + count, count) + np.arange(len(readers))] = readers
    read_above = np.maximum.accumulate(np.where(last_reader >= 0, np.arange(in_rows), -1))
    begin = q * out_row - shift  # within the input
    hit_end = np.minimum((begin + out_row - 1) // in_row + 1, in_rows)
    row = np.where(hit_end > 0, read_above[np.maximum(hit_end - 1, 0)], -1)
    bad = (row >= np.maximum(begin // in_row, 0)) & (last_reader[row] >= q)
    if bad.any():
        at = int(np.argmax(bad))
        return f"output row {at} hits input row {row[at]}, which row {last_reader[row[at]]} still reads"
    return ""
