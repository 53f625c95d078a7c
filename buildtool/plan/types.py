"""How a network will run: steps, regions, buffers, and the plan that holds them. Data, never code."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeVar

from buildtool.base.modes import CostUnit
from buildtool.graph.types import SecondPass

SCHEMA = 10  # the version of a plan's bytes
Record = TypeVar("Record", "Buffer", "Overlap")


class BufferKind(enum.StrEnum):
    """What a buffer in the arena holds."""

    TENSOR = "tensor"
    RING = "ring"
    ACCUMULATOR = "accumulator"
    SCRATCH = "scratch"
    WEIGHTS = "weights"
    STATE = "state"  # of Plan.states: it lies in no arena


class Scheme(enum.StrEnum):
    """How a group of operators runs."""

    OPERATOR = "operator"
    H_CACHED = "h-cached"  # columns are kept from hand-off to hand-off, rows are recomputed
    HALO = "halo"  # strips of whole rows, operator by operator; what strips share is recomputed
    BRANCHES = "branches"  # operators keep the rows that are still read; nothing is recomputed


SOURCE = -1  # Step.op of the row source: rows of the network's (streamed) input are delivered


@dataclass(frozen=True)
class Step:
    """One kernel call: rows [y0, y1) and columns [x0, x1) of operator `op`'s output.

    Of a global pooling in a streamed region: the part of its input that is added to its
    accumulators, the last one finishes it.
    """

    op: int
    y0: int
    y1: int
    x0: int
    x1: int


@dataclass(frozen=True)
class Group:
    """Operators (positions in Graph.ops) that run under one scheme, in the graph's order.

    What all but the last one make feeds others of them. `rows_per_step`: rows of the last operator's
    output made in one go (0: all of them); `hand_off`: the pixels of such a row made in one go (0: the
    whole row).
    """

    ops: tuple[int, ...]
    scheme: Scheme = Scheme.OPERATOR
    rows_per_step: int = 0
    hand_off: int = 0


@dataclass(frozen=True)
class Region:
    """A chain of groups joined by row rings; tensors between regions are whole.

    A region is streamed unless it is a single operator that runs over all rows in one step.
    """

    groups: tuple[Group, ...]

    @property
    def ops(self) -> tuple[int, ...]:
        """Its operators, in order."""
        return tuple(op for group in self.groups for op in group.ops)

    @property
    def is_streamed(self) -> bool:
        """Whether it runs row by row."""
        return len(self.groups) > 1 or any(group.rows_per_step for group in self.groups)


@dataclass(frozen=True)
class Buffer:
    """A piece of the arena.

    `tensors` are the graph's tensors that share it (a RESHAPE's two sides), empty for scratch.
    Live from the start of step `first` to the end of step `last` (both counted over the whole
    plan). `size` and `offset` in bytes. A RING holds the last `rows` rows of its tensor, or of
    these only the last `columns` columns (0: all); 0 rows: the whole tensor.
    """

    kind: BufferKind
    name: str
    tensors: tuple[int, ...]
    size: int
    first: int
    last: int
    offset: int = -1
    rows: int = 0
    columns: int = 0
    op: int = -1  # of scratch and accumulators: the operator they serve

    def touches(self, other: Buffer) -> bool:
        """Whether both have bytes in common, where they lie."""
        return self.offset < other.offset + other.size and other.offset < self.offset + self.size


@dataclass(frozen=True)
class Overlap:
    """Permission for an operator's output to lie on its dying input.

    Safe when offset(input buffer) >= offset(output buffer) + distance, in bytes; buffers by their
    position in Plan.buffers, `op` the position in Graph.ops of the operator.
    """

    op: int
    input: int
    output: int
    distance: int


def replace_numbers(record: Record, **fields: int) -> Record:
    """The same with other numbers, as by dataclasses.replace: placing makes so many that its time counts."""
    made: Record = object.__new__(type(record))
    made.__dict__.update(record.__dict__, **fields)
    return made


@dataclass(frozen=True)
class Load:
    """Constants of operator `op` that are brought into the arena before it reads them.

    `buffer`: position in Plan.buffers of the WEIGHTS buffer; bringing them begins with that one's
    first step. `size`: bytes of all its constants. `channels`: output channels that come at a time
    (0: all there are), for which the operator then computes its whole output; `slots`: parts that
    the buffer holds: with two, one comes while the operator computes with the other. `by_turns`: they
    come anew with every turn of the operator's group, as long as the buffer lives: see
    `plan.schedule.timeline`. In a streamed region an operator may have several loads, each with a buffer
    of its own: the one that began last is read.
    """

    op: int
    buffer: int
    size: int
    channels: int = 0
    slots: int = 1
    by_turns: bool = False


@dataclass(frozen=True)
class Move:
    """A tensor that goes on living at another place: its bytes are copied between two regions.

    Positions in Plan.buffers of two buffers of the same tensors. The copy (of bytes that may overlap,
    as memmove does) is made before the target's first step, which is a region's first.
    """

    source: int
    target: int


@dataclass(frozen=True)
class Plan:
    """How a graph runs on a target."""

    strategy: str
    topology: str  # digest of the graph's topology
    target: str  # digest of the target
    image: str  # overwritable | resident | stream
    regions: tuple[Region, ...]
    kernels: tuple[str, ...]  # per operator of the graph: the kernel variant's name, "" for aliases
    buffers: tuple[Buffer, ...]
    overlaps: tuple[Overlap, ...]
    alignment: int
    arena_bytes: int  # end of the highest buffer
    arena_bound_bytes: int  # no placement of these buffers, with the overlaps allowed, needs less
    macs: int
    macs_layerwise: int
    cost: float  # the target's estimate
    cost_unit: CostUnit
    accounting: tuple[str, ...]  # what arena_bytes counts, in words
    loads: tuple[Load, ...] = ()  # empty: kernels read all constants where they are
    moves: tuple[Move, ...] = ()  # in the order in which they are made
    # From this offset on, buffers lie in an arena of their own, in the board's second memory (0: in none).
    # Up to arena_bytes the addresses of both are counted through, and no buffer lies across: so time and
    # place, overlaps and moves mean the same as in one memory.
    second_at: int = 0
    # What lives between invokes, one buffer for each of Graph.states, with the tensors whose bytes are its.
    # It is memory of its own: offsets count from its start, and no arena has any of it.
    states: tuple[Buffer, ...] = ()
    # Operators that run again: positions in `regions` and elsewhere are those of the network with them.
    second_passes: tuple[SecondPass, ...] = ()
    # Slices of channels that run no code, as their readers read the wider tensor (see `graph.partviews`).
    views: tuple[int, ...] = ()

    @property
    def state_bytes(self) -> int:
        """Bytes of what lives between invokes, which are in no arena."""
        end = max((b.offset + b.size for b in self.states), default=0)
        return -(-end // self.alignment) * self.alignment

    @property
    def arenas(self) -> tuple[int, ...]:
        """Bytes of each arena, in the order of `Board.holders`."""
        return (self.second_at, self.arena_bytes - self.second_at) if self.second_at else (self.arena_bytes,)

    @property
    def f(self) -> float:
        """Multiply-accumulates executed over those of the network run layer by layer."""
        return self.macs / self.macs_layerwise if self.macs_layerwise else 1.0
