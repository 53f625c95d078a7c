"""Which blocks of code a run went through, and how long a core takes for them."""

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
    """What a memory let the core wait, by the board's data: cycles for code, and for data."""

    memory: str
    code: int
    data: int


@dataclass(frozen=True)
class Work:
    """What an operator ran, and for which memories it waited (those whose speed is known, and not 0)."""

    ran: tuple[Ran, ...]
    waited: tuple[Waited, ...] = ()


@dataclass(frozen=True)
class Executed:
    """The blocks of a run as bytes of code, by number; and what each operator did, by position.

    All is summed over the `invokes` of the run.
    """

    blocks: tuple[bytes, ...]
    work: Mapping[int, Work]
    invokes: int = 1


@dataclass(frozen=True)
class BlockTime:
    """What a model of the core says of a block: cycles, one time through.

    `skipped`: its instructions, by their names, of which the model knows nothing; they take no time. `words`:
    how many each of its loads and stores of several words has, which models count as one.
    """

    cycles: Fraction
    skipped: tuple[str, ...] = ()
    words: tuple[int, ...] = ()
