"""Small damages of streamed plans, of the kinds that a faulty planner could make."""

import random
from dataclasses import replace

from buildtool.plan.types import Buffer, Group, Plan

KINDS = ("offset", "ring", "columns", "size", "swapped", "places", "move", "moves", "rows", "pixels", "gone")


def with_buffer(plan: Plan, index: int, **changes: object) -> Plan:
    """The plan with one buffer changed."""
    changed = replace(plan.buffers[index], **changes)
    return replace(plan, buffers=(*plan.buffers[:index], changed, *plan.buffers[index + 1 :]))


def mutant(plan: Plan, kind: str, rng: random.Random) -> Plan | None:
    """The plan with one damage; None where it has nothing of the kind. Its arena is high enough."""
    if kind in ("move", "moves"):
        return _moves(plan, kind, rng)
    if kind in ("swapped", "rows", "pixels"):
        return _regions(plan, kind, rng)
    buffers = list(plan.buffers)
    index, other = rng.randrange(len(buffers)), rng.randrange(len(buffers))
    buffer = buffers[index]
    if kind == "offset":
        by = rng.choice((-4, -2, -1, 1, 2, 4)) * plan.alignment
        buffers[index] = replace(buffer, offset=max(0, buffer.offset + by))
    elif kind == "places":
        buffers[index] = replace(buffer, offset=buffers[other].offset)
        buffers[other] = replace(buffers[other], offset=buffer.offset)
    elif kind == "size":
        buffers[index] = replace(buffer, size=rng.randrange(buffer.size + 1))
    elif kind == "gone":
        del buffers[index]
    else:
        rings = [i for i, b in enumerate(buffers) if b.rows > 1 and (kind == "ring" or b.columns > 1)]
        if not rings:
            return None
        index = rng.choice(rings)
        buffers[index] = replace(buffers[index], **shorter(buffers[index], kind))
    top = max((b.offset + b.size for b in buffers), default=0)
    height = max(plan.arena_bytes, -(-top // plan.alignment) * plan.alignment)
    return replace(plan, buffers=tuple(buffers), arena_bytes=height)


def shorter(buffer: Buffer, kind: str) -> dict[str, int]:
    """What changes of a ring with a row less, or with a column less; it has as many bytes as before."""
    return {"rows": buffer.rows - 1} if kind == "ring" else {"columns": buffer.columns - 1}


def _moves(plan: Plan, kind: str, rng: random.Random) -> Plan | None:
    """One move is left out, or they are made in another order."""
    moves = list(plan.moves)
    if not moves:
        return None
    if kind == "move":
        del moves[rng.randrange(len(moves))]
    else:
        rng.shuffle(moves)
    return replace(plan, moves=tuple(moves))


def _regions(plan: Plan, kind: str, rng: random.Random) -> Plan | None:
    """Two regions change places, or a group makes more or fewer rows or pixels at a time."""
    regions = list(plan.regions)
    at = rng.randrange(len(regions))
    if kind == "swapped":
        if at + 1 == len(regions):
            return None
        regions[at : at + 2] = reversed(regions[at : at + 2])
        return replace(plan, regions=tuple(regions))
    groups = list(regions[at].groups)
    index = rng.randrange(len(groups))
    groups[index] = _group(groups[index], kind, rng.choice((-1, 1, 2)))
    regions[at] = replace(regions[at], groups=tuple(groups))
    return replace(plan, regions=tuple(regions))


def _group(group: Group, kind: str, by: int) -> Group:
    if kind == "rows":
        return replace(group, rows_per_step=max(0, group.rows_per_step + by))
    return replace(group, hand_off=max(0, group.hand_off + by))
