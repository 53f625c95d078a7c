"""Runs a linked program on a simulated logical core, and gives access to its memory, registers and issue
slots.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from buildtool.base.compiled import struct
from buildtool.base.errors import ToolError
from buildtool.base.programs import program
from buildtool.target.kernels import kernels_root
from buildtool_plugins.tools.find import find_host_compiler
from buildtool_plugins.xs3.linker import Image

FOLDER = Path(__file__).resolve().parent
SOURCE = FOLDER / "machine.c"  # one file: then the cache keeps what is made of it
HEADERS = ("machine.h", "decode.h", "instructions.h", "semantics.h", "services.h", "unit.h")
FLAGS = ("-std=gnu99", "-O2", "-DNDEBUG", "-fno-strict-aliasing")
ABI = 1
RETURN = 0xFFFFFFF0  # where lr points at the start of a call
REGISTERS = 16
SAVED = range(4, 11)  # registers that a function gives back as it found them
LIMIT = 1 << 40  # issue slots of a run
REASONS = (
    "running", "returned", "exited", "reached the limit of issue slots", "illegal instruction",
    "no code at this address", "no memory at this address, or not aligned", "division", "ecall",
    "unknown service", "no memory here",
)  # fmt: skip
RETURNED, EXITED, OUT_OF_SLOTS, LOAD_STORE = 1, 2, 3, 6

Buffer = npt.NDArray[Any]
_Counts = struct((ctypes.c_uint64, "issues stalls vectors products runs idle"))
MARKS = 4095  # operators that are counted apart; the last mark has all else


@dataclass(frozen=True)
class Counts:
    """What was counted for an operator (a mark), or for all of them.

    `issues`: issue slots.
    `stalls`: stalls of the model of instruction fetch.
    `vectors`: operations of the vector unit.
    `products`: those that multiply and accumulate.
    `runs`: how often the mark was set; for all marks, the invokes of a network.
    `idle`: issue slots of calls that threads share, without those of each call's slowest thread.
    """

    issues: int
    stalls: int
    vectors: int
    products: int
    runs: int
    idle: int


@dataclass(frozen=True)
class Readings:
    """The choices where the vendor's two public models differ. The defaults are those of the chip's tests."""

    vlashr_rounds: bool = False  # lib_nn's model rounds, the chip's tests floor
    vlmaccr_saturates: bool = False  # in 8 bits after every product, as lib_xcore_math's model does


class Stopped(ToolError):
    """A program stopped before its end. `reason` is an index of REASONS."""

    reason: int = 0


def compile_runner() -> Path:
    """Returns the path of the simulator's library, which is compiled on first use. It exists until this
    process ends.
    """
    kernels = kernels_root()
    names = [FOLDER / name for name in HEADERS]
    names += [kernels / "xcore_vpu" / name for name in ("nn_vpu.h", "nn_vpu_model.h", "nn_vpu_count.h")]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in names)).hexdigest()
    flags = (*FLAGS, "-shared", "-fPIC", f"-I{FOLDER}", f"-I{kernels / 'xcore_vpu'}", f"-DHEADERS_{digest}")
    return program(find_host_compiler(), "xs3.so", (SOURCE,), flags, "the XS3 runner", SOURCE)


@functools.cache
def _library(path: Path | None) -> ctypes.CDLL:
    path = path or compile_runner()
    library = ctypes.CDLL(str(path))
    if library.xs3_abi() != ABI:
        raise ToolError("the XS3 runner belongs to another version", path=str(path))
    pointer, word = ctypes.c_void_p, ctypes.c_uint32
    for name, result, arguments in (
        ("open", pointer, ()),
        ("close", None, (pointer,)),
        ("map", pointer, (pointer, word, word, ctypes.c_int32)),
        ("choose", None, (pointer, ctypes.c_int32)),
        ("registers", ctypes.POINTER(word), (pointer,)),
        ("unit_state", ctypes.POINTER(ctypes.c_uint8), (pointer,)),
        ("run", ctypes.c_int32, (pointer, word, ctypes.c_uint64)),
        ("where", None, (pointer, *[pointer] * 3)),
        ("forget", None, (pointer,)),
        ("count", ctypes.POINTER(_Counts), (pointer, ctypes.c_int32)),
        ("decode", ctypes.c_int32, (word, ctypes.c_int32, pointer)),
        ("count_at", None, (pointer, word, ctypes.c_int32, pointer, pointer)),
    ):
        function = getattr(library, f"xs3_{name}")
        function.restype, function.argtypes = result, list(arguments)
    return library


def decode(word: int, is_long: bool) -> tuple[int, dict[str, int]]:
    """Returns the number of an instruction's line in instructions.h, from 1 (0: none), and its operands "a"
    to "f".

    "number" is the operand that is a number.
    """
    operands = (ctypes.c_uint32 * 7)()
    found = _library(None).xs3_decode(word, is_long, ctypes.byref(operands))
    return found, dict(zip([*"abcdef", "number"], operands, strict=True))


class Machine:
    """A simulated logical core with an image in its memory.

    The buffers for calls lie between the program's end and its stack: `place` copies data into a new buffer,
    `read` copies a buffer's content. `call` runs a function by the C ABI and returns r0. It raises Stopped if
    the function does not return. `library` is a result of `compile_runner`, which may be that of another
    process.
    """

    def __init__(self, image: Image, readings: Readings = Readings(), library: Path | None = None) -> None:
        self.image = image
        self._lib = _library(library)
        self._machine = ctypes.c_void_p(self._lib.xs3_open())
        if not self._machine:
            raise ToolError("no memory for the XS3 runner")
        self._memories: list[tuple[int, npt.NDArray[np.uint8]]] = []
        for memory in image.memories:
            size = memory.bytes + -memory.bytes % 16 if memory is image.memories[0] else self._far_bytes()
            self._map(memory.base, size)
        self._lib.xs3_choose(self._machine, readings.vlashr_rounds + 2 * readings.vlmaccr_saturates)
        registers = self._lib.xs3_registers(self._machine)
        self.registers = np.ctypeslib.as_array(registers, (REGISTERS,))
        self.unit = np.ctypeslib.as_array(self._lib.xs3_unit_state(self._machine), (96,))  # vR, vD, vC
        for address, data in image.segments:
            self.write(address, data)
        self.reset()

    def __del__(self) -> None:
        if getattr(self, "_machine", None):
            self._lib.xs3_close(self._machine)
            self._machine = ctypes.c_void_p()

    def _far_bytes(self) -> int:
        base = self.image.memories[1].base
        end = max((at + len(data) for at, data in self.image.segments if at >= base), default=base)
        return max(self.image.places.get("far", (0, 0))[1], end - base) + 64 & ~15

    def _map(self, base: int, size: int) -> None:
        memory = self._lib.xs3_map(self._machine, base, size, 1)
        if not memory:
            raise ToolError(
                f"no memory of {size} bytes at {base:#x}: memories begin at multiples of 16, apart"
            )
        array = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(memory))
        self._memories.append((base, array))

    # ---- memory ------------------------------------------------------------------------------------

    def memory(self, address: int, size: int) -> npt.NDArray[np.uint8]:
        """Returns the machine's bytes at an address, without copying them. Raises ToolError if it has no
        memory there.
        """
        for base, array in self._memories:
            if base <= address and address + size <= base + len(array):
                return array[address - base : address - base + size]
        raise ToolError(f"the machine has no {size} bytes at {address:#x}")

    def write(self, address: int, data: bytes | Buffer) -> None:
        """Copies bytes into the machine's memory."""
        flat = np.frombuffer(
            data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes(), np.uint8
        )
        self.memory(address, len(flat))[:] = flat

    def read(self, address: int, size: int, dtype: npt.DTypeLike = np.uint8) -> Buffer:
        """Returns a copy of the `size` elements at an address."""
        bytes_ = size * np.dtype(dtype).itemsize
        return self.memory(address, bytes_).copy().view(dtype)

    def reset(self) -> None:
        """Frees the buffers of earlier calls and clears the registers."""
        self._free = (self.image.end + 63) & ~31
        self.registers[:] = 0
        self.registers[12:15] = self.image.cp, self.image.dp, self.image.stack

    def reserve(self, size: int, align: int = 8) -> int:
        """Returns the address of `size` new bytes, which are 0, for a buffer. Raises ToolError if RAM is
        full.
        """
        address = self._free + -self._free % align
        if address + size + 4096 > self.image.stack:
            raise ToolError(f"no {size} bytes left in the machine's RAM")
        self._free = address + size
        self.memory(address, size)[:] = 0
        return address

    def place(self, data: bytes | Buffer, align: int = 8, after: int = 32) -> int:
        """Copies data into a new buffer, and returns its address. At least `after` readable bytes
        follow it.
        """
        size = len(data) if isinstance(data, bytes) else data.nbytes
        address = self.reserve(size + after, align)
        self.write(address, data)
        return address

    # ---- runs --------------------------------------------------------------------------------------

    def call(self, function: str | int, *arguments: int, is_dual: bool = False, limit: int = LIMIT) -> int:
        """Calls a function by the C ABI, with arguments in r0 to r3, then on the stack. Returns r0, unsigned.

        `is_dual`: whether the caller is in dual issue, as code by XMOS's compiler is; clang's is not.
        `limit`: the number of issue slots after which the program is stopped.

        Raises Stopped if the function does not return, and ToolError if it changes sp or a register that
        belongs to the caller.
        """
        pc = self.image.address(function) if isinstance(function, str) else function
        r = self.registers
        stack = self.image.stack - (4 * max(0, len(arguments) - 4) + 4 + 7 & ~7)
        words = np.array([argument & 0xFFFFFFFF for argument in arguments], np.uint32)
        r[: min(4, len(words))] = words[:4]
        r[12:16] = self.image.cp, self.image.dp, stack, RETURN
        saved = np.arange(len(SAVED), dtype=np.uint32) + np.uint32(0xA5A50000)
        r[SAVED.start : SAVED.stop] = saved
        if len(words) > 4:
            self.write(stack + 4, words[4:])
        self.run(pc | is_dual, limit)
        if int(r[14]) != stack or not np.array_equal(r[SAVED.start : SAVED.stop], saved):
            raise ToolError(f"'{function}' changed registers that belong to its caller")
        return int(r[0])

    def run(self, pc: int, limit: int = LIMIT) -> int:
        """Runs from the address `pc` (bit 0: dual issue) until the function returns or calls `kcall 0`.
        Returns the exit code: 0, or r0 for `kcall 0`.
        """
        reason = self._lib.xs3_run(self._machine, pc, limit)
        if reason == EXITED:
            return int(self.registers[0])
        if reason != RETURNED:
            raise self._stopped(reason)
        return 0

    def _stopped(self, reason: int) -> Stopped:
        pc, dual, address = ctypes.c_uint32(), ctypes.c_int32(), ctypes.c_uint32()
        self._lib.xs3_where(self._machine, ctypes.byref(pc), ctypes.byref(dual), ctypes.byref(address))
        text = f"the program stopped at {self.name(pc.value)}: {REASONS[reason]}"
        if reason == LOAD_STORE:
            text += f" ({address.value:#x})"
        error = Stopped(text)
        error.reason = reason
        return error

    def name(self, address: int) -> str:
        """Returns an address as text, with the nearest symbol before it: "0x80000 (symbol+offset)"."""
        near = [(at, name) for name, at in self.image.symbols.items() if at <= address and name[:1] != "."]
        at, name = max(near, default=(0, ""))
        return f"{address:#x} ({name}+{address - at})" if name else f"{address:#x}"

    # ---- counts ------------------------------------------------------------------------------------

    def counts(self, mark: int = -1) -> Counts:
        """Returns what was counted since `clear_counts` for a mark, which is an operator's position; by
        default for all.
        """
        at = self._lib.xs3_count(self._machine, mark).contents
        return Counts(at.issues, at.stalls, at.vectors, at.products, at.runs, at.idle)

    def clear_counts(self) -> None:
        """Sets all counts to 0, and empties the core's instruction buffer."""
        self._lib.xs3_forget(self._machine)

    def counts_at(self, address: int, is_dual: bool) -> tuple[int, int]:
        """Returns how often the instruction at an address was issued, and the stalls before it. `is_dual`
        says that the code there is in dual issue.
        """
        issues, stalls = ctypes.c_uint64(), ctypes.c_uint64()
        self._lib.xs3_count_at(self._machine, address, is_dual, ctypes.byref(issues), ctypes.byref(stalls))
        return issues.value, stalls.value

    def span(self, start: int, end: int, is_dual: bool) -> tuple[int, int]:
        """Returns the issue slots and the stalls of the instructions in [start, end)."""
        each = [self.counts_at(at, is_dual) for at in range(start, end, 4 if is_dual else 2)]
        return sum(a for a, _ in each), sum(b for _, b in each)


def call_text(
    texts: Sequence[str], function: str, *arguments: int | Buffer, readings: Readings = Readings()
) -> tuple[int, list[Buffer], Counts]:
    """Assembles texts, calls one of their functions, and returns r0, the arrays after the call, and the
    counts.

    Arrays among the arguments are copied into the machine; the function gets their addresses.
    """
    from buildtool_plugins.xs3.assembler import assemble
    from buildtool_plugins.xs3.linker import link

    machine = Machine(link([assemble(text, f"text {k}") for k, text in enumerate(texts)]), readings)
    placed = [a if isinstance(a, int) else machine.place(a) for a in arguments]
    result = machine.call(function, *placed)
    buffers = [
        machine.read(at, a.size, a.dtype).reshape(a.shape)
        for a, at in zip(arguments, placed, strict=True)
        if not isinstance(a, int)
    ]
    return result, buffers, machine.counts()
