"""The speed of a core and its memories. Board files take the figures from the makers' manuals.

The model is as simple as the tables in manuals. An access to a memory waits some cycles of the core for the
first beat of the bus, and some for each further beat. A cache holds the lines used last, and reading them
does not wait. Two masters on one bus, prefetching and full write buffers are not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from buildtool.base.plain import Key, Kind, power
from buildtool.target.readers import AtLeastZero, Number

WORD = 4  # bytes that the core accesses at once


@dataclass(frozen=True)
class Cache:
    """A cache between the core and slower memories. It fetches whole lines."""

    name: str
    line_bytes: Annotated[int, power(4, 1024), Key("Bytes of a line.")]
    data_bytes: Annotated[int, Key("The cache's bytes for data.")] = 0
    code_bytes: Annotated[int, Key("The cache's bytes for code.")] = 0
    ways: Annotated[Number, Key("The lines of a set.", "0: fully associative")] = 0


@dataclass(frozen=True)
class Speed:
    """How long a memory lets the core wait, in cycles of the core's clock."""

    wait_cycles: Annotated[
        AtLeastZero,
        Key(
            "Cycles of the core that an access waits, at `clock_hz`, beyond the one cycle of every access.",
            "not known: accesses do not wait",
        ),
    ]
    bus_bits: Annotated[int, power(8, 1024), Key("Bits of one beat of the bus; needs `wait_cycles`.")] = 32
    beat_cycles: Annotated[
        AtLeastZero, Key("Cycles of the core for each further beat of one access; needs `wait_cycles`.")
    ] = 1
    cache: Annotated[
        str, Kind("name of a cache"), Key("The cache in front of the memory; needs `wait_cycles`.")
    ] = ""

    def access(self, size: int) -> int:
        """Returns how many cycles the core waits for an access to `size` contiguous bytes."""
        beats = -(-8 * size // self.bus_bits)
        return self.wait_cycles + (max(1, beats) - 1) * self.beat_cycles


@dataclass(frozen=True)
class Pipeline:
    """LLVM's model of the core's pipeline, and figures that it lacks."""

    model: Annotated[str, Key("LLVM's name of its model of the core: the `-mcpu` of `llvm-mca`.")]
    taken_branch_cycles: Annotated[
        AtLeastZero,
        Key("Cycles of a taken branch beyond the model, which has no refill of the pipeline."),
    ] = 0
    source: Annotated[str, Key("Where the figures are from. Every estimate shows it.", needed=True)] = ""
    words_per_cycle: Annotated[
        Number,
        Key(
            "Words that a load or store of several words moves in a cycle.",
            "0: they take the time of one word",
        ),
    ] = 0

    def beyond(self, words: int) -> int:
        """Returns how many more cycles a load or store of `words` words takes than one of a single word."""
        return -(-words // self.words_per_cycle) - 1 if self.words_per_cycle and words else 0


def streamed_cycles_per_byte(speed: Speed | None, cache: Cache | None) -> float:
    """Returns the cycles per byte for which the core waits in a sequential read of a memory; 0 if its speed
    is not known. `cache` is the memory's cache, None without one.
    """
    if speed is None:
        return 0.0
    size = cache.line_bytes if cache else WORD
    return speed.access(size) / size
