"""The replay in C: found beside this file where the package was built, on the tags of `Memory`.

What its twin looks up in a graph and a plan is in tables here, lines of 64-bit numbers as replay.c has them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from buildtool.base.compiled import load
from buildtool.plan.check.memory import Memory
from buildtool.plan.check.operators import Area, Operator
from buildtool.plan.check.reads import Read
from buildtool.plan.schedule.schedule import Steps
from buildtool.target.types import Contract

ABI = 2  # of replay.c; a library of another one is not used

_Table = npt.NDArray[np.int64]
_NOWHERE = (0, -1, 0)  # struct replay_area that is not there: offset, size, tag
_TENSOR, _READ, _OPERATOR = 11, 10, 16  # numbers in a line of a table


class _Model(ctypes.Structure):
    """struct replay_model."""

    _fields_ = (
        ("tags", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("tensors", "operators", "reads", "outputs", "spans")),
        ("source", ctypes.c_int64),
    )


@cache
def library(path: Path | None = None) -> ctypes.CDLL | None:
    """The compiled replay.c at `path`, by default the one built with the package; None if there is none."""
    found = load(__file__, "replay", ABI, path)
    if found is not None:
        found.replay_run.restype = ctypes.c_int64
        found.replay_run.argtypes = [
            ctypes.POINTER(_Model),
            ctypes.c_void_p,
            ctypes.c_int64,
            ctypes.c_int32,
        ]
    return found


class NativeReplay:
    """Runs steps on a memory. It knows where tensors lie now: `place` tells it after a move."""

    def __init__(self, lib: ctypes.CDLL, memory: Memory, operators: Mapping[int, Operator]) -> None:
        self._lib, self._memory = lib, memory
        graph = memory.graph
        self._tensors: _Table = np.zeros((len(graph.tensors), _TENSOR), np.int64)
        self.place(memory.groups)
        ordered = [operators.get(position) for position in range(len(graph.ops))]
        spans = list[int]()
        reads = [_read_line(read, spans) for operator in ordered if operator for read in operator.reads]
        self._spans = np.array([*spans, 0], np.int64)
        outputs = [t for operator in ordered if operator for t in operator.op.outputs]
        self._reads = np.array(reads, np.int64).reshape(-1, _READ)
        self._outputs = np.array(outputs, np.int64)
        self._operators = _operator_table(ordered)
        self._model = _Model(
            tags=memory.tags.ctypes.data,
            size=memory.tags.size,
            tensors=self._tensors.ctypes.data,
            operators=self._operators.ctypes.data,
            reads=self._reads.ctypes.data,
            outputs=self._outputs.ctypes.data,
            spans=self._spans.ctypes.data,
            source=graph.inputs[0],
        )

    def place(self, tensors: Iterable[int]) -> None:
        """Takes note of where some tensors lie."""
        for t in tensors:
            self._tensors[t] = _tensor_line(self._memory, t)

    def load(self, op: int, constants: Area) -> None:
        """Takes note of where an operator's constants are from now on."""
        self._operators[op, -3:] = _area(constants)

    def run(self, steps: Steps, is_streamed: bool) -> int:
        """Runs steps of one region; returns how many went well: where these are fewer, the next is wrong."""
        lines = np.ascontiguousarray(steps, np.int32)
        done: int = self._lib.replay_run(
            ctypes.byref(self._model), lines.ctypes.data, len(lines), is_streamed
        )
        return done


def _tensor_line(memory: Memory, t: int) -> tuple[int, ...]:
    """Struct replay_tensor."""
    tensor, buffer = memory.graph.tensors[t], memory.find(t)
    batch, height, width, channels = tensor.nhwc
    described = (batch, height, width, channels, channels * tensor.dtype.size, tensor.size, memory.tag(t))
    if buffer is None:
        return (-1, height, width, 0, *described)
    return (buffer.offset, buffer.rows or height, buffer.columns or width, not buffer.rows, *described)


def _read_line(read: Read, spans: list[int]) -> tuple[int, ...]:
    """Struct replay_read; puts what follows no stride behind `spans`, and says where it begins."""
    if read.rows is None or read.columns is None:
        return (read.tensor, 0, *([0] * (_READ - 2)))
    along = list[tuple[int, ...]]()
    for taps in (read.rows, read.columns):
        along.append(
            (taps.size, taps.extent, 0 if taps.spans else taps.stride, len(spans) if taps.spans else taps.pad)
        )
        spans.extend(chain.from_iterable(taps.spans))
    return (read.tensor, 1, *(number for taps in along for number in taps))


def _operator_table(ordered: Sequence[Operator | None]) -> _Table:
    """Struct replay_operator, for every operator of the graph; zeros for aliases."""
    table: _Table = np.zeros((len(ordered), _OPERATOR), np.int64)
    reads = outputs = 0
    for line, operator in zip(table, ordered, strict=True):
        if operator is None:
            continue
        line[:4] = reads, (reads := reads + len(operator.reads)), outputs, outputs + len(operator.op.outputs)
        outputs += len(operator.op.outputs)
        line[4:7] = operator.by_row, operator.contract is Contract.PIXEL, operator.sums_up
        line[7:] = [*_area(operator.scratch), *_area(operator.sums), *_area(operator.constants)]
    return table


def _area(area: Area | None) -> tuple[int, int, int]:
    """Struct replay_area."""
    return (area.buffer.offset, area.buffer.size, area.tag) if area else _NOWHERE
