"""The stack that an invoke needs, from what is recorded of kernels and from the emitted code's views."""

from __future__ import annotations

import re

from buildtool.emit.network import Network
from buildtool.target.recorded import Recorded, recorded
from buildtool.target.types import Routine

_ALIGNMENT = 8  # of a stack pointer, on every core
FRAME_FEATURES = ("functions", "views")
_SPARE = 1  # views more than there are: room for what compilers keep beside them
_REGION = re.compile(r"^static (?:int|void) region_\d+", re.MULTILINE)
_VIEW = re.compile(r"^ +(?:const )?nn_view ", re.MULTILINE)


def frame_features(source: str) -> tuple[int, ...]:
    """The numbers of FRAME_FEATURES in a network's C file; views: in the region with most of them.

    A region's function, or what compilers make of it within the invoke, holds its views in its frame;
    those of different regions share the same bytes.
    """
    regions = _REGION.split(source)[1:]
    return 1, _SPARE + max((len(_VIEW.findall(region)) for region in regions), default=0)


def stack_bytes(network: Network, source: str, routines: list[Routine]) -> int | None:
    """Bytes of stack that an invoke takes at most, of the compilers recorded for the board's core.

    `source`: the network's C file. None where nothing is recorded of the core, or not of all that is called.
    """
    called = {callee.symbol for callee in (*network.kernels, *routines) if callee}
    entries = recorded(network.target.board.core)
    if network.plan.loads or not all(called <= set(entry.stack) for entry in entries):
        return None
    return max((_need(entry, called, source) for entry in entries), default=None)


def _need(entry: Recorded, called: set[str], source: str) -> int:
    numbers = zip(FRAME_FEATURES, frame_features(source), strict=True)
    own = round(sum(entry.frame[name] * number for name, number in numbers))
    need = own + max((entry.stack[symbol] for symbol in called), default=0)
    return need + -need % _ALIGNMENT


def stack_macro(macro: str, size: int | None) -> str:
    """The header's lines that say it; nothing where it is not known."""
    if size is None:
        return ""
    return f"""
/* Bytes of stack that {macro.lower()}_invoke takes at most, as compiled with the flags of the board by the
 * compilers that buildtool has figures of. The frames of interrupts, and what a function takes that
 * the network calls back, are the application's own and come on top. */
#define {macro}_STACK_BYTES {size}
"""
