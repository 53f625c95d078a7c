"""Computes the integer tensors that depend only on static shapes (by SHAPE, PACK, ...).

Converters write such chains of operators before RESHAPE and TRANSPOSE_CONV when the batch size is not fixed.
With a fixed batch size their values are constants, and the graph does not need the operators.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import BuildtoolError, UnsupportedError
from buildtool.graph.ops import DEFS
from buildtool.graph.tflite.movement import settle_shape, strided_spec
from buildtool.graph.tflite.network import Network
from buildtool.graph.tflite.opview import OpView
from buildtool.graph.tflite.schema import tflite

_Ints = npt.NDArray[np.int64]
# (operator, values of the operands that it needs) -> its output or outputs, None if they are not known
_Rule = Callable[..., "_Ints | list[_Ints] | None"]
_MAX = 64  # most elements of a value that is computed
_INTEGERS = ("int32", "int64")
_B = tflite.BuiltinOperator


def follow_shapes(network: Network) -> None:
    """Fills `network.known` with the values of all tensors that depend only on shapes.

    It also gives the outputs of RESHAPEs the shapes that their parameters specify.
    """
    for op in network.file.operators:
        if op.code == _B.RESHAPE and op.outputs:
            with suppress(BuildtoolError):  # the reader refuses this operator later
                settle_shape(OpView(network, op))
        if op.code not in _RULES or not op.outputs or (len(op.outputs) > 1 and op.code not in _SEVERAL):
            continue
        view, outputs = OpView(network, op), [network.file.tensor(t) for t in op.outputs]
        if any(t.dtype not in _INTEGERS or t.is_constant or t.elements > _MAX for t in outputs):
            continue
        rule, needed = _RULES[op.code]
        operands = range(len(op.inputs)) if needed is None else needed
        values = []
        for tensor in map(view.input, operands):
            value = network.known.get(tensor.index)
            if value is None and tensor.is_constant and tensor.dtype in _INTEGERS and tensor.elements <= _MAX:
                value = np.asarray(tensor.array()).astype(np.int64)
            values.append(value)
        if any(v is None for v in values) or (needed is None and not values):
            continue
        try:
            result = rule(view, *values)
        except UnsupportedError:
            continue  # the reader refuses this operator later, together with all others
        parts = [] if result is None else result if isinstance(result, list) else [result]
        if [part.size for part in parts] == [t.elements for t in outputs]:
            for output, part in zip(outputs, parts, strict=True):
                network.known[output.index] = part.reshape(output.shape)


# ---- rules; the shapes of outputs are those of the file ------------------------------------------


def _shape(view: OpView) -> _Ints | None:
    tensor = view.input(0)
    return None if tensor.dynamic else np.array(tensor.shape, dtype=np.int64)


def _strided_slice(view: OpView, x: _Ints) -> _Ints:
    attrs, shape = strided_spec(view)
    entries = zip(attrs.begin, attrs.stride, attrs.extent, strict=True)
    grid = np.ix_(*(begin + stride * np.arange(extent) for begin, stride, extent in entries))
    return x[grid].reshape(shape)


def _make_reduction(function: Callable[..., object]) -> _Rule:
    """Returns the rule that reduces a vector, or any array over all its axes, to one number."""

    def rule(_view: OpView, x: _Ints, axes: _Ints) -> _Ints | None:
        if x.size == 0 or (x.ndim not in (1, axes.size)):
            return None
        return _check_range(function(x.astype(object)))

    return rule


def _fill(view: OpView, *parts: _Ints) -> _Ints | None:
    if len(parts) != 2 or parts[1].size != 1:
        return None
    return np.repeat(parts[1].reshape(-1), view.output.elements)


def _range(_view: OpView, *parts: _Ints) -> _Ints | None:
    if len(parts) != 3 or any(p.size != 1 for p in parts):
        return None
    start, limit, step = (int(p.reshape(-1)[0]) for p in parts)
    if step == 0 or len(values := range(start, limit, step)) > _MAX:
        return None
    return np.array(values, np.int64)


def _gather(_view: OpView, x: _Ints, indices: _Ints, *_: _Ints) -> _Ints | None:
    """Computes GATHER from a vector. Returns None for other inputs, since shapes are vectors."""
    if x.ndim != 1 or x.size == 0:
        return None
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < x.size:
        return None
    return x[indices]


def _slice(_view: OpView, x: _Ints, *parts: _Ints) -> _Ints | None:
    if x.ndim != 1 or any(p.size != 1 for p in parts):
        return None
    begin, size = (int(p.reshape(-1)[0]) for p in parts)
    return x[begin : None if size == -1 else begin + size] if begin >= 0 else None


def _tile(view: OpView, *parts: _Ints) -> _Ints | None:
    if len(parts) != 2 or parts[0].ndim != 1 or not parts[0].size:
        return None
    return np.resize(parts[0], view.output.elements)


def _broadcast_shape(_view: OpView, *parts: _Ints) -> _Ints | None:
    if any(p.ndim != 1 or (p.size and p.min() < 0) for p in parts):
        return None
    return np.array(np.broadcast_shapes(*(tuple(int(n) for n in p) for p in parts)), np.int64)


def _split(view: OpView, x: _Ints) -> list[_Ints] | None:
    count = len(view.op.outputs)
    return None if x.ndim != 1 or x.size % count else list(x.reshape(count, -1))


def _split_v(view: OpView, x: _Ints) -> list[_Ints] | None:
    ends = np.cumsum([view.file.tensor(t).elements for t in view.op.outputs])
    if x.ndim != 1 or ends[-1] != x.size:
        return None
    return [np.asarray(part) for part in np.split(x, ends[:-1])]


def _divide(a: npt.NDArray[np.object_], b: npt.NDArray[np.object_]) -> npt.NDArray[np.object_]:
    """Divides integers, rounding towards zero as C does."""
    magnitude = np.abs(a) // np.abs(b)
    return np.asarray(np.where((a < 0) == (b < 0), magnitude, -magnitude), object)


def _make_arithmetic(function: Callable[..., object], divides: bool = False) -> _Rule:
    def rule(_view: OpView, *parts: _Ints) -> _Ints | None:
        if len(parts) != 2 or (divides and not parts[1].all()):
            return None
        return _check_range(function(parts[0].astype(object), parts[1].astype(object)))

    return rule


def _check_range(value: object) -> _Ints:
    """Returns `value` as int64. Raises OverflowError if it exceeds int32, which means a malformed model."""
    array = np.asarray(value, dtype=object)
    if any(abs(int(v)) >= 1 << 31 for v in array.reshape(-1)):
        raise OverflowError("a value of a shape exceeds int32")
    return array.astype(np.int64)


# By operator code: the rule, and the operands whose values it needs (None means all).
_RULES: dict[int, tuple[_Rule, Sequence[int] | None]] = {
    _B.SHAPE: (_shape, ()),
    _B.RANK: (lambda view: np.asarray(len(view.input(0).shape), np.int64), ()),
    _B.ZEROS_LIKE: (lambda view: np.zeros(view.output.elements, np.int64), ()),
    **dict.fromkeys((_B.CAST, _B.RESHAPE, _B.SQUEEZE, _B.EXPAND_DIMS), (lambda _view, x: x, (0,))),
    _B.STRIDED_SLICE: (_strided_slice, (0,)),
    _B.REVERSE_V2: (lambda _view, x: x[::-1] if x.ndim == 1 else None, (0,)),
    _B.UNPACK: (lambda _view, x: list(x.reshape(-1, 1)) if x.ndim == 1 else None, (0,)),
    _B.SPLIT: (_split, (1,)),
    _B.SPLIT_V: (_split_v, (0,)),
    _B.REDUCE_PROD: (_make_reduction(np.prod), (0, 1)),
    _B.REDUCE_MAX: (_make_reduction(np.max), (0, 1)),
    _B.REDUCE_MIN: (_make_reduction(np.min), (0, 1)),
    _B.SUM: (_make_reduction(np.sum), (0, 1)),
    # PACK of scalars, CONCATENATION of vectors
    _B.PACK: (lambda _view, *parts: None if any(p.ndim for p in parts) else np.stack(parts), None),
    _B.CONCATENATION: (
        lambda _view, *parts: None if any(p.ndim != 1 for p in parts) else np.concatenate(parts),
        None,
    ),
    _B.FILL: (_fill, None),
    _B.RANGE: (_range, None),
    _B.GATHER: (_gather, None),
    _B.SLICE: (_slice, None),
    **dict.fromkeys((_B.TILE, _B.BROADCAST_TO), (_tile, None)),
    _B.BROADCAST_ARGS: (_broadcast_shape, None),
    _B.DIV: (_make_arithmetic(_divide, divides=True), None),
    _B.FLOOR_DIV: (_make_arithmetic(np.floor_divide, divides=True), None),
    _B.FLOOR_MOD: (_make_arithmetic(np.mod, divides=True), None),
    **{
        getattr(_B, definition.kind): (_make_arithmetic(getattr(np, definition.numpy)), None)
        for definition in DEFS.values()
        if definition.numpy
    },
}
_SEVERAL = frozenset({_B.UNPACK, _B.SPLIT, _B.SPLIT_V})
