"""The tables of a network as plain numbers: the arrays that labels.c reads, whose columns it names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from buildtool.plan.search.sections import Section, section_progress
from buildtool.plan.search.tables import FormRow, Tables

Numbers = npt.NDArray[np.int64]

FORM = (
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
WINDOW, SECTION = FORM.index("window"), FORM.index("section")


class Columns:
    """Tables, and the same as plain numbers; all searches in the same tables share it."""

    def __init__(self, tables: Tables) -> None:
        self.t = tables

    @cached_property
    def arrays(self) -> tuple[Numbers, ...]:
        """Elements, cuts, block forms, what elements read besides, sections, and the sections' rows."""
        rows, forms = _forms(self.t)
        return _elements(self.t), _cuts(self.t, rows), forms, _besides(self.t), *_sections(self.t)


def _table(rows: Iterator[tuple[int, ...]] | Sequence[tuple[int, ...]], columns: int) -> Numbers:
    """Rows of numbers, at least one so that there is something to point at."""
    return np.ascontiguousarray([*rows, (0,) * columns], np.int64)


def _elements(t: Tables) -> Numbers:
    e = t.e
    fed = [e.graph.tensors[e.main[k]] for k in range(t.count)]
    sources = t.sources
    return _table(
        [
            (
                *(e.heights[k], sources[k].rows, *_axis(t, k), *t.rows[k], e.makes[k]),
                *(
                    fed[k].row_bytes,
                    e.main[k] in e.read_whole[k],
                    sources[k].tensor,
                    sources[k].row,
                ),
                *(sources[k].last, sources[k].size, sources[k].streamed, e.feeds[k], t.last_reader[k]),
                *(t.sizes[k], t.wholes[k], e.accumulates[k]),
            )
            for k in range(t.count)
        ],
        20,
    )


def _axis(t: Tables, element: int) -> tuple[int, int, int]:
    axis = t.e.axes_of[element][0]
    return axis.kernel, axis.stride, axis.pad


def _cuts(t: Tables, rows: list[int]) -> Numbers:
    starts = [0]
    for element in range(t.count):
        starts.append(starts[-1] + sum(1 for _ in t.e.beside(element, element)))
    columns = (t.live, t.held, t.lowest_first, t.least_rows, t.least_wanted, t.starts, starts, [*rows, 0])
    return np.ascontiguousarray(np.array(columns, np.int64).T)


def _besides(t: Tables) -> Numbers:
    return _table((row for element in range(t.count) for row in _operands(t, element)), 4)


def _operands(t: Tables, element: int) -> Iterator[tuple[int, ...]]:
    """What an element reads besides: root, bytes of a row, whether a ring will do, whether it needs all."""
    for _, tensor in t.e.beside(element, element):
        root = t.e.roots[tensor]
        in_ring = root == tensor and tensor in t.e.rows_read[element]
        yield root, t.e.graph.tensors[tensor].row_bytes, in_ring, tensor in t.e.read_whole[element]


def _forms(t: Tables) -> tuple[list[int], Numbers]:
    """Element -> the first row of the block forms that end there; the rows, of equal chains only once."""
    numbers: dict[int, int] = {}  # last element -> the number of its section
    for last, section in enumerate(t.blocks.sections):
        if section is not None:
            numbers[last] = len(numbers)
    columns = [FormRow._fields.index(name) for name in FORM]
    starts, parts, count = list[int](), list[Numbers](), 0
    by_key: dict[object, int] = {}
    for last, key in enumerate(t.keys):
        if key not in by_key:
            by_key[key] = count
            part = t.rows_of(last)[:, columns]
            part[:, SECTION] = np.where(part[:, SECTION] == 1, numbers.get(last, -1), -1)
            if t.e.loaded:
                constants = [t.e.constants(last - back, last) for back in part[:, 0].tolist()]
                part[:, WINDOW] += np.array(constants, np.int64)
            parts.append(part)
            count += len(part)
        starts.append(by_key[key])
    return starts, np.ascontiguousarray(np.concatenate([*parts, np.zeros((1, len(FORM)), np.int64)]))


def _sections(t: Tables) -> tuple[Numbers, Numbers]:
    """Of each section where its lists begin, and all lists one behind the other."""
    rows = list[int]()
    begins: list[tuple[int, ...]] = []
    for last, section in enumerate(t.blocks.sections):
        if section is None:
            continue
        runs = any(form.block.section is not None for form in t.endings(last))
        found = section_progress(section, t.sources[section.first].rows) if runs else None
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
