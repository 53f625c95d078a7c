"""What a search for a split found: the networks trained, the steps that led there, and the front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from buildtool.split.types import Choice

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Candidate:
    """A network that was trained: shares of images with the right class, and where it lies.

    `accuracy`: of held-out training images, which decides; `test`: of the test images, for tables alone.
    `figures`: what it needs on the board, each one the better the smaller (`ram`, `flash`, `cost`).
    `key`: of its record. `seconds` and `epochs`: of its own training, behind that of the network before.
    """

    choice: Choice
    accuracy: float
    test: float
    network: Path
    key: str
    seconds: float
    epochs: int
    figures: Figures


@dataclass(frozen=True)
class Tried:
    """A factor that a step tried. `drop`: points lost against the baseline; None: not trained (`why`)."""

    choice: Choice
    factor: int
    candidate: Candidate | None
    drop: float | None
    is_kept: bool
    why: str = ""


@dataclass(frozen=True)
class Step:
    """The search at one block, counted from 0; `baseline` is None where the block allows no factor."""

    block: int
    baseline: Candidate | None
    tried: tuple[Tried, ...]
    kept: int
    why: str = ""


@dataclass(frozen=True)
class Found:
    """What a search found.

    `others` by name, trained as long in all as the chosen network: "original" (not split), "second" (one
    factor smaller), "naive", "shared"; where one cannot be had, `refused` says why. `front`: of all networks
    trained, those that no other beats in accuracy and in every figure. `misses`: why the chosen one does not
    meet the goals ("": it does).
    """

    original: Candidate
    steps: tuple[Step, ...]
    chosen: Candidate
    others: Mapping[str, Candidate]
    refused: Mapping[str, str]
    front: tuple[Candidate, ...]
    misses: str

    @property
    def drop(self) -> float:
        """Points that the chosen network loses against the original, on the test images."""
        return 100 * (self.original.test - self.chosen.test)


def front(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Those candidates that no other beats in accuracy and in every figure, by falling accuracy."""
    unique = list({one.key: one for one in candidates}.values())
    kept = [one for one in unique if not any(_beats(other, one) for other in unique)]
    return tuple(sorted(kept, key=lambda one: (-one.accuracy, sorted(one.figures.items()), one.choice.key())))


def _beats(one: Candidate, other: Candidate) -> bool:
    """Whether a candidate is nowhere worse than another, and somewhere better."""
    pairs = [(one.figures[name], other.figures[name]) for name in one.figures if name in other.figures]
    pairs.append((-one.accuracy, -other.accuracy))
    return all(mine <= its for mine, its in pairs) and any(mine < its for mine, its in pairs)
