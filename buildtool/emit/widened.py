"""An ADD whose second operand lacks channels: the kernel's calls on parts of the channels, row by row.

What a PAD would have made is never in memory: where the operand has channels they are added, where it has
none the constant filling is. A row is done with before the next one begins, which is the contract `row`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from buildtool.emit import views
from buildtool.emit.invocation import invocation, view_arguments
from buildtool.graph.types import Graph, Op, WidenedAttrs
from buildtool.target.types import Argument, KernelVariant


def addition(
    graph: Graph,
    op: Op,
    kernel: KernelVariant,
    named: Sequence[str],
    arguments: Mapping[Argument, str],
) -> list[str]:
    """The C statements that add over `window`, a variable of the code around them.

    `named`: the views of the first operand, of the second one, of the filling, and of the output;
    `arguments`: what else the kernel may take.
    """
    assert isinstance(op.attrs, WidenedAttrs)
    first, second, filling, out = named
    dtype = graph.tensors[op.outputs[0]].dtype
    channels, narrow = (graph.tensors[t].nhwc[3] for t in op.inputs[:2])
    before, end = op.attrs.before, op.attrs.before + narrow
    parts = [
        (name, source, start, stop)
        for name, source, start, stop in (
            ("below", filling, 0, before),
            ("inside", second, before, end),
            ("above", filling, end, channels),
        )
        if start < stop
    ]
    lines, calls = [], []
    for name, source, start, stop in parts:
        count = stop - start
        for part, whole, begin in (
            (name, first, start),
            (f"{name}_more", source, 0),
            (f"{name}_sum", out, start),
        ):
            lines.append(f"const nn_view {part} = {views.part(f'&{whole}', str(begin), str(count), dtype)};")
        operands = view_arguments([name, f"{name}_more"], f"{name}_sum")
        calls.append(invocation(kernel, {**arguments, **operands, Argument.WINDOW: "&row"}))
    return [
        *lines,
        "for (int32_t y = window.y0; y < window.y1; y++) {",
        "    const nn_window row = {y, y + 1, window.x0, window.x1};",
        *("    " + call for call in calls),
        "}",
    ]
