"""Runs a family's kernels in the XS3 runner, as code of the chip, and compares them with the plain kernels.

    with on_xs3("xcore_vpu") as family:
        run_pieces(case, seed, columns=True)
    assert family.kernels.total()

Calls are those of `hostfamily`, with one thread. Tensors, constants and scratch lie between random bytes.
"""

import contextlib
import ctypes
import functools
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import ckernels
import numpy as np
import numpy.typing as npt
import placement
import pytest
from boardcalls import blocks_of
from buildtool_plugins.tools.find import find_clang
from buildtool_plugins.xs3.assembler import assemble
from buildtool_plugins.xs3.compiler import CFLAGS, compile_c, runtime
from buildtool_plugins.xs3.linker import Image, Memory, link
from buildtool_plugins.xs3.machine import Machine, Readings
from buildtool_plugins.xs3.objects import Object
from ckernels import KERNELS, View
from hostfamily import Family
from kernelcases import Case
from placement import images
from slicing import block_of, slice_of

from buildtool.graph.types import Graph, Op
from buildtool.target.family import load_family
from buildtool.target.types import Argument, KernelVariant, Target

FLAGS = ("-O2", "-ffp-contract=off", "-D__XS3A__", f"-I{KERNELS / 'include'}")
GUARD = 64
PLAIN = Readings()
RAM = Memory(0x80000, 1 << 22)


@functools.cache
def _compiled(path: Path) -> Object:
    return compile_c(path, FLAGS)


def _assembled(path: Path, mutant: tuple[str, str, str]) -> Object:
    """Returns the object of a `.S` file; a mutant is (file, right text, wrong text)."""
    words = [find_clang().path, *CFLAGS, *FLAGS, "-E", "-P", str(path)]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    file, right, wrong = mutant
    if path.name == file:
        assert right in text
        text = text.replace(right, wrong)
    return assemble(text, path.name)


@functools.cache
def link_family(family: str, mutant: tuple[str, str, str] = ("", "", "")) -> Image:
    """Links all kernels of a family."""
    variants = load_family(KERNELS / family).kernels
    paths = [KERNELS / name for name in dict.fromkeys(name for v in variants for name in v.sources)]
    objects = [_compiled(path) if path.suffix == ".c" else _assembled(path, mutant) for path in paths]
    return link([*objects, *runtime()], dict.fromkeys(variant.symbol for variant in variants), RAM)


def _whole_view(at: int, shape: Sequence[int], channels: int) -> npt.NDArray[np.int32]:
    """Returns nn_view of the first channels of a tensor at an address of the machine."""
    rows, columns, pixel = shape
    return np.array((at, columns * pixel, pixel, rows, columns, 0, rows, columns, channels), np.int32)


class Xs3Family(Family):
    """A family's kernels as code of the chip. `machine` counts what they issue."""

    def __init__(
        self,
        name: str,
        readings: Readings = PLAIN,
        target: Target | None = None,
        image: Image | None = None,
    ) -> None:
        super().__init__("xcore", name, target=target)
        self.machine = Machine(image or link_family(name), readings)
        self.noise = np.random.default_rng(0)

    def _call(
        self,
        variant: KernelVariant,
        graph: Graph,
        op: Op,
        views: Sequence[View],
        window: tuple[int, int, int, int],
    ) -> None:
        self.machine.reset()
        blocks = [(first, end, self._room(end - first, first % 16)) for first, end in blocks_of(views)]
        for first, end, at in blocks:
            self.machine.write(at, ctypes.string_at(first, end - first))
        constants = self._room(0, 0, ckernels.packed(graph, op, variant).tobytes())
        given = ckernels.arguments_of(graph, op, variant, views, window)
        arguments = [
            constants if isinstance(it, ctypes.c_void_p) else self._place(it._obj, blocks) for it in given
        ]
        own = [(at, end - first) for first, end, at in blocks]
        if op.kind in ckernels.TAKES_SCRATCH:
            size = ckernels.scratch_size(variant, graph, op, window[3] - window[2])
            own.append((self._room(size, 0), size))
            arguments.append(own[-1][0])
        if Argument.CHANNEL in variant.call:
            arguments.append(0)
        self._run(variant, arguments, own)
        for first, end, at in blocks:
            ctypes.memmove(first, self.machine.read(at, end - first).tobytes(), end - first)

    def _run(self, variant: KernelVariant, arguments: Sequence[int], own: Sequence[tuple[int, int]]) -> None:
        """Calls a kernel; nothing but its own memory may change, (address, bytes), and the stack."""
        size = self.machine.reserve(0) - RAM.base
        before = self.machine.read(RAM.base, size)
        self.machine.call(variant.symbol, *arguments)
        after = self.machine.read(RAM.base, size)
        for at, bytes_ in own:
            after[at - RAM.base :][:bytes_] = before[at - RAM.base :][:bytes_]
        changed = [int(at) + RAM.base for at in np.flatnonzero(before != after)]
        assert not changed, f"{variant.name} wrote outside its memory: {list(map(hex, changed[:4]))}"

    def in_slices(self, case: Case, width: int) -> npt.NDArray[np.int8]:
        """Computes the output by calls for `width` channels each; `slices_issues` has their issue slots."""
        variant = self.select(case.graph, case.op)
        cut = block_of(case, variant)
        block = ckernels.packed(case.graph, case.op, variant).view(np.int8)
        (x, *_), shape = images(case)
        output = np.zeros(shape, np.int8)
        size = ckernels.scratch_size(variant, case.graph, case.op, shape[1])
        self.machine.clear_counts()
        for first in range(0, shape[2], width):
            self.machine.reset()
            count = min(width, shape[2] - first)
            place, read, write = self.machine.place, self.machine.place(x), self.machine.place(output)
            geometry = ckernels.geometry(case.graph, case.op)
            given = {
                Argument.GEOMETRY: geometry and place(bytes(geometry)),
                Argument.CONSTANTS: place(slice_of(block, cut, first, count, width < cut.group), 16),
                Argument.IN: place(_whole_view(read, x.shape, x.shape[2])),
                Argument.OUT: place(_whole_view(write + first, shape, count)),
                Argument.WINDOW: place(np.array((0, shape[0], 0, shape[1]), np.int32)),
                Argument.SCRATCH: self.machine.reserve(size + 16, 16),
                Argument.CHANNEL: first,
            }
            self.machine.call(variant.symbol, *(given[argument] for argument in variant.call))
            output = self.machine.read(write, output.size, np.int8).reshape(shape)
        self.slices_issues = self.machine.counts().issues
        return output.reshape(case.out_shape)

    def _room(self, size: int, offset: int, data: bytes = b"") -> int:
        """Returns an address `offset` bytes above a multiple of 16, with random bytes around its own."""
        around = (self.noise.bytes(GUARD + offset), data, self.noise.bytes(size + GUARD))
        return self.machine.place(b"".join(around), 16) + GUARD + offset

    def _place(self, it: object, blocks: Sequence[tuple[int, int, int]]) -> int:
        """Places a structure; a view has the machine's address of its memory."""
        if not isinstance(it, View):
            return self.machine.place(bytes(it), 16)  # type: ignore[call-overload]
        first, at = next((first, at) for first, end, at in blocks if first <= it.data < end)
        words = [at + it.data - first, *(getattr(it, name) for name, _ in View._fields_[1:])]
        return self.machine.place(np.array(words, np.int32))


@contextlib.contextmanager
def on_xs3(family: str, readings: Readings = PLAIN, target: Target | None = None) -> Iterator[Xs3Family]:
    """Lets placements run a family's kernels in the XS3 runner."""
    kernels = Xs3Family(family, readings, target)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "compute", kernels.compute)
        yield kernels
