"""Small faults in streamed plans, of the kinds that a wrong planner could make."""

import random
from dataclasses import replace

from buildtool.plan.types import Buffer, Group, Load, Plan

KINDS = ("offset", "ring", "columns", "size", "swapped", "places", "move", "moves", "rows", "pixels", "gone")


def with_buffer(plan: Plan, index: int, **changes: object) -> Plan:
    changed = replace(plan.buffers[index], **changes)
    return replace(plan, buffers=(*plan.buffers[:index], changed, *plan.buffers[index + 1 :]))


def with_load(plan: Plan, load: Load, **changes: object) -> Plan:
    return replace(plan, loads=tuple(replace(x, **changes) if x is load else x for x in plan.loads))


def mutant(plan: Plan, kind: str, rng: random.Random) -> Plan | None:
    """Returns the plan with one fault of a kind, None where that is impossible. Its arena is large enough."""
    if kind in ("move", "moves"):
        return _change_moves(plan, kind, rng)
    if kind in ("swapped", "rows", "pixels"):
        return _change_regions(plan, kind, rng)
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
    """Returns the change to a ring that has a row or a column less, in as many bytes as before."""
    return {"rows": buffer.rows - 1} if kind == "ring" else {"columns": buffer.columns - 1}


def _change_moves(plan: Plan, kind: str, rng: random.Random) -> Plan | None:
    """Leaves out one move, or shuffles the moves."""
    moves = list(plan.moves)
    if not moves:
        return None
    if kind == "move":
        del moves[rng.randrange(len(moves))]
    else:
        rng.shuffle(moves)
    return replace(plan, moves=tuple(moves))


def _change_regions(plan: Plan, kind: str, rng: random.Random) -> Plan | None:
    """Swaps two regions, or changes the number of rows or pixels of a group's steps."""
    regions = list(plan.regions)
    at = rng.randrange(len(regions))
    if kind == "swapped":
        if at + 1 == len(regions):
            return None
        regions[at : at + 2] = reversed(regions[at : at + 2])
        return replace(plan, regions=tuple(regions))
    groups = list(regions[at].groups)
    index = rng.randrange(len(groups))
    groups[index] = _change_group(groups[index], kind, rng.choice((-1, 1, 2)))
    regions[at] = replace(regions[at], groups=tuple(groups))
    return replace(plan, regions=tuple(regions))


def _change_group(group: Group, kind: str, by: int) -> Group:
    if kind == "rows":
        return replace(group, rows_per_step=max(0, group.rows_per_step + by))
    return replace(group, hand_off=max(0, group.hand_off + by))
