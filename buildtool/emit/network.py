"""A network with its plan, its kernels and its weight image, for all modules that emit C."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from buildtool.base.modes import Image
from buildtool.emit.golden import NO_CHECKS, Checks
from buildtool.emit.image import ALIGNMENT, WeightImage, pieces
from buildtool.graph.types import Graph
from buildtool.plan.codec import digest
from buildtool.plan.schedule.delivery import Delivered, delivered_image
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Buffer, BufferKind, Move, Plan, Region
from buildtool.target.types import Argument, KernelVariant, Target


@dataclass(frozen=True)
class Network:
    """A network to emit.

    net: the prefix of its names in C.
    kernels: the operators' kernels; None for aliases.
    image: its weight image.
    holders: tensor -> its buffer in the arena. If the tensor moves to other buffers, this is the first one
        (see `after`).
    timeline: the plan's steps.
    checks: what the network checks in the field.
    """

    net: str
    graph: Graph
    plan: Plan
    target: Target
    kernels: tuple[KernelVariant | None, ...]
    image: WeightImage
    holders: dict[int, Buffer]
    timeline: Timeline
    checks: Checks = NO_CHECKS

    @property
    def alignment(self) -> int:
        """The alignment of the arenas' memory, in bytes."""
        return max(self.plan.alignment, ALIGNMENT)

    @property
    def macro(self) -> str:
        """The prefix of the names of the network's macros."""
        return self.net.upper()

    @cached_property
    def plan_digest(self) -> str:
        """The plan's digest. It does not change if the network is trained again."""
        return digest(self.plan)

    @property
    def is_streamed(self) -> bool:
        """Whether the application delivers the input image row by row, through a callback."""
        return self.plan.image == Image.STREAM

    def takes_rows(self, region: Region) -> bool:
        """Whether a region asks the application for the rows of the input image."""
        return self.is_streamed and self.delivered.first in region.ops

    @property
    def delivered(self) -> Delivered:
        """The input image that the application delivers row by row, if `is_streamed`."""
        return delivered_image(self.graph)

    @property
    def window_rows(self) -> int:
        """The rows of the moving window, for a network that runs on one."""
        assert self.graph.window is not None
        return self.graph.window.rows

    @property
    def image_index(self) -> int:
        """The index, among the network's inputs, of the one that is delivered row by row."""
        return self.graph.inputs.index(self.delivered.input)

    @property
    def held_inputs(self) -> tuple[int, ...]:
        """The inputs that the application writes as a whole: all except an image that it delivers row
        by row.
        """
        return tuple(t for t in self.graph.inputs if not self.is_streamed or t != self.delivered.input)

    @cached_property
    def _makers(self) -> dict[int, str]:
        """For each tensor, a description of the input, state or operator that makes it."""
        makers = {t: f"input {i}" for i, t in enumerate(self.graph.inputs)}
        makers |= {state.before: f"state {i}" for i, state in enumerate(self.graph.states)}
        for position, op in enumerate(self.graph.ops):
            for i, t in enumerate(op.outputs):
                makers[t] = f"operator {position}" + (f", output {i}" if len(op.outputs) > 1 else "")
        return makers

    def describe_tensor(self, tensor: int) -> str:
        """Returns a tensor's name for comments, such as "input 0" or "operator 3".

        The names in the model are not used, because they may change with training.
        """
        return self._makers.get(tensor, "constant")

    def after(self, moves: Iterable[Move]) -> Network:
        """Returns the network after `moves` have copied some tensors to other buffers."""
        holders = {t: self.plan.buffers[m.target] for m in moves for t in self.plan.buffers[m.target].tensors}
        return replace(self, holders=self.holders | holders) if holders else self

    @cached_property
    def loaded(self) -> dict[int, int]:
        """The offset in the arena of each operator's constants that are loaded, by the operator's
        position.
        """
        loads = [load for load in self.plan.loads if load.op not in self.relocated_constants]
        return {load.op: self.plan.buffers[load.buffer].offset for load in loads}

    @cached_property
    def relocated_constants(self) -> frozenset[int]:
        """The operators whose constants are loaded to several places in the arena while their region runs row
        by row.
        """
        starts = set(self.timeline.starts)
        return frozenset(
            load.op
            for load in self.plan.loads
            if not load.by_turns and self.plan.buffers[load.buffer].first not in starts
        )

    @property
    def is_spread(self) -> bool:
        """Whether the plan has a second arena, in another memory."""
        return self.plan.second_at > 0

    def place(self, offset: int) -> str:
        """Returns C for the address at the plan's `offset`, which may lie in the second arena."""
        second = self.plan.second_at
        return f"second_arena + {offset - second}" if 0 < second <= offset else f"arena + {offset}"

    def address(self, tensor: int, reader: int = -1) -> str:
        """Returns C for the address of a tensor or its ring buffer. `reader` is the operator that reads it: a
        constant may be loaded for it.
        """
        if self.graph.tensors[tensor].is_constant:
            if reader in self.loaded:
                start = self.image.places.tensors[tensor]
                parts = pieces(self.graph, self.image.places, reader)
                place = next(place for at, _, place in parts if at == start)
                return self.place(self.loaded[reader] + place)
            return f"nn_constant(weights + {self.image.places.tensors[tensor]})"
        if tensor in self.states:
            return f"{self.net}_state + {self.states[tensor]}"
        return self.place(self.holders[tensor].offset)

    @cached_property
    def states(self) -> dict[int, int]:
        """The offset of each state tensor in the network's memory for states."""
        return {t: buffer.offset for buffer in self.plan.states for t in buffer.tensors}

    def constants(self, position: int) -> str:
        """Returns C for the address of an operator's packed constants."""
        place = self.image.places.constants.get(position)
        if position in self.relocated_constants:
            return f"constants_{position}"
        if place is not None and position in self.loaded:
            return self.place(self.loaded[position])
        return "NULL" if place is None else f"weights + {place}"

    def common_arguments(self, position: int) -> dict[Argument, str]:
        """Returns C for the arguments that are the same in every call of an operator's kernel."""
        scratch = (b for b in self.plan.buffers if b.kind is BufferKind.SCRATCH and b.op == position)
        buffer = next(scratch, None)
        return {
            Argument.CONSTANTS: self.constants(position),
            Argument.SCRATCH: "NULL" if buffer is None else self.place(buffer.offset),
            Argument.SCRATCH_BYTES: "0" if buffer is None else str(buffer.size),
        }

    def lines(self, position: int) -> Buffer | None:
        """Returns the buffer for rows of an operator's output that a group of bands keeps from step to step.

        None if there are no such rows.
        """
        lines = (b for b in self.plan.buffers if b.kind is BufferKind.LINES and b.op == position)
        return next(lines, None)

    def accumulators(self, position: int) -> str:
        """Returns C for the address of the sums of a global pooling whose input arrives row by row."""
        kind = BufferKind.ACCUMULATOR
        buffer = next(b for b in self.plan.buffers if b.kind is kind and b.op == position)
        return f"(int32_t *)(void *)({self.place(buffer.offset)})"
