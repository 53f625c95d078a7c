"""Writes one operator's C for its whole output: the geometry, the views and the kernel calls of one step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from buildtool.base.errors import UnsupportedError
from buildtool.emit import signal
from buildtool.emit.arguments import (
    Fields,
    array,
    copy_geometry,
    geometry,
    initialiser,
    invocation,
    number_table,
    operand_view,
    recurrent_geometry,
    repeating_view,
    view_arguments,
    whole_view,
)
from buildtool.emit.ctext import block, plus
from buildtool.emit.moving import moving
from buildtool.emit.network import Network
from buildtool.emit.windowed import addition
from buildtool.graph.ops import DEFS
from buildtool.graph.ops.signal import OWNERS
from buildtool.graph.ops.types import CallForm
from buildtool.graph.partviews import parts
from buildtool.graph.strided import MAX_RANK, Copy, copies, matmul, reduction
from buildtool.graph.types import (
    AxisAttrs,
    DetectionAttrs,
    DType,
    GatherAttrs,
    Graph,
    Op,
    OpKind,
    PadAttrs,
    PadMode,
    Tensor,
    WidenedAttrs,
)
from buildtool.plan.types import Step
from buildtool.target.catalogue import operands
from buildtool.target.types import Argument, KernelVariant, Role

_GEOMETRY = {Argument.GEOMETRY: "&geometry", Argument.CHANNEL: "0"}
_WINDOW = {Argument.WINDOW: "&window"}
# (a tensor's address, bytes of one batch element) -> the address of the current batch element
At = Callable[[str, int], str]


@dataclass(frozen=True)
class Call:
    """One step, which computes a whole operator, with the C expressions that its calls need."""

    network: Network
    kernel: KernelVariant
    step: Step

    @property
    def graph(self) -> Graph:
        """The network's graph."""
        return self.network.graph

    @cached_property
    def op(self) -> Op:
        """The operator, with the inputs that its kernel sees (`Op.as_seen`)."""
        return self.graph.ops[self.step.op].as_seen

    def tensor(self, index: int) -> str:
        """Returns C for the address of a tensor's first byte."""
        return self.network.address(index, self.step.op)

    def input(self, n: int = 0) -> Tensor:
        """Returns the operator's n-th input."""
        return self.graph.tensors[self.op.inputs[n]]

    def output(self) -> Tensor:
        """Returns the operator's first output."""
        return self.graph.tensors[self.op.outputs[0]]

    def call_text(self, arguments: Mapping[Argument, str]) -> str:
        """Returns the call of the kernel with `arguments`, and with those that are the same in all its
        calls.
        """
        return invocation(self.kernel, {**self.served(), **arguments})

    def served(self) -> dict[Argument, str]:
        """Returns C for the arguments that are the same in all calls of the kernel."""
        return self.network.common_arguments(self.step.op) | _GEOMETRY

    def addresses(self) -> dict[Argument, str]:
        """Returns C for the arguments of a kernel that takes addresses of tensors: those of the first input
        and output.
        """
        source, sink = self.tensor(self.op.inputs[0]), self.tensor(self.op.outputs[0])
        return {Argument.IN_DATA: source, Argument.OUT_DATA: sink}


def _loop_over_batch(batch: int, body: Callable[[At], list[str]]) -> list[str]:
    """Returns the lines of `body`, in a loop over the batch if it has several elements.

    `body` gets a function that makes C for the address of the current element.
    """
    if batch == 1:
        return body(lambda address, _bytes: address)
    inner = body(lambda address, image: f"{address} + n * {image}" if image else address)
    return block(f"for (int32_t n = 0; n < {batch}; n++)", inner)


def _window(step: Step) -> str:
    return f"static const nn_window window = {{{step.y0}, {step.y1}, {step.x0}, {step.x1}}};"


def _image(call: Call, name: str, tensor: int, at: At) -> list[str]:
    """Returns lines that declare the view `name` of one batch element of a tensor. `at` makes C for its
    address.
    """

    def whole(t: int) -> str:
        of = call.graph.tensors[t]
        return whole_view(at(call.tensor(t), _image_bytes(of)), *of.nhwc[1:], of.dtype)

    return operand_view(call.graph, tensor, name, whole)


def _image_bytes(tensor: Tensor) -> int:
    return tensor.nhwc[1] * tensor.row_bytes


def _one_to_one(call: Call) -> list[str]:
    """Returns the lines for a kernel with one input view and one output view."""
    (source,) = operands(call.kernel, call.graph, call.op)

    def body(at: At) -> list[str]:
        return [
            *_image(call, "in", source, at),
            *_image(call, "out", call.op.outputs[0], at),
            call.call_text({**view_arguments(["in"], "out"), **_WINDOW}),
        ]

    shape = geometry(call.graph, call.op, "geometry") if Argument.GEOMETRY in call.kernel.call else []
    return [*shape, _window(call.step), *_loop_over_batch(call.graph.tensors[source].nhwc[0], body)]


def _fully_connected(call: Call) -> list[str]:
    """Returns the lines for a dense layer: one call for the whole output, which is seen as one row of pixels
    because it may have any shape.
    """
    inputs = call.graph.tensors[call.op.inputs[1]].shape[1]
    pixels = call.input().elements // inputs

    def row(tensor: int) -> str:
        of = call.graph.tensors[tensor]
        return whole_view(call.tensor(tensor), 1, pixels, of.elements // pixels, of.dtype)

    return [
        _window(replace(call.step, y0=0, y1=1, x0=0, x1=pixels)),
        *operand_view(call.graph, call.op.inputs[0], "in", row),
        *operand_view(call.graph, call.op.outputs[0], "out", row),
        call.call_text({**view_arguments(["in"], "out"), **_WINDOW}),
    ]


def _several(call: Call) -> list[str]:
    """Returns the lines for operators whose operands broadcast over the output: ADD, PRELU, SELECT_V2 etc.

    Some of their kernels have only one operand: they look up each of its values in a table.
    """
    if Argument.IN in call.kernel.call:
        return _one_to_one(call)
    batch, oh, ow, _ = call.output().nhwc
    attrs, channel = call.op.attrs, dict[Argument, str]()
    widened = isinstance(attrs, WidenedAttrs) and Argument.IN3 not in call.kernel.call
    if isinstance(attrs, WidenedAttrs):
        channel = {Argument.CHANNEL: str(attrs.before)}
    names = [f"in{n + 1}" for n in range(len(operands(call.kernel, call.graph, call.op)))]
    names = ["in1", "in2", "filling"] if widened else names

    def body(at: At) -> list[str]:
        lines = []
        for n, name in enumerate(names):
            tensor = call.input(n)
            operand_batch, h, w, _ = tensor.nhwc
            if operand_batch not in (1, batch) or (
                operand_batch == batch and batch > 1 and len(tensor.shape) > 4
            ):
                _check_leading(call, tensor)

            def whole(t: int, h: int = h, w: int = w, each: bool = operand_batch > 1) -> str:
                of = call.graph.tensors[t]
                address = at(call.tensor(t), _image_bytes(of) if each else 0)
                if (h, w) == (oh, ow):
                    return whole_view(address, oh, ow, of.nhwc[3], of.dtype)
                return repeating_view(address, (h, w, of.nhwc[3]), oh, ow, of.dtype)

            lines += operand_view(call.graph, call.op.inputs[n], name, whole)
        lines += _image(call, "out", call.op.outputs[0], at)
        if widened:
            return [*lines, *addition(call.graph, call.op, call.kernel, [*names, "out"], call.served())]
        return [*lines, call.call_text({**view_arguments(names, "out"), **_WINDOW, **channel})]

    return [_window(call.step), *_loop_over_batch(batch, body)]


def _check_leading(call: Call, tensor: Tensor) -> None:
    """Raises UnsupportedError unless an operand's leading dimensions are those of the output, or all 1."""
    shape, rank = call.output().shape, len(call.output().shape)
    leading = ((1,) * (rank - len(tensor.shape)) + tensor.shape)[: rank - 3]
    if leading != shape[: rank - 3] and any(n != 1 for n in leading):
        raise UnsupportedError(
            f"broadcasting {tensor.shape} over {shape} in some of the leading dimensions only",
            operator=call.op.place,
            hint="reshape the operand so that its leading dimensions are all 1 or all equal to the output's",
        )


def _copy_lines(call: Call) -> list[str]:
    """Returns the lines for an operator that copies boxes (parts of tensors), such as a concatenation.

    A box that already lies in its place is not copied.
    """
    lines = []
    for n, copy in enumerate(copies(call.graph, call.op)):
        read = call.op.inputs[n if call.op.kind in (OpKind.CONCATENATION, OpKind.SHIFT) else 0]
        part = parts(call.graph).get(read)
        read = read if part is None else part.whole
        written = call.op.outputs[n if call.op.kind == OpKind.SPLIT else 0]
        source, sink = call.tensor(read), call.tensor(written)
        if len(copy.size) > MAX_RANK:
            raise UnsupportedError(
                f"{len(copy.size)} dimensions that cannot be merged; at most {MAX_RANK} are supported",
                operator=call.op.place,
            )
        if _is_in_place(call.network, read, written, copy):
            continue
        from_, to = plus(source, copy.in_offset), plus(sink, copy.out_offset)
        arguments = {Argument.IN_DATA: from_, Argument.OUT_DATA: to}
        lines += block("", [*copy_geometry(copy), call.call_text(arguments)])
    return lines or [f"(void)({call.tensor(call.op.outputs[0])}); /* all parts lie in their places */"]


def _is_in_place(network: Network, read: int, written: int, copy: Copy) -> bool:
    """Whether a copy would write the bytes that it reads, because the part already lies in its place in a
    concatenation. `read` and `written` are the tensors.
    """
    holders = network.holders
    if read not in holders or written not in holders or copy.in_stride != copy.out_stride:
        return False
    return holders[read].offset + copy.in_offset == holders[written].offset + copy.out_offset


# Bytes of a line from which on the filling between lines is written alone, not over the whole output.
_LONG_LINE = 128


def _pad(call: Call) -> list[str]:
    result = call.tensor(call.op.outputs[0])
    routine, constants = (
        call.network.target.routine(Role.FILL, call.kernel),
        call.network.constants(call.step.op),
    )

    def fill(place: str, size: int) -> list[str]:
        arguments = {Argument.CONSTANTS: constants, Argument.OUT_DATA: place, Argument.BYTES: str(size)}
        return [invocation(routine, arguments)] if size else []

    size, (copy, *others) = call.output().size, copies(call.graph, call.op)
    if others or len(copy.size) != 2 or copy.out_stride[1] != 1 or copy.size[1] < _LONG_LINE:
        return [*fill(result, size), *_copy_lines(call)]
    (lines, count), stride = copy.size, copy.out_stride[0]
    end = copy.out_offset + (lines - 1) * stride + count
    between = fill(f"{plus(result, copy.out_offset + count)} + y * {stride}", stride - count)
    return [
        *fill(result, copy.out_offset),
        *(block(f"for (int32_t y = 0; y < {lines - 1}; y++)", between) if between and lines > 1 else []),
        *fill(plus(result, end), size - end),
        *_copy_lines(call),
    ]


def _whole(call: Call, struct: str, fields: Fields) -> list[str]:
    """Returns the lines for a kernel that takes whole tensors. `struct` is the type of its geometry, with
    `fields`.
    """
    return [*initialiser(struct, "geometry", fields), call.call_text(call.addresses())]


def _mirror_pad(call: Call) -> list[str]:
    attrs = call.op.attrs
    assert isinstance(attrs, PadAttrs)
    size = call.input().dtype.size
    shape, paddings = call.input().shape, attrs.paddings
    if size > 1:  # the kernel copies bytes
        shape, paddings = (*shape, size), (*paddings, (0, 0))
    if len(shape) > MAX_RANK:
        text = f"{len(attrs.paddings)} dimensions of {call.input().dtype}"
        raise UnsupportedError(text, operator=call.op.place)
    before, after = zip(*paddings, strict=True)
    fields = [
        ("rank", len(paddings)),
        ("in_size", array(shape)),
        ("before", array(before)),
        ("after", array(after)),
        ("symmetric", int(attrs.mode == PadMode.SYMMETRIC)),
    ]
    return _whole(call, "nn_mirror_geometry", fields)


def _mean(call: Call) -> list[str]:
    walk = reduction(call.graph, call.op)
    if max(len(walk.outer), len(walk.inner)) > MAX_RANK:
        text = f"a reduction over more than {MAX_RANK} separate dimensions"
        raise UnsupportedError(text, operator=call.op.place)
    fields: list[tuple[str, object]] = [("outer_rank", len(walk.outer)), ("inner_rank", len(walk.inner))]
    for side, dimensions in (("outer", walk.outer), ("inner", walk.inner)):
        fields.append((side, array([size for size, _ in dimensions])))
        fields.append((f"{side}_stride", array([stride for _, stride in dimensions])))
    return _whole(call, "nn_reduce_geometry", fields)


def _recurrent(call: Call) -> list[str]:
    """Returns the lines for SVDF and UNIDIRECTIONAL_SEQUENCE_LSTM, which compute the whole output and update
    their state.
    """
    op = call.op
    pairs = sorted(DEFS[op.kind].state.items())
    states = [call.tensor(op.inputs[operand]) for operand, _ in pairs]
    if states != [call.tensor(op.outputs[output]) for _, output in pairs]:
        raise UnsupportedError("the operator's old state is still read after it has run", operator=op.place)
    arguments = call.addresses() | dict(zip((Argument.STATE, Argument.STATE2), states, strict=False))
    return [*recurrent_geometry(call.graph, op, "geometry"), call.call_text(arguments)]


def _gather(call: Call) -> list[str]:
    """Returns the lines for GATHER. Constant indices are a table in the code, because they belong to the
    topology.
    """
    attrs, shape = call.op.attrs, call.input().shape
    assert isinstance(attrs, GatherAttrs)
    if len(call.op.inputs) == 2:
        return _look_up(call)
    fields = [
        ("outer", math.prod(shape[: attrs.axis])),
        ("size", shape[attrs.axis]),
        ("count", len(attrs.indices)),
        ("inner", math.prod(shape[attrs.axis + 1 :]) * call.input().dtype.size),
        ("indices", "indices"),
    ]
    return [*number_table("int32_t", "indices", attrs.indices), *_whole(call, "nn_gather_geometry", fields)]


def _look_up(call: Call) -> list[str]:
    """Returns the lines for a GATHER whose indices are computed: one call for each index."""
    rows, inner = call.input().shape[0], math.prod(call.input().shape[1:]) * call.input().dtype.size
    table, out = call.addresses().values()
    places = {**call.addresses(), Argument.OUT_DATA: f"out + i * {inner}", Argument.IN_DATA: "table"}
    fields = [("outer", 1), ("size", rows), ("count", 1), ("inner", inner), ("indices", "&place")]
    body = [
        f"const int32_t place = nn_most(0, nn_least({rows - 1}, indices[i]));",
        *(line.removeprefix("static ") for line in initialiser("nn_gather_geometry", "geometry", fields)),
        call.call_text(places),
    ]
    return [
        f"const int32_t *const indices = (const int32_t *)(const void *)({call.tensor(call.op.inputs[1])});",
        f"const int8_t *const table = {table};",
        f"int8_t *const out = {out};",
        *block(f"for (int32_t i = 0; i < {call.input(1).elements}; i++)", body),
    ]


def _arg(call: Call) -> list[str]:
    """Returns the lines for ARG_MIN and ARG_MAX, which find the positions of extreme values along one
    axis.
    """
    attrs, shape = call.op.attrs, call.input().shape
    assert isinstance(attrs, AxisAttrs)
    fields = [
        ("outer", math.prod(shape[: attrs.axis])),
        ("count", shape[attrs.axis]),
        ("inner", math.prod(shape[attrs.axis + 1 :])),
        ("flip", -1 if call.op.kind is OpKind.ARG_MIN else 0),
        ("wide", int(call.output().dtype is DType.INT64)),
    ]
    return _whole(call, "nn_arg_geometry", fields)


def _matmul(call: Call) -> list[str]:
    """Returns the lines for a matrix product of whole operands."""
    walk = matmul(call.graph, call.op)
    fields = [
        ("rank", len(walk.size)),
        ("size", array(walk.size)),
        ("x_stride", array(walk.x_stride)),
        ("y_stride", array(walk.y_stride)),
        *zip(("rows", "inner", "columns", "x_row", "x_step", "y_step", "y_column"), walk.matrix, strict=True),
    ]
    lines = initialiser("nn_matmul_geometry", "geometry", fields)
    for name, t in zip(("in1", "in2", "out"), (*call.op.inputs, call.op.outputs[0]), strict=True):
        of = call.graph.tensors[t]
        view = whole_view(call.tensor(t), 1, 1, of.elements, of.dtype)
        lines.append(f"const nn_view {name} = {view};")
    return [*lines, call.call_text(view_arguments(["in1", "in2"], "out"))]


def _detections(call: Call) -> list[str]:
    """Returns the lines for DETECTION_POSTPROCESS, which fills several whole outputs."""
    attrs, scores = call.op.attrs, call.input(1)
    assert isinstance(attrs, DetectionAttrs)
    fields = [
        ("boxes", scores.shape[1]),
        ("box_size", call.input().shape[2]),
        ("classes", attrs.classes),
        ("background", scores.shape[2] - attrs.classes),
        *(
            (name, int(getattr(attrs, name)))
            for name in ("detections", "classes_each", "per_class", "regular")
        ),
    ]
    lines = initialiser("nn_detection_geometry", "geometry", fields)
    for name, t in zip(("in1", "in2"), call.op.inputs, strict=False):
        view = whole_view(call.tensor(t), 1, *call.graph.tensors[t].nhwc[2:], DType.INT8)
        lines.append(f"const nn_view {name} = {view};")
    addresses = ", ".join(map(call.tensor, call.op.outputs))
    lines.append(f"int8_t *const outputs[] = {{{addresses}}};")
    return [*lines, call.call_text({**view_arguments(["in1", "in2"], "out"), Argument.OUTPUTS: "outputs"})]


def _moving(call: Call) -> list[str]:
    """Returns the lines for operators that only networks on a moving window have. They take whole tensors and
    states.
    """
    lines, arguments = moving(call.graph, call.op, call.tensor)
    return [*lines, call.call_text(arguments)]


def _signal(call: Call) -> list[str]:
    """Returns the lines for an operator of the signal library. The new value of its state is its last
    output.
    """
    op, arguments = call.op, call.addresses()
    lines = initialiser(*signal.geometry(call.graph, op))
    results = list(op.outputs)
    if op.kind in OWNERS:
        after = results.pop()
        arguments[Argument.STATE] = call.tensor(op.inputs[1])
        if arguments[Argument.STATE] != call.tensor(after):
            raise UnsupportedError(
                "the operator's old state is still read after it has run", operator=op.place
            )
    if Argument.OUTPUTS in call.kernel.call:
        lines.append(f"int8_t *const outputs[] = {{{', '.join(map(call.tensor, results))}}};")
        arguments[Argument.OUTPUTS] = "outputs"
    for name, t in zip(("in1", "in2"), op.inputs if Argument.IN2 in call.kernel.call else (), strict=False):
        tensor = call.graph.tensors[t]
        lines.append(
            f"const nn_view {name} = {whole_view(call.tensor(t), 1, 1, tensor.elements, tensor.dtype)};"
        )
    return [*lines, call.call_text({**arguments, **view_arguments(["in1", "in2"], "out")})]


_WRITERS: dict[CallForm, Callable[[Call], list[str]]] = {
    CallForm.ONE_TO_ONE: _one_to_one,
    CallForm.ROWS: _fully_connected,
    CallForm.SEVERAL: _several,
    CallForm.COPIES: _copy_lines,
    CallForm.FILLED: _pad,
    CallForm.MIRRORED: _mirror_pad,
    CallForm.REDUCED: _mean,
    CallForm.GATHERED: _gather,
    CallForm.ARG: _arg,
    CallForm.MATRICES: _matmul,
    CallForm.DETECTIONS: _detections,
    CallForm.RECURRENT: _recurrent,
    CallForm.MOVING: _moving,
    CallForm.SIGNAL: _signal,
}


def lines(call: Call) -> list[str]:
    """Returns the C statements for one step of one operator, without indentation."""
    form = DEFS[call.op.kind].call
    if form is None:
        raise UnsupportedError(f"buildtool cannot emit C for {call.op.kind}", operator=call.op.place)
    return _WRITERS[form](call)
