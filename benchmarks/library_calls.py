"""Counts functions of CMSIS-NN that buildtool has no adapter for: the calls of library_calls.c.

muriscv-nn, which has the same functions for RISC-V, is counted on these boards, all of it by such calls.

    counts = count(entries, "cortex-m55", "clang", "/path/to/CMSIS-NN", "cycles")

`entries` are those of library_counts.toml. The operators are those of single.py, with their constants and
random inputs. What the library computes is compared with the executor; a dense layer is compared with the
library's own arithmetic, which rounds twice. In int16, results may differ from the executor's by one.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import single
from windows import cycles_of

from buildtool.emit.blocks import channel_bias, channel_factors, filter_weights
from buildtool.emit.packing import packings
from buildtool.graph.fixedpoint import multiply_by_quantized_multiplier
from buildtool.graph.reference import execute
from buildtool.graph.types import ConvAttrs, Graph, Op, OpKind, PadAttrs, PoolAttrs
from buildtool.target.kernels import kernels_root
from buildtool.target.registry import load_board, plugin

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "support"))

from kernelboard import Address, Call, Done, Firmware, Memory  # noqa: E402

Entry = dict[str, Any]  # of library_counts.toml
# Of muriscv-nn, what may be called: int8 and int16 without the rest.
_CALLED = re.compile(r"/(BasicMath|Concatenation|Convolution|FullyConnected|NNSupport|Pad|Pooling|Softmax)")
INPUT_OFFSET, OUTPUT_OFFSET, MULTIPLIER, SHIFT = 128, -5, 1 << 30, -9  # of dense layers
INT16 = (0xFFFF8000, 0x7FFF)  # limits
MARKERS = 64  # of a run of the emulator
OF_RISC_V = "muriscv-nn"
SHIMS = HERE / "muriscv_nn"  # headers
MORE_SOURCES = (  # beside those that the adapters need
    "Source/FullyConnectedFunctions/arm_fully_connected_s8.c",
    "Source/ConcatenationFunctions/arm_concatenation_s8_x.c",
    "Source/PadFunctions/arm_pad_s8.c",
    "Source/BasicMathFunctions/arm_maximum_s8.c",
)


@dataclass(frozen=True)
class Prepared:
    """A call of the library, the address of its result, and the expected result."""

    call: Call
    place: Address
    result: np.ndarray
    setup: Call | None = None  # what is subtracted: work that its user does once

    @property
    def calls(self) -> list[Call]:
        """The call that is counted, and the call that prepares it, if there is one."""
        return [call for call in (self.call, self.setup) if call]

    def is_right(self, done: Done) -> bool:
        """Whether the library's result is the expected one; in int16 it may differ by one."""
        found = done.array(self.place, (self.result.nbytes,)).view(self.result.dtype)
        apart = np.abs(found.reshape(self.result.shape).astype(int) - self.result)
        return bool(apart.max() <= (self.result.dtype == np.int16))


def count(
    entries: list[Entry], board: str, toolchain: str, library: str, unit: str = "instructions"
) -> list[int]:
    """Returns the executed instructions, or the estimated `cycles`, of each entry.

    Exits if a result of CMSIS-NN differs from the expected one; of muriscv-nn the entry has a count of 0.
    """
    sources, flags = _library(board, library)
    files = dict.fromkeys((HERE / "library_calls.c", *sources))
    prepared = [_prepared(entry, 2 * i % MARKERS) for i, entry in enumerate(entries)]
    symbols = tuple(dict.fromkeys(call.symbol for p in prepared for call in p.calls))
    image, counts = Firmware(board, toolchain, tuple(files), symbols, flags), list[int]()
    for first in range(0, len(prepared), MARKERS // 2):
        some = prepared[first : first + MARKERS // 2]
        calls = [call for p in some for call in p.calls]
        blocks = unit == "cycles"
        done = dict(zip(map(id, calls), image.run(calls, count=True, blocks=blocks), strict=True))
        by_marker = image.counts
        if image.executed:
            times = cycles_of(image.executed, load_board(board), waits=True)
            by_marker = {marker: round(time) for marker, time in times.items()}
        for entry, p in zip(entries[first:], some, strict=False):
            right = p.is_right(done[id(p.call)])
            if not right and library_of(board) != OF_RISC_V:
                raise SystemExit(f"{board}, {toolchain}: the library's '{entry['name']}' has another result")
            taken = by_marker[p.call.marker] - (by_marker[p.setup.marker] if p.setup else 0)
            counts.append(taken if right else 0)
    return counts


def _library(board: str, path: str) -> tuple[list[Path], tuple[str, ...]]:
    """Returns the library's sources, and flags for them and library_calls.c."""
    loaded, root = load_board(board), Path(path).resolve()
    if library_of(board) == OF_RISC_V:
        folders = (SHIMS, root / "Include", root / "Include" / "Internal")
        flags = [word for folder in folders for word in ("-isystem", str(folder))]
        vectors = ["-DUSE_VEXT"] if loaded.core.vector_bits else []
        files = [path for path in sorted((root / "Source").rglob("*.c")) if _CALLED.search(str(path))]
        return files, (*flags, *vectors, "-w")
    found = plugin(loaded).library(loaded, "cmsis_nn", path)
    extra = [root / name for name in MORE_SOURCES] + sorted((root / "Source").rglob("*_s16*.c"))
    return [*map(Path, found.sources), *extra], found.cflags


def library_of(board: str) -> str:
    """Returns the name of the library that is counted on a board."""
    return OF_RISC_V if load_board(board).core.isa.startswith("rv") else "CMSIS-NN"


def _prepared(entry: Entry, marker: int) -> Prepared:
    ((kind, given),) = entry["call"].items()
    if kind == "dense":
        return _dense(*given, marker)
    builder = single.Builder()
    getattr(single, kind)(*given)(builder)
    graph = builder.whole()
    rng = np.random.default_rng(1)
    types = [np.iinfo(graph.tensors[t].dtype.value) for t in graph.inputs]
    inputs = [
        rng.integers(info.min, info.max + 1, graph.tensors[t].shape, info.dtype)
        for t, info in zip(graph.inputs, types, strict=True)
    ]
    (op,) = graph.ops
    result = execute(graph, inputs)[op.outputs[0]]
    if kind == "wide" and op.kind is OpKind.FULLY_CONNECTED:
        return _wide_dense(graph, op, inputs[0], marker)
    make = _MAKERS[kind]
    call, place = make(graph, op, inputs, result, marker)
    return Prepared(call, place, result)


Made = tuple[Call, Address]


def _constants(family: str, packing: str, graph: Graph, op: Op) -> bytes:
    return packings(kernels_root() / family / "packing.py")[packing](graph, op)


def _conv(graph: Graph, op: Op, inputs: list[np.ndarray], result: np.ndarray, marker: int) -> Made:
    assert isinstance(op.attrs, ConvAttrs)
    memory = Memory(marker)
    (x,) = inputs
    cout, kernel_h, kernel_w, channels = graph.tensors[op.inputs[1]].shape
    scratch_bytes = 16 * kernel_h * kernel_w * (channels + 16)
    pad, stride = op.attrs.pad, op.attrs.stride[0]
    shapes = (*x.shape[1:], *result.shape[1:3], cout, kernel_h, kernel_w, channels)
    words = memory.words(*shapes, pad.top, pad.left, stride, scratch_bytes)
    constants = memory.put(_constants("cortex_m_cmsis_nn", "conv_cmsis_nn", graph, op))
    place, out = memory.put(x), memory.room(result.size)
    arguments = (words, constants, place, out, memory.room(scratch_bytes))
    return Call("library_conv", arguments, memory, marker), out


def _depthwise(graph: Graph, op: Op, inputs: list[np.ndarray], result: np.ndarray, marker: int) -> Made:
    memory, (x,) = Memory(marker), inputs
    shape = graph.tensors[op.inputs[1]].shape
    room = 64 * math.prod(shape) + 64 * result.shape[3]
    given = memory.words(*_shape(op, x, result, (*shape[1:3], x.shape[3]), room))
    constants = memory.put(_constants("cortex_m_cmsis_nn", "conv_cmsis_nn", graph, op))
    place, out = memory.put(x), memory.room(result.size)
    return Call("library_depthwise", (given, constants, place, out, memory.room(room)), memory, marker), out


def _pool(graph: Graph, op: Op, inputs: list[np.ndarray], result: np.ndarray, marker: int) -> Made:
    memory, (x,) = Memory(marker), inputs
    assert isinstance(op.attrs, PoolAttrs)
    room = 64 * x.shape[3] + 64
    given = memory.words(*_shape(op, x, result, (*op.attrs.kernel, 1), room))
    place, out = memory.put(x), memory.room(result.size)
    arguments = (given, place, out, memory.room(room), int(op.kind is OpKind.AVERAGE_POOL_2D))
    return Call("library_pool", arguments, memory, marker), out


def _shape(
    op: Op, x: np.ndarray, result: np.ndarray, filter_shape: tuple[int, ...], room: int
) -> Iterator[int]:
    """Yields the words of conv_words, which library_calls.c reads.

    `filter_shape` is (rows, columns, channels). `room` is the bytes of scratch.
    """
    yield from (*x.shape[1:], *result.shape[1:], *filter_shape)
    yield from (op.attrs.pad.top, op.attrs.pad.left, op.attrs.stride[0], room)


def _transpose(graph: Graph, op: Op, inputs: list[np.ndarray], result: np.ndarray, marker: int) -> Made:
    memory = Memory(marker)
    (x,), shape = inputs, graph.tensors[op.inputs[1]].shape
    room = 16 * result.shape[2] * result.shape[3] * shape[1] + 64 * math.prod(shape)
    given = memory.words(*_shape(op, x, result, shape[1:], room))
    constants = memory.put(_constants("cortex_m_cmsis_nn", "conv_cmsis_nn", graph, op))
    place, out = memory.put(x), memory.room(result.size)
    arguments = (given, constants, place, out, memory.room(room), memory.room(math.prod(shape)))
    return Call("library_transpose", arguments, memory, marker), out


def _pad(graph: Graph, op: Op, inputs: list[np.ndarray], result: np.ndarray, marker: int) -> Made:
    memory = Memory(marker)
    assert isinstance(op.attrs, PadAttrs)
    place, out = memory.put(inputs[0]), memory.room(result.size)
    before, behind = zip(*op.attrs.paddings, strict=True)
    sizes = [memory.words(*each) for each in (inputs[0].shape, before, behind)]
    return Call("library_pad", (place, out, op.attrs.value & 0xFFFFFFFF, *sizes), memory, marker), out


def _wide(graph: Graph, op: Op, inputs: list[np.ndarray], result: np.ndarray, marker: int) -> Made:
    memory, attrs = Memory(marker), op.attrs
    x = inputs[0]
    places = [memory.put(each) for each in inputs]
    out = memory.room(result.nbytes)
    if op.kind in (OpKind.ADD, OpKind.MUL):
        name = op.kind.value.lower()
        constants = memory.put(_constants("reference", name, graph, op))
        return Call(f"library_wide_{name}", (constants, *places, out, result.size), memory, marker), out
    room = 1 << 16
    if isinstance(attrs, PoolAttrs):
        given = memory.words(
            *_shape(op, x, result, (*attrs.kernel, 1), room), int(op.kind is OpKind.AVERAGE_POOL_2D), *INT16
        )
        return Call("library_wide_pool", (given, places[0], out, memory.room(room)), memory, marker), out
    weights = filter_weights(graph, op)
    factors = np.array(channel_factors(graph, op), np.int64)
    bias = memory.put(channel_bias(graph, op, result.shape[-1]).astype("<i8"))
    assert isinstance(attrs, ConvAttrs)
    multiplier = getattr(attrs, "depth_multiplier", 0)
    given = memory.words(*_shape(op, x, result, weights.shape[1:], room), multiplier, *INT16)
    columns = [memory.put(factors[:, i].astype("<i4")) for i in range(2)]
    arguments = (given, *columns, bias, memory.put(weights), places[0], out, memory.room(room))
    return Call("library_wide_conv", arguments, memory, marker), out


def _wide_dense(graph: Graph, op: Op, x: np.ndarray, marker: int) -> Prepared:
    """Prepares a dense layer in int16; the library has one factor for all outputs."""
    memory, weights = Memory(marker), filter_weights(graph, op)
    bias, (multiplier, shift, _) = channel_bias(graph, op, len(weights)), channel_factors(graph, op)[0]
    sums = weights.astype(np.int64) @ x.reshape(-1).astype(np.int64) + bias
    scaled = multiply_by_quantized_multiplier(sums, multiplier, shift).reshape(1, -1)
    given = memory.words(0, 0, x.size, 0, 0, len(weights), *(0,) * 8, *INT16)
    places = (memory.put(bias.astype("<i8")), memory.put(weights), memory.put(x))
    out = memory.room(2 * len(weights))
    call = Call("library_wide_dense", (given, memory.words(multiplier, shift), *places, out), memory, marker)
    return Prepared(call, out, np.clip(scaled, -32768, 32767).astype(np.int16))


def _concat(graph: Graph, op: Op, inputs: list[np.ndarray], result: np.ndarray, marker: int) -> Made:
    memory = Memory(marker)
    first, second = inputs
    places = (memory.put(first), memory.put(second), memory.room(result.size))
    sizes = (*result.shape[1:3], first.shape[3], second.shape[3])
    return Call("library_concat", (*places, *sizes), memory, marker), places[2]


def _binary(graph: Graph, op: Op, inputs: list[np.ndarray], result: np.ndarray, marker: int) -> Made:
    memory, name = Memory(marker), op.kind.value.lower()
    if op.kind is OpKind.MAXIMUM:
        places = (memory.put(inputs[0]), memory.put(inputs[1]), memory.room(result.size))
        return Call("library_maximum", (*places, memory.words(*result.shape)), memory, marker), places[2]
    channels, own = result.shape[3], inputs[1].shape[3]
    runs = (1, result.size, result.size) if inputs[1].shape == result.shape else None
    words = memory.words(*(runs or (result.size // channels, channels, own)))
    constants = memory.put(_constants("reference", name, graph, op))
    places = (memory.put(inputs[0]), memory.put(inputs[1]), memory.room(result.size))
    arguments = (words, constants, *places, memory.room(channels))
    return Call(f"library_{name}", arguments, memory, marker), places[2]


def _softmax(graph: Graph, op: Op, inputs: list[np.ndarray], result: np.ndarray, marker: int) -> Made:
    memory = Memory(marker)
    constants = memory.put(_constants("cortex_m_cmsis_nn", "softmax_cmsis_nn", graph, op))
    place, out = memory.put(inputs[0]), memory.room(result.size)
    return Call("library_softmax", (constants, place, out, result.size), memory, marker), out


def _dense(inputs: int, outputs: int, marker: int) -> Prepared:
    """Prepares a dense layer. The sums of weights are not counted: a user computes them only once."""
    rng, memory = np.random.default_rng(inputs), Memory(marker)
    x, weights = rng.integers(-128, 128, inputs, np.int8), rng.integers(-127, 128, (outputs, inputs), np.int8)
    bias = rng.integers(-2000, 2000, outputs, np.int32)
    sums = weights.astype(np.int64) @ (x.astype(np.int64) + INPUT_OFFSET) + bias
    scaled = multiply_by_quantized_multiplier(sums, MULTIPLIER, SHIFT) + OUTPUT_OFFSET
    places = (memory.room(4 * outputs), memory.put(x), memory.put(weights), memory.put(bias))
    out = memory.room(outputs)
    arguments = (*places, out, inputs, outputs, INPUT_OFFSET, MULTIPLIER, SHIFT)
    calls = [
        Call(name, arguments, memory, marker + n)
        for n, name in enumerate(("library_dense", "library_dense_sums"))
    ]
    return Prepared(calls[0], out, np.clip(scaled, -128, 127).astype(np.int8), calls[1])


_MAKERS: dict[str, Callable[[Graph, Op, list[np.ndarray], np.ndarray, int], Made]] = {
    "conv": _conv,
    "grouped": _conv,
    "depthwise": _depthwise,
    "multiplied": _depthwise,
    "pool": _pool,
    "concat": _concat,
    "binary": _binary,
    "softmax": _softmax,
    "transpose": _transpose,
    "padded": _pad,
    "wide": _wide,
}


def is_called(entry: Entry, board: str) -> bool:
    """Whether this file calls the library for an entry, because no adapter does.

    This is so for dense layers, groups, concatenations, repeated operands, long softmaxes, maxima, PADs,
    transpose convolutions and int16, and on RISC-V for all.
    """
    if library_of(board) == OF_RISC_V:
        return True
    ((kind, given),) = entry["call"].items()
    if kind == "binary":
        return len(given) > 4 or given[0] == "MAXIMUM"
    return kind in ("dense", "grouped", "concat", "transpose", "padded", "wide") or (
        kind == "softmax" and given[0] >= 512
    )
