"""The files for flash of a linked image: its name with an ending each, by the formats that are asked for.

NET.FORMAT has all that is flashed, NET_weights.FORMAT the weights' partition alone, NET_code.FORMAT all but
that. A .bin file has no addresses: NET.bin is of the code's memory, from where the firmware begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from buildtool.base.errors import UsageError, suggest
from buildtool.base.modes import Format
from buildtool.firmware.flashing.formats import Piece, binary, intel_hex, joined, uf2
from buildtool.firmware.sizes import open_elf, placed_sections
from buildtool.target.hardware import MemoryKind
from buildtool.target.partitions import regions, weights_before_code
from buildtool.target.types import Board

if TYPE_CHECKING:
    from buildtool.firmware.flashing.signing import Signing

DEFAULT = (Format.BIN,)
_SECTION = ".nn_weights"


def check(board: Board, formats: Iterable[Format], *, signed: bool = False) -> None:
    """UsageError for what the board's images cannot be written as."""
    if board.is_native:
        asked = [name for name in formats if name not in DEFAULT]
        if asked or signed:
            option = "formats" if asked else "sign"
            what = f"images for board '{board.name}' are programs of this machine, and not flashed"
            raise UsageError(what, option=option, hint=suggest(**{option: None}))
    if Format.UF2 in formats and not board.image.uf2_family:
        raise UsageError(
            f"no UF2 family number is known of board '{board.name}'",
            option="formats",
            hint="write uf2_family below [image] in a board's file; github.com/microsoft/uf2 has the list",
        )
    if signed and board.image.mcuboot is None:
        raise UsageError(
            f"board '{board.name}' has no slot of MCUboot",
            option="sign",
            hint="write [image.mcuboot] with slot_bytes in a board's file",
        )


def suffixes(board: Board, formats: Sequence[Format] = DEFAULT, *, signed: bool = False) -> list[str]:
    """What `files` names its files after the stem, of an image whose every network has weights."""
    if board.is_native:
        return []
    parts = ["", *(["_signed"] if signed else []), "_weights"]
    found = []
    for name in dict.fromkeys(formats):
        apart = name != Format.BIN or board.weights == board.code
        found += [f"{part}.{name}" for part in (*parts, *(["_code"] if apart else []))]
    found = [name for name in found if name != f"_signed.{Format.UF2}"]
    if signed and set(formats) == {Format.UF2}:  # MCUboot's tools know no UF2
        found.append(f"_signed.{Format.BIN}")
    return found


def files(
    data: bytes,
    board: Board,
    stem: str,
    formats: Sequence[Format] = DEFAULT,
    signing: Signing | None = None,
) -> dict[str, bytes]:
    """The files by name; nothing for a native image. ToolError for an image that cannot be written so."""
    check(board, formats, signed=signing is not None)
    if board.is_native:
        return {}
    weights, code = _parts(data, board)
    parts = {"": [*code, *weights], "_weights": weights, "_code": code}
    if signing:
        parts["_signed"] = [signing.signed(code, board)]
    wanted = set(suffixes(board, formats, signed=signing is not None))
    found = {}
    for part, pieces in parts.items():
        for name in Format:
            if f"{part}.{name}" in wanted and pieces:
                found[f"{stem}{part}.{name}"] = _written(name, part, pieces, board)
    if Format.BIN in formats:
        found |= _others(parts[""], board, stem)
    return found


def _written(name: Format, part: str, pieces: list[Piece], board: Board) -> bytes:
    """The pieces as a file of the format."""
    if name == Format.HEX:
        return intel_hex(pieces)
    if name == Format.UF2:
        return uf2(pieces, board.image.uf2_family)
    if part == "_weights":
        return binary(pieces, min(pieces).address)
    memory = board.memory(board.code)
    start = next(region.origin for region in regions(board) if region.name == board.code)
    if part == "_signed":
        start = memory.base + board.image.code_start
    # Weights that lie before the firmware are in their own file alone.
    own = [piece for piece in pieces if piece.address >= start or not weights_before_code(board)]
    return binary([piece for piece in own if _in(board, board.code, piece)], start)


def _others(pieces: list[Piece], board: Board, stem: str) -> dict[str, bytes]:
    """NET_MEMORY.bin of memories that hold neither code nor weights: an application's own sections."""
    found = {}
    for memory in board.memories:
        own = [piece for piece in pieces if _in(board, memory.name, piece)]
        if own and memory.kind is MemoryKind.ROM and memory.name not in (board.code, board.weights):
            found[f"{stem}_{memory.name}.bin"] = binary(own, memory.base)
    return found


def _in(board: Board, name: str, piece: Piece) -> bool:
    memory = board.memory(name)
    return memory.base <= piece.address < memory.base + memory.size


def _parts(data: bytes, board: Board) -> tuple[list[Piece], list[Piece]]:
    """The weights, and all else that is flashed."""
    elf = open_elf(data)
    weights, code = list[Piece](), list[Piece]()
    for section in placed_sections(elf):
        if not section.is_stored:
            continue
        piece = Piece(section.load_address, bytes(elf.get_section(section.index).data()))
        if section.name == _SECTION:
            weights.append(piece)
        elif _is_flashed(board, piece):
            code.append(piece)
    return joined(weights), joined(code)


def _is_flashed(board: Board, piece: Piece) -> bool:
    """Whether it lies in memory that keeps it; of an emulated board that may be RAM.

    What lies in none of the board's memories is taken for flash that its file leaves out.
    """
    found = [memory for memory in board.memories if _in(board, memory.name, piece)]
    return not found or any(
        memory.kind is MemoryKind.ROM or memory.name in (board.code, board.weights) for memory in found
    )
