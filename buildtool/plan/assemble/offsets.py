"""Where everything of a plan lies: buffers and workspaces placed together, tensors moved where it helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from buildtool.modes import Image
from buildtool.plan.assemble.lives import Lives
from buildtool.plan.assemble.moves import Parted, place_in_parts
from buildtool.plan.assemble.placement import place
from buildtool.plan.assemble.ticks import Ticks
from buildtool.plan.assemble.workspace import Workspace
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Buffer, BufferKind, Move, Overlap
from buildtool.session import Session

MOST_PLACEMENTS = 512  # that a session keeps, of some kilobytes each


@dataclass(frozen=True)
class Laid:
    """A plan's buffers with their offsets; overlaps and moves name them by position.

    `height`: bytes of the arena; `bound`: no placement of these buffers is lower.
    """

    buffers: tuple[Buffer, ...]
    overlaps: tuple[Overlap, ...]
    moves: tuple[Move, ...]
    height: int
    bound: int


def lay(
    timeline: Timeline,
    lives: Lives,
    buffers: Sequence[Buffer],
    extra: Sequence[Buffer],
    workspaces: Sequence[Workspace],
    overlaps: Sequence[Overlap],
    alignment: int,
    enough: float,
    session: Session,
) -> Laid:
    """Everything as low as found: first `buffers` (in parts where they move), then windows and scratch, then
    `extra`.

    `overlaps`: those that are permitted, by positions in `buffers`. `enough`: see `assemble`. The session
    keeps placements: limits are kept by asking for the same few plans again and again.
    """
    ticks = Ticks(timeline, workspaces)
    known = [*buffers, *extra]
    timed = [*map(ticks.timed, known), *ticks.pieces()]
    key = (tuple(timed), tuple(overlaps), alignment)
    placed = session.remember("placements", key, lambda: place(timed, overlaps, alignment), MOST_PLACEMENTS)
    parted = Parted(placed, tuple(range(len(timed))), ())
    if placed.height > enough:
        still = timeline.graph.inputs if timeline.image == Image.RESIDENT else ()
        fixed = {i for i, b in enumerate(timed) if b.kind is not BufferKind.TENSOR or b.tensors[0] in still}
        below = placed.height
        parts = session.remember(
            "placements in parts",
            (*key, tuple(ticks.starts), tuple(sorted(fixed)), below, enough),
            lambda: place_in_parts(timed, overlaps, alignment, ticks.starts, fixed, below, enough),
            MOST_PLACEMENTS,
        )
        parted = parts or parted
    pairs = list(zip(parted.placed.buffers, parted.origin, strict=True))
    lived = [(ticks.lived(b, known[i]), i) for b, i in pairs if i < len(known)]
    places = [b.offset for b, i in pairs if i >= len(known)]
    pieces = [piece for workspace in workspaces for piece in workspace.pieces]
    inside = [b for piece, at in zip(pieces, places, strict=True) for b in piece.buffers(at, lives)]
    return Laid(
        (
            *(b for b, i in lived if i < len(buffers)),
            *inside,
            *(b for b, i in lived if i >= len(buffers)),
        ),
        parted.placed.overlaps,
        parted.moves,
        parted.placed.height,
        parted.placed.bound,
    )
