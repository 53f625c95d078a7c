"""What a run that is not exact says: each operator's proven bound, what was seen, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from buildtool.fronts.texts.table import Cell, count, layer, plain, table

if TYPE_CHECKING:
    from buildtool.schema.runs import OperatorBound, ReferenceAnswer, Run

NAME_WIDTH = 32


def lines(bounds: Sequence[OperatorBound]) -> list[str]:
    """The table of the operators that do not equal the reference; nothing where there are none."""
    titles = ["operator", "tensor", "channels", "proven off", "bound", "seen", "values", "different"]
    rows: list[list[Cell]] = [
        [
            row["operator"],
            layer(row["tensor"], NAME_WIDTH),
            f"{row['channels_rounded']:,} of {row['channels']:,}",
            f"{row['bound_before_rounding']:.4f}",
            row["bound"],
            row["max_abs_diff"],
            row["elements"],
            row["elements_different"],
        ]
        for row in bounds
    ]
    return [table(titles, rows), ""] if rows else []


def judged(reference: ReferenceAnswer) -> str:
    """Who judged, in words; where it was our own executor, why and how to get the other."""
    why = reference["why"]
    return f"{reference['text']}, to the bit" + (f" ({plain(why)})" if why else "")


def beyond(bounds: Sequence[OperatorBound]) -> OperatorBound | None:
    """The first operator that was farther off than is proven."""
    return next((row for row in bounds if row["max_abs_diff"] > row["bound"]), None)


def verdict(answer: Run) -> str:
    """Within how many steps every operator was, or which one was not."""
    wrong = beyond(answer["bounds"])
    if wrong is not None:
        return (
            f"BEYOND ITS BOUND: {wrong['operator']}, tensor '{wrong['tensor']}', differs by "
            f"{count(wrong['max_abs_diff'], 'step')} from the reference on the same inputs, "
            f"{count(wrong['bound'], 'step')} at most are proven"
        )
    most = max((row["bound"] for row in answer["bounds"]), default=0)
    return (
        f"within {count(most, 'step')} in every operator, on the inputs that it had: "
        f"{count(len(answer['bounds']), 'operator')} not exact ({answer['requantise']})"
    )
