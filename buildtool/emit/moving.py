"""Writes what the kernels for a network on a moving window need: for copies of rows, ring buffers of rows,
and sums and maxima over the window (see `graph.hop`).
"""

from __future__ import annotations

from collections.abc import Callable

from buildtool.emit.arguments import Fields, initialiser, number_table
from buildtool.graph.types import Graph, Op, OpKind, PooledAttrs, RingAttrs, RowsAttrs, SlidingAttrs
from buildtool.target.types import Argument

Arguments = dict[Argument, str]


def moving(graph: Graph, op: Op, address: Callable[[int], str]) -> tuple[list[str], Arguments]:
    """Returns C for the kernel call of an operator that only networks on a moving window have.

    The result is the lines of declarations, and the arguments. `address` returns C for the address of a
    tensor.
    """
    match attrs := op.attrs:
        case RowsAttrs():
            return _rows(graph, op, attrs, address)
        case RingAttrs():
            return _ring(graph, op, attrs, address)
        case SlidingAttrs():
            return _sliding(graph, op, attrs, address)
    if op.kind is OpKind.ROW_SUMS:
        return [], _row_sums(graph, op, address)
    assert isinstance(attrs, PooledAttrs)
    sums = f"(const int32_t *)(const void *)({address(op.inputs[0])})"
    return [], {
        Argument.SUMS: sums,
        Argument.CHANNELS: str(graph.tensors[op.inputs[0]].nhwc[3]),
        Argument.PIXELS: str(attrs.height * attrs.width),
        Argument.OUT_DATA: address(op.outputs[0]),
    }


def _rows(
    graph: Graph, op: Op, attrs: RowsAttrs, address: Callable[[int], str]
) -> tuple[list[str], Arguments]:
    pieces = [f"{{{', '.join(map(str, piece))}}}" for piece in attrs.pieces]
    fields: Fields = [
        ("row_bytes", graph.tensors[op.outputs[0]].row_bytes),
        ("count", len(pieces)),
        ("pieces", "pieces"),
        ("ring_rows", "ring_rows"),
    ]
    lines = [
        "static const nn_rows_piece pieces[] = {",
        *(f"    {piece}," for piece in pieces),
        "};",
        *number_table("int32_t", "ring_rows", attrs.ring_rows),
        *initialiser("nn_rows_geometry", "geometry", fields),
        _inputs([address(t) for t in op.inputs]),
    ]
    return lines, {Argument.INPUTS: "inputs", Argument.OUT_DATA: address(op.outputs[0])}


def _inputs(addresses: list[str]) -> str:
    return f"const int8_t *const inputs[] = {{{', '.join(addresses)}}};"


def _row_sums(graph: Graph, op: Op, address: Callable[[int], str]) -> Arguments:
    _, rows, columns, channels = graph.tensors[op.inputs[0]].nhwc
    return {
        Argument.IN_DATA: address(op.inputs[0]),
        Argument.PIXELS: str(rows * columns),
        Argument.CHANNELS: str(channels),
        Argument.SUMS: f"(int32_t *)(void *)({address(op.outputs[0])})",
    }


def _ring(
    graph: Graph, op: Op, attrs: RingAttrs, address: Callable[[int], str]
) -> tuple[list[str], Arguments]:
    fields: Fields = [
        ("row_bytes", graph.tensors[op.inputs[1]].row_bytes),
        ("rows", attrs.rows),
        ("first", attrs.first),
        ("count", attrs.count),
    ]
    arguments = {Argument.IN_DATA: address(op.inputs[1]), Argument.STATE: address(op.inputs[0])}
    return initialiser("nn_ring_geometry", "geometry", fields), arguments


def _sliding(
    graph: Graph, op: Op, attrs: SlidingAttrs, address: Callable[[int], str]
) -> tuple[list[str], Arguments]:
    last, state, *first = op.inputs
    _, rows, width, channels = graph.tensors[last].nhwc
    fields: Fields = [
        ("entries", attrs.entries),
        ("blocks", f"{{{', '.join(map(str, attrs.blocks))}}}"),
        ("entering", attrs.entering),
        ("bytes", attrs.bytes),
        ("width", width),
        ("channels", channels),
        ("last_rows", rows),
        ("has_first", len(first)),
    ]
    lines = [
        *initialiser("nn_sliding_geometry", "geometry", fields),
        _inputs([address(t) for t in (last, *first)]),
    ]
    return lines, {
        Argument.INPUTS: "inputs",
        Argument.STATE: address(state),
        Argument.OUT_DATA: address(op.outputs[0]),
    }
