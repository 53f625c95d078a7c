"""Slices of layers' weights: what a branch has of an original layer.

Kernels are sliced by output channels and, where the branch reads a part of the input, by input channels too.
Biases, batch normalisation and whatever else has one number a channel are sliced by output channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buildtool.split.steps import DEPTHWISE, Part, Step

Weights = list[NDArray[Any]]


def sliced(original: Step, weights: Sequence[NDArray[Any]], part: Part) -> Weights:
    """The weights of a branch's layer, in the layer's own order, from those of the whole layer."""
    reads = part.reads
    writes = np.asarray(part.writes, int)
    if original.kind == "SeparableConv2D":
        return _separable(original, weights, reads, writes)
    if original.kind in DEPTHWISE:
        depthwise = weights[0] if reads is None else weights[0].take(reads, -2)
        return [depthwise, *(bias.take(writes) for bias in weights[1:])]
    if original.is_mixing:
        return _mixing(original, weights, reads, writes)
    return [one.take(writes, -1) if one.shape[-1] == original.channels else one.copy() for one in weights]


def _mixing(
    original: Step, weights: Sequence[NDArray[Any]], reads: Sequence[int] | None, writes: NDArray[Any]
) -> Weights:
    """(..., in, out), or (..., out, in) where transposed; of grouped convolutions, `in` is of one group."""
    inside, outside = (-1, -2) if original.kind.endswith("Transpose") else (-2, -1)
    kernel = weights[0].take(writes, outside)
    if reads is not None and original.groups == 1:
        kernel = kernel.take(reads, inside)
    return [kernel, *(bias.take(writes) for bias in weights[1:])]


def _separable(
    original: Step, weights: Sequence[NDArray[Any]], reads: Sequence[int] | None, writes: NDArray[Any]
) -> Weights:
    """(rows, columns, in, multiplier) and (1, 1, in * multiplier, out)."""
    depthwise, pointwise, *biases = weights
    channels = np.arange(depthwise.shape[-2]) if reads is None else np.asarray(reads, int)
    between = (channels[:, None] * original.multiplier + np.arange(original.multiplier)).ravel()
    point = pointwise.take(between, -2).take(writes, -1)
    return [depthwise.take(channels, -2), point, *(bias.take(writes) for bias in biases)]


def kernel(original: Step, weights: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The kernel of a convolution or dense layer that joins channels, as (..., in, out)."""
    joining = weights[1 if original.kind == "SeparableConv2D" else 0]
    return np.swapaxes(joining, -1, -2) if original.kind.endswith("Transpose") else joining


def identity(fusion: Step) -> Weights:
    """A fusion's kernel and bias that put out the original's channels in their order."""
    assert fusion.part is not None and fusion.part.reads is not None
    count = fusion.channels
    kernel = np.zeros((count, count), np.float32)
    kernel[np.arange(count), list(fusion.part.reads)] = 1.0
    return [kernel.reshape(*fusion.kernel, count, count), np.zeros(count, np.float32)]
