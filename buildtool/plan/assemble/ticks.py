"""Time as placing sees it: fewer moments than steps, and the groups of a region side by side in it.

Every region takes as many ticks as its workspace has slots. What is touched in a region is there from
its first tick to its last, the pieces of its workspace only in their own slots: groups take turns over
and over, but one turn of each is as good as all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from buildtool.plan.assemble.workspace import Workspace
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Buffer, changed


class Ticks:
    """Turns lives in steps into lives in ticks, and back."""

    def __init__(self, timeline: Timeline, workspaces: Sequence[Workspace]) -> None:
        self._timeline, self._workspaces = timeline, workspaces
        self.starts = [0, *accumulate(w.slots for w in workspaces)]  # region -> its first tick

    def timed(self, buffer: Buffer) -> Buffer:
        """The buffer with its life in ticks."""
        if not self._workspaces:
            return buffer  # of a network of aliases
        first, last = (self._timeline.region_at(step) for step in (buffer.first, buffer.last))
        return changed(buffer, first=self.starts[first], last=self.starts[last + 1] - 1)

    def pieces(self) -> list[Buffer]:
        """All pieces of the workspaces, their lives in ticks."""
        return [
            changed(piece.buffer, first=start + piece.first, last=start + piece.last)
            for start, workspace in zip(self.starts, self._workspaces, strict=False)
            for piece in workspace.pieces
        ]

    def lived(self, part: Buffer, whole: Buffer, timed: Buffer) -> Buffer:
        """A part of a buffer with its life in steps; all of the buffer, its life in steps and in ticks."""
        first, last = whole.first, whole.last
        if part.first != timed.first:
            first = self._timeline.starts[bisect_right(self.starts, part.first) - 1]
        if part.last != timed.last:
            last = self._timeline.starts[bisect_right(self.starts, part.last)] - 1
        return changed(part, first=first, last=last)
