"""Types of a plan, which says how a network runs: steps, regions, buffers. They are data without code."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeVar

from buildtool.base.modes import CostUnit
from buildtool.graph.hop.types import Hop
from buildtool.graph.types import SecondPass

SCHEMA = 14  # version of the format of a plan's bytes
Record = TypeVar("Record", "Buffer", "Overlap")


class BufferKind(enum.StrEnum):
    """What a buffer in the arena holds."""

    TENSOR = "tensor"  # a whole tensor
    RING = "ring"  # the last rows of a tensor, or a window of some of its columns
    ACCUMULATOR = "accumulator"  # the sums of a global pooling that is fed row by row
    SCRATCH = "scratch"  # what a kernel needs while it runs
    WEIGHTS = "weights"  # loaded constants of an operator
    LINES = "lines"  # rows of a tensor inside a group of bands, which the group's next step reads again
    STATE = "state"  # in Plan.states, outside of the arenas


class Scheme(enum.StrEnum):
    """How a group of operators runs."""

    OPERATOR = "operator"
    H_CACHED = "h-cached"  # keeps columns from one hand-off to the next, and recomputes rows
    EDGES = "edges"  # the same, but the first and the last step make more rows (see schedule.pace)
    BANDS = "bands"  # keeps columns, and copies the rows that its next step reads again to LINES and back
    SWAPS = "swaps"  # as BANDS, but a kept pixel is either in LINES or in a window that lasts
    HALO = "halo"  # strips of whole rows, operator by operator; rows that two strips share are recomputed
    BRANCHES = "branches"  # operators keep the rows that are still read; nothing is recomputed


SOURCE = -1  # Step.op of the row source, which delivers rows of the streamed input image


@dataclass(frozen=True)
class Step:
    """One kernel call: rows [y0, y1) and columns [x0, x1) of operator `op`'s output.

    For a global pooling in a streamed region these are the part of its input that the call adds to the
    pooling's accumulators. The last step finishes the pooling.
    """

    op: int
    y0: int
    y1: int
    x0: int
    x1: int


@dataclass(frozen=True)
class Group:
    """Operators (positions in Graph.ops) that run under one scheme, in the graph's order.

    All but the last operator feed others of the group. `rows_per_step`: rows of the last operator's output
    per step (0: all rows). `hand_off`: how many pixels of such a row the operators make before the next part
    of the row (0: the whole row).
    """

    ops: tuple[int, ...]
    scheme: Scheme = Scheme.OPERATOR
    rows_per_step: int = 0
    hand_off: int = 0

    @property
    def in_bands(self) -> bool:
        """Returns whether the group keeps rows from step to step in LINES, by copies or by swaps."""
        return self.scheme in (Scheme.BANDS, Scheme.SWAPS)


@dataclass(frozen=True)
class Region:
    """A chain of groups, with row rings (line buffers) between the groups. Tensors between regions are whole.

    A region is streamed unless it is a single operator that runs over all rows in one step.
    """

    groups: tuple[Group, ...]

    @property
    def ops(self) -> tuple[int, ...]:
        """Returns its operators, in order."""
        return tuple(op for group in self.groups for op in group.ops)

    @property
    def is_streamed(self) -> bool:
        """Returns whether the region runs row by row."""
        return len(self.groups) > 1 or any(group.rows_per_step for group in self.groups)


@dataclass(frozen=True)
class Buffer:
    """A piece of the arena, or of the memory for states.

    kind: what it holds.
    tensors: the graph's tensors that share it (a RESHAPE's two sides); empty for scratch.
    size, offset: in bytes.
    first, last: it is live from the start of step `first` to the end of step `last`, counted over the whole
        plan.
    rows, columns: a RING holds the last `rows` rows of its tensor (0: the whole tensor), and of these the
        last `columns` columns (0: all).
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
    op: int = -1  # the operator that scratch or accumulators serve

    def touches(self, other: Buffer) -> bool:
        """Returns whether both buffers have bytes in common at their offsets."""
        return self.offset < other.offset + other.size and other.offset < self.offset + self.size


@dataclass(frozen=True)
class Overlap:
    """Permission for an operator's output to lie on its dying input, or on the ring of a streamed image.

    It is safe if offset(input buffer) >= offset(output buffer) + distance, in bytes. `input` and `output`
    are positions in Plan.buffers, `op` is the operator's position in Graph.ops.
    """

    op: int
    input: int
    output: int
    distance: int


def replace_numbers(record: Record, **fields: int) -> Record:
    """Does the same as dataclasses.replace, but faster, because placing calls it very often."""
    copy: Record = object.__new__(type(record))
    copy.__dict__.update(record.__dict__, **fields)
    return copy


@dataclass(frozen=True)
class Load:
    """A copy of the constants of operator `op` into the arena before the operator reads them.

    buffer: position in Plan.buffers of the WEIGHTS buffer. The copy begins with that buffer's first step.
    size: bytes of all constants of the operator.
    channels: output channels per copy (0: all). The operator computes these channels of its whole output.
    slots: how many copies the buffer holds. With two, one is filled while the operator reads the other.
    by_turns: whether the constants are copied anew each time that the operator's group runs, as long as the
        buffer lives (see `plan.schedule.timeline`).

    In a streamed region an operator may have several loads, each with its own buffer. It reads the one that
    began last.
    """

    op: int
    buffer: int
    size: int
    channels: int = 0
    slots: int = 1
    by_turns: bool = False


@dataclass(frozen=True)
class Move:
    """A copy of a live tensor to another place, between two regions.

    `source` and `target` are positions in Plan.buffers of two buffers with the same tensors. The copy runs
    before the target's first step, which is the first of a region. The bytes may overlap, as in memmove.
    """

    source: int
    target: int


@dataclass(frozen=True)
class Removed:
    """Channels of a tensor that are not computed: they are constant, or nothing reads them.

    `tensor` is the tensor's number in the rewritten network that still has all channels.
    """

    tensor: int
    channels: tuple[int, ...]


@dataclass(frozen=True)
class Narrowed:
    """An operator whose weights the weight image stores in four bits (see `WeightedAttrs`).

    op: its position in the rewritten network, in the order of the file.
    expanded: how many output channels are expanded to bytes at a time, before the kernel computes them.
    stored: bytes that the weight image has for the operator.
    """

    op: int
    expanded: int
    stored: int


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
    arena_bound_bytes: int  # lower bound of all placements of these buffers with the permitted overlaps
    macs: int
    macs_layerwise: int
    cost: float  # the target's estimate
    cost_unit: CostUnit
    accounting: tuple[str, ...]  # what arena_bytes counts, in words
    loads: tuple[Load, ...] = ()  # empty: kernels read all constants in place
    moves: tuple[Move, ...] = ()  # in the order of execution
    # Buffers from this offset on lie in a second arena, in the board's second memory (0: there is none).
    # Offsets run through both arenas up to arena_bytes, and no buffer lies in both. So lifetimes, offsets,
    # overlaps and moves mean the same as in one memory.
    second_at: int = 0
    # State that lives between invokes: one buffer for each of Graph.states, with the tensors that share it.
    # It is a separate memory outside of the arenas. Offsets count from its start.
    states: tuple[Buffer, ...] = ()
    # Operators that run again. Positions in `regions` and elsewhere are those of the network with them.
    second_passes: tuple[SecondPass, ...] = ()
    # Slices of channels without code: their readers read the wider tensor (see `graph.partviews`).
    views: tuple[int, ...] = ()
    # Channels that the network does not compute. Tensors elsewhere in the plan are those of the network
    # without these channels.
    removed: tuple[Removed, ...] = ()
    narrowed: tuple[Narrowed, ...] = ()
    # How the network runs on a moving window; operators and tensors are those of the network on the whole
    # window. None: each invoke has its own input.
    hop: Hop | None = None

    @property
    def state_bytes(self) -> int:
        """Returns the aligned bytes of the state that lives between invokes, outside of the arenas."""
        end = max((b.offset + b.size for b in self.states), default=0)
        return -(-end // self.alignment) * self.alignment

    @property
    def arenas(self) -> tuple[int, ...]:
        """Returns the bytes of each arena, in the order of `Board.holders`."""
        return (self.second_at, self.arena_bytes - self.second_at) if self.second_at else (self.arena_bytes,)

    @property
    def f(self) -> float:
        """Returns the plan's multiply-accumulates divided by those of the network run layer by layer."""
        return self.macs / self.macs_layerwise if self.macs_layerwise else 1.0
