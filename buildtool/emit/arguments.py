"""The call of a C function that a catalogue describes, and what it is handed: views and geometry.

Every kernel and every routine that emitted code calls is called by `invocation`, of whole tensors and of
windows alike; what differs is the C that stands for each argument. Strides of a view are bytes, its channels
are elements; of a tensor of bytes both are one number, and the short form is written.
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

_LINE = 88  # characters, indented
Fields = Sequence[tuple[str, object]]


def invocation(callee: KernelVariant | Routine, arguments: Mapping[Argument, str]) -> str:
    """The statement that calls `callee`; `arguments` are C expressions of what there is to hand over."""
    for argument in callee.call:
        if argument not in arguments:
            have = ", ".join(sorted(arguments))
            raise TargetError(
                f"{callee.symbol} takes '{argument}', which {callee.op or 'its call'} does not have here",
                hint=f"`call` in the catalogue may name {have}",
            )
    return f"{callee.symbol}({', '.join(arguments[argument] for argument in callee.call)});"


def view_arguments(views: Sequence[str], out: str) -> dict[Argument, str]:
    """The arguments that are views: `views` are the operands', C expressions of nn_view variables."""
    found = {argument: f"&{views[n]}" for argument, n in VIEWS if n < len(views)}
    return {**found, Argument.OUT: f"&{out}"}


# ---- views ------------------------------------------------------------------------------------------


def _sized(name: str, numbers: str, dtype: DType) -> str:
    """The short form of a function of nn_view.h for tensors of bytes, else the wide one."""
    return f"{name}({numbers})" if dtype.size == 1 else f"{name}_wide({numbers}, {dtype.size})"


def whole_view(address: str, height: int, width: int, channels: int, dtype: DType) -> str:
    """A view of a whole tensor (one image of it)."""
    return _sized("nn_whole", f"{address}, {height}, {width}, {channels}", dtype)


def repeating_view(address: str, own: tuple[int, int, int], height: int, width: int, dtype: DType) -> str:
    """A view of an operand of `own` rows, columns and channels that repeats itself over rows and columns."""
    return _sized("nn_repeated", f"{address}, {own[0]}, {own[1]}, {own[2]}, {height}, {width}", dtype)


def part_view(view: str, first: str, channels: str, dtype: DType) -> str:
    """A view of some of the channels of another one; `view`: C of its address."""
    return _sized("nn_part", f"{view}, {first}, {channels}", dtype)


def operand_view(graph: Graph, tensor: int, name: str, whole: Callable[[int], str]) -> list[str]:
    """Declares the view `name` of a tensor, which may be some channels of another one.

    `whole`: C of a view of all of a tensor that lies in memory by itself.
    """
    lies = parts(graph).get(tensor)
    if lies is None:
        return [f"const nn_view {name} = {whole(tensor)};"]
    of = graph.tensors[tensor]
    taken = part_view(f"&{name}_all", str(lies.first), str(of.nhwc[3]), of.dtype)
    return [f"const nn_view {name}_all = {whole(lies.whole)};", f"const nn_view {name} = {taken};"]


def trace_window(tensor: int, dtype: DType) -> str:
    """The statement that hands out the window of a tensor that was just computed, in a trace build."""
    numbers = f"{tensor}, &tensor_{tensor}, &window"
    return f"NN_TRACE_WINDOW({numbers});" if dtype.size == 1 else f"NN_TRACE_WIDE({numbers}, {dtype.size});"


# ---- geometry: what the topology fixes for kernels ------------------------------------------------------


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
        shape = graph.tensors[op.inputs[1]].shape
        sides = {"kernel": shape[1:3], "stride": attrs.stride, "dilation": attrs.dilation}
        groups = 1
        if isinstance(attrs, DepthwiseAttrs):
            groups = attrs.depth_multiplier
        elif op.kind is OpKind.CONV_2D:
            groups = graph.tensors[op.inputs[0]].shape[3] // shape[3]
        fields = [*_sides(sides, attrs.pad), ("groups", groups)]
        return initialiser("nn_conv_geometry", name, fields)
    if isinstance(attrs, PoolAttrs):
        sides = {"kernel": attrs.kernel, "stride": attrs.stride}
        return initialiser("nn_pool_geometry", name, _sides(sides, attrs.pad))
    if isinstance(attrs, ResizeAttrs):
        flags = ("align_corners", "half_pixel_centers")
        return initialiser("nn_resize_geometry", name, [(flag, int(getattr(attrs, flag))) for flag in flags])
    if isinstance(attrs, BlockAttrs):
        return initialiser("nn_square_geometry", name, [("block", attrs.block)])
    return []


def _sides(sides: Mapping[str, tuple[int, ...]], pad: Pad) -> list[tuple[str, object]]:
    """What a window has along rows and columns, and the padding before it."""
    both = [(f"{word}_{side}", n) for word, two in sides.items() for side, n in zip("hw", two, strict=True)]
    return [*both, ("pad_top", pad.top), ("pad_left", pad.left)]


def recurrent_geometry(graph: Graph, op: Op, name: str) -> list[str]:
    """Declares the struct that kernels of an SVDF or an LSTM take."""
    known = features(graph, op)
    if isinstance(op.attrs, SvdfAttrs):
        sizes = {"batch": "batch", "inputs": "cin", "units": "cout", "rank": "rank", "memory": "memory"}
        return initialiser("nn_svdf_geometry", name, [(field, known[of]) for field, of in sizes.items()])
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


def copy_geometry(copy: Copy) -> list[str]:
    """C that declares `geometry`, of a copy."""
    fields = [
        ("rank", len(copy.size)),
        ("size", array(copy.size)),
        ("in_stride", array(copy.in_stride)),
        ("out_stride", array(copy.out_stride)),
    ]
    return initialiser("nn_copy_geometry", "geometry", fields)


def array(values: Sequence[int]) -> str:
    """Numbers by dimension, with zeros for those that there are not."""
    return "{" + ", ".join(str(v) for v in (*values, *([0] * (MAX_RANK - len(values))))) + "}"
