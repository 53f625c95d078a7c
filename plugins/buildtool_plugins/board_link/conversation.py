"""Runs test firmware on a board over a link. The result has the same files as a run in the emulator.

The argument `what` of the functions names the board in errors.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from buildtool.base.errors import ToolError
from buildtool.base.modes import Level
from buildtool.target.types import Board, Reality, RunRequest, RunResult
from buildtool_plugins.board_link.link import MOST_PAYLOAD, Link

PROTOCOL = 1
HELLO_SECONDS = 8.0
ANSWER_SECONDS = 5.0
CRC_BYTES_A_SECOND = 1 << 20  # on the slowest core
_HELLO = struct.Struct("<10I64s")
_RESULT = struct.Struct("<iIIIIQ")
_DIGEST_AT, _DIGEST_BYTES = 32, 16  # of the layout in a weight image's header
_RTT_SYMBOL = "nn_rtt_control"  # drivers/rtt.c
_FLAG_TRACE, _FLAG_ROWS, _FLAG_HELD = 1, 2, 4
NO_CYCLES = "an emulator counts no cycles"
_FLASH = "flash it: buildtool flash, or run without --flashed"
_COUNTERS = {
    0: "",
    1: "the core has no cycle counter that the firmware knows",
    2: "the core's cycle counter does not count, as in an emulator",
}


class Firmware(NamedTuple):
    """The description that the firmware gives of itself: the fields of the message _HELLO in order, then the
    digest of its plan.
    """

    protocol: int
    flags: int
    input_bytes: int  # of one set
    output_bytes: int  # of one set
    arena_bytes: int
    operators: int
    core_hz: int  # 0: not known
    counter: int  # the state of the cycle counter, see `explain_no_cycles`
    overhead: int
    row_bytes: int
    header: bytes
    plan: str

    @property
    def layout(self) -> str:
        """The digest of the weight image's layout, in hexadecimal."""
        return self.header[_DIGEST_AT : _DIGEST_AT + _DIGEST_BYTES].hex()

    @property
    def no_cycles(self) -> str:
        """The reason why the firmware counts no cycles; "" if it counts them."""
        return explain_no_cycles(self.counter)


def read_hello(data: bytes, what: str) -> Firmware:
    """Returns the firmware's description of itself, from the bytes of its answer. Raises ToolError if it has
    another version of the protocol. `what` names the board.
    """
    protocol = int.from_bytes(data[:4], "little")
    if protocol != PROTOCOL or len(data) < _HELLO.size:
        text = f"{what} uses version {protocol} of the test firmware's protocol, buildtool uses {PROTOCOL}"
        raise ToolError(text, hint="flash the test firmware again: buildtool flash")
    return Firmware._make((*_HELLO.unpack_from(data), data[_HELLO.size :].decode("ascii", "replace")))


@dataclass(frozen=True)
class Identity:
    """What identifies a firmware image: the digests of its plan and of its weights' layout, and its read-only
    bytes.
    """

    plan: str
    layout: str
    stored: tuple[tuple[int, bytes], ...]  # address and bytes


def check_identity(firmware: Firmware, expected: Identity, what: str) -> None:
    """Raises ToolError if the firmware on the board has another plan or weights of another layout."""
    if firmware.plan != expected.plan:
        text = f"the firmware on {what} has another plan: expected {expected.plan}, found {firmware.plan}"
        raise ToolError(text, hint=_FLASH)
    if firmware.layout != expected.layout:
        digests = f"expected {expected.layout}, found {firmware.layout}"
        raise ToolError(f"the weights on {what} have another layout: {digests}", hint=_FLASH)


def check_memory(link: Link, expected: Identity, what: str) -> None:
    """Raises ToolError if the board's read-only memory differs from the firmware image: the board has another
    build.
    """
    for address, data in expected.stored:
        seconds = ANSWER_SECONDS + len(data) / CRC_BYTES_A_SECOND
        answer = link.ask("K", struct.pack("<II", address, len(data)), "k", seconds)
        crc, expected_crc = int.from_bytes(answer.payload, "little"), zlib.crc32(data)
        if crc != expected_crc:
            difference = (
                f"{len(data):,} bytes at {address:#010x} have CRC-32 {crc:08x}, not {expected_crc:08x}"
            )
            raise ToolError(f"{what} has another build: {difference}", hint=_FLASH)


def run(link: Link, firmware: Firmware, request: RunRequest, what: str) -> RunResult:
    """Runs every set of inputs in the request's input.bin. The result has the cycles of the first set's
    invoke.
    """
    inputs = request.files["input.bin"]
    sets, rest = divmod(len(inputs), firmware.input_bytes or 1)
    if rest or not sets:
        size = f"{firmware.input_bytes:,} bytes"
        raise ToolError(f"one set of inputs of {what} has {size}; input.bin has {len(inputs):,} bytes")
    traces = bool(firmware.flags & _FLAG_TRACE)
    if ("trace.bin" in request.outputs) != traces:
        raise ToolError(
            f"{what} has another build: it {'traces' if traces else 'does not trace'} every tensor"
        )
    status, stack = struct.unpack("<iI", link.ask("S", b"", "s", ANSWER_SECONDS + request.timeout).payload)
    if status:
        raise ToolError(f"the network on {what}: init returned status {status}")
    outputs, trace, high_water = BytesIO(), BytesIO(), 0
    cycles, total, intact = dict[int, int](), 0, True
    for number in range(sets):
        data = inputs[number * firmware.input_bytes : (number + 1) * firmware.input_bytes]
        result = _run_set(link, firmware, number, data, trace, request, what)
        intact = not (result.below or result.above)
        high_water, stack = max(high_water, result.arena_used), max(stack, result.stack_used)
        outputs.write(_read_output(link, firmware.output_bytes))
        if number == 0 and not firmware.no_cycles:
            cycles, total = _read_cycles(link, firmware.operators), result.cycles
        if request.written is not None:
            request.written(outputs.tell())
        if not intact:
            break
    report = {"sets": sets, "arena_bytes": firmware.arena_bytes, "arena_high_water": high_water}
    report |= {"stack_high_water": stack, "guard_ok": int(intact)}
    lines = "".join(f"{name}={value}\n" for name, value in report.items())
    files = {"output.bin": outputs.getvalue(), "report.txt": lines.encode()}
    if "trace.bin" in request.outputs:
        files["trace.bin"] = trace.getvalue()
    return RunResult(files, "", cycles=cycles, total_cycles=total, no_cycles=firmware.no_cycles)


class _Result(NamedTuple):
    """The firmware's report of an invoke. `below` and `above` are not 0 if the bytes before or after the
    arena changed.
    """

    status: int
    arena_used: int
    stack_used: int
    below: int
    above: int
    cycles: int


def _run_set(
    link: Link, firmware: Firmware, number: int, data: bytes, trace: BytesIO, request: RunRequest, what: str
) -> _Result:
    """Sends the set of inputs with this number, runs it and returns the firmware's report.

    Meanwhile it sends rows of an image, and appends to `trace`, as the firmware asks.
    """
    link.ask("P", struct.pack("<I", number), "p", ANSWER_SECONDS)
    held = firmware.flags & _FLAG_HELD  # inputs besides an image that comes row by row
    if held or not firmware.flags & _FLAG_ROWS:
        for offset, part in _split(data):
            link.ask("W", struct.pack("<I", offset) + part, "w", ANSWER_SECONDS)
    answer = link.ask("I", b"", "int", request.timeout)
    while answer.kind != "i":
        if answer.kind == "t":
            trace.write(answer.payload)
            answer = link.ask("A", b"", "int", request.timeout)
            continue
        row = int.from_bytes(answer.payload, "little") * (1 if held else firmware.row_bytes)
        for offset, part in _split(data[row : row + firmware.row_bytes]):
            is_last = offset + len(part) == firmware.row_bytes
            kinds, seconds = ("int", request.timeout) if is_last else ("w", ANSWER_SECONDS)
            answer = link.ask("W", struct.pack("<I", offset) + part, kinds, seconds)
    result = _Result(*_RESULT.unpack(answer.payload))
    if result.status:
        raise ToolError(f"the network on {what}: invoke returned status {result.status}")
    return result


def _read_output(link: Link, size: int) -> bytes:
    """Returns the output of the set that ran last, `size` bytes."""
    output = b""
    while len(output) < size:
        part_request = struct.pack("<II", len(output), min(MOST_PAYLOAD, size - len(output)))
        part = link.ask("O", part_request, "o", ANSWER_SECONDS).payload
        if not part:
            raise ToolError(f"the board sent {len(output):,} of {size:,} bytes of output")
        output += part
    return output


def _split(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields parts of the data that fit in a frame, each with its offset."""
    most = MOST_PAYLOAD - 4
    for offset in range(0, len(data), most):
        yield offset, data[offset : offset + most]


def _read_cycles(link: Link, operators: int) -> dict[int, int]:
    cycles: list[int] = []
    while len(cycles) < operators:
        data = link.ask("C", struct.pack("<I", len(cycles)), "c", ANSWER_SECONDS).payload
        if len(data) < 8:
            raise ToolError(f"the board sent the cycles of {len(cycles)} of {operators} operators")
        cycles += struct.unpack(f"<{len(data) // 8}Q", data)
    return dict(enumerate(cycles))


def identity(image: Path, read_only: Callable[[int], bool]) -> Identity:
    """Returns a firmware image's identity. `read_only` returns whether an address lies in read-only memory.
    Raises ToolError if the image does not answer over a link.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        with image.open("rb") as file:
            elf = ELFFile(file)
            section = elf.get_section_by_name(".nn_identity")
            text = section.data() if section is not None else b""
            segments = [s for s in elf.iter_segments() if s["p_type"] == "PT_LOAD" and s["p_filesz"]]
            stored = tuple((int(s["p_paddr"]), bytes(s.data())) for s in segments)
    except (OSError, ELFError) as error:
        raise ToolError(f"cannot read the firmware image: {error}", path=str(image)) from None
    words = text.replace(b"\0", b" ").decode("ascii", "replace").split()
    if "plan" not in words or "wire" not in words:
        what = "the firmware image does not answer over a UART or RTT"
        raise ToolError(what, path=str(image), hint="build it with --wire serial (scons on=board does)")
    plan, layout = (words[words.index(name) + 1] for name in ("plan", "layout"))
    return Identity(plan, layout, tuple(segment for segment in stored if read_only(segment[0])))


def rtt_block(image: Path) -> int:
    """Returns the address of RTT's control block in a firmware image. Raises ToolError if it has none."""
    from elftools.elf.elffile import ELFFile

    with image.open("rb") as file:
        table: Any = ELFFile(file).get_section_by_name(".symtab")
        symbols = table.get_symbol_by_name(_RTT_SYMBOL) if table is not None else None
        if not symbols:
            raise ToolError("the firmware image has no RTT", path=str(image), hint="build it with --wire rtt")
        return int(symbols[0]["st_value"])


def explain_no_cycles(state: int) -> str:
    """Returns why the firmware counts no cycles; "" if it counts them. `state` is that of its counter (see
    cycles.h).
    """
    return _COUNTERS.get(state, f"the firmware's reason is {state}")


def finish_result(result: RunResult, board: Board, reality: Reality, core_hz: int) -> RunResult:
    """Returns a run's result with its reality, and without cycles unless the core of a real board counted
    them.

    Raises ToolError if the core's clock differs from the board's file.
    """
    no_cycles = result.no_cycles
    if reality.level is not Level.BOARD:  # there a cycle counter counts the host's time
        no_cycles = no_cycles or NO_CYCLES
    elif board.clock_hz and core_hz and core_hz != board.clock_hz:
        clocks = f"runs at {core_hz:,} Hz, and its file says {board.clock_hz:,}"
        hint = "check the board's solder bridges for the crystal or the clock of its debugger (MCO)"
        raise ToolError(f"board '{board.name}' {clocks}: its crystal or PLL did not start", hint=hint)
    if no_cycles:
        result = replace(result, cycles={}, total_cycles=None, no_cycles=no_cycles)
    return replace(result, reality=reality)
