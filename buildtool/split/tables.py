"""What a search found, as tables: accuracy by block and factor, and the networks side by side.

They are the published method's two tables, with RAM, flash and time of the board beside its parameters.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from buildtool.base.errors import BuildtoolError
from buildtool.fronts.texts.split import Table
from buildtool.fronts.texts.table import Cell
from buildtool.split.branches import split_steps
from buildtool.split.graphs import steps_of
from buildtool.split.pricing import Price
from buildtool.split.search import Candidate, Found, Step, Work, front
from buildtool.split.types import Choice, Counts, counts_in
from buildtool.split.wanted import Goals

ORDER = ("given", "original", "chosen", "second", "naive", "shared")  # of Table 2
_NAMES = {"chosen": "I", "second": "II"}  # the published ones
_NOTES = (
    "given: as it came; original: the same, trained on as long as the others; I: the split that was found",
    "II: one factor smaller; naive: without fusion; shared: the first convolutions whole",
    "share, MACs: of the original's",
    "layerwise, streamed: bytes of the arena, layer by layer and at the least",
    "weights: bytes of the weight image; flash: with code and constants, at most",
)


@dataclass(frozen=True)
class Network:
    """A network of Table 2; `price` is None where the planner refuses it."""

    name: str
    candidate: Candidate
    counts: Counts
    price: Price | None


def tables(work: Work, searches: Sequence[Found], found: Found) -> tuple[Table, ...]:
    """Table 1 of each search, Table 2 with the network of `found`, which is taken, and the front of all."""
    steps, goals = steps_of(work.base), work.wanted.goals

    def price(choice: Choice) -> Price | None:
        with contextlib.suppress(BuildtoolError):  # the planner refuses it
            return work.prices.price(choice)
        return None

    listed = {"given": found.original, **found.others, "chosen": found.chosen}
    rows = []
    for name in (name for name in ORDER if name in listed):
        choice = listed[name].choice
        counts = counts_in(split_steps(steps, work.blocks, choice))
        rows.append(Network(name, listed[name], counts, price(choice)))
    refused = {name: why for one in searches for name, why in one.refused.items()}
    best = [(one, price(one.choice)) for one in front([one for each in searches for one in each.front])]
    return (
        *(by_block(one, work.wanted.factors) for one in searches),
        side_by_side(rows, found.original, refused, goals),
        of_front(best, goals),
    )


def by_block(found: Found, factors: Sequence[int]) -> Table:
    """Table 1: accuracy in % of held-out images, by block and splitting factor, and the factor kept."""
    columns = ("block", "channels", "K = 1", *(f"K = {factor}" for factor in factors), "kept")
    notes: list[str] = []
    rows = [_step_row(step, factors, notes) for step in found.steps]
    return Table("Accuracy in % by block and splitting factor K", columns, tuple(rows), tuple(notes))


def _step_row(step: Step, factors: Sequence[int], notes: list[str]) -> tuple[Cell, ...]:
    block = step.block
    if step.baseline is None:
        notes.append(f"{block.name}: not split, {step.why}")
        return (block.name, block.channels, None, *(None for _ in factors), 1)
    cells: dict[int, Cell] = {}
    for tried in step.tried:
        if tried.candidate is None:
            cells[tried.factor] = "-"
            notes.append(f"{block.name}, K = {tried.factor}: not trained, {tried.why}")
        else:
            cells[tried.factor] = 100 * tried.candidate.accuracy
    accuracies = [cells.get(factor) for factor in factors]
    return (block.name, block.channels, 100 * step.baseline.accuracy, *accuracies, step.kept)


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
    whole = next((one.counts for one in networks if one.candidate.choice.is_whole), networks[0].counts)
    rows = tuple(_network_row(one, whole, original, goals) for one in networks)
    missing = (f"{_NAMES.get(name, name)}: {why}" for name, why in sorted(refused.items()))
    return Table("Networks side by side", columns, rows, (*_NOTES, *missing))


def _network_row(one: Network, whole: Counts, original: Candidate, goals: Goals) -> tuple[Cell, ...]:
    choice, counts, price = one.candidate.choice, one.counts, one.price
    total = counts.convolutions + counts.fusion
    return (
        _NAMES.get(one.name, one.name),
        choice.text + ("" if choice.is_whole else f" {choice.first}"),
        choice.average,
        100 * one.candidate.test,
        100 * (original.test - one.candidate.test),
        counts.convolutions,
        counts.fusion,
        total / whole.convolutions if whole.convolutions else None,
        counts.macs / whole.macs if whole.macs else None,
        price.layerwise if price else None,
        price.least.bytes if price else None,
        price.flash if price else None,
        _flash(price, goals),
        price.best(Goals()).milliseconds if price else None,
    )


def _flash(price: Price | None, goals: Goals) -> Cell:
    """Bytes of flash of the plan that would be built; None where code is not counted."""
    if price is None or (best := price.best(goals)).code is None:
        return None
    return price.image(best)


def of_front(front: Iterable[tuple[Candidate, Price | None]], goals: Goals) -> Table:
    """The networks that no other beats in accuracy, RAM, flash and cost at once, by falling accuracy."""
    columns = (
        *("structure", "accuracy %", "test %", "RAM streamed", "F of that RAM", "weights", "flash"),
        *("cost", "ms"),
    )
    rows: list[tuple[Cell, ...]] = []
    for one, price in front:
        figures: tuple[Cell, ...] = (None,) * 6
        if price is not None:
            best = price.best(goals)
            figures = (price.least.bytes, price.least.f, price.flash, _flash(price, goals))
            figures += (best.cost, best.milliseconds)
        rows.append((one.choice.key(), 100 * one.accuracy, 100 * one.test, *figures))
    return Table("Accuracy against RAM, flash and cost", columns, tuple(rows))
