"""The blocks of code that a run executed, and how long a core takes for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

OUTSIDE = -1  # stands for code between the operators, in place of an operator's position


@dataclass(frozen=True)
class BlockRuns:
    """How often a block of code ran, and how often its branch was taken. `block` is the block's number."""

    block: int
    times: int
    taken: int


@dataclass(frozen=True)
class MemoryWait:
    """The cycles that the core waited for code and for data in a memory, computed from the board's file."""

    memory: str
    code: int
    data: int


@dataclass(frozen=True)
class Work:
    """The blocks of code that an operator ran, and the cycles that it waited for slow memories."""

    ran: tuple[BlockRuns, ...]
    waited: tuple[MemoryWait, ...] = ()


@dataclass(frozen=True)
class Executed:
    """What a run executed in all its `invokes`.

    `blocks`: the machine code of each block, by the block's number.
    `work`: each operator's work, by the operator's position.
    """

    blocks: tuple[bytes, ...]
    work: Mapping[int, Work]
    invokes: int = 1


@dataclass(frozen=True)
class BlockTime:
    """The cycles that one run of a block of code takes, by a model of the core."""

    cycles: Fraction
    skipped: tuple[str, ...] = ()  # names of instructions that the model does not know; they take no time
    words: tuple[int, ...] = ()  # counts of loads and stores of several words, which models time as one word
