"""The page of a sweep: for each board its candidates as a plot and a table, and the failures."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from buildtool.api.requests import options_of
from buildtool.fronts.sweep.unbeaten import Measure, by_board, front, measures
from buildtool.fronts.sweep.worker import DONE, FAILED, STATUS, Row
from buildtool.fronts.texts.html import front as layout
from buildtool.fronts.texts.html.arena import Tick
from buildtool.fronts.texts.html.page import document
from buildtool.fronts.texts.html.wording import between, number, short, size
from buildtool.options import spell

MOST_ROWS = 2000  # rows of all tables; if there are more candidates, the tables have only the fronts
MOST_FAILURES = 500


@dataclass(frozen=True)
class Line:
    """A row of a board's table. `cells` are the options that vary, and `values` the compared figures."""

    name: str
    cells: tuple[str, ...]
    values: tuple[float, ...]
    f: float | None
    best: bool
    commands: tuple[str, ...]


@dataclass(frozen=True)
class Dot:
    """A candidate in the plot. `line` is the number of its row in the table (-1: it has no row)."""

    x: float
    y: float
    best: bool
    line: int
    tip: str


@dataclass(frozen=True)
class Section:
    """A board's part of the page: a table, and a plot with RAM from left to right and time upwards."""

    board: str
    options: tuple[str, ...]
    measures: tuple[Measure, ...]
    lines: tuple[Line, ...]
    dots: tuple[Dot, ...]
    columns: tuple[Tick, ...]
    rows: tuple[Tick, ...]
    candidates: int
    failed: int
    hidden: int

    @property
    def best(self) -> int:
        """The number of candidates that no other candidate beats."""
        return sum(line.best for line in self.lines)


def page(rows: Sequence[Row], title: str, networks: Mapping[str, str]) -> bytes:
    """Returns the HTML file. `networks` maps names of networks to their files ("": not a file)."""
    several = sum(row[STATUS] == DONE for row in rows) > MOST_ROWS
    sections = [_section(board, own, networks, several) for board, own in by_board(rows).items()]
    failed = [row for row in rows if row[STATUS] == FAILED]
    return document(
        "sweep.html",
        ("sorting.js", "sweep.js"),
        title=short(title, 80),
        sections=sections,
        candidates=len(rows),
        failures=[_failure(row) for row in failed[:MOST_FAILURES]],
        failed=len(failed),
        plot_size=layout,
    )


def _section(board: str, rows: Sequence[Row], networks: Mapping[str, str], several: bool) -> Section:
    best, compared = front(rows), measures(rows)
    chosen = set(map(id, best))
    others = [row for row in rows if row[STATUS] == DONE and id(row) not in chosen]
    shown = best if several else [*best, *sorted(others, key=lambda row: float(row["ram"]))]
    names = [key for key in dict.fromkeys(key for row in rows for key in row) if key.startswith("options.")]
    varied = [key for key in names if len({row.get(key) for row in rows}) > 1]
    lines = [_line(row, varied, compared, id(row) in chosen, networks) for row in shown]
    dots, columns, heights = _plot([*best, *others[:MOST_ROWS]], len(best), compared)
    return Section(
        board,
        tuple(key.partition(".")[2] for key in varied),
        tuple(compared),
        tuple(lines),
        dots,
        columns,
        heights,
        candidates=len(rows),
        failed=sum(row[STATUS] == FAILED for row in rows),
        hidden=len(best) + len(others) - len(shown),
    )


def _line(
    row: Row, varied: Sequence[str], compared: Sequence[Measure], best: bool, networks: Mapping[str, str]
) -> Line:
    cells = tuple("" if row.get(key) is None else str(row[key]) for key in varied)
    values = tuple(row[one.key] for one in compared)
    return Line(row["network"], cells, values, row.get("f"), best, commands(row, networks))


def commands(row: Mapping[str, Any], networks: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the commands that make a candidate's plan and its report.

    There are no commands for a network without a file, and for a path that cannot be shown.
    """
    network = networks.get(row["network"], row["network"])
    if not network or not f"{network}{row['board']}".isprintable():
        return ()
    network = f"./{network}" if network.startswith("-") else network  # it would look like an option
    lines = []
    for kind in ("plan", "report"):
        words = ["buildtool", kind, shlex.quote(network), "-b", shlex.quote(row["board"])]
        for option in options_of(kind):
            value = row.get(f"options.{option.name}")
            if value is not None and value is not False:
                flag, _, rest = spell(option.name, value).partition(" ")
                words += [flag, *([shlex.quote(rest)] if rest else [])]
        lines.append(" ".join(words))
    return tuple(lines)


def _failure(row: Row) -> dict[str, str]:
    options = [f"{key.partition('.')[2]}={row[key]}" for key in row if key.startswith("options.")]
    texts = {name: str(row.get(name, "")) for name in ("network", "board", "step", "code", "error", "hint")}
    return {**texts, "options": " ".join(options)}


# ---- the plot --------------------------------------------------------------------------------------------


def _plot(
    rows: Sequence[Row], best: int, compared: Sequence[Measure]
) -> tuple[tuple[Dot, ...], tuple[Tick, ...], tuple[Tick, ...]]:
    """Returns the candidates' dots, and the ticks of both axes. The first `best` rows are the front."""
    time = next((one for one in compared if one.key in ("ms", "cost")), None)
    if not rows or time is None:
        return (), (), ()
    x0, x1 = layout.padded_range([math.log2(max(row["ram"], 1)) for row in rows], 0.06)
    y0, y1 = layout.padded_range([row[time.key] for row in rows], 0.08)
    scales = layout.Scales(x0, x1, max(y0, 0.0), y1)

    def dot(at: int, row: Row) -> Dot:
        figures = [f"{one.title} {number(row[one.key])}" for one in compared]
        tip = f"{short(row['network'])}: {', '.join(figures)}"
        return Dot(scales.x(row["ram"]), scales.y(row[time.key]), at < best, at if at < best else -1, tip)

    sizes = layout.round_sizes(2**scales.x0, 2**scales.x1)
    return (
        tuple(dot(at, row) for at, row in enumerate(rows)),
        tuple(Tick(scales.x(one), size(one)) for one in sizes),
        tuple(Tick(scales.y(one), f"{one:,.6g}") for one in between(scales.y0, scales.y1)),
    )
