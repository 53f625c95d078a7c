"""Computes digests of a target: for each step, a digest of the data that the step reads. It runs no tools.

The digests are parts of cache keys. Results of a step stay valid if only data changes that the step does not
read: another compiler does not change plans, a larger memory does not change the emitted C.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial

import msgpack

from buildtool.base.plain import fields_with_mark, to_plain
from buildtool.target.recorded import recorded_sizes
from buildtool.target.speeds import streamed_cycles_per_byte
from buildtool.target.types import BYTES, KernelVariant, Routine, Step, Target

SCHEMA = 2
_plain = partial(to_plain, named=True)


def planning_digest(target: Target) -> str:
    """Returns the digest of what plans depend on: the memories of arena and weights, the kernels' needs and
    costs.

    The target stores it, because every plan of a search contains it, and a target never changes.
    """
    if "plan" not in target.digests:
        answers = [[library.name, library.digest] for library in target.libraries]
        board = target.board
        sizes = {memory.name: memory.size for memory in board.memories}
        speeds = {memory.name: memory.bandwidth for memory in board.memories}
        memory_data: dict[str, object] = {  # sizes and speeds of the memories, without their names
            "alignment": board.alignment,
            "arena_bytes": sizes.get(board.arena, 0),
            "reserved_bytes": board.reserved_bytes if board.reserved_in in ("", board.arena) else 0,
            "stack_bytes": board.stack_bytes if board.data == board.arena else 0,
            "weights_bandwidth": speeds.get(board.weights, 0),
            "cost_unit": target.cost_unit,
        }
        if board.core.threads > 1:
            memory_data["threads"] = board.core.threads
        if board.second:
            memories = [board.memory(name) for name in board.holders]
            memory_data["rooms"] = [board.room(memory.name) for memory in memories]
            memory_data["waits"] = [
                streamed_cycles_per_byte(memory.speed, board.cache_of(memory)) for memory in memories
            ]
            memory_data["caches"] = [_plain(board.cache_of(memory)) for memory in memories]
        parts = (memory_data, target.costs, _callees(KernelVariant, target.kernels, Step.PLAN), answers)
        target.digests["plan"] = _digest("plan", *parts)
    return target.digests["plan"]


def emitting_digest(target: Target) -> str:
    """Returns the digest of what emitted C depends on besides the plan: symbols, arguments, headers,
    stacks.
    """
    stacks = [_plain(entry) for entry in recorded_sizes(target.board.core)]
    routines = _callees(Routine, target.routines, Step.EMIT)
    return _digest("emit", _callees(KernelVariant, target.kernels, Step.EMIT), routines, stacks)


def packing_digest(target: Target) -> str:
    """Returns the digest of what the weight image depends on besides the network: layouts of constants."""
    return _digest("pack", _callees(KernelVariant, target.kernels, Step.PACK))


def _callees(kind: type, callees: Sequence[KernelVariant | Routine], step: Step) -> list[object]:
    """Returns, for each of the kernels or routines `callees`, the fields that a step reads.

    These are the fields whose annotation names the step. Types and form are added where they are not the
    defaults. `kind` is the dataclass of the callees.
    """
    names = sorted(name for name, steps in fields_with_mark(kind, frozenset).items() if step in steps)
    return [
        {name: _plain(getattr(callee, name)) for name in names}
        | ({} if callee.types == BYTES else {"types": _plain(callee.types)})
        | ({"form": callee.form} if callee.form else {})
        for callee in callees
    ]


def _digest(step: str, *parts: object) -> str:
    """Returns the SHA-256 (hex) of a step's parts."""
    packed: bytes = msgpack.packb([SCHEMA, step, *map(_plain, parts)], use_bin_type=True)
    return hashlib.sha256(packed).hexdigest()
