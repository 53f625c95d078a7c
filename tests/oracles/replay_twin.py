"""The replay of replay.c in Python: every byte of the arena knows which byte of which tensor it holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from buildtool.base.errors import PlanError
from buildtool.graph.partviews import parts
from buildtool.graph.types import AxisAttrs, Graph, Op
from buildtool.plan.check.reads import Read, Span
from buildtool.plan.check.replay import Area, Operator, Replay
from buildtool.plan.schedule.delivery import delivered_image
from buildtool.plan.schedule.schedule import Steps
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import SOURCE, Buffer, Plan, Step
from buildtool.target.types import Contract, KernelVariant


def replay(plan: Plan, timeline: Timeline, kernels: Sequence[KernelVariant | None]) -> dict[int, int]:
    """Does what check/replay.py does, with the steps in Python."""
    return PythonReplay(plan, timeline, kernels).run()


class Piece(NamedTuple):
    """A run of bytes: `byte` is its place in the tensor, `address` in the arena."""

    address: int
    byte: int
    size: int


def pieces(graph: Graph, buffer: Buffer, tensor: int, rows: Span, columns: Span) -> Iterator[Piece]:
    """Yields the longest contiguous runs of a tensor's window in its buffer."""
    described = graph.tensors[tensor]
    batch, height, width, channels = described.nhwc
    pixel = channels * described.dtype.size
    if tensor in parts(graph):  # some channels of another tensor, which lies whole
        within = parts(graph)[tensor]
        pitch, first = graph.tensors[within.whole].pixel_bytes, within.first * described.dtype.size
        all_pixels = range(batch * height * width)
        window = (y * width + x for y in range(*rows) for x in range(*columns))
        for number in all_pixels if batch > 1 else window:
            byte = number * pitch + first
            yield Piece(buffer.offset + byte, byte, described.pixel_bytes)
        return
    if not buffer.rows and (batch > 1 or (columns == (0, width) and rows == (0, height))):
        yield Piece(buffer.offset, 0, described.size)
        return
    kept_rows, kept_columns = buffer.rows or height, buffer.columns or width
    whole_rows = columns == (0, width) and kept_columns == width
    y = rows[0]
    while y < rows[1]:
        base = buffer.offset + y % kept_rows * kept_columns * pixel
        if whole_rows:
            count = min(rows[1] - y, kept_rows - y % kept_rows)
            yield Piece(base, y * width * pixel, count * width * pixel)
            y += count
            continue
        x = columns[0]
        while x < columns[1]:
            count = min(columns[1] - x, kept_columns - x % kept_columns)
            yield Piece(base + x % kept_columns * pixel, (y * width + x) * pixel, count * pixel)
            x += count
        y += 1


class PythonReplay(Replay):
    """A replay whose steps run in Python."""

    def write(self, tensor: int) -> None:
        """Writes a whole tensor."""
        self._write(tensor, *self._whole(tensor))

    def require(self, tensor: int) -> None:
        """Raises PlanError unless a whole tensor is in the arena at the end."""
        self._require(tensor, *self._whole(tensor), "the end of the invoke")

    def copy(self, source: int, target: int, size: int) -> None:
        """Copies bytes of the arena."""
        self.tags[target : target + size] = self.tags[source : source + size].copy()

    def fill(self, offset: int, size: int, tag: int) -> None:
        """Fills bytes of the arena with one tag."""
        self.tags[offset : offset + size] = tag

    def run_steps(self, steps: Steps, streamed: bool) -> None:
        """Runs some steps of one region."""
        for step in (Step(*line) for line in steps.tolist()):
            if step.op == SOURCE:
                self._write(delivered_image(self.graph).tensor, (step.y0, step.y1), (step.x0, step.x1))
            else:
                self._step(step, self.operators[step.op], streamed)

    def _step(self, step: Step, operator: Operator, streamed: bool) -> None:
        self._require_constants(operator)
        if operator.scratch is not None:
            self._own(operator.scratch)
        if streamed and operator.sums_up:
            self._add_up(step, operator)
        elif streamed and operator.makes_planes:
            self._scatter(step, operator.op)
        elif operator.contract is Contract.PARTS and not streamed:
            self._concatenate(operator.op)
        elif streamed and operator.kept:
            self._keep(step, operator)
        elif step.y0 < step.y1:
            self._compute(step, operator, streamed)
        if operator.scratch is not None and not self._owns(operator.scratch):
            raise PlanError("writes over its scratch", operator=operator.op.place)
        self._require_constants(operator)

    def _compute(self, step: Step, operator: Operator, streamed: bool) -> None:
        """Computes a window of an output, row by row if the kernel's contract promises that."""
        columns = (step.x0, step.x1)
        once = [(step.y0, step.y1)]
        for rows in [(y, y + 1) for y in range(step.y0, step.y1)] if operator.by_row else once:
            for read in operator.reads:
                window = self._window(read, rows, columns)
                if window[0][0] < window[0][1] and window[1][0] < window[1][1]:
                    self._require(read.tensor, *window, operator.op.place)
                    self._refuse_collision(operator, rows, columns, read.tensor, window)
            for t in operator.op.outputs:
                if streamed or operator.by_row:
                    self._write(t, rows, columns)
                else:
                    self.write(t)

    def _keep(self, step: Step, operator: Operator) -> None:
        """Runs a step in a group of bands: rows come from the lines, and its own last rows go there."""
        if operator.outside >= 0:
            self._swap(step, operator)
            if step.y0 < step.y1:
                self._compute(step, operator, True)
            return
        kept, (t,) = operator.kept, operator.op.outputs
        columns = (step.x0, step.x1)
        for y in range(max(0, step.y0 - kept), step.y0):
            self._copy_row(t, y, columns, operator.lines, kept, back=False)
        if step.y0 < step.y1:
            self._compute(step, operator, True)
        for y in range(max(step.y0, step.y1 - kept), step.y1):
            self._copy_row(t, y, columns, operator.lines, kept, back=True)

    def _swap(self, step: Step, operator: Operator) -> None:
        """Swaps the kept rows of columns that come into an operator's window with those that leave it."""
        (t,), kept, outside = operator.op.outputs, operator.kept, operator.outside
        buffer, pixel = self.buffer(t), self.graph.tensors[t].pixel_bytes
        number = self.graph.ops.index(operator.op)
        self.turns[number] += step.x0 == 0
        for x in range(step.x0, step.x1):
            # columns of one remainder take turns: one is in the window, the others are in slots
            alike = range(x % buffer.columns, outside + buffer.columns, buffer.columns)
            if len(alike) == 1:
                continue
            slot = alike[(x // buffer.columns + self.turns[number]) % (len(alike) - 1)]
            end = step.y0 if x == alike[0] else step.y1  # of the rows that leave
            leaving = {y % kept: y for y in range(end - kept, end) if y >= 0}
            coming = {y % kept: y for y in range(step.y0 - kept, step.y0) if y >= 0}
            lines = {k: operator.lines.buffer.offset + (k * outside + slot) * pixel for k in leaving}
            for _, at in (*self._at(buffer, leaving, x, pixel), *self._at(buffer, coming, x, pixel)):
                if at + pixel > self.size:
                    raise PlanError("is written outside of the arena", tensor=self.graph.tensors[t].name)
            if any(line + pixel > self.size for line in lines.values()):
                self.refuse_outside(operator.lines.buffer)
            held = {k: self.tags[line : line + pixel].copy() for k, line in lines.items()}
            gone = {k: self.tags[at : at + pixel].copy() for k, at in self._at(buffer, leaving, x, pixel)}
            for k, line in lines.items():
                self.tags[line : line + pixel] = gone[k]
            for k, at in self._at(buffer, coming, x, pixel):
                self.tags[at : at + pixel] = held[k]

    @staticmethod
    def _at(buffer: Buffer, rows: dict[int, int], x: int, pixel: int) -> Iterator[tuple[int, int]]:
        """Yields the address of column x of some rows in a window."""
        for k, y in rows.items():
            yield k, buffer.offset + (y % buffer.rows * buffer.columns + x % buffer.columns) * pixel

    def _copy_row(self, tensor: int, y: int, columns: Span, lines: Area, kept: int, back: bool) -> None:
        """Copies some pixels of a row from a tensor's lines to its window, or back."""
        row = self.graph.tensors[tensor].row_bytes
        for piece in self._pieces(tensor, (y, y + 1), columns):
            line = lines.buffer.offset + y % kept * row + piece.byte % row
            if y % kept * row + piece.byte % row + piece.size > lines.size:
                self.refuse_outside(lines.buffer)
            to, source = (line, piece.address) if back else (piece.address, line)
            self.tags[to : to + piece.size] = self.tags[source : source + piece.size].copy()

    def _add_up(self, step: Step, operator: Operator) -> None:
        """Adds a part of the input to the accumulators. The last part makes the output."""
        op = operator.op
        if operator.sums is None:
            raise PlanError("a global pooling in a streamed region has no accumulators", operator=op.place)
        self._require(op.inputs[0], (step.y0, step.y1), (step.x0, step.x1), op.place)
        if (step.y0, step.x0) != (0, 0) and not self._owns(operator.sums):
            raise PlanError("the accumulators were overwritten", operator=op.place)
        self._own(operator.sums)
        rows, columns = self._whole(op.inputs[0])
        if (step.y1, step.x1) == (rows[1], columns[1]):
            self.write(op.outputs[0])

    def _scatter(self, step: Step, op: Op) -> None:
        """Copies each element of the step's pixels to its channel's plane."""
        source, result = op.inputs[0], op.outputs[0]
        _, height, width, channels = self.graph.tensors[source].nhwc
        size, window = self.graph.tensors[source].dtype.size, ((step.y0, step.y1), (step.x0, step.x1))
        self._require(source, *window, op.place)
        for y in range(step.y0, step.y1):
            for x in range(step.x0, step.x1):
                for c in range(channels):
                    byte = ((c * height + y) * width + x) * size
                    self._write_piece(result, self._bytes(result, byte, byte + size))
        if not all(self._holds(source, piece) for piece in self._pieces(source, *window)):
            raise PlanError("writes over what it reads", operator=op.place)

    def _require_constants(self, operator: Operator) -> None:
        if operator.constants is not None and not self._owns(operator.constants):
            raise PlanError("its constants are not in the arena when it runs", operator=operator.op.place)

    def _window(self, read: Read, rows: Span, columns: Span) -> tuple[Span, Span]:
        """Returns the window of an input that a window of the output reads."""
        if read.rows is None or read.columns is None:
            return self._whole(read.tensor)
        return read.rows.read(rows), read.columns.read(columns)

    def _refuse_collision(
        self, operator: Operator, rows: Span, columns: Span, source: int, window: tuple[Span, Span]
    ) -> None:
        """Raises PlanError if a step writes over what it reads. Element-by-element kernels may."""
        for t in operator.op.outputs:
            if not self.buffer(t).touches(self.buffer(source)):
                continue
            below, above = self.graph.tensors[source], self.graph.tensors[t]
            by_element = operator.contract is Contract.PIXEL and below.nhwc == above.nhwc
            sources = list(self._pieces(source, *window))
            for out in self._pieces(t, rows, columns):
                for piece in sources:
                    hit = out.address < piece.address + piece.size and piece.address < out.address + out.size
                    sizes = above.dtype.size, below.dtype.size
                    if hit and not (by_element and _reads_first(out, sizes[0], piece, sizes[1])):
                        raise PlanError("writes over what it reads", operator=operator.op.place)

    def _concatenate(self, op: Op) -> None:
        """Copies the parts one after the other, line by line, as their contract promises.

        A line of the output has a line of each part.
        """
        tensors, result = self.graph.tensors, op.outputs[0]
        assert isinstance(op.attrs, AxisAttrs)
        output = self.buffer(result)
        lines = math.prod(tensors[result].shape[: op.attrs.axis])
        width, column = tensors[result].size // lines, 0
        for t in op.inputs:
            line, together = tensors[t].size // lines, lines
            if t in self.groups and output.touches(self.buffer(t)):
                together = 1  # a write may hit bytes that are read later
            for first in range(0, lines, together):
                begin, end = first * line, (first + together) * line
                if t in self.groups and not self._holds(t, self._bytes(t, begin, end)):
                    text = f"bytes {begin} to {end} are not in the arena when they are read"
                    raise PlanError(text, operator=op.place, tensor=tensors[t].name)
                for n in range(first, first + together):
                    begin = n * width + column
                    self._write_piece(result, self._bytes(result, begin, begin + line))
            column += line

    def _whole(self, tensor: int) -> tuple[Span, Span]:
        """Returns all rows and columns of a tensor."""
        _, height, width, _ = self.graph.tensors[tensor].nhwc
        return (0, height), (0, width)

    def _bytes(self, tensor: int, first: int, end: int) -> Piece:
        """Returns bytes [first, end) of a tensor that lies whole in its buffer."""
        return Piece(self.buffer(tensor).offset + first, first, end - first)

    def _pieces(self, tensor: int, rows: Span, columns: Span) -> Iterator[Piece]:
        """Returns the pieces of a tensor's window."""
        return pieces(self.graph, self.buffer(tensor), tensor, rows, columns)

    def _write(self, tensor: int, rows: Span, columns: Span) -> None:
        """Tags a window of a tensor as written."""
        for piece in self._pieces(tensor, rows, columns):
            self._write_piece(tensor, piece)

    def _write_piece(self, tensor: int, piece: Piece) -> None:
        if piece.address < 0 or piece.address + piece.size > self.size:
            raise PlanError("is written outside of the arena", tensor=self.graph.tensors[tensor].name)
        self.tags[piece.address : piece.address + piece.size] = self._tag(tensor, piece)

    def _require(self, tensor: int, rows: Span, columns: Span, reader: str) -> None:
        """Raises PlanError unless a window of a tensor is in the arena."""
        if not all(self._holds(tensor, piece) for piece in self._pieces(tensor, rows, columns)):
            text = f"rows {rows[0]} to {rows[1]} are not in the arena when they are read"
            raise PlanError(text, operator=reader, tensor=self.graph.tensors[tensor].name)

    def _holds(self, tensor: int, piece: Piece) -> bool:
        there = self.tags[piece.address : piece.address + piece.size]
        return there.size == piece.size and bool((there == self._tag(tensor, piece)).all())

    def _tag(self, tensor: int, piece: Piece) -> np.ndarray:
        return np.arange(piece.byte, piece.byte + piece.size) + self.first_tags[tensor]

    def _own(self, area: Area) -> None:
        """Fills a buffer without a tensor with its tag."""
        self.refuse_outside(area.buffer)
        self.tags[area.buffer.offset : area.buffer.offset + area.size] = area.tag

    def _owns(self, area: Area) -> bool:
        """Whether all of a buffer still has its tag."""
        there = self.tags[area.buffer.offset : area.buffer.offset + area.size]
        return there.size == area.size and bool((there == area.tag).all())


def _reads_first(out: Piece, out_element: int, read: Piece, element: int) -> bool:
    """Whether a kernel that reads element i, then writes it, reads each element before it is overwritten.

    `out_element`, `element`: bytes per element. Where the output's are larger, the last element with another
    one after it is the worst.
    """
    made, source = out.address - out.byte, read.address - read.byte
    if out_element <= element:
        return made <= source
    end = min((out.byte + out.size) // out_element, (read.byte + read.size) // element - 1)
    first = max(end, read.byte // element)
    return end <= out.byte // out_element or made + end * out_element <= source + first * element
