"""Writes functions around a maximum pooling's kernel, for outputs whose windows meet a folded PAD.

Such an output is at least the PAD's value. So it is the kernel's output with a larger lower limit. The block
of constants has both pairs of limits: first those for windows inside the input. Rows are computed in
ascending order, as the kernel's overlap contract demands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from buildtool.base.errors import TargetError
from buildtool.emit.arguments import invocation
from buildtool.emit.blocks import POOL_LIMITS
from buildtool.emit.ctext import block, indent_lines, wrap
from buildtool.emit.network import Network
from buildtool.graph.geometry import attributes
from buildtool.graph.types import FilledPoolAttrs, Graph, Op
from buildtool.target.catalogue import is_bordered
from buildtool.target.types import Argument, KernelVariant

_PARAMETERS = {
    Argument.GEOMETRY: "const nn_pool_geometry *geometry",
    Argument.CONSTANTS: "const void *limits",
    Argument.IN: "const nn_view *in",
    Argument.OUT: "const nn_view *out",
    Argument.WINDOW: "const nn_window *window",
    Argument.SCRATCH: "int8_t *scratch",
}


def with_bordered(graph: Graph, kernels: Sequence[KernelVariant | None]) -> tuple[KernelVariant | None, ...]:
    """Returns the kernels, where each maximum pooling with a folded PAD calls the function emitted for it.

    `kernels`: one per operator, None for aliases.
    """
    return tuple(
        replace(kernel, symbol=f"bordered_{position}")
        if kernel and is_bordered(graph.ops[position])
        else kernel
        for position, kernel in enumerate(kernels)
    )


def bordered(network: Network) -> list[str]:
    """Returns the C of the functions for all maximum poolings with a folded PAD."""
    kernels = network.target.kernels_by_name(network.plan.kernels)
    pairs = enumerate(zip(network.graph.ops, kernels, strict=True))
    return [
        line
        for position, (op, kernel) in pairs
        if kernel and is_bordered(op)
        for line in _function(network.graph, position, op, kernel)
    ]


def inner_span(outputs: int, inputs: int, kernel: int, stride: int, pad: int) -> tuple[int, int]:
    """Returns, along one axis, the range [first, end) of the outputs whose windows lie in the input."""
    first = min(outputs, -(-pad // stride))
    end = min(outputs, max(0, inputs + pad - kernel + stride) // stride)
    return first, max(first, end)


def _function(graph: Graph, position: int, op: Op, kernel: KernelVariant) -> list[str]:
    if not set(kernel.call) <= set(_PARAMETERS):
        raise TargetError(
            f"kernel '{kernel.name}' cannot pool with a folded PAD",
            operator=op.place,
            hint="a pooling takes geometry, constants, in, out, window and scratch",
        )
    pool = attributes(op, FilledPoolAttrs)
    source, out = (graph.tensors[t].nhwc[1:3] for t in (op.inputs[0], op.outputs[0]))
    rows, columns = (
        inner_span(out[axis], source[axis], pool.kernel[axis], pool.stride[axis], pad)
        for axis, pad in enumerate((pool.pad.top, pool.pad.left))
    )
    arguments = {argument: argument.value for argument in kernel.call} | {
        Argument.CONSTANTS: f"(const int32_t *)limits + (i == 1 ? 0 : {POOL_LIMITS})",
        Argument.WINDOW: "&part",
    }
    part = ["const nn_window part = {y, y + 1, x[i], x[i + 1]};"]
    part += block("if (part.x0 < part.x1)", [invocation(kernel, arguments)])
    # compilers warn of a comparison that is never true
    inside = f"y >= {rows[0]} && y < {rows[1]}" if rows[0] < rows[1] else "0"
    row = [
        f"const int32_t inside = {inside};",
        "const int32_t x[] = {w.x0, inside ? first : w.x1, inside ? end : w.x1, w.x1};",
        *block("for (int32_t i = 0; i < 3; i++)", part),
    ]
    body = [
        "const nn_window w = *window;",
        f"const int32_t first = nn_least(nn_most({columns[0]}, w.x0), w.x1);",
        f"const int32_t end = nn_least(nn_most({columns[1]}, w.x0), w.x1);",
        *block("for (int32_t y = w.y0; y < w.y1; y++)", row),
    ]
    head = f"static void bordered_{position}({', '.join(_PARAMETERS[one] for one in kernel.call)})"
    return [
        f"/* Operator {position}: at its borders, no output is below the padding's value. */",
        *wrap(f"{head} {{"),
        *indent_lines(body),
        "}",
        "",
    ]
