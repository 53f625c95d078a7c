"""Counts functions of CMSIS-NN that buildtool has no adapter for: the calls of library_calls.c.

    counts = count(entries, "cortex-m55", "clang", "/path/to/CMSIS-NN")

`entries`: of library_counts.toml. The operators are those of single.py, with their constants and random
inputs. What the library computes is compared with the executor; of a dense layer with the library's own
arithmetic, which rounds twice.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import single

from buildtool.emit.packing import packings
from buildtool.graph.fixedpoint import multiply_by_quantized_multiplier
from buildtool.graph.reference import execute
from buildtool.graph.types import ConvAttrs, Graph, Op
from buildtool.target.kernels import kernels_root
from buildtool.target.registry import load_board, plugin

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "support"))

from kernelboard import Address, Call, Firmware, Memory  # noqa: E402

Entry = dict[str, Any]  # of library_counts.toml
INPUT_OFFSET, OUTPUT_OFFSET, MULTIPLIER, SHIFT = 128, -5, 1 << 30, -9  # of dense layers
MORE_SOURCES = (  # beside those that the adapters need
    "Source/FullyConnectedFunctions/arm_fully_connected_s8.c",
    "Source/ConcatenationFunctions/arm_concatenation_s8_x.c",
)


@dataclass(frozen=True)
class Prepared:
    """A call of the library, the address of its result, and the expected result."""

    call: Call
    place: Address
    result: np.ndarray
    setup: Call | None = None  # what is subtracted: work that its user does once


def count(entries: list[Entry], board: str, toolchain: str, library: str) -> list[int]:
    """Returns the executed instructions of each entry; exits if a result differs from the expected one."""
    found = plugin(load_board(board)).library(load_board(board), "cmsis_nn", library)
    extra = [Path(library).resolve() / name for name in MORE_SOURCES]
    files = dict.fromkeys((HERE / "library_calls.c", *map(Path, found.sources), *extra))
    prepared = [_prepared(entry, 2 * i) for i, entry in enumerate(entries)]
    calls = [call for p in prepared for call in (p.call, p.setup) if call]
    symbols = tuple(dict.fromkeys(call.symbol for call in calls))
    image = Firmware(board, toolchain, tuple(files), symbols, found.cflags)
    done = dict(zip(map(id, calls), image.run(calls, count=True), strict=True))
    for entry, p in zip(entries, prepared, strict=True):
        if not np.array_equal(done[id(p.call)].array(p.place, p.result.shape), p.result):
            raise SystemExit(f"{board}, {toolchain}: the library's '{entry['name']}' has another result")
    counts = image.counts
    return [counts[p.call.marker] - (counts[p.setup.marker] if p.setup else 0) for p in prepared]


def _prepared(entry: Entry, marker: int) -> Prepared:
    ((kind, given),) = entry["call"].items()
    if kind == "dense":
        return _dense(*given, marker)
    builder = single.Builder()
    getattr(single, kind)(*given)(builder)
    graph = builder.whole()
    rng = np.random.default_rng(1)
    inputs = [rng.integers(-128, 128, graph.tensors[t].shape, np.int8) for t in graph.inputs]
    (op,) = graph.ops
    result = execute(graph, inputs)[op.outputs[0]]
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


def _concat(graph: Graph, op: Op, inputs: list[np.ndarray], result: np.ndarray, marker: int) -> Made:
    memory = Memory(marker)
    first, second = inputs
    places = (memory.put(first), memory.put(second), memory.room(result.size))
    sizes = (*result.shape[1:3], first.shape[3], second.shape[3])
    return Call("library_concat", (*places, *sizes), memory, marker), places[2]


def _binary(graph: Graph, op: Op, inputs: list[np.ndarray], result: np.ndarray, marker: int) -> Made:
    memory, name = Memory(marker), op.kind.value.lower()
    channels, own = result.shape[3], inputs[1].shape[3]
    words = memory.words(result.size // channels, channels, own)
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
    "grouped": _conv,
    "concat": _concat,
    "binary": _binary,
    "softmax": _softmax,
}


def is_called(entry: Entry) -> bool:
    """Whether this file calls the library for an entry, because no adapter does.

    This is so for dense layers, groups, concatenations, repeated operands and long softmaxes.
    """
    ((kind, given),) = entry["call"].items()
    if kind == "binary":
        return len(given) > 4
    return kind in ("dense", "grouped", "concat") or (kind == "softmax" and given[0] >= 512)
