"""The text of `buildtool split`: its tables, the chosen network's figures, and how to build it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from buildtool.fronts.texts.table import Cell, cell, table

_GUESSED = 1.2  # an accuracy below this factor times guessing suggests an untrained network


@dataclass(frozen=True)
class Table:
    """A table: its title, the columns' titles, rows of cells (None: no value), and lines below the rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def data(self) -> dict[str, Any]:
        """Returns the table as plain values, with a mapping for each row."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": list(self.notes)}

    def text(self) -> str:
        """Returns the table as plain text. If its lines would be too long, each row becomes some lines."""
        return "\n".join([f"{self.title}:", table(self.columns, self.rows), *self.notes])

    def markdown(self) -> str:
        """Returns the table as Markdown."""
        columns = [[row[i] for row in self.rows] for i in range(len(self.columns))]
        numbers = [any(isinstance(one, int | float) for one in column) for column in columns]
        rule = " | ".join("---:" if number else "---" for number in numbers)
        body = [" | ".join(cell(one).replace("|", "\\|") or " " for one in row) for row in self.rows]
        lines = [f"**{self.title}**", "", *(f"| {one} |" for one in (" | ".join(self.columns), rule, *body))]
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes)]) + "\n"


def text(answer: Mapping[str, Any], tables: Sequence[Table], board: str, out: Path) -> str:
    """Returns the tables, the chosen network's figures, and how to build it from the files in `out`."""
    return "\n\n".join([*(one.text() for one in tables), "\n".join(_lines(answer, board, out))])


def _lines(answer: Mapping[str, Any], board: str, out: Path) -> Iterator[str]:
    share, firmware, plan = answer["accuracy"], answer["firmware"], answer["plan"]
    average = f"average factor {answer['average_factor']:.2f}"
    yield f"chosen for {answer['board']}: {answer['structure']}, {average}"
    yield (
        f"accuracy: {100 * share['test']:.2f} % on all test images, {answer['drop']:.2f} points below the "
        f"original's {100 * share['original_test']:.2f} %"
    )
    if share["original_test"] <= _GUESSED * share["guessing"]:
        yield (
            "DOUBTFUL: the original is hardly better than guessing. It may be untrained or trained too "
            "briefly, or it was trained with another --normalise"
        )
    yield (
        f"of {share['images']:,} test images: float {100 * share['float']:.2f} %, "
        f"int8 {100 * share['int8']:.2f} % ({share['reference']}), firmware {100 * share['firmware']:.2f} %"
    )
    yield f"firmware on this machine: {firmware['equal']:,} of {firmware['images']:,} images equal to the bit"
    if firmware["board_not_run"]:
        yield f"firmware for {answer['board']}: not run, {firmware['board_not_run']}"
    else:
        ran, same = firmware["board_images"], firmware["board_equal"]
        yield f"firmware for {answer['board']}, emulated: {same:,} of {ran:,} images equal to the bit"
    if plan is not None:
        weights, code = plan["flash_bytes"], plan["code_bytes"]
        time = "" if plan["estimated_ms"] is None else f", about {plan['estimated_ms']:,.1f} ms"
        yield f"plan: arena {plan['arena_bytes']:,} bytes, weights {weights:,} bytes, F {plan['f']:.3f}{time}"
        if code is None:
            unknown = "is known only after a build, so only the weights are counted"
            yield f"flash: the code's size on {answer['board']} {unknown}"
        else:
            yield f"flash: {weights + code:,} bytes at most, of which code and constants take {code:,}"
    if answer["misses"]:
        yield f"GOALS missed: {answer['misses']}"
    yield f"written to {out}: {', '.join(answer['files'])}"
    if plan is not None:
        yield f"build it: scons board={board} model={out / 'split.tflite'} plan={out / 'split.plan'}"
