"""Fuses branches with the convolution that mixes them, where its output is read in slices of channels.

Such a network joins branches by a concatenation, mixes them by a 1x1 convolution, and cuts its output into
slices. The channels of a convolution's output do not depend on each other. So one convolution for each slice
computes the same bytes, and the whole output is never in memory. Where every slice has the shape of a
branch's output, the concatenation and these convolutions can run alternately, row by row. Each slice then
overwrites a branch's output, and only one row of the joined branches is in memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from buildtool.graph import types as g
from buildtool.graph.numbering import graph_of
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.partviews import takes_channels
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.types import Graph, Op, OpKind, Pad, Tensor, cached_on_graph


class Fusion(NamedTuple):
    """A concatenation (operator `first`) and the 1x1 convolutions of its output (up to operator `last`).

    There is one convolution for each of the concatenated `parts`. Its output, results[i], has the shape of
    parts[i]. No other operator reads the parts.
    """

    first: int
    last: int
    parts: tuple[int, ...]
    results: tuple[int, ...]


@cached_on_graph
def fusions(graph: Graph) -> tuple[Fusion, ...]:
    """Returns every `Fusion` of a network, in execution order."""
    fusions, readers = list[Fusion](), graph.consumers()
    for first, op in enumerate(graph.ops):
        joined, last = op.outputs[0], first + len(op.inputs)
        if not _joins_channels(graph, op) or joined in graph.outputs or len(op.inputs) < 2:
            continue
        convolutions = graph.ops[first + 1 : last + 1]
        alone = readers.get(joined, ()) == tuple(range(first + 1, last + 1))
        if not alone or not all(
            _is_pointwise(graph, one) and one.inputs[0] == joined for one in convolutions
        ):
            continue
        results = tuple(one.outputs[0] for one in convolutions)
        if _have_equal_shapes(graph, op.inputs, results) and _are_read_only_by(graph, op.inputs, first):
            fusions.append(Fusion(first, last, op.inputs, results))
    return tuple(fusions)


def _joins_channels(graph: Graph, op: Op) -> bool:
    """Whether the operator joins channels of an image of several rows."""
    shape = graph.tensors[op.outputs[0]].shape
    joins = op.kind is OpKind.CONCATENATION and op.attrs == g.AxisAttrs(3)
    return joins and len(shape) == 4 and shape[0] == 1 and shape[1] > 1


def _is_pointwise(graph: Graph, op: Op) -> bool:
    """Whether the operator is a 1x1 convolution of all channels, with stride 1 and without padding."""
    if op.kind is not OpKind.CONV_2D or not isinstance(op.attrs, g.ConvAttrs):
        return False
    filters = graph.tensors[op.inputs[1]]
    pixel = filters.shape[1:] == (1, 1, graph.tensors[op.inputs[0]].shape[-1])
    return pixel and filters.is_constant and op.attrs.stride == (1, 1) and op.attrs.pad == Pad()


def _have_equal_shapes(graph: Graph, parts: Sequence[int], results: Sequence[int]) -> bool:
    """Whether results[i] has the shape and the type of parts[i], for every i."""
    forms = [[(graph.tensors[t].shape, graph.tensors[t].dtype) for t in group] for group in (parts, results)]
    return forms[0] == forms[1]


def _are_read_only_by(graph: Graph, parts: Sequence[int], position: int) -> bool:
    """Whether operators write all `parts`, and only the operator at `position` reads them."""
    readers, makers = graph.consumers(), graph.producers()
    aliases = {t for op in graph.ops if op.kind in ALIAS_KINDS for t in (*op.inputs, *op.outputs)}
    return len(set(parts)) == len(parts) and all(
        t in makers and t not in graph.outputs and t not in aliases and readers[t] == (position,)
        for t in parts
    )


# ---- building them -----------------------------------------------------------------------------------


class _Wide(NamedTuple):
    """A 1x1 convolution of concatenated branches. Slices read its output."""

    position: int
    parts: tuple[int, ...]  # the branches' outputs
    joins: frozenset[int]  # positions of the concatenations
    slices: tuple[int, ...]  # positions of the slices, by first channel


def with_sliced_fusions(graph: Graph) -> Graph:
    """Splits each 1x1 convolution whose output is sliced (see `_Wide`) into one per slice.

    Returns `graph` if there is no such convolution. Nested concatenations become one concatenation. The
    remaining tensors keep their names and bytes.
    """
    wide = {one.position: one for p in range(len(graph.ops)) if (one := _find_wide(graph, p)) is not None}
    if not wide:
        return graph
    replaced = {p for one in wide.values() for p in (*one.joins, *one.slices)}
    tensors, ops = list(graph.tensors), list[Op]()
    for position, op in enumerate(graph.ops):
        if position in wide:
            ops += _slice_fusion(graph, wide[position], tensors)
        elif position not in replaced:
            ops.append(op)
    return graph_of(graph.name, tensors, ops, graph.inputs, graph.outputs, graph.states)


def _find_wide(graph: Graph, position: int) -> _Wide | None:
    """Returns the convolution at `position` if it is a `_Wide`, otherwise None.

    A convolution with weights stored in four bits is never split: its attribute `stored` is the size of all
    its constants, and the sizes of its parts are not known.
    """
    op, readers, makers = graph.ops[position], graph.consumers(), graph.producers()
    result = op.outputs[0]
    if not _is_pointwise(graph, op) or result in graph.outputs or op.inputs[0] not in makers:
        return None
    if isinstance(op.attrs, g.WeightedAttrs) and op.attrs.expanded:
        return None
    join = makers[op.inputs[0]]
    if not _joins_channels(graph, graph.ops[join]) or readers[op.inputs[0]] != (position,):
        return None
    slices = sorted(readers.get(result, ()), key=lambda p: _channels(graph, p).start)
    if len(slices) < 2 or any(len(_channels(graph, p)) == 0 for p in slices):
        return None
    joins = frozenset(_find_joins(graph, join))
    parts = tuple(_find_parts(graph, join, joins))
    results = [graph.ops[p].outputs[0] for p in slices]
    last_joins = {t: p for t in parts for p in readers[t]}
    fits = _have_equal_shapes(graph, parts, results) and set(last_joins.values()) <= joins
    if not fits or not all(_are_read_only_by(graph, [t], p) for t, p in last_joins.items()):
        return None
    return _Wide(position, parts, joins, tuple(slices))


def _channels(graph: Graph, position: int) -> range:
    """Returns the range of channels that an operator slices. It is empty for other operators."""
    op = graph.ops[position]
    source, result = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    same = same_quantization(source.quant, result.quant)
    if not same or not takes_channels(graph, op) or not isinstance(op.attrs, g.SliceAttrs):
        return range(0)
    start = op.attrs.begin[-1]
    return range(start, start + op.attrs.extent[-1])


def _find_joins(graph: Graph, position: int) -> Iterator[int]:
    """Yields the positions of concatenations that can become one: that at `position`, and earlier ones.

    The one that they become has the same bytes as output.
    """
    yield position
    op, makers = graph.ops[position], graph.producers()
    for t in op.inputs:
        before = makers.get(t)
        alone = graph.consumers().get(t) == (position,) and t not in graph.outputs
        if before is None or not alone or not _joins_channels(graph, graph.ops[before]):
            continue
        if same_quantization(graph.tensors[t].quant, graph.tensors[op.outputs[0]].quant):
            yield from _find_joins(graph, before)


def _find_parts(graph: Graph, position: int, joins: frozenset[int]) -> Iterator[int]:
    """Yields the parts of a concatenation, in the order of channels.

    A part that a concatenation in `joins` writes is replaced by that concatenation's parts.
    """
    makers = graph.producers()
    for t in graph.ops[position].inputs:
        if makers.get(t) in joins:
            yield from _find_parts(graph, makers[t], joins)
        else:
            yield t


def _slice_fusion(graph: Graph, wide: _Wide, tensors: list[Tensor]) -> Iterator[Op]:
    """Yields the operators that replace `wide`, and appends their constants to `tensors`."""
    op = graph.ops[wide.position]
    join = graph.ops[graph.producers()[op.inputs[0]]]
    yield replace(join, inputs=wide.parts)
    for position in wide.slices:
        channels, inputs = _channels(graph, position), [op.inputs[0]]
        for t in op.inputs[1:]:
            inputs.append(len(tensors) if t >= 0 else t)
            if t < 0:
                continue
            part = graph.tensors[t].for_channels(channels.start, channels.stop)
            tensors.append(replace(part, name=f"{part.name} ({channels.start} to {channels.stop - 1})"))
        yield replace(op, inputs=tuple(inputs), outputs=graph.ops[position].outputs)
