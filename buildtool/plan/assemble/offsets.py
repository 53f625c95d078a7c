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
) -> Laid:
    """Everything as low as found: first `buffers` (in parts where they move), then windows and scratch, then
    `extra`.

    `overlaps`: those that are permitted, by positions in `buffers`. `enough`: see `assemble`.
    """
    ticks = Ticks(timeline, workspaces)
    known = [*buffers, *extra]
    timed = [*map(ticks.timed, known), *ticks.pieces()]
    placed = place(timed, overlaps, alignment)
    parted = Parted(placed, tuple(range(len(timed))), ())
    if placed.height > enough:
        still = timeline.graph.inputs if timeline.image == Image.RESIDENT else ()
        fixed = {i for i, b in enumerate(timed) if b.kind is not BufferKind.TENSOR or b.tensors[0] in still}
        parted = (
            place_in_parts(timed, overlaps, alignment, ticks.starts, fixed, placed.height, enough) or parted
        )
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
