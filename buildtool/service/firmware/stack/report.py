"""The stack that the networks of a linked image need, against what its linker script keeps for it."""

from __future__ import annotations

from collections.abc import Sequence

from buildtool.errors import ToolError
from buildtool.schema.builds import StackSize
from buildtool.service.firmware.sizes import is_native, open_elf
from buildtool.service.firmware.stack.need import Stacks, is_known
from buildtool.target.types import Board

_BITS = 8


def stack_report(data: bytes, board: Board, networks: Sequence[str]) -> list[StackSize]:
    """Of each network in an image, by its name; nothing for cores whose code cannot be read here."""
    elf = open_elf(data)
    if is_native(board) or not is_known(elf):
        return []
    from elftools.common.exceptions import ELFError

    try:
        return _of(Stacks(elf, board.core.vector_bits // _BITS), board, networks)
    except (ELFError, ValueError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise ToolError(f"the image's code cannot be read: {error}", hint="link it again") from None


def _of(stacks: Stacks, board: Board, networks: Sequence[str]) -> list[StackSize]:
    return [
        {"function": function, "needed": stacks.need(function), "reserved": board.stack_bytes}
        for function in (f"{network}_invoke" for network in networks)
        if function in stacks.functions
    ]
