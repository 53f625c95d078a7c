"""What a linker says when a memory overflows, in the board's terms."""

from __future__ import annotations

import re

from buildtool.base.errors import ToolError
from buildtool.base.plain import show_size
from buildtool.target.partitions import PARTITION, Region, regions
from buildtool.target.types import Board

# ld.lld: "section '.text' will not fit in region 'flash': overflowed by 12 bytes"
_LLD = re.compile(r"section '([^']+)' will not fit in region '([^']+)': overflowed by (\d+) bytes?")
# GNU ld: "region `flash' overflowed by 12 bytes"; it names the sections in lines of their own.
_GNU = re.compile(r"region [`']([^']+)' overflowed by (\d+) bytes?")

_HELP = {
    "code": "fewer operators, or a board with more room for code",
    "data": "a smaller stack_bytes in the board's file, or fewer globals",
    "arena": "a smaller RAM limit for the plan, and reserved_bytes for what else lives there",
    "weights": "a smaller network, or `roles.weights` in a larger memory",
}


def explain_link_failure(text: str, board: Board) -> ToolError | None:
    """An error that names the memory that is too small; None if `text` speaks of something else.

    `text` is the linker's output. Where several memories overflow, the one with the largest excess is named.
    """
    found = {region: int(excess) for region, excess in _GNU.findall(text)}
    for _, region, excess in _LLD.findall(text):
        found[region] = max(found.get(region, 0), int(excess))
    places = {region.name: region for region in regions(board)}
    sizes = {name: region.size for name, region in places.items()}
    known = [(excess, region) for region, excess in found.items() if region in sizes]
    if not known:
        return None
    excess, region = max(known)
    return too_small(board, places[region], sizes[region] + excess)


def too_small(board: Board, region: Region, needed: int) -> ToolError:
    """The error for a region in which `needed` bytes are to lie; the roles that it has are named."""
    memory = region.memory.name
    roles = [role for role in _HELP if getattr(board, role) == memory]
    roles += ["arena"] if memory == board.second else []
    if region.name.endswith(PARTITION):
        roles = ["weights"]
    elif any(other.name == memory + PARTITION for other in regions(board)):
        roles.remove("weights")
    holds = f" ({', '.join(roles)})" if roles else ""
    helps = [_HELP[role] for role in roles]
    what = f"memory '{memory}'{holds}"
    if region.size < region.memory.size:
        what += f" from {region.origin:#x} on"
        helps.append("other places below [image] in the board's file")
    return ToolError(
        f"{what} of board '{board.name}' is {needed - region.size} bytes too small:"
        f" {needed} needed, {show_size(region.size)} there",
        hint="; ".join(helps),
    )
