"""In which of a board's memories the weights are, and what bringing or reading them from there costs.

A board's role `weights` names the memory that they are in unless the user names another one. A memory with
a bandwidth is not read in place: its weights are brought into the arena, which takes the core's clock so
many cycles a byte. One that is read in place may let the core wait. Costs of a board with a vector unit are
issues of a thread, each of some cycles.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from buildtool.base.errors import UsageError, suggest
from buildtool.target.speeds import streamed
from buildtool.target.types import Board, Costs, KernelVariant, Memory, MemoryKind


def holds_weights(board: Board, memory: Memory) -> bool:
    """Whether weights can be in a memory: it keeps its contents, or they are brought from it by a loader."""
    return memory.name not in board.holders and (memory.kind is MemoryKind.ROM or memory.bandwidth > 0)


def with_weights_in(board: Board, name: str | None) -> Board:
    """The board with its weights in another of its memories (None: as its file says); UsageError for a memory
    that it does not have, or that cannot hold them.
    """
    if name is None or name == board.weights:
        return board
    known = [memory.name for memory in board.memories if holds_weights(board, memory)]
    if name not in known:
        there = any(memory.name == name for memory in board.memories)
        why = "cannot hold them" if there else f"is none of board '{board.name}'"
        others = [suggest(weights_in=other) for other in known if other != board.weights]
        raise UsageError(
            f"memory '{name}' {why}", option="weights_in", hint=[*others, suggest(weights_in=None)]
        )
    return dataclasses.replace(board, weights=name)


def loading(costs: Costs, board: Board) -> Costs:
    """The costs with what the weights' memory takes to deliver a byte, in the unit of the kernels' costs."""
    bandwidth = next((m.bandwidth for m in board.memories if m.name == board.weights), 0)
    if not bandwidth or not board.clock_hz:
        return costs
    unit = board.vector_unit.cycles if board.vector_unit else 1
    return dataclasses.replace(costs, load=f"{costs.load} + {board.clock_hz / bandwidth / unit:.4g} * bytes")


def waiting(kernels: Iterable[KernelVariant], board: Board) -> tuple[KernelVariant, ...]:
    """The kernels, whose costs are cycles, with what the core waits for constants that are read in place.

    A call brings its constants once where the cache keeps them all, else with every pass over them. What the
    cache still has of an earlier call, and what code waits for, is not counted.
    """
    memory = board.memory(board.weights)
    cycles = streamed(memory.speed, board.cache_of(memory)) if not memory.bandwidth else 0.0
    if not cycles:
        return tuple(kernels)
    cache = board.cache_of(memory)
    kept = cache.data_bytes if cache else 0
    return tuple(
        kernel
        if kernel.constants == "0"
        else dataclasses.replace(kernel, cost=f"{kernel.cost} + {cycles:.4g} * {_brought(kernel, kept)}")
        for kernel in kernels
    )


def _brought(kernel: KernelVariant, kept: int) -> str:
    """A formula: the bytes of constants that a call brings through a cache that keeps so many."""
    if kernel.passes == "1":
        return f"({kernel.constants})"
    return f"({kernel.constants}) * (1 if ({kernel.constants}) <= {kept} else {kernel.passes})"
