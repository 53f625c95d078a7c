"""Replays a plan on a model of its memory.

Each step checks that its reads find the right bytes, then overwrites the bytes that it writes. The replay
trusts no lifetimes or overlaps of the planner: a ring that is too short, a tensor that is overwritten too
early, or a lifetime that is too short all lead to a read of the wrong byte.

Steps run in C (replay.c). Every byte of the arena has a tag of 32 bits: each byte of each tensor has a
number, and so have scratch, accumulators and constants of each operator. tests/oracles/replay_twin.py runs
the steps in Python. This module makes the tables of a graph and a plan for C, with lines of 64-bit numbers as
in replay.c.
"""

from __future__ import annotations

import ctypes
import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise

import numpy as np
import numpy.typing as npt

from buildtool.base.compiled import load as load_library
from buildtool.base.errors import PlanError
from buildtool.base.modes import Image
from buildtool.graph.liveness import state_of
from buildtool.graph.ops import ALIAS_KINDS
from buildtool.graph.partviews import parts
from buildtool.graph.types import AxisAttrs, Graph, Op, OpKind
from buildtool.plan.check.contents import keeps_channels, refuse_mixed, sum_bytes
from buildtool.plan.check.reads import (
    Read,
    alias_groups,
    ends_rows,
    kept_rows,
    makes_planes,
    reads,
    sums_up,
    swapping,
)
from buildtool.plan.check.states import updates
from buildtool.plan.schedule.delivery import delivered_image
from buildtool.plan.schedule.schedule import Steps
from buildtool.plan.schedule.timeline import Timeline, load_steps
from buildtool.plan.types import SOURCE, Buffer, BufferKind, Load, Move, Plan, Region, Step, replace_numbers
from buildtool.target.types import Contract, KernelVariant

# Tags: 0 for bytes that nobody has written, three for each operator, then those of the tensors' bytes.
_SCRATCH, _SUMS, _CONSTANTS = 1, 2, 3  # plus three times the operator's position
_MOST_TAGS = 1 << 32
_BLOCK = 64  # bytes that have one tag together where their tags follow each other

_Table = npt.NDArray[np.int64]
_NOWHERE = (0, -1, 0)  # struct replay_area of a missing area: offset, size, tag
_TENSOR, _READ, _OPERATOR = 14, 10, 24  # numbers in a line of a table
_CONSTANTS_AT = 17  # in a line of an operator


@dataclass(frozen=True)
class Area:
    """Bytes of a buffer that belongs to no tensor.

    buffer: where they are.
    tag: what the replay stores for each byte.
    size: how many bytes of the buffer are used.
    """

    buffer: Buffer
    tag: int
    size: int

    @classmethod
    def of(cls, buffer: Buffer | None, tag: int, position: int, most: int | None = None) -> Area | None:
        """Returns the area of an operator in a buffer; None without a buffer.

        `tag`: _SCRATCH, _SUMS or _CONSTANTS. `position`: the operator's. `most`: the most bytes that are
        used.
        """
        if buffer is None:
            return None
        return cls(buffer, tag + 3 * position, buffer.size if most is None else min(buffer.size, most))


@dataclass(frozen=True)
class Operator:
    """One operator as the replay needs it: its reads, its buffers, and the promises of its kernel.

    reads: the activations that it reads.
    by_row: whether its kernel works row by row.
    sums_up: whether it is a global pooling.
    makes_planes: whether it makes planes of an image's channels.
    scratch, sums, constants: its areas in the arena, if any.
    lines: in a group of bands, the area that keeps the last `kept` rows of its output.
    outside: if the group swaps, how many columns of these rows are outside of the window; else -1.
    """

    op: Op
    reads: tuple[Read, ...]
    contract: Contract  # the overlap of output and input that the replay allows
    by_row: bool
    sums_up: bool
    makes_planes: bool
    scratch: Area | None
    sums: Area | None
    constants: Area | None
    lines: Area | None = None
    kept: int = 0
    outside: int = -1


def operators(plan: Plan, graph: Graph, kernels: Sequence[KernelVariant | None]) -> dict[int, Operator]:
    """Returns position -> operator. Aliases are left out."""
    served = {(b.op, b.kind): b for b in plan.buffers if b.op >= 0}
    loads = {load.op: load for load in reversed(plan.loads)}  # the first one of each
    kept, swaps = kept_rows(graph, plan.regions), swapping(plan.regions)
    by_position = {}
    for position, op in enumerate(graph.ops):
        if op.kind in ALIAS_KINDS:
            continue
        load, kernel, inside = loads.get(position), kernels[position], updates(graph, op)
        read = tuple(one for one in reads(graph, op) if one.tensor not in inside)
        # an operator in slices of its channels reads all its input again for the last slice
        again = load is not None and load.channels and not keeps_channels(graph, op)
        contract = kernel.overlap if kernel and not again else Contract.NONE
        if contract is Contract.PARTS and op.kind is not OpKind.CONCATENATION:
            contract = Contract.NONE
        sums, lines = (served.get((position, kind)) for kind in (BufferKind.ACCUMULATOR, BufferKind.LINES))
        by_position[position] = Operator(
            op,
            read,
            contract,
            contract in (Contract.ROW, Contract.PIXEL) and any(one.rows for one in read),
            sums_up(graph, op),
            makes_planes(graph, op),
            Area.of(served.get((position, BufferKind.SCRATCH)), _SCRATCH, position),
            Area.of(sums, _SUMS, position, sum_bytes(graph, op) if sums else None),
            _loaded(plan, load) if load else None,
            Area.of(lines, 0, position),
            kept.get(position, 0),
            (lines.columns if lines else 0) if position in swaps else -1,
        )
    return by_position


def _loaded(plan: Plan, load: Load) -> Area | None:
    """Returns the bytes into which a load copies constants."""
    most = None if load.channels else load.size
    return Area.of(plan.buffers[load.buffer], _CONSTANTS, load.op, most)


def _number_bytes(graph: Graph, groups: Mapping[int, int]) -> dict[int, int]:
    """Returns tensor -> the tag of its first byte. `groups`: see `alias_groups`.

    Raises PlanError if 32 bits cannot number all bytes.
    """
    sizes: dict[int, int] = {}
    for t, group in groups.items():
        sizes[group] = max(sizes.get(group, 0), graph.tensors[t].size)
    ends = [1 + 3 * len(graph.ops), *sizes.values()]
    firsts = dict(zip(sizes, accumulate(ends), strict=False))
    if sum(ends) > _MOST_TAGS:
        raise PlanError(
            f"the network's tensors have {sum(ends):,} bytes, more than a plan can be checked for"
        )
    return {t: firsts[group] for t, group in groups.items()}


class _Model(ctypes.Structure):
    """The struct replay_model of replay.c."""

    _fields_ = (
        ("tags", ctypes.c_void_p),
        ("blocks", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("tensors", "operators", "reads", "outputs", "spans", "parts")),
        ("source", ctypes.c_int64),
        ("turns", ctypes.c_void_p),
        ("fault", ctypes.c_void_p),
    )


_C = load_library(
    __file__,
    "replay",
    7,
    {
        "replay_run": (
            *(ctypes.c_int64, ctypes.POINTER(_Model), ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32),
        ),
        "replay_fill": (None, ctypes.POINTER(_Model), *[ctypes.c_int64] * 3),
        "replay_copy": (None, ctypes.POINTER(_Model), *[ctypes.c_int64] * 3),
        "replay_write": (ctypes.c_int32, ctypes.POINTER(_Model), ctypes.c_int64),
        "replay_holds": (ctypes.c_int32, ctypes.POINTER(_Model), ctypes.c_int64),
    },
)
_AREA_OUTSIDE = 9  # the kind of replay.c for scratch and accumulators
# For the other kinds: the text, and whether the error has the tensor and the operator.
_FAULTS = (
    ("rows {} to {} are not in the arena when they are read", True, True),
    ("bytes {} to {} are not in the arena when they are read", True, True),
    ("is written outside of the arena", True, False),
    ("has no buffer", True, False),
    ("writes over what it reads", False, True),
    ("writes over its scratch", False, True),
    ("its constants are not in the arena when it runs", False, True),
    ("a global pooling in a streamed region has no accumulators", False, True),
    ("the accumulators were overwritten", False, True),
)


def replay(plan: Plan, timeline: Timeline, kernels: Sequence[KernelVariant | None]) -> dict[int, int]:
    """Runs the whole plan. Returns operator position -> pixels computed (repetitions included).

    `timeline`: the checker's own timeline of the plan's regions. Raises PlanError at the first step that
    reads wrong bytes.
    """
    return Replay(plan, timeline, kernels).run()


class Replay:
    """One run through all steps of a plan.

    `tags`: the tags of the arena's bytes, then those of the states' bytes. Where the tags of a block of bytes
    are equal or consecutive, `_blocks` has one number for the block instead (see replay.c). So most of the
    memory of `tags` is never touched.
    """

    def __init__(self, plan: Plan, timeline: Timeline, kernels: Sequence[KernelVariant | None]) -> None:
        self.plan, self.timeline, self.graph = plan, timeline, timeline.graph
        self.operators = operators(plan, self.graph, kernels)
        self._limits = self._find_limits()
        self.groups = alias_groups(self.graph)
        self.first_tags = _number_bytes(self.graph, self.groups)
        self._loads_at: dict[int, list[Load]] = {}  # step -> loads that begin with it
        for step, load in load_steps(timeline, plan.loads, plan.buffers):
            self._loads_at.setdefault(step, []).append(load)
        self._moves_at: dict[int, list[Move]] = {}  # step -> moves before it
        for move in plan.moves:
            self._moves_at.setdefault(plan.buffers[move.target].first, []).append(move)
        self.size = plan.arena_bytes + plan.state_bytes
        self._blocks: _Table = np.zeros(-(-self.size // _BLOCK), np.int64)
        self.tags = np.zeros(len(self._blocks) * _BLOCK, np.uint32)
        self._fault: _Table = np.zeros(4, np.int64)
        self.turns: _Table = np.full(len(self.graph.ops) + 1, -1, np.int64)  # rows begun, less one
        self._holders: dict[int, Buffer] = {}
        self._tensors: _Table = np.zeros((len(self.graph.tensors), _TENSOR), np.int64)
        targets = {move.target for move in plan.moves}
        for index, buffer in enumerate(plan.buffers):
            if index not in targets:
                self._holders.update((t, buffer) for t in buffer.tensors)
        for buffer in plan.states:
            behind = replace_numbers(buffer, offset=plan.arena_bytes + buffer.offset)
            self._holders.update((t, behind) for t in buffer.tensors)
        for t in self.groups:
            self._tensors[t] = self._tensor_line(t)
        self._tables = _tables(self.graph, self.operators, self.groups)
        self._model = _Model(
            self.tags.ctypes.data,
            self._blocks.ctypes.data,
            self.size,
            self._tensors.ctypes.data,
            *(table.ctypes.data for table in self._tables),
            delivered_image(self.graph).tensor,
            self.turns.ctypes.data,
            self._fault.ctypes.data,
        )

    def _tensor_line(self, t: int) -> tuple[int, ...]:
        """Returns a tensor's struct replay_tensor of replay.c."""
        tensor, buffer, part = self.graph.tensors[t], self._holders.get(t), parts(self.graph).get(t)
        batch, height, width, channels = tensor.nhwc
        offset, buffer_size, rows, columns, pitch, first = 0, -1, 0, 0, 0, 0
        if buffer is not None:
            offset, buffer_size, rows, columns = buffer.offset, buffer.size, buffer.rows, buffer.columns
        if part is not None:
            pitch, first = self.graph.tensors[part.whole].pixel_bytes, part.first * tensor.dtype.size
        layout = (offset, rows or height, columns or width, not rows, pitch, first, buffer_size)
        described = (batch, height, width, channels, channels * tensor.dtype.size, tensor.size)
        return (*layout, *described, self.first_tags[t])

    def run(self) -> dict[int, int]:
        """Runs the whole plan: see `replay`."""
        graph, timeline = self.graph, self.timeline
        rows = self.plan.image == Image.STREAM
        for t in graph.inputs:
            if not rows or t != delivered_image(graph).input:
                self.write(t)
        for state in graph.states:
            self.write(state.before)
        loading, sums = sorted(self._loads_at), np.zeros(len(graph.ops) + 1, np.int64)  # SOURCE's come last
        for run, first in zip(timeline.runs, timeline.starts, strict=False):
            self._move(first)
            for begin, steps in run.portions():
                self._check_windows(steps)
                height, width = (steps[:, i + 1].astype(np.int64) - steps[:, i] for i in (1, 3))
                np.add.at(sums, steps[:, 0], height * width)
                at = first + begin
                cuts = loading[bisect_right(loading, at) : bisect_left(loading, at + len(steps))]
                for start, stop in pairwise([at, *cuts, at + len(steps)]):
                    self._load(start)
                    self._refuse_mixed(run.region)
                    self.run_steps(steps[start - at : stop - at], run.region.is_streamed)
        if self._moves_at:
            first = min(self._moves_at)
            raise PlanError(f"a tensor moves at step {first}, but no region begins with that step")
        lasting = [*graph.outputs, *(state.after for state in graph.states)]
        lasting += graph.inputs if self.plan.image == Image.RESIDENT else []
        for t in lasting:
            if t in self.groups:
                self.require(t)
        return {position: int(sums[position]) for position in sorted(timeline.lives) if position != SOURCE}

    def _find_limits(self) -> _Table:
        """Returns for each operator the rows and columns within which its steps must lie.

        They are those of its output, or of its input (see `ends_rows`). The last row of the result is for
        deliveries of rows.
        """
        graph = self.graph
        streamed = {op for region in self.timeline.regions if region.is_streamed for op in region.ops}
        limits = np.zeros((len(graph.ops) + 1, 2), np.int64)  # rows, columns; those of deliveries come last
        states = state_of(graph)  # written whole, whatever window of its output a step makes
        for position in self.timeline.lives:
            if position == SOURCE:
                bounds = [delivered_image(graph).tensor]
            elif position in streamed and ends_rows(graph, graph.ops[position]):
                bounds = [graph.ops[position].inputs[0]]
            elif position in streamed or self.operators[position].by_row:
                outputs = graph.ops[position].outputs
                bounds = [t for t in outputs if t not in states] or list(outputs)
            else:  # its outputs are written whole, and may have other rows than the first one
                bounds = list(graph.ops[position].outputs[:1])
            limits[position] = np.min([graph.tensors[t].nhwc[1:3] for t in bounds], axis=0)
        return limits

    def _check_windows(self, steps: Steps) -> None:
        """Raises PlanError unless each step's window lies within its limits (see `_find_limits`)."""
        outside = (steps[:, 1::2] < 0) | (steps[:, 2::2] > self._limits[steps[:, 0]])
        if outside.any():
            step = Step(*steps[int(outside.any(axis=1).argmax())].tolist())
            window = f"rows {step.y0} to {step.y1}, columns {step.x0} to {step.x1}"
            rows, columns = self._limits[step.op].tolist()
            place = self.graph.ops[step.op].place if step.op != SOURCE else "the rows that are delivered"
            raise PlanError(f"a step computes {window} of {rows} x {columns}", operator=place)

    def write(self, tensor: int) -> None:
        """Writes a whole tensor: its bytes in the arena get the tensor's tags."""
        if not _C.replay_write(ctypes.byref(self._model), tensor):
            raise self._make_error("")

    def require(self, tensor: int) -> None:
        """Raises PlanError unless a whole tensor is in memory at the end."""
        if not _C.replay_holds(ctypes.byref(self._model), tensor):
            raise self._make_error("the end of the invoke")

    def copy(self, source: int, target: int, size: int) -> None:
        """Copies bytes of the arena, as memmove does."""
        _C.replay_copy(ctypes.byref(self._model), source, target, size)

    def fill(self, offset: int, size: int, tag: int) -> None:
        """Fills bytes of the arena with one tag."""
        _C.replay_fill(ctypes.byref(self._model), offset, size, tag)

    def run_steps(self, steps: Steps, streamed: bool) -> None:
        """Runs some steps of one region. `streamed`: whether the region is streamed.

        Raises PlanError at the first step that reads wrong bytes.
        """
        lines = np.ascontiguousarray(steps, np.int32)
        steps_run = _C.replay_run(ctypes.byref(self._model), lines.ctypes.data, len(lines), streamed)
        if steps_run == len(lines):
            return
        position = int(lines[steps_run, 0])
        if position == SOURCE:
            raise self._make_error("")
        operator = self.operators[position]
        for area in (operator.scratch, operator.sums, operator.lines):
            if area is not None and self._fault[0] == _AREA_OUTSIDE:
                self.refuse_outside(area.buffer)
        raise self._make_error(operator.op.place)

    def _make_error(self, operator: str) -> PlanError:
        """Builds the error for a fault that replay.c reported. `operator`: where it happened."""
        kind, tensor, first, end = self._fault.tolist()
        words, names_tensor, names_operator = _FAULTS[kind]
        return PlanError(
            words.format(first, end),
            operator=operator if names_operator else "",
            tensor=self.graph.tensors[tensor].name if names_tensor else "",
        )

    def buffer(self, tensor: int) -> Buffer:
        """Returns the buffer that holds a tensor at present. Raises PlanError if the tensor has none."""
        if tensor not in self._holders:
            raise PlanError("has no buffer", tensor=self.graph.tensors[tensor].name)
        return self._holders[tensor]

    def _refuse_mixed(self, region: Region) -> None:
        """Raises PlanError if an operator in slices overwrites input that its next slice reads."""
        for load in self.plan.loads if not region.is_streamed else ():
            if load.channels and load.op in region.ops:
                op = self.graph.ops[load.op]
                refuse_mixed(self.graph, op, self.buffer(op.inputs[0]), self.buffer(op.outputs[0]))

    def _move(self, number: int) -> None:
        """Runs the moves before step `number`: a tensor's bytes are copied to its next buffer."""
        for move in self._moves_at.pop(number, ()):
            source, target = self.plan.buffers[move.source], self.plan.buffers[move.target]
            for buffer in (source, target):
                self.refuse_outside(buffer)
            same = source.tensors and source.tensors == target.tensors
            if not same or source.size != target.size or source.rows or target.rows:
                text = f"buffer '{source.name}' cannot move to '{target.name}', which is another tensor's"
                raise PlanError(text)
            self.copy(source.offset, target.offset, source.size)
            for t in target.tensors:
                self._holders[t] = target
                self._tensors[t] = self._tensor_line(t)

    def _load(self, number: int) -> None:
        """Runs the loads of constants that begin with step `number`."""
        for load in self._loads_at.get(number, ()):
            buffer = self.plan.buffers[load.buffer]
            constants = _loaded(self.plan, load)
            assert constants is not None
            if constants != self.operators[load.op].constants:
                self.operators[load.op] = replace(self.operators[load.op], constants=constants)
                self._tables[0][load.op, _CONSTANTS_AT : _CONSTANTS_AT + 3] = _area(constants)
            self.refuse_outside(buffer)
            self.fill(buffer.offset, constants.size, constants.tag)

    def refuse_outside(self, buffer: Buffer) -> None:
        """Raises PlanError unless a buffer lies inside the arena."""
        if buffer.offset < 0 or buffer.offset + buffer.size > self.size:
            raise PlanError(f"buffer '{buffer.name}' lies outside of the arena")


def _tables(graph: Graph, operators: Mapping[int, Operator], groups: Mapping[int, int]) -> tuple[_Table, ...]:
    """Returns the tables for replay.c.

    They are the operators, their reads, their outputs, the spans of reads without a stride, and the parts
    that concatenations copy. `groups`: see `alias_groups`.
    """
    table: _Table = np.zeros((len(graph.ops), _OPERATOR), np.int64)
    reads, outputs, spans, copied = list[tuple[int, ...]](), list[int](), list[int](), list[int]()
    for position, operator in operators.items():
        op, line, before = operator.op, table[position], (len(reads), len(outputs), len(copied) // 2)
        reads += [_read_line(read, spans) for read in operator.reads]
        outputs += op.outputs
        lines = 0
        if operator.contract is Contract.PARTS:
            assert isinstance(op.attrs, AxisAttrs)
            lines = math.prod(graph.tensors[op.outputs[0]].shape[: op.attrs.axis])
            for t in op.inputs:
                copied += (t if t in groups else -1, graph.tensors[t].size // lines)
        line[:4] = before[0], len(reads), before[1], len(outputs)
        line[4:6] = operator.by_row, operator.contract is Contract.PIXEL
        line[6:8] = operator.sums_up, operator.makes_planes
        line[8:11] = before[2], len(copied) // 2, lines
        line[11:20] = [*_area(operator.scratch), *_area(operator.sums), *_area(operator.constants)]
        line[20:] = [*_area(operator.lines)[:2], operator.kept, operator.outside]
    all_reads = np.array(reads, np.int64).reshape(-1, _READ)
    return table, all_reads, *(np.array([*numbers, 0], np.int64) for numbers in (outputs, spans, copied))


def _read_line(read: Read, spans: list[int]) -> tuple[int, ...]:
    """Returns the struct replay_read of replay.c.

    Ranges without a stride are appended to `spans`, and the struct has their position in it.
    """
    if read.rows is None or read.columns is None:
        return (read.tensor, 0, *([0] * (_READ - 2)))
    line = [read.tensor, 1]
    for taps in (read.rows, read.columns):
        line += (taps.size, taps.extent, *((0, len(spans)) if taps.spans else (taps.stride, taps.pad)))
        spans.extend(chain.from_iterable(taps.spans))
    return tuple(line)


def _area(area: Area | None) -> tuple[int, int, int]:
    """Returns the struct replay_area of replay.c."""
    return (area.buffer.offset, area.size, area.tag) if area else _NOWHERE
