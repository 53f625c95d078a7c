"""Moves of channels in a streamed region: a kernel that copies boxes, called for each row, or each pixel.

A row lies in one piece where all its columns are kept; in a window of columns only a pixel does.
"""

from __future__ import annotations

from buildtool.emit.calls import copy_geometry
from buildtool.emit.invocation import invocation
from buildtool.graph.strided import copy_inside
from buildtool.graph.types import Graph, Op, OpKind
from buildtool.target.types import Argument, KernelVariant, Role, Target


def moved_channels(
    graph: Graph, op: Op, kernel: KernelVariant, target: Target, constants: str, by_pixels: bool
) -> list[str]:
    """The C statements that make `window`, a variable of the code around them, of the operator's output.

    The views are called by their tensors; `constants`: the C expression of the operator's;
    `by_pixels`: the window or what is kept of the input or the output has some of the columns only.
    """
    source, result = op.inputs[0], op.outputs[0]
    copy = copy_inside(graph, op, 3 if by_pixels else 2)
    addresses = {
        Argument.IN_DATA: _plus("from", copy.in_offset),
        Argument.OUT_DATA: _plus("to", copy.out_offset),
        Argument.GEOMETRY: "&geometry",
        Argument.CONSTANTS: constants,
    }
    body = [
        _place("const int8_t *from", f"tensor_{source}.data", source, by_pixels),
        _place("int8_t *to", f"nn_out_data(&tensor_{result})", result, by_pixels),
    ]
    if op.kind is OpKind.PAD:
        size = graph.tensors[result].pixel_bytes if by_pixels else graph.tensors[result].row_bytes
        filled = {Argument.CONSTANTS: constants, Argument.OUT_DATA: "to", Argument.BYTES: str(size)}
        body.append(invocation(target.routine(Role.FILL, kernel), filled))
    body.append(invocation(kernel, addresses))
    if by_pixels:
        loop = "for (int32_t column = window.x0; column < window.x1; column++) {"
        body = [loop, *("    " + line for line in body), "}"]
    rows = "for (int32_t y = window.y0; y < window.y1; y++) {"
    return [*copy_geometry(copy), rows, *("    " + line for line in body), "}"]


def _place(declared: str, data: str, tensor: int, by_pixels: bool) -> str:
    """Declares where row y, or pixel (y, x), of a tensor's view begins; `data`: C of where the view does."""
    view = f"tensor_{tensor}"
    row = f"{declared} = {data} + y % {view}.ring_rows * {view}.row_stride"
    return row + (f" + column % {view}.ring_cols * {view}.pixel_stride;" if by_pixels else ";")


def _plus(address: str, offset: int) -> str:
    return f"{address} + {offset}" if offset else address
