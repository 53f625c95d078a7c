"""Calls C kernels on an emulated board: one firmware image, hundreds of calls in one emulator run.

    kernels = Firmware("cortex-m55", "clang", sources, symbols)
    memory = Memory()
    call = Call("nn_lut_s8", (memory.put(table), view, out_view, window), memory)
    done, = kernels.run([call])                # done.memory: the bytes after the call

This serves any kernel and instruction set. A call's memory is one block of bytes that Python lays out; the
driver relocates the addresses in it (of an nn_view's data). `count=True` counts executed instructions by
`Call.marker`, the call's own code included.
"""

import functools
import hashlib
import random
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from cbuilds import kernel_units
from ckernels import compile_and_keep
from loaded import load_target

from buildtool.firmware.firmware import link
from buildtool.firmware.objects import Compiler
from buildtool.target.executed import Executed
from buildtool.target.kernels import kernels_root
from buildtool.target.registry import load_board, plugin
from buildtool.target.types import RunRequest

DRIVER = Path(__file__).resolve().parent / "kernelboard_c" / "driver.c"
ALIGNMENT = 16
_FOLDER = tempfile.TemporaryDirectory(prefix="kernelboard-")


@dataclass(frozen=True)
class Address:
    """A place in a call's memory."""

    offset: int


class Memory:
    """The bytes that a call sees, filled piece by piece. Noise fills the rest."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = random.Random(seed)
        self._pieces: list[bytes] = []
        self._size = 0
        self.relocations: list[int] = []
        self.pieces: list[tuple[int, int]] = []  # [first, end) of each piece, without noise

    def put(self, data: bytes | np.ndarray, *, align: int = ALIGNMENT, guard: int = 32) -> Address:
        """Copies `data` to a multiple of `align`, after at least `guard` bytes of noise."""
        raw = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
        self._noise(guard)
        self._noise(-self._size % align)
        place = Address(self._size)
        self._append(raw)
        self.pieces.append((place.offset, self._size))
        return place

    def room(self, size: int, *, align: int = ALIGNMENT) -> Address:
        """Reserves `size` bytes of noise to write to."""
        return self.put(self._rng.randbytes(size), align=align)

    def words(self, *values: int | Address) -> Address:
        """Puts a struct of 32-bit words. An Address becomes a pointer."""
        numbers = [v.offset if isinstance(v, Address) else v for v in values]
        place = self.put(struct.pack(f"<{len(numbers)}I", *(n & 0xFFFFFFFF for n in numbers)))
        for i, value in enumerate(values):
            if isinstance(value, Address):
                self.relocations.append(place.offset + 4 * i)
        return place

    def finish(self) -> bytes:
        """Returns all bytes, a multiple of 16. The last 32 are noise."""
        self._noise(32)
        self._noise(-self._size % ALIGNMENT)
        return b"".join(self._pieces)

    def _noise(self, count: int) -> None:
        self._append(self._rng.randbytes(count))

    def _append(self, raw: bytes) -> None:
        self._pieces.append(raw)
        self._size += len(raw)


@dataclass(frozen=True)
class Call:
    """One call: the function's name, its arguments (numbers, or addresses in `memory`)."""

    symbol: str
    arguments: tuple[int | Address, ...]
    memory: Memory
    marker: int = 0
    repeats: int = 1


@dataclass(frozen=True)
class Done:
    """A call's return value (garbage if it has none), and its memory before and after."""

    result: int
    before: bytes
    memory: bytes

    def array(self, place: Address, shape: tuple[int, ...]) -> np.ndarray:
        """Returns a copy of the int8 array at `place`."""
        count = int(np.prod(shape, dtype=int))
        return np.frombuffer(self.memory, np.int8, count, place.offset).reshape(shape).copy()

    def changed(self) -> np.ndarray:
        return np.flatnonzero(np.frombuffer(self.before, np.uint8) != np.frombuffer(self.memory, np.uint8))


@dataclass
class Firmware:
    """A firmware image with the functions `symbols` of `sources`, built on first use."""

    board: str
    toolchain: str
    sources: tuple[Path, ...]
    symbols: tuple[str, ...]
    flags: tuple[str, ...] = ()
    counts: dict[int, int] = field(default_factory=dict)
    executed: Executed | None = None

    def run(
        self, calls: Sequence[Call], *, count: bool = False, blocks: bool = False, timeout: float = 600.0
    ) -> list[Done]:
        """Runs the calls in order. With `count`, `self.counts` gets the instructions by marker; with `blocks`
        `self.executed` also gets the blocks of code.
        """
        contents, cases = self.cases(calls)
        request = RunRequest({"cases.bin": cases}, ("results.bin",), timeout, count, blocks)
        board = load_board(self.board).in_emulator()
        result = plugin(board).run(board, self.image(), request)
        self.counts, self.executed = dict(result.counts), result.executed
        return results_of(result.files["results.bin"], contents)

    def image(self) -> Path:
        return _build_image(self.board, self.toolchain, self.sources, self.symbols, self.flags, self._stamp())

    def cases(self, calls: Sequence[Call]) -> tuple[list[bytes], bytes]:
        """Returns the calls' memory, and the driver's input file."""
        blocks = [call.memory.finish() for call in calls]
        pieces = [struct.pack("<I", len(calls))]
        for call, block in zip(calls, blocks, strict=True):
            pieces += [self._header(call, len(block)), block]
        return blocks, b"".join(pieces)

    def _header(self, call: Call, size: int) -> bytes:
        places = call.memory.relocations
        words = [self.symbols.index(call.symbol), call.marker, call.repeats]
        words += [len(call.arguments), len(places), size]
        for argument in call.arguments:
            words += [1, argument.offset] if isinstance(argument, Address) else [0, argument & 0xFFFFFFFF]
        return struct.pack(f"<{len(words) + len(places)}I", *words, *places)

    def _stamp(self) -> str:
        digest = hashlib.sha256()
        folders = {kernels_root() / "include", *(path.parent for path in self.sources)}
        headers = sorted(header for folder in folders for header in folder.glob("*.h"))
        for path in (*self.sources, *headers, DRIVER):
            digest.update(path.read_bytes())
        return digest.hexdigest()


def results_of(data: bytes, blocks: Sequence[bytes]) -> list[Done]:
    """Returns what each call left, from the driver's output file."""
    results, place = [], 0
    for block in blocks:
        (value,) = struct.unpack_from("<i", data, place)
        place += 4
        results.append(Done(value, block, data[place : place + len(block)]))
        place += len(block)
    assert place == len(data), "the driver wrote too much or too little"
    return results


@functools.cache
def _build_image(
    board_name: str,
    toolchain: str,
    sources: tuple[Path, ...],
    symbols: tuple[str, ...],
    flags: tuple[str, ...],
    _stamp: str,
) -> Path:
    """Returns the linked image, built once for each content of its sources."""
    target = load_target(board_name)
    target = replace(target, board=target.board.in_emulator())
    board = target.board
    served = plugin(board)
    work = Path(tempfile.mkdtemp(dir=_FOLDER.name))
    tools = served.toolchain(board, toolchain)
    harness = served.harness(board)
    table = work / "symbols.c"
    declared = "".join(f"int {name}();\n" for name in symbols)
    listed = "".join(f"    {name},\n" for name in symbols)
    table.write_text(
        f"{declared}typedef int (*function)();\nextern const function symbols[];\n"
        f"extern const unsigned symbol_count;\nconst function symbols[] = {{\n{listed}}};\n"
        f"const unsigned symbol_count = {len(symbols)};\n"
    )
    needs = [Path(path) for path in harness.sources if str(path).endswith("harness_io.c")]
    includes = (kernels_root() / "include", *map(Path, tools.includes), *harness.includes)
    files = [DRIVER, table, *sources, *needs, *map(Path, tools.objects)]
    compiler = Compiler(tools.cc, tools.identity, (*tools.cflags, *flags))
    objects = compile_and_keep(compiler, kernel_units(files, includes), work)
    elf = work / "kernels.elf"
    link(tools, objects, elf, target, flags)
    return elf
