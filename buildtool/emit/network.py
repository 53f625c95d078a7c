"""What every part of the emitter looks at: a network with its plan, its kernels and its weight image."""

from __future__ import annotations

from dataclasses import dataclass

from buildtool.emit.image import WeightImage
from buildtool.graph.types import Graph
from buildtool.plan.types import Buffer, BufferKind, Plan
from buildtool.target.types import KernelVariant


@dataclass(frozen=True)
class Network:
    """`net` is the C prefix; `kernels` has None for aliases; `holders`: tensor index -> its buffer."""

    net: str
    graph: Graph
    plan: Plan
    kernels: tuple[KernelVariant | None, ...]
    image: WeightImage
    holders: dict[int, Buffer]

    @property
    def macro(self) -> str:
        """The prefix of the network's macros."""
        return self.net.upper()

    @property
    def is_streamed(self) -> bool:
        """Whether the image comes row by row through a call-back."""
        return self.plan.image == "stream"

    def address(self, tensor: int) -> str:
        """C expression of a tensor's first byte (of a ring: of its buffer's)."""
        if self.graph.tensors[tensor].is_constant:
            return f"nn_constant(weights + {self.image.tensors[tensor]})"
        return f"arena + {self.holders[tensor].offset}"

    def constants(self, position: int) -> str:
        """C expression of an operator's packed constants."""
        place = self.image.constants.get(position)
        return "NULL" if place is None else f"weights + {place}"

    def scratch(self, position: int) -> str:
        """C expression of an operator's scratch."""
        return self._served(position, BufferKind.SCRATCH)

    def accumulators(self, position: int) -> str:
        """C expression of the sums of a global pooling in a streamed region."""
        return f"(int32_t *)(void *)({self._served(position, BufferKind.ACCUMULATOR)})"

    def _served(self, position: int, kind: BufferKind) -> str:
        for buffer in self.plan.buffers:
            if buffer.kind is kind and buffer.op == position:
                return f"arena + {buffer.offset}"
        return "NULL"
