"""Shape arithmetic: integers that follow from static shapes alone (SHAPE, STRIDED_SLICE, PACK, ...).

Converters leave such chains in front of RESHAPE and TRANSPOSE_CONV when the batch is open. With a
fixed batch they are constants, and the operators that make them vanish.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from buildtool.graph.ops import DEFS
from buildtool.graph.tflite.flat import FlatFile, RawOperator, RawTensor
from buildtool.graph.tflite.movement import strided_spec
from buildtool.graph.tflite.opview import OpView
from buildtool.graph.tflite.schema import tflite

_Ints = npt.NDArray[np.int64]
_MAX = 64  # elements of a value that is followed
_B = tflite.BuiltinOperator


class ShapeValues:
    """The values of integer tensors that are computed from shapes alone, by tensor index."""

    def __init__(self, file: FlatFile) -> None:
        self._file = file
        self._known: dict[int, _Ints] = {}
        for op in file.operators:
            if op.code in _RULES and len(op.outputs) == 1:
                self._try(op)
            elif op.code in _PARTS:
                self._try_parts(op)

    def __call__(self, index: int) -> tuple[int, ...] | None:
        """The values, flattened; None if they are not known."""
        value = self._known.get(index)
        return None if value is None else tuple(int(v) for v in value.reshape(-1))

    def __contains__(self, index: int) -> bool:
        return index in self._known

    def _try(self, op: RawOperator) -> None:
        output = self._file.tensor(op.outputs[0])
        if output.dtype not in ("int32", "int64") or output.is_constant or output.elements > _MAX:
            return
        result = _RULES[op.code](OpView(self._file, op, self), self._value)
        if result is not None and result.size == output.elements:
            self._known[output.index] = result.reshape(output.shape)

    def _try_parts(self, op: RawOperator) -> None:
        """An operator of several outputs: all are known, or none."""
        outputs = [self._file.tensor(t) for t in op.outputs]
        if any(t.dtype not in ("int32", "int64") or t.is_constant for t in outputs):
            return
        parts = _PARTS[op.code](OpView(self._file, op, self), self._value)
        if parts is None or [p.size for p in parts] != [t.elements for t in outputs]:
            return
        for output, part in zip(outputs, parts, strict=True):
            self._known[output.index] = part.reshape(output.shape)

    def _value(self, tensor: RawTensor) -> _Ints | None:
        if tensor.index in self._known:
            return self._known[tensor.index]
        if tensor.is_constant and tensor.dtype in ("int32", "int64") and tensor.elements <= _MAX:
            return np.asarray(tensor.array()).astype(np.int64)
        return None


_Lookup = Callable[[RawTensor], _Ints | None]


def _shape(view: OpView, _value: _Lookup) -> _Ints | None:
    tensor = view.input(0)
    return None if tensor.dynamic else np.array(tensor.shape, dtype=np.int64)


def _strided_slice(view: OpView, value: _Lookup) -> _Ints | None:
    x = value(view.input(0))
    if x is None:
        return None
    attrs, shape = strided_spec(view)
    entries = zip(attrs.begin, attrs.stride, attrs.extent, strict=True)
    grid = np.ix_(*(begin + stride * np.arange(extent) for begin, stride, extent in entries))
    return x[grid].reshape(shape)


def _values(view: OpView, value: _Lookup) -> list[_Ints] | None:
    found = [value(view.input(i)) for i in range(len(view.op.inputs))]
    known = [v for v in found if v is not None]
    return known if known and len(known) == len(found) else None


def _pack(view: OpView, value: _Lookup) -> _Ints | None:
    """PACK of scalars, which is what shapes are made of."""
    parts = _values(view, value)
    if parts is None or any(p.ndim for p in parts):
        return None
    return np.stack(parts)


def _concatenation(view: OpView, value: _Lookup) -> _Ints | None:
    parts = _values(view, value)
    if parts is None or any(p.ndim != 1 for p in parts):
        return None
    return np.concatenate(parts)


def _same(view: OpView, value: _Lookup) -> _Ints | None:
    """CAST, RESHAPE, SQUEEZE, EXPAND_DIMS: the same integers; the output's shape is the file's."""
    return value(view.input(0))


def _reduced(function: Callable[..., object]) -> Callable[[OpView, _Lookup], _Ints | None]:
    """A reduction over one axis or all; the output's shape is the file's."""

    def rule(view: OpView, value: _Lookup) -> _Ints | None:
        x, axes = value(view.input(0)), value(view.input(1))
        if x is None or axes is None or x.size == 0 or (x.ndim not in (1, axes.size)):
            return None
        return np.asarray(_in_range(function(x.astype(object))))

    return rule


def _rank(view: OpView, _value: _Lookup) -> _Ints | None:
    return np.asarray(len(view.input(0).shape), np.int64)


def _fill(view: OpView, value: _Lookup) -> _Ints | None:
    parts = _values(view, value)
    if parts is None or len(parts) != 2 or parts[1].size != 1:
        return None
    return _repeated(parts[1].reshape(-1), view)


def _zeros(view: OpView, _value: _Lookup) -> _Ints | None:
    return _repeated(np.zeros(1, np.int64), view)


def _repeated(one: _Ints, view: OpView) -> _Ints:
    """One value as often as the output has elements, of which there are few."""
    return np.repeat(one, view.output.elements)


def _range(view: OpView, value: _Lookup) -> _Ints | None:
    parts = _values(view, value)
    if parts is None or len(parts) != 3 or any(p.size != 1 for p in parts):
        return None
    start, limit, step = (int(p.reshape(-1)[0]) for p in parts)
    if step == 0 or len(found := range(start, limit, step)) > _MAX:
        return None
    return np.array(found, np.int64)


def _gather(view: OpView, value: _Lookup) -> _Ints | None:
    """GATHER of a vector, which is what shapes are."""
    parts = _values(view, value)
    if parts is None or parts[0].ndim != 1 or parts[0].size == 0:
        return None
    if parts[1].size and not 0 <= int(parts[1].min()) <= int(parts[1].max()) < parts[0].size:
        return None
    return parts[0][parts[1]]


def _slice(view: OpView, value: _Lookup) -> _Ints | None:
    parts = _values(view, value)
    if parts is None or parts[0].ndim != 1 or any(p.size != 1 for p in parts[1:]):
        return None
    begin, size = (int(p.reshape(-1)[0]) for p in parts[1:])
    return parts[0][begin : None if size == -1 else begin + size] if begin >= 0 else None


def _reverse(view: OpView, value: _Lookup) -> _Ints | None:
    x = value(view.input(0))
    return x[::-1] if x is not None and x.ndim == 1 else None


def _tile(view: OpView, value: _Lookup) -> _Ints | None:
    parts = _values(view, value)
    if parts is None or len(parts) != 2 or parts[0].ndim != 1 or view.output.elements > _MAX:
        return None
    return np.resize(parts[0], view.output.elements) if parts[0].size else None


def _broadcast_shape(view: OpView, value: _Lookup) -> _Ints | None:
    parts = _values(view, value)
    if parts is None or any(p.ndim != 1 or (p.size and p.min() < 0) for p in parts):
        return None
    found = np.broadcast_shapes(*(tuple(int(n) for n in p) for p in parts))
    return np.array(found, np.int64)


def _quotient(a: npt.NDArray[np.object_], b: npt.NDArray[np.object_]) -> npt.NDArray[np.object_]:
    """DIV of integers, as C rounds."""
    halves = np.abs(a) // np.abs(b)
    return np.asarray(np.where((a < 0) == (b < 0), halves, -halves), object)


def _unpacked(view: OpView, value: _Lookup) -> list[_Ints] | None:
    x = value(view.input(0))
    return list(x.reshape(-1, 1)) if x is not None and x.ndim == 1 else None


def _split(view: OpView, value: _Lookup) -> list[_Ints] | None:
    x, count = value(view.input(1)), len(view.op.outputs)
    if x is None or x.ndim != 1 or not count or x.size % count:
        return None
    return list(x.reshape(count, -1))


def _split_v(view: OpView, value: _Lookup) -> list[_Ints] | None:
    x = value(view.input(0))
    if x is None or x.ndim != 1:
        return None
    ends = np.cumsum([view.file.tensor(t).elements for t in view.op.outputs])
    return [np.asarray(part) for part in np.split(x, ends[:-1])] if ends[-1] == x.size else None


def _arithmetic(
    function: Callable[..., object], divides: bool = False
) -> Callable[[OpView, _Lookup], _Ints | None]:
    def rule(view: OpView, value: _Lookup) -> _Ints | None:
        parts = _values(view, value)
        if parts is None or len(parts) != 2 or (divides and not parts[1].all()):
            return None
        return _in_range(np.asarray(function(parts[0].astype(object), parts[1].astype(object))))

    return rule


def _in_range(value: object) -> _Ints:
    """`value` as int64; OverflowError (a malformed model) beyond int32, the type of shapes."""
    array = np.asarray(value, dtype=object)
    if any(abs(int(v)) >= 1 << 31 for v in array.reshape(-1)):
        raise OverflowError("a shape's value exceeds int32")
    return array.astype(np.int64)


_RULES: dict[int, Callable[[OpView, _Lookup], _Ints | None]] = {
    _B.SHAPE: _shape,
    _B.STRIDED_SLICE: _strided_slice,
    _B.PACK: _pack,
    _B.CONCATENATION: _concatenation,
    _B.CAST: _same,
    _B.RESHAPE: _same,
    _B.SQUEEZE: _same,
    _B.EXPAND_DIMS: _same,
    _B.REDUCE_PROD: _reduced(np.prod),
    _B.REDUCE_MAX: _reduced(np.max),
    _B.REDUCE_MIN: _reduced(np.min),
    _B.SUM: _reduced(np.sum),
    _B.RANK: _rank,
    _B.FILL: _fill,
    _B.ZEROS_LIKE: _zeros,
    _B.RANGE: _range,
    _B.GATHER: _gather,
    _B.SLICE: _slice,
    _B.REVERSE_V2: _reverse,
    _B.TILE: _tile,
    _B.BROADCAST_TO: _tile,
    _B.BROADCAST_ARGS: _broadcast_shape,
    **{
        getattr(_B, kind): _arithmetic(getattr(np, found.numpy))
        for kind, found in DEFS.items()
        if found.numpy
    },
    _B.DIV: _arithmetic(_quotient, divides=True),
    _B.FLOOR_DIV: _arithmetic(np.floor_divide, divides=True),
    _B.FLOOR_MOD: _arithmetic(np.mod, divides=True),
}
_PARTS: dict[int, Callable[[OpView, _Lookup], list[_Ints] | None]] = {
    _B.UNPACK: _unpacked,
    _B.SPLIT: _split,
    _B.SPLIT_V: _split_v,
}
