"""How many rows a group makes in each of its steps.

At an edge of a tensor some of the rows that a step reads are padding, which no window holds. A group of
scheme EDGES uses this room: its first and its last step make more rows than the others, but read no more rows
of the group's first inner tensor than the others do. So fewer rows are made twice:

    rows of a 7 x 7 convolution's input, 5 rows out, stride 2, padding 3
    even steps of 1   0-3  0-5  1-7  3-9  5-9      29 rows are made
    with edges        0-5       1-7  3-9           20 rows are made, and the window has 7 as before
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from buildtool.graph.types import Graph
from buildtool.plan.schedule.axis import Axis
from buildtool.plan.schedule.inner import inner_tensors, needs
from buildtool.plan.schedule.ranges import Ranges, in_steps
from buildtool.plan.schedule.receptive import rows
from buildtool.plan.types import Group, Scheme


class Pace(NamedTuple):
    """The steps of a group.

    height: rows of its output.
    step: rows of a step.
    first: rows of the first step.
    last: the last step begins as soon as at most this many rows are left.
    """

    height: int
    step: int
    first: int
    last: int

    @staticmethod
    def even(height: int, step: int, more: tuple[int, int] = (0, 0)) -> Pace:
        """Returns the steps of a group with `height` rows of output: steps of `step` rows each.

        `more`: how many rows more the first and the last step make.
        """
        return Pace(height, step, step + more[0], step + more[1])

    @property
    def is_even(self) -> bool:
        """Returns whether all steps make equally many rows; the last step may make fewer."""
        return self.first == self.step == self.last

    def end(self, row: int) -> int:
        """Returns one past the last row of the step that begins with this row."""
        if self.height - row <= self.last:
            return self.height
        return min(self.height, row + (self.step if row else self.first))

    def room(self, row: int) -> int:
        """Returns by how many rows a step could begin later and still make `step` rows.

        `row`: the row with which the step begins. The result is below 0 if the step makes more than `step`
        rows.
        """
        if not row and self.first > self.step:
            return -1
        return self.height - row - (self.step if self.last == self.step else self.last + 1)

    def made(self, needed: int) -> int:
        """Returns how many rows are made as soon as a step ends and at least `needed` rows are made."""
        if needed <= 0:
            return 0
        later = -(-max(0, needed - self.first) // self.step)  # steps after the first one
        before = self.first + (later - 1) * self.step if later else 0
        return self.height if self.height - before <= self.last else self.end(before)

    def steps(self, made: int, begin: int = 0) -> Ranges:
        """Returns the rows of each step, up to the step with which `made` rows are made.

        `begin`: the row with which the first step begins; 0 unless the steps are even.
        """
        if self.is_even:
            return in_steps(made, self.step, begin)
        later = np.arange(self.first, self.height, self.step)
        before = np.concatenate((np.zeros(1, np.int64), later[:-1]))[: len(later)]
        begins = np.concatenate((np.zeros(1, np.int64), later[self.height - before > self.last]))
        wanted = begins < made
        return Ranges(begins[wanted], np.append(begins[1:], self.height)[wanted])


def edge_rows(axis: Axis, height: int, size: int) -> tuple[int, int]:
    """Returns by how many rows the first step, and the last step, of a group may be longer than its others.

    With this length they read no more rows of a tensor than a step in the middle, since the others are
    padding. `axis`: from this tensor, which has `size` rows, to the group's output of `height` rows.
    """
    below = axis.high(height) - size
    return max(0, axis.pad) // axis.stride, max(0, below) // axis.stride


def pace(graph: Graph, group: Group) -> Pace:
    """Returns the steps of a group. They are even, unless its scheme is EDGES."""
    height = rows(graph, graph.ops[group.ops[-1]])
    if group.scheme is not Scheme.EDGES:
        return Pace.even(height, group.rows_per_step)
    tensor = inner_tensors(graph, group)[0]
    more = edge_rows(needs(graph, group)[tensor][0], height, graph.tensors[tensor].nhwc[1])
    return Pace.even(height, group.rows_per_step, more)
