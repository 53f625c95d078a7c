"""The C of a group of branches: how far each operator can go, and the call that takes it there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from buildtool.emit import rowtables
from buildtool.plan.schedule.axis import AxisTable
from buildtool.plan.schedule.branches import INPUT, Branches, Lane, Read

Lines = list[str]


def counters(lanes: Branches) -> list[str]:
    """What counts from 0: rows made by each operator, rows of the input that were asked for."""
    last = lanes.lanes[-1].position
    return [*(f"row_{lane.position}" for lane in lanes.lanes), f"goal_{last}"]


def advance(
    lanes: Branches,
    input_loop: Callable[[str], Sequence[str]],
    call: Callable[[int, str, str], Sequence[str]],
) -> Lines:
    """The statements that ask for some rows of the input, and make what can be made of them then.

    `input_loop`: the loop that makes so many rows of the input; `call`: an operator's rows from, to.
    """
    last = lanes.lanes[-1].position
    goal = f"goal_{last}"
    lines = ["/* Rows that the next ones of the output need. */"]
    lines.append(
        f"const int32_t need_{last} = nn_least({lanes.lanes[-1].height}, row_{last} + {lanes.step});"
    )
    for index in range(len(lanes.lanes) - 2, -1, -1):
        lines += _needed(lanes, index, f"need_{lanes.lanes[index].position}")
    lines += _needed(lanes, INPUT, f"asked_{last}")
    lines.append(f"{goal} = nn_most({goal}, nn_least(asked_{last}, {goal} + {lanes.pace}));")
    lines += input_loop(goal)
    for lane in lanes.lanes:
        lines += _step(lanes, lane, call)
    return lines


def _step(lanes: Branches, lane: Lane, call: Callable[[int, str, str], Sequence[str]]) -> Lines:
    """One operator goes as far as it can, and as it has to."""
    row, end, need = (f"{name}_{lane.position}" for name in ("row", "end", "need"))
    first, *others = (_ready(lanes, lane, read) for read in lane.reads)
    mutable = "" if others else "const "
    return [
        f"{mutable}int32_t {end} = nn_least({need}, {first});",
        *(f"{end} = nn_least({end}, {other});" for other in others),
        f"if ({row} < {end}) {{",
        *("    " + line for line in call(lane.position, row, end)),
        f"    {row} = {end};",
        "}",
    ]


def _ready(lanes: Branches, lane: Lane, read: Read) -> str:
    """C for read.ready."""
    made = (
        f"goal_{lanes.lanes[-1].position}" if read.lane == INPUT else f"row_{lanes.lanes[read.lane].position}"
    )
    if isinstance(read.axis, AxisTable):
        return rowtables.ready(made, lane.position, read.axis, read.height)
    offset = read.axis.pad - read.axis.kernel + read.axis.stride
    return f"nn_ready({made}, {read.height}, {lane.height}, {offset}, {read.axis.stride})"


def _needed(lanes: Branches, index: int, name: str) -> Lines:
    """Declares the rows that are needed of what a lane makes (INPUT: of the input)."""
    if index in lanes.exits:
        return [f"const int32_t {name} = need_{lanes.lanes[-1].position};"]
    found: dict[str, int] = {}
    for reader in lanes.lanes:
        for read in reader.reads:
            if read.lane == index:
                found[_high(reader.position, read)] = read.height
    first, *others = found
    height = max(found.values())
    if not others:
        return [f"const int32_t {name} = nn_least({height}, {first});"]
    return [
        f"int32_t {name} = nn_least({height}, {first});",
        *(f"{name} = nn_most({name}, nn_least({height}, {other}));" for other in others),
    ]


def _high(position: int, read: Read) -> str:
    """C for the rows that an operator needs of what it reads, not below 0."""
    variable, axis = f"need_{position}", read.axis
    if isinstance(axis, AxisTable):
        return rowtables.high(variable, position, axis, read.height, some=False)
    scaled = variable if axis.stride == 1 else f"{variable} * {axis.stride}"
    offset = axis.kernel - axis.stride - axis.pad
    if not offset:
        return scaled
    return f"{scaled} + {offset}" if offset > 0 else f"nn_most(0, {scaled} - {-offset})"
