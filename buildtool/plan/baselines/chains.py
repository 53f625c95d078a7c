"""The cheapest partitions of a row of elements: each part has its memory and its work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from buildtool.base.distinct import undominated


class Part(NamedTuple):
    """Elements [first, end), which run together: bytes while they do, multiply-accumulates.

    `rows`: those of a strip; 0 where there are no strips.
    """

    first: int
    end: int
    ram: int
    macs: int
    rows: int = 0


@dataclass(frozen=True)
class Chain:
    """Parts that follow each other from the start: the bytes of the largest one, all the work."""

    ram: int
    macs: int
    parts: tuple[Part, ...]


def undominated_chains(
    parts: Iterable[Part],
    end: int,
    key: Callable[[Chain], tuple[Any, ...]] = lambda chain: (chain.ram, chain.macs),
) -> list[Chain]:
    """The chains from element 0 to `end` that no other beats in both bytes and work, by bytes.

    Dynamic programming over the cuts: a chain to a cut that another one to the same cut equals or beats in
    both can be left out, whatever follows. `key`: bytes and work of a chain, and what decides between equals.
    """
    chains: dict[int, list[Chain]] = {0: [Chain(0, 0, ())]}
    coming: dict[int, list[Chain]] = {}
    for part in sorted(parts, key=lambda part: (part.end, part.first)):
        if part.first not in chains:
            chains[part.first] = undominated(coming.pop(part.first, ()), key)
        coming.setdefault(part.end, []).extend(
            Chain(max(c.ram, part.ram), c.macs + part.macs, (*c.parts, part)) for c in chains[part.first]
        )
    return undominated(coming.get(end, ()), key) if end else chains[0]
