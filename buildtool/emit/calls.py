"""One operator's C: the geometry, the views and the kernel calls of one step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from buildtool.emit.geometry import geometry, initialiser
from buildtool.emit.invocation import invocation, view_arguments
from buildtool.emit.strided import MAX_RANK, copies, reduction
from buildtool.errors import UnsupportedError
from buildtool.graph.types import (
    Graph,
    Op,
    OpKind,
    PadAttrs,
    PadMode,
    Tensor,
)
from buildtool.plan.types import Step
from buildtool.target.types import Argument, KernelVariant, Role, Target


@dataclass(frozen=True)
class Call:
    """What an operator's code may refer to, as C expressions.

    `tensor` gives the address of a tensor's first byte, `constants` that of the packed constants,
    `scratch` that of the scratch buffer ("NULL" without one), of which there are `scratch_bytes`.
    """

    graph: Graph
    op: Op
    kernel: KernelVariant
    target: Target
    tensor: Callable[[int], str]
    constants: str
    scratch: str
    scratch_bytes: str
    step: Step

    def input(self, n: int = 0) -> Tensor:
        """The operator's n-th input."""
        return self.graph.tensors[self.op.inputs[n]]

    def output(self, n: int = 0) -> Tensor:
        """The operator's n-th output."""
        return self.graph.tensors[self.op.outputs[n]]

    def invoked(self, arguments: Mapping[Argument, str]) -> str:
        """The kernel's call: `arguments`, and those that every call of the kernel has."""
        own = {
            Argument.CONSTANTS: self.constants,
            Argument.SCRATCH: self.scratch,
            Argument.SCRATCH_BYTES: self.scratch_bytes,
        }
        return invocation(self.kernel, {**own, **_GEOMETRY, **arguments})

    def addresses(self, source: str, sink: str) -> dict[Argument, str]:
        """The arguments of a kernel that works on whole tensors in memory."""
        return {Argument.IN_DATA: source, Argument.OUT_DATA: sink}


_GEOMETRY = {Argument.GEOMETRY: "&geometry"}
_WINDOW = {Argument.WINDOW: "&window"}


def _array(values: Sequence[int]) -> str:
    return "{" + ", ".join(str(v) for v in (*values, *([0] * (MAX_RANK - len(values))))) + "}"


def _batched(call: Call, batch: int, body: Callable[[Callable[[str, int], str]], list[str]]) -> list[str]:
    """The body once, or in a loop over the images of a batch.

    `body` gets a function from an address and the bytes of one image to the address of the
    current image.
    """
    if batch == 1:
        return body(lambda address, _bytes: address)
    inner = body(lambda address, image: f"{address} + n * {image}" if image else address)
    return [f"for (int32_t n = 0; n < {batch}; n++) {{", *("    " + line for line in inner), "}"]


def _window(step: Step) -> str:
    return f"static const nn_window window = {{{step.y0}, {step.y1}, {step.x0}, {step.x1}}};"


def _view(name: str, address: str, height: int, width: int, channels: int) -> str:
    return f"const nn_view {name} = nn_whole({address}, {height}, {width}, {channels});"


def _image_bytes(tensor: Tensor) -> int:
    _, h, w, c = tensor.nhwc
    return h * w * c * tensor.dtype.size


def _one_to_one(call: Call) -> list[str]:
    """A kernel from one view to another."""
    batch, ih, iw, ic = call.input().nhwc
    _, oh, ow, oc = call.output().nhwc

    def body(at: Callable[[str, int], str]) -> list[str]:
        source = at(call.tensor(call.op.inputs[0]), _image_bytes(call.input()))
        sink = at(call.tensor(call.op.outputs[0]), _image_bytes(call.output()))
        return [
            _view("in", source, ih, iw, ic),
            _view("out", sink, oh, ow, oc),
            call.invoked({**view_arguments(["in"], "out"), **_WINDOW}),
        ]

    shape = geometry(call.graph, call.op, "geometry") if Argument.GEOMETRY in call.kernel.call else []
    return [*shape, _window(call.step), *_batched(call, batch, body)]


def _fully_connected(call: Call) -> list[str]:
    """All of the output at once, as one row of pixels: its shape need not be that of an image."""
    outputs, inputs = call.graph.tensors[call.op.inputs[1]].shape
    pixels = call.input().elements // inputs
    return [
        _window(replace(call.step, y0=0, y1=1, x0=0, x1=pixels)),
        _view("in", call.tensor(call.op.inputs[0]), 1, pixels, inputs),
        _view("out", call.tensor(call.op.outputs[0]), 1, pixels, outputs),
        call.invoked({**view_arguments(["in"], "out"), **_WINDOW}),
    ]


def _binary(call: Call) -> list[str]:
    """ADD, SUB, MUL, PRELU: two operands that broadcast over the output."""
    batch, oh, ow, oc = call.output().nhwc

    def body(at: Callable[[str, int], str]) -> list[str]:
        lines = []
        for n, name in enumerate(("in1", "in2")):
            tensor = call.input(n)
            own_batch, h, w, c = tensor.nhwc
            if own_batch not in (1, batch) or (own_batch == batch and batch > 1 and len(tensor.shape) > 4):
                _check_leading(call, tensor)
            image = _image_bytes(tensor) if own_batch > 1 else 0
            address = at(call.tensor(call.op.inputs[n]), image)
            if (h, w) == (oh, ow):
                lines.append(_view(name, address, oh, ow, c))
            else:
                lines.append(f"const nn_view {name} = nn_repeated({address}, {h}, {w}, {c}, {oh}, {ow});")
        sink = at(call.tensor(call.op.outputs[0]), _image_bytes(call.output()))
        lines.append(_view("out", sink, oh, ow, oc))
        lines.append(call.invoked({**view_arguments(["in1", "in2"], "out"), **_WINDOW}))
        return lines

    return [_window(call.step), *_batched(call, batch, body)]


def _check_leading(call: Call, tensor: Tensor) -> None:
    """Leading dimensions either are all those of the output, or all 1."""
    rank = len(call.output().shape)
    leading = ((1,) * (rank - len(tensor.shape)) + tensor.shape)[: rank - 3]
    if leading != call.output().shape[: rank - 3] and any(n != 1 for n in leading):
        raise UnsupportedError(
            f"broadcasting {tensor.shape} over {call.output().shape} in some of the leading dimensions only",
            operator=call.op.place,
            hint="reshape the operand so that its leading dimensions are all 1 or all equal to the output's",
        )


def _copy_lines(call: Call) -> list[str]:
    lines = []
    for n, copy in enumerate(copies(call.graph, call.op)):
        split = call.op.kind == OpKind.SPLIT
        concat = call.op.kind == OpKind.CONCATENATION
        source = call.tensor(call.op.inputs[n if concat else 0])
        sink = call.tensor(call.op.outputs[n if split else 0])
        fields = [
            ("rank", len(copy.size)),
            ("size", _array(copy.size)),
            ("in_stride", _array(copy.in_stride)),
            ("out_stride", _array(copy.out_stride)),
        ]
        if len(copy.size) > MAX_RANK:
            raise UnsupportedError(
                f"{len(copy.size)} dimensions that cannot be merged; at most {MAX_RANK} are supported",
                operator=call.op.place,
            )
        addresses = call.addresses(_plus(source, copy.in_offset), _plus(sink, copy.out_offset))
        lines += [
            "{",
            *("    " + line for line in initialiser("nn_copy_geometry", "geometry", fields)),
            f"    {call.invoked(addresses)}",
            "}",
        ]
    return lines


def _plus(address: str, offset: int) -> str:
    return f"{address} + {offset}" if offset else address


def _pad(call: Call) -> list[str]:
    filled = {
        Argument.CONSTANTS: call.constants,
        Argument.OUT_DATA: call.tensor(call.op.outputs[0]),
        Argument.BYTES: str(call.output().size),
    }
    fill = call.target.routine(Role.FILL, call.kernel)
    return [invocation(fill, filled), *_copy_lines(call)]


def _mirror_pad(call: Call) -> list[str]:
    attrs = call.op.attrs
    assert isinstance(attrs, PadAttrs)
    fields = [
        ("rank", len(attrs.paddings)),
        ("in_size", _array(call.input().shape)),
        ("before", _array([before for before, _ in attrs.paddings])),
        ("after", _array([after for _, after in attrs.paddings])),
        ("symmetric", int(attrs.mode == PadMode.SYMMETRIC)),
    ]
    source, sink = call.tensor(call.op.inputs[0]), call.tensor(call.op.outputs[0])
    return [
        *initialiser("nn_mirror_geometry", "geometry", fields),
        call.invoked(call.addresses(source, sink)),
    ]


def _mean(call: Call) -> list[str]:
    walk = reduction(call.graph, call.op)
    if max(len(walk.outer), len(walk.inner)) > MAX_RANK:
        raise UnsupportedError(
            f"a mean over more than {MAX_RANK} separate dimensions", operator=call.op.place
        )
    fields = [
        ("outer_rank", len(walk.outer)),
        ("inner_rank", len(walk.inner)),
        ("outer", _array([n for n, _ in walk.outer])),
        ("outer_stride", _array([s for _, s in walk.outer])),
        ("inner", _array([n for n, _ in walk.inner])),
        ("inner_stride", _array([s for _, s in walk.inner])),
    ]
    source, sink = call.tensor(call.op.inputs[0]), call.tensor(call.op.outputs[0])
    return [
        *initialiser("nn_reduce_geometry", "geometry", fields),
        call.invoked(call.addresses(source, sink)),
    ]


_WRITERS: dict[OpKind, Callable[[Call], list[str]]] = {
    OpKind.CONV_2D: _one_to_one,
    OpKind.DEPTHWISE_CONV_2D: _one_to_one,
    OpKind.TRANSPOSE_CONV: _one_to_one,
    OpKind.FULLY_CONNECTED: _fully_connected,
    OpKind.AVERAGE_POOL_2D: _one_to_one,
    OpKind.MAX_POOL_2D: _one_to_one,
    OpKind.ADD: _binary,
    OpKind.SUB: _binary,
    OpKind.MUL: _binary,
    OpKind.PRELU: _binary,
    OpKind.SOFTMAX: _one_to_one,
    OpKind.RELU: _one_to_one,
    OpKind.RELU6: _one_to_one,
    OpKind.LEAKY_RELU: _one_to_one,
    OpKind.LOGISTIC: _one_to_one,
    OpKind.TANH: _one_to_one,
    OpKind.HARD_SWISH: _one_to_one,
    OpKind.QUANTIZE: _one_to_one,
    OpKind.MEAN: _mean,
    OpKind.PAD: _pad,
    OpKind.MIRROR_PAD: _mirror_pad,
    OpKind.TRANSPOSE: _copy_lines,
    OpKind.SLICE: _copy_lines,
    OpKind.STRIDED_SLICE: _copy_lines,
    OpKind.SPLIT: _copy_lines,
    OpKind.CONCATENATION: _copy_lines,
    OpKind.RESIZE_NEAREST_NEIGHBOR: _one_to_one,
    OpKind.RESIZE_BILINEAR: _one_to_one,
}


def lines(call: Call) -> list[str]:
    """The C statements of one step of one operator, without indentation."""
    writer = _WRITERS.get(call.op.kind)
    if writer is None:
        raise UnsupportedError(f"{call.op.kind} has no emitted form", operator=call.op.place)
    return writer(call)
