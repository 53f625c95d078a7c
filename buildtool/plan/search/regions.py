"""The best way to reach a cut within a limit of bytes, best first, backwards from its last region's end.

A label is a partial region, from some boundary to its end: bytes of the rings so far, the largest of
the blocks' windows, the weight so far, and the rows that it still needs from the producer before it.
Labels that need the same rows compete: one that is no better in anything than another is dropped. The
next label to be continued is the one whose weight is least, with the least that everything before it can
cost added; so the first region that is no dearer than all labels left is the best.

The search is in C (labels.c), which reads the tables of a network as arrays of numbers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from buildtool.base.compiled import load
from buildtool.base.modes import InPlace
from buildtool.plan.search.chain import Elements
from buildtool.plan.search.forms import FormRow
from buildtool.plan.search.sections import section_progress
from buildtool.plan.search.tables import BlockForm, Tables
from buildtool.plan.types import Region

Weights = ctypes.Array[ctypes.c_int64]
Numbers = npt.NDArray[np.int64]

INFINITE = 1 << 62  # above every weight and every number of bytes: there is no way, or no limit
FAILED = -INFINITE - 1  # the weight of a form where asking for it failed

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
            *("most_bytes", "round", "end", "enough", "most_labels"),
            *("weight", "least", "labels", "first", "bytes", "extra", "blocks"),
        )
    )


_C = load(
    __file__,
    "labels",
    3,
    {
        "labels_new": (ctypes.c_void_p, ctypes.POINTER(_Problem)),
        "labels_free": (None, ctypes.c_void_p),
        "labels_run": (ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(_Region), ctypes.c_void_p),
    },
)


class Candidate(NamedTuple):
    """A region of elements [first, end): bytes, weight beyond its elements' own, its blocks (none: a single
    element that runs as one step).
    """

    first: int
    end: int
    bytes: int
    extra: int
    block_forms: tuple[BlockForm, ...]

    def region(self, e: Elements) -> Region:
        """The region in the plan's terms."""
        if not self.block_forms:
            return e.region_of(self.first)
        return Region(tuple(one.form.group for one in self.block_forms))


class Reached(NamedTuple):
    """What a search for one cut has found: the least weight of a way there, and the last region of that way.

    `least`: a weight that no way there is below, the same unless the search was ended; `first`: -1 if there
    is no region; `bytes`, `extra`: see Candidate; `forms`: the region's blocks by their numbers.
    """

    weight: int
    least: int
    labels: int
    first: int = -1
    bytes: int = 0
    extra: int = 0
    forms: tuple[int, ...] = ()

    def candidate(self, tables: Tables, end: int) -> Candidate:
        """The region in full."""
        forms = tuple(map(tables.form, self.forms))
        return Candidate(self.first, end, self.bytes, self.extra, forms)


class Regions:
    """Searches for the regions of one network within limits of bytes.

    `best`, `version`: shared with the caller, who changes them as it goes from cut to cut.
    """

    def __init__(self, columns: Columns, limit: int, best: Weights, version: Weights) -> None:
        t = columns.t
        self._errors = errors = list[BaseException]()
        self._shared = best, version, columns.arrays  # alive as long as C reads them

        def extra(form: int, wanted: int) -> int:
            """What C asks for: the weight of a form of which only some rows are wanted."""
            try:
                found = t.form(form)
                return t.extra(found.block, found.form, wanted)
            except BaseException as error:  # it cannot pass through C: `reach` raises it
                errors.append(error)
                return FAILED

        self._extra = _Extra(extra)
        problem = _Problem(
            t.count,
            t.e.alignment,
            t.e.in_place == InPlace.ROWS,
            limit,
            *(array.ctypes.data for array in columns.arrays),
            ctypes.addressof(best),
            ctypes.addressof(version),
            self._extra,
        )
        self._blocks = np.zeros(t.count + 1, np.int64)
        self._handle = _C.labels_new(ctypes.byref(problem))
        if not self._handle:
            raise MemoryError

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            _C.labels_free(self._handle)

    def reach(self, most_bytes: int, round_: int, end: int, enough: int, most_labels: int) -> Reached:
        """The best way to the cut at `end`; ends at once at one of weight `enough`, which none can be below.

        `round_` counts the limits; `most_labels`: labels after which it is ended with the best way so far.
        """
        r = _Region(most_bytes, round_, end, enough, most_labels)
        status = _C.labels_run(self._handle, ctypes.byref(r), self._blocks.ctypes.data)
        if self._errors:
            raise self._errors[0]
        if status:
            raise MemoryError
        forms = tuple(self._blocks[: max(0, r.blocks)].tolist())
        return Reached(r.weight, r.least, r.labels, r.first, r.bytes, r.extra, forms)


# ---- the tables as arrays, whose columns labels.c names -------------------------------------------------

_FORM = (
    "back",
    "step",
    "window",
    "sums",
    "extra",
    "least_extra",
    "kernel",
    "stride",
    "pad",
    "late",
    "section",
)
_WINDOW, _SECTION = _FORM.index("window"), _FORM.index("section")


class Columns:
    """Tables, and the same as plain numbers; all searches in the same tables share it."""

    def __init__(self, tables: Tables) -> None:
        self.t = tables

    @cached_property
    def arrays(self) -> tuple[Numbers, ...]:
        """Elements, cuts, block forms, what elements read besides, sections, and the sections' rows."""
        t = self.t
        starts, forms = _forms(t)
        operands = [[*_operands(t, element)] for element in range(t.count)]
        firsts = np.cumsum([0, *map(len, operands)]).tolist()
        of_cuts = (
            t.live,
            t.held,
            t.lowest_first,
            t.least_rows,
            t.least_wanted,
            t.starts,
            firsts,
            [*starts, 0],
        )
        cuts = np.ascontiguousarray(np.array(of_cuts, np.int64).T)
        besides = _table((row for rows in operands for row in rows), 4)
        return _table(_elements(t), 20), cuts, forms, besides, *_sections(t)


def _table(rows: Iterable[tuple[int, ...]], columns: int) -> Numbers:
    """Rows of numbers, at least one so that there is something to point at."""
    return np.ascontiguousarray([*rows, (0,) * columns], np.int64)


def _elements(t: Tables) -> Iterator[tuple[int, ...]]:
    e = t.e
    for k, (read, made, source) in enumerate(zip(e.main, e.makes, t.sources, strict=True)):
        axis, fed, output = e.axes_of[k][0], e.graph.tensors[read], e.graph.tensors[made]
        yield (
            *(e.heights[k], source.rows, axis.kernel, axis.stride, axis.pad),
            *(output.nhwc[1], output.row_bytes, made, fed.row_bytes, read in e.read_whole[k]),
            *(source.tensor, source.row, source.last, source.size, source.streamed),
            *(e.feeds[k], e.last_read[made], t.sizes[k], t.wholes[k], e.accumulates[k]),
        )


def _operands(t: Tables, element: int) -> Iterator[tuple[int, ...]]:
    """What an element reads besides: root, bytes of a row, whether a ring will do, whether it needs all."""
    for _, tensor in t.e.beside(element, element):
        root = t.e.roots[tensor]
        in_ring = root == tensor and tensor in t.e.rows_read[element]
        yield root, t.e.graph.tensors[tensor].row_bytes, in_ring, tensor in t.e.read_whole[element]


def _forms(t: Tables) -> tuple[list[int], Numbers]:
    """Element -> the first row of the block forms that end there; the rows, of equal chains only once."""
    with_section = [last for last, section in enumerate(t.blocks.sections) if section is not None]
    columns = [FormRow._fields.index(name) for name in _FORM]
    starts, parts, count = list[int](), list[Numbers](), 0
    by_key: dict[object, int] = {}
    for last, key in enumerate(t.keys):
        if key not in by_key:
            by_key[key] = count
            part = t.rows_of(last)[:, columns]
            number = with_section.index(last) if last in with_section else -1
            part[:, _SECTION] = np.where(part[:, _SECTION] == 1, number, -1)
            if t.e.loaded:
                constants = [t.e.constants(last - back, last) for back in part[:, 0].tolist()]
                part[:, _WINDOW] += np.array(constants, np.int64)
            parts.append(part)
            count += len(part)
        starts.append(by_key[key])
    return starts, np.ascontiguousarray(np.concatenate([*parts, np.zeros((1, len(_FORM)), np.int64)]))


def _sections(t: Tables) -> tuple[Numbers, Numbers]:
    """Of each section where its lists begin, and all lists one behind the other."""
    rows = list[int]()
    begins: list[tuple[int, ...]] = []
    for last, section in enumerate(t.blocks.sections):
        if section is None:
            continue
        runs = any(form.block.section is not None for form in t.endings(last))
        progress = section_progress(section, t.sources[section.first].rows) if runs else ((), ())
        heights = range(
            section.lanes.lanes[-1].height + 1
        )  # of the output; of each the input's that it needs
        wanted = [section.lanes.wanted(height)[-1] for height in heights]
        begin = []
        for one in (wanted, *progress, section.read_from, section.read_after):
            begin.append(len(rows))
            rows += one
        begins.append(tuple(begin))
    return _table(begins, 5), np.array([*rows, 0], np.int64)
