"""Types of values, quantisations and requantisation, which all families of operators share."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph import fixedpoint
from buildtool.graph.fixedpoint import INT32_MAX, quantize_multiplier, wrap_int32
from buildtool.graph.types import Activation, Graph, Op, Quantization

Values: TypeAlias = npt.NDArray[np.generic]
Int64: TypeAlias = npt.NDArray[np.int64]
# Computes an operator's outputs from its inputs. The inputs do not include an absent bias.
Rule: TypeAlias = Callable[[Graph, Op, list[Values]], list[Values]]
Factor: TypeAlias = tuple[int, int]  # (multiplier, shift)


def quantization(graph: Graph, op: Op, tensor: int) -> Quantization:
    """Returns the quantisation of a tensor of `op`. Raises ModelError if the tensor does not have one."""
    quant = graph.tensors[tensor].quant
    if quant is None:
        raise ModelError("it has no quantisation", operator=op.place, tensor=graph.tensors[tensor].name)
    return quant


def output_quantization(graph: Graph, op: Op) -> Quantization:
    """Returns the quantisation of the operator's first output."""
    return quantization(graph, op, op.outputs[0])


def centre(graph: Graph, op: Op, position: int, value: Values) -> Int64:
    """Returns the value of input `position` minus its zero point."""
    if value.dtype.kind not in "iu":
        raise UnsupportedError(f"{op.kind} of {value.dtype} elements is not supported", operator=op.place)
    return value.astype(np.int64) - quantization(graph, op, op.inputs[position]).zero_point


def float_ratio(*scales: float, over: float) -> float:
    """Returns the product of `scales` divided by `over`. As in TFLite, every step is rounded to float32."""
    product = np.float32(scales[0])
    for scale in scales[1:]:
        product = np.float32(product * np.float32(scale))
    return float(np.float32(product / np.float32(over)))


def float_factor(graph: Graph, op: Op, *more: float) -> Factor:
    """Returns (multiplier, shift) of: first operand's scale * `more` / output's scale, in float32."""
    scale, out = quantization(graph, op, op.inputs[0]).scale, output_quantization(graph, op).scale
    return quantize_multiplier(float_ratio(scale, *more, over=out))


def requantise(
    x: npt.ArrayLike,
    multiplier: npt.ArrayLike,
    shift: npt.ArrayLike,
    zero_point: int,
    limits: tuple[int, int],
) -> Int64:
    """Returns x * multiplier * 2^(shift - 31) + zero_point, clamped to `limits` (inclusive)."""
    y = fixedpoint.multiply_by_quantized_multiplier(x, multiplier, shift)
    y += zero_point
    if np.any(np.asarray(shift) > 0) and np.any(y > INT32_MAX):  # int32 wraps in the C code
        y = wrap_int32(y)
    return np.asarray(np.clip(y, *limits))


def requantise_output(graph: Graph, op: Op, x: Int64, factor: tuple[npt.ArrayLike, npt.ArrayLike]) -> Values:
    """Requantises `x` to elements of the operator's output and applies its fused activation."""
    zero_point, dtype = output_quantization(graph, op).zero_point, graph.tensors[op.outputs[0]].dtype
    return requantise(x, *factor, zero_point, output_limits(graph, op)).astype(dtype.value)


def clip(graph: Graph, op: Op, y: npt.NDArray[Any]) -> Values:
    """Returns `y` plus the zero point as elements of the output, with its fused activation applied."""
    zero_point, dtype = output_quantization(graph, op).zero_point, graph.tensors[op.outputs[0]].dtype
    return np.asarray(np.clip(y + zero_point, *output_limits(graph, op)), dtype.value)


def output_limits(graph: Graph, op: Op) -> tuple[int, int]:
    """Returns the least and the greatest output, which follow from type and fused activation."""
    activation = getattr(op.attrs, "activation", Activation.NONE)
    return fixedpoint.activation_range(
        activation, output_quantization(graph, op), graph.tensors[op.outputs[0]].dtype
    )


def round_half_away_array(x: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float64]:
    """Returns the nearest integers as float64. Halves are rounded away from zero.

    The results are exact below 2^52.
    """
    wide = x.astype(np.float64)
    whole = np.trunc(wide)
    return np.asarray(whole + np.sign(wide) * (np.abs(wide - whole) >= 0.5))
