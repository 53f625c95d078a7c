"""Compiles the plain C kernels for this machine and calls them on numpy arrays.

    view = whole(array)                       # int8, rows x columns x channels, contiguous
    compute(graph, op, [view], out_view, (y0, y1, x0, x1))
    result = run_plain(graph, *values)        # whole tensors, also of int16; the graph has one operator

Undefined behaviour traps: the process dies with SIGILL, and pytest's fault handler names the test.
"""

import atexit
import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from ctypes import byref, c_int32, c_void_p
from pathlib import Path

import numpy as np
from buildtool_plugins.tools.find import find_host_compiler
from loaded import load_target
from needs import needs_tool
from paths import KERNELS

from buildtool.base.session import current_session
from buildtool.emit.packing import pack
from buildtool.firmware.objects import Compiler, Unit, compile_all
from buildtool.graph import types as g
from buildtool.graph.strided import matmul, reduction
from buildtool.graph.types import Graph, Op, OpKind
from buildtool.target.catalogue import VIEWS, features, form, operands, scratch_bytes, select
from buildtool.target.family import load_family, resolve_packings
from buildtool.target.types import BYTES, Argument, KernelVariant

WARNINGS = tuple("-std=c99 -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -pedantic -Werror".split())
_SANITIZE = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error", "-fno-sanitize-recover=all")


class View(ctypes.Structure):
    _fields_ = [("data", c_void_p)] + [
        (name, c_int32)
        for name in (
            *("row_stride", "pixel_stride", "ring_rows", "ring_cols"),
            *("x0", "height", "width", "channels"),
        )
    ]


class Geometry(ctypes.Structure):
    """Any geometry of up to 32 integers."""

    _fields_ = [("values", c_int32 * 32)]


def whole(array: np.ndarray) -> View:
    """A view of a whole tensor (rows, columns, channels)."""
    assert array.dtype == np.int8 and array.flags.c_contiguous and array.ndim == 3
    h, w, c = array.shape
    return View(array.ctypes.data, w * c, c, h, w, 0, h, w, c)


def sources() -> list[Path]:
    return sorted((KERNELS / "reference").glob("*.c"))


def compile_library(
    files: Sequence[Path], more: Sequence[str] = (), tool: str = "", libraries: Sequence[str] = ()
) -> ctypes.CDLL:
    """Compiles C sources as a shared library for this machine. Undefined behaviour traps.

    `more`: flags. `tool`: gcc or clang. `libraries`: those that the sources call. Their paths differ in each
    process; as flags they would keep objects from being found again.
    """
    program = needs_tool(tool) if tool else find_host_compiler()
    folder = Path(tempfile.mkdtemp(prefix="ckernels"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    flags = ("-O1", "-fPIC", "-ffp-contract=off", *WARNINGS, *_SANITIZE, *more)
    units = [Unit(path, (KERNELS / "include",)) for path in files]
    objects = compile_and_keep(Compiler(program, _identify(program), flags), units, folder)
    shared = folder / "kernels.so"
    subprocess.run(
        [program, "-shared", *flags, "-o", str(shared), *map(str, objects), *libraries], check=True
    )
    return ctypes.CDLL(str(shared))


def compile_and_keep(compiler: Compiler, units: Sequence[Unit], folder: Path) -> list[Path]:
    """Compiles units; other processes of the tests find the objects in the cache at once."""
    objects = compile_all(compiler, units, folder)
    if (keeper := current_session().keeper) is not None:
        keeper.flush()
    return objects


def _identify(program: str) -> str:
    result = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return result.stdout.splitlines()[0]


@functools.cache
def library() -> ctypes.CDLL:
    return compile_library(sources())


RUNTIME = ("nn_image.c", "nn_crc32.c", "nn_slots.c", "nn_boxes.c")


@functools.cache
def runtime(tool: str) -> ctypes.CDLL:
    """Returns the library of the runtime's C files, compiled by gcc or clang."""
    library = compile_library([KERNELS / "runtime" / name for name in RUNTIME], ("-O2",), tool)
    library.nn_crc32.restype = ctypes.c_uint32
    library.nn_crc32.argtypes = [ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p]
    return library


@functools.cache
def catalogue(arithmetic: str = "") -> dict[str, KernelVariant]:
    """Returns the plain int8 kernel of every operator kind, of this `KernelVariant.form`."""
    every = resolve_packings(load_family(KERNELS / "reference"))
    return {v.op: v for v in every if v.types == BYTES and v.form == arithmetic}


def numbers(*values: int) -> Geometry:
    """A geometry struct from its fields in order."""
    return Geometry((c_int32 * 32)(*values))


def six(values: Sequence[int]) -> list[int]:
    """Returns sizes or strides of a box, padded to six dimensions."""
    return [*values, *([0] * (6 - len(values)))]


def constants(block: bytes) -> np.ndarray:
    """Copies `block` into memory aligned to 16 bytes, as in the weight image."""
    room = np.zeros(len(block) + 16, np.uint8)
    start = -room.ctypes.data % 16
    aligned = room[start : start + len(block)]
    aligned[:] = np.frombuffer(block, np.uint8)
    return aligned


# A case runs window by window, dozens of times, and with several families. What all share is computed once.
of_an_operator = functools.lru_cache(maxsize=4096)
scratch_size = of_an_operator(scratch_bytes)


@of_an_operator
def packed(graph: Graph, op: Op, variant: KernelVariant) -> np.ndarray:
    """The kernel's constants, aligned."""
    return constants(pack(graph, op, variant))


@of_an_operator
def geometry(graph: Graph, op: Op) -> Geometry | None:
    """Returns the geometry that the emitted C passes to the kernel. None: the kernel takes no geometry."""
    attrs = op.attrs
    if isinstance(attrs, g.MeanAttrs):
        walk = reduction(graph, op)
        lists = [[pair[i] for pair in box] for box in (walk.outer, walk.inner) for i in (0, 1)]
        return numbers(len(walk.outer), len(walk.inner), *(n for values in lists for n in six(values)))
    if isinstance(attrs, g.MatmulAttrs):
        product = matmul(graph, op)
        boxes = (product.size, product.x_stride, product.y_stride)
        return numbers(len(product.size), *(n for box in boxes for n in six(box)), *product.matrix)
    if op.kind in _RECURRENT:
        numbers_of = features(graph, op) | {"major": int(getattr(attrs, "time_major", False))}
        return numbers(*(numbers_of[name] for name in _RECURRENT[op.kind]))
    if isinstance(attrs, g.ConvAttrs):
        weights = graph.tensors[op.inputs[1]].shape
        groups = 1
        if isinstance(attrs, g.DepthwiseAttrs):
            groups = attrs.depth_multiplier
        elif op.kind is OpKind.CONV_2D:
            groups = graph.tensors[op.inputs[0]].shape[3] // weights[3]
        return numbers(*weights[1:3], *attrs.stride, *attrs.dilation, attrs.pad.top, attrs.pad.left, groups)
    if isinstance(attrs, g.PoolAttrs):
        return numbers(*attrs.kernel, *attrs.stride, attrs.pad.top, attrs.pad.left)
    if isinstance(attrs, g.ResizeAttrs):
        return numbers(int(attrs.align_corners), int(attrs.half_pixel_centers))
    return None


_RECURRENT = {
    OpKind.SVDF: ("batch", "cin", "cout", "rank", "memory"),
    OpKind.UNIDIRECTIONAL_SEQUENCE_LSTM: (
        *("batch", "ow", "cin", "cells", "cout", "major", "gates"),
        *("peepholes", "normed", "projected"),
    ),
}
TAKES_SCRATCH = {OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.TRANSPOSE_CONV, OpKind.FULLY_CONNECTED}


def arguments_of(
    graph: Graph, op: Op, variant: KernelVariant, views: Sequence[View], window: tuple[int, int, int, int]
) -> list[object]:
    """Returns a kernel's arguments without scratch. The last view is the output's."""
    block, shape = packed(graph, op, variant), geometry(graph, op)
    arguments: list[object] = [] if shape is None else [byref(shape)]
    arguments += [c_void_p(block.ctypes.data)] if len(block) else []
    return [*arguments, *map(byref, views), byref((c_int32 * 4)(*window))]


def compute(
    graph: Graph, op: Op, inputs: Sequence[View], out: View, window: tuple[int, int, int, int]
) -> None:
    """Runs the plain kernel of `op` for rows [y0, y1) and columns [x0, x1): (y0, y1, x0, x1)."""
    variant = catalogue(form(op))[op.kind]
    arguments = arguments_of(graph, op, variant, [*inputs, out], window)
    call(variant.symbol, *arguments, *([None] if op.kind in TAKES_SCRATCH else []))


def run_plain(graph: Graph, *values: np.ndarray) -> np.ndarray:
    """Runs a graph's only operator, which has no state. Returns its output. Operands may broadcast."""
    op = graph.ops[0]
    kernel = select(load_target("host"), graph, op)
    result = graph.tensors[op.outputs[0]]
    out, given = np.zeros(result.shape, result.dtype.value), dict(zip(graph.inputs, values, strict=True))
    read = [graph.tensors[t].data if t not in given else given[t] for t in operands(kernel, graph, op)]
    arrays = [np.ascontiguousarray(value) for value in read]
    views = [_repeating_view(array, result.nhwc if len(arrays) > 1 else None) for array in arrays]
    block = packed(graph, op, kernel)
    names = [argument for argument, _ in VIEWS if argument in kernel.call]
    places: dict[Argument, object] = {
        **dict(zip(names, map(byref, views), strict=False)),
        Argument.OUT: byref(_repeating_view(out, None)),
        Argument.WINDOW: byref((c_int32 * 4)(0, result.nhwc[1], 0, result.nhwc[2])),
        Argument.IN_DATA: c_void_p(arrays[0].ctypes.data),
        Argument.OUT_DATA: c_void_p(out.ctypes.data),
        Argument.CONSTANTS: c_void_p(block.ctypes.data),
        Argument.SCRATCH: None,
    }
    if Argument.GEOMETRY in kernel.call:
        places[Argument.GEOMETRY] = byref(geometry(graph, op))  # type: ignore[arg-type]
    call(kernel.symbol, *(places[argument] for argument in kernel.call))
    return out


def _repeating_view(array: np.ndarray, out: tuple[int, int, int, int] | None) -> View:
    """Returns the view of an operand, which broadcasts over an output of the shape `out`."""
    rows, columns, channels = (1, 1, 1, *array.shape)[-3:]
    pixel = channels * array.itemsize
    over = (rows, columns) if out is None else out[1:3]
    stride = 0 if out is not None and rows == 1 else columns * pixel
    return View(array.ctypes.data, stride, pixel, rows, columns, 0, *over, channels)


def call(symbol: str, *arguments: object) -> None:
    """Calls a kernel. Addresses are c_void_p or None, structs are passed by reference."""
    function = getattr(library(), symbol)
    function.restype = None
    function(*arguments)
