"""Which bytes of a section belong to which symbol, file and library: each byte counts once.

Symbols that lie over each other, as aliases do, count where they begin first. What no symbol covers belongs
to a symbol of no size that it begins with, to the object's section that the map has there, or is padding.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from buildtool.firmware.linkmap import Share
from buildtool.firmware.symbols import Symbol

PADDING, UNNAMED, OPTIMISED = "(padding)", "(unnamed)", "(link-time optimised)"
_MOST_PADDING = 64  # bytes of zeros between two symbols that are taken for padding
_MEMBER = re.compile(r"(?:.*/)?([^/]+\.(?:a|lib|rlib))(?:\((.*)\)|:(.*))$")
_NUMBERED = re.compile(r"^obj/\d{3}_")  # of the images that buildtool links: a number that says nothing
# Objects that a link-time optimiser has made, by names that differ from run to run or say nothing.
_OPTIMISED = re.compile(
    r"(^|/)(cc\w{6}\.)?(ltrans\d+\.ltrans|.*\.lto)\.o$|\.lto\.|lto\.tmp|ld-temp\.o|thinlto"
)


@dataclass(frozen=True)
class Piece:
    """Bytes [begin, end) of a section. `library`, `file`: "" where not known; `symbol`: or what it is."""

    begin: int
    end: int
    library: str
    file: str
    symbol: str


@dataclass(frozen=True)
class Origin:
    """Where an object comes from: an archive's name and its member, or "" and the object's path."""

    library: str
    file: str


def origin(path: str) -> Origin:
    """What a linker's map says of an object: obj/net.o, libc.a(memcpy.o), libc.a:memcpy.o."""
    if _OPTIMISED.search(path):
        return Origin("", OPTIMISED)
    member = _MEMBER.match(path)
    if member is not None:
        return Origin(member[1], member[2] or member[3] or "")
    if path.startswith("<internal>") or path == "linker stubs":
        return Origin("", "(linker)")
    if path.startswith("/"):
        return Origin("", path.rpartition("/")[2])
    path = re.sub(r"^(\./)+", "", path)
    return Origin("", _NUMBERED.sub("", path))


def pieces(
    address: int, size: int, content: bytes, symbols: Sequence[Symbol], shares: Sequence[Share]
) -> list[Piece]:
    """A section from end to end. `content`: its bytes, none where it has none; `symbols`: its own.

    `shares`: of a map that is this image's, those of the section; empty without one.
    """
    section = _Section(address, size, content, _apart(shares, address, address + size))
    return list(section.pieces(symbols))


def _apart(shares: Sequence[Share], low: int, high: int) -> list[Share]:
    """Shares by address, cut where the one before them or the section ends."""
    found: list[Share] = []
    reached = low
    for share in sorted(shares, key=lambda s: (s.address, -s.bytes, s.file, s.section)):
        begin, end = max(share.address, reached), min(share.address + share.bytes, high)
        if begin < end:
            found.append(share._replace(address=begin, bytes=end - begin))
            reached = end
    return found


class _Section:
    """The pieces of one section."""

    def __init__(self, address: int, size: int, content: bytes, shares: list[Share]) -> None:
        self.address, self.end, self.content = address, address + size, content
        self.shares, self.begins = shares, [share.address for share in shares]

    def pieces(self, symbols: Sequence[Symbol]) -> Iterator[Piece]:
        """Those of symbols, and what lies between them."""
        every = [s for s in symbols if self.address <= s.address < self.end]
        # of several at one place the largest, and of these the one that all may name
        sized = sorted(
            (s for s in every if s.size), key=lambda s: (s.address, -s.size, not s.is_global, s.name)
        )
        labels = sorted((s for s in every if not s.size), key=lambda s: (s.address, not s.is_global, s.name))
        reached, label = self.address, 0
        for symbol in sized:
            begin, end = max(symbol.address, reached), min(symbol.end, self.end)
            if begin >= end:
                continue
            while label < len(labels) and labels[label].address < reached:
                label += 1
            upto = bisect_right(labels, begin - 1, lo=label, key=lambda s: s.address)
            yield from self._between(reached, begin, labels[label:upto])
            label = upto
            yield self._of(symbol, begin, end)
            reached = end
        yield from self._between(reached, self.end, [s for s in labels[label:] if s.address >= reached])

    def _between(self, low: int, high: int, labels: Sequence[Symbol]) -> Iterator[Piece]:
        """What no symbol with a size covers."""
        if low >= high:
            return
        if not self.shares:
            yield from self._labelled(low, high, labels, None)
            return
        index = max(0, bisect_right(self.begins, low) - 1)
        for share in self.shares[index:]:
            begin, end = max(share.address, low), min(share.address + share.bytes, high)
            if begin >= high:
                break
            if begin >= end:
                continue
            if low < begin:
                yield self._nobody(low, begin)
            inside = [s for s in labels if begin <= s.address < end]
            yield from self._labelled(begin, end, inside, share)
            low = end
        if low < high:
            yield self._nobody(low, high)

    def _labelled(
        self, low: int, high: int, labels: Sequence[Symbol], share: Share | None
    ) -> Iterator[Piece]:
        """Bytes that symbols without a size may name, from one to the next."""
        reached = low
        for place, symbol in enumerate(labels):
            end = labels[place + 1].address if place + 1 < len(labels) else high
            if end <= symbol.address:
                continue
            if reached < symbol.address:
                yield self._unnamed(reached, symbol.address, share)
            yield self._of(symbol, symbol.address, end)
            reached = end
        if reached < high:
            yield self._unnamed(reached, high, share)

    def _unnamed(self, low: int, high: int, share: Share | None) -> Piece:
        if share is None:
            return self._nobody(low, high)
        found = origin(share.file)
        return Piece(low, high, found.library, found.file, f"({share.section})")

    def _nobody(self, low: int, high: int) -> Piece:
        """Bytes of no object: padding where the map says that nothing is there, or where they are zeros."""
        part = self.content[low - self.address : high - self.address]
        is_empty = high - low <= _MOST_PADDING and not any(part)
        return Piece(low, high, "", "", PADDING if self.shares or is_empty else UNNAMED)

    def _of(self, symbol: Symbol, begin: int, end: int) -> Piece:
        index = bisect_right(self.begins, begin) - 1
        if index < 0 or begin >= self.shares[index].address + self.shares[index].bytes:
            return Piece(begin, end, "", symbol.file, symbol.name)
        found = origin(self.shares[index].file)
        known = symbol.file if found.file == OPTIMISED else ""
        return Piece(begin, end, found.library, known or found.file, symbol.name)
