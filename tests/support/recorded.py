"""Kernel calls recorded on this machine and repeated on a board, hundreds in one emulator run.

    tape = Tape("riscv")                      # a folder of kernels
    tape.record(graph, op, inputs, out, window)   # as ckernels.compute: the plain kernel computes
    assert tape.replay("qemu-virt-rv32") == []    # what came out differently there

A recorded call holds the memory of all its views before and after the plain kernel ran; on the board
the family's kernel gets the same memory, and must leave the same bytes everywhere.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field

import ckernels
import numpy as np
from ckernels import KERNELS, View
from kernelboard import Address, Call, Firmware, Memory

from buildtool.emit.packing import pack
from buildtool.graph.types import Graph, Op
from buildtool.target.catalogue import features, load_catalogue, scratch_bytes
from buildtool.target.expression import evaluate
from buildtool.target.types import KernelVariant

GUARD = 32  # bytes of noise before scratch
WORDS = ("row_stride", "ring_rows", "ring_cols", "x0", "height", "width", "channels")


@dataclass
class Region:
    """Memory that views share, before and after."""

    start: int
    end: int
    before: bytes = b""
    after: bytes = b""


@dataclass(frozen=True)
class Recorded:
    """One call of the plain kernel."""

    graph: Graph
    op: Op
    variant: KernelVariant
    views: tuple[tuple[int, tuple[int, ...]], ...]  # address, WORDS
    window: tuple[int, int, int, int]
    regions: tuple[Region, ...]


def _span(view: View) -> tuple[int, int]:
    size = max(view.ring_rows * view.row_stride, view.ring_cols * view.channels)
    return view.data, view.data + size


def _regions(views: Sequence[View]) -> tuple[Region, ...]:
    found: list[Region] = []
    for start, end in sorted(_span(view) for view in views):
        if found and start < found[-1].end:
            found[-1].end = max(found[-1].end, end)
        else:
            found.append(Region(start, end))
    return tuple(found)


@dataclass
class Tape:
    """Calls of operators that the family's catalogue serves; others are computed, and not kept."""

    family: str
    calls: list[Recorded] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.variants = load_catalogue(KERNELS / self.family / "catalogue.toml")

    def variant(self, graph: Graph, op: Op) -> KernelVariant | None:
        """The family's kernel for `op`, if it has one."""
        known = features(graph, op)
        return next((v for v in self.variants if v.op == op.kind and evaluate(v.when, known)), None)

    def record(self, graph: Graph, op: Op, inputs: Sequence[View], out: View, window: tuple) -> None:
        """Computes with the plain kernel, and keeps the call."""
        variant = self.variant(graph, op)
        views = (*inputs, out)
        regions = _regions(views)
        for region in regions:
            region.before = ctypes.string_at(region.start, region.end - region.start)
        ckernels.compute(graph, op, inputs, out, window)
        for region in regions:
            region.after = ctypes.string_at(region.start, region.end - region.start)
        if variant is not None:
            kept = tuple((v.data, tuple(getattr(v, name) for name in WORDS)) for v in views)
            self.calls.append(Recorded(graph, op, variant, kept, window, regions))

    def replay(self, board: str) -> list[str]:
        """Runs all calls on `board`; which of them left other bytes than the plain kernels."""
        sources = sorted({s for v in self.variants for s in v.sources})
        symbols = tuple(sorted({v.symbol for v in self.variants}))
        firmware = Firmware(board, "", tuple(KERNELS / s for s in sources), symbols)
        laid = [_lay_out(call) for call in self.calls]
        done = firmware.run([call for call, _ in laid])
        wrong = []
        for recorded, (_, places), one in zip(self.calls, laid, done, strict=True):
            expected = bytearray(one.before)
            for region, place in zip(recorded.regions, places, strict=True):
                expected[place.offset : place.offset + len(region.after)] = region.after
            scratch = scratch_bytes(recorded.variant, recorded.graph, recorded.op)
            expected[GUARD : GUARD + scratch] = one.memory[GUARD : GUARD + scratch]
            if bytes(expected) != one.memory:
                where = np.flatnonzero(
                    np.frombuffer(expected, np.uint8) != np.frombuffer(one.memory, np.uint8)
                )
                wrong.append(f"{recorded.variant.name} {features(recorded.graph, recorded.op)}: {where[:8]}")
        return wrong


def _lay_out(call: Recorded) -> tuple[Call, list[Address]]:
    """The call, and where its regions are in its memory; scratch lies first, behind GUARD bytes."""
    memory = Memory(len(call.regions[0].before))
    scratch = memory.room(scratch_bytes(call.variant, call.graph, call.op))
    places = [memory.put(region.before, align=16).offset for region in call.regions]
    views = []
    for address, numbers in call.views:
        n = next(i for i, r in enumerate(call.regions) if r.start <= address < r.end)
        views.append(memory.words(Address(places[n] + address - call.regions[n].start), *numbers))
    arguments: list[Address] = []
    shape = ckernels.geometry(call.graph, call.op)
    if shape is not None:
        arguments.append(memory.words(*shape.values))
    block = pack(call.graph, call.op, call.variant.packing)
    arguments += [memory.put(block), *views, memory.words(*call.window)]
    if call.op.kind in ckernels._SCRATCH:
        arguments.append(scratch)
    return Call(call.variant.symbol, tuple(arguments), memory), [Address(p) for p in places]
