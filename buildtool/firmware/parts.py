"""Lists the content of a firmware image's memories, symbol by symbol, with file, library and owner.

Each byte counts once. Where several symbols overlap, it counts for the one that begins first. Bytes that no
symbol covers belong to a symbol without a size that lies before them, or to the object's section that the
linker's map lists at their address. Otherwise they are padding.
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
    Section,
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
    """The parts of a firmware image by memory; within a memory, the largest come first.

    `files_from` says where the parts' file names come from: "map" (the linker's map), "symbols", or "" if
    there are no file names.
    """

    parts: list[SizePart]
    files_from: str


def parts(data: bytes, board: Board, nets: Sequence[str], table: str = "") -> Parts:
    """Returns the parts of a firmware image that take memory. `nets` are the names of the networks in it.

    `table` is the linker's map ("": none); a map of another image is not used. In each memory, the parts add
    up to the figures of `size_report`. Raises ToolError if `data` is not an ELF file.
    """
    elf = open_elf(data)
    sections = list_sections(elf)
    shares = _read_shares(table, sections)
    by_section = _split_sections(elf, sections, shares)
    every = [piece for own in by_section.values() for piece in own]
    owners = _Owners(nets, every)
    rows = Counter[tuple[str, ...]]()
    for memory, section, is_copy in in_memories(sections, board):
        is_constant = section.is_stored and not section.is_writable
        kind = CODE if section.is_code else CONSTANTS if is_constant else VARIABLES
        kind_there = INITIAL if is_copy and section.is_writable else kind
        for piece in by_section[section.index]:
            owner = (owners.of(section, piece), piece.library, piece.file, piece.symbol)
            rows[memory, section.name, kind_there, *owner] += piece.end - piece.begin
    places = {memory: place for place, memory in enumerate(dict.fromkeys(key[0] for key in rows))}
    ordered = sorted(rows.items(), key=lambda row: (places[row[0][0]], -row[1], row[0]))
    source = "map" if shares else "symbols" if any(piece.file for piece in every) else ""
    return Parts([_make_part(*key, size=size) for key, size in ordered], source)


def _split_sections(
    elf: Any, sections: Sequence[Section], shares: dict[tuple[str, int], list[Share]]
) -> dict[int, list[Piece]]:
    """Returns the pieces of each section, by the section's index."""
    by_section: dict[int, list[Symbol]] = {}
    for symbol in symbols(elf):
        by_section.setdefault(symbol.section, []).append(symbol)
    files = None if shares else DebugFiles(elf)  # debug information may have the files of code
    rows = {}
    for section in sections:
        # Except in code, a local symbol without a size marks a place and names no bytes.
        naming = [s for s in by_section.get(section.index, ()) if s.size or s.is_global or section.is_code]
        if files and section.is_code:
            naming = [replace(s, file=files.file(s.address) or s.file) for s in naming]
        of_map = shares.get((section.name, section.address), [])
        own = pieces(section.address, section.size, _read_content(elf, section), naming, of_map)
        assert sum(piece.end - piece.begin for piece in own) == section.size, section
        rows[section.index] = own
    return rows


def _make_part(
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


def _read_shares(table: str, sections: Sequence[Section]) -> dict[tuple[str, int], list[Share]]:
    """Returns the bytes of objects in each section, by the section's name and address; empty if the map
    `table` is that of another image.
    """
    in_map = {(one.name, one.address): one.bytes for one in outputs(table)} if table else {}
    if not sections or any(in_map.get((s.name, s.address)) != s.size for s in sections):
        return {}
    by_name: dict[str, list[Share]] = {}
    for share in contributions(table):
        by_name.setdefault(share.output, []).append(share)
    return {(s.name, s.address): by_name.get(s.name, []) for s in sections}


def _read_content(elf: Any, section: Section) -> bytes:
    """Returns the stored bytes of a section; b"" if it has none."""
    if not section.is_stored or section.index < 0:
        return b""
    try:
        return bytes(elf.get_section(section.index).data())
    except Exception:  # pyelftools raises many kinds of errors for a damaged section
        return b""


class _Owners:
    """Finds the owner of a piece: a network, its kernels, or the application with all that it links.

    The names of symbols and sections give the owner. A static symbol has the owner of its file: a network's
    file is named after the network, and a kernel's file after its public function.
    """

    def __init__(self, nets: Sequence[str], every: Sequence[Piece]) -> None:
        self._nets = tuple(nets)
        self._symbols = {piece.symbol for piece in every}
        by_file: dict[tuple[str, str], set[str]] = {}
        for piece in every:
            if piece.file:
                by_file.setdefault((piece.library, piece.file), set()).add(self._find_by_name(piece.symbol))
        self._files = {file: self._find_of_file(file[1], owners) for file, owners in by_file.items()}

    def of(self, section: Section, piece: Piece) -> str:
        """Returns the owner of a piece of a section: NETWORK, KERNELS or APPLICATION."""
        by_name = self._find_by_name(piece.symbol)
        if by_name != APPLICATION:
            return by_name
        if section.name in _OWN_SECTIONS:
            return NETWORK
        return self._files.get((piece.library, piece.file), APPLICATION)

    def _find_by_name(self, symbol: str) -> str:
        """Returns the owner by the name of a symbol, or by the name of an object's section, given in
        brackets.

        The name of such a section often ends with the name of a symbol.
        """
        for name in (symbol, *symbol.strip("()").split(".")):
            if any(name == net or name.startswith(f"{net}_") for net in self._nets):
                return NETWORK
            if _OURS.fullmatch(name):
                return NETWORK if name in ("nn_weights", "nn_arena", "nn_state") else KERNELS
        return APPLICATION

    def _find_of_file(self, file: str, owners: set[str]) -> str:
        stem = PurePosixPath(file).name.partition(".")[0]
        if any(stem in (net, f"{net}_weights") for net in self._nets):
            return NETWORK
        if _OURS.fullmatch(stem) and (KERNELS in owners or stem in self._symbols):
            return KERNELS
        return APPLICATION


# ---- pieces of a section ----------------------------------------------------------------------------


PADDING, UNNAMED, OPTIMISED = "(padding)", "(unnamed)", "(link-time optimised)"
_MOST_PADDING = 64  # up to this many bytes of zeros between two symbols count as padding
_MEMBER = re.compile(r"(?:.*/)?([^/]+\.(?:a|lib|rlib))(?:\((.*)\)|:(.*))$")
_NUMBERED = re.compile(r"^obj/\d{3}_")  # objects in the images that buildtool links
# Objects of a link-time optimiser; their names change from run to run or have no meaning.
_OPTIMISED = re.compile(
    r"(^|/)(cc\w{6}\.)?(ltrans\d+\.ltrans|.*\.lto)\.o$|\.lto\.|lto\.tmp|ld-temp\.o|thinlto"
)


@dataclass(frozen=True)
class Piece:
    """The bytes of a section from address `begin` up to `end`, which is not included.

    `library` and `file` are "" if they are not known. `symbol` is a name, or a description in brackets.
    """

    begin: int
    end: int
    library: str
    file: str
    symbol: str


def origin(path: str) -> tuple[str, str]:
    """Returns the archive ("": none) and the file name of an object, from its `path` in a linker's map.

    `path` is, for example, obj/net.o, libc.a(memcpy.o) or libc.a:memcpy.o.
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
    """Returns the pieces of a section, without gaps between them.

    `content` has the section's bytes (b"": none stored). `symbols` are those in the section. `shares` are its
    parts by the linker's map, empty without a map.
    """
    by_place = sorted(shares, key=lambda s: (s.address, -s.bytes, s.file, s.section))
    every = ((share.address, share.address + share.bytes, share) for share in by_place)
    spans = [(begin, end, s) for begin, end, s in _cover(address, address + size, every) if s is not None]
    return list(_Section(address, content, spans).pieces(symbols, address + size))


T = TypeVar("T")
Span = tuple[int, int, T]  # begin, end, content


def _cover(low: int, high: int, spans: Iterable[Span[T]]) -> Iterator[Span[T | None]]:
    """Yields [low, high) in pieces: the parts of the given spans, and None for the bytes between them.

    `spans` are in ascending order. Where several overlap, the first one counts.
    """
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
    """Cuts one section into pieces. `shares` are sorted by address and do not overlap."""

    def __init__(self, address: int, content: bytes, shares: list[Span[Share]]) -> None:
        self.address, self.content, self.shares = address, content, shares
        self.begins = [begin for begin, _, _ in shares]
        self.labels: list[Symbol] = []  # symbols without a size, by address

    def pieces(self, symbols: Iterable[Symbol], end: int) -> Iterator[Piece]:
        """Yields the pieces up to the address `end`: those that symbols cover, and those between symbols."""
        every = [s for s in symbols if self.address <= s.address < end]
        # of several symbols at one place the largest, and of these a global one
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
                    yield self._make_unnamed(begin, until)
                else:
                    yield from self._split_by_labels(begin, until, share)

    def _split_by_labels(self, low: int, high: int, share: Share | None) -> Iterator[Piece]:
        """Yields the bytes [low, high), which no symbol with a size covers, cut at the symbols without a
        size.

        `share` is the object that they come from (None: not known).
        """
        first, last = (bisect_left(self.labels, at, key=lambda s: s.address) for at in (low, high))
        ends = [*(s.address for s in self.labels[first + 1 : last]), high]
        spans = ((s.address, end, s) for s, end in zip(self.labels[first:last], ends, strict=False))
        for begin, end, symbol in _cover(low, high, spans):
            if symbol is not None:
                yield self._of(symbol, begin, end)
            elif share is None:
                yield self._make_unnamed(begin, end)
            else:
                yield Piece(begin, end, *origin(share.file), f"({share.section})")

    def _make_unnamed(self, low: int, high: int) -> Piece:
        """Returns the piece for the bytes [low, high), which belong to no object.

        The bytes are called padding if there is a linker's map, or if they are a few zeros.
        """
        part = self.content[low - self.address : high - self.address]
        is_empty = high - low <= _MOST_PADDING and not any(part)
        return Piece(low, high, "", "", PADDING if self.shares or is_empty else UNNAMED)

    def _of(self, symbol: Symbol, begin: int, end: int) -> Piece:
        index = bisect_right(self.begins, begin) - 1
        if index < 0 or begin >= self.shares[index][1]:
            return Piece(begin, end, "", symbol.file, symbol.name)
        library, file = origin(self.shares[index][2].file)
        by_compiler = symbol.file if file == OPTIMISED else ""
        return Piece(begin, end, library, by_compiler or file, symbol.name)
