"""The contents of an image's memories, symbol by symbol, with their file, library and owner.

Each byte counts once, for the symbol that begins first where several overlap. Bytes that no symbol covers
belong to a symbol of no size that they begin with, to the object's section that the map has there, or are
padding.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, TypeVar

from buildtool.firmware.linkmap import Share, contributions, outputs
from buildtool.firmware.sizes import (
    DebugFiles,
    Placed,
    Symbol,
    in_memories,
    list_sections,
    open_elf,
    symbols,
)
from buildtool.schema.builds import SizePart
from buildtool.target.types import Board

NETWORK, KERNELS, APPLICATION = "network", "kernels", "application"
CODE, CONSTANTS, VARIABLES, INITIAL = "code", "constants", "variables", "initial values"
_OURS = re.compile(r"nn_[a-z0-9_]+")  # names in the kernels' sources
_OWN_SECTIONS = (".nn_weights", ".nn_arena", ".nn_state")


@dataclass(frozen=True)
class Parts:
    """The parts of an image, each memory's largest first; `files_from`: the source of their files' names."""

    parts: list[SizePart]
    files_from: str


def parts(data: bytes, board: Board, nets: Sequence[str], table: str = "") -> Parts:
    """The parts of an image that take memory; `nets`: the networks in it.

    `table`: the linker's map ("": there is none); one of another image is not used. By memory, the parts add
    up to the figures of `size_report`. ToolError for a file that is no ELF file.
    """
    elf = open_elf(data)
    sections = list_sections(elf)
    shares = _shares(table, sections)
    found = _pieces_by_section(elf, sections, shares)
    every = [piece for own in found.values() for piece in own]
    owners = _Owners(nets, every)
    rows = Counter[tuple[str, ...]]()
    for memory, section, is_copy in in_memories(sections, board):
        is_constant = section.is_stored and not section.is_writable
        kind = CODE if section.is_code else CONSTANTS if is_constant else VARIABLES
        for piece in found[section.index]:
            whose = (owners.of(section, piece), piece.library, piece.file, piece.symbol)
            rows[memory, section.name, INITIAL if is_copy else kind, *whose] += piece.end - piece.begin
    places = {memory: place for place, memory in enumerate(dict.fromkeys(key[0] for key in rows))}
    ordered = sorted(rows.items(), key=lambda row: (places[row[0][0]], -row[1], row[0]))
    source = "map" if shares else "symbols" if any(piece.file for piece in every) else ""
    return Parts([_part(*key, size=size) for key, size in ordered], source)


def _pieces_by_section(
    elf: Any, sections: Sequence[Placed], shares: dict[tuple[str, int], list[Share]]
) -> dict[int, list[Piece]]:
    """Number of a section -> its pieces."""
    named: dict[int, list[Symbol]] = {}
    for symbol in symbols(elf):
        named.setdefault(symbol.section, []).append(symbol)
    files = None if shares else DebugFiles(elf)  # debug information may know the files of code
    found = {}
    for section in sections:
        # Beside code, a local symbol of no size marks a place and names no bytes.
        naming = [s for s in named.get(section.index, ()) if s.size or s.is_global or section.is_code]
        if files and section.is_code:
            naming = [replace(s, file=files.file(s.address) or s.file) for s in naming]
        of_map = shares.get((section.name, section.address), [])
        own = pieces(section.address, section.size, _content(elf, section), naming, of_map)
        assert sum(piece.end - piece.begin for piece in own) == section.size, section
        found[section.index] = own
    return found


def _part(
    memory: str, section: str, kind: str, owner: str, library: str, file: str, symbol: str, *, size: int
) -> SizePart:
    return {
        "memory": memory,
        "section": section,
        "kind": kind,
        "owner": owner,
        "library": library,
        "file": file,
        "symbol": symbol,
        "bytes": size,
    }


def _shares(table: str, sections: Sequence[Placed]) -> dict[tuple[str, int], list[Share]]:
    """Section -> its shares in the map; nothing where the map is of another image."""
    there = {(one.name, one.address): one.bytes for one in outputs(table)} if table else {}
    if not sections or any(there.get((s.name, s.address)) != s.size for s in sections):
        return {}
    by_name: dict[str, list[Share]] = {}
    for share in contributions(table):
        by_name.setdefault(share.output, []).append(share)
    return {(s.name, s.address): by_name.get(s.name, []) for s in sections}


def _content(elf: Any, section: Placed) -> bytes:
    """A section's bytes; none if it only takes memory."""
    if not section.is_stored or section.index < 0:
        return b""
    try:
        return bytes(elf.get_section(section.index).data())
    except Exception:  # of a damaged section pyelftools raises whatever it comes to
        return b""


class _Owners:
    """The owner of a piece: a network, its kernels, or the application with all that it links.

    It follows from the names of symbols and sections, and of files, for their static symbols: a network's
    file is named after the network, a kernel's after its public function.
    """

    def __init__(self, nets: Sequence[str], every: Sequence[Piece]) -> None:
        self._nets = tuple(nets)
        self._symbols = {piece.symbol for piece in every}
        said: dict[tuple[str, str], set[str]] = {}
        for piece in every:
            if piece.file:
                said.setdefault((piece.library, piece.file), set()).add(self._by_name(piece.symbol))
        self._files = {file: self._of_file(file[1], owners) for file, owners in said.items()}

    def of(self, section: Placed, piece: Piece) -> str:
        """The owner of a piece of a section."""
        by_name = self._by_name(piece.symbol)
        if by_name != APPLICATION:
            return by_name
        if section.name in _OWN_SECTIONS:
            return NETWORK
        return self._files.get((piece.library, piece.file), APPLICATION)

    def _by_name(self, symbol: str) -> str:
        """Of a symbol, or of an object's section in brackets, which often ends with a symbol's name."""
        for name in (symbol, *symbol.strip("()").split(".")):
            if any(name == net or name.startswith(f"{net}_") for net in self._nets):
                return NETWORK
            if _OURS.fullmatch(name):
                return NETWORK if name in ("nn_weights", "nn_arena", "nn_state") else KERNELS
        return APPLICATION

    def _of_file(self, file: str, owners: set[str]) -> str:
        stem = PurePosixPath(file).name.partition(".")[0]
        if any(stem in (net, f"{net}_weights") for net in self._nets):
            return NETWORK
        if _OURS.fullmatch(stem) and (KERNELS in owners or stem in self._symbols):
            return KERNELS
        return APPLICATION


# ---- pieces of a section ----------------------------------------------------------------------------


PADDING, UNNAMED, OPTIMISED = "(padding)", "(unnamed)", "(link-time optimised)"
_MOST_PADDING = 64  # bytes of zeros between two symbols that are taken for padding
_MEMBER = re.compile(r"(?:.*/)?([^/]+\.(?:a|lib|rlib))(?:\((.*)\)|:(.*))$")
_NUMBERED = re.compile(r"^obj/\d{3}_")  # in the images that buildtool links
# Objects of a link-time optimiser, whose names differ from run to run or say nothing.
_OPTIMISED = re.compile(
    r"(^|/)(cc\w{6}\.)?(ltrans\d+\.ltrans|.*\.lto)\.o$|\.lto\.|lto\.tmp|ld-temp\.o|thinlto"
)


@dataclass(frozen=True)
class Piece:
    """Bytes [begin, end) of a section. `library`, `file`: "" where not known; `symbol`: or a description."""

    begin: int
    end: int
    library: str
    file: str
    symbol: str


def origin(path: str) -> tuple[str, str]:
    """The archive of an object in a linker's map, "" without, and the object's name.

    Such as obj/net.o, libc.a(memcpy.o), libc.a:memcpy.o.
    """
    if _OPTIMISED.search(path):
        return "", OPTIMISED
    member = _MEMBER.match(path)
    if member is not None:
        return member[1], member[2] or member[3] or ""
    if path.startswith("<internal>") or path == "linker stubs":
        return "", "(linker)"
    if path.startswith("/"):
        return "", path.rpartition("/")[2]
    return "", _NUMBERED.sub("", re.sub(r"^(\./)+", "", path))


def pieces(
    address: int, size: int, content: bytes, symbols: Sequence[Symbol], shares: Sequence[Share]
) -> list[Piece]:
    """The pieces of a section, without gaps. `content`: its bytes, if it has any; `symbols`: its own.

    `shares`: those of the section in this image's map; empty without a map.
    """
    by_place = sorted(shares, key=lambda s: (s.address, -s.bytes, s.file, s.section))
    every = ((share.address, share.address + share.bytes, share) for share in by_place)
    apart = [(begin, end, s) for begin, end, s in _cover(address, address + size, every) if s is not None]
    return list(_Section(address, content, apart).pieces(symbols, address + size))


T = TypeVar("T")
Span = tuple[int, int, T]  # begin, end, what is there


def _cover(low: int, high: int, spans: Iterable[Span[T]]) -> Iterator[Span[T | None]]:
    """[low, high) in parts: the spans, the first where several overlap, and None between them."""
    for span_begin, span_end, what in spans:
        begin, end = max(span_begin, low), min(span_end, high)
        if begin >= end:
            continue
        if low < begin:
            yield low, begin, None
        yield begin, end, what
        low = end
    if low < high:
        yield low, high, None


class _Section:
    """The pieces of one section; `shares` are by address, and do not overlap."""

    def __init__(self, address: int, content: bytes, shares: list[Span[Share]]) -> None:
        self.address, self.content, self.shares = address, content, shares
        self.begins = [begin for begin, _, _ in shares]
        self.labels: list[Symbol] = []  # symbols without a size, by address

    def pieces(self, symbols: Iterable[Symbol], end: int) -> Iterator[Piece]:
        """Those of symbols up to the address `end`, and those between them."""
        every = [s for s in symbols if self.address <= s.address < end]
        # of several at one place the largest, and of these the one that all may name
        sized = sorted(
            (s for s in every if s.size), key=lambda s: (s.address, -s.size, not s.is_global, s.name)
        )
        labels = (s for s in every if not s.size)
        self.labels = sorted(labels, key=lambda s: (s.address, not s.is_global, s.name))
        for low, high, symbol in _cover(self.address, end, ((s.address, s.end, s) for s in sized)):
            if symbol is not None:
                yield self._of(symbol, low, high)
                continue
            first, last = max(0, bisect_right(self.begins, low) - 1), bisect_left(self.begins, high)
            for begin, until, share in _cover(low, high, self.shares[first:last]):
                if share is None and self.shares:
                    yield self._nobody(begin, until)
                else:
                    yield from self._pieces_by_labels(begin, until, share)

    def _pieces_by_labels(self, low: int, high: int, share: Share | None) -> Iterator[Piece]:
        """Bytes of a share that symbols without a size may name, from one to the next."""
        first, last = (bisect_left(self.labels, at, key=lambda s: s.address) for at in (low, high))
        ends = [*(s.address for s in self.labels[first + 1 : last]), high]
        spans = ((s.address, end, s) for s, end in zip(self.labels[first:last], ends, strict=False))
        for begin, end, symbol in _cover(low, high, spans):
            if symbol is not None:
                yield self._of(symbol, begin, end)
            elif share is None:
                yield self._nobody(begin, end)
            else:
                yield Piece(begin, end, *origin(share.file), f"({share.section})")

    def _nobody(self, low: int, high: int) -> Piece:
        """Bytes of no object: padding if the map has nothing there, or if they are zeros."""
        part = self.content[low - self.address : high - self.address]
        is_empty = high - low <= _MOST_PADDING and not any(part)
        return Piece(low, high, "", "", PADDING if self.shares or is_empty else UNNAMED)

    def _of(self, symbol: Symbol, begin: int, end: int) -> Piece:
        index = bisect_right(self.begins, begin) - 1
        if index < 0 or begin >= self.shares[index][1]:
            return Piece(begin, end, "", symbol.file, symbol.name)
        library, file = origin(self.shares[index][2].file)
        known = symbol.file if file == OPTIMISED else ""
        return Piece(begin, end, library, known or file, symbol.name)
