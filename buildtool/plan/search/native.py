"""The search for regions in C: labels.c, given the tables of a network as plain numbers."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from buildtool.compiled import load
from buildtool.modes import InPlace
from buildtool.plan.schedule.receptive import accumulates
from buildtool.plan.search.cuts import Numbers
from buildtool.plan.search.lower_bound import INFINITE, Weights
from buildtool.plan.search.progress import ProgressTable
from buildtool.plan.search.regions import Reached
from buildtool.plan.search.sections import Section
from buildtool.plan.search.tables import BlockForm, Tables

ABI = 1  # of labels.c; a library of another one is not used
FAILED = -INFINITE - 1  # what the weight of a form is said to be where asking for it failed

_Extra = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class _Problem(ctypes.Structure):
    """labels_problem."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("count", "alignment", "follows_rows", "limit")),
        *((name, ctypes.c_void_p) for name in ("elements", "cuts", "forms", "besides", "sections", "rows")),
        ("best", ctypes.c_void_p),
        ("version", ctypes.c_void_p),
        ("extra", _Extra),
    )


class _Region(ctypes.Structure):
    """labels_region."""

    _fields_ = tuple(
        (name, ctypes.c_int64)
        for name in (
            *("most_bytes", "round", "end", "enough", "most_expanded"),
            *("weight", "least", "expanded", "first", "bytes", "extra", "blocks"),
        )
    )


@cache
def library(path: Path | None = None) -> ctypes.CDLL | None:
    """The compiled labels.c at `path`, by default the one built with the package; None if there is none."""
    found = load(__file__, "labels", ABI, path)
    if found is not None:
        found.labels_new.restype = ctypes.c_void_p
        found.labels_new.argtypes = [ctypes.POINTER(_Problem)]
        found.labels_free.restype = None
        found.labels_free.argtypes = [ctypes.c_void_p]
        found.labels_run.restype = ctypes.c_int32
        found.labels_run.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Region), ctypes.c_void_p]
    return found


class NativeRegions:
    """Searches for the regions of one network within limits of bytes; see `LowerBounds` and `RegionSearch`.

    `best`, `version`: shared with the caller, who changes them as it goes from cut to cut.
    """

    def __init__(self, lib: ctypes.CDLL, t: Tables, limit: int, best: Weights, version: Weights) -> None:
        self._lib, self._t = lib, t
        self._error: BaseException | None = None
        self._arrays = [_elements(t), _cuts(t), form_columns(t), _besides(t), *_sections(t)]
        self._best, self._version = best, version
        self._extra = _Extra(self._extra_of)
        problem = _Problem(
            t.count,
            t.e.alignment,
            t.e.in_place == InPlace.ROWS,
            limit,
            *(array.ctypes.data for array in self._arrays),
            ctypes.addressof(best),
            ctypes.addressof(version),
            self._extra,
        )
        self._blocks = np.zeros(t.count + 1, np.int64)
        self._region = _Region()
        self._handle = lib.labels_new(ctypes.byref(problem))
        if not self._handle:
            raise MemoryError

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._lib.labels_free(self._handle)

    def reach(self, most_bytes: int, round_: int, end: int, enough: int, most_expanded: int) -> Reached:
        """The best way to the cut at `end`: see RegionSearch.run."""
        r = self._region
        r.most_bytes, r.round, r.end, r.enough, r.most_expanded = (
            most_bytes,
            round_,
            end,
            enough,
            most_expanded,
        )
        status = self._lib.labels_run(self._handle, ctypes.byref(r), self._blocks.ctypes.data)
        if self._error is not None:
            raise self._error
        if status:
            raise MemoryError
        forms = tuple(self._blocks[: max(0, r.blocks)].tolist())
        return Reached(r.weight, r.least, r.expanded, r.first, r.bytes, r.extra, forms)

    def _extra_of(self, form: int, wanted: int) -> int:
        try:
            found = self._t.form(form)
            return self._t.extra(found.block, found.form, wanted)
        except BaseException as error:  # it cannot pass through C: `reach` raises it
            self._error = error
            return FAILED


def _table(rows: Iterator[tuple[int, ...]] | Sequence[tuple[int, ...]], columns: int) -> Numbers:
    """Rows of numbers, at least one so that there is something to point at."""
    return np.ascontiguousarray([*rows, (0,) * columns], np.int64)


def _elements(t: Tables) -> Numbers:
    e = t.e
    shapes = [e.graph.tensors[e.main(k)].nhwc for k in range(t.count)]
    sources = t.sources
    return _table(
        [
            (
                *(e.heights[k], sources[k].rows, *_axis(t, k), *t.rows[k], e.makes[k]),
                *(
                    shapes[k][2] * shapes[k][3],
                    e.main(k) in e.read_whole[k],
                    sources[k].tensor,
                    sources[k].row,
                ),
                *(sources[k].last, sources[k].size, sources[k].streamed, t.feeds[k], t.last_reader[k]),
                *(t.sizes[k], t.wholes[k], accumulates(e.graph, e.op(k))),
            )
            for k in range(t.count)
        ],
        20,
    )


def _axis(t: Tables, element: int) -> tuple[int, int, int]:
    axis = t.e.axes_of[element][0]
    return axis.kernel, axis.stride, axis.pad


def _cuts(t: Tables) -> Numbers:
    starts = [0]
    for element in range(t.count):
        starts.append(starts[-1] + sum(1 for _ in t.e.beside(element, element)))
    columns = (t.live, t.held, t.lowest_first, t.least_rows, t.least_wanted, t.starts, starts)
    return np.ascontiguousarray(np.array(columns, np.int64).T)


def _besides(t: Tables) -> Numbers:
    return _table((row for element in range(t.count) for row in _operands(t, element)), 4)


def _operands(t: Tables, element: int) -> Iterator[tuple[int, ...]]:
    """What an element reads besides: root, bytes of a row, whether a ring will do, whether it needs all."""
    for _, tensor in t.e.beside(element, element):
        _, _, width, channels = t.e.graph.tensors[tensor].nhwc
        root = t.e.roots[tensor]
        in_ring = root == tensor and tensor in t.e.rows_read[element]
        yield root, width * channels, in_ring, tensor in t.e.read_whole[element]


def form_columns(t: Tables) -> Numbers:
    """All block forms, a row each: see labels.c."""
    numbers: dict[int, int] = {}  # last element -> the number of its section
    for last, section in enumerate(t.blocks.sections):
        if section is not None:
            numbers[last] = len(numbers)
    parts = [np.zeros((1, 11), np.int64)]
    by_key: dict[object, Numbers] = {}
    for last, key in enumerate(t.keys):
        if key not in by_key:
            rows = [_form(form, last, numbers.get(last, -1)) for form in t.endings(last)]
            by_key[key] = np.array(rows, np.int64).reshape(-1, 11)
        part = by_key[key].copy()
        part[:, 0] += last
        parts.append(part)
    return np.ascontiguousarray(np.concatenate([*parts[1:], parts[0]]))


def _form(form: BlockForm, last: int, section: int) -> tuple[int, ...]:
    """A row whose first element is counted from the last."""
    late = sum(1 << place for place in form.form.late)
    axis = form.axis
    return (
        *(form.first - last, form.step, form.window, form.sums, form.extra, form.least_extra),
        *(axis.kernel, axis.stride, axis.pad, late, section if form.block.section is not None else -1),
    )


def _sections(t: Tables) -> tuple[Numbers, Numbers]:
    """Of each section where its lists begin, and all lists one behind the other."""
    progress, rows = ProgressTable(t), list[int]()
    begins: list[tuple[int, ...]] = []
    for last, section in enumerate(t.blocks.sections):
        if section is None:
            continue
        form = next((form for form in t.endings(last) if form.block.section is not None), None)
        found = progress.of(form) if form is not None else None
        lists = (_wanted(section), found.made if found else (), found.low if found else ())
        begin = []
        for one in (*lists, section.read_from, section.read_after):
            begin.append(len(rows))
            rows += one
        begins.append(tuple(begin))
    return _table(begins, 5), np.array([*rows, 0], np.int64)


def _wanted(section: Section) -> list[int]:
    """By rows of the output: rows of the input that are asked for."""
    return [section.lanes.wanted(n)[-1] for n in range(section.lanes.lanes[-1].height + 1)]
