"""Computes operators on constants: calculations of shapes, and moves of a weight before it is used."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.onnx.file import DTYPES, Array, Node
from buildtool.graph.onnx.values import Constant, Quantized

MAX_FOLDED = 4096  # upper limit for the elements in a shape calculation
_FLOAT32_MAX = float(np.finfo(np.float32).max)
Rule = Callable[[Node, list[Array]], Any]


def target_shape(sizes: Sequence[int], wanted: Sequence[int], keep_zero: bool = False) -> tuple[int, ...]:
    """Returns the shape that Reshape gives an input of the shape `sizes` for its operand `wanted`.

    A 0 in `wanted` copies the input's size, unless `keep_zero` is true. A -1 becomes the size that remains.
    """
    if len(wanted) > 16 or sum(n == -1 for n in wanted) > 1 or any(n < -1 for n in wanted):
        raise ModelError(f"{list(wanted[:16])} is not a shape")
    shape = list(wanted)
    for i, n in enumerate(shape):
        if n == 0 and not keep_zero:
            if i >= len(sizes):
                raise ModelError(f"the shape {shape} copies a dimension that does not exist")
            shape[i] = sizes[i]
    rest = math.prod(n for n in shape if n != -1)
    total = math.prod(sizes)
    shape = [(total // rest if rest else 0) if n == -1 else n for n in shape]
    if math.prod(shape) != total or not total:
        raise ModelError(f"{total} elements cannot take shape {list(wanted)}")
    return tuple(shape)


def axes_of(given: Sequence[int], rank: int) -> tuple[int, ...]:
    """Returns the axes in ascending order, each once. Negative ones count from the back."""
    if any(not -rank <= a < rank for a in given):
        raise ModelError(f"axes {list(given)} for {rank} dimensions")
    return tuple(sorted({a % rank for a in given}))


def axis_of(node: Node, rank: int, default: int = 0) -> int:
    """Returns an operator's axis as a number from 0 to rank - 1."""
    return axes_of((node.integer("axis", default),), rank)[0]


def broadcast_of(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Returns the shape to which all `shapes` broadcast. Raises ModelError if they do not broadcast."""
    try:
        return tuple(int(n) for n in np.broadcast_shapes(*map(tuple, shapes)))
    except ValueError:
        sides = " and ".join(str(list(shape)) for shape in shapes)
        raise ModelError(f"shapes {sides} do not broadcast") from None


def permutation(node: Node, rank: int) -> tuple[int, ...]:
    """Returns the permutation of a Transpose."""
    perm = node.integers("perm") or tuple(range(rank))[::-1]
    if sorted(perm) != list(range(rank)):
        raise ModelError(f"{list(perm)} is not a permutation of {rank} dimensions")
    return perm


def shape_after(node: Node, shape: Sequence[int], parameters: list[Array]) -> tuple[int, ...] | None:
    """Returns the result's shape if the operator only changes the shape, otherwise None.

    `shape`: the shape of its first operand. `parameters`: the values of its other operands.
    """
    rank = len(shape)
    ints = [tuple(int(v) for v in p.reshape(-1)[:64]) for p in parameters]
    match node.kind:
        case "Reshape":
            if not ints:
                raise ModelError("the shape is missing")
            return target_shape(shape, ints[0], bool(node.integer("allowzero", 0)))
        case "Flatten":
            axis = node.integer("axis", 1)
            if not -rank <= axis <= rank:
                raise ModelError(f"axis {axis} for {rank} dimensions")
            axis += rank if axis < 0 else 0
            return math.prod(shape[:axis]), math.prod(shape[axis:])
        case "Squeeze":
            axes = ints[0] if ints else node.integers("axes")  # an attribute before opset 13
            if axes is None:
                return tuple(n for n in shape if n != 1)
            axes = axes_of(axes, rank)
            if any(shape[a] != 1 for a in axes):
                raise ModelError(f"dimensions {list(axes)} of {list(shape)} are not all 1")
            return tuple(n for i, n in enumerate(shape) if i not in axes)
        case "Unsqueeze":
            axes = ints[0] if ints else node.integers("axes")
            if axes is None:
                raise ModelError("the axes are missing")
            places, sizes = axes_of(axes, rank + len(set(axes))), iter(shape)
            return tuple(1 if i in places else next(sizes) for i in range(rank + len(places)))
        case "Identity" | "Dropout":
            return tuple(shape)
    return None


# ---- constants -------------------------------------------------------------------------------------


def move_quantized(node: Node, value: Quantized, parameters: list[Array]) -> Quantized | None:
    """Applies a Transpose or a change of shape to a quantised constant. Returns None for other operators.

    `value`: the constant. `parameters`: the values of the operator's other operands.
    """
    data, quant = value.data, value.quant
    per_channel, axis = len(quant.scales) > 1, 0
    if node.kind == "Transpose":
        perm = permutation(node, data.ndim)
        axis = perm.index(quant.axis) if per_channel else 0
        return Quantized(data.transpose(perm), replace(quant, axis=axis))
    shape = shape_after(node, data.shape, parameters)
    if shape is None:
        return None
    if per_channel:  # finds the dimension of the result that has the scales
        size, before = data.shape[quant.axis], math.prod(data.shape[: quant.axis])
        places = [i for i, n in enumerate(shape) if n == size and math.prod(shape[:i]) == before]
        if not places:
            text = "reshapes weights across the dimension they are quantised along"
            raise UnsupportedError(text, hint="reshape them before exporting")
        axis = places[0]
    return Quantized(data.reshape(shape), replace(quant, axis=axis))


def fold(node: Node, inputs: list[Array]) -> Constant:
    """Computes an operator on constants that are not weights. Refuses unknown kinds and large constants."""
    if node.kind not in _RULES:
        hint = "simplify the model first (onnxsim, or onnxruntime's offline optimisation)"
        raise UnsupportedError("an operator on constants that is not folded", hint=hint)
    if node.kind not in _FREE and sum(x.size for x in inputs) > MAX_FOLDED:
        raise UnsupportedError("a constant too large to fold", hint="store the result in the model")
    try:
        return Constant(np.asarray(_RULES[node.kind](node, inputs)))
    except (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError) as error:
        raise ModelError("the operator's constants do not fit together") from error


def _to_ints(x: Array) -> tuple[int, ...]:
    return tuple(int(v) for v in x.reshape(-1))


def _slice(_node: Node, x: list[Array]) -> Array:
    starts, ends = _to_ints(x[1]), _to_ints(x[2])
    axes = _to_ints(x[3]) if len(x) > 3 else tuple(range(len(starts)))
    steps = _to_ints(x[4]) if len(x) > 4 else (1,) * len(starts)
    slices = [slice(None)] * x[0].ndim
    for axis, *bounds in zip(axes, starts, ends, steps, strict=True):
        slices[axis] = slice(*bounds)
    return np.asarray(x[0][tuple(slices)])


def _cast(node: Node, x: list[Array]) -> Array:
    kind = DTYPES.get(node.integer("to", 1))
    if kind is None:
        raise UnsupportedError("a Cast of a constant to an unsupported type")
    with np.errstate(all="ignore"):
        return x[0].astype(kind)


def _move(node: Node, x: list[Array]) -> Array:
    if node.kind == "Transpose":
        return x[0].transpose(permutation(node, x[0].ndim))
    return x[0].reshape(shape_after(node, x[0].shape, x[1:]) or ())


def _constant_of_shape(node: Node, x: list[Array]) -> Array:
    value = node.attributes.get("value", np.zeros(1, np.float32))
    shape = _to_ints(x[0])
    if not isinstance(value, np.ndarray) or math.prod(shape) > MAX_FOLDED or any(n < 0 for n in shape):
        raise UnsupportedError("a constant too large to fold", hint="store the result in the model")
    return np.full(shape, value.reshape(-1)[0])


def _divide(_node: Node, x: list[Array]) -> Array:
    if x[0].dtype.kind in "iu":
        return np.asarray(np.trunc(x[0] / x[1])).astype(x[0].dtype)
    return np.asarray(x[0] / x[1])


def _clip(node: Node, x: list[Array]) -> Array:
    """Clips a constant. Some exporters clip quantised weights to -127..127. A limit may be absent."""
    limits = dict(zip((i for i in (1, 2) if node.input(i)), x[1:], strict=True))
    ends = (v if math.isfinite(v) else None for v in clip_attributes(node))
    low, high = (limits.get(i, end) for i, end in enumerate(ends, 1))
    return np.asarray(np.clip(x[0], low, high))


def clip_attributes(node: Node) -> tuple[float, float]:
    """Returns the limits that a Clip has as attributes (before opset 11).

    Their defaults are the ends of float32. Since opset 11, limits are operands, and this function returns
    (-inf, inf).
    """
    low, high = node.number("min", -math.inf), node.number("max", math.inf)
    return low if low > -_FLOAT32_MAX else -math.inf, high if high < _FLOAT32_MAX else math.inf


_MOVES = ("Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout")
_FREE = frozenset({*_MOVES, "Clip"})  # allowed on constants of any size
_BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}
_BINARY |= {"Min": np.minimum, "Max": np.maximum, "Equal": np.equal}
_RULES: dict[str, Rule] = {
    **dict.fromkeys(_MOVES, _move),
    "Clip": _clip,
    "Gather": lambda node, x: np.take(x[0], x[1], axis=node.integer("axis", 0)),
    "Concat": lambda node, x: np.concatenate(x, axis=node.integer("axis", 0)),
    "Slice": _slice,
    "Cast": _cast,
    "ConstantOfShape": _constant_of_shape,
    **dict.fromkeys(_BINARY, lambda node, x: _BINARY[node.kind](x[0], x[1])),
    "Div": _divide,
    "Floor": lambda _node, x: np.floor(x[0]),
    "Ceil": lambda _node, x: np.ceil(x[0]),
    "Where": lambda _node, x: np.where(x[0], x[1], x[2]),
    "ReduceProd": lambda node, x: np.prod(x[0], keepdims=bool(node.integer("keepdims", 1))),
}
KINDS = frozenset(_RULES)
