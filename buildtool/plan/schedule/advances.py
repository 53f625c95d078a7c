"""The order in which the groups of a streamed region advance. An advance makes some rows of a group's output.

Before a group makes rows, the group before it makes the rows that these need. In the middle of a signal or an
image the same advances come again and again, some rows further down. They are found once and repeated: a
signal of a million samples takes hardly longer than a short one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buildtool.plan.schedule.axis import Axis, AxisTable
from buildtool.plan.schedule.branches import Branches, Progress
from buildtool.plan.schedule.pace import Pace
from buildtool.plan.types import SOURCE, Group, Scheme

Ints = npt.NDArray[np.int32]
_INPUT = -1  # the place of the region's input, behind those of the groups


@dataclass(frozen=True)
class Link:
    """A group of a streamed region with the data of its loops.

    axis: its row axis from tensor `input` to its output.
    pace: the rows of its steps.
    input: the tensor whose rows decide when it advances.
    input_height: rows of that tensor.
    branches: its lanes, if its operators advance together (see `branches`); else None.
    """

    group: Group
    axis: Axis
    pace: Pace
    input: int
    input_height: int
    branches: Branches | None

    @property
    def height(self) -> int:
        """Returns the rows of the group's output."""
        return self.pace.height


class Walk:
    """Lets the groups of a region advance, and records the advances.

    chain: the groups, in order.
    asks: whether the first group asks for the rows of a delivered input image.
    begins: the row with which each group begins; 0 if not given.

    The state of a walk is how far each group has come. Two states are alike if the groups have the same
    distances from each other, counted in rows of the last group. The same advances follow such states, unless
    a group ends before.
    """

    def __init__(self, chain: Sequence[Link], asks: bool, begins: Sequence[int] = ()) -> None:
        self._chain, self._asks = chain, asks
        self._made = [*(begins or [0] * len(chain)), 0]  # rows of each group, and rows that were delivered
        self._progresses = [Progress(link.branches) if link.branches else None for link in chain]
        self._rates = _find_rates(chain)
        self._rate_of = _find_rates_of_operators(chain, self._rates) if self._rates else {}
        self._done: list[Ints] = []
        self._new: list[tuple[int, int, int, int]] = []
        self._seen: dict[tuple[int, ...], int] = {}  # state -> the round that begins with it
        self._rounds: list[tuple[int, int]] = []  # rows of the last group and new advances before each
        self._room: list[list[int]] = []  # for each round: rows that each group can still advance

    def lines(self, until: int = -1) -> Ints:
        """Returns all advances, as an array of rows (group, last operator, y0, y1); group -1 delivers rows.

        They end when the last group has made `until` rows, or all of its rows if `until` is below 0.
        """
        last = len(self._chain) - 1
        end = self._chain[last].height if until < 0 else until
        while (y := self._made[last]) < end:
            if self._rates:
                self._rounds.append((y, len(self._new)))
                self._room.append([*(link.height for link in self._chain), self._chain[0].input_height])
            self._pull(last, y + 1)
            if self._rates:
                self._repeat(end)
        self._put_away(len(self._new))
        return np.concatenate(self._done)

    def _pull(self, index: int, need: int) -> None:
        """Lets group number `index` (-1: the input) advance until it has made `need` rows."""
        if index < 0:
            if self._asks and self._made[_INPUT] < need:
                self._new.append((-1, SOURCE, self._made[_INPUT], need))
                self._made[_INPUT] = need
            return
        link, progress = self._chain[index], self._progresses[index]
        while self._made[index] < need:
            if progress:
                goal = progress.ask()
                if self._room:
                    self._room[-1][index] = min(self._room[-1][index], progress.room())
                self._pull(index - 1, goal)
                for lane, y0, y1 in progress.advance():
                    self._new.append((index, link.group.ops[lane], y0, y1))
                self._made[index] = progress.made[-1]
                continue
            y0 = self._made[index]
            y1 = link.pace.end(y0)
            high = link.axis.high(y1)
            if self._room:
                room = self._room[-1]
                room[index] = min(room[index], link.pace.room(y0))
                room[index - 1] = min(room[index - 1], link.input_height - high)
            self._pull(index - 1, max(0, min(link.input_height, high)))
            self._new.append((index, link.group.ops[-1], y0, y1))
            self._made[index] = y1

    def _repeat(self, end: int) -> None:
        """If an earlier state was like this one, repeats the advances since then, as long as no group ends.

        `end`: the rows of the last group at which the walk ends.
        """
        y = self._made[-2]
        first = self._seen.setdefault(self._state(), len(self._rounds))
        if first == len(self._rounds):
            return
        begin, at = self._rounds[first]
        further = [rate * (y - begin) for rate in self._rates]
        room = [min(rows) for rows in zip(*self._room[first:], strict=True)]
        times = min(rows // more for rows, more in zip([*room, end - y], [*further, y - begin], strict=True))
        if times > 0:
            self._put_away(at)
            lines = np.array(self._new, np.int32)
            shift = np.array([self._rate_of[op] for op in lines[:, 1].tolist()], np.int32) * (y - begin)
            repeated = np.tile(lines, (times + 1, 1, 1))
            repeated[:, :, 2:] += (np.arange(times + 1, dtype=np.int32)[:, None] * shift)[:, :, None]
            self._new = []
            self._done.append(repeated.reshape(-1, 4))
            self._made = [made + times * more for made, more in zip(self._made, further, strict=True)]
            for progress, rate in zip(self._progresses, self._rates, strict=False):
                if progress:
                    progress.skip(times * (y - begin) * rate)
        self._seen, self._rounds, self._room = {}, [], []

    def _state(self) -> tuple[int, ...]:
        """Returns for each group, and for the deliveries, its rows beyond those of the last group.

        If a group makes r rows for each row of the last group (see `_find_rates`), this is its rows less r
        times the rows of the last group. Groups of branches add the result of `Progress.ahead`. States with
        equal results are alike.
        """
        y = self._made[-2]
        ahead = [made - rate * y for made, rate in zip(self._made, self._rates, strict=True)]
        for progress, rate in zip(self._progresses, self._rates, strict=False):
            ahead[:0] = progress.ahead(rate * y) if progress else ()
        return tuple(ahead if self._asks else ahead[:-1])

    def _put_away(self, count: int) -> None:
        """Moves the first `count` new advances into an array of finished ones."""
        self._done.append(np.array(self._new[:count], np.int32).reshape(-1, 4))
        self._new = self._new[count:]


def _find_rates(chain: Sequence[Link]) -> list[int]:
    """Returns how many rows each group makes for each row of the last group.

    The last item is the number of rows of the region's input. Empty if these are not whole numbers.
    """
    rates = [1]
    for link in reversed(chain):
        if isinstance(link.axis, AxisTable) or (link.branches and not link.branches.rates):
            return []
        rates.insert(0, rates[0] * (link.branches.rates[-1] if link.branches else link.axis.stride))
    return [*rates[1:], rates[0]]


def _find_rates_of_operators(chain: Sequence[Link], rates: Sequence[int]) -> dict[int, int]:
    """Returns operator that ends an advance -> its rows for each row of the last group.

    `rates`: the result of `_find_rates`. SOURCE stands for the region's input.
    """
    of = {SOURCE: rates[_INPUT]}
    for link, rate in zip(chain, rates, strict=False):
        if link.branches:
            of.update((op, rate * own) for op, own in zip(link.group.ops, link.branches.rates, strict=False))
        else:
            of[link.group.ops[-1]] = rate
    return of


def branch_advances(lanes: Branches, made: int = -1, *, asks: bool = False) -> Ints:
    """Returns the advances of a group of branches alone, as an array of rows (0, lane, y0, y1).

    They end when the group has made `made` rows, or all of its rows if `made` is below 0. With `asks`, there
    are also rows (-1, SOURCE, y0, y1) for the input rows that the group asks for.
    """
    group = Group(tuple(range(len(lanes.lanes))), Scheme.BRANCHES)
    link = Link(group, Axis(), Pace.even(lanes.lanes[-1].height, 1), -1, lanes.height, lanes)
    return Walk([link], asks).lines(made)
