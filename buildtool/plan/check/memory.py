"""The checker's model of the arena: every byte knows which byte of which tensor it holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import PlanError
from buildtool.graph.partviews import parts
from buildtool.graph.types import Graph
from buildtool.plan.check.operators import Area
from buildtool.plan.check.reads import Span, alias_groups
from buildtool.plan.types import Buffer, Plan, changed


@dataclass(frozen=True)
class Piece:
    """A run of bytes: of the tensor from `byte` on, in the arena from `address` on."""

    address: int
    byte: int
    size: int


def pieces(graph: Graph, buffer: Buffer, tensor: int, rows: Span, columns: Span) -> Iterator[Piece]:
    """Where a window of a tensor lies in its buffer, in the longest contiguous runs."""
    described = graph.tensors[tensor]
    if tensor in parts(graph):
        yield from _pieces_of_part(graph, buffer, tensor, rows, columns)
        return
    batch, height, width, channels = described.nhwc
    pixel = channels * described.dtype.size
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


def _pieces_of_part(graph: Graph, buffer: Buffer, tensor: int, rows: Span, columns: Span) -> Iterator[Piece]:
    """The pixels of a tensor that is some channels of another one, as bytes of that one, which lies whole."""
    within, part = parts(graph)[tensor], graph.tensors[tensor]
    batch, height, width, _ = part.nhwc
    pitch, first = graph.tensors[within.whole].pixel_bytes, within.first * part.dtype.size
    pixels = (
        range(batch * height * width)
        if batch > 1
        else (y * width + x for y in range(*rows) for x in range(*columns))
    )
    for number in pixels:
        byte = number * pitch + first
        yield Piece(buffer.offset + byte, byte, part.pixel_bytes)


class Memory:
    """The arena, and behind it what is state: per byte, which byte of which tensor was written there last."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self.graph = graph
        self.plan = plan
        self.groups = alias_groups(graph)
        self.tags: npt.NDArray[np.int64] = np.full(plan.arena_bytes + plan.state_bytes, -1, np.int64)
        self.holder: dict[int, Buffer] = {}
        targets = {move.target for move in plan.moves}
        for index, buffer in enumerate(plan.buffers):
            if index not in targets:
                self.holder.update((t, buffer) for t in buffer.tensors)
        for buffer in plan.states:
            behind = changed(buffer, offset=plan.arena_bytes + buffer.offset)
            self.holder.update((t, behind) for t in buffer.tensors)
        self._counting = np.arange(max((t.size for t in graph.tensors), default=1), dtype=np.int64)

    def name(self, tensor: int) -> str:
        """A tensor's name."""
        return self.graph.tensors[tensor].name

    def whole(self, tensor: int) -> tuple[Span, Span]:
        """All rows and columns of a tensor."""
        _, height, width, _ = self.graph.tensors[tensor].nhwc
        return (0, height), (0, width)

    def pieces(self, tensor: int, rows: Span, columns: Span) -> Iterator[Piece]:
        """Where a window of a tensor lies."""
        return pieces(self.graph, self.buffer(tensor), tensor, rows, columns)

    def write(self, tensor: int, rows: Span, columns: Span) -> None:
        """Tags a window of a tensor as written."""
        for piece in self.pieces(tensor, rows, columns):
            self._write(tensor, piece)

    def require(self, tensor: int, rows: Span, columns: Span, reader: str) -> None:
        """PlanError unless a window of a tensor is there."""
        for piece in self.pieces(tensor, rows, columns):
            if not self._holds(tensor, piece):
                raise PlanError(
                    f"rows {rows[0]} to {rows[1]} are not in the arena when they are read",
                    operator=reader,
                    tensor=self.name(tensor),
                )

    def write_bytes(self, tensor: int, first: int, end: int) -> None:
        """Tags bytes [first, end) of a tensor that lies whole in its buffer as written."""
        self._write(tensor, Piece(self.buffer(tensor).offset + first, first, end - first))

    def require_bytes(self, tensor: int, first: int, end: int, reader: str) -> None:
        """PlanError unless bytes [first, end) of a tensor that lies whole in its buffer are there."""
        if not self._holds(tensor, Piece(self.buffer(tensor).offset + first, first, end - first)):
            raise PlanError(
                f"bytes {first} to {end} are not in the arena when they are read",
                operator=reader,
                tensor=self.name(tensor),
            )

    def _write(self, tensor: int, piece: Piece) -> None:
        if piece.address < 0 or piece.address + piece.size > self.tags.size:
            raise PlanError("is written outside of the arena", tensor=self.name(tensor))
        self.tags[piece.address : piece.address + piece.size] = self._tag(tensor, piece)

    def _holds(self, tensor: int, piece: Piece) -> bool:
        there = self.tags[piece.address : piece.address + piece.size]
        return there.size == piece.size and bool((there == self._tag(tensor, piece)).all())

    def _tag(self, tensor: int, piece: Piece) -> npt.NDArray[np.int64]:
        return self._counting[piece.byte : piece.byte + piece.size] + self.tag(tensor)

    def tag(self, tensor: int) -> int:
        """The tag of a tensor's first byte."""
        return self.groups[tensor] << 32

    def buffer(self, tensor: int) -> Buffer:
        """The buffer of a tensor."""
        found = self.find(tensor)
        if found is None:
            raise PlanError("has no buffer", tensor=self.name(tensor))
        return found

    def find(self, tensor: int) -> Buffer | None:
        """As `buffer`; None where there is none."""
        return self.holder.get(tensor)

    def move(self, source: Buffer, target: Buffer) -> None:
        """Copies a tensor's bytes to where it lives from now on."""
        for buffer in (source, target):
            self._refuse_outside(buffer)
        same = source.tensors and source.tensors == target.tensors
        if not same or source.size != target.size or source.rows or target.rows:
            raise PlanError(
                f"buffer '{source.name}' cannot move to '{target.name}', which is another tensor's"
            )
        copied = self.tags[source.offset : source.offset + source.size].copy()
        self.tags[target.offset : target.offset + target.size] = copied
        self.holder.update((t, target) for t in target.tensors)

    def own(self, area: Area) -> None:
        """Gives a buffer that is no tensor's its tag."""
        buffer = area.buffer
        self._refuse_outside(buffer)
        self.tags[buffer.offset : buffer.offset + buffer.size] = area.tag

    def owns(self, area: Area) -> bool:
        """Whether all of a buffer still has its tag."""
        buffer = area.buffer
        there = self.tags[buffer.offset : buffer.offset + buffer.size]
        return there.size == buffer.size and bool((there == area.tag).all())

    def _refuse_outside(self, buffer: Buffer) -> None:
        if buffer.offset < 0 or buffer.offset + buffer.size > self.tags.size:
            raise PlanError(f"buffer '{buffer.name}' lies outside of the arena")
