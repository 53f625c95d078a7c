"""The C that counts rows in a streamed region: how many an operator needs, and how many it can make.

Rows that follow a table are those of a formula where one says the same, else of the table as a constant:
needed_N[n] are the rows of its input that operator N needs for its first n rows, ready_N[m] the rows that
it can make of the first m rows of its input. The operators of a group of branches go as far as each can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import gcd
from typing import NamedTuple

from buildtool.emit.ctext import block, numbers, plus
from buildtool.plan.schedule.axis import Axis, AxisTable
from buildtool.plan.schedule.branches import INPUT, Branches, Lane, Read
from buildtool.plan.schedule.schedule import Link


class Scale(NamedTuple):
    """For n > 0 rows, (n * rows + offset) / of rows of the input are needed, but not more than there are."""

    rows: int
    of: int
    offset: int


def row_tables(chain: Iterable[Link], delivered: bool) -> list[str]:
    """The tables of a streamed region that no formula replaces; `delivered`: its image comes row by row."""
    found = []
    for index, link in enumerate(chain):
        if link.branches is None:
            if not index and not delivered:
                continue  # all rows of its input are there
            found += _declare_table("needed", link.group.ops[-1], link.axis, link.input_height)
            continue
        for lane in link.branches.lanes:
            for read in lane.reads:
                found += _declare_table("needed", lane.position, read.axis, read.height)
                found += _declare_table("ready", lane.position, read.axis, read.height)
    return found


def table_high(variable: str, position: int, axis: AxisTable, height: int, *, some: bool) -> str:
    """C for the rows, of `height`, that an operator needs for its first `variable` rows; may be too many.

    `some`: these are not none.
    """
    scale = find_scale(axis, height)
    if scale is None:
        return f"needed_{position}[{variable}]"
    rows = _divide(plus(times(variable, scale.rows), scale.offset), scale.of)
    return rows if some or 0 <= scale.offset < scale.of else f"({variable} > 0 ? {rows} : 0)"


def table_ready(made: str, position: int, axis: AxisTable, height: int) -> str:
    """C for the rows that an operator can make of the first `made` of `height` rows.

    It may be more than there are, or below 0.
    """
    scale = find_scale(axis, height)
    if scale is None:
        return f"ready_{position}[{made}]"
    rows = _divide(plus(times(made, scale.of), scale.of - scale.offset - 1), scale.rows)
    return f"{made} >= {height} ? {len(axis.end)} : {rows}"


def find_scale(axis: AxisTable, height: int) -> Scale | None:
    """The formula that says what a table of `height` input rows says; None if none of its kind does."""
    common = gcd(height, len(axis.end))
    # the second where borders are more, or less, than a whole factor makes
    candidates = (
        (height // common, len(axis.end) // common),
        (1, max(1, round(len(axis.end) / height))),
    )
    return next((found for rows, of in candidates if (found := _offset(axis, height, rows, of))), None)


def _offset(axis: AxisTable, height: int, rows: int, of: int) -> Scale | None:
    """The formula of this kind that says what a table says."""
    least, most = -rows, rows * of + of  # what is divided is never below 0
    for n, end in enumerate(axis.end, 1):
        least = max(least, end * of - n * rows)
        if end < height:
            most = min(most, (end + 1) * of - 1 - n * rows)
    return Scale(rows, of, max(least, min(0, most))) if least <= most else None


def _declare_table(name: str, position: int, axis: Axis, height: int) -> list[str]:
    """A table in C, "needed" or "ready", if there is one to declare."""
    if not isinstance(axis, AxisTable) or find_scale(axis, height) is not None:
        return []
    rows = [0, *axis.end] if name == "needed" else [axis.ready(made) for made in range(height + 1)]
    head = f"static const uint16_t {name}_{position}[{len(rows)}] = {{"
    return ["/* clang-format off */", head, *numbers(map(str, rows), 4), "};", "/* clang-format on */"]


def times(variable: str, factor: int) -> str:
    """C for a product."""
    return variable if factor == 1 else f"{variable} * {factor}"


def _divide(expression: str, by: int) -> str:
    return expression if by == 1 else f"({expression}) / {by}"


# ---- branches ---------------------------------------------------------------------------------------


def counters(lanes: Branches) -> list[str]:
    """What counts from 0: rows made by each operator, rows of the input that were asked for."""
    last = lanes.lanes[-1].position
    return [*(f"row_{lane.position}" for lane in lanes.lanes), f"goal_{last}"]


def advance(
    lanes: Branches,
    input_loop: Callable[[str], Sequence[str]],
    call: Callable[[int, str, str], Sequence[str]],
) -> list[str]:
    """The statements that ask for some rows of the input, and make what can be made of them then.

    `input_loop`: the loop that makes this many rows of the input; `call`: an operator's rows from, to.
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
    """C for read.ready."""
    made = (
        f"goal_{lanes.lanes[-1].position}" if read.lane == INPUT else f"row_{lanes.lanes[read.lane].position}"
    )
    if isinstance(read.axis, AxisTable):
        return table_ready(made, lane.position, read.axis, read.height)
    offset = read.axis.pad - read.axis.kernel + read.axis.stride
    return f"nn_ready({made}, {read.height}, {lane.height}, {offset}, {read.axis.stride})"


def _declare_needed(lanes: Branches, index: int, name: str) -> list[str]:
    """Declares the rows that are needed of what a lane makes (INPUT: of the input)."""
    if index in lanes.exits:
        return [f"const int32_t {name} = need_{lanes.lanes[-1].position};"]
    found = {
        _high(reader.position, read): read.height
        for reader in lanes.lanes
        for read in reader.reads
        if read.lane == index
    }
    height, (first, *others) = max(found.values()), found
    return [
        f"{'' if others else 'const '}int32_t {name} = nn_least({height}, {first});",
        *(f"{name} = nn_most({name}, nn_least({height}, {other}));" for other in others),
    ]


def _high(position: int, read: Read) -> str:
    """C for the rows that an operator needs of what it reads, not below 0."""
    variable, axis = f"need_{position}", read.axis
    if isinstance(axis, AxisTable):
        return table_high(variable, position, axis, read.height, some=False)
    offset = axis.kernel - axis.stride - axis.pad
    rows = plus(times(variable, axis.stride), offset)
    return rows if offset >= 0 else f"nn_most(0, {rows})"
