"""Pixels as values of a network's input: a table of 256 values for each channel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from buildtool.base.errors import UsageError, suggest
from buildtool.firmware.datasets.arrays import Array, quantisation
from buildtool.options.parsers import NAMED, Normalise

if TYPE_CHECKING:
    from buildtool.graph.types import Tensor

NEAR = 0.02  # of a range's width: how far off an input's range may be to be taken for it


def rule(tensor: Tensor, wanted: Normalise | None, path: str) -> Normalise:
    """How pixels become real values; where nothing is wanted, by the range that the input can hold.

    UsageError where that is none of those that have a name, for an input without a scale, and for more means
    than there are channels.
    """
    quantisation(tensor, path)
    if wanted is not None:
        if len(wanted.means) not in (1, tensor.shape[-1]):
            text = f"there are {len(wanted.means)} means, and the input has {tensor.shape[-1]} channels"
            raise UsageError(text, path=path, option="normalise")
        return wanted
    low, high = limits(tensor)
    for known in NAMED.values():
        first, last = known.ends
        if max(abs(low - first), abs(high - last)) <= NEAR * (last - first):
            return known
    text = f"the input '{tensor.name}' holds values from {low:.4g} to {high:.4g}: are pixels such?"
    hints = [
        suggest("0 to 255", normalise="bytes"),
        suggest("0 to 1", normalise="unit"),
        suggest("-1 to 1", normalise="signed"),
        suggest("as the network was trained", normalise="MEANS/DEVIATIONS"),
    ]
    raise UsageError(text, path=path, option="normalise", hint=hints)


def limits(tensor: Tensor) -> tuple[float, float]:
    """The least and the largest real value that a quantised tensor can hold."""
    assert tensor.quant is not None  # `rule` refuses others
    ends, quant = np.iinfo(tensor.dtype.value), tensor.quant
    low, high = ((end - quant.zero_point) * quant.scale for end in (ends.min, ends.max))
    return low, high


def table(tensor: Tensor, how: Normalise) -> Array:
    """The quantised value of every pixel by channel and pixel: [channels, 256], rounded half to even."""
    assert tensor.quant is not None
    channels, ends = tensor.shape[-1], np.iinfo(tensor.dtype.value)
    means = np.broadcast_to(np.array(how.means, np.float64), (channels,))[:, None]
    deviations = np.broadcast_to(np.array(how.deviations, np.float64), (channels,))[:, None]
    real = (np.arange(256, dtype=np.float64)[None, :] / how.divisor - means) / deviations
    steps = np.round(real / tensor.quant.scale) + tensor.quant.zero_point
    found: Array = np.clip(steps, ends.min, ends.max).astype(tensor.dtype.value)
    return found


def quantised(pixels: Array, values: Array) -> Array:
    """Pixels [..., channels] as quantised values of the same shape, by such a table."""
    found: Array = values[np.arange(values.shape[0]), pixels]
    return found


def words(tensor: Tensor, how: Normalise) -> str:
    """What is done with pixels, for the answer."""
    assert tensor.quant is not None
    if how.name in NAMED:
        first, last = (f"{end:g}" for end in how.ends)
        real = f"as {first} to {last}"
    else:
        real = f"as (p / 255 - mean) / deviation with {how.name}"
    return f"{real}, quantised by scale {tensor.quant.scale:.6g} and zero point {tensor.quant.zero_point}"
