"""Views of channels: slices that run no code, because their readers read some channels of a wider tensor.

A network with views is an ordinary network in which some slices of channels are VIEWs: aliases of the tensor
that they are cut from. Whoever read the slice's output reads that tensor (`Op.inputs`), and its kernel is
told that it reads the slice's output (`Op.seen`), by a view whose pixels lie as far apart as those of the
wider tensor. It computes the same values, and its tensors and operators have the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from buildtool.errors import PlanError
from buildtool.graph.types import Graph, Op, OpKind, SliceAttrs, ViewAttrs

SLICES = frozenset({OpKind.SLICE, OpKind.STRIDED_SLICE})


class Part(NamedTuple):
    """Where a tensor lies that is some channels of every pixel of another one: from channel `first` on."""

    whole: int
    first: int


def with_views(graph: Graph, positions: Sequence[int]) -> Graph:
    """`graph`, which has none, with views in the place of the slices at some positions.

    PlanError for positions of what is no slice of channels, or whose output has to be in memory by itself.
    """
    if not positions:
        return graph
    refuse_misplaced(graph, positions)
    wider: dict[int, int] = {}
    chosen, ops = frozenset(positions), []
    for position, op in enumerate(graph.ops):
        if position in chosen:
            (source,) = op.inputs
            wider[op.outputs[0]] = wider.get(source, source)
            ops.append(_view_of(op))
        elif wider.keys() & set(op.inputs):
            inputs = tuple(wider.get(t, t) for t in op.inputs)
            ops.append(replace(op, inputs=inputs, seen=op.inputs))
        else:
            ops.append(op)
    return replace(graph, ops=tuple(ops))


def _view_of(op: Op) -> Op:
    assert isinstance(op.attrs, SliceAttrs)
    taken = op.attrs
    return replace(op, kind=OpKind.VIEW, attrs=ViewAttrs(taken.begin, taken.stride, taken.extent, op.kind))


def without_views(graph: Graph) -> Graph:
    """The network as it is where every slice is copied."""
    if not views(graph):
        return graph
    return replace(graph, ops=tuple(_copied(op) for op in graph.ops))


def _copied(op: Op) -> Op:
    if isinstance(op.attrs, ViewAttrs):
        taken = op.attrs
        return replace(op, kind=taken.was, attrs=SliceAttrs(taken.begin, taken.stride, taken.extent))
    return op.as_seen


def views(graph: Graph) -> tuple[int, ...]:
    """The positions of a network's views."""
    return tuple(position for position, op in enumerate(graph.ops) if op.kind is OpKind.VIEW)


def parts(graph: Graph) -> Mapping[int, Part]:
    """Tensor that is a view -> the tensor whose channels it is, which is none."""
    if "parts" not in graph.facts:
        found: dict[int, Part] = {}
        for op in graph.ops:
            if isinstance(op.attrs, ViewAttrs):
                (source,) = op.inputs
                below = found.get(source, Part(source, 0))
                found[op.outputs[0]] = Part(below.whole, below.first + op.attrs.begin[-1])
        graph.facts["parts"] = found
    known: Mapping[int, Part] = graph.facts["parts"]
    return known


def takes_channels(graph: Graph, op: Op) -> bool:
    """Whether an operator takes some neighbouring channels of every pixel, and does nothing else."""
    if op.kind not in SLICES or not isinstance(op.attrs, SliceAttrs):
        return False
    source, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    if source.is_constant or len(source.shape) < 2 or source.shape[:-1] != result.shape[:-1]:
        return False
    return op.attrs.extent == result.shape and set(op.attrs.stride) == {1}


def refuse_misplaced(graph: Graph, positions: Iterable[int]) -> None:
    """PlanError unless views may stand at some positions, which have to ascend."""
    before = -1
    for position in positions:
        if not before < position < len(graph.ops):
            raise PlanError(f"a view in the place of operator {position} of {len(graph.ops)}")
        before, op = position, graph.ops[position]
        if not takes_channels(graph, op):
            raise PlanError("is a view in the plan, but takes no channels alone", operator=op.place)
        if op.outputs[0] in lasting(graph):
            raise PlanError("is a view in the plan, but lives to the end", operator=op.place)


def lasting(graph: Graph) -> frozenset[int]:
    """The tensors that the application reads, or the next invoke: they lie in memory by themselves."""
    states = (t for state in graph.states for t in (state.before, state.after))
    return frozenset((*graph.outputs, *states))
