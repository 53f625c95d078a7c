"""Writes one operator's C for a window of its output, in a region that runs row by row. Views may be ring
buffers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from buildtool.base.errors import UnsupportedError
from buildtool.emit.arguments import copy_geometry, invocation, part_view, trace_window, view_arguments
from buildtool.emit.ctext import block, plus
from buildtool.emit.network import Network
from buildtool.graph.strided import copy_inside, planes_inside
from buildtool.graph.types import Graph, Op, OpKind, WidenedAttrs
from buildtool.plan.schedule.receptive import accumulates, moves_channels, scatters
from buildtool.target.catalogue import operands
from buildtool.target.types import Argument, KernelVariant, Role, Target, Windows


def operands_of(network: Network, position: int) -> tuple[int, ...]:
    """Returns the inputs of an operator that its kernel reads as tensors, not as packed constants."""
    kernel = network.kernels[position]
    assert kernel is not None  # regions contain no aliases
    return operands(kernel, network.graph, network.graph.ops[position])


def window_call(network: Network, position: int, window: str, in_part: bool = False) -> list[str]:
    """Returns one kernel call on a window of the output, with markers and trace. `window` is C for the
    nn_window.

    `in_part` says that the window has only some of the columns.
    """
    graph = network.graph
    op, kernel = graph.ops[position], network.kernels[position]
    assert kernel is not None  # regions contain no aliases
    result = op.outputs[0]
    begin = [f"const nn_window window = {window};", f"NN_MARK_BEGIN({position});"]
    trace = trace_window(result, graph.tensors[result].dtype)
    if accumulates(graph, op):
        return [*begin, *_accumulate(network, position), "NN_MARK_END();"]
    if scatters(graph, op):
        return [*begin, *_scatter(network, position, in_part), "NN_MARK_END();"]
    if op.kind is OpKind.CONCATENATION:
        return [*begin, *_copy_parts(network, position), "NN_MARK_END();", trace]
    if moves_channels(graph, op):
        holders = [network.holders[t] for t in (op.inputs[0], result) if t in network.holders]  # not states
        by_pixels = in_part or any(holder.columns for holder in holders)
        statements = _move_channels(graph, op, kernel, network.target, network.constants(position), by_pixels)
        return [*begin, *statements, "NN_MARK_END();", trace]
    if Argument.WINDOW not in kernel.call or kernel.windows is not Windows.ANY:
        raise UnsupportedError(f"kernel '{kernel.name}' computes only whole tensors", operator=op.place)
    arguments = {
        **view_arguments([f"tensor_{t}" for t in operands_of(network, position)], f"tensor_{result}"),
        **network.common_arguments(position),
        Argument.GEOMETRY: f"&geometry_{position}",
        Argument.WINDOW: "&window",
        Argument.CHANNEL: "0",
    }
    if isinstance(op.attrs, WidenedAttrs) and Argument.IN3 in kernel.call:
        arguments[Argument.CHANNEL] = str(op.attrs.before)
    elif isinstance(op.attrs, WidenedAttrs):
        names = [f"tensor_{t}" for t in (*op.as_seen.inputs, result)]
        return [*begin, *addition(graph, op.as_seen, kernel, names, arguments), "NN_MARK_END();", trace]
    return [*begin, invocation(kernel, arguments), "NN_MARK_END();", trace]


def _copy_parts(network: Network, position: int) -> list[str]:
    """Returns the calls that copy a window of each input of a concatenation to its place."""
    op, start, calls = network.graph.ops[position].as_seen, 0, []
    join = network.target.routine(Role.JOIN, network.kernels[position])
    for t in op.inputs:
        arguments = view_arguments([f"tensor_{t}"], f"tensor_{op.outputs[0]}")
        arguments |= {Argument.WINDOW: "&window", Argument.CHANNEL: str(start)}
        calls.append(invocation(join, arguments))
        start += network.graph.tensors[t].nhwc[3]
    return calls


def _accumulate(network: Network, position: int) -> list[str]:
    """Returns code that adds a part of a global pooling's input to its sums, and after the last part computes
    the output.
    """
    graph = network.graph
    op = graph.ops[position].as_seen
    _, height, width, channels = graph.tensors[op.inputs[0]].nhwc
    sums, result = network.accumulators(position), network.address(op.outputs[0])
    kernel, source = network.kernels[position], f"tensor_{op.inputs[0]}"
    arguments = {
        Argument.IN: f"&{source}",
        Argument.WINDOW: "&window",
        Argument.SUMS: sums,
        Argument.CONSTANTS: network.constants(position),
        Argument.CHANNELS: str(channels),
        Argument.PIXELS: str(height * width),
        Argument.OUT_DATA: result,
    }
    finish = invocation(network.target.routine(Role.FINISH, kernel), arguments)
    return [
        invocation(network.target.routine(Role.ACCUMULATE, kernel), arguments),
        *_at_the_end(network, position, [finish]),
    ]


def _scatter(network: Network, position: int, in_part: bool) -> list[str]:
    """Returns code that copies pixels of an image into planes: the output has a plane for each channel.

    `in_part`: whether the C variable `window` has only some columns of the input.
    """
    graph, kernel = network.graph, network.kernels[position]
    op = graph.ops[position]
    (source,), (result,) = op.inputs, op.outputs
    assert kernel is not None  # regions contain no aliases
    holder, (_, _, width, _) = network.holders.get(source), graph.tensors[source].nhwc
    by_pixels = in_part or (holder is not None and bool(holder.columns))
    place, size = f"y * {width}" + (" + column" if by_pixels else ""), graph.tensors[result].dtype.size
    arguments = {Argument.IN_DATA: "from", Argument.OUT_DATA: "to", Argument.GEOMETRY: "&geometry"}
    body = [
        _place("const int8_t *from", f"tensor_{source}.data", source, by_pixels),
        f"int8_t *to = {network.address(result)} + {f'({place}) * {size}' if size > 1 else place};",
        invocation(kernel, arguments),
    ]
    if by_pixels:
        body = block("for (int32_t column = window.x0; column < window.x1; column++)", body)
    return [
        *copy_geometry(planes_inside(graph, op, 1 if by_pixels else width)),
        *block("for (int32_t y = window.y0; y < window.y1; y++)", body),
        *_at_the_end(network, position, []),
    ]


def _at_the_end(network: Network, position: int, statements: list[str]) -> list[str]:
    """Returns a block that runs after the last part of the input: the statements, and the output's trace."""
    graph, op = network.graph, network.graph.ops[position].as_seen
    _, height, width, _ = graph.tensors[op.inputs[0]].nhwc
    (result,) = op.outputs
    trace = f"NN_TRACE_TENSOR({result}, {network.address(result)}, {graph.tensors[result].size});"
    return block(f"if (window.y1 == {height} && window.x1 == {width})", [*statements, trace])


def _move_channels(
    graph: Graph, op: Op, kernel: KernelVariant, target: Target, constants: str, by_pixels: bool
) -> list[str]:
    """Returns statements that compute, for an operator that copies, the output in the C variable `window`.

    The kernel copies boxes, and is called for each row, or for each pixel if `by_pixels`: a row is contiguous
    only if all its columns are in memory. `constants` is C for the operator's constants.
    """
    source, result = op.inputs[0], op.outputs[0]
    copy = copy_inside(graph, op, 3 if by_pixels else 2)
    addresses = {
        Argument.IN_DATA: plus("from", copy.in_offset),
        Argument.OUT_DATA: plus("to", copy.out_offset),
        Argument.GEOMETRY: "&geometry",
        Argument.CONSTANTS: constants,
    }
    body = [
        _place("const int8_t *from", f"tensor_{source}.data", source, by_pixels),
        _place("int8_t *to", f"nn_out_data(&tensor_{result})", result, by_pixels),
    ]
    if op.kind is OpKind.PAD:
        size = graph.tensors[result].pixel_bytes if by_pixels else graph.tensors[result].row_bytes
        fill_arguments = {Argument.CONSTANTS: constants, Argument.OUT_DATA: "to", Argument.BYTES: str(size)}
        body.append(invocation(target.routine(Role.FILL, kernel), fill_arguments))
    body.append(invocation(kernel, addresses))
    if by_pixels:
        body = block("for (int32_t column = window.x0; column < window.x1; column++)", body)
    return [*copy_geometry(copy), *block("for (int32_t y = window.y0; y < window.y1; y++)", body)]


def _place(declared: str, data: str, tensor: int, by_pixels: bool) -> str:
    """Returns the line that declares the address of row y, or of pixel (y, column), in a tensor's view.
    `declared` is the declaration, `data` C for the address where the view's memory begins.
    """
    view = f"tensor_{tensor}"
    row = f"{declared} = {data} + y % {view}.ring_rows * {view}.row_stride"
    return row + (f" + column % {view}.ring_cols * {view}.pixel_stride;" if by_pixels else ";")


def addition(
    graph: Graph,
    op: Op,
    kernel: KernelVariant,
    named: Sequence[str],
    arguments: Mapping[Argument, str],
) -> list[str]:
    """Returns statements for an ADD whose second operand has fewer channels, for the output in the C variable
    `window`.

    The kernel is called on parts of the channels, row by row. For channels that the second operand lacks, a
    constant filling is added. Each row is finished before the next one begins, as the overlap contract `row`
    requires.

    `named` are the views of the first operand, the second operand, the filling and the output. `arguments`
    are the kernel's other arguments.
    """
    assert isinstance(op.attrs, WidenedAttrs)
    first, second, filling, out = named
    dtype = graph.tensors[op.outputs[0]].dtype
    channels, narrow = (graph.tensors[t].nhwc[3] for t in op.inputs[:2])
    before, end = op.attrs.before, op.attrs.before + narrow
    parts = (
        ("below", filling, 0, before),
        ("inside", second, before, end),
        ("above", filling, end, channels),
    )
    lines, calls = [], []
    for name, source, start, stop in (part for part in parts if part[2] < part[3]):
        views = ((name, first, start), (f"{name}_more", source, 0), (f"{name}_sum", out, start))
        for part, whole, begin in views:
            view = part_view(f"&{whole}", str(begin), str(stop - start), dtype)
            lines.append(f"const nn_view {part} = {view};")
        operands = view_arguments([name, f"{name}_more"], f"{name}_sum")
        calls.append(invocation(kernel, {**arguments, **operands, Argument.WINDOW: "&row"}))
    row = "const nn_window row = {y, y + 1, window.x0, window.x1};"
    return [*lines, *block("for (int32_t y = window.y0; y < window.y1; y++)", [row, *calls])]
