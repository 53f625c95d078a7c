"""Operators that move elements and change none: RESHAPE, TRANSPOSE, PAD, CONCATENATION, SLICE, ..."""

from __future__ import annotations

import numpy as np

from buildtool.graph.reference.tensors import Values, attributes
from buildtool.graph.types import (
    AxisAttrs,
    Graph,
    Op,
    PadAttrs,
    PadMode,
    ShuffleAttrs,
    SliceAttrs,
    TransposeAttrs,
)


def reshape(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """RESHAPE, SQUEEZE, EXPAND_DIMS."""
    return [inputs[0].reshape(graph.tensors[op.outputs[0]].shape)]


def transpose(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """TRANSPOSE."""
    if isinstance(op.attrs, ShuffleAttrs):
        shape = inputs[0].shape
        groups = inputs[0].reshape(*shape[:3], op.attrs.groups, -1)
        return [np.ascontiguousarray(groups.swapaxes(3, 4)).reshape(shape)]
    return [np.ascontiguousarray(inputs[0].transpose(attributes(op, TransposeAttrs).perm))]


def pad(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """PAD and MIRROR_PAD."""
    attrs = attributes(op, PadAttrs)
    if attrs.mode is PadMode.CONSTANT:
        return [np.pad(inputs[0], attrs.paddings, constant_values=attrs.value)]
    mode = "reflect" if attrs.mode is PadMode.REFLECT else "symmetric"
    return [np.pad(inputs[0], attrs.paddings, mode=mode)]  # type: ignore[call-overload]


def concatenation(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """CONCATENATION of tensors with one quantisation."""
    return [np.concatenate(inputs, axis=attributes(op, AxisAttrs).axis)]


def split(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """SPLIT into equal parts."""
    parts = np.split(inputs[0], len(op.outputs), axis=attributes(op, AxisAttrs).axis)
    return [np.ascontiguousarray(part) for part in parts]


def slice_(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """SLICE and STRIDED_SLICE; dropped axes have one element."""
    attrs = attributes(op, SliceAttrs)
    picked = inputs[0]
    for axis, (begin, step, extent) in enumerate(zip(attrs.begin, attrs.stride, attrs.extent, strict=True)):
        picked = picked.take(begin + step * np.arange(extent), axis=axis)
    return [picked.reshape(graph.tensors[op.outputs[0]].shape)]


def copy(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """READ_VARIABLE and ASSIGN_VARIABLE: the same bytes."""
    return [inputs[0].copy()]


def shift(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """SHIFT: the end of the old value, then the new one."""
    old, new = inputs
    axis = attributes(op, AxisAttrs).axis
    kept = old.take(np.arange(new.shape[axis], old.shape[axis]), axis=axis)
    return [np.concatenate([kept, new], axis=axis)]
