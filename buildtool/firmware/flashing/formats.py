"""Bytes at addresses, as files for flash: Intel HEX, UF2, and plain binary. Each is a pure function.

Gaps that a format cannot leave out are filled with 0xFF, as erased flash has it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from buildtool.base.errors import ToolError

FILL = b"\xff"
_HEX_ROW = 16  # bytes of a record
_DATA, _END, _UPPER = 0, 1, 4  # types of records: data, the last one, the upper 16 bits of addresses
_PAGE = 256  # bytes of a UF2 block's payload
_UF2 = struct.Struct("<8I476sI")
_UF2_FIRST, _UF2_SECOND, _UF2_LAST = 0x0A324655, 0x9E5D5157, 0x0AB16F30
_HAS_FAMILY = 0x2000
MOST_BINARY = 1 << 28  # bytes: a gap may be as long as an address range


class Piece(NamedTuple):
    """Bytes, and the address that they are flashed to."""

    address: int
    data: bytes

    @property
    def end(self) -> int:
        """The address behind them."""
        return self.address + len(self.data)


def joined(pieces: Iterable[Piece]) -> list[Piece]:
    """By address; those that touch are one. ToolError where two of them overlap."""
    found: list[Piece] = []
    for piece in sorted(piece for piece in pieces if piece.data):
        if found and piece.address < found[-1].end:
            raise ToolError(f"two parts of the image are to be flashed to {piece.address:#x}")
        if found and piece.address == found[-1].end:
            found[-1] = Piece(found[-1].address, found[-1].data + piece.data)
        else:
            found.append(piece)
    return found


def binary(pieces: Iterable[Piece], start: int) -> bytes:
    """All bytes from the address `start` on, which is none behind the first piece."""
    flat = bytearray()
    for piece in joined(pieces):
        if piece.address < start:
            raise ToolError(f"the image has bytes at {piece.address:#x}, before {start:#x}")
        gap = piece.address - start - len(flat)
        if gap + len(flat) > MOST_BINARY:
            raise ToolError(
                f"a .bin file from {start:#x} to {piece.end:#x} would be larger than {MOST_BINARY:,} bytes",
                hint="formats with addresses, hex or uf2, leave gaps out",
            )
        flat += FILL * gap + piece.data
    return bytes(flat)


def intel_hex(pieces: Iterable[Piece]) -> bytes:
    """Records of 16 bytes, none across a multiple of 16; addresses of 32 bits."""
    rows, upper = list[str](), 0
    for piece in joined(pieces):
        for address, data in _rows(piece, _HEX_ROW):
            if address >> 16 != upper:
                upper = address >> 16
                rows.append(_record(_UPPER, 0, upper.to_bytes(2, "big")))
            rows.append(_record(_DATA, address & 0xFFFF, data))
    rows.append(_record(_END, 0, b""))
    return ("\n".join(rows) + "\n").encode()


def _record(kind: int, address: int, data: bytes) -> str:
    body = bytes((len(data), address >> 8, address & 0xFF, kind)) + data
    return f":{body.hex()}{-sum(body) & 0xFF:02x}".upper()


def _rows(piece: Piece, size: int) -> Iterator[tuple[int, bytes]]:
    """The piece in rows that end at multiples of `size`."""
    at = piece.address
    while at < piece.end:
        end = min(at - at % size + size, piece.end)
        yield at, piece.data[at - piece.address : end - piece.address]
        at = end


def uf2(pieces: Iterable[Piece], family: int) -> bytes:
    """Blocks of 512 bytes, each with a page of 256 at a multiple of 256."""
    pages: dict[int, bytearray] = {}
    for piece in joined(pieces):
        for address, data in _rows(piece, _PAGE):
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
