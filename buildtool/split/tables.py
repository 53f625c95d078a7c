"""What a search found, as tables: accuracy by block and factor, and the networks side by side.

They are the published method's two tables, with RAM, flash and time of the board beside its parameters. The
same rows are given as text, as Markdown and as plain values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buildtool.split.found import Candidate, Found, Step
    from buildtool.split.pricing import Goals, Price
    from buildtool.split.types import Block

Cell = str | int | float | None
NAMES = {
    "given": "given",
    "original": "original",
    "chosen": "I",
    "second": "II",
    "naive": "naive",
    "shared": "shared",
}
_NOTES = (
    "given: as it came; original: the same, trained on as long as the others; I: the split that was found",
    "II: one factor smaller; naive: without fusion; shared: the first convolutions whole",
    "share, MACs: of the original's",
    "layerwise, streamed: bytes of the arena, layer by layer and at the least",
    "weights: bytes of the weight image; flash: with code and constants, at most",
)


@dataclass(frozen=True)
class Table:
    """A table: a title, the columns' titles, rows of cells (None: there is no value), and lines below it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def data(self) -> dict[str, Any]:
        """As plain values: a mapping a row."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": list(self.notes)}

    def text(self) -> str:
        """As plain text; several rows of many columns become records where lines are too long."""
        from buildtool.fronts.texts.table import table

        return "\n".join([f"{self.title}:", table(self.columns, self.rows), *self.notes])

    def markdown(self) -> str:
        """As Markdown."""
        numbers = [
            any(isinstance(row[i], int | float) for row in self.rows) for i in range(len(self.columns))
        ]
        rule = " | ".join("---:" if number else "---" for number in numbers)
        body = [" | ".join(_words(cell) or " " for cell in row) for row in self.rows]
        lines = [f"**{self.title}**", "", *(f"| {one} |" for one in (" | ".join(self.columns), rule, *body))]
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes)]) + "\n"


def _words(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:,.2f}"
    return f"{cell:,}" if isinstance(cell, int) else cell.replace("|", "\\|")


@dataclass(frozen=True)
class Size:
    """What a network's structure counts: parameters of convolutions and of fusion, MACs of an inference."""

    convolutions: int
    fusion: int
    macs: int


@dataclass(frozen=True)
class Network:
    """A network of Table 2; `price` is None where the planner refuses it."""

    name: str
    candidate: Candidate
    size: Size
    price: Price | None


def by_block(found: Found, blocks: Sequence[Block], factors: Sequence[int]) -> Table:
    """Table 1: accuracy in % of held-out images, by block and splitting factor, and the factor kept."""
    columns = ("block", "channels", "K = 1", *(f"K = {factor}" for factor in factors), "kept")
    notes: list[str] = []
    rows = [_step_row(step, blocks[step.block], factors, notes) for step in found.steps]
    return Table("Accuracy in % by block and splitting factor K", columns, tuple(rows), tuple(notes))


def _step_row(step: Step, block: Block, factors: Sequence[int], notes: list[str]) -> tuple[Cell, ...]:
    if step.baseline is None:
        notes.append(f"{block.name}: not split, {step.why}")
        return (block.name, block.channels, None, *(None for _ in factors), 1)
    cells: list[Cell] = []
    for factor in factors:
        tried = next((one for one in step.tried if one.factor == factor), None)
        if tried is None:
            cells.append(None)
        elif tried.candidate is None:
            cells.append("-")
            notes.append(f"{block.name}, K = {factor}: not trained, {tried.why}")
        else:
            cells.append(100 * tried.candidate.accuracy)
    return (block.name, block.channels, 100 * step.baseline.accuracy, *cells, step.kept)


def side_by_side(
    networks: Sequence[Network], original: Candidate, refused: Mapping[str, str], goals: Goals
) -> Table:
    """Table 2: accuracy on the test images, parameters, work, and what each network takes of the board.

    `original`: whose accuracy drops are counted against; `goals`: within which plans are chosen.
    """
    columns = (
        *("network", "factors", "mean K", "top-1 %", "drop", "convolutions", "fusion", "share", "MACs"),
        *("layerwise", "streamed", "weights", "flash", "ms"),
    )
    whole = next((one.size for one in networks if one.candidate.choice.is_whole), networks[0].size)
    rows = tuple(_network_row(one, whole, original, goals) for one in networks)
    missing = (f"{NAMES.get(name, name)}: {why}" for name, why in sorted(refused.items()))
    return Table("Networks side by side", columns, rows, (*_NOTES, *missing))


def _flash(price: Price | None, goals: Goals) -> Cell:
    """Bytes of flash of the plan that would be built; None where code is not counted."""
    best = price.best(goals) if price else None
    return price.image(best) if price and best and best.code is not None else None


def _network_row(one: Network, whole: Size, original: Candidate, goals: Goals) -> tuple[Cell, ...]:
    choice, size, price = one.candidate.choice, one.size, one.price
    total = size.convolutions + size.fusion
    return (
        NAMES.get(one.name, one.name),
        choice.text + ("" if choice.is_whole else f" {choice.first}"),
        sum(choice.factors) / len(choice.factors),
        100 * one.candidate.test,
        100 * (original.test - one.candidate.test),
        size.convolutions,
        size.fusion,
        total / whole.convolutions if whole.convolutions else None,
        size.macs / whole.macs if whole.macs else None,
        price.layerwise if price else None,
        price.least.bytes if price else None,
        price.flash if price else None,
        _flash(price, goals),
        price.milliseconds if price else None,
    )


def of_front(front: Iterable[Candidate], prices: Mapping[str, Price], goals: Goals) -> Table:
    """The networks that no other beats in accuracy, RAM, flash and cost at once, by falling accuracy."""
    columns = (
        *("structure", "accuracy %", "test %", "RAM streamed", "F of that RAM", "weights", "flash"),
        *("cost", "ms"),
    )
    rows: list[tuple[Cell, ...]] = []
    for one in front:
        key = one.choice.key()
        price = prices.get(key)
        figures: tuple[Cell, ...] = (None,) * 6
        if price is not None:
            best = price.best(goals)
            figures = (price.least.bytes, price.least.f, price.flash, _flash(price, goals))
            figures += (best.cost, best.milliseconds)
        rows.append((key, 100 * one.accuracy, 100 * one.test, *figures))
    return Table("Accuracy against RAM, flash and cost", columns, tuple(rows))
