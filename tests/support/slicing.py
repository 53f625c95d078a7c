"""Calls kernels for slices of their output channels, each with nothing but its own constants.

    with on_host("cortex-m4", "cortex_m_dsp") as family:
        variant = family.select(case.graph, case.op)
    output = in_slices(case, variant, library("cortex_m_dsp"), width)

Constants lie at the end of mapped memory: what a kernel reads behind a slice's own bytes is a fault.
"""

from __future__ import annotations

from ctypes import CDLL, byref, c_int32, c_void_p

import ckernels
import numpy as np
from ckernels import packed
from hostfamily import before_nothing
from kernelcases import Case
from placement import Margin, part_view

from buildtool.plan.assemble.arrivals import Constants, constants
from buildtool.target.types import Argument, KernelVariant

LINE = 16
NONE = Margin(0, 0)  # no other channels beside the output's


def lines(size: int) -> int:
    return -(-size // LINE) * LINE


def up(count: int, to: int) -> int:
    return -(-count // to) * to


def block_of(case: Case, variant: KernelVariant) -> Constants:
    """Returns how the constants of a case's operator are cut."""
    return constants(case.graph, (variant,))[0]


def slice_of(block: np.ndarray, cut: Constants, first: int, count: int, narrow: bool) -> np.ndarray:
    """Returns the constants of some channels (head, factors, weights), as the emitted code loads them."""
    padded, unit = up(cut.channels, cut.padded), 1 if narrow else cut.unit
    together = first // cut.group * cut.group
    factors = cut.factors * min(up(first - together + count, cut.group), padded - together)
    weights = cut.weights * up(count, unit)
    own = np.zeros(lines(cut.head + factors) + lines(weights + cut.tail), np.int8)
    own[: cut.head] = block[: cut.head]
    own[cut.head : cut.head + factors] = block[cut.head + cut.factors * together :][:factors]
    start = lines(cut.head + cut.factors * padded) + cut.weights * first
    loaded = block[start : start + weights]  # fewer where only zeros follow
    own[lines(cut.head + factors) :][: len(loaded)] = loaded
    if cut.range:
        numbers = own[cut.range : cut.range + 8].view(np.int32)
        numbers[:] = np.maximum(numbers - first, 0)
    return before_nothing(own)


def in_slices(case: Case, variant: KernelVariant, of: CDLL, width: int, margin: Margin = NONE) -> np.ndarray:
    """Computes the output by calls for `width` channels each; checks that `slice_bytes` is enough."""
    cut, block = block_of(case, variant), packed(case.graph, case.op, variant).view(np.int8)
    channels, values = case.out_shape[-1], case.inputs[0]
    values = values if values.ndim == 4 else values.reshape(1, 1, *values.shape)
    rows, columns = case.out_shape[1:3] if len(case.out_shape) == 4 else (1, case.out_shape[0])
    pixels = np.full((rows, columns, margin.before + channels + margin.behind), 99, np.int8)
    source, _ = part_view(values[0], NONE, 0, *values.shape[1:3])
    function = getattr(of, variant.symbol)
    function.restype = None
    scratch = np.zeros(ckernels.scratch_size(variant, case.graph, case.op, columns) + LINE, np.int8)
    shape = ckernels.geometry(case.graph, case.op)
    for first in range(0, channels, width):
        count = min(width, channels - first)
        own = slice_of(block, cut, first, count, width < cut.group)
        assert len(own) <= cut.slice_bytes(width)
        outer = Margin(margin.before + first, margin.behind + channels - first - count)
        out, _ = part_view(pixels, outer, 0, rows, columns)
        given = {
            Argument.GEOMETRY: shape and byref(shape),
            Argument.CONSTANTS: c_void_p(own.ctypes.data),
            Argument.IN: byref(source),
            Argument.OUT: byref(out),
            Argument.WINDOW: byref((c_int32 * 4)(0, rows, 0, columns)),
            Argument.SCRATCH: c_void_p(up(scratch.ctypes.data, LINE)),
            Argument.CHANNEL: first,
        }
        function(*(given[argument] for argument in variant.call))
    outside = np.delete(pixels, np.s_[margin.before : margin.before + channels], axis=2)
    assert (outside == 99).all()
    return pixels[:, :, margin.before : margin.before + channels].reshape(case.out_shape)
