"""Writes the C that counts rows in a region that runs row by row: the rows that operators need and can
compute.

If the needed rows follow a table, the code uses a formula that equals the table, or else a constant array:
needed_N[n] is the number of input rows that operator N needs for its first n rows, ready_N[m] the number of
rows that it can compute from the first m input rows. In a group of parallel branches, each operator computes
as many rows as its inputs allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import gcd
from typing import NamedTuple

from buildtool.emit.ctext import block, numbers, plus
from buildtool.plan.schedule.advances import Link
from buildtool.plan.schedule.axis import Axis, AxisTable
from buildtool.plan.schedule.branches import INPUT, Branches, Lane, Read


class Scale(NamedTuple):
    """A formula for the input rows that an operator needs for its first n rows, if n is above 0.

    It is (n * rows + offset) / of, rounded down, but at most the number of input rows.
    """

    rows: int
    of: int
    offset: int


def row_tables(chain: Iterable[Link], delivered: bool) -> list[str]:
    """Returns lines that declare the tables that no formula replaces.

    `delivered` says whether the region's input is an image that the application delivers row by row.
    """
    lines = []
    for index, link in enumerate(chain):
        if link.branches is None:
            if not index and not delivered:
                continue  # all rows of its input are in the arena
            lines += _declare_table("needed", link.group.ops[-1], link.axis, link.input_height)
            continue
        for lane in link.branches.lanes:
            for read in lane.reads:
                lines += _declare_table("needed", lane.position, read.axis, read.height)
                lines += _declare_table("ready", lane.position, read.axis, read.height)
    return lines


def table_high(variable: str, position: int, axis: AxisTable, height: int, *, some: bool) -> str:
    """Returns C for the number of input rows that an operator needs for its first `variable` rows.

    The value may exceed `height`, the number of input rows. `position` is the operator's. `axis` says which
    input rows it reads. `some`: whether `variable` is certainly above 0, which makes the C simpler.
    """
    scale = find_scale(axis, height)
    if scale is None:
        return f"needed_{position}[{variable}]"
    rows = _divide(plus(times(variable, scale.rows), scale.offset), scale.of)
    return rows if some or 0 <= scale.offset < scale.of else f"({variable} > 0 ? {rows} : 0)"


def table_ready(rows_made: str, position: int, axis: AxisTable, height: int) -> str:
    """Returns C for the number of rows that an operator can compute from its first `rows_made` input rows.

    It may exceed the operator's rows, or be below 0. `height` is the number of input rows.
    """
    scale = find_scale(axis, height)
    if scale is None:
        return f"ready_{position}[{rows_made}]"
    rows = _divide(plus(times(rows_made, scale.of), scale.of - scale.offset - 1), scale.rows)
    return f"{rows_made} >= {height} ? {len(axis.end)} : {rows}"


def find_scale(axis: AxisTable, height: int) -> Scale | None:
    """Returns the formula that equals the table `axis` for an input of `height` rows; None if there is
    none.
    """
    common = gcd(height, len(axis.end))
    # the second is for outputs whose borders make them larger or smaller than a whole factor
    candidates = (
        (height // common, len(axis.end) // common),
        (1, max(1, round(len(axis.end) / height))),
    )
    return next((scale for rows, of in candidates if (scale := _find_offset(axis, height, rows, of))), None)


def _find_offset(axis: AxisTable, height: int, rows: int, of: int) -> Scale | None:
    """Returns the formula with the ratio rows / of that equals the table `axis`; None if there is none."""
    least, most = -rows, rows * of + of  # the dividend is never below 0
    for n, end in enumerate(axis.end, 1):
        least = max(least, end * of - n * rows)
        if end < height:
            most = min(most, (end + 1) * of - 1 - n * rows)
    return Scale(rows, of, max(least, min(0, most))) if least <= most else None


def _declare_table(name: str, position: int, axis: Axis, height: int) -> list[str]:
    """Returns lines that declare an operator's table `name`, "needed" or "ready"; none if a formula replaces
    it.
    """
    if not isinstance(axis, AxisTable) or find_scale(axis, height) is not None:
        return []
    rows = [0, *axis.end] if name == "needed" else [axis.ready(count) for count in range(height + 1)]
    head = f"static const uint16_t {name}_{position}[{len(rows)}] = {{"
    return ["/* clang-format off */", head, *numbers(map(str, rows), 4), "};", "/* clang-format on */"]


def times(variable: str, factor: int) -> str:
    """Returns C for the product of a variable and a number."""
    return variable if factor == 1 else f"{variable} * {factor}"


def _divide(expression: str, by: int) -> str:
    return expression if by == 1 else f"({expression}) / {by}"


# ---- branches ---------------------------------------------------------------------------------------


def counters(lanes: Branches) -> list[str]:
    """Returns the names of the row counters of a group of branches: the rows that each operator (lane) has
    computed, and the input rows that were requested.
    """
    last = lanes.lanes[-1].position
    return [*(f"row_{lane.position}" for lane in lanes.lanes), f"goal_{last}"]


def advance(
    lanes: Branches,
    input_loop: Callable[[str], Sequence[str]],
    call: Callable[[int, str, str], Sequence[str]],
) -> list[str]:
    """Returns the statements for one step of a group of branches: they request some input rows, and then let
    every operator (lane) compute all rows for which its inputs are ready.

    `input_loop` gets C for a number of rows, and returns the loop that provides that many input rows. `call`
    returns the code that computes an operator's rows [from, to).
    """
    last = lanes.lanes[-1].position
    goal = f"goal_{last}"
    lines = [
        "/* Rows that the next ones of the output need. */",
        f"const int32_t need_{last} = nn_least({lanes.lanes[-1].height}, row_{last} + {lanes.step});",
    ]
    for index in range(len(lanes.lanes) - 2, -1, -1):
        lines += _declare_needed(lanes, index, f"need_{lanes.lanes[index].position}")
    lines += [
        *_declare_needed(lanes, INPUT, f"asked_{last}"),
        f"{goal} = nn_most({goal}, nn_least(asked_{last}, {goal} + {lanes.pace}));",
        *input_loop(goal),
    ]
    for lane in lanes.lanes:
        row, end = f"row_{lane.position}", f"end_{lane.position}"
        first, *others = (_ready(lanes, lane, read) for read in lane.reads)
        lines += [
            f"{'' if others else 'const '}int32_t {end} = nn_least(need_{lane.position}, {first});",
            *(f"{end} = nn_least({end}, {other});" for other in others),
            *block(f"if ({row} < {end})", [*call(lane.position, row, end), f"{row} = {end};"]),
        ]
    return lines


def _ready(lanes: Branches, lane: Lane, read: Read) -> str:
    """Returns C for the number of rows that a lane can compute, as far as its operand `read` is concerned."""
    rows_made = (
        f"goal_{lanes.lanes[-1].position}" if read.lane == INPUT else f"row_{lanes.lanes[read.lane].position}"
    )
    if isinstance(read.axis, AxisTable):
        return table_ready(rows_made, lane.position, read.axis, read.height)
    offset = read.axis.pad - read.axis.kernel + read.axis.stride
    return f"nn_ready({rows_made}, {read.height}, {lane.height}, {offset}, {read.axis.stride})"


def _declare_needed(lanes: Branches, index: int, name: str) -> list[str]:
    """Returns lines that declare the variable `name`: how many rows of a lane's output the other lanes need.

    `index` is the lane; INPUT means the region's input.
    """
    if index in lanes.exits:
        return [f"const int32_t {name} = need_{lanes.lanes[-1].position};"]
    heights = {
        _high(reader.position, read): read.height
        for reader in lanes.lanes
        for read in reader.reads
        if read.lane == index
    }
    height, (first, *others) = max(heights.values()), heights
    return [
        f"{'' if others else 'const '}int32_t {name} = nn_least({height}, {first});",
        *(f"{name} = nn_most({name}, nn_least({height}, {other}));" for other in others),
    ]


def _high(position: int, read: Read) -> str:
    """Returns C for the number of input rows, at least 0, that an operator of a group of branches needs.

    They are for the rows of its own output that later operators need: the C variable need_N, where N is
    `position`. `read`: the input.
    """
    variable, axis = f"need_{position}", read.axis
    if isinstance(axis, AxisTable):
        return table_high(variable, position, axis, read.height, some=False)
    offset = axis.kernel - axis.stride - axis.pad
    rows = plus(times(variable, axis.stride), offset)
    return rows if offset >= 0 else f"nn_most(0, {rows})"
