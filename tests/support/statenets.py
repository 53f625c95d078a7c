"""Networks with state, in the forms that converters write, and in forms that are hard to plan.

graphs = [maker(seed) for maker in MAKERS]
model = ring_file()     # a .tflite file field by field, as TFLite's converter writes one
"""

from dataclasses import replace

import numpy as np
from flatfiles import FileOperator, FileTensor, constant, write
from namednets import requantise_as

from buildtool.graph.numbering import graph_of
from buildtool.graph.types import AxisAttrs, Graph, Op, OpKind, SliceAttrs, State, TransposeAttrs
from buildtool.zoo.drawn import NetBuilder


def _add_state(net: NetBuilder, like: int, shape=None, *, random: bool = True) -> int:
    """Adds a state with a tensor's quantisation. Its first value is random, or the zero point."""
    tensor = net.tensors[like]
    shape = tensor.shape if shape is None else shape
    zero = tensor.quant.zero_point
    value = net.rng.integers(-128, 128, shape) if random else np.full(shape, zero)
    return net.state(shape, tensor.quant, value.astype(np.int8))


def ring(net: NetBuilder, x: int, rows: int, *, axis: int = 1, random: bool = False) -> int:
    """A ring buffer: drops the state's first elements along an axis, appends `x`. Returns the new state."""
    shape = list(net.shape(x))
    new = shape[axis]
    shape[axis] = rows
    old = _add_state(net, x, tuple(shape), random=random)
    begin = tuple(new if d == axis else 0 for d in range(len(shape)))
    extent = tuple(n - b for n, b in zip(shape, begin, strict=True))
    tail = net.move(OpKind.STRIDED_SLICE, old, extent, SliceAttrs(begin, (1,) * len(shape), extent))
    new_state = net.concat([tail, x], axis)
    net.keep(old, new_state)
    return new_state


def window(net: NetBuilder, x: int, rows: int) -> int:
    """A window as in kws_streaming: joins the state and `x`, and keeps the end of both as new state."""
    new, channels = net.shape(x)[1], net.shape(x)[2:]
    old = _add_state(net, x, (1, rows - new, *channels))
    joined = net.concat([old, x], 1)
    shape = net.shape(old)
    begin = (0, new, *(0 for _ in channels))
    net.keep(old, net.move(OpKind.STRIDED_SLICE, joined, shape, SliceAttrs(begin, (1,) * len(shape), shape)))
    return joined


def windows(seed: int) -> Graph:
    """A keyword spotter of such layers. The last one takes several rows at a time."""
    net = NetBuilder(seed, "windows")
    x = net.input((1, 2, 6, 1))
    x = net.conv(window(net, x, 6), 5, kernel=(5, 3), stride=(1, 2))
    x = net.conv(window(net, x, 5), 4, kernel=(3, 2), stride=(2, 1))
    return net.graph([net.dense(net.flatten(window(net, x, 7)), 3)])


def keyword_stream(seed: int) -> Graph:
    """A streaming keyword spotter, one row per invoke: each layer keeps the rows of its window."""
    net = NetBuilder(seed, "stream")
    x = net.input((1, 1, 8, 1))
    x = net.conv(ring(net, x, 5), 6, kernel=(5, 3), stride=(1, 2))
    x = net.conv(ring(net, x, 4, random=True), 6, kernel=(4, 3), depth_multiplier=1)
    x = net.conv(x, 8)
    x = net.mean(ring(net, x, 6))
    return net.graph([net.softmax(net.dense(x, 4))])


def by_rows(graph: Graph, zero: int) -> Graph:
    """Changes a network to take one row of its image per invoke. Earlier rows are `zero` at first."""
    image = graph.inputs[0]
    tensor, count = graph.tensors[image], len(graph.tensors)
    shape = tensor.shape
    tail = (1, shape[1] - 1, *shape[2:])
    tensors = [
        replace(tensor, name="row", shape=(1, 1, *shape[2:]), source=None),
        replace(tensor, name="rows before", source=None),
        replace(tensor, name="tail", shape=tail, source=None),
    ]
    initial = np.full(shape, zero, np.int8)
    ops = (
        Op(OpKind.STRIDED_SLICE, (count + 1,), (count + 2,), SliceAttrs((0, 1, 0, 0), (1, 1, 1, 1), tail)),
        Op(OpKind.CONCATENATION, (count + 2, count), (image,), AxisAttrs(1)),
        *graph.ops,
    )
    states = [State(count + 1, image, initial, "rows")]
    return graph_of(graph.name, (*graph.tensors, *tensors), ops, [count], graph.outputs, states)


def long_ring(seed: int) -> Graph:
    """A ring of many rows, several per invoke, and a chain of convolutions that streams over it."""
    net = NetBuilder(seed, "long")
    x = net.input((1, 3, 10, 2))
    x = ring(net, x, 20)
    x = net.conv(x, 8, kernel=(3, 3), same=True)
    x = net.conv(x, 8, kernel=(3, 3), same=True, depth_multiplier=1)
    x = net.conv(x, 6, kernel=(3, 3), stride=(2, 2), same=True)
    return net.graph([net.dense(net.mean(x), 3)])


def average(seed: int) -> Graph:
    """A moving average: the new value is computed from the old one and is an output."""
    net = NetBuilder(seed, "average")
    x = net.input((1, 4, 5, 3))
    old = _add_state(net, x)
    weighted = net.elementwise(OpKind.MUL, old, net.constant((1, 1, 1, 3)))
    new = net.requantize(net.elementwise(OpKind.ADD, weighted, x))
    requantise_as(net, new, old)
    net.keep(old, new)
    return net.graph([new, net.conv(new, 2)])


def feedback(seed: int) -> Graph:
    """The output reads the old state after the new one is computed, so the state needs a copy."""
    net = NetBuilder(seed, "feedback")
    x = net.input((1, 3, 4, 4))
    old = _add_state(net, x)
    new = net.conv(net.elementwise(OpKind.ADD, x, old), 4)
    requantise_as(net, new, old)
    net.keep(old, new)
    return net.graph([net.elementwise(OpKind.SUB, net.conv(new, 4), old)])


def before(seed: int) -> Graph:
    """Outputs are a state before the invoke and after it."""
    net = NetBuilder(seed, "before")
    x = net.input((1, 3, 4))
    old, older = _add_state(net, x), _add_state(net, x)
    net.keep(old, x)
    net.keep(older, old)
    return net.graph([net.move(OpKind.RESHAPE, old, (1, 12)), older, net.unary(OpKind.RELU, x)])


def delays(seed: int) -> Graph:
    """Delay lines: a state takes another's old value; two are swapped; one is only read."""
    net = NetBuilder(seed, "delays")
    x = net.input((1, 2, 3, 4))
    first, second, left, right, fixed = (_add_state(net, x) for _ in range(5))
    net.keep(first, x)
    net.keep(second, first)
    net.keep(left, right)
    net.keep(right, left)
    y = net.elementwise(OpKind.ADD, net.elementwise(OpKind.ADD, first, second), fixed)
    z = net.elementwise(OpKind.SUB, net.elementwise(OpKind.ADD, left, x), net.conv(right, 4))
    return net.graph([y, z])


def reshaped(seed: int) -> Graph:
    """States behind reshapes or a transpose, one that nothing assigns, rings along rows and columns."""
    net = NetBuilder(seed, "reshaped")
    x = net.input((1, 2, 6))
    old = _add_state(net, x, (1, 6, 6))
    flat = net.move(OpKind.RESHAPE, old, (1, 6, 6, 1))
    new = net.conv(flat, 1, kernel=(3, 3), same=True)
    requantise_as(net, new, old)
    net.keep(old, net.move(OpKind.RESHAPE, new, (1, 6, 6)))
    rows = ring(net, x, 5, random=True)
    wide = ring(net, net.move(OpKind.RESHAPE, x, (1, 3, 4)), 7, axis=2, random=True)
    turned = _add_state(net, x)  # read through a TRANSPOSE alone
    perm = TransposeAttrs((0, 2, 1))
    net.keep(turned, net.unary(OpKind.RELU, x))
    requantise_as(net, net.states[-1].after, turned)
    swapped = net.move(OpKind.TRANSPOSE, turned, (1, 6, 2), perm)
    once = _add_state(net, x)
    y = net.elementwise(OpKind.ADD, once, x)
    return net.graph(
        [new, net.dense(net.flatten(rows), 3), net.dense(net.flatten(wide), 2), net.dense(swapped, 3), y]
    )


MAKERS = (keyword_stream, windows, long_ring, average, feedback, before, delays, reshaped)

_HANDLE = {"shape": (), "dtype": "resource", "scale": None}


def handle_op(name: str, tensor: int) -> FileOperator:
    return FileOperator("VAR_HANDLE", [], [tensor], "VarHandleOptions", {"Container": "", "SharedName": name})


def assign_op(handle: int, tensor: int) -> FileOperator:
    return FileOperator("ASSIGN_VARIABLE", [handle, tensor], [], "AssignVariableOptions")


ONCE = FileOperator("CALL_ONCE", [], [], "CallOnceOptions", {"InitSubgraphIndex": 1})
Part = tuple[list[FileTensor], list[FileOperator]]


def initialising(values: dict[str, FileTensor]) -> Part:
    """Returns the subgraph that CALL_ONCE runs: it assigns constants to variables."""
    tensors: list[FileTensor] = []
    ops: list[FileOperator] = []
    for name, value in values.items():
        tensors += [FileTensor(**_HANDLE), value]
        ops += [handle_op(name, len(tensors) - 2), assign_op(len(tensors) - 2, len(tensors) - 1)]
    return tensors, ops


def ring_tensors(dtype: str = "int8", scale: float | None = 0.5, zero: int = 3) -> list[FileTensor]:
    """Returns tensors of a ring buffer: input, handle, state, begin, end, strides, kept rows, new state."""
    kind = {"dtype": dtype, "scale": scale, "zero": zero}
    return [
        FileTensor((1, 1, 3), **kind),
        FileTensor(**_HANDLE),
        FileTensor((1, 4, 3), **kind),
        constant([0, 1, 0]),
        constant([0, 4, 0]),
        constant([1, 1, 1]),
        FileTensor((1, 3, 3), **kind),
        FileTensor((1, 4, 3), **kind),
    ]


RING_OPS = (
    ONCE,
    handle_op("layer/ring", 1),
    FileOperator("READ_VARIABLE", [1], [2], "ReadVariableOptions"),
    FileOperator("STRIDED_SLICE", [2, 3, 4, 5], [6], "StridedSliceOptions", {"BeginMask": 5, "EndMask": 7}),
    FileOperator("CONCATENATION", [6, 0], [7], "ConcatenationOptions", {"Axis": 1}),
    assign_op(1, 7),
)


def first_value(value: np.ndarray, scale: float | None = 0.5, zero: int = 3) -> FileTensor:
    return FileTensor(value.shape, str(value.dtype), value, scale, zero)


def ring_file(value: np.ndarray | None = None) -> bytes:
    """A ring buffer as TFLite's converter writes it; its new state is the output. `value`: int8 or int16."""
    first = np.arange(12, dtype=np.int8).reshape(1, 4, 3) if value is None else value
    kind = str(first.dtype), 0.5, 3 if first.dtype == np.int8 else 0
    other = initialising({"layer/ring": first_value(first, *kind[1:])})
    return write(ring_tensors(*kind), list(RING_OPS), [0], [7], others=[other])


def wide_ring_file() -> bytes:
    return ring_file(np.arange(-6, 6, dtype=np.int16).reshape(1, 4, 3) * 3000)
