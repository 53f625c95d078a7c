"""The blocks of code that a run executed, and how long a core takes for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

OUTSIDE = -1  # the position of what an invoke runs between its operators


@dataclass(frozen=True)
class Ran:
    """A block by its number: how often it ran, and how often another address than its next came after it."""

    block: int
    times: int
    taken: int


@dataclass(frozen=True)
class Waited:
    """Cycles that the core waited for a memory, by the board's data: for code, and for data."""

    memory: str
    code: int
    data: int


@dataclass(frozen=True)
class Work:
    """The blocks that an operator ran, and its waits for memories whose speed is known, and not 0."""

    ran: tuple[Ran, ...]
    waited: tuple[Waited, ...] = ()


@dataclass(frozen=True)
class Executed:
    """A run: blocks as bytes of code, by number; each operator's work, by position, over all `invokes`."""

    blocks: tuple[bytes, ...]
    work: Mapping[int, Work]
    invokes: int = 1


@dataclass(frozen=True)
class BlockTime:
    """A core model's cycles for a block, once through."""

    cycles: Fraction
    skipped: tuple[str, ...] = ()  # names of instructions that the model does not know; they take no time
    words: tuple[int, ...] = ()  # of each load and store of several words, which models count as one
