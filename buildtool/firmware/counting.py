"""Finds the footprint of firmware: an upper bound from recorded sizes, or the exact one of a linked image.

A bound needs no compiler.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from buildtool.base.errors import ToolError
from buildtool.base.locks import scratch
from buildtool.base.session import Session
from buildtool.emit.sources import Sources, emit
from buildtool.firmware import needs
from buildtool.firmware.bound import bound, is_estimated, predicted_footprint
from buildtool.firmware.firmware import Objects, compile_firmware, link, map_of
from buildtool.firmware.linkmap import Share, contributions
from buildtool.firmware.needs import Footprint, MemoryUse, parts_of
from buildtool.firmware.sizes import Section, list_sections, open_elf
from buildtool.graph.types import Graph
from buildtool.plan.types import Plan
from buildtool.target.registry import toolchain
from buildtool.target.types import Board, LinkerScript, Target, Toolchain

_STACK = re.compile(rb"#define \w+_STACK_BYTES (\d+)")
LINKED, BOUND, ESTIMATED, UNCOUNTED = "linked", "bound", "estimated", "uncounted"


@dataclass(frozen=True)
class Count:
    """A footprint, and how it was found.

    `footprint`: None if the size of the code is not known.
    `note`: why nothing was linked.
    `estimated`: whether the footprint is estimated from another core's code.
    `stack`: an upper limit for an invoke's stack in bytes, None if it is not recorded.
    """

    footprint: Footprint | None
    note: str = ""
    estimated: bool = False
    stack: int | None = None

    @property
    def how(self) -> str:
        """How the footprint was found: "linked", "bound", "estimated" or "uncounted"."""
        if self.footprint is None:
            return UNCOUNTED
        if self.estimated:
            return ESTIMATED
        return LINKED if self.footprint.exact else BOUND


def count_footprint(
    graph: Graph,
    plan: Plan,
    target: Target,
    name: str,
    suffices: Callable[[Footprint], bool],
    session: Session,
) -> Count:
    """Returns the footprint of a network's test firmware on a board.

    The firmware is compiled and linked if the board's compiler is installed, unless `suffices` returns True
    for the upper bound from recorded sizes.
    """
    if target.board.is_native:
        note = "firmware for this board runs on this machine: its code size says nothing about the board"
        return Count(predicted_footprint(graph, plan, target, session), note, is_estimated(target))
    sources = emit(graph, plan, target, name, session)
    tools, note = None, ""
    try:
        tools = toolchain(target, "")
    except ToolError as error:
        note = error.text
    headers = (data for name, data in sources.files.items() if name.endswith(".h"))
    stated = filter(None, map(_STACK.search, headers))  # by the network's header
    stack = max((int(one[1]) for one in stated), default=None)
    above = bound(sources, plan, target, tools.identity if tools else "")
    if above is not None and suffices(above):
        return Count(above, note, stack=stack)
    if tools is not None:
        try:
            return Count(link_footprint(sources, plan, target, tools), stack=stack)
        except ToolError as error:
            note = error.text.partition("\n")[0]
    return Count(above, note, stack=stack)


# ---- compiled and linked, whether it fits or not ----------------------------------------------------


_DATA_LOAD = "__data_load"  # a symbol of the linker scripts: the place of stored initial values
_ARENAS = (".nn_arena", ".nn_second_arena")  # sections
_LENGTH = re.compile(rb"LENGTH = 0x[0-9a-fA-F]+")
_ROOMY = b"LENGTH = 0x10000000"  # 256 MB: all firmware fits


@dataclass(frozen=True)
class LinkedImage:
    """A linked firmware image: its bytes, its sections, and the bytes of each object in them.

    `shares` names objects by file name, without folders.
    """

    elf: bytes
    compiler: str
    sections: tuple[Section, ...]
    shares: tuple[Share, ...]
    objects: Objects


def link_footprint(sources: Sources, plan: Plan, target: Target, toolchain: Toolchain) -> Footprint:
    """Returns the exact footprint of a network's test firmware; raises ToolError if compiling or linking
    fails.
    """
    with scratch() as folder:
        image = link_anyway(sources, plan, target, toolchain, Path(folder))
    owners = {path.name: needs.NETWORK for path in image.objects.network}
    owners |= {path.name: needs.KERNELS for path in image.objects.kernels}
    shares: dict[str, Counter[str]] = {}  # output section -> bytes by owner
    for share in image.shares:
        shares.setdefault(share.output, Counter())[owners.get(share.file, needs.FIRMWARE)] += share.bytes
    return Footprint(image.compiler, True, _list_uses(image, target.board, shares, plan.arenas))


def link_anyway(
    sources: Sources, plan: Plan, target: Target, toolchain: Toolchain, folder: Path
) -> LinkedImage:
    """Compiles and links a network's test firmware in `folder`, even where a memory is too small for it."""
    objects = compile_firmware(sources, plan, target, toolchain, folder)
    elf = folder / "image.elf"
    flags = ("-Xlinker", "--no-check-sections")
    try:
        link(toolchain, objects.all, elf, target, flags)
    except ToolError:
        link(roomy(toolchain), objects.all, elf, target, flags)
    table = map_of(elf).read_text(encoding="utf-8", errors="replace")
    shares = tuple(share._replace(file=Path(share.file).name) for share in contributions(table))
    data = elf.read_bytes()
    return LinkedImage(data, toolchain.identity, tuple(list_sections(open_elf(data))), shares, objects)


def roomy(toolchain: Toolchain) -> Toolchain:
    """Returns the toolchain with very large memories in its linker script, if it has a linker script."""
    script = toolchain.script
    if script is None:
        return toolchain
    return replace(toolchain, script=LinkerScript(script.name, _LENGTH.sub(_ROOMY, script.data), script.flag))


def _list_uses(
    image: LinkedImage, board: Board, shares: Mapping[str, Mapping[str, int]], arenas: Sequence[int]
) -> tuple[MemoryUse, ...]:
    ends: dict[str, int] = {}
    parts: dict[str, Counter[str]] = {}

    def add(address: int, size: int, named: Mapping[str, int]) -> None:
        before = [memory for memory in board.memories if memory.base <= address]
        if before:  # bytes behind the end of a memory count for it
            memory = max(before, key=lambda memory: memory.base)
            ends[memory.name] = max(ends.get(memory.name, 0), address + size - memory.base)
            parts.setdefault(memory.name, Counter()).update(named)

    for section in image.sections:
        add(section.address, section.size, _name_parts(section, board, shares, arenas))
        if section.load_address not in (-1, section.address):
            stored = {} if section.is_writable else _name_parts(section, board, shares, arenas)
            add(section.load_address, section.size, stored or {needs.INITIAL: section.size})
    # ld.lld aligns the end of the code for the variables' initial values, even where there are none.
    table = open_elf(image.elf).get_section_by_name(".symtab")
    for symbol in (table.get_symbol_by_name(_DATA_LOAD) or []) if table is not None else []:
        add(int(symbol["st_value"]), 0, {})
    order = [memory.name for memory in board.memories if memory.name in ends]
    return tuple(MemoryUse(name, ends[name], parts_of(parts[name], ends[name])) for name in order)


def _name_parts(
    section: Section, board: Board, shares: Mapping[str, Mapping[str, int]], arenas: Sequence[int]
) -> dict[str, int]:
    """Returns the bytes of each named part of a section, such as the stack and its guard.

    `shares` maps the name of a section to its bytes by owner. `arenas` are the sizes of the arenas.
    """
    if section.name == ".stack":
        return {needs.STACK: board.stack_bytes, needs.GUARD: section.size - board.stack_bytes}
    for name, size in zip(_ARENAS, arenas, strict=False):
        if section.name == name:
            return {needs.ARENA: size, needs.AROUND: section.size - size}
    if section.name == ".nn_state":
        return {needs.STATE: section.size}
    if section.name == ".nn_weights":
        return {needs.WEIGHTS: section.size}
    kind = needs.CODE if section.is_stored and not section.is_writable else needs.VARIABLES
    return {f"{kind} of the {owner}": size for owner, size in shares.get(section.name, {}).items()}
