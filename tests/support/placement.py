"""Runs a case's kernel as plans do: whole, piece by piece from rings, or with its output over its input.

Memory that a kernel may not read is filled with random bytes, memory that it may not write is compared
with a copy taken before. With `wide`, views are parts of the channels of wider tensors: their pixels have
some bytes of other channels before and behind them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from ckernels import View, compute, whole
from kernelcases import Case

from buildtool.graph.types import ConvAttrs, FullyConnectedAttrs, OpKind, PoolAttrs, ResizeAttrs
from buildtool.plan.schedule.overlap import distance
from buildtool.plan.schedule.receptive import axes
from buildtool.target.types import Contract

GUARD = 64  # bytes before and after
MARGINS = (0, 0, 1, 2, 3, 4, 5, 8, 16, 39)  # other channels before or behind those of a view


class Room:
    """Random bytes with a guard on either side; `fill` says what the middle must be."""

    def __init__(self, noise: np.random.Generator, size: int) -> None:
        self.memory = noise.integers(-128, 128, size + 2 * GUARD, dtype=np.int8)
        self.before = self.memory.copy()
        self.middle = self.memory[GUARD : GUARD + size]

    def check_guards(self) -> None:
        """The bytes around the middle are as they were."""
        assert np.array_equal(self.memory[:GUARD], self.before[:GUARD]), "wrote below its memory"
        assert np.array_equal(self.memory[-GUARD:], self.before[-GUARD:]), "wrote above its memory"


@dataclass(frozen=True)
class Margin:
    """The channels of a wider tensor before and behind those of a view."""

    before: int
    behind: int

    @classmethod
    def draw(cls, rng: np.random.Generator, wide: bool) -> Margin:
        """Any; none unless `wide`."""
        before, behind = (MARGINS[n] for n in rng.integers(0, len(MARGINS), 2))
        return cls(before, behind) if wide else cls(0, 0)


def part_view(
    pixels: np.ndarray, margin: Margin, x0: int, height: int, width: int
) -> tuple[View, np.ndarray]:
    """A view of the channels of `pixels` (rows, columns, all channels) between the margins, and these."""
    rows, columns, stride = pixels.shape
    part = pixels[:, :, margin.before : stride - margin.behind]
    address = pixels.ctypes.data + margin.before
    return View(address, columns * stride, stride, rows, columns, x0, height, width, part.shape[2]), part


def images(case: Case) -> tuple[list[np.ndarray], tuple[int, int, int]]:
    """Every operand as rows x columns x channels (alpha too), and the output's shape likewise."""
    op = case.op
    values = list(case.inputs)
    if op.kind is OpKind.PRELU:
        data = case.graph.tensors[op.inputs[1]].data
        assert data is not None
        values.append(data)
    found = []
    for value in values:
        shape = (1, 1, 1, *value.shape)[-3:]
        found.append(np.ascontiguousarray(value.reshape(shape), np.int8))
    out = (1, 1, 1, *case.out_shape)[-3:]
    return found, (out[0], out[1], out[2])


def operand_view(array: np.ndarray, out: tuple[int, int, int]) -> View:
    """A whole operand that repeats itself where the output is larger."""
    view = whole(array)
    if array.shape[0] == 1:
        view.row_stride = 0
    view.height, view.width = out[0], out[1]
    return view


def run_whole(case: Case) -> np.ndarray:
    """The kernel's whole output from whole inputs, in one call."""
    arrays, shape = images(case)
    views = [whole(a) for a in arrays]
    if len(arrays) > 1:
        views = [operand_view(a, shape) for a in arrays]
    room = Room(np.random.default_rng(0), int(np.prod(shape)))
    out = room.middle.reshape(shape)
    compute(case.graph, case.op, views, whole(out), (0, shape[0], 0, shape[1]))
    room.check_guards()
    return out.reshape(case.out_shape)


def _windowed(
    first: int, end: int, size: int, kernel: int, stride: int, dilation: int, pad: int
) -> tuple[int, int]:
    lowest = first * stride - pad
    highest = (end - 1) * stride - pad + (kernel - 1) * dilation
    return min(max(lowest, 0), size - 1), max(min(highest + 1, size), 1)


def needed(case: Case, axis: int, size: int) -> Callable[[int, int], tuple[int, int]]:
    """From outputs [first, end) to the inputs they read, along rows (axis 0) or columns (1)."""
    attrs, op = case.op.attrs, case.op
    if isinstance(attrs, ResizeAttrs):
        table = axes(case.graph, op)[axis]  # that it suffices is shown by what the kernels compute
        return lambda f, e: (table.low(f), table.high(e))
    if isinstance(attrs, PoolAttrs):
        pad = (attrs.pad.top, attrs.pad.left)[axis]
        return lambda f, e: _windowed(f, e, size, attrs.kernel[axis], attrs.stride[axis], 1, pad)
    if isinstance(attrs, ConvAttrs):
        kernel, stride = case.graph.tensors[op.inputs[1]].shape[1 + axis], attrs.stride[axis]
        pad = (attrs.pad.top, attrs.pad.left)[axis]
        if op.kind is OpKind.TRANSPOSE_CONV:
            return lambda f, e: (
                min(max(-(-(f + pad - kernel + 1) // stride), 0), size - 1),
                max(min((e - 1 + pad) // stride + 1, size), 1),
            )
        return lambda f, e: _windowed(f, e, size, kernel, stride, attrs.dilation[axis], pad)
    if isinstance(attrs, FullyConnectedAttrs):
        return lambda first, end: (first, end)
    return lambda first, end: (0, 1) if size == 1 else (first, end)


def cuts(rng: np.random.Generator, size: int) -> list[tuple[int, int]]:
    """[0, size) in random pieces."""
    inner = sorted(rng.choice(np.arange(1, size), rng.integers(0, size), replace=False)) if size > 1 else []
    edges = [0, *(int(n) for n in inner), size]
    return list(itertools.pairwise(edges))


def _in_ring(span: tuple[int, int], first: int, size: int) -> np.ndarray:
    """Where in a ring of `size` places, of which `first` is the first, [begin, end) lie: a column."""
    return ((np.arange(*span) - first) % size)[:, None]


def _ring(
    rngs: tuple[np.random.Generator, np.random.Generator],
    array: np.ndarray,
    rows: tuple[int, int],
    columns: tuple[int, int],
    spare: tuple[int, int],
    wide: bool,
) -> View:
    """A view that holds only these rows and columns of `array`, wrapped around; the rest is noise."""
    rng, noise = rngs
    height, width, depth = array.shape
    ring_rows, ring_cols = rows[1] - rows[0] + spare[0], columns[1] - columns[0] + spare[1]
    x0, margin = int(rng.integers(0, columns[0] + 1)), Margin.draw(rng, wide)
    stride = margin.before + depth + margin.behind
    memory = noise.integers(-128, 128, (ring_rows, ring_cols, stride), dtype=np.int8)
    view, part = part_view(memory, margin, x0, height, width)
    part[_in_ring(rows, 0, ring_rows), _in_ring(columns, x0, ring_cols).T] = array[
        slice(*rows), slice(*columns)
    ]
    view.keep = memory  # the view holds an address only
    return view


def run_pieces(case: Case, seed: int, *, columns: bool, wide: bool = False) -> np.ndarray:
    """The output computed window by window, each from rings that hold no more than it needs.

    Without `columns`, windows are whole rows. The output goes to a ring of its own.
    """
    rng, noise = np.random.default_rng(seed), np.random.default_rng((seed, 0))
    arrays, shape = images(case)
    result = np.zeros(shape, np.int8)
    for y0, y1, x0, x1 in _windows(rng, shape, columns):
        views = []
        for array in arrays:
            rows = needed(case, 0, array.shape[0])(y0, y1)
            cols = needed(case, 1, array.shape[1])(x0, x1) if columns else (0, array.shape[1])
            spare = (int(rng.integers(2)), int(rng.integers(2)) if columns else 0)
            if len(arrays) > 1:  # a broadcast operand is one row or column, whichever is asked for
                spare = (0 if array.shape[0] == 1 else spare[0], 0 if array.shape[1] == 1 else spare[1])
            view = _ring((rng, noise), array, rows, cols, spare, wide)
            view.x0 = view.x0 if columns else 0
            if len(arrays) > 1:
                view.height, view.width = shape[0], shape[1]
            views.append(view)
        _compute_window(case, (rng, noise), views, result, (y0, y1, x0, x1), columns, wide)
    return result.reshape(case.out_shape)


def _windows(
    rng: np.random.Generator, shape: tuple[int, int, int], columns: bool
) -> Iterator[tuple[int, int, int, int]]:
    for y0, y1 in cuts(rng, shape[0]):
        for x0, x1 in cuts(rng, shape[1]) if columns else [(0, shape[1])]:
            yield y0, y1, x0, x1


def _compute_window(
    case: Case,
    rngs: tuple[np.random.Generator, np.random.Generator],
    views: list[View],
    result: np.ndarray,
    window: tuple[int, int, int, int],
    columns: bool,
    wide: bool,
) -> None:
    """Computes into a ring of the window's size and copies from there; nothing else may change."""
    rng, noise = rngs
    y0, y1, x0, x1 = window
    ring_rows, ring_cols = y1 - y0, (x1 - x0) if columns else result.shape[1]
    start, margin = int(rng.integers(0, x0 + 1)) if columns else 0, Margin.draw(rng, wide)
    stride = margin.before + result.shape[2] + margin.behind
    room = Room(noise, ring_rows * ring_cols * stride)
    pixels = room.middle.reshape(ring_rows, ring_cols, stride)
    out, ring = part_view(pixels, margin, start, *result.shape[:2])
    left = pixels.copy()
    compute(case.graph, case.op, views, out, window)
    room.check_guards()
    check_margins(pixels, left, margin)
    made = ring[_in_ring((y0, y1), 0, ring_rows), _in_ring((x0, x1), start, ring_cols).T]
    result[y0:y1, x0:x1] = made


def check_margins(pixels: np.ndarray, before: np.ndarray, margin: Margin) -> None:
    """The channels that are not the view's are as they were."""
    end = pixels.shape[2] - margin.behind
    for name, part in (("before", slice(0, margin.before)), ("behind", slice(end, None))):
        assert np.array_equal(pixels[:, :, part], before[:, :, part]), f"wrote {name} its channels"


def run_parts(case: Case, seed: int) -> np.ndarray:
    """The whole output in one call, inputs and output being parts of the channels of wider tensors.

    Where shapes let it, the only input and the output are now and then parts of the same tensor.
    """
    rng, noise = np.random.default_rng(seed), np.random.default_rng((seed, 0))
    arrays, shape = images(case)
    rows, columns, depth = shape
    views = [_ring((rng, noise), a, (0, a.shape[0]), (0, a.shape[1]), (0, 0), True) for a in arrays]
    beside = arrays[0].shape[2] * int(rng.integers(2))  # channels of the input next to the output's
    if len(arrays) > 1 or arrays[0].shape[:2] != (rows, columns):
        beside = 0
    outer, first = Margin.draw(rng, True), bool(rng.integers(2))  # first: the input before the output
    margin = Margin(outer.before + beside * first, outer.behind + beside * (not first))
    room = Room(noise, rows * columns * (margin.before + depth + margin.behind))
    pixels = room.middle.reshape(rows, columns, -1)
    out, part = part_view(pixels, margin, 0, rows, columns)
    if beside:
        own = Margin(outer.before + depth * (not first), outer.behind + depth * first)
        view, values = part_view(pixels, own, 0, rows, columns)
        values[:] = arrays[0]
        views = [view]
    for view, array in zip(views, arrays, strict=True):
        if len(arrays) > 1:  # as operand_view
            view.row_stride = 0 if array.shape[0] == 1 else view.row_stride
            view.height, view.width = rows, columns
    before = pixels.copy()
    compute(case.graph, case.op, views, out, (0, rows, 0, columns))
    room.check_guards()
    check_margins(pixels, before, margin)
    return part.reshape(case.out_shape).copy()


def run_over(case: Case, operand: int, distance: int) -> np.ndarray:
    """The whole output with input `operand` starting `distance` bytes above the output's start."""
    arrays, shape = images(case)
    size = int(np.prod(shape))
    rng = np.random.default_rng(1)
    room = Room(rng, max(size, distance + arrays[operand].size))
    below = room.middle[distance : distance + arrays[operand].size].reshape(arrays[operand].shape)
    below[:] = arrays[operand]
    arrays[operand] = below
    above = room.middle[size:].copy()
    out = room.middle[:size].reshape(shape)
    views = [whole(a) for a in arrays] if len(arrays) == 1 else [operand_view(a, shape) for a in arrays]
    compute(case.graph, case.op, views, whole(out), (0, shape[0], 0, shape[1]))
    room.check_guards()
    assert np.array_equal(room.middle[size:], above), "wrote above the output"
    return out.reshape(case.out_shape).copy()


WAYS = ("whole", "over", "rows", "windows", "parts", "rows of parts", "windows of parts")


def run_placed(case: Case, how: str, seed: int, contract: Contract) -> np.ndarray:
    """The whole output, computed in one of `WAYS`; over an input only where the contract lets it."""
    operand, apart = _over(case, seed, contract) if how == "over" else (0, None)
    if apart is not None:
        return run_over(case, operand, apart)
    if how in ("whole", "over"):
        return run_whole(case)
    if how == "parts":
        return run_parts(case, seed)
    return run_pieces(case, seed, columns=how.startswith("windows"), wide=how.endswith("parts"))


def _over(case: Case, seed: int, contract: Contract) -> tuple[int, int | None]:
    """An input, and how far above the output's start it may start; None: not over it."""
    operand = seed % len(case.inputs)
    return operand, distance(case.graph, case.op, case.op.inputs[operand], contract)


def check_placements(case: Case, seed: int, contract: Contract, wanted: np.ndarray) -> list[str]:
    """Asserts that the output is `wanted` in each of the `WAYS` that the contract lets it be; these ways."""
    over = _over(case, seed, contract)[1] is not None
    ways = [how for how in WAYS if how != "over" or over]
    for how in ways:
        np.testing.assert_array_equal(run_placed(case, how, seed, contract), wanted, err_msg=how)
    return ways
