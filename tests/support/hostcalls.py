"""The plain kernel of an operator with one input, on whole tensors, here; undefined behaviour traps.

    result = run_plain(graph, value)      # the graph has one operator without state

For what `placement` does not know: int16, MEAN, rows of SOFTMAX.
"""

from __future__ import annotations

import ctypes

import ckernels
import numpy as np
from ckernels import View
from loaded import load_target

from buildtool.graph.strided import reduction
from buildtool.graph.types import DType, Graph, MeanAttrs, Op, Tensor
from buildtool.target.catalogue import select
from buildtool.target.types import Argument

_RANK = 6
_NUMPY = {DType.INT8: np.int8, DType.INT16: np.int16}


def run_plain(graph: Graph, value: np.ndarray) -> np.ndarray:
    """The operator's output."""
    op = graph.ops[0]
    kernel = select(load_target("host"), graph, op)
    taken, made = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    x, out = np.ascontiguousarray(value), np.zeros(made.shape, _NUMPY[made.dtype])
    block = ckernels.packed(graph, op, kernel)
    structs = {
        Argument.IN: _view(x, taken),
        Argument.OUT: _view(out, made),
        Argument.WINDOW: (ctypes.c_int32 * 4)(0, made.nhwc[1], 0, made.nhwc[2]),
        Argument.GEOMETRY: _geometry(graph, op),
    }
    arrays = {Argument.IN_DATA: x, Argument.OUT_DATA: out, Argument.CONSTANTS: block}
    arguments = (
        ctypes.c_void_p(arrays[a].ctypes.data) if a in arrays else ctypes.byref(structs[a])  # type: ignore[arg-type]
        for a in kernel.call
    )
    ckernels.call(kernel.symbol, *arguments)
    return out


def _view(array: np.ndarray, tensor: Tensor) -> View:
    _, rows, columns, channels = tensor.nhwc
    pixel = channels * array.itemsize
    return View(array.ctypes.data, columns * pixel, pixel, rows, columns, 0, rows, columns, channels)


def _geometry(graph: Graph, op: Op) -> ckernels.Geometry | None:
    if not isinstance(op.attrs, MeanAttrs):
        return ckernels.geometry(graph, op)
    walk = reduction(graph, op)
    lists = [[pair[i] for pair in box] for box in (walk.outer, walk.inner) for i in (0, 1)]
    padded = (n for values in lists for n in (*values, *[0] * (_RANK - len(values))))
    return ckernels.numbers(len(walk.outer), len(walk.inner), *padded)
