"""The front of networks with branches by brute force: `front_twin` with sections.

A section is the smallest run of elements up to a join that reads one tensor from outside; only the join's
result is read elsewhere. Residuals around a section are not in its space.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from front_twin import Twin

from buildtool.base.errors import PlanError
from buildtool.plan.schedule.inner import needs
from buildtool.plan.schedule.receptive import fed_in_parts, row_inputs, streams
from buildtool.plan.types import Group, Region, Scheme


class BranchTwin(Twin):
    """Groups are chains or sections."""

    def regions(self, first: int, end: int, frugal: bool) -> Iterator[Region]:
        """Yields all regions of [first, end)."""
        if end == first + 1:
            yield Region((Group((self.running[first],)),))
        if all(streams(self.graph, self.op(e)) for e in range(first, end)):
            yield from map(Region, self._cut(first, end, frugal))

    def _cut(self, first: int, end: int, frugal: bool) -> Iterator[tuple[Group, ...]]:
        """Yields all ways to cut [first, end) into groups that feed each other."""
        if first == end:
            yield ()
        for stop in range(first + 1, end + 1):
            if stop < end and not (self.feeds(stop - 1) and self.dies[self.made(stop - 1)] < end):
                continue
            for group in self._any_group(first, stop, frugal):
                yield from ((group, *rest) for rest in self._cut(stop, end, frugal))

    def _any_group(self, first: int, stop: int, frugal: bool) -> Iterator[Group]:
        if self._closed(first, stop) and not any(self._closed(f, stop) for f in range(first + 1, stop - 1)):
            group = Group(tuple(self.running[first:stop]), Scheme.BRANCHES, 1)
            try:
                needs(self.graph, group)
            except PlanError:
                return
            yield group
        elif all(self.feeds(e) for e in range(first, stop - 1)):
            yield from self.groups(first, stop, frugal)

    @functools.cache  # noqa: B019
    def _closed(self, first: int, stop: int) -> bool:
        """Whether elements [first, stop) fork from one tensor and join, and are not a chain."""
        inside = range(first, stop)
        results = [self.made(e) for e in inside]
        outside = {t for e in inside for t in self.op(e).inputs if t in self.roots and t not in results}
        outputs = {self.roots.get(t) for t in self.graph.outputs}
        return (
            len(outside) == 1
            and len(row_inputs(self.graph, self.op(stop - 1))) > 1
            and not all(self.feeds(e) for e in inside[:-1])
            and not any(fed_in_parts(self.graph, self.op(e)) for e in inside)
            and all(set(self.readers(t)) <= set(inside) and t not in outputs for t in results[:-1])
        )
