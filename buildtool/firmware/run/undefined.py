"""Finds the elements that TensorFlow Lite Micro's signal library leaves undefined: it does not write them.

SIGNAL_ENERGY writes some bins only, and SIGNAL_FRAMER and SIGNAL_STACKER write no frame that is not valid
yet. Firmware writes zeros instead. There is no reference for such elements, and for those computed from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from buildtool.firmware.run.compare import Array
from buildtool.graph.geometry import attributes
from buildtool.graph.reference import execute_op
from buildtool.graph.signal import steps_before
from buildtool.graph.types import EnergyAttrs, FramerAttrs, Graph, Op, OpKind

_KINDS = {OpKind.SIGNAL_ENERGY, OpKind.SIGNAL_FRAMER, OpKind.SIGNAL_STACKER}
Mask = npt.NDArray[np.bool_]


def has_undefined(graph: Graph) -> bool:
    """Whether a network has operators that may leave elements undefined."""
    return any(op.kind in _KINDS for op in graph.ops)


def replace_undefined(
    graph: Graph, expected: Mapping[int, Array], own: Mapping[int, Array]
) -> dict[int, Array]:
    """Returns the values that a run must have: `expected`, with elements of `own` in place of undefined ones.

    `own` has the values of all tensors, as buildtool's executor computes them. Elements that change if an
    undefined element changes are undefined, too.
    """
    other: dict[int, Array] = {}  # values from other undefined elements, where these differ
    settled = dict(expected)
    for op in graph.ops:
        results = [own[t] for t in op.outputs]
        if any(t in other for t in op.inputs):
            results = execute_op(graph, op, {**own, **other})
        elif op.kind in _KINDS:
            results[0] = _inverted(results[0], _undefined(op, own))
        for t, value in zip(op.outputs, results, strict=True):
            mask: Mask = _bits(value) != _bits(own[t])
            if mask.any():
                other[t] = value
                if t in settled:
                    settled[t] = np.where(mask, own[t], settled[t].reshape(own[t].shape))
    return settled


def _undefined(op: Op, own: Mapping[int, Array]) -> Mask:
    """Returns a mask of the elements of the operator's first output that the library does not write."""
    result = own[op.outputs[0]]
    if op.kind is OpKind.SIGNAL_ENERGY:
        attrs, bins = attributes(op, EnergyAttrs), np.arange(result.size)
        return (bins < attrs.first) | (bins >= attrs.end)
    if op.kind is OpKind.SIGNAL_STACKER:
        return np.full(result.shape, not own[op.outputs[1]])
    before, steps = int(own[op.inputs[1]][-1]), np.arange(result.shape[-2])
    missing = before + 1 + steps < steps_before(attributes(op, FramerAttrs))
    return np.broadcast_to(missing[:, None], result.shape)


def _inverted(value: Array, mask: Mask) -> Any:
    result: Any = value.copy()
    result[mask] = ~result[mask]
    return result


def _bits(value: Array) -> Array:
    return np.ascontiguousarray(value).view(f"u{value.dtype.itemsize}") if value.dtype.kind == "f" else value
