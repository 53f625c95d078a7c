"""Runs a plan on an arena of tags. A byte's tag says which byte of which tensor it holds.

The kernels are as hostile as their contracts allow: they write all that they may write before they read.
"""

import math

import numpy as np
from plan_nets import plan_steps

from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.types import ConvAttrs, PoolAttrs
from buildtool.plan.types import BufferKind
from buildtool.target.catalogue import scratch_bytes
from buildtool.target.types import Contract

JUNK = -1
_SPAN = 1 << 32  # tags of one tensor


class _Arena:
    def __init__(self, plan, graph):
        self.memory = np.full(plan.arena_bytes, JUNK, dtype=np.int64)
        self.offset = {t: b.offset for b in plan.buffers for t in b.tensors}
        self.root = {t: t for t in graph.inputs}
        self.graph = graph
        for op in graph.ops:
            for t in op.outputs:
                self.root[t] = self.root[op.inputs[0]] if op.kind in ALIAS_KINDS else t

    def view(self, t, first=0, end=None):
        end = self.graph.tensors[t].size if end is None else end
        return self.memory[self.offset[t] + first : self.offset[t] + end]

    def tags(self, t, first=0, end=None):
        end = self.graph.tensors[t].size if end is None else end
        return self.root[t] * _SPAN + np.arange(first, end)

    def intact(self, t, first=0, end=None):
        view, tags = self.view(t, first, end), self.tags(t, first, end)
        return view.shape == tags.shape and bool((view == tags).all())

    def write(self, t, first=0, end=None):
        self.view(t, first, end)[:] = self.tags(t, first, end)

    def spoil(self, t, first=0, end=None):
        self.view(t, first, end)[:] = JUNK


def run(plan, graph, target):
    """Returns the first corruption as text, "" if there is none."""
    arena = _Arena(plan, graph)
    kernels = {(k.op, k.name): k for k in target.kernels}
    for t in graph.inputs:
        arena.write(t)
    for number, step in enumerate(plan_steps(plan.regions, graph)):
        op = graph.ops[step.op]
        kernel = kernels[str(op.kind), plan.kernels[step.op]]
        scratch = [b for b in plan.buffers if b.kind is BufferKind.SCRATCH and b.first <= number <= b.last]
        size = scratch_bytes(kernel, graph, op)
        if size and not scratch:
            return f"{op.place} has no scratch"
        area = slice(scratch[0].offset, scratch[0].offset + size) if size else slice(0, 0)
        if len(arena.memory[area]) != size:
            return f"{op.place} has its scratch outside of the arena"
        wrong = _run_op(arena, graph, step, kernel.overlap, area)
        if wrong:
            return f"{op.place}: {wrong}"
    ends = [*graph.outputs, *(graph.inputs if plan.image == "resident" else ())]
    lost = [t for t in ends if not arena.intact(t)]
    return f"tensors {lost} are lost at the end" if lost else ""


def _run_parts(arena, graph, op):
    """Copies the inputs of a concatenation one after the other, each in ascending order."""
    (out,), axis = op.outputs, op.attrs.axis % len(graph.tensors[op.outputs[0]].shape)
    shapes = [graph.tensors[t].shape for t in op.inputs]
    lines, widths = math.prod(shapes[0][:axis]), [math.prod(shape[axis:]) for shape in shapes]
    for n, (t, width) in enumerate(zip(op.inputs, widths, strict=True)):
        start = sum(widths[:n])
        for line in range(lines):
            first, place = line * width, line * sum(widths) + start
            for e in range(width):
                if t in arena.root and not arena.intact(t, first + e, first + e + 1):
                    return f"element {first + e} of part {n} is overwritten before it is copied"
                arena.write(out, place + e, place + e + 1)
    return ""


def _run_op(arena, graph, step, contract, area):
    op = graph.ops[step.op]
    sources = [t for t in op.inputs if t in arena.root]
    if any(len(arena.view(t)) != graph.tensors[t].size for t in (*sources, *op.outputs)):
        return "a tensor lies outside of the arena"
    (out,) = op.outputs
    result = graph.tensors[out]
    rows = range(step.y0, step.y1)
    whole = rows == range(result.nhwc[1])
    arena.memory[area] = JUNK
    if contract is Contract.PIXEL and whole:
        wide = [t for t in sources if graph.tensors[t].shape != result.shape]
        for e in range(result.elements):
            if not all(arena.intact(t, e, e + 1) for t in sources if t not in wide):
                return f"element {e} of an input is overwritten"
            if not all(arena.intact(t) for t in wide):
                return "a broadcast input is overwritten"
            arena.write(out, e, e + 1)
    elif contract is Contract.PARTS and whole:
        return _run_parts(arena, graph, op)
    elif contract is not Contract.NONE and result.nhwc[0] == 1:
        row = result.size // result.nhwc[1]
        for q in rows:
            if contract is Contract.ROW:
                arena.spoil(out, q * row, (q + 1) * row)
                arena.memory[area] = JUNK
            if not all(arena.intact(t, *_find_window(graph, op, t, q)) for t in sources):
                return f"a row that output row {q} reads is overwritten"
            arena.write(out, q * row, (q + 1) * row)
    else:
        if whole:
            arena.spoil(out)
            arena.memory[area] = JUNK
        if not all(arena.intact(t) for t in sources):
            return "an input is overwritten"
        arena.write(out)
    return ""


def _find_window(graph, op, t, q):
    """Returns the bytes [first, end) of input `t` that output row q may read."""
    _, rows, columns, channels = graph.tensors[t].nhwc
    top, reach = 0, rows
    if isinstance(op.attrs, ConvAttrs):
        reach = (graph.tensors[op.inputs[1]].shape[1] - 1) * op.attrs.dilation[0] + 1
    elif isinstance(op.attrs, PoolAttrs):
        reach = op.attrs.kernel[0]
    if isinstance(op.attrs, ConvAttrs | PoolAttrs):
        top = q * op.attrs.stride[0] - op.attrs.pad.top
    elif rows == graph.tensors[op.outputs[0]].nhwc[1]:
        top, reach = q, 1
    first = min(max(top, 0), rows)
    end = max(min(top + reach, rows), first)
    return first * columns * channels, end * columns * channels
