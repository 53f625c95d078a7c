"""The call of a C function that a catalogue describes: its arguments, in the catalogue's order.

Every kernel and every routine that emitted code calls is called by `invocation`, of whole tensors and of
windows alike; what differs is the C that stands for each argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from buildtool.base.errors import TargetError
from buildtool.target.catalogue import VIEWS
from buildtool.target.types import Argument, KernelVariant, Routine


def invocation(callee: KernelVariant | Routine, arguments: Mapping[Argument, str]) -> str:
    """The statement that calls `callee`; `arguments` are C expressions of what there is to hand over."""
    for argument in callee.call:
        if argument not in arguments:
            have = ", ".join(sorted(arguments))
            raise TargetError(
                f"{callee.symbol} takes '{argument}', which {callee.op or 'its call'} does not have here",
                hint=f"`call` in the catalogue may name {have}",
            )
    return f"{callee.symbol}({', '.join(arguments[argument] for argument in callee.call)});"


def view_arguments(views: Sequence[str], out: str) -> dict[Argument, str]:
    """The arguments that are views: `views` are the operands', C expressions of nn_view variables."""
    found = {argument: f"&{views[n]}" for argument, n in VIEWS if n < len(views)}
    return {**found, Argument.OUT: f"&{out}"}
