"""Makes the files that are written to flash, from a linked firmware image, in the requested formats.

NET.FORMAT has everything, NET_weights.FORMAT only the weights' partition, and NET_code.FORMAT all the rest. A
.bin file has no addresses: NET.bin covers the code's memory, from the firmware's start. Gaps that a format
cannot leave out are filled with 0xFF, as in erased flash. MCUboot's own tool, imgtool (an extra), signs
firmware for that boot loader.
"""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from buildtool.base.errors import ToolError, UsageError, suggest
from buildtool.base.locks import scratch
from buildtool.base.modes import FlashPart, Format
from buildtool.firmware.sizes import lies_in, list_sections, open_elf
from buildtool.target.hardware import MemoryKind
from buildtool.target.partitions import regions, weights_before_code
from buildtool.target.types import Board

FILL = b"\xff"
_HEX_ROW = 16  # bytes of a record
_DATA, _END, _UPPER = 0, 1, 4  # types of records: data, end of file, the upper 16 bits of addresses
_PAGE = 256  # bytes of a UF2 block's payload
_UF2 = struct.Struct("<8I476sI")
_UF2_FIRST, _UF2_SECOND, _UF2_LAST = 0x0A324655, 0x9E5D5157, 0x0AB16F30
_HAS_FAMILY = 0x2000
MOST_BINARY = 1 << 28  # bytes: a gap may be very long


class Piece(NamedTuple):
    """Bytes and their address in flash."""

    address: int
    data: bytes

    @property
    def end(self) -> int:
        """The first address after the piece."""
        return self.address + len(self.data)


def join_pieces(pieces: Iterable[Piece]) -> list[Piece]:
    """Returns the pieces sorted by address, with adjacent ones joined. Raises ToolError if two of them
    overlap.
    """
    whole: list[Piece] = []
    for piece in sorted(piece for piece in pieces if piece.data):
        if whole and piece.address < whole[-1].end:
            raise ToolError(f"two parts of the firmware image overlap at address {piece.address:#x}")
        if whole and piece.address == whole[-1].end:
            whole[-1] = Piece(whole[-1].address, whole[-1].data + piece.data)
        else:
            whole.append(piece)
    return whole


def binary(pieces: Iterable[Piece], start: int) -> bytes:
    """Returns the bytes from the address `start` to the end of the last piece. Raises ToolError if a piece
    begins before `start`, or the result would be larger than MOST_BINARY.
    """
    flat = bytearray()
    for piece in join_pieces(pieces):
        if piece.address < start:
            raise ToolError(f"the firmware image has bytes at {piece.address:#x}, before {start:#x}")
        gap = piece.address - start - len(flat)
        if gap + len(flat) > MOST_BINARY:
            raise ToolError(
                f"a .bin file from {start:#x} to {piece.end:#x} would be larger than {MOST_BINARY:,} bytes",
                hint="formats with addresses, hex or uf2, leave gaps out",
            )
        flat += FILL * gap + piece.data
    return bytes(flat)


def intel_hex(pieces: Iterable[Piece]) -> bytes:
    """Returns a file in Intel hex format with 32-bit addresses.

    A record has up to 16 bytes and does not cross a multiple of 16.
    """
    text, upper = "", 0

    def record(kind: int, address: int, data: bytes) -> str:
        body = bytes((len(data), address >> 8, address & 0xFF, kind)) + data
        return f":{body.hex()}{-sum(body) & 0xFF:02x}\n".upper()

    for piece in join_pieces(pieces):
        for address, data in _split_rows(piece, _HEX_ROW):
            if address >> 16 != upper:
                upper = address >> 16
                text += record(_UPPER, 0, upper.to_bytes(2, "big"))
            text += record(_DATA, address & 0xFFFF, data)
    return (text + record(_END, 0, b"")).encode()


def _split_rows(piece: Piece, size: int) -> Iterator[tuple[int, bytes]]:
    """Yields (address, data) of the piece in rows that end at multiples of `size`."""
    at = piece.address
    while at < piece.end:
        end = min(at - at % size + size, piece.end)
        yield at, piece.data[at - piece.address : end - piece.address]
        at = end


def uf2(pieces: Iterable[Piece], family: int) -> bytes:
    """Returns a UF2 file: blocks of 512 bytes, each with the 256 bytes at a multiple of 256. `family` is the
    chip's UF2 family number.
    """
    pages: dict[int, bytearray] = {}
    for piece in join_pieces(pieces):
        for address, data in _split_rows(piece, _PAGE):
            page = pages.setdefault(address - address % _PAGE, bytearray(FILL * _PAGE))
            page[address % _PAGE : address % _PAGE + len(data)] = data
    return b"".join(
        _UF2.pack(
            *(_UF2_FIRST, _UF2_SECOND, _HAS_FAMILY, address, _PAGE, number, len(pages), family),
            bytes(pages[address]),
            _UF2_LAST,
        )
        for number, address in enumerate(sorted(pages))
    )


# ---- signatures -------------------------------------------------------------------------------------


_MOST_SHOWN = 300  # characters of imgtool's message
_TIMEOUT = 60.0  # seconds


@dataclass(frozen=True)
class Signing:
    """What is needed to sign firmware: a private key as PEM, and the version for the header."""

    key: bytes
    version: str = "0.0.0"

    def sign(self, code: list[Piece], board: Board) -> Piece:
        """Returns the firmware with MCUboot's header and trailer, at the start of the board's slot.

        Raises ToolError where imgtool is missing or fails.
        """
        boot = board.image.mcuboot
        assert boot is not None
        if find_spec("imgtool") is None:
            text = "imgtool, which signs firmware for MCUboot, is not installed"
            raise ToolError(text, hint="run: pip install imgtool")
        slot = board.memory(board.code).base + board.image.code_start
        words = [
            *("--header-size", str(boot.header_bytes), "--pad-header", "--align", str(boot.align)),
            *("--slot-size", str(boot.slot_bytes), "--version", self.version),
        ]
        return Piece(slot, self._run_imgtool(words, binary(code, slot + boot.header_bytes)))

    def _run_imgtool(self, words: list[str], code: bytes) -> bytes:
        """Runs imgtool with the arguments `words` on the code, and returns the file that it writes. Raises
        ToolError with the last line of its output if it fails.
        """
        with scratch() as name:
            folder = Path(name)
            (folder / "key.pem").touch(0o600)
            (folder / "key.pem").write_bytes(self.key)
            (folder / "code.bin").write_bytes(code)
            command = (sys.executable, "-P", "-m", "imgtool.main", "sign", "--key", "key.pem")
            try:
                process = subprocess.run(
                    [*command, *words, "code.bin", "signed.bin"],
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=_TIMEOUT,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise ToolError(f"imgtool did not sign the firmware: {error}") from None
            if process.returncode == 0 and (folder / "signed.bin").is_file():
                return (folder / "signed.bin").read_bytes()
        lines = [line.strip() for line in (process.stderr or process.stdout).splitlines() if line.strip()]
        last = lines[-1][:_MOST_SHOWN] if lines else "it printed nothing"  # a trace comes before it
        hint = "check the key: an unencrypted private key of ed25519, ECDSA or RSA, as PEM"
        if re.search(r"exceeds|too large|Image size", last):
            hint = "make the network or the firmware smaller, or slot_bytes of [image.mcuboot] larger"
        raise ToolError(f"imgtool did not sign the firmware: {last}", hint=hint)


# ---- files ------------------------------------------------------------------------------------------


DEFAULT = (Format.BIN,)
_SECTION = ".nn_weights"


def check_formats(board: Board, formats: Iterable[Format], *, signed: bool = False) -> None:
    """Raises UsageError if a format, or signing, is not possible for the board."""
    if board.is_native:
        others = [name for name in formats if name not in DEFAULT]
        if others or signed:
            option = "formats" if others else "sign"
            text = f"firmware for board '{board.name}' is a program of this machine and is not flashed"
            raise UsageError(text, option=option, hint=suggest(**{option: None}))
    if Format.UF2 in formats and not board.image.uf2_family:
        raise UsageError(
            f"the UF2 family number of board '{board.name}' is not known",
            option="formats",
            hint="write uf2_family below [image] in a board's file; github.com/microsoft/uf2 has the list",
        )
    if signed and board.image.mcuboot is None:
        raise UsageError(
            f"board '{board.name}' has no slot for MCUboot",
            option="sign",
            hint="write [image.mcuboot] with slot_bytes in a board's file",
        )


def suffixes(board: Board, formats: Sequence[Format] = DEFAULT, *, signed: bool = False) -> list[str]:
    """Returns the name endings of the files that `flash_files` makes."""
    if board.is_native:
        return []
    names = []
    for name in dict.fromkeys(formats):
        parts = [FlashPart.ALL, FlashPart.WEIGHTS]
        if signed and name != Format.UF2:  # MCUboot's tools do not read UF2
            parts.insert(1, FlashPart.SIGNED)
        if name != Format.BIN or board.weights == board.code:
            parts.append(FlashPart.CODE)
        names += [f"{part}.{name}" for part in parts]
    return names + [f"{FlashPart.SIGNED}.{Format.BIN}"] * (signed and set(formats) == {Format.UF2})


def flash_files(
    data: bytes,
    board: Board,
    stem: str,
    formats: Sequence[Format] = DEFAULT,
    signing: Signing | None = None,
) -> dict[str, bytes]:
    """Returns the files for flash by name, none for a native image. `stem` is the beginning of their names.

    Raises UsageError for a format that the board cannot have, and ToolError if the image does not suit it.
    """
    check_formats(board, formats, signed=signing is not None)
    if board.is_native:
        return {}
    weights, code = _read_parts(data, board)
    whole = [*code, *weights]
    parts = {FlashPart.ALL: whole, FlashPart.WEIGHTS: weights, FlashPart.CODE: code}
    if signing:
        parts[FlashPart.SIGNED] = [signing.sign(code, board)]
    endings = suffixes(board, formats, signed=signing is not None)
    files = {
        f"{stem}{part}.{name}": _write(name, part, pieces, board)
        for part, pieces in parts.items()
        for name in Format
        if f"{part}.{name}" in endings and pieces
    }
    # NET_MEMORY.bin for other memories, which have sections of the application
    for memory in board.memories if Format.BIN in formats else ():
        own = [piece for piece in whole if lies_in(memory, piece.address)]
        if own and memory.kind is MemoryKind.ROM and memory.name not in (board.code, board.weights):
            files[f"{stem}_{memory.name}.bin"] = binary(own, memory.base)
    return files


def _write(name: Format, part: FlashPart, pieces: list[Piece], board: Board) -> bytes:
    """Returns the content of the file for `part` in the format `name`."""
    if name == Format.HEX:
        return intel_hex(pieces)
    if name == Format.UF2:
        return uf2(pieces, board.image.uf2_family)
    if part is FlashPart.WEIGHTS:
        return binary(pieces, min(pieces).address)
    memory = board.memory(board.code)
    start = next(region.origin for region in regions(board) if region.name == board.code)
    if part is FlashPart.SIGNED:
        start = memory.base + board.image.code_start
    # Weights before the firmware are only in their own file.
    own = [piece for piece in pieces if piece.address >= start or not weights_before_code(board)]
    return binary([piece for piece in own if lies_in(memory, piece.address)], start)


def _read_parts(data: bytes, board: Board) -> tuple[list[Piece], list[Piece]]:
    """Returns the pieces of the weights, and those of everything else that is flashed.

    Other pieces are flashed if they lie in ROM, or in the board's memory for code or weights (on an emulated
    board this may be RAM). So are pieces outside all of the board's memories: they count as flash that the
    board's file does not list.
    """
    elf = open_elf(data)
    weights, code = list[Piece](), list[Piece]()
    for section in list_sections(elf):
        if not section.is_stored:
            continue
        piece = Piece(section.load_address, bytes(elf.get_section(section.index).data()))
        around = [memory for memory in board.memories if lies_in(memory, piece.address)]
        is_flash = (m.kind is MemoryKind.ROM or m.name in (board.code, board.weights) for m in around)
        if section.name == _SECTION:
            weights.append(piece)
        elif not around or any(is_flash):
            code.append(piece)
    return join_pieces(weights), join_pieces(code)
