"""How many inputs of a data set go through the firmware, by an estimate, and how far a run has come.

The estimate goes by executed instructions and rates that are written here, not by a clock: the same command
takes the same inputs on every machine.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from buildtool.base.errors import ToolError
from buildtool.base.modes import Level
from buildtool.base.plain import duration
from buildtool.firmware.run.execute import execute
from buildtool.firmware.run.levels import reality

if TYPE_CHECKING:
    from collections.abc import Sequence

    from buildtool.api.requests.parts import OnDesk
    from buildtool.base.session import Session
    from buildtool.firmware.datasets.arrays import Array
    from buildtool.firmware.firmware import Firmware
    from buildtool.firmware.planned import Planned
    from buildtool.schema.datasets import Share

MOST_SECONDS = 3600.0  # all inputs go through the firmware if that takes no longer
SAMPLE_SECONDS = 600.0  # of those that do where it would
SHORT_SECONDS = 60.0  # by the plan's estimate: so little is not worth counting
# Instructions a second of QEMU, of cores without vectors and with them, below what was measured (see
# docs/accuracy.md); multiply-accumulates a second of plain C.
EMULATED, EMULATED_VECTORS, NATIVE_MACS = 500_000_000, 25_000_000, 250_000_000
_VECTORS = ("mve", "zve", "xs3")  # words of the names of instruction sets


@dataclass(frozen=True)
class Estimate:
    """What an input takes: `work` at a `rate` a second.

    `is_native`: the work is multiply-accumulates of this machine, not instructions of an emulated core;
    `is_counted`: in a run, not by the plan's cost.
    """

    work: int
    rate: int
    is_counted: bool = False
    is_native: bool = False

    @property
    def seconds(self) -> float:
        """Of an input."""
        return self.work / self.rate


def estimate(made: Planned, desk: OnDesk | None) -> Estimate | None:
    """By the plan; None for a board on the desk, which has its own speed."""
    if desk is not None and not desk.is_emulated:
        return None
    board = made.target.board
    if reality(board).level in (Level.HOST, Level.MODEL):
        return Estimate(made.plan.macs + 1, NATIVE_MACS, is_native=True)
    names = " ".join((board.core.isa, board.core.name, *board.core.families)).lower()
    rate = EMULATED_VECTORS if any(word in names for word in _VECTORS) else EMULATED
    return Estimate(int(made.plan.cost) + 1, rate)


def counted(made: Planned, image: Firmware, first: Sequence[Array], by_plan: Estimate) -> Estimate:
    """The instructions of an input, counted in the emulator; as the plan has it where that cannot be."""
    if reality(made.target.board).level is not Level.EMULATOR:
        return by_plan
    try:
        found = execute(made, image, [first], count=True).counted.total_instructions
    except ToolError:  # an emulator without plugins: the run itself says whether there is more amiss
        return by_plan
    return Estimate(found, by_plan.rate, is_counted=True) if found else by_plan


def through(count: int, each: Estimate | None) -> int:
    """How many of `count` inputs go through the firmware; 1 or more."""
    if each is None or count * each.seconds <= MOST_SECONDS:
        return count
    return max(1, min(count, int(SAMPLE_SECONDS / each.seconds)))


def told(by: str, count: int, each: Estimate | None) -> Share:
    """For the answer."""
    instructions = each is not None and not each.is_native
    return {
        "by": by,
        "instructions": each.work if each and instructions else None,
        "counted": bool(each and each.is_counted),
        "per_second": each.rate if each and instructions else None,
        "seconds": count * each.seconds if each else None,
    }


class Progress:
    """Says what is being done and how much time is left, by what its like has taken so far."""

    def __init__(self, session: Session, firmware: int, reference: int, nominal: float) -> None:
        self._session = session
        self._wanted = {"firmware": firmware, "reference": reference}
        self._nominal = {"firmware": nominal, "reference": 0.0}  # seconds of an input
        self._done = {"firmware": 0, "reference": 0}
        self._took = {"firmware": 0.0, "reference": 0.0}

    def running(self, which: str, began: float, now: int) -> None:
        """So many more inputs than are done have been run since the time `began`."""
        seconds = {**self._took, which: self._took[which] + time.monotonic() - began}
        done = {**self._done, which: self._done[which] + now}
        left = sum(
            (self._wanted[one] - done[one]) * (seconds[one] / done[one] if done[one] else self._nominal[one])
            for one in done
        )
        at = min(done[which] + 1, self._wanted[which])
        self._session.tell(f"{which}: input {at:,} of {self._wanted[which]:,}, {duration(left)} left")

    def ended(self, which: str, began: float, count: int) -> None:
        """So many inputs have been run since the time `began`."""
        self._took[which] += time.monotonic() - began
        self._done[which] += count
