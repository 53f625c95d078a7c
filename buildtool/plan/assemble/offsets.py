"""Where everything of a plan lies: buffers and workspaces placed together, tensors moved where it helps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from buildtool.base.modes import Image
from buildtool.base.session import Session
from buildtool.plan.assemble.moves import Parted, place_in_parts
from buildtool.plan.assemble.placement import Placed, look, place_quickly, searched
from buildtool.plan.assemble.workspace import Ticks, Workspace
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Buffer, BufferKind, Move, Overlap, changed

MOST_PLACEMENTS = 512  # that a session keeps, of some kilobytes each
MOST_BUFFERS = 1 << 13  # in all of them, but for the last two


class _Key(tuple[Any, ...]):
    """A key with many buffers in it, asked for under several kinds: its hash is made once."""

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash


def lay(
    timeline: Timeline,
    buffers: Sequence[Buffer],
    extra: Sequence[Buffer],
    workspaces: Sequence[Workspace],
    overlaps: Sequence[Overlap],
    alignment: int,
    enough: float,
    session: Session,
) -> tuple[Placed, tuple[Move, ...]]:
    """Everything as low as found: first `buffers` (in parts where they move), then windows and scratch, then
    `extra`; and the moves, which name buffers by position, as overlaps do.

    `overlaps`: those that are permitted, by positions in `buffers`. `enough`: see `assemble`. The session
    keeps placements: limits are kept by asking for the same few plans again and again.
    """
    ticks = Ticks(timeline, workspaces)
    known = [*buffers, *extra]
    timed = [*map(ticks.timed, known), *ticks.pieces()]
    still = timeline.graph.inputs if timeline.image == Image.RESIDENT else ()
    ground = [i for i, b in enumerate(timed) if b.kind is BufferKind.TENSOR and b.tensors[0] in still]
    parted = _on_ground(timed, ground, overlaps, alignment, ticks.starts, enough, session)
    pairs = list(zip(parted.placed.buffers, parted.origin, strict=True))
    lived = [(ticks.lived(b, known[i], timed[i]), i) for b, i in pairs if i < len(known)]
    places = [b.offset for b, i in pairs if i >= len(known)]
    pieces = [piece for workspace in workspaces for piece in workspace.pieces]
    inside = [b for piece, at in zip(pieces, places, strict=True) for b in piece.buffers(at, timeline)]
    first, last = [b for b, i in lived if i < len(buffers)], [b for b, i in lived if i >= len(buffers)]
    return replace(parted.placed, buffers=(*first, *inside, *last)), parted.moves


def _on_ground(
    timed: Sequence[Buffer],
    ground: Sequence[int],
    overlaps: Sequence[Overlap],
    alignment: int,
    starts: Sequence[int],
    enough: float,
    session: Session,
) -> Parted:
    """A placement with the buffers of `ground`, which are there all the time, side by side at the bottom.

    Nothing is lost by that: what lies below such a buffer can as well lie above it, where everything else
    stays as it was. They neither move nor share a byte, so the rest is placed as if they were not there.
    """
    rest = [i for i in range(len(timed)) if i not in ground]
    index = {i: k for k, i in enumerate(rest)}
    permitted = [changed(o, input=index[o.input], output=index[o.output]) for o in overlaps]
    base, bottom = 0, list[tuple[int, Buffer]]()
    for i in ground:
        bottom.append((i, changed(timed[i], offset=base)))
        base += round_up(timed[i].size, alignment)
    found = _placed([timed[i] for i in rest], permitted, alignment, starts, enough - base, session)
    if not ground:
        return found
    above = zip(found.origin, found.placed.buffers, strict=True)
    parts = [(rest[k], changed(b, offset=base + b.offset), part) for part, (k, b) in enumerate(above)]
    parts += [(i, b, -1) for i, b in bottom]
    parts.sort(key=lambda part: part[0])  # stable: the parts of a buffer follow each other
    at = {part: place for place, (_, _, part) in enumerate(parts)}
    placed = Placed(
        tuple(b for _, b, _ in parts),
        tuple(changed(o, input=at[o.input], output=at[o.output]) for o in found.placed.overlaps),
        base + found.placed.height,
        base + found.placed.bound,
    )
    moves = tuple(Move(at[move.source], at[move.target]) for move in found.moves)
    return Parted(placed, tuple(i for i, _, _ in parts), moves)


def _placed(
    timed: Sequence[Buffer],
    overlaps: Sequence[Overlap],
    alignment: int,
    starts: Sequence[int],
    enough: float,
    session: Session,
) -> Parted:
    """Offsets as low as found; in parts, where `enough` bytes are not met otherwise.

    Where a placement in parts is as low as the whole could be at the best, nothing lower is looked for.
    """
    key = _Key((tuple(timed), tuple(overlaps), alignment))
    kept = max(2, min(MOST_PLACEMENTS, MOST_BUFFERS // max(1, len(timed))))
    work = session.work
    seen = session.remember("looks", key, lambda: look(timed, overlaps, alignment, work), kept)
    fixed = {i for i, b in enumerate(timed) if b.kind is not BufferKind.TENSOR}

    def parted(below: float) -> Parted | None:
        return session.remember(
            "placements in parts",
            (key, tuple(starts), below, enough),
            lambda: place_in_parts(timed, overlaps, alignment, starts, fixed, below, enough, work),
            kept,
        )

    if enough < seen.bound and seen.impossible:
        parts = parted(math.inf)
        if parts is not None and parts.placed.height <= seen.bound:
            return parts
    quick = session.remember(
        "placements", key, lambda: place_quickly(timed, overlaps, alignment, seen, work), kept
    )
    if enough < quick.bound < quick.height and not seen.impossible:
        parts = parted(quick.height)
        if parts is not None and parts.placed.height <= quick.bound:
            return parts
    placed = session.remember(
        "searched placements", key, lambda: searched(quick, overlaps, alignment, work), kept
    )
    whole = Parted(placed, tuple(range(len(timed))), ())
    return whole if placed.height <= enough else parted(placed.height) or whole
