"""The geometry structs of nn.h, as C initialisers: what the topology fixes for kernels of views."""

from __future__ import annotations

from collections.abc import Sequence

from buildtool.graph.types import (
    BlockAttrs,
    ConvAttrs,
    DepthwiseAttrs,
    Graph,
    LstmAttrs,
    Op,
    OpKind,
    PoolAttrs,
    ResizeAttrs,
    SvdfAttrs,
)
from buildtool.target.catalogue import features

_LINE = 88  # characters, indented
Fields = Sequence[tuple[str, object]]


def initialiser(type_name: str, name: str, fields: Fields) -> list[str]:
    """A constant struct with designated initialisers, a line each."""
    lines = [f"    .{field} = {value}," for field, value in fields]
    return [f"static const {type_name} {name} = {{", *lines, "};"]


def number_table(type_name: str, name: str, values: Sequence[int]) -> list[str]:
    """A constant array: a line, or several that clang-format leaves alone."""
    line = f"static const {type_name} {name}[] = {{{', '.join(map(str, values))}}};"
    if len(line) <= _LINE:
        return [line]
    rows = [", ".join(map(str, values[i : i + 16])) for i in range(0, len(values), 16)]
    lines = [f"static const {type_name} {name}[] = {{", *(f"    {row}," for row in rows), "};"]
    return ["/* clang-format off */", *lines, "/* clang-format on */"]


def geometry(graph: Graph, op: Op, name: str) -> list[str]:
    """Declares the struct that kernels of `op` take as their geometry; nothing where there is none."""
    attrs = op.attrs
    if isinstance(attrs, ConvAttrs):
        return initialiser("nn_conv_geometry", name, _convolution(graph, op, attrs))
    if isinstance(attrs, PoolAttrs):
        return initialiser("nn_pool_geometry", name, _pool(attrs))
    if isinstance(attrs, ResizeAttrs):
        return initialiser("nn_resize_geometry", name, _resize(attrs))
    if isinstance(attrs, BlockAttrs):
        return initialiser("nn_square_geometry", name, [("block", attrs.block)])
    return []


def _convolution(graph: Graph, op: Op, attrs: ConvAttrs) -> Fields:
    filter_shape = graph.tensors[op.inputs[1]].shape
    if isinstance(attrs, DepthwiseAttrs):
        groups = attrs.depth_multiplier
    elif op.kind == OpKind.CONV_2D:
        groups = graph.tensors[op.inputs[0]].shape[3] // filter_shape[3]
    else:
        groups = 1
    return [
        ("kernel_h", filter_shape[1]),
        ("kernel_w", filter_shape[2]),
        ("stride_h", attrs.stride[0]),
        ("stride_w", attrs.stride[1]),
        ("dilation_h", attrs.dilation[0]),
        ("dilation_w", attrs.dilation[1]),
        ("pad_top", attrs.pad.top),
        ("pad_left", attrs.pad.left),
        ("groups", groups),
    ]


def _pool(attrs: PoolAttrs) -> Fields:
    return [
        ("kernel_h", attrs.kernel[0]),
        ("kernel_w", attrs.kernel[1]),
        ("stride_h", attrs.stride[0]),
        ("stride_w", attrs.stride[1]),
        ("pad_top", attrs.pad.top),
        ("pad_left", attrs.pad.left),
    ]


def _resize(attrs: ResizeAttrs) -> Fields:
    return [
        ("align_corners", int(attrs.align_corners)),
        ("half_pixel_centers", int(attrs.half_pixel_centers)),
    ]


def recurrent_geometry(graph: Graph, op: Op, name: str) -> list[str]:
    """Declares the struct that kernels of an SVDF or an LSTM take."""
    known = features(graph, op)
    if isinstance(op.attrs, SvdfAttrs):
        sizes = [
            ("batch", "batch"),
            ("inputs", "cin"),
            ("units", "cout"),
            ("rank", "rank"),
            ("memory", "memory"),
        ]
        return initialiser("nn_svdf_geometry", name, [(field, known[of]) for field, of in sizes])
    assert isinstance(op.attrs, LstmAttrs)
    fields: list[tuple[str, object]] = [
        ("batch", known["batch"]),
        ("steps", known["ow"]),
        ("inputs", known["cin"]),
        ("cells", known["cells"]),
        ("outputs", known["cout"]),
        ("time_major", int(op.attrs.time_major)),
        *((flag, known[flag]) for flag in ("gates", "peepholes", "normed", "projected")),
    ]
    return initialiser("nn_lstm_geometry", name, fields)
