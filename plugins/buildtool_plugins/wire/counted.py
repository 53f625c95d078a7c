"""Whether what a board's own counter counted are the board's cycles."""

from __future__ import annotations

from buildtool.base.errors import ToolError
from buildtool.base.modes import Level
from buildtool.target.types import Board, Reality

NO_CYCLES = "an emulator counts no cycles"
_COUNTERS = {
    0: "",
    1: "the core has no cycle counter that the firmware knows",
    2: "the core's cycle counter stands still, as an emulator's does",
}


def reason(state: int) -> str:
    """Why the firmware counts no cycles (see cycles.h); "" where it does."""
    return _COUNTERS.get(state, f"the firmware gave reason {state}")


def why_no_cycles(board: Board, reality: Reality, reason: str, core_hz: int) -> str:
    """Why a run has no cycles, "" where it has; ToolError where the core has another clock than it should."""
    if reality.level is not Level.BOARD:  # a counter that runs there counts the host's time
        return reason or NO_CYCLES
    if board.clock_hz and core_hz and core_hz != board.clock_hz:
        raise ToolError(
            f"board '{board.name}' runs at {core_hz:,} Hz, and its file says {board.clock_hz:,}: its crystal "
            "or PLL did not start",
            hint="check the board's solder bridges for the crystal or the clock of its debugger (MCO)",
        )
    return reason
