"""The C of rows that follow a table: a formula where one says the same, else the table as a constant.

needed_N[n] are the rows of its input that operator N needs for its first n rows, ready_N[m] the rows that
it can make of the first m rows of its input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import gcd
from typing import NamedTuple

from buildtool.emit.layout import numbers
from buildtool.plan.schedule.axis import Axis, AxisTable
from buildtool.plan.schedule.schedule import Link


class Scale(NamedTuple):
    """For n > 0 rows, (n * rows + offset) / of rows of the input are needed, but not more than there are."""

    rows: int
    of: int
    offset: int


def declarations(chain: Iterable[Link], delivered: bool) -> list[str]:
    """The tables of a streamed region that no formula replaces; `delivered`: its image comes row by row."""
    found = []
    for index, link in enumerate(chain):
        if link.branches is None:
            if not index and not delivered:
                continue  # all rows of its input are there
            found += _declared("needed", link.group.ops[-1], link.axis, link.input_height, _needed)
            continue
        for lane in link.branches.lanes:
            for read in lane.reads:
                found += _declared("needed", lane.position, read.axis, read.height, _needed)
                found += _declared("ready", lane.position, read.axis, read.height, _ready)
    return found


def high(variable: str, position: int, axis: AxisTable, height: int, *, some: bool) -> str:
    """C for the rows, of `height`, that an operator needs for its first `variable` rows; may be too many.

    `some`: these are not none.
    """
    scale = scaled(axis, height)
    if scale is None:
        return f"needed_{position}[{variable}]"
    rows = _divided(_plus(_times(variable, scale.rows), scale.offset), scale.of)
    return rows if some or 0 <= scale.offset < scale.of else f"({variable} > 0 ? {rows} : 0)"


def ready(made: str, position: int, axis: AxisTable, height: int) -> str:
    """C for the rows that an operator can make of the first `made` of `height` rows.

    It may be more than there are, or below 0.
    """
    scale = scaled(axis, height)
    if scale is None:
        return f"ready_{position}[{made}]"
    rows = _divided(_plus(_times(made, scale.of), scale.of - scale.offset - 1), scale.rows)
    return f"{made} >= {height} ? {len(axis.end)} : {rows}"


def scaled(axis: AxisTable, height: int) -> Scale | None:
    """The formula that says what a table of `height` input rows says; None if none of its kind does."""
    common = gcd(height, len(axis.end))
    whole = max(
        1, round(len(axis.end) / height)
    )  # where borders are more, or less, than a whole factor makes
    candidates = ((height // common, len(axis.end) // common), (1, whole))
    return next((found for rows, of in candidates if (found := _offset(axis, height, rows, of))), None)


def _offset(axis: AxisTable, height: int, rows: int, of: int) -> Scale | None:
    """The formula of this kind that says what a table says."""
    least, most = -rows, rows * of + of  # what is divided is never below 0
    for n, end in enumerate(axis.end, 1):
        least = max(least, end * of - n * rows)
        if end < height:
            most = min(most, (end + 1) * of - 1 - n * rows)
    return Scale(rows, of, max(least, min(0, most))) if least <= most else None


def _needed(axis: AxisTable, _height: int) -> Sequence[int]:
    return [0, *axis.end]


def _ready(axis: AxisTable, height: int) -> Sequence[int]:
    return [axis.ready(made) for made in range(height + 1)]


def _declared(
    name: str, position: int, axis: Axis, height: int, of: Callable[[AxisTable, int], Sequence[int]]
) -> list[str]:
    """A table in C, if there is one to declare."""
    if not isinstance(axis, AxisTable) or scaled(axis, height) is not None:
        return []
    values = [str(number) for number in of(axis, height)]
    head = f"static const uint16_t {name}_{position}[{len(values)}] = {{"
    return ["/* clang-format off */", head, *numbers(values, 4), "};", "/* clang-format on */"]


def _times(variable: str, factor: int) -> str:
    return variable if factor == 1 else f"{variable} * {factor}"


def _plus(expression: str, offset: int) -> str:
    if not offset:
        return expression
    return f"{expression} {'+' if offset > 0 else '-'} {abs(offset)}"


def _divided(expression: str, by: int) -> str:
    return expression if by == 1 else f"({expression}) / {by}"
