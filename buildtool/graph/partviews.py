"""Views of channels: slices and concatenations that run no code, as kernels read and write parts of pixels.

A network with views is an ordinary network in which

- some slices of channels are VIEWs: aliases of the tensor that they are cut from. A reader of the slice
  reads that tensor (`Op.inputs`). Its kernel sees the slice's output (`Op.seen`), whose pixels lie as far
  apart as those of the wider tensor;
- some concatenations of channels are JOINED: the producer of each part writes it into its place in the
  output.

It computes the same values, and its tensors and operators have the same numbers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from buildtool.base.errors import PlanError
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.types import AxisAttrs, Graph, Op, OpKind, SliceAttrs, ViewAttrs, cached_on_graph

SLICES = frozenset({OpKind.SLICE, OpKind.STRIDED_SLICE})
VIEW_KINDS = frozenset({OpKind.VIEW, OpKind.JOINED})


class Part(NamedTuple):
    """The place of a tensor inside the wider tensor `whole`. It begins at channel `first`."""

    whole: int
    first: int


def with_views(graph: Graph, positions: Sequence[int]) -> Graph:
    """Replaces the operators at `positions` by views. `graph` must not have views yet.

    Raises PlanError if one of these operators does not just move channels, or if its tensors need memory of
    their own.
    """
    if not positions:
        return graph
    wider: dict[int, int] = {}
    chosen, ops = frozenset(positions), []
    refuse_misplaced(graph, positions)
    for position, op in enumerate(graph.ops):
        if position in chosen and op.kind is OpKind.CONCATENATION:
            ops.append(replace(op, kind=OpKind.JOINED))
        elif position in chosen:
            (source,), cut = op.inputs, op.attrs
            assert isinstance(cut, SliceAttrs)
            wider[op.outputs[0]] = wider.get(source, source)
            attrs = ViewAttrs(cut.begin, cut.stride, cut.extent, op.kind)
            ops.append(replace(op, kind=OpKind.VIEW, attrs=attrs))
        elif wider.keys() & set(op.inputs):
            inputs = tuple(wider.get(t, t) for t in op.inputs)
            ops.append(replace(op, inputs=inputs, seen=op.inputs))
        else:
            ops.append(op)
    return replace(graph, ops=tuple(ops))


def without_views(graph: Graph) -> Graph:
    """Returns the network with copies of channels in place of views."""
    if not views(graph):
        return graph
    ops = []
    for op in graph.ops:
        cut = op.attrs
        if isinstance(cut, ViewAttrs):
            ops.append(replace(op, kind=cut.was, attrs=SliceAttrs(cut.begin, cut.stride, cut.extent)))
        else:
            ops.append(replace(op, kind=OpKind.CONCATENATION) if op.kind is OpKind.JOINED else op.as_seen)
    return replace(graph, ops=tuple(ops))


def views(graph: Graph) -> tuple[int, ...]:
    """Returns the positions of a network's views."""
    return tuple(position for position, op in enumerate(graph.ops) if op.kind in VIEW_KINDS)


@cached_on_graph
def parts(graph: Graph) -> Mapping[int, Part]:
    """Maps each view's output and each input of a JOINED to its place in the outermost tensor around it."""
    places: dict[int, Part] = {}

    def within(tensor: int, first: int) -> Part:
        outer = places.get(tensor, Part(tensor, 0))
        return Part(outer.whole, outer.first + first)

    for op in graph.ops:
        if isinstance(op.attrs, ViewAttrs):
            places[op.outputs[0]] = within(op.inputs[0], op.attrs.begin[-1])
    for op in reversed(graph.ops):
        first = 0
        for t in op.inputs if op.kind is OpKind.JOINED else ():
            places[t] = within(op.outputs[0], first)
            first += graph.tensors[t].shape[-1]
    return places


@cached_on_graph
def tensors_written_in_place(graph: Graph) -> Mapping[int, int]:
    """Maps each input of a JOINED to the JOINED's output, in which it lies.

    This output may be the input of another JOINED.
    """
    return {t: op.outputs[0] for op in graph.ops if op.kind is OpKind.JOINED for t in op.inputs}


def takes_channels(graph: Graph, op: Op) -> bool:
    """Whether an operator only takes some neighbouring channels of every pixel."""
    if op.kind not in SLICES or not isinstance(op.attrs, SliceAttrs):
        return False
    source, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    if source.is_constant or len(source.shape) < 2 or source.shape[:-1] != result.shape[:-1]:
        return False
    return op.attrs.extent == result.shape and set(op.attrs.stride) == {1}


def joins_channels(graph: Graph, op: Op) -> bool:
    """Whether an operator concatenates channels of tensors that no other operator reads.

    No input may be a constant, a network output, a state or an alias (except a JOINED).
    """
    rank = len(graph.tensors[op.outputs[0]].shape)
    if op.kind is not OpKind.CONCATENATION or op.attrs != AxisAttrs(rank - 1) or rank < 2:
        return False
    makers, readers, own_memory = graph.producers(), graph.consumers(), tensors_with_own_memory(graph)
    return all(
        t in makers
        and t not in own_memory
        and op.inputs.count(t) == 1
        and len(readers[t]) == 1
        and graph.ops[makers[t]].kind not in ALIAS_KINDS - {OpKind.JOINED}
        and len(graph.ops[makers[t]].outputs) == 1
        for t in op.inputs
    )


def refuse_misplaced(graph: Graph, positions: Iterable[int]) -> None:
    """Raises PlanError if an operator at one of `positions`, in ascending order, cannot be a view."""
    before, states = -1, {t for state in graph.states for t in (state.before, state.after)}
    for position in positions:
        if not before < position < len(graph.ops):
            raise PlanError(f"a view in the place of operator {position} of {len(graph.ops)}")
        before, op = position, graph.ops[position]
        is_slice = takes_channels(graph, op)
        if not is_slice and not joins_channels(graph, op):
            raise PlanError("is a view in the plan, but moves more than channels", operator=op.place)
        if op.outputs[0] in (tensors_with_own_memory(graph) if is_slice else states):
            raise PlanError("is a view in the plan, but lives to the end", operator=op.place)


def tensors_with_own_memory(graph: Graph) -> frozenset[int]:
    """Returns the tensors that the application or the next invoke reads. They need memory of their own."""
    states = (t for state in graph.states for t in (state.before, state.after))
    return frozenset((*graph.outputs, *states))
