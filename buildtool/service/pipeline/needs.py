"""A plan against the memories of its board, and against the limits that were given."""

from __future__ import annotations

from dataclasses import dataclass

from buildtool.errors import Hint, PlanError, suggest
from buildtool.plan.types import Plan
from buildtool.service.pipeline.options import PlanOptions
from buildtool.service.pipeline.pipeline import Planned
from buildtool.target.types import Target


@dataclass(frozen=True)
class Need:
    """A board's memory, or less where an option limits it, against what a plan asks of it; in bytes."""

    what: str
    memory: str
    required: int
    available: int

    @property
    def excess(self) -> int:
        """Bytes by which the requirement exceeds the memory; 0 when it fits."""
        return max(0, self.required - self.available)


def needs(
    plan: Plan, target: Target, image_bytes: int, options: PlanOptions | None = None
) -> tuple[Need, ...]:
    """RAM (arena, and the stack where it shares the arena's memory) and the weights' memory."""
    from buildtool.plan.summary.fit import available_bytes

    board, asked = target.board, options or PlanOptions()
    weights = board.memory(board.weights)
    return (
        Need("RAM", board.arena, plan.arena_bytes, _least(asked.ram, available_bytes(board))),
        Need("flash", weights.name, image_bytes, _least(asked.max_flash, weights.size)),
    )


def _least(asked: int | None, there: int) -> int:
    return there if asked is None else min(asked, there)


def refuse_unless_fits(made: Planned, image_bytes: int) -> None:
    """PlanError when the arena or the weights do not fit."""
    from buildtool.plan.summary.fit import fit

    try:
        fit(made.plan, made.target, made.graph, made.session)
        refuse_weights(made.target, made.options, image_bytes)
    except PlanError as error:
        raise error.at(path=made.model.path) from None


def refuse_weights(target: Target, options: PlanOptions, image_bytes: int) -> None:
    """PlanError when the weights do not fit the board, or what `max_flash` allows of it."""
    board = target.board
    memory = board.memory(board.weights)
    most = _least(options.max_flash, memory.size)
    if image_bytes <= most:
        return
    limit = f"memory '{memory.name}' of {board.name} has {most:,}"
    help_ = Hint("take a board with more flash or a narrower network")
    if most < memory.size:
        limit = f"{most:,} are allowed"
        help_ = suggest(max_flash=image_bytes) if image_bytes <= memory.size else help_
    raise PlanError(
        f"the weight image requires {image_bytes:,} bytes, {limit}: {image_bytes - most:,} too many",
        hint=help_,
    )
