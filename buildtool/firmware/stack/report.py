"""The stack that the networks of a linked image need, against what its linker script keeps for it."""

from __future__ import annotations

from collections.abc import Sequence

from buildtool.base.errors import PlanError, ToolError
from buildtool.firmware.sizes import open_elf
from buildtool.firmware.stack.need import Stacks, is_known
from buildtool.schema.builds import StackSize
from buildtool.target.types import Board

_BITS = 8
_START = "main"  # of a test firmware


def stack_report(
    data: bytes, board: Board, networks: Sequence[str], others: Sequence[str] = ()
) -> list[StackSize]:
    """Of each network in an image, by its name; nothing for cores whose code cannot be read here.

    `others`: names of functions that are told after those.
    """
    elf = open_elf(data)
    if board.is_native or not is_known(elf):
        return []
    from elftools.common.exceptions import ELFError

    try:
        functions = [*(f"{network}_invoke" for network in networks), *others]
        return _of(Stacks(elf, board.core.vector_bits // _BITS), board, functions)
    except (ELFError, ValueError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise ToolError(f"the image's code cannot be read: {error}", hint="link it again") from None


def refuse_unless_enough(data: bytes, board: Board, network: str) -> None:
    """PlanError where a test firmware may take more of the stack than the board's file gives it.

    Counted from its `main`, whose frames lie beside those of the network.
    """
    found = stack_report(data, board, [network], [_START])
    needed = max((one["needed"] for one in found if one["needed"] is not None), default=0)
    if needed <= board.stack_bytes:
        return
    own = next((one["needed"] for one in found if one["function"] != _START), None)
    inside = f" ({network}_invoke {own:,} of them)" if own is not None else ""
    raise PlanError(
        f"the firmware of '{network}' takes up to {needed:,} bytes of stack{inside}, '{board.name}' gives it "
        f"{board.stack_bytes:,}: {needed - board.stack_bytes:,} too many",
        hint=f"stack_bytes = {needed} or more in the board's file (memory '{board.data}' has it); "
        "a board with a larger stack: analyze names some",
    )


def _of(stacks: Stacks, board: Board, functions: Sequence[str]) -> list[StackSize]:
    return [
        {"function": function, "needed": stacks.need(function), "reserved": board.stack_bytes}
        for function in functions
        if function in stacks.functions
    ]
