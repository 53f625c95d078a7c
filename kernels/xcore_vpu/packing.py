"""Constants of the kernels for XMOS's vector unit, laid out as the kernels beside this file read them."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from buildtool.emit.blocks import Packing, clamp, quantization, words
from buildtool.emit.linear import LIFTS, Linear, linear_form
from buildtool.emit.packing import packings
from buildtool.graph.fixedpoint import multiply_by_quantized_multiplier
from buildtool.graph.reference.elementwise import add_sub
from buildtool.graph.types import ElementwiseAttrs, Graph, MeanAttrs, Op, OpKind
from buildtool.target.kernels import kernels_root

# ---- elementwise: lanes of 16 bits -------------------------------------------------------------

MOST_FACTOR = 1 << 22  # of a byte: 128 times 15 bits
MOST_SUM = (1 << 31) - (1 << 20)


def _plain(name: str, graph: Graph, op: Op) -> bytes:
    """What the plain kernel reads."""
    return packings(kernels_root() / "reference" / "packing.py")[name](graph, op)


def _halves(factor: int, unit: int) -> tuple[int, int]:
    """A factor as a multiple of `unit` and a rest of either sign."""
    high = (factor + unit // 2) // unit
    return high, factor - high * unit


def _can_clamp(low: int, high: int) -> bool:
    """As nn_vpu_can_clamp, of 256ths."""
    down = 0 if high == 127 else 32767 - (256 * high + 255)
    up = 0 if low == -128 else -32767 - 256 * low
    return down <= 32767 and up >= -32767 and up - down >= -32768


def _addition(graph: Graph, op: Op) -> bytes:
    """nn_add_constants and nn_add_lanes."""
    assert isinstance(op.attrs, ElementwiseAttrs)
    scales = [quantization(graph, op, t).scale for t in (*op.inputs[:2], op.outputs[0])]
    sign = -1 if op.kind is OpKind.SUB else 1
    limits = clamp(graph, op, op.attrs.activation)
    slopes = (scales[0] / scales[2], sign * scales[1] / scales[2])
    form = _sums_of_bytes(graph, op, slopes, limits) if _can_clamp(*limits) else None
    if form is None:
        return _plain("add", graph, op) + bytes(28)
    shift = form.bits - 8
    factors = [half for f in form.factors for half in (*_halves(f, 128), *_halves(f, 256))]
    own = words(1, form.bias - (1 << shift >> 1), shift) + np.array(factors, "<i2").tobytes()
    return _plain("add", graph, op) + own


def _sums_of_bytes(
    graph: Graph, op: Op, slopes: tuple[float, float], limits: tuple[int, int]
) -> Linear | None:
    """The form that gives the reference's output for every pair of bytes."""
    first, second = (x.ravel() for x in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128)))
    (outputs,) = add_sub(graph, op, [first, second])
    return linear_form((first, second), outputs.astype(np.int64), slopes, limits, MOST_FACTOR, MOST_SUM)


# ---- means -------------------------------------------------------------------------------------

MOST_COUNT = 255  # bytes whose sum fits 16 bits
MOST_MEAN = 1 << 18  # a factor's largest value: eight times 15 bits


def _mean(graph: Graph, op: Op) -> bytes:
    """nn_mean_constants and nn_mean_lanes."""
    head = _plain("mean", graph, op)
    form = _mean_of_sums(graph, op, np.frombuffer(head, "<i4").astype(np.int64))
    if form is None:
        return head + bytes(20)
    (factor,), shift = form.factors, form.bits - 8
    times = -(-abs(factor) // 32767) - 1
    each = factor // (times + 1)
    # The lanes are rounded by VLSAT, and once more where they become bytes.
    own = words(1, form.bias - (1 << shift >> 1) - (128 << shift), shift)
    return head + own + np.array((times, each, factor - times * each, form.lift // LIFTS), "<i2").tobytes()


def _mean_of_sums(graph: Graph, op: Op, head: npt.NDArray[np.int64]) -> Linear | None:
    """The form that gives the reference's output for every sum that there can be."""
    assert isinstance(op.attrs, MeanAttrs)
    shape = graph.tensors[op.inputs[0]].shape
    count = math.prod(shape[axis] for axis in op.attrs.axes)
    if count > MOST_COUNT:
        return None
    sum_zero_point, zero_point, multiplier, shift = map(int, head)
    sums = np.arange(-128 * count, 127 * count + 1)
    scaled = multiply_by_quantized_multiplier(sums - sum_zero_point, multiplier, shift)
    outputs = np.clip(scaled + zero_point, -128, 127)
    slope = multiplier * 2.0 ** (shift - 31)
    sides = np.where(sums >= sum_zero_point, 1, -1)
    form = linear_form((sums,), outputs, (slope,), (-128, 127), MOST_MEAN, MOST_SUM, sides)
    return form if form is None or abs(form.lift // LIFTS) < 1 << 15 else None


PACKINGS: dict[str, Packing] = {
    "add_vpu": _addition,
    "mean_vpu": _mean,
}
