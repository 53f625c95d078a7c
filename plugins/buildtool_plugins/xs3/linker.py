"""Links objects: places their sections in memory and completes their addresses. The result is an image with
segments and symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from buildtool.base.errors import ToolError
from buildtool_plugins.xs3.objects import Fixup, Object, Section, Symbol, patch

RAM_BASE, RAM_BYTES = 0x80000, 0x80000  # one tile's memory
FAR_BASE, FAR_BYTES = 0x10000000, 0x8000000  # external memory, as software-defined or LPDDR memory has it
FAR_SECTIONS = (".far", ".nn_weights")  # beginnings of the names of sections that lie in this memory
IDENTITY = ".nn_identity"
STACK_BYTES = 0x4000
STACK_BOTTOM = "__stack_bottom"  # the symbol of the stack's lowest address


@dataclass(frozen=True)
class Memory:
    """A memory of the machine, an address range. `name` is for errors."""

    base: int
    bytes: int
    name: str = ""


RAM = Memory(RAM_BASE, RAM_BYTES, "ram")
FAR = Memory(FAR_BASE, FAR_BYTES, "far")


class Piece(NamedTuple):
    """The place of an object's section in an image. `owner` is the object's name, `group` the group of
    sections.
    """

    group: str
    section: str
    owner: str
    address: int
    bytes: int


@dataclass
class Image:
    """A linked program. `stack` is the first address above the stack, a multiple of 8."""

    memories: tuple[Memory, ...]
    segments: list[tuple[int, bytes]] = field(default_factory=list)
    symbols: dict[str, int] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)  # group of sections -> address, bytes
    pieces: list[Piece] = field(default_factory=list)  # in the order of their addresses
    identity: bytes = b""  # the sections .nn_identity, which lie in no memory
    cp: int = 0
    dp: int = 0
    end: int = 0  # the first free address after the program
    stack: int = 0

    def address(self, name: str) -> int:
        """Returns a symbol's address. Raises ToolError if the program has no such symbol."""
        if name not in self.symbols:
            raise ToolError(f"the program has no symbol '{name}'")
        return self.symbols[name]


def link(
    objects: Sequence[Object],
    roots: Iterable[str] = (),
    ram: Memory = RAM,
    far: Memory = FAR,
    stack: int = STACK_BYTES,
) -> Image:
    """Links objects. With `roots`, names of symbols, sections that these do not need are left out.

    In `ram` the order is constants, code, data, zeros, large data and large zeros; cp and dp are the first
    addresses of constants and data. The stack has `stack` bytes and ends at the end of `ram`. Weights lie in
    the memory `far`. Raises ToolError if a symbol is missing or defined twice, and if the program does not
    fit.
    """
    linker = _Linker(objects)
    linker.globals.setdefault(STACK_BOTTOM, Symbol(None, (ram.base + ram.bytes - stack + 3) & ~3))
    sections = linker.reached(roots) if roots else [(o, s) for o in objects for s in o.sections]
    image = Image((ram, far), cp=ram.base)
    places, at = dict[int, int](), ram.base
    for group in _GROUPS:
        if group == "data":
            image.dp = at = at + -at % 16
        at = _place(sections, group, at, places, image)
    if far.base == ram.base:  # code and weights are in one memory
        end = at = _place(sections, "far", at, places, image)
        image.memories = ram, FAR
    else:
        end = _place(sections, "far", far.base, places, image)
    image.identity = b"".join(s.data for it in objects for s in it.sections if s.name == IDENTITY)
    image.end, image.stack = at, (ram.base + ram.bytes - 16) & ~7
    _refuse_overflow(ram, "the stack", at + stack)
    _refuse_overflow(far, "far", end)
    linker.complete(sections, places, image)
    return image


# Data addressed relative to dp must be near dp: clang puts large objects into sections of their own.
_LARGE = 4096  # bytes
_GROUPS = ("const", "code", "data", "zeros", "large data", "large zeros")


def _group(section: Section) -> str:
    """Returns the group of sections that a section belongs to: one of _GROUPS, or "far"."""
    if section.name.startswith(FAR_SECTIONS):
        return "far"
    if section.kind != "data":
        return section.kind
    is_large = ".large" in section.name or section.bytes > _LARGE
    return ("large " if is_large else "") + ("zeros" if section.is_zero else "data")


def _place(
    sections: Sequence[tuple[Object, Section]], group: str, at: int, places: dict[int, int], image: Image
) -> int:
    """Places the sections of a group one after the other, from the address `at` on. Returns the end."""
    start = at
    for owner, section in sections:
        if _group(section) == group:
            at += -at % max(4, section.align)
            places[id(section)] = at
            image.pieces.append(Piece(group, section.name, owner.name, at, section.bytes))
            at += section.bytes
    image.places[group] = start, at - start
    return at


def _refuse_overflow(memory: Memory, last: str, end: int) -> None:
    """Raises ToolError, in ld.lld's words, if `end` lies after the memory's end. `last` names the section
    that ends there.
    """
    excess = end - memory.base - memory.bytes
    if excess > 0:
        raise ToolError(
            f"section '{last}' will not fit in region '{memory.name}': overflowed by {excess} bytes"
        )


class _Linker:
    def __init__(self, objects: Sequence[Object]) -> None:
        self.objects = objects
        self.globals: dict[str, Symbol] = {}
        for it in objects:
            for name, symbol in it.globals.items():
                known = self.globals.get(name)
                if known is not None and not known.is_weak and not symbol.is_weak:
                    raise ToolError(f"'{name}' is defined twice", path=it.name)
                if known is None or known.is_weak:
                    self.globals[name] = symbol

    def find(self, owner: Object, name: str) -> Symbol:
        """Returns the symbol that a name in the object `owner` refers to. Raises ToolError if it is not
        defined.
        """
        symbol = owner.locals.get(name) or self.globals.get(name)
        if symbol is None:
            raise ToolError(f"'{name}' is not defined", path=owner.name)
        return symbol

    def reached(self, roots: Iterable[str]) -> list[tuple[Object, Section]]:
        """Returns the sections that the symbols `roots` need, directly or not, with their objects, in the
        objects' order.
        """
        owners = {id(section): it for it in self.objects for section in it.sections}
        waiting = [self.globals[name].section for name in roots if name in self.globals]
        missing = [name for name in roots if name not in self.globals]
        if missing:
            raise ToolError(f"'{missing[0]}' is not defined")
        seen: set[int] = set()
        while waiting:
            section = waiting.pop()
            if section is None or id(section) in seen:
                continue
            seen.add(id(section))
            waiting += [self.find(owners[id(section)], fixup.symbol).section for fixup in section.fixups]
        return [(it, section) for it in self.objects for section in it.sections if id(section) in seen]

    def complete(self, sections: list[tuple[Object, Section]], places: dict[int, int], image: Image) -> None:
        """Applies all relocations, and gives the image its segments and symbols. `places` has the address of
        each section.
        """

        def address(symbol: Symbol) -> int:
            return symbol.value + (places[id(symbol.section)] if symbol.section is not None else 0)

        for owner, section in sections:
            at = places[id(section)]
            for fixup in section.fixups:
                symbol = self.find(owner, fixup.symbol)
                pool = image.dp if symbol.section is not None and symbol.section.kind == "data" else image.cp
                patch(section, fixup, address(symbol), at, _pool_of(section, fixup, pool, image))
            if not section.is_zero and section.data:
                image.segments.append((at, bytes(section.data)))
        for it in self.objects:
            for name, symbol in {**it.locals, **it.globals}.items():
                if symbol.section is None or id(symbol.section) in places:
                    image.symbols.setdefault(name, address(symbol))
        image.symbols |= {
            name: address(symbol)
            for name, symbol in self.globals.items()
            if symbol.section is None or id(symbol.section) in places
        }


def _pool_of(section: Section, fixup: Fixup, pool: int, image: Image) -> int:
    """Returns the address that the instruction at a fixup is relative to: cp or dp. For other forms it
    returns `pool`.
    """
    if fixup.form != "pool":
        return pool
    half = int.from_bytes(section.data[fixup.offset + 2 : fixup.offset + 4], "little")
    is_dp = half >> 10 in (0x14, 0x16, 0x18)  # stw, ldw, ldaw with dp
    return image.dp if is_dp else image.cp
