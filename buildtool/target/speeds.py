"""How fast a core and its memories are, as a board's file says it from its maker's manuals.

What the manuals print is simple, and so is what is made of it. An access to a memory waits so many cycles of
the core for the first bits, and so many for each further beat of the bus. A cache holds lines, the ones used
last; what it holds takes no time of its own. Nothing is said of two masters on one bus, of prefetching, or of
a write buffer that is full.
"""

from __future__ import annotations

from dataclasses import dataclass

WORD = 4  # bytes of an access of the core


@dataclass(frozen=True)
class Cache:
    """What is kept of slower memories: bytes for data and for code, in lines that are fetched whole.

    `ways`: lines among which one is chosen by its address; 0: a line may lie anywhere.
    """

    name: str
    line_bytes: int
    data_bytes: int = 0
    code_bytes: int = 0
    ways: int = 0


@dataclass(frozen=True)
class Speed:
    """How long a memory lets the core wait, in cycles of the core's clock; the bus has `bus_bits` bits.

    `wait_cycles`: until the first beat is there, beyond the cycle that every access has. `beat_cycles`: for
    each further beat. `cache`: the name of the cache between the core and the memory, "" for none.
    """

    wait_cycles: int
    bus_bits: int = 32
    beat_cycles: int = 1
    cache: str = ""

    def access(self, size: int) -> int:
        """Cycles that the core waits for `size` bytes which lie side by side."""
        beats = -(-8 * size // self.bus_bits)
        return self.wait_cycles + (max(1, beats) - 1) * self.beat_cycles


@dataclass(frozen=True)
class Pipeline:
    """LLVM's model of the core's pipeline, by its name there, and what that leaves out.

    `taken_branch_cycles`: what a taken branch takes beyond the model, and `source` who says that. Models
    count a load or store of several words as one of a word: it takes a cycle for every `words_per_cycle` of
    its words (0: as models have it).
    """

    model: str
    taken_branch_cycles: int = 0
    source: str = ""
    words_per_cycle: int = 0

    def beyond(self, words: int) -> int:
        """Cycles of a load or store of so many words beyond those of a word."""
        return -(-words // self.words_per_cycle) - 1 if self.words_per_cycle and words else 0


def streamed(speed: Speed | None, cache: Cache | None) -> float:
    """Cycles a byte that reading many bytes once, in their order, adds; 0 where no speed is known."""
    if speed is None:
        return 0.0
    size = cache.line_bytes if cache else WORD
    return speed.access(size) / size
