"""Writes functions that expand an operator's weights, which are stored in four bits, and call its kernel.

Such a function has the kernel's parameters, so it is called wherever the kernel would be. It computes the
operator in slices of its output channels. Before each slice it expands the slice's constants into the scratch
memory, where they precede the kernel's own scratch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from buildtool.emit.arguments import invocation, part_view
from buildtool.emit.ctext import block, indent_lines, wrap
from buildtool.emit.network import Network
from buildtool.graph.types import Graph, Op, WeightedAttrs
from buildtool.plan.types import BufferKind
from buildtool.target.catalogue import expanded_bytes, expands, features, slice_sizes
from buildtool.target.types import Argument, KernelVariant, Role

_PARAMETERS = {
    Argument.GEOMETRY: "const nn_conv_geometry *geometry",
    Argument.CONSTANTS: "const void *stored",
    Argument.IN: "const nn_view *in",
    Argument.OUT: "const nn_view *out",
    Argument.WINDOW: "const nn_window *window",
    Argument.SCRATCH: "int8_t *scratch",
    Argument.CHANNEL: "int32_t channel",  # 0: a slice is packed as if it were the whole output
}
_NEEDED = frozenset({Argument.CONSTANTS, Argument.IN, Argument.OUT, Argument.WINDOW, Argument.SCRATCH})


def can_expand(kernel: KernelVariant) -> bool:
    """Whether a kernel's parameters allow a function around it that expands its constants."""
    return set(kernel.call) >= _NEEDED and set(kernel.call) <= set(_PARAMETERS)


def with_callers(graph: Graph, kernels: Sequence[KernelVariant | None]) -> tuple[KernelVariant | None, ...]:
    """Returns the kernels, where operators with weights in four bits call functions that expand these.

    `kernels`: one per operator, None for aliases.
    """
    return tuple(
        replace(kernel, symbol=f"expanded_{position}") if kernel and expands(graph.ops[position]) else kernel
        for position, kernel in enumerate(kernels)
    )


def callers(network: Network) -> list[str]:
    """Returns the C of the functions for all operators whose weights are stored in four bits."""
    kernels = network.target.kernels_by_name(network.plan.kernels)
    pairs = enumerate(zip(network.graph.ops, kernels, strict=True))
    return [
        line
        for position, (op, kernel) in pairs
        if kernel and expands(op)
        for line in _caller(network, position, op, kernel)
    ]


def _caller(network: Network, position: int, op: Op, kernel: KernelVariant) -> list[str]:
    graph = network.graph
    assert isinstance(op.attrs, WeightedAttrs)
    channels, expanded = features(graph, op)["cout"], op.attrs.expanded
    routine = network.target.routine(Role.EXPAND)
    sizes = [expanded_bytes(kernel, graph, op, size) for size in slice_sizes(graph, op)]
    buffers = network.plan.buffers
    own = sum(b.size for b in buffers if b.kind is BufferKind.SCRATCH and b.op == position) - max(sizes)
    arguments = {argument: argument.value for argument in kernel.call} | {
        Argument.CONSTANTS: "constants",
        Argument.OUT: "&part" if expanded < channels else "out",
        Argument.SCRATCH: f"scratch + {max(sizes)}" if own else "NULL",  # kernels test for NULL
    }
    count = "bytes" if len(set(sizes)) > 1 else str(sizes[0])
    places = {Argument.IN_DATA: "stored", Argument.OUT_DATA: "constants", Argument.BYTES: count}
    dtype = graph.tensors[op.outputs[0]].dtype
    steps = [f"stored = {invocation(routine, places)}", invocation(kernel, arguments)]
    body = [
        *(
            [f"const int32_t bytes = {channels} - c < {expanded} ? {sizes[1]} : {sizes[0]};"]
            if len(set(sizes)) > 1
            else []
        ),
        f"const nn_view part = {part_view('out', 'c', f'nn_least({expanded}, {channels} - c)', dtype)};",
        *steps,
    ]
    if expanded < channels:
        steps = block(f"for (int32_t c = 0; c < {channels}; c += {expanded})", body)
    else:
        steps[0] = steps[0].removeprefix("stored = ")
    head = f"static void expanded_{position}({', '.join(_PARAMETERS[one] for one in kernel.call)})"
    return [
        f"/* Operator {position}: its weights are stored in four bits. */",
        *wrap(f"{head} {{"),
        "    int8_t *const constants = scratch;",
        *indent_lines(steps),
        "}",
        "",
    ]
