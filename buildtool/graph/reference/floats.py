"""Operators on float32, step by step as LiteRT's reference kernels.

numpy rounds every sum, product, quotient and root as those kernels do, so the bits are equal. Only exp, log,
tanh, ... have routines of their own (`realfunctions`), which are the same in the C kernels. The function that
computes an operator is its rule: it gets the graph, the operator and its inputs, and returns the outputs.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from buildtool.graph import types as g
from buildtool.graph.geometry import attributes
from buildtool.graph.reference import realfunctions, shape
from buildtool.graph.reference.tensors import Rule, Values
from buildtool.graph.types import Activation, Graph, Op, OpKind

Floats = npt.NDArray[np.float32]
Limits = tuple[np.float32, np.float32]
_ZERO, _ONE, _SIX = np.float32(0), np.float32(1), np.float32(6)
_LARGEST = np.finfo(np.float32).max
# LiteRT's LOGISTIC uses an approximation beyond these inputs.
SIGMOID_LOW, SIGMOID_HIGH = np.float32(-9), np.float32(16.619047164916992188)
_LEAST_NORM = np.float32(1e-6)  # L2_NORMALIZATION divides by at least this
_CLAMPS = {
    Activation.NONE: (-_LARGEST, _LARGEST),
    Activation.RELU: (_ZERO, _LARGEST),
    Activation.RELU_N1_TO_1: (-_ONE, _ONE),
    Activation.RELU6: (_ZERO, _SIX),
}


def limits(op: Op) -> Limits:
    """Returns the ends of an operator's fused activation. Without one they are the largest finite numbers."""
    return _CLAMPS[getattr(op.attrs, "activation", Activation.NONE)]


def _clamp(value: Floats, ends: Limits) -> Floats:
    """Clamps as C++'s std::min(std::max(value, low), high), which keeps NaN."""
    above = np.where(value < ends[0], ends[0], value)
    return np.where(ends[1] < above, ends[1], above)


def _quiet(function: Rule) -> Rule:
    """Makes a rule ignore overflows and invalid operations, whose results are infinite or NaN as in C."""

    def rule(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
        with np.errstate(all="ignore"):
            return [np.asarray(y, order="C") for y in function(graph, op, inputs)]

    return rule


def _floats(inputs: Iterable[Values]) -> list[Floats]:
    return [value.astype(np.float32, copy=False) for value in inputs]


# ---- element by element ------------------------------------------------------------------------------


Function = Callable[[Floats], Any]
Pair = Callable[[Floats, Floats], Any]


def _pair(function: Pair) -> Rule:
    """Returns the rule of a function of two numbers; a fused activation clamps the result."""

    @_quiet
    def rule(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
        value = function(*_floats(inputs))
        return [_clamp(value, limits(op)) if isinstance(op.attrs, g.ElementwiseAttrs) else value]

    return rule


def _divide(a: Floats | np.float32, b: Floats | np.float32) -> Floats:
    return np.asarray(a / b, np.float32)


add, subtract, multiply, divide = (_pair(f) for f in (np.add, np.subtract, np.multiply, _divide))
larger = _pair(lambda a, b: np.where(a > b, a, b))
smaller = _pair(lambda a, b: np.where(a < b, a, b))
squared_difference = _pair(lambda a, b: (a - b) * (a - b))
power = _pair(realfunctions.power)
prelu = _pair(lambda a, b: np.where(a >= 0, a, a * b))


@_quiet
def compare(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes a comparison such as LESS."""
    return [np.asarray(getattr(np, op.kind.lower())(*inputs))]


def _unary(function: Function) -> Rule:
    """Returns the rule of a function of one number."""

    @_quiet
    def rule(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
        return [function(*_floats(inputs)).astype(np.float32)]

    return rule


def _sigmoid(x: Floats) -> Floats:
    exact = _divide(_ONE, _ONE + realfunctions.exp(-x))
    return np.where(x > SIGMOID_HIGH, _ONE, np.where(x < SIGMOID_LOW, realfunctions.exp(x), exact))


absolute, negate, root = (_unary(f) for f in (np.abs, np.negative, np.sqrt))
exp, log, tanh = (_unary(f) for f in (realfunctions.exp, realfunctions.log, realfunctions.tanh))
sigmoid, elu, error = (_unary(f) for f in (_sigmoid, realfunctions.expm1, realfunctions.erf))
square = _unary(lambda x: x * x)
inverse_root = _unary(lambda x: _divide(_ONE, np.sqrt(x)))
relu = _unary(lambda x: np.where(x < 0, _ZERO, x))
relu6 = _unary(lambda x: _clamp(x, (_ZERO, _SIX)))
relu_n1_to_1 = _unary(lambda x: _clamp(x, (-_ONE, _ONE)))
relu_0_to_1 = _unary(lambda x: _clamp(x, (_ZERO, _ONE)))
hard_swish = _unary(lambda x: _divide(x * _clamp(x + np.float32(3), (_ZERO, _SIX)), _SIX))


@_quiet
def leaky_relu(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes LEAKY_RELU."""
    (x,) = _floats(inputs)
    return [np.where(x > 0, x, x * np.float32(attributes(op, g.LeakyReluAttrs).alpha))]


@_quiet
def gelu(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes GELU, with erfc or approximated with tanh."""
    (x,) = _floats(inputs)
    half = np.float32(0.5) * x
    if not attributes(op, g.GeluAttrs).approximate:
        return [half * realfunctions.erfc(x * np.float32(-0.707106769))]
    cube = np.float32(0.044715) * x * x * x
    return [half * (_ONE + realfunctions.tanh(np.float32(0.797884583) * (x + cube)))]


# ---- sums, in the order of memory --------------------------------------------------------------------


def _total(terms: Iterable[Floats], start: Floats) -> Floats:
    """Returns `start` plus all terms. They are added one after the other, each sum rounded to float32."""
    for term in terms:
        start = start + term
    return start


def _gathered(graph: Graph, op: Op, x: Floats) -> Floats:
    """Returns the elements of `x` for a reduction.

    The first dimension counts the elements that are reduced to one output element. The other dimensions are
    those of the output.
    """
    axes = attributes(op, g.MeanAttrs).axes
    others = [d for d in range(x.ndim) if d not in axes]
    return x.transpose(*axes, *others).reshape(-1, *graph.tensors[op.outputs[0]].shape)


def _reduced(function: Function) -> Rule:
    """Returns the rule of a reduction by `function`.

    `function` gets an array like that of `_gathered`, and reduces the first dimension.
    """

    @_quiet
    def rule(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
        (x,) = _floats(inputs)
        return [function(_gathered(graph, op, x))]

    return rule


def _sum(terms: Floats) -> Floats:
    return _total(terms, np.zeros_like(terms[0]))


def _product(terms: Floats) -> Floats:
    result: Floats = np.ones_like(terms[0])
    for term in terms:
        result = result * term
    return result


def _largest(terms: Floats) -> Floats:
    result: Floats = np.full_like(terms[0], -_LARGEST)
    for term in terms:
        result = np.where(term > result, term, result)
    return result


total, product, largest = _reduced(_sum), _reduced(_product), _reduced(_largest)
smallest = _reduced(lambda terms: -_largest(-terms))
mean = _reduced(lambda terms: _divide(_sum(terms), np.full_like(terms[0], len(terms))))


@_quiet
def softmax(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SOFTMAX over the last dimension."""
    (x,) = _floats(inputs)
    greatest = _largest(np.moveaxis(x, -1, 0))[..., None]
    powers = realfunctions.exp((x - greatest) * np.float32(attributes(op, g.SoftmaxAttrs).beta))
    return [powers / _sum(np.moveaxis(powers, -1, 0))[..., None]]


@_quiet
def log_softmax(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes LOG_SOFTMAX over the last dimension."""
    (x,) = _floats(inputs)
    less = x - _largest(np.moveaxis(x, -1, 0))[..., None]
    return [less - realfunctions.log(_sum(np.moveaxis(realfunctions.exp(less), -1, 0)))[..., None]]


@_quiet
def l2_normalization(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes L2_NORMALIZATION over the last dimension."""
    (x,) = _floats(inputs)
    squares = _sum(np.moveaxis(x * x, -1, 0))[..., None]
    return [x / np.maximum(np.sqrt(squares), _LEAST_NORM)]


# ---- layers with weights, pools ----------------------------------------------------------------------


@_quiet
def fully_connected(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes FULLY_CONNECTED: the products in order, then the bias, then the clamp."""
    x, weights, *bias = _floats(inputs)
    rows = x.reshape(-1, x.shape[-1])
    sums = _total((rows[:, i, None] * weights[None, :, i] for i in range(x.shape[-1])), _blank(rows, weights))
    return [_finish(op, sums, bias).reshape(graph.tensors[op.outputs[0]].shape)]


def _blank(rows: Floats, weights: Floats) -> Floats:
    return np.zeros((len(rows), len(weights)), np.float32)


def _finish(op: Op, sums: Floats, bias: list[Floats]) -> Floats:
    return _clamp(sums + bias[0] if bias else sums, limits(op))


@_quiet
def matmul(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes BATCH_MATMUL: the products in order."""
    x, y = _floats(inputs)
    attrs = attributes(op, g.MatmulAttrs)
    x, y = (v.swapaxes(-1, -2) if swap else v for v, swap in ((x, attrs.adj_x), (y, attrs.adj_y)))
    start = np.zeros(graph.tensors[op.outputs[0]].shape, np.float32)
    return [_total((x[..., :, i, None] * y[..., None, i, :] for i in range(x.shape[-1])), start)]


def _taps(
    op: Op, x: Floats, kernel: tuple[int, int], out: tuple[int, ...]
) -> Iterable[tuple[int, int, Floats, npt.NDArray[np.bool_]]]:
    """Yields (row, column, inputs, mask of the inputs in the image) for each tap of a window.

    Row and column are the tap's. The inputs and the mask have one element for each output.
    """
    attrs = op.attrs
    assert isinstance(attrs, g.ConvAttrs | g.PoolAttrs)
    dilation = attrs.dilation if isinstance(attrs, g.ConvAttrs) else (1, 1)
    for ky in range(kernel[0]):
        y = np.arange(out[1]) * attrs.stride[0] - attrs.pad.top + ky * dilation[0]
        for kx in range(kernel[1]):
            z = np.arange(out[2]) * attrs.stride[1] - attrs.pad.left + kx * dilation[1]
            inside = ((y >= 0) & (y < x.shape[1]))[:, None] & ((z >= 0) & (z < x.shape[2]))
            picked = x[:, np.clip(y, 0, x.shape[1] - 1)][:, :, np.clip(z, 0, x.shape[2] - 1)]
            yield ky, kx, picked, inside[None, :, :, None]


@_quiet
def convolution(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes CONV_2D and DEPTHWISE_CONV_2D: rows, columns and channels of a filter in order."""
    x, weights, *bias = _floats(inputs)
    shape, depthwise = graph.tensors[op.outputs[0]].shape, op.kind is OpKind.DEPTHWISE_CONV_2D
    sums = np.zeros(shape, np.float32)
    for ky, kx, tap, inside in _taps(op, x, (weights.shape[1], weights.shape[2]), shape):
        if depthwise:
            times = attributes(op, g.DepthwiseAttrs).depth_multiplier
            sums = np.where(inside, sums + np.repeat(tap, times, axis=3) * weights[0, ky, kx], sums)
            continue
        each, groups = weights.shape[3], x.shape[3] // weights.shape[3]
        first_inputs = np.arange(shape[3]) // (shape[3] // groups) * each  # of each output channel
        for i in range(each):
            sums = np.where(inside, sums + tap[..., first_inputs + i] * weights[:, ky, kx, i], sums)
    return [_finish(op, sums, bias)]


@_quiet
def average_pool(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes AVERAGE_POOL_2D. Padded positions do not count."""
    (x,) = _floats(inputs)
    shape = graph.tensors[op.outputs[0]].shape
    sums, count = np.zeros(shape, np.float32), np.zeros((1, *shape[1:3], 1), np.float32)
    for _, _, tap, inside in _taps(op, x, attributes(op, g.PoolAttrs).kernel, shape):
        sums, count = np.where(inside, sums + tap, sums), count + inside
    return [_clamp(_divide(sums, count), limits(op))]


@_quiet
def max_pool(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes MAX_POOL_2D. Padded positions do not count."""
    (x,) = _floats(inputs)
    shape = graph.tensors[op.outputs[0]].shape
    result = np.full(shape, -_LARGEST, np.float32)
    for _, _, tap, inside in _taps(op, x, attributes(op, g.PoolAttrs).kernel, shape):
        result = np.where(inside & (result < tap), tap, result)
    return [_clamp(result, limits(op))]


# ---- moves, types ------------------------------------------------------------------------------------


def pad(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes PAD and MIRROR_PAD. The attributes have the bits of the padding value."""
    (bits,) = shape.pad(graph, op, [inputs[0].view(np.int32)])
    return [bits.view(np.float32)]
