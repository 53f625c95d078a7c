"""A run of test firmware on a board, over a link: it gives the files that a run elsewhere has."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from buildtool.base.errors import ToolError
from buildtool.base.modes import Level
from buildtool.target.types import Board, Reality, RunRequest
from buildtool_plugins.wire.link import MOST_PAYLOAD, Link

PROTOCOL = 1
HELLO_SECONDS = 8.0
ANSWER_SECONDS = 5.0
CRC_BYTES_A_SECOND = 1 << 20  # of the slowest core
_HELLO = struct.Struct("<10I64s")
_RESULT = struct.Struct("<iIIIIQ")
_DIGEST_AT, _DIGEST_BYTES = 32, 16  # of the layout in a weight image's header
_RTT_SYMBOL = "nn_rtt_control"  # drivers/rtt.c
_FLAG_TRACE, _FLAG_ROWS = 1, 2
NO_CYCLES = "an emulator counts no cycles"
_COUNTERS = {
    0: "",
    1: "the core has no cycle counter that the firmware knows",
    2: "the core's cycle counter stands still, as an emulator's does",
}


@dataclass(frozen=True)
class Firmware:
    """The firmware's description of itself."""

    protocol: int
    flags: int
    input_bytes: int  # of one set
    output_bytes: int  # of one set
    arena_bytes: int
    operators: int
    core_hz: int  # 0: not known
    no_cycles: str  # why cycles are not counted
    overhead: int
    row_bytes: int
    header: bytes
    plan: str

    @property
    def layout(self) -> str:
        """The digest of its weights' layout."""
        return self.header[_DIGEST_AT : _DIGEST_AT + _DIGEST_BYTES].hex()


@dataclass(frozen=True)
class Told:
    """The result of a run: the test firmware's files, and cycles of the first set's invoke by operator."""

    files: dict[str, bytes]
    firmware: Firmware
    cycles: dict[int, int]
    total_cycles: int


def said_hello(data: bytes, what: str) -> Firmware:
    """The firmware's description of itself; ToolError for one of another version."""
    protocol = int.from_bytes(data[:4], "little")
    if protocol != PROTOCOL or len(data) < _HELLO.size:
        raise ToolError(
            f"{what} speaks version {protocol} of the test firmware's protocol, this is version {PROTOCOL}",
            hint="flash the test firmware anew: buildtool flash",
        )
    values = _HELLO.unpack_from(data)
    no_cycles = reason(values[7])
    plan = data[_HELLO.size :].decode("ascii", "replace")
    protocol, flags, inputs, outputs, arena, operators, core_hz, _, overhead, row, header = values
    return Firmware(
        protocol, flags, inputs, outputs, arena, operators, core_hz, no_cycles, overhead, row, header, plan
    )


@dataclass(frozen=True)
class Identity:
    """An image: digests of its plan and of its weights' layout, and its read-only memory."""

    plan: str
    layout: str
    stored: tuple[tuple[int, bytes], ...]  # address and bytes


def check_identity(firmware: Firmware, expected: Identity, what: str) -> None:
    """ToolError where the firmware on the board is of another plan, or has other weights."""
    flash = "flash it: buildtool flash, or leave --flashed out"
    if firmware.plan != expected.plan:
        text = f"the firmware on {what} is of another plan: expected {expected.plan}, found {firmware.plan}"
        raise ToolError(text, hint=flash)
    if firmware.layout != expected.layout:
        text = (
            f"the weights on {what} have another layout: expected {expected.layout}, found {firmware.layout}"
        )
        raise ToolError(text, hint=flash)


def check_memory(link: Link, expected: Identity, what: str) -> None:
    """ToolError where the board's memory does not hold the image's bytes: it is another build."""
    for address, data in expected.stored:
        seconds = ANSWER_SECONDS + len(data) / CRC_BYTES_A_SECOND
        answer = link.ask("K", struct.pack("<II", address, len(data)), "k", seconds)
        found, wanted = int.from_bytes(answer.payload, "little"), zlib.crc32(data)
        if found != wanted:
            raise ToolError(
                f"{what} holds another build: {len(data):,} bytes at {address:#010x} have CRC-32 "
                f"{found:08x}, the image's {wanted:08x}",
                hint="flash it: buildtool flash, or leave --flashed out",
            )


def run(link: Link, firmware: Firmware, request: RunRequest, what: str) -> Told:
    """Every set of the request's input.bin; `what` names the board in errors."""
    inputs = request.files["input.bin"]
    sets, rest = divmod(len(inputs), firmware.input_bytes or 1)
    if rest or not sets:
        raise ToolError(f"{what} takes {firmware.input_bytes:,} bytes a set, and was given {len(inputs):,}")
    if ("trace.bin" in request.outputs) != bool(firmware.flags & _FLAG_TRACE):
        raise ToolError(f"the firmware on {what} is of another build (of every tensor, or of outputs alone)")
    status, stack = struct.unpack("<iI", link.ask("S", b"", "s", ANSWER_SECONDS + request.timeout).payload)
    if status:
        raise ToolError(f"the network on {what}: init gave status {status}")
    outputs, trace, high = BytesIO(), BytesIO(), 0
    cycles, total, intact = dict[int, int](), 0, True
    for number in range(sets):
        one = inputs[number * firmware.input_bytes : (number + 1) * firmware.input_bytes]
        found = _set(link, firmware, number, one, trace, request, what)
        intact = intact and not (found.below or found.above)
        high, stack = max(high, found.arena_used), max(stack, found.stack_used)
        offset = 0
        while offset < firmware.output_bytes:
            wanted = struct.pack("<II", offset, min(MOST_PAYLOAD, firmware.output_bytes - offset))
            part = link.ask("O", wanted, "o", ANSWER_SECONDS).payload
            if not part:
                raise ToolError(f"the board gave {offset:,} of {firmware.output_bytes:,} bytes of output")
            outputs.write(part)
            offset += len(part)
        if number == 0 and not firmware.no_cycles:
            cycles, total = _cycles(link, firmware.operators), found.cycles
        if request.written is not None:
            request.written(outputs.tell())
        if not intact:
            break
    report = {"sets": sets, "arena_bytes": firmware.arena_bytes, "arena_high_water": high}
    report |= {"stack_high_water": stack, "guard_ok": int(intact)}
    lines = "".join(f"{name}={value}\n" for name, value in report.items())
    files = {"output.bin": outputs.getvalue(), "report.txt": lines.encode()}
    if "trace.bin" in request.outputs:
        files["trace.bin"] = trace.getvalue()
    return Told(files, firmware, cycles, total)


class _Result(NamedTuple):
    """The result of an invoke."""

    status: int
    arena_used: int
    stack_used: int
    below: int
    above: int
    cycles: int


def _set(
    link: Link, firmware: Firmware, number: int, data: bytes, trace: BytesIO, request: RunRequest, what: str
) -> _Result:
    """Sends a set's inputs, and runs it; rows are delivered and traces taken as the firmware asks."""
    link.ask("P", struct.pack("<I", number), "p", ANSWER_SECONDS)
    if not firmware.flags & _FLAG_ROWS:
        for offset, part in _parts(data):
            link.ask("W", struct.pack("<I", offset) + part, "w", ANSWER_SECONDS)
    answer = link.ask("I", b"", "int", request.timeout)
    while answer.kind != "i":
        if answer.kind == "t":
            trace.write(answer.payload)
            answer = link.ask("A", b"", "int", request.timeout)
            continue
        row = int.from_bytes(answer.payload, "little") * firmware.row_bytes
        for offset, part in _parts(data[row : row + firmware.row_bytes]):
            is_last = offset + len(part) == firmware.row_bytes
            wanted, seconds = ("int", request.timeout) if is_last else ("w", ANSWER_SECONDS)
            answer = link.ask("W", struct.pack("<I", offset) + part, wanted, seconds)
    result = _Result(*_RESULT.unpack(answer.payload))
    if result.status:
        raise ToolError(f"the network on {what}: invoke gave status {result.status}")
    return result


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Pieces that fit a frame behind an offset."""
    most = MOST_PAYLOAD - 4
    for offset in range(0, len(data), most):
        yield offset, data[offset : offset + most]


def _cycles(link: Link, operators: int) -> dict[int, int]:
    found: dict[int, int] = {}
    while len(found) < operators:
        data = link.ask("C", struct.pack("<I", len(found)), "c", ANSWER_SECONDS).payload
        counts = struct.unpack(f"<{len(data) // 8}Q", data)
        if not counts:
            raise ToolError(f"the board told the cycles of {len(found)} of {operators} operators")
        found |= {len(found) + i: count for i, count in enumerate(counts)}
    return found


def identity(image: Path, read_only: Callable[[int], bool]) -> Identity:
    """What a linked image is; `read_only`: whether an address lies in memory that programs only read."""
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
        raise ToolError(f"cannot read the image: {error}", path=str(image)) from None
    words = text.replace(b"\0", b" ").decode("ascii", "replace").split()
    if "plan" not in words or "wire" not in words:
        raise ToolError(
            "the image does not answer over a wire",
            path=str(image),
            hint="build it with --wire serial (scons on=board does)",
        )
    plan, layout = (words[words.index(name) + 1] for name in ("plan", "layout"))
    return Identity(plan, layout, tuple(one for one in stored if read_only(one[0])))


def rtt_block(image: Path) -> int:
    """The address of RTT's control block in an image; ToolError where there is none."""
    from elftools.elf.elffile import ELFFile

    with image.open("rb") as file:
        table: Any = ELFFile(file).get_section_by_name(".symtab")
        found = table.get_symbol_by_name(_RTT_SYMBOL) if table is not None else None
        if not found:
            raise ToolError("the image has no RTT", path=str(image), hint="build it with --wire rtt")
        return int(found[0]["st_value"])


def reason(state: int) -> str:
    """Why the firmware counts no cycles (see cycles.h); "" where it does."""
    return _COUNTERS.get(state, f"the firmware gave reason {state}")


def why_no_cycles(board: Board, reality: Reality, reason: str, core_hz: int) -> str:
    """Why a run has no cycles, "" where it has; ToolError where the core has another clock than it should."""
    if reality.level is not Level.BOARD:  # a counter that runs there counts the host's time
        return reason or NO_CYCLES
    if board.clock_hz and core_hz and core_hz != board.clock_hz:
        raise ToolError(
            f"board '{board.name}' runs at {core_hz:,} Hz, and its file says {board.clock_hz:,}: its crystal "
            "or PLL did not start",
            hint="check the board's solder bridges for the crystal or the clock of its debugger (MCO)",
        )
    return reason
