"""Repeats calls of plain kernels with a board's kernels, on an emulated board.

    with recording("cortex_m_mve") as recorder:
        run_pieces(case, seed, columns=True)     # on this machine, with the plain kernels
    recorder.check("clang")                      # the same calls on the board, in one emulator run

A recorded call has the memory before and after the plain kernel. `check` asserts that the board's kernel
leaves the same bytes and writes nothing else, and that its scratch twin returns what the catalogue's formula
says. Operators that another family serves are not repeated.
"""

import contextlib
import ctypes
import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import ckernels
import numpy as np
import placement
import pytest
from ckernels import TAKES_SCRATCH, View, of_an_operator, scratch_size
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernelboard import Address, Call, Done, Firmware, Memory
from kernelcases import Case
from loaded import load_target
from needs import needs_tool
from paths import TESTS

from buildtool.graph.types import Graph, Op
from buildtool.target.catalogue import leaner, select
from buildtool.target.kernels import kernels_root
from buildtool.target.types import BYTES, KernelVariant, Target

LARGE_LX106 = str(TESTS / "support/boards/esp8266-large.toml")
M0_MUL32 = str(TESTS / "support/boards/cortex-m0plus-mul32.toml")
M3_MUL32 = str(TESTS / "support/boards/cortex-m3-mul32.toml")
M3_RISCV = str(TESTS / "support/boards/cortex-m3-riscv.toml")
BOARDS = {
    "cortex_m_dsp": "cortex-m4",
    "cortex_m_mve": "cortex-m55",
    "riscv": "qemu-virt-rv32",
    "riscv_v": "qemu-virt-rv32v",
    "mul32": LARGE_LX106,
}
TWIN = "_scratch_bytes"
_FIELDS = [name for name, _ in View._fields_ if name != "data"]


def extent(view: View) -> tuple[int, int]:
    """Returns the addresses [first, end) of the memory that a view may touch."""
    last = (view.ring_rows - 1) * view.row_stride + (view.ring_cols - 1) * view.pixel_stride
    return view.data, view.data + last + view.channels


@dataclass(frozen=True)
class Recorded:
    """A call for the board, the place of its output, and the bytes that must be there afterwards."""

    call: Call
    place: Address
    wanted: bytes
    scratch: tuple[int, int]  # [first, end) in the call's memory: may change
    note: str
    twin: Call | None
    formula: int


def select_lean(target: Target, family: str, graph: Graph, op: Op) -> KernelVariant:
    """Returns the family's kernel with the least scratch, or `select`'s where the family has none."""
    own = [v for v in leaner(target, graph, op) if v.sources[0].startswith(family + "/")]
    return own[-1] if own else select(target, graph, op)


class Recorder:
    """Collects calls; see the module."""

    def __init__(self, board: str, family: str) -> None:
        self.board, self.family = board, family
        self.target: Target = load_target(board)
        self.select = of_an_operator(functools.partial(select, self.target))
        self.recorded: list[Recorded] = []
        self.kernels: Counter[str] = Counter()

    def choose_lean(self) -> None:
        """Lets further calls be of the family's kernels with the least scratch."""
        self.select = of_an_operator(functools.partial(select_lean, self.target, self.family))

    def choose_in_turn(self) -> None:
        """Lets further calls be of all the family's kernels that plans may take for an operator, one for each
        operator: the first, and where memory is short those with less scratch.
        """
        number = itertools.count()

        def select_next(graph: Graph, op: Op) -> KernelVariant:
            own = [v for v in leaner(self.target, graph, op) if v.sources[0].startswith(self.family + "/")]
            return own[next(number) % len(own)] if own else select(self.target, graph, op)

        self.select = of_an_operator(select_next)

    def compute(
        self, graph: Graph, op: Op, inputs: Sequence[View], out: View, window: tuple[int, int, int, int]
    ) -> None:
        """Does what ckernels.compute does, and records the call."""
        variant = self.select(graph, op)
        if not variant.sources[0].startswith(self.family + "/"):
            ckernels.compute(graph, op, inputs, out, window)
            return
        memory = Memory(len(self.recorded))
        blocks = blocks_of([*inputs, out])
        places = {first: memory.put(ctypes.string_at(first, end - first), align=1) for first, end in blocks}
        first, end = extent(out)
        base = max(block for block in places if block <= first)
        arguments: list[int | Address] = []
        shape, constants = ckernels.geometry(graph, op), ckernels.packed(graph, op, variant)
        if shape is not None:
            arguments.append(memory.words(*shape.values))
        if len(constants):
            arguments.append(memory.put(constants))
        for view in (*inputs, out):
            block = max(block for block in places if block <= view.data)
            data = Address(places[block].offset + view.data - block)
            arguments.append(memory.words(data, *(getattr(view, name) for name in _FIELDS)))
        arguments.append(memory.words(*window))
        size = scratch_size(variant, graph, op, window[3] - window[2])
        scratch = memory.room(size)
        if op.kind in TAKES_SCRATCH:
            arguments.append(scratch)
        ckernels.compute(graph, op, inputs, out, window)
        self.kernels[variant.name] += 1
        self.recorded.append(
            Recorded(
                Call(variant.symbol, tuple(arguments), memory),
                Address(places[base].offset + first - base),
                ctypes.string_at(first, end - first),
                (scratch.offset, scratch.offset + size),
                f"{variant.name} window {window} {op.attrs} {[t.shape for t in graph.tensors]}",
                _make_twin(variant, arguments, memory) if _has_twin(variant) else None,
                scratch_size(variant, graph, op),
            )
        )

    def sources(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Returns the files and functions of all the family's kernels, for one firmware image."""
        variants = [v for v in self.target.kernels if v.sources[0].startswith(self.family + "/")]
        files = {source for v in variants for source in v.sources}
        symbols = {v.symbol for v in variants} | {v.symbol + TWIN for v in variants if _has_twin(v)}
        return tuple(sorted(files)), tuple(sorted(symbols))

    def firmware(self, toolchain: str, board: str = "") -> Firmware:
        """Returns the firmware image of the family's kernels. `board`: another with the same kernels."""
        files, symbols = self.sources()
        root = kernels_root()
        return Firmware(board or self.board, toolchain, tuple(root / name for name in files), symbols)

    def check(self, toolchain: str, board: str = "") -> None:
        """Runs all calls on the board; raises AssertionError naming the first that differ.

        `board`: another one, for which the catalogue selects the same kernels.
        """
        if board:
            assert _list_symbols(load_target(board)) == _list_symbols(self.target)
        firmware = self.firmware(toolchain, board)
        twins = [r for r in self.recorded if r.twin is not None]
        results = firmware.run([*(r.call for r in self.recorded), *(r.twin for r in twins if r.twin)])
        wrong = [
            f"{r.note}: {trouble}"
            for r, d in zip(self.recorded, results, strict=False)
            if (trouble := trouble_of(r, d))
        ]
        assert not wrong, f"{len(wrong)} of {len(self.recorded)} calls:\n" + "\n".join(wrong[:5])
        for r, d in zip(twins, results[len(self.recorded) :], strict=True):
            assert d.result == r.formula, f"{r.note}: the twin asks for {d.result}, the formula {r.formula}"


def _list_symbols(target: Target) -> list[tuple[str, str]]:
    """Returns (name, symbol) of the kernels that may be selected, in order."""
    return [(variant.name, variant.symbol) for variant in target.kernels]


def _has_twin(variant: KernelVariant) -> bool:
    """Whether the kernel has a function that returns its scratch size: int8 kernels with weights have."""
    return variant.scratch != "0" and variant.op in TAKES_SCRATCH and variant.types == BYTES


def _make_twin(variant: KernelVariant, arguments: Sequence[int | Address], memory: Memory) -> Call:
    """geometry (if any), constants, in, out, window, scratch -> geometry, in, out."""
    return Call(variant.symbol + TWIN, (*arguments[:-5], *arguments[-4:-2]), memory)


def blocks_of(views: Sequence[View]) -> list[tuple[int, int]]:
    """Returns the views' memory as ordered blocks (first, end) that do not overlap."""
    merged: list[tuple[int, int]] = []
    for first, end in sorted(extent(view) for view in views):
        if merged and first < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((first, end))
    return merged


def trouble_of(recorded: Recorded, done: Done) -> str:
    """Returns what is wrong with the memory after the call, "" if it is right."""
    first, size = recorded.place.offset, len(recorded.wanted)
    got = np.frombuffer(done.memory, np.int8, size, first)
    expected = np.frombuffer(recorded.wanted, np.int8)
    differ = np.flatnonzero(got != expected)
    if differ.size:
        at = differ[:4]
        return (
            f"{differ.size} of {size} bytes, at {at.tolist()} {got[at].tolist()} not {expected[at].tolist()}"
        )
    changed = done.changed()
    scratch = (changed >= recorded.scratch[0]) & (changed < recorded.scratch[1])
    outside = changed[~scratch & ((changed < first) | (changed >= first + size))]
    return f"wrote outside, at {outside[:4].tolist()}" if outside.size else ""


@contextlib.contextmanager
def recording(family: str) -> Iterator[Recorder]:
    """Records calls for the kernels of `family` on its board of BOARDS."""
    if family == "mul32":
        needs_tool("xtensa-lx106-elf-gcc")
        needs_tool("qemu-system-xtensa")
    recorder = Recorder(BOARDS[family], family)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "compute", recorder.compute)
        yield recorder


def collect(strategy: st.SearchStrategy[Any], count: int, use: Callable[[Any], object]) -> None:
    """Calls `use` with `count` examples, the same every time."""

    @settings(
        max_examples=count,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(data=strategy)
    def each(data: Any) -> None:
        use(data)

    each()


Placed = tuple[Case, str, int]  # a case, one of placement.WAYS, and a seed
PLACED = 60


@functools.cache
def draw_placed(strategy: st.SearchStrategy[Case]) -> tuple[Placed, ...]:
    """Draws PLACED cases: the same ones for every family, because drawing takes longer than running them."""
    drawn: list[Placed] = []
    collect(st.tuples(strategy, st.sampled_from(placement.WAYS), st.integers(0, 999)), PLACED, drawn.append)
    return tuple(drawn)


def record(recorder: Recorder, strategy: st.SearchStrategy[Case], count: int) -> int:
    """Records `count` cases, each in one placement. Returns how many calls the family served."""
    before = recorder.kernels.total()
    for case, how, seed in draw_placed(strategy)[:count]:
        placement.run_placed(case, how, seed, select(recorder.target, case.graph, case.op).overlap)
    return recorder.kernels.total() - before
