"""Shape arithmetic: integers that follow from static shapes alone (SHAPE, STRIDED_SLICE, PACK, ...).

Converters leave such chains in front of RESHAPE and TRANSPOSE_CONV when the batch is open. With a
fixed batch they are constants, and the operators that make them vanish.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from buildtool.graph.tflite.flat import FlatFile, RawOperator, RawTensor
from buildtool.graph.tflite.opview import OpView
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.tflite.slicing import strided_spec

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


def _product(view: OpView, value: _Lookup) -> _Ints | None:
    x = value(view.input(0))
    axes = value(view.input(1))
    if x is None or axes is None or x.ndim != 1 or axes.size != 1:
        return None
    return np.asarray(_in_range(np.prod(x.astype(object))))


def _arithmetic(function: np.ufunc) -> Callable[[OpView, _Lookup], _Ints | None]:
    def rule(view: OpView, value: _Lookup) -> _Ints | None:
        parts = _values(view, value)
        if parts is None or len(parts) != 2:
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
    _B.REDUCE_PROD: _product,
    _B.MUL: _arithmetic(np.multiply),
    _B.ADD: _arithmetic(np.add),
    _B.SUB: _arithmetic(np.subtract),
}
