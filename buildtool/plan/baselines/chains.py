"""The best ways to cut a sequence of elements into parts, each with its memory and its work.

An element is a layer or an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from buildtool.base.distinct import undominated


class Part(NamedTuple):
    """Elements [first, end), which run together.

    ram: their memory in bytes.
    macs: their multiply-accumulates.
    rows: the rows of a strip; 0 without strips.
    """

    first: int
    end: int
    ram: int
    macs: int
    rows: int = 0


@dataclass(frozen=True)
class Chain:
    """Consecutive parts from element 0, with the bytes of the largest part and the work of all parts."""

    ram: int
    macs: int
    parts: tuple[Part, ...]


def undominated_chains(
    parts: Iterable[Part],
    end: int,
    key: Callable[[Chain], tuple[Any, ...]] = lambda chain: (chain.ram, chain.macs),
) -> list[Chain]:
    """Returns the chains from element 0 to `end` on the Pareto front of bytes and work, least bytes first.

    `parts`: the parts that chains may consist of. `key`: returns the bytes and work of a chain, then values
    that decide between equal chains. The method is dynamic programming over the cuts. At each cut only the
    front of the chains that end there is needed.
    """
    chains: dict[int, list[Chain]] = {0: [Chain(0, 0, ())]}
    pending: dict[int, list[Chain]] = {}
    for part in sorted(parts, key=lambda part: (part.end, part.first)):
        if part.first not in chains:
            chains[part.first] = undominated(pending.pop(part.first, ()), key)
        pending.setdefault(part.end, []).extend(
            Chain(max(c.ram, part.ram), c.macs + part.macs, (*c.parts, part)) for c in chains[part.first]
        )
    return undominated(pending.get(end, ()), key) if end else chains[0]
