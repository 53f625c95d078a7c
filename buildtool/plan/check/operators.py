"""What the replay of a step needs to know of its operator, found out once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.types import Graph, Op, OpKind
from buildtool.plan.check.loads import keeps_channels
from buildtool.plan.check.reads import Read, reads, sums_up
from buildtool.plan.check.states import updates
from buildtool.plan.types import Buffer, BufferKind, Load, Plan
from buildtool.target.types import Contract, KernelVariant

# Tags of bytes that are no tensor's; a tensor's bytes have its number and their own, 32 bits each.
_SCRATCH = -3  # less the operator's position
CONSTANTS = 1 << 61  # plus the operator's position
_SUMS = 1 << 62  # plus the position of the accumulating operator


@dataclass(frozen=True)
class Area:
    """A buffer that is no tensor's, and the tag of its bytes."""

    buffer: Buffer
    tag: int


@dataclass(frozen=True)
class Operator:
    """One operator: what it reads, the buffers that serve it, what its kernel promises.

    `by_row`: its kernel goes row by row; `sums_up`: it is a global pooling.
    """

    op: Op
    reads: tuple[Read, ...]
    contract: Contract  # by which its output may lie on its input, as far as the replay goes along
    by_row: bool
    sums_up: bool
    scratch: Area | None
    sums: Area | None
    constants: Area | None


def operators(plan: Plan, graph: Graph, kernels: Sequence[KernelVariant | None]) -> dict[int, Operator]:
    """Position -> operator, of all that are more than an alias."""
    served = {(b.op, b.kind): b for b in plan.buffers if b.op >= 0}
    loads = {load.op: load for load in reversed(plan.loads)}  # the first one of each

    def area(position: int, kind: BufferKind, tag: int) -> Area | None:
        buffer = served.get((position, kind))
        return Area(buffer, tag) if buffer else None

    found = {}
    for position, op in enumerate(graph.ops):
        if op.kind in ALIAS_KINDS:
            continue
        load, read = loads.get(position), _others(graph, op)
        contract = _contract(graph, op, kernels[position], load)
        found[position] = Operator(
            op,
            read,
            contract,
            contract in (Contract.ROW, Contract.PIXEL) and any(one.rows for one in read),
            sums_up(graph, op),
            area(position, BufferKind.SCRATCH, _SCRATCH - position),
            area(position, BufferKind.ACCUMULATOR, _SUMS + position),
            Area(plan.buffers[load.buffer], CONSTANTS + position) if load else None,
        )
    return found


def _contract(graph: Graph, op: Op, kernel: KernelVariant | None, load: Load | None) -> Contract:
    """The kernel's contract, where the replay goes along with it."""
    # of an operator in slices of its channels, all input is read again for the last slice
    again = load is not None and load.channels and not keeps_channels(graph, op)
    contract = kernel.overlap if kernel and not again else Contract.NONE
    if contract is Contract.PARTS and op.kind is not OpKind.CONCATENATION:
        return Contract.NONE
    return contract


def _others(graph: Graph, op: Op) -> tuple[Read, ...]:
    """What an operator reads, without the state that it updates where that lies."""
    inside = updates(graph, op)
    return tuple(read for read in reads(graph, op) if read.tensor not in inside)
