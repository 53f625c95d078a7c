"""Blocks of a network, and choices of a splitting factor for each."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from buildtool.base.errors import UsageError

First = Literal["full", "slice"]
_KEY = re.compile(r"(\d+(?:-\d+)*),(full|slice)(?:,(naive|shared)(\d*))?")


@dataclass(frozen=True)
class Block:
    """A part of a network between two cuts, which one tensor enters and one leaves.

    `index` counts from 0; `name` is "block1" for the first. `layers`: its layers' names in order.
    `channels`: of the tensor that leaves it. `largest`: the largest splitting factor it allows, with which
    every branch has a channel of every layer. `groups`: numbers that a factor must divide, those of grouped
    convolutions. `reason`: why it cannot be split, where `largest` is 1.
    """

    index: int
    name: str
    layers: tuple[str, ...]
    channels: int
    is_residual: bool
    largest: int
    groups: tuple[int, ...] = ()
    reason: str = ""

    def allows(self, factor: int) -> bool:
        """Whether this block can be split into so many branches."""
        return 1 <= factor <= self.largest and all(count % factor == 0 for count in self.groups)


class Fusion(Enum):
    """What joins the branches.

    FUSED: a fusion block at the end of every split block (pooling in each branch, concatenation, 1x1
    convolution). NAIVE: nothing until the blocks end, so branches never see one another. SHARED: as NAIVE,
    but the first convolutions are whole.
    """

    FUSED = "fused"
    NAIVE = "naive"
    SHARED = "shared"


@dataclass(frozen=True)
class Choice:
    """One structure: the splitting factor of each block, in the network's order.

    `first`: what the first convolution of a branch reads of the map before the block: all of it ("full") or
    the branch's share of its channels ("slice"); the network's input is always read whole. `shared`: for
    SHARED, how many convolutions at the network's beginning are whole. Without fusion all factors are equal;
    for NAIVE, blocks of factor 1 may come before the others.
    """

    factors: tuple[int, ...]
    first: First = "slice"
    fusion: Fusion = Fusion.FUSED
    shared: int = 0

    def __post_init__(self) -> None:
        if not self.factors or any(factor < 1 for factor in self.factors):
            raise UsageError(f"splitting factors {self.factors} are not whole numbers above 0")
        if self.first not in ("full", "slice"):
            raise UsageError(f"a branch's first convolution reads 'full' or 'slice', not '{self.first}'")
        if (self.shared > 0) != (self.fusion is Fusion.SHARED):
            raise UsageError("shared convolutions and Fusion.SHARED belong together")
        if self.fusion is not Fusion.FUSED and len(set(self._joined())) > 1:
            raise UsageError(f"without fusion the factors of all blocks are equal, not {self.text}")

    def _joined(self) -> tuple[int, ...]:
        """The factors that must be equal where no fusion lies between blocks."""
        if self.fusion is Fusion.SHARED:
            return self.factors
        whole = next((i for i, factor in enumerate(self.factors) if factor > 1), 0)
        return self.factors[whole:]

    @classmethod
    def whole(cls, blocks: int, first: First = "slice") -> Choice:
        """The original network of so many blocks: every factor is 1."""
        return cls((1,) * blocks, first)

    @classmethod
    def of_key(cls, key: str) -> Choice:
        """The choice that `key()` wrote."""
        found = _KEY.fullmatch(key)
        if found is None:
            raise UsageError(f"'{key}' is not a structure", hint='for example "8-2-2-4-4,slice"')
        factors, first, fusion, shared = found.groups()
        read: First = "full" if first == "full" else "slice"
        return cls(
            tuple(int(text) for text in factors.split("-")),
            read,
            Fusion(fusion or "fused"),
            int(shared or 0),
        )

    def with_factor(self, index: int, factor: int) -> Choice:
        """The same choice but for the factor of one block, counted from 0."""
        factors = (*self.factors[:index], factor, *self.factors[index + 1 :])
        return replace(self, factors=factors)

    @property
    def is_whole(self) -> bool:
        """Whether no block is split."""
        return all(factor == 1 for factor in self.factors)

    @property
    def text(self) -> str:
        """The factors alone: "8-2-2-4-4"."""
        return "-".join(map(str, self.factors))

    def key(self) -> str:
        """A short text for records, file names and tables: "8-2-2-4-4,slice", "4-4,full,shared3"."""
        fusion = "" if self.fusion is Fusion.FUSED else f",{self.fusion.value}"
        return f"{self.text},{self.first}{fusion}{self.shared or ''}"
