"""Removes channels that have one value whatever the input is, and channels that no operator reads.

A convolution's or dense layer's channel is not computed if its value is known (see `bounds`) or not needed.
The layers that read the channel lose its weights, and what a constant channel adds to their sums becomes part
of their biases. Where a layer pads, a constant must add the same amount at the border. An operator that
computes each channel separately, such as a depthwise convolution, loses the same channels in its inputs and
its output. The network's inputs, outputs and states keep their channels, and so do the tensors of operators
that may mix channels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from buildtool.graph import types as g
from buildtool.graph.bounds import Bounds, count_channels, find_bounds, window_masks
from buildtool.graph.fixedpoint import RANGES
from buildtool.graph.numbering import graph_of
from buildtool.graph.ops import CHANNEL_KINDS, TABLE_KINDS
from buildtool.graph.reference.tensors import quantization
from buildtool.graph.types import DType, Graph, Op, OpKind, Source, Tensor

Mask: TypeAlias = npt.NDArray[np.bool_]
Kept: TypeAlias = Mapping[int, Mask]  # tensor -> which of its channels remain
_N = TypeVar("_N", int, float)
_LAYERS = (OpKind.CONV_2D, OpKind.TRANSPOSE_CONV, OpKind.FULLY_CONNECTED)
_ALIASES = (OpKind.RESHAPE, OpKind.SQUEEZE, OpKind.EXPAND_DIMS)
_ACTIVATIONS = (DType.INT8, DType.INT16)


def find_kept(graph: Graph, least: Kept | None = None, multiple: int = 1) -> Kept:
    """Returns which channels of each activation have to be computed.

    `least`: channels that are kept in any case. The number of kept channels of a tensor is a multiple of
    `multiple`, or all: kernels that compute several channels at a time gain nothing from fewer.
    """
    kept = {t: np.zeros(count_channels(graph.tensors[t]), np.bool_) for t in graph.activations()}
    for t, mask in (least or {}).items():
        kept[t] |= mask
    states = (t for state in graph.states for t in (state.before, state.after))
    _keep_all(kept, (*graph.inputs, *graph.outputs, *states))
    readings = [_Reading.of(graph, op, find_bounds(graph)) for op in graph.ops]
    for op, reading in zip(graph.ops, readings, strict=True):
        if reading is None:
            _keep_all(kept, (*op.inputs, *op.outputs))
    while _keep_needed(graph, readings, kept) or _round_up(kept, multiple):
        pass
    return kept


def without_channels(graph: Graph, kept: Kept) -> Graph:
    """Returns the graph with the kept channels only. `kept` is a result of `find_kept`."""
    return graph if all(mask.all() for mask in kept.values()) else _without(graph, kept)


def _keep_all(kept: dict[int, Mask], tensors: tuple[int, ...]) -> None:
    for t in tensors:
        if t in kept:
            kept[t][:] = True


def _round_up(kept: dict[int, Mask], multiple: int) -> bool:
    """Keeps further channels of each tensor until their number is a multiple of `multiple`, or all are kept.

    It takes the first channels that are not kept yet. Returns whether this changed `kept`.
    """
    changed = False
    for mask in kept.values():
        missing = -int(mask.sum()) % multiple
        more = np.flatnonzero(~mask)[:missing]
        mask[more] = True
        changed |= bool(more.size)
    return changed


def _keep_needed(graph: Graph, readings: list[_Reading | None], kept: dict[int, Mask]) -> bool:
    """Keeps the channels that the kept ones depend on, from the last operator to the first.

    Returns whether this changed `kept`. `readings`: how each operator reads channels, None if it keeps all.
    """
    before = sum(int(mask.sum()) for mask in kept.values())
    for op, reading in zip(reversed(graph.ops), reversed(readings), strict=True):
        if reading is None:
            continue
        for t in op.outputs:
            if not kept[t].any():
                kept[t][0] = True  # a tensor has at least one channel
        if reading.needs is not None:
            (out,), source = op.outputs, op.inputs[0]
            kept[source] |= reading.needs[kept[out]].any(axis=0)
            if not kept[source].any():
                kept[source][0] = True
        else:
            _equalise(kept, reading.ties)
    return sum(int(mask.sum()) for mask in kept.values()) > before


def _equalise(kept: dict[int, Mask], ties: tuple[_Tie, ...]) -> None:
    for tie in ties:
        source, out = kept[tie.source], kept[tie.out][tie.first : tie.first + tie.size]
        times = len(out) // len(source) if len(out) > len(source) else 1
        if times > 1:
            source |= out.reshape(times, -1).any(axis=0)
            out |= np.tile(source, times)
        elif len(source) > len(out):
            out |= source.reshape(-1, len(out)).any(axis=0)
            source |= np.tile(out, len(source) // len(out))
        else:
            source |= out
            out |= source


@dataclass(frozen=True)
class _Tie:
    """Channels of two tensors that are kept or removed together.

    They are all channels of `source`, and `size` channels of `out` from `first` on. If one side has more
    channels, its channels repeat those of the other side.
    """

    source: int
    out: int
    first: int
    size: int


@dataclass(frozen=True)
class _Reading:
    """How an operator's output channels depend on its input channels.

    For a layer, `needs[o, i]` says whether output channel o depends on input channel i. Other operators have
    `ties`.
    """

    ties: tuple[_Tie, ...] = ()
    needs: Mask | None = None

    @classmethod
    def of(cls, graph: Graph, op: Op, bounds: Mapping[int, Bounds]) -> _Reading | None:
        """Returns how an operator reads channels. None: its inputs and outputs keep all channels."""
        varying = [t for t in op.inputs if t >= 0 and not graph.tensors[t].is_constant]
        if any(graph.tensors[t].dtype not in _ACTIVATIONS for t in (*varying, *op.outputs)):
            return None
        if op.kind in _LAYERS:
            needs = _find_needs(graph, op, bounds[op.inputs[0]])
            return None if needs is None else cls(needs=needs)
        ties = tuple(_find_ties(graph, op, varying))
        return cls(ties=ties) if ties else None


def _find_ties(graph: Graph, op: Op, varying: list[int]) -> Iterator[_Tie]:
    """Yields the ties of an operator that computes its channels separately. Other operators have no ties.

    `varying`: its inputs that are not constant.
    """
    out = op.outputs[0]
    channels = count_channels(graph.tensors[out])
    sizes = {t: count_channels(graph.tensors[t]) for t in varying}
    if op.kind is OpKind.CONCATENATION and _is_last(graph, op):
        first = 0
        for t in op.inputs:
            if t not in sizes:
                return
        for t in op.inputs:
            yield _Tie(t, out, first, sizes[t])
            first += sizes[t]
    elif op.kind in _ALIASES:
        (source,) = varying
        if channels % sizes[source] == 0 or sizes[source] % channels == 0:
            yield _Tie(source, out, 0, channels)
    elif (
        op.kind in CHANNEL_KINDS
        and set(sizes.values()) == {channels}
        and _separates_channels(graph, op, channels)
    ):
        for result in op.outputs:
            yield from (_Tie(t, result, 0, channels) for t in varying)


def _is_last(graph: Graph, op: Op) -> bool:
    return isinstance(op.attrs, g.AxisAttrs) and op.attrs.axis == len(graph.tensors[op.outputs[0]].shape) - 1


def _separates_channels(graph: Graph, op: Op, channels: int) -> bool:
    """Whether an operator of CHANNEL_KINDS computes its channels separately, so that it can lose some."""
    attrs, rank = op.attrs, len(graph.tensors[op.inputs[0]].shape)
    constants = [graph.tensors[t] for t in op.inputs if t >= 0 and graph.tensors[t].is_constant]
    match attrs:
        case g.DepthwiseAttrs():
            return attrs.depth_multiplier == 1
        case g.WidenedAttrs():
            return False
        case g.PadAttrs():
            return not any(attrs.paddings[-1])
        case g.MeanAttrs():
            return rank - 1 not in attrs.axes
        case g.AxisAttrs():
            return not _is_last(graph, op)
    return op.kind in TABLE_KINDS or all(count_channels(one) in (1, channels) for one in constants)


def _find_needs(graph: Graph, op: Op, source: Bounds) -> Mask | None:
    """Returns a mask (outputs, inputs): which input channels each output channel of a layer needs.

    An output channel does not need inputs whose weights are zero, nor constant inputs that add the same
    amount to all its sums and can become a part of its bias. `source`: the bounds of the input. Returns None
    for a convolution with groups.
    """
    if graph.tensors[op.inputs[1]].shape[-1] != len(source.low):  # groups
        return None
    used: Mask = (_taps(graph, op) != quantization(graph, op, op.inputs[1]).zero_point).any(axis=1)
    constant = np.flatnonzero(source.constant & used.any(axis=0))
    amounts = _sum_constants(graph, op, source, constant)
    if _fits_bias(graph, op, amounts):
        used[:, constant] &= (amounts != amounts[:1]).any(axis=0)
    return used


def _taps(graph: Graph, op: Op) -> npt.NDArray[np.generic]:
    """Returns a layer's stored weights: (outputs, taps, inputs)."""
    data = graph.tensors[op.inputs[1]].data
    assert data is not None
    return data.reshape(data.shape[0], -1, data.shape[-1])


def _sum_constants(
    graph: Graph, op: Op, source: Bounds, constant: npt.NDArray[np.intp]
) -> npt.NDArray[np.int64]:
    """Returns what the constant channels `constant` add to a layer's sums: (windows, outputs, channels).

    The first dimension has one entry for each different case of a window. Windows at a border lack some taps.
    """
    zero_points = [quantization(graph, op, t).zero_point for t in op.inputs[:2]]
    values = source.low[constant] - zero_points[0]
    each = (_taps(graph, op)[:, :, constant].astype(np.int64) - zero_points[1]) * values
    if op.kind is OpKind.FULLY_CONNECTED:
        return np.asarray(each.sum(axis=1)[None])
    if op.kind is OpKind.TRANSPOSE_CONV:  # a pixel may meet any of the taps
        return np.stack([each[:, 0] * 0, *(each[:, tap] for tap in range(each.shape[1]))])
    masks = np.array(window_masks(graph, op), np.int64)
    return np.asarray(np.einsum("wt,otc->woc", masks, each))


def _fits_bias(graph: Graph, op: Op, amounts: npt.NDArray[np.int64]) -> bool:
    """Whether the biases still fit 32 bits after these amounts have been added to them."""
    bias = graph.tensors[op.inputs[2]].data if op.inputs[2] >= 0 else None
    total = np.abs(amounts).max(axis=0, initial=0).sum(axis=1)
    total += 0 if bias is None else np.abs(bias.reshape(-1).astype(np.int64))
    narrow = graph.tensors[op.inputs[0]].dtype is DType.INT8
    return not narrow or int(total.max(initial=0)) <= RANGES[DType.INT32][1]


# ---- the graph with what remains ---------------------------------------------------------------------


def _without(graph: Graph, kept: Kept) -> Graph:
    """Returns the graph with the kept channels only."""
    tensors = list(graph.tensors)
    for t, mask in kept.items():
        if not mask.all():
            tensors[t] = _narrow(graph.tensors[t], mask)
    ops = [_narrow_op(graph, op, kept, tensors) for op in graph.ops]
    return graph_of(graph.name, tensors, ops, graph.inputs, graph.outputs, graph.states)


def _narrow(tensor: Tensor, mask: Mask) -> Tensor:
    """Returns an activation with the channels of `mask`."""
    channels, source = tuple(np.flatnonzero(mask).tolist()), tensor.source
    if source is not None:
        before = source.channels or tuple(range(len(mask)))
        source = Source(source.index, source.perm, tuple(before[c] for c in channels))
    return replace(tensor, shape=(*tensor.shape[:-1], len(channels)), source=source)


def _narrow_op(graph: Graph, op: Op, kept: Kept, tensors: list[Tensor]) -> Op:
    """Returns the operator with constants for the kept channels, which are added to `tensors`."""
    out = kept[op.outputs[0]]
    if op.kind in _LAYERS:
        source = kept[op.inputs[0]]
        if out.all() and source.all():
            return op
        return _narrow_layer(graph, op, source, out, tensors)
    if out.all():
        return op
    inputs = list(op.inputs)
    for position, t in enumerate(op.inputs):
        if t >= 0 and graph.tensors[t].is_constant and op.kind not in TABLE_KINDS:
            inputs[position] = _pick(graph.tensors[t], out, -1, tensors)
    return replace(op, inputs=tuple(inputs))


def _narrow_layer(graph: Graph, op: Op, source: Mask, out: Mask, tensors: list[Tensor]) -> Op:
    """Returns a layer without the removed filters and inputs; `source` and `out` are the kept channels.

    Its bias includes what the removed constant inputs add.
    """
    filters, bias = graph.tensors[op.inputs[1]], op.inputs[2]
    assert filters.data is not None
    bounds = find_bounds(graph)[op.inputs[0]]
    removed = np.flatnonzero(~source & bounds.constant)
    inputs = list(op.inputs)
    data = np.ascontiguousarray(filters.data[out][..., source])
    quant = filters.quant
    if quant is not None and len(quant.scales) > 1:
        quant = replace(quant, scales=_chosen(quant.scales, out), zero_points=_chosen(quant.zero_points, out))
    tensors.append(replace(filters, shape=data.shape, data=data, quant=quant, source=None))
    inputs[1] = len(tensors) - 1
    amounts = _sum_constants(graph, op, bounds, removed)[0, out].sum(axis=1)
    if bias >= 0:
        inputs[2] = _pick(graph.tensors[bias], out, 0, tensors, amounts)
    elif not source.all():  # even of zeros: with other weights, a plan's network has the same operands
        wide = graph.tensors[op.inputs[0]].dtype is DType.INT16
        dtype = DType.INT64 if wide else DType.INT32
        tensors.append(Tensor(f"{filters.name}/bias", amounts.shape, dtype, data=amounts.astype(dtype.value)))
        inputs[2] = len(tensors) - 1
    return replace(op, inputs=tuple(inputs))


def _chosen(values: tuple[_N, ...], mask: Mask) -> tuple[_N, ...]:
    return tuple(v for v, k in zip(values, mask, strict=True) if k) if len(values) == len(mask) else values


def _pick(
    tensor: Tensor, mask: Mask, axis: int, tensors: list[Tensor], more: npt.NDArray[np.int64] | None = None
) -> int:
    """Adds a constant with those elements of `tensor` along `axis` that `mask` selects. Returns its number.

    `more` is added to these elements. `tensors`: the list to which the constant is appended.
    """
    assert tensor.data is not None
    data, quant = tensor.data, tensor.quant
    if data.ndim and data.shape[axis] == len(mask):
        data = np.ascontiguousarray(np.compress(mask, data, axis=axis))
        if quant is not None and len(quant.scales) == len(mask) > 1:
            quant = replace(
                quant, scales=_chosen(quant.scales, mask), zero_points=_chosen(quant.zero_points, mask)
            )
    if more is not None:
        data = (data.astype(np.int64) + more).astype(data.dtype)
    tensors.append(replace(tensor, shape=data.shape, data=data, quant=quant, source=None))
    return len(tensors) - 1
