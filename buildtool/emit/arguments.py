"""Writes the C of calls of kernels and routines, as a catalogue describes them, and of their arguments.

Arguments are mainly views (nn_view: the place of a tensor in memory) and a geometry, the constant struct with
an operator's shapes, strides and padding. `invocation` writes every call, on whole tensors and on windows. A
view's strides are in bytes, its channels in elements. For tensors with one byte per element the two units are
equal; then the shorter functions of nn_view.h are called, which take no size of an element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from buildtool.base.errors import TargetError
from buildtool.graph.partviews import parts
from buildtool.graph.strided import MAX_RANK, Copy
from buildtool.graph.types import (
    BlockAttrs,
    ConvAttrs,
    DepthwiseAttrs,
    DType,
    Graph,
    LstmAttrs,
    Op,
    OpKind,
    Pad,
    PoolAttrs,
    ResizeAttrs,
    SvdfAttrs,
)
from buildtool.target.catalogue import VIEWS, features
from buildtool.target.types import Argument, KernelVariant, Routine

_LINE = 88  # the longest line, in characters without the indentation
Fields = Sequence[tuple[str, object]]


def invocation(callee: KernelVariant | Routine, arguments: Mapping[Argument, str]) -> str:
    """Returns the statement that calls `callee`. `arguments` has C for each argument that may be passed to
    it.

    Raises TargetError if the callee takes an argument that is not in `arguments`.
    """
    for argument in callee.call:
        if argument not in arguments:
            available = ", ".join(sorted(arguments))
            raise TargetError(
                f"{callee.symbol} takes '{argument}', which is not available for {callee.op or 'this call'}",
                hint=f"`call` in the catalogue may name {available}",
            )
    return f"{callee.symbol}({', '.join(arguments[argument] for argument in callee.call)});"


def view_arguments(views: Sequence[str], out: str) -> dict[Argument, str]:
    """Returns C for the arguments that are views.

    `views` are the names of the operands' nn_view variables, `out` is that of the output's variable.
    """
    operands = {argument: f"&{views[n]}" for argument, n in VIEWS if n < len(views)}
    return {**operands, Argument.OUT: f"&{out}"}


# ---- views ------------------------------------------------------------------------------------------


def _sized_call(name: str, numbers: str, dtype: DType) -> str:
    """Returns the C of a call of the function `name` in nn_view.h with the arguments `numbers`.

    If elements of `dtype` have several bytes, it calls NAME_wide instead, which also takes their size.
    """
    return f"{name}({numbers})" if dtype.size == 1 else f"{name}_wide({numbers}, {dtype.size})"


def whole_view(address: str, height: int, width: int, channels: int, dtype: DType) -> str:
    """Returns C for a view of a whole tensor, or of one element of its batch, at `address`."""
    return _sized_call("nn_whole", f"{address}, {height}, {width}, {channels}", dtype)


def repeating_view(address: str, own: tuple[int, int, int], height: int, width: int, dtype: DType) -> str:
    """Returns C for a view that broadcasts an operand over an output of `height` rows and `width` columns.

    `own` are the operand's rows, columns and channels.
    """
    return _sized_call("nn_repeated", f"{address}, {own[0]}, {own[1]}, {own[2]}, {height}, {width}", dtype)


def part_view(view: str, first: str, channels: str, dtype: DType) -> str:
    """Returns C for a view of some channels of another view.

    `view`: C for the address of that view. `first`, `channels`: C for the first channel and the number of
    channels. `dtype`: of the tensor.
    """
    return _sized_call("nn_part", f"{view}, {first}, {channels}", dtype)


def operand_view(graph: Graph, tensor: int, name: str, whole: Callable[[int], str]) -> list[str]:
    """Returns lines that declare the view `name` of a tensor, which may be some channels of another tensor.

    `whole` returns C for the view of a tensor that has memory of its own.
    """
    part = parts(graph).get(tensor)
    if part is None:
        return [f"const nn_view {name} = {whole(tensor)};"]
    of = graph.tensors[tensor]
    channels = part_view(f"&{name}_all", str(part.first), str(of.nhwc[3]), of.dtype)
    return [f"const nn_view {name}_all = {whole(part.whole)};", f"const nn_view {name} = {channels};"]


def trace_window(tensor: int, dtype: DType) -> str:
    """Returns the statement that reports a tensor's window in a trace build, when it has been computed."""
    numbers = f"{tensor}, &tensor_{tensor}, &window"
    return f"NN_TRACE_WINDOW({numbers});" if dtype.size == 1 else f"NN_TRACE_WIDE({numbers}, {dtype.size});"


# ---- geometry: what kernels need of the topology --------------------------------------------------------


def initialiser(type_name: str, name: str, fields: Fields) -> list[str]:
    """Returns lines that define a constant struct, with one designated initialiser per line."""
    lines = [f"    .{field} = {value}," for field, value in fields]
    return [f"static const {type_name} {name} = {{", *lines, "};"]


def number_table(type_name: str, name: str, values: Sequence[int]) -> list[str]:
    """Returns lines that define a constant array: one line, or several that clang-format does not change."""
    line = f"static const {type_name} {name}[] = {{{', '.join(map(str, values))}}};"
    if len(line) <= _LINE:
        return [line]
    rows = [", ".join(map(str, values[i : i + 16])) for i in range(0, len(values), 16)]
    lines = [f"static const {type_name} {name}[] = {{", *(f"    {row}," for row in rows), "};"]
    return ["/* clang-format off */", *lines, "/* clang-format on */"]


def geometry(graph: Graph, op: Op, name: str) -> list[str]:
    """Returns lines that define the geometry struct `name` for kernels of `op`; none if these kernels need no
    geometry.
    """
    attrs = op.attrs
    if isinstance(attrs, ConvAttrs):
        shape = graph.tensors[op.inputs[1]].shape
        sides = {"kernel": shape[1:3], "stride": attrs.stride, "dilation": attrs.dilation}
        groups = 1
        if isinstance(attrs, DepthwiseAttrs):
            groups = attrs.depth_multiplier
        elif op.kind is OpKind.CONV_2D:
            groups = graph.tensors[op.inputs[0]].shape[3] // shape[3]
        fields = [*_window_fields(sides, attrs.pad), ("groups", groups)]
        return initialiser("nn_conv_geometry", name, fields)
    if isinstance(attrs, PoolAttrs):
        sides = {"kernel": attrs.kernel, "stride": attrs.stride}
        return initialiser("nn_pool_geometry", name, _window_fields(sides, attrs.pad))
    if isinstance(attrs, ResizeAttrs):
        flags = ("align_corners", "half_pixel_centers")
        return initialiser("nn_resize_geometry", name, [(flag, int(getattr(attrs, flag))) for flag in flags])
    if isinstance(attrs, BlockAttrs):
        return initialiser("nn_square_geometry", name, [("block", attrs.block)])
    return []


def _window_fields(sides: Mapping[str, tuple[int, ...]], pad: Pad) -> list[tuple[str, object]]:
    """Returns the fields (name, value) of a geometry that describe a kernel's window and its padding.

    `sides`: the beginning of the fields' names, such as "stride" -> (rows, columns). Of `pad`, the top and
    the left are written.
    """
    both = [(f"{word}_{side}", n) for word, two in sides.items() for side, n in zip("hw", two, strict=True)]
    return [*both, ("pad_top", pad.top), ("pad_left", pad.left)]


def recurrent_geometry(graph: Graph, op: Op, name: str) -> list[str]:
    """Returns lines that define the geometry struct `name` for kernels of an SVDF or an LSTM."""
    values = features(graph, op)
    if isinstance(op.attrs, SvdfAttrs):
        sizes = {"batch": "batch", "inputs": "cin", "units": "cout", "rank": "rank", "memory": "memory"}
        return initialiser("nn_svdf_geometry", name, [(field, values[of]) for field, of in sizes.items()])
    assert isinstance(op.attrs, LstmAttrs)
    fields: list[tuple[str, object]] = [
        ("batch", values["batch"]),
        ("steps", values["ow"]),
        ("inputs", values["cin"]),
        ("cells", values["cells"]),
        ("outputs", values["cout"]),
        ("time_major", int(op.attrs.time_major)),
        *((flag, values[flag]) for flag in ("gates", "peepholes", "normed", "projected")),
    ]
    return initialiser("nn_lstm_geometry", name, fields)


def copy_geometry(copy: Copy) -> list[str]:
    """Returns lines that define the struct `geometry` of a copy."""
    fields = [
        ("rank", len(copy.size)),
        ("size", array(copy.size)),
        ("in_stride", array(copy.in_stride)),
        ("out_stride", array(copy.out_stride)),
    ]
    return initialiser("nn_copy_geometry", "geometry", fields)


def array(values: Sequence[int]) -> str:
    """Returns a C initialiser for one number per dimension, padded with zeros to MAX_RANK numbers."""
    return "{" + ", ".join(str(v) for v in (*values, *([0] * (MAX_RANK - len(values))))) + "}"
