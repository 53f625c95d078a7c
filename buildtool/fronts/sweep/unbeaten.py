"""The candidates of a board that no other candidate beats in memory, flash, time and accuracy.

If accuracies are not known, the smallest of several networks would beat all others. So more
multiply-accumulates count as better then: a network is compared with networks that do as much work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from buildtool.fronts.sweep.worker import DONE, STATUS, Row


@dataclass(frozen=True)
class Measure:
    """A figure that is compared: its key in rows, its title, and whether more of it is better."""

    key: str
    title: str
    more: bool = False


def measures(rows: Sequence[Row]) -> list[Measure]:
    """Returns the figures to compare: RAM, and those of flash, time and accuracy that all rows have."""
    done = [row for row in rows if row[STATUS] == DONE]

    def everywhere(*keys: str) -> str:
        return next((key for key in keys if done and all(row.get(key) is not None for row in done)), "")

    flash, time = everywhere("flash", "weights"), everywhere("ms", "cost")
    unit = done[0].get("cost_unit", "") if done else ""
    titles = {"flash": "flash, bytes", "weights": "weights, bytes", "ms": "ms", "cost": str(unit)}
    chosen = [Measure("ram", "RAM, bytes"), *(Measure(key, titles[key]) for key in (flash, time) if key)]
    if everywhere("top1"):
        return [*chosen, Measure("top1", "top-1, %", more=True)]
    several = len({row["network"] for row in done}) > 1
    return [*chosen, Measure("macs_layerwise", "MACs", more=True)] if several else chosen


def front(rows: Sequence[Row]) -> list[Row]:
    """Returns the candidates that no other one beats, by ascending RAM; of equal ones only the first."""
    compared = measures(rows)

    def place(row: Row) -> tuple[float, ...]:
        return tuple(-row[one.key] if one.more else row[one.key] for one in compared)

    done = sorted(((place(row), row) for row in rows if row[STATUS] == DONE), key=lambda one: one[0])
    places, best = np.empty((len(done), len(compared))), list[Row]()
    for values, row in done:
        if not (places[: len(best)] <= np.array(values)).all(axis=1).any():
            places[len(best)] = values
            best.append(row)
    return best


def by_board(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Returns the rows of each board."""
    boards: dict[str, list[Row]] = {}
    for row in rows:
        boards.setdefault(row["board"], []).append(row)
    return boards
