"""How fast a core and its memories are, as a board's file says it from its maker's manuals.

The model is as simple as the manuals' tables. An access to a memory waits some cycles of the core for the
first bits, and some for each further beat of the bus. A cache holds the lines used last; reading them takes
no time. Two masters on one bus, prefetching and full write buffers are not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from buildtool.base.plain import Key, Kind, power
from buildtool.target.readers import AtLeastZero, Number

WORD = 4  # bytes of an access of the core


@dataclass(frozen=True)
class Cache:
    """What is kept of slower memories, in lines that are fetched whole."""

    name: str
    line_bytes: Annotated[int, power(4, 1024), Key("What is fetched at once.")]
    data_bytes: Annotated[int, Key("Bytes that are kept of data.")] = 0
    code_bytes: Annotated[int, Key("Bytes that are kept of code.")] = 0
    ways: Annotated[
        Number, Key("Lines of a set, in which an address has its place.", "0: a line may lie anywhere")
    ] = 0


@dataclass(frozen=True)
class Speed:
    """How long a memory lets the core wait, in cycles of the core's clock."""

    wait_cycles: Annotated[
        AtLeastZero,
        Key(
            "Cycles of the core that an access waits, at `clock_hz`, beyond the cycle that every access "
            "takes.",
            "not known: it is taken for ideal",
        ),
    ]
    bus_bits: Annotated[int, power(8, 1024), Key("Bits that one beat brings; needs `wait_cycles`.")] = 32
    beat_cycles: Annotated[
        AtLeastZero, Key("Cycles of the core for each further beat of one access; needs `wait_cycles`.")
    ] = 1
    cache: Annotated[
        str, Kind("name of a cache"), Key("The cache that it is read through; needs `wait_cycles`.")
    ] = ""

    def access(self, size: int) -> int:
        """Cycles that the core waits for `size` bytes which lie side by side."""
        beats = -(-8 * size // self.bus_bits)
        return self.wait_cycles + (max(1, beats) - 1) * self.beat_cycles


@dataclass(frozen=True)
class Pipeline:
    """LLVM's model of the core's pipeline, and what that leaves out."""

    model: Annotated[str, Key("What LLVM calls its model of the core: the `-mcpu` of `llvm-mca`.")]
    taken_branch_cycles: Annotated[
        AtLeastZero,
        Key("What a taken branch takes beyond the model, which leaves the refill of the pipeline out."),
    ] = 0
    source: Annotated[str, Key("Who says that. It stands beside every estimate.", needed=True)] = ""
    words_per_cycle: Annotated[
        Number,
        Key(
            "Words that a load or store of several of them moves in a cycle.",
            "0: the model counts them as one word",
        ),
    ] = 0

    def beyond(self, words: int) -> int:
        """Cycles of a load or store of `words` words beyond those of one word."""
        return -(-words // self.words_per_cycle) - 1 if self.words_per_cycle and words else 0


def streamed_cycles_per_byte(speed: Speed | None, cache: Cache | None) -> float:
    """Cycles a byte that reading many bytes once, in their order, adds; 0 where no speed is known."""
    if speed is None:
        return 0.0
    size = cache.line_bytes if cache else WORD
    return speed.access(size) / size
