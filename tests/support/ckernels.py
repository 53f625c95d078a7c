"""Compiles the plain C kernels for this machine and calls them on numpy arrays.

    view = whole(array)                       # int8, rows x columns x channels, contiguous
    compute(graph, op, [view], out_view, (y0, y1, x0, x1))

    result = run_plain(graph, value)          # an operator with one input and no state, on whole tensors

Undefined behaviour traps: the process dies with SIGILL, and pytest's fault handler says in which test.
"""

import atexit
import ctypes
import functools
import mmap
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

from buildtool.emit.packing import pack
from buildtool.firmware.objects import Compiler, Unit, compile_all
from buildtool.graph import types as g
from buildtool.graph.strided import reduction
from buildtool.graph.types import Graph, Op, OpKind, Tensor
from buildtool.target.catalogue import select
from buildtool.target.family import load_family, resolved
from buildtool.target.types import BYTES, Argument, KernelVariant

WARNINGS = (
    "-std=c99",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wsign-conversion",
    "-Wshadow",
    "-pedantic",
    "-Werror",
)
_SANITIZE = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error", "-fno-sanitize-recover=all")


class View(ctypes.Structure):
    """nn_view."""

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
    """The plain kernels' files."""
    return sorted((KERNELS / "reference").glob("*.c"))


def compile_library(files: Sequence[Path], more: Sequence[str] = (), tool: str = "") -> ctypes.CDLL:
    """C sources as a shared library for this machine, with undefined behaviour trapped.

    `more`: flags, and libraries that the sources call; `tool`: gcc or clang.
    """
    program = needs_tool(tool) if tool else find_host_compiler()
    folder = Path(tempfile.mkdtemp(prefix="ckernels"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    flags = ("-O1", "-fPIC", "-ffp-contract=off", *WARNINGS, *_SANITIZE, *more)
    units = [Unit(path, (KERNELS / "include",)) for path in files]
    objects = compile_all(Compiler(program, _identity(program), flags), units, folder)
    made = folder / "kernels.so"
    subprocess.run([program, "-shared", *flags, "-o", str(made), *map(str, objects)], check=True)
    return ctypes.CDLL(str(made))


def _identity(program: str) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


@functools.cache
def library() -> ctypes.CDLL:
    """The plain kernels."""
    return compile_library(sources())


RUNTIME = ("nn_image.c", "nn_crc32.c", "nn_slots.c")


@functools.cache
def runtime(tool: str) -> ctypes.CDLL:
    """The runtime's C files, compiled by gcc or clang: nn_crc32, nn_image_check..., nn_slots_..."""
    made = compile_library([KERNELS / "runtime" / name for name in RUNTIME], ("-O2",), tool)
    made.nn_crc32.restype = ctypes.c_uint32
    made.nn_crc32.argtypes = [ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p]
    return made


@functools.cache
def catalogue() -> dict[str, KernelVariant]:
    """The plain kernel of every operator kind, of bytes and of int8's arithmetic."""
    every = resolved(load_family(KERNELS / "reference"))
    return {v.op: v for v in every if v.types == BYTES and not v.form}


def numbers(*values: int) -> Geometry:
    """A geometry struct from its fields in order."""
    return Geometry((c_int32 * 32)(*values))


def six(values: Sequence[int]) -> list[int]:
    """Sizes or strides of a box, filled up to its six dimensions."""
    return [*values, *([0] * (6 - len(values)))]


def _mean_geometry(graph: Graph, op: Op) -> Geometry:
    walk = reduction(graph, op)
    lists = [[pair[i] for pair in box] for box in (walk.outer, walk.inner) for i in (0, 1)]
    return numbers(len(walk.outer), len(walk.inner), *(n for values in lists for n in six(values)))


def constants(block: bytes) -> np.ndarray:
    """`block` in memory aligned to 16 bytes, as the weight image has it."""
    room = np.zeros(len(block) + 16, np.uint8)
    start = -room.ctypes.data % 16
    aligned = room[start : start + len(block)]
    aligned[:] = np.frombuffer(block, np.uint8)
    return aligned


# A case is run window by window, dozens of times: what stays the same for all of them is made once.
of_an_operator = functools.lru_cache(maxsize=64)


@of_an_operator
def packed(graph: Graph, op: Op, variant: KernelVariant) -> np.ndarray:
    """The kernel's constants, aligned."""
    return constants(pack(graph, op, variant))


@of_an_operator
def geometry(graph: Graph, op: Op) -> Geometry | None:
    """What the emitted C tells the kernel about `op`'s geometry; None: nothing."""
    attrs = op.attrs
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
    return _mean_geometry(graph, op) if isinstance(attrs, g.MeanAttrs) else None


def compute(
    graph: Graph, op: Op, inputs: Sequence[View], out: View, window: tuple[int, int, int, int]
) -> None:
    """Runs the plain kernel of `op` for rows [y0, y1) and columns [x0, x1): (y0, y1, x0, x1)."""
    variant = catalogue()[op.kind]
    block, shape = packed(graph, op, variant), geometry(graph, op)
    area = (c_int32 * 4)(*window)
    arguments: list[object] = [] if shape is None else [byref(shape)]
    if len(block):
        arguments.append(c_void_p(block.ctypes.data))
    arguments += [byref(view) for view in (*inputs, out)] + [byref(area)]
    if Argument.SCRATCH in variant.call:
        arguments.append(None)
    call(variant.symbol, *arguments)


def call(symbol: str, *arguments: object) -> None:
    """Calls a kernel: addresses as c_void_p (or None), structs by reference, integers as they are."""
    function = getattr(library(), symbol)
    function.restype = None
    function(*arguments)


def run_plain(graph: Graph, value: np.ndarray) -> np.ndarray:
    """The plain kernel's output; for what `placement` does not know: int16, means, rows of softmax."""
    op = graph.ops[0]
    kernel = select(load_target("host"), graph, op)
    taken, made = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    x, out = np.ascontiguousarray(value), np.zeros(made.shape, made.dtype.value)
    structs = {
        Argument.IN: _tensor_view(x, taken),
        Argument.OUT: _tensor_view(out, made),
        Argument.WINDOW: (c_int32 * 4)(0, made.nhwc[1], 0, made.nhwc[2]),
        Argument.GEOMETRY: geometry(graph, op),
    }
    arrays = {Argument.IN_DATA: x, Argument.OUT_DATA: out, Argument.CONSTANTS: packed(graph, op, kernel)}
    arguments = (c_void_p(arrays[a].ctypes.data) if a in arrays else byref(structs[a]) for a in kernel.call)
    call(kernel.symbol, *arguments)
    return out


def _tensor_view(array: np.ndarray, tensor: Tensor) -> View:
    _, rows, columns, channels = tensor.nhwc
    pixel = channels * array.itemsize
    return View(array.ctypes.data, columns * pixel, pixel, rows, columns, 0, rows, columns, channels)


def before_nothing(array: np.ndarray) -> np.ndarray:
    """A copy that ends where a page begins that nobody may read: what is read behind it kills the program."""
    pages = -(-array.nbytes // mmap.PAGESIZE)
    room = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    start = pages * mmap.PAGESIZE
    address = ctypes.addressof(ctypes.c_char.from_buffer(room)) + start
    assert ctypes.CDLL(None, use_errno=True).mprotect(c_void_p(address), mmap.PAGESIZE, 0) == 0
    copy = np.frombuffer(room, np.int8, array.nbytes, start - array.nbytes).reshape(array.shape)
    copy[...] = array
    return copy
