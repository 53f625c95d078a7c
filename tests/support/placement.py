"""Runs a case's kernel as plans do: whole, piece by piece from rings, or with its output over its input.

Memory that a kernel may not read has random bytes. Memory that it may not write is compared with an earlier
copy. With `wide`, views are parts of the channels of wider tensors: other channels lie before and after them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from ckernels import View, compute, whole
from kernelcases import Case, Pair, Shape

from buildtool.graph.types import ConvAttrs, FullyConnectedAttrs, OpKind, PoolAttrs, ResizeAttrs
from buildtool.plan.schedule.overlap import distance
from buildtool.plan.schedule.receptive import axes
from buildtool.target.types import Contract

GUARD = 64  # bytes before and after
MARGINS = (0, 0, 1, 2, 3, 4, 5, 8, 16, 39)  # other channels before or after those of a view


class Room:
    """Random bytes with a guard on either side."""

    def __init__(self, noise: np.random.Generator, size: int) -> None:
        self.memory = noise.integers(-128, 128, size + 2 * GUARD, dtype=np.int8)
        self.before = self.memory.copy()
        self.middle = self.memory[GUARD : GUARD + size]

    def check_guards(self) -> None:
        """Fails if the bytes around the middle have changed."""
        assert np.array_equal(self.memory[:GUARD], self.before[:GUARD]), "wrote below its memory"
        assert np.array_equal(self.memory[-GUARD:], self.before[-GUARD:]), "wrote above its memory"


@dataclass(frozen=True)
class Margin:
    """The number of other channels before and after those of a view."""

    before: int
    behind: int

    @classmethod
    def draw(cls, rng: np.random.Generator, wide: bool) -> Margin:
        """Draws a margin, (0, 0) unless `wide`."""
        before, behind = (MARGINS[n] for n in rng.integers(0, len(MARGINS), 2))
        return cls(before, behind) if wide else cls(0, 0)


def part_view(
    pixels: np.ndarray, margin: Margin, x0: int, height: int, width: int
) -> tuple[View, np.ndarray]:
    """Returns a view of the channels of `pixels` between the margins, and these channels as an array."""
    rows, columns, stride = pixels.shape
    part = pixels[:, :, margin.before : stride - margin.behind]
    address = pixels.ctypes.data + margin.before
    return View(address, columns * stride, stride, rows, columns, x0, height, width, part.shape[2]), part


class Ring:
    """A view of rows and columns of a tensor in a ring buffer, between other channels and noise.

    `x0`: the column at the start of its memory. `spare`: unused rows and columns of its memory.
    """

    def __init__(
        self,
        noise: np.random.Generator,
        shape: Shape,
        rows: Pair,
        columns: Pair,
        x0: int = 0,
        margin: Margin = Margin(0, 0),
        spare: Sequence[int] = (0, 0),
    ) -> None:
        height, width = rows[1] - rows[0] + spare[0], columns[1] - columns[0] + spare[1]
        stride = margin.before + shape[2] + margin.behind
        self.room, self.margin = Room(noise, height * width * stride), margin
        self.pixels = self.room.middle.reshape(height, width, stride)
        self.before = self.pixels.copy()
        self.view, self.part = part_view(self.pixels, margin, x0, *shape[:2])
        self.view.keep = self.room  # the view holds an address only
        self.index = (np.arange(*rows) % height)[:, None], (np.arange(*columns) - x0) % width

    def check(self) -> None:
        """Fails if anything but the view's own channels was written."""
        self.room.check_guards()
        end = self.pixels.shape[2] - self.margin.behind
        for name, part in (("before", slice(0, self.margin.before)), ("behind", slice(end, None))):
            same = np.array_equal(self.pixels[:, :, part], self.before[:, :, part])
            assert same, f"wrote {name} its channels"


def images(case: Case) -> tuple[list[np.ndarray], Shape]:
    """Returns operands (alpha too) as rows x columns x channels, and the output's shape in that form."""
    op = case.op
    values = list(case.inputs)
    if op.kind is OpKind.PRELU:
        values.append(case.graph.tensors[op.inputs[1]].data)
    shapes = [(1, 1, 1, *value.shape)[-3:] for value in values]
    arrays = [np.ascontiguousarray(v.reshape(s), np.int8) for v, s in zip(values, shapes, strict=True)]
    return arrays, (1, 1, 1, *case.out_shape)[-3:]


def broadcast(view: View, array: np.ndarray, out: Shape) -> View:
    """Broadcasts an operand's view to the output's rows and columns."""
    view.row_stride = 0 if array.shape[0] == 1 else view.row_stride
    view.height, view.width = out[0], out[1]
    return view


def _compute_whole(case: Case, arrays: list[np.ndarray], shape: Shape, out: View) -> None:
    views = [whole(a) for a in arrays]
    if len(arrays) > 1:
        views = [broadcast(view, a, shape) for view, a in zip(views, arrays, strict=True)]
    compute(case.graph, case.op, views, out, (0, shape[0], 0, shape[1]))


def run_whole(case: Case) -> np.ndarray:
    """Runs the kernel on whole tensors in one call. Returns the output."""
    arrays, shape = images(case)
    room = Room(np.random.default_rng(0), int(np.prod(shape)))
    out = room.middle.reshape(shape)
    _compute_whole(case, arrays, shape, whole(out))
    room.check_guards()
    return out.reshape(case.out_shape)


def needed(case: Case, axis: int, size: int) -> Callable[[int, int], Pair]:
    """Returns a function from outputs [first, end) to the inputs they read. `axis`: 0 rows, 1 columns."""
    attrs, op = case.op.attrs, case.op
    if isinstance(attrs, ResizeAttrs):
        table = axes(case.graph, op)[axis]  # the kernels' results show that it suffices
        return lambda f, e: (table.low(f), table.high(e))
    if isinstance(attrs, FullyConnectedAttrs):
        return lambda f, e: (f, e)
    if not isinstance(attrs, PoolAttrs | ConvAttrs):
        return lambda f, e: (0, 1) if size == 1 else (f, e)
    is_pool = isinstance(attrs, PoolAttrs)
    kernel = attrs.kernel[axis] if is_pool else case.graph.tensors[op.inputs[1]].shape[1 + axis]
    stride, dilation = attrs.stride[axis], 1 if is_pool else attrs.dilation[axis]
    pad = (attrs.pad.top, attrs.pad.left)[axis]
    if op.kind is OpKind.TRANSPOSE_CONV:

        def of_stamps(f: int, e: int) -> Pair:  # one input at least, where an output meets none
            first = min(max(-(-(f + pad - kernel + 1) // stride), 0), size - 1)
            return first, max(min((e - 1 + pad) // stride + 1, size), first + 1)

        return of_stamps
    return lambda f, e: (
        min(max(f * stride - pad, 0), size - 1),
        max(min((e - 1) * stride - pad + (kernel - 1) * dilation + 1, size), 1),
    )


def cuts(rng: np.random.Generator, size: int) -> list[Pair]:
    """Cuts [0, size) into random pieces."""
    inner = sorted(rng.choice(np.arange(1, size), rng.integers(0, size), replace=False)) if size > 1 else []
    edges = [0, *(int(n) for n in inner), size]
    return list(itertools.pairwise(edges))


def run_pieces(case: Case, seed: int, *, columns: bool, wide: bool = False) -> np.ndarray:
    """Computes the output window by window, from rings that hold only what a window needs.

    Without `columns`, windows are whole rows. The output goes to its own ring.
    """
    rng, noise = np.random.default_rng(seed), np.random.default_rng((seed, 0))
    arrays, shape = images(case)
    result = np.zeros(shape, np.int8)

    def ring(of: Shape, rows: Pair, cols: Pair, spare: Sequence[int] = (0, 0)) -> Ring:
        x0 = int(rng.integers(0, cols[0] + 1))
        return Ring(noise, of, rows, cols, x0, Margin.draw(rng, wide), spare)

    windows = itertools.product(cuts(rng, shape[0]), cuts(rng, shape[1]) if columns else [(0, shape[1])])
    for rows, cols in windows:
        views = []
        for array in arrays:
            down = needed(case, 0, array.shape[0])(*rows)
            across = needed(case, 1, array.shape[1])(*cols) if columns else (0, array.shape[1])
            # the ring of a broadcast operand is its only row or column
            may_spare = [len(arrays) == 1 or size > 1 for size in array.shape[:2]]
            spare = [int(rng.integers(2)) * may_spare[0], int(rng.integers(2)) * may_spare[1] * columns]
            source = ring(array.shape, down, across, spare)
            source.part[source.index] = array[slice(*down), slice(*across)]
            if len(arrays) > 1:
                source.view.height, source.view.width = shape[:2]
            views.append(source.view)
        out = ring(shape, rows, cols)
        compute(case.graph, case.op, views, out.view, (*rows, *cols))
        out.check()
        result[slice(*rows), slice(*cols)] = out.part[out.index]
    return result.reshape(case.out_shape)


def run_parts(case: Case, seed: int) -> np.ndarray:
    """Computes the output in one call. Inputs and output are parts of the channels of wider tensors.

    Where the shapes allow it, the only input and the output are sometimes parts of the same tensor.
    """
    rng, noise = np.random.default_rng(seed), np.random.default_rng((seed, 0))
    arrays, shape = images(case)
    rows, columns, depth = shape
    beside = arrays[0].shape[2] * int(rng.integers(2))  # channels of the input next to the output's
    if len(arrays) > 1 or arrays[0].shape[:2] != (rows, columns):
        beside = 0
    outer, first = Margin.draw(rng, True), bool(rng.integers(2))  # first: the input before the output
    margin = Margin(outer.before + beside * first, outer.behind + beside * (not first))
    out = Ring(noise, shape, (0, rows), (0, columns), 0, margin)
    views = []
    for array in arrays:
        height, width = array.shape[:2]
        source = Ring(noise, array.shape, (0, height), (0, width), 0, Margin.draw(rng, True))
        source.part[:] = array
        views.append(source.view if len(arrays) == 1 else broadcast(source.view, array, shape))
    if beside:
        own = Margin(outer.before + depth * (not first), outer.behind + depth * first)
        views[0], values = part_view(out.pixels, own, 0, rows, columns)
        values[:] = arrays[0]
        out.before = out.pixels.copy()
    compute(case.graph, case.op, views, out.view, (0, rows, 0, columns))
    out.check()
    return out.part.reshape(case.out_shape).copy()


def run_over(case: Case, operand: int, distance: int) -> np.ndarray:
    """Computes the output with input `operand` starting `distance` bytes above the output's start."""
    arrays, shape = images(case)
    size, input_ = int(np.prod(shape)), arrays[operand]
    room = Room(np.random.default_rng(1), max(size, distance + input_.size))
    arrays[operand] = room.middle[distance : distance + input_.size].reshape(input_.shape)
    arrays[operand][:] = input_
    above = room.middle[size:].copy()
    out = room.middle[:size].reshape(shape)
    _compute_whole(case, arrays, shape, whole(out))
    room.check_guards()
    assert np.array_equal(room.middle[size:], above), "wrote above the output"
    return out.reshape(case.out_shape).copy()


WAYS = ("whole", "over", "rows", "windows", "parts", "rows of parts", "windows of parts")


def run_placed(case: Case, how: str, seed: int, contract: Contract) -> np.ndarray:
    """Computes the output in one of `WAYS`; over an input only where the contract allows it."""
    operand, apart = _draw_over(case, seed, contract) if how == "over" else (0, None)
    if apart is not None:
        return run_over(case, operand, apart)
    if how in ("whole", "over"):
        return run_whole(case)
    if how == "parts":
        return run_parts(case, seed)
    return run_pieces(case, seed, columns=how.startswith("windows"), wide=how.endswith("parts"))


def _draw_over(case: Case, seed: int, contract: Contract) -> tuple[int, int | None]:
    """Returns an input, and how far above the output's start it may lie. None: not over it."""
    operand = seed % len(case.inputs)
    return operand, distance(case.graph, case.op, case.op.inputs[operand], contract)


def check_placements(case: Case, seed: int, contract: Contract, wanted: np.ndarray) -> list[str]:
    """Fails unless the output is `wanted` in each way that the contract allows. Returns these ways."""
    over = _draw_over(case, seed, contract)[1] is not None
    ways = [how for how in WAYS if how != "over" or over]
    for how in ways:
        np.testing.assert_array_equal(run_placed(case, how, seed, contract), wanted, err_msg=how)
    return ways
