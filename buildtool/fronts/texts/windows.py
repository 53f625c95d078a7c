"""What a network on a moving window computes and keeps in each invoke, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from buildtool.base.layers import short_names
from buildtool.fronts.texts.table import Cell, count, shorten, table

if TYPE_CHECKING:
    from buildtool.schema.plans import WindowTensor, WindowView

_NAME_WIDTH = 40
_WORTHWHILE = 0.9  # padding is mentioned if F could be at most this share of what it is


def figures(window: WindowView | None, f: float) -> Iterator[str]:
    """Yields lines for a plan's figures; no lines without a moving window. `f` is the plan's work factor."""
    if window is None:
        return
    new = count(window["rows"], "new row")
    yield f"window   {count(window['window_rows'], 'row')}, {new} in each invoke; F is for the whole window"
    yield f"         - init and reset fill it with zero points, which takes {count(window['hops'], 'invoke')}"
    if window["f_without_edges"] <= _WORTHWHILE * f:
        yield (
            "         - rows at the window's edges are computed anew; without padding of moments, or with "
            f"causal padding if only the last moment is read, F could be {window['f_without_edges']:.3f}"
        )
    if window["duty"] is not None and window["period_ms"] is not None:
        verdict = "" if window["duty"] <= 1 else ": too slow"
        share = f"{window['duty']:.1%}{verdict}"
        yield f"period   {window['period_ms']:,g} ms from hop to hop, of which an invoke takes {share}"


TITLES = ("layer", "operator", "rows", "computed", "which", "kept", "bytes")


def rows_of(window: WindowView) -> list[list[Cell]]:
    """Returns the cells of a table row for each tensor with rows, under TITLES."""
    names = short_names([tensor["name"] for tensor in window["tensors"]])
    return [
        [
            shorten(name, _NAME_WIDTH),
            tensor["operator"] or "input",
            tensor["rows"],
            sum(end - first for first, end in tensor["computed"]),
            _spans(tensor),
            _kept(tensor),
            tensor["kept_bytes"] or None,
        ]
        for name, tensor in zip(names, window["tensors"], strict=True)
    ]


def remarks(window: WindowView) -> list[str]:
    """Returns lines about the poolings that keep sums, and the operators that run on the whole window."""
    lines = []
    if window["sums"]:
        kept = count(window["sums_bytes"], "byte")
        rows = [tensor["name"] for tensor in window["tensors"]]
        names = short_names([*rows, *window["sums"]])[len(rows) :]
        lines.append(f"{', '.join(names)}: keeps its sums or maxima in {kept}")
    return lines + [
        f"{one['operator']} ({shorten(one['name'], _NAME_WIDTH)}) runs on the whole window: {one['why']}"
        for one in window["whole"]
    ]


def rows_table(window: WindowView | None) -> str:
    """Returns a table of the rows that an invoke computes and keeps, and the remarks; "" without a window."""
    if window is None:
        return ""
    lines = ["The window at each hop, in rows:", table(list(TITLES), rows_of(window)), *remarks(window)]
    return "\n".join(lines)


def _spans(tensor: WindowTensor) -> str:
    spans = [f"{first}-{end - 1}" if end > first + 1 else str(first) for first, end in tensor["computed"]]
    return ", ".join(spans)


def _kept(tensor: WindowTensor) -> str:
    if tensor["kept"] is None:
        return ""
    first, end = tensor["kept"]
    return f"{first}-{end - 1}"
