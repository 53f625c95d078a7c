"""What every part of the emitter looks at: a network with its plan, its kernels and its weight image."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from buildtool.base.modes import Image
from buildtool.emit.image import WeightImage, pieces
from buildtool.graph.types import Graph
from buildtool.plan.codec import digest
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Buffer, BufferKind, Move, Plan, Region
from buildtool.target.types import Argument, KernelVariant, Target


@dataclass(frozen=True)
class Network:
    """`net` is the C prefix; `kernels` has None for aliases; `timeline` is the plan's.

    `holders`: tensor index -> its buffer; of a tensor that moves, where it begins (see `after`).
    """

    net: str
    graph: Graph
    plan: Plan
    target: Target
    kernels: tuple[KernelVariant | None, ...]
    image: WeightImage
    holders: dict[int, Buffer]
    timeline: Timeline

    @property
    def macro(self) -> str:
        """The prefix of the network's macros."""
        return self.net.upper()

    @cached_property
    def plan_digest(self) -> str:
        """What tells the plan from every other one; retrained weights leave it as it is."""
        return digest(self.plan)

    @property
    def is_streamed(self) -> bool:
        """Whether the image comes row by row through a call-back."""
        return self.plan.image == Image.STREAM

    def takes_rows(self, region: Region) -> bool:
        """Whether a region asks for the rows of a streamed image."""
        return self.is_streamed and self.graph.inputs[0] in self.graph.ops[region.ops[0]].inputs

    @property
    def held_inputs(self) -> tuple[int, ...]:
        """The inputs that the application writes to as a whole: none where the image comes by rows."""
        return () if self.is_streamed else tuple(self.graph.inputs)

    @cached_property
    def _makers(self) -> dict[int, str]:
        """Tensor -> what makes it."""
        made = {t: f"input {i}" for i, t in enumerate(self.graph.inputs)}
        made |= {state.before: f"state {i}" for i, state in enumerate(self.graph.states)}
        for position, op in enumerate(self.graph.ops):
            for i, t in enumerate(op.outputs):
                made[t] = f"operator {position}" + (f", output {i}" if len(op.outputs) > 1 else "")
        return made

    def called(self, tensor: int) -> str:
        """What a comment calls a tensor: what makes it. Its name in the model changes with training."""
        return self._makers.get(tensor, "constant")

    def after(self, moves: Iterable[Move]) -> Network:
        """The network as it is once some tensors have moved."""
        moved = {t: self.plan.buffers[m.target] for m in moves for t in self.plan.buffers[m.target].tensors}
        return replace(self, holders=self.holders | moved) if moved else self

    @cached_property
    def loaded(self) -> dict[int, int]:
        """Operator -> where in the arena the constants are that it reads; of those that are loaded."""
        loads = [load for load in self.plan.loads if load.op not in self.wandering]
        return {load.op: self.plan.buffers[load.buffer].offset for load in loads}

    @cached_property
    def wandering(self) -> frozenset[int]:
        """Operators of streamed regions whose constants are at one place of the arena after the other."""
        starts = set(self.timeline.starts)
        return frozenset(
            load.op
            for load in self.plan.loads
            if not load.by_turns and self.plan.buffers[load.buffer].first not in starts
        )

    @property
    def is_spread(self) -> bool:
        """Whether there is a second arena, in another memory."""
        return self.plan.second_at > 0

    def place(self, offset: int) -> str:
        """C expression of a place of the arena, or of the second one, by the plan's offset."""
        second = self.plan.second_at
        return f"second_arena + {offset - second}" if 0 < second <= offset else f"arena + {offset}"

    def address(self, tensor: int, reader: int = -1) -> str:
        """C expression of a tensor's first byte (of a ring: of its buffer's), for operator `reader`."""
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
        """Tensor that is state -> where it lies in the network's state."""
        return {t: buffer.offset for buffer in self.plan.states for t in buffer.tensors}

    def constants(self, position: int) -> str:
        """C expression of an operator's packed constants."""
        place = self.image.places.constants.get(position)
        if position in self.wandering:
            return f"constants_{position}"
        if place is not None and position in self.loaded:
            return self.place(self.loaded[position])
        return "NULL" if place is None else f"weights + {place}"

    def served(self, position: int) -> dict[Argument, str]:
        """C expressions of what every call of an operator's kernel may take: constants and scratch."""
        scratch = (b for b in self.plan.buffers if b.kind is BufferKind.SCRATCH and b.op == position)
        buffer = next(scratch, None)
        return {
            Argument.CONSTANTS: self.constants(position),
            Argument.SCRATCH: "NULL" if buffer is None else self.place(buffer.offset),
            Argument.SCRATCH_BYTES: "0" if buffer is None else str(buffer.size),
        }

    def accumulators(self, position: int) -> str:
        """C expression of the sums of a global pooling in a streamed region."""
        kind = BufferKind.ACCUMULATOR
        buffer = next(b for b in self.plan.buffers if b.kind is kind and b.op == position)
        return f"(int32_t *)(void *)({self.place(buffer.offset)})"
