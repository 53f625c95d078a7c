"""The interface of the decoders: one operator of the file, and the network under construction.

A decoder takes an `OpView` and adds one or more operators to `OpView.network`.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.ops import DEFS
from buildtool.graph.ops.types import Plain
from buildtool.graph.tflite.fileops import ACTIVATIONS
from buildtool.graph.tflite.flat import Accessor, RawOperator, RawTensor
from buildtool.graph.tflite.network import Network
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import Activation, Attrs, Op, OpKind

MAX_PARAMETERS = 4096  # most elements of a constant that becomes an attribute
_ACTIVATIONS = {code: activation for activation, code in ACTIVATIONS.items()}
_REFUSED_ACTIVATIONS = {
    tflite.ActivationFunctionType.TANH: "TANH",
    tflite.ActivationFunctionType.SIGN_BIT: "SIGN_BIT",
}


class OpView:
    """One operator of the file, with checked access to its tensors and options."""

    def __init__(self, network: Network, op: RawOperator) -> None:
        self.network = network
        self.file = network.file
        self.op = op
        self._added = 0  # number of tensors that `then` has added

    # ---- reading -------------------------------------------------------------------------------------

    @property
    def kind(self) -> OpKind:
        """The kind with the same name as the operator."""
        return OpKind(self.op.name)

    def optional(self, position: int) -> RawTensor | None:
        """Returns input `position`, None if the operator does not have it."""
        if position >= len(self.op.inputs) or self.op.inputs[position] < 0:
            return None
        return self.file.tensor(self.op.inputs[position])

    def input(self, position: int) -> RawTensor:
        """Returns input `position`. Raises ModelError if the operator does not have it."""
        tensor = self.optional(position)
        if tensor is None:
            raise ModelError(f"input {position} is missing")
        return tensor

    def image_shape(self, position: int) -> tuple[int, int, int, int]:
        """Returns the shape of input `position`. Raises ModelError unless it has 4 dimensions above 0."""
        tensor = self.input(position)
        if len(tensor.shape) != 4:
            raise ModelError(f"shape {list(tensor.shape)} must have 4 dimensions", tensor=tensor.name)
        if min(tensor.shape) < 1:
            raise ModelError(f"the tensor has no elements: shape {list(tensor.shape)}", tensor=tensor.name)
        n, h, w, c = tensor.shape
        return n, h, w, c

    @property
    def output(self) -> RawTensor:
        """The first output."""
        return self.file.tensor(self.op.outputs[0])

    def demand_output(self, shape: tuple[int, ...], says: str = "expected") -> None:
        """Raises ModelError unless the first output has `shape`. `says` introduces `shape` in the message."""
        if self.output.shape != shape:
            raise ModelError(f"output shape {list(self.output.shape)}, {says} {list(shape)}")

    def options(self, cls: type[Accessor]) -> Accessor:
        """Returns the options table of class `cls`. Raises ModelError if the file does not have it."""
        options = self.op.options(cls)
        if options is None:
            raise ModelError(f"the operator has no {cls.__name__}")
        return options

    def custom_options(self) -> bytes:
        """Returns the options of a custom operator."""
        return self.file.custom_options(self.op)

    def ints(self, position: int) -> tuple[int, ...]:
        """Returns the integers of input `position`, flattened.

        Refuses an input whose values depend on the network's input data.
        """
        tensor = self.input(position)
        if tensor.dtype not in ("int32", "int64"):
            raise ModelError(f"a parameter must be int32 or int64, not {tensor.dtype}", tensor=tensor.name)
        if tensor.elements > MAX_PARAMETERS:
            text = f"a parameter of {tensor.elements} elements, more than {MAX_PARAMETERS}"
            raise ModelError(text, tensor=tensor.name)
        if tensor.is_constant:
            values: npt.NDArray[np.generic] = tensor.array()
        elif not tensor.elements:
            return ()
        elif tensor.index in self.network.known:
            values = self.network.known[tensor.index]
        else:
            self.refuse(f"parameter '{tensor.name}' is not constant", "re-export with fixed shapes")
        return tuple(int(v) for v in values.reshape(-1))

    def activation(self, options: Accessor) -> Activation:
        """Returns the fused activation, NONE if `options` is None."""
        code = options.FusedActivationFunction() if options is not None else 0
        if code in _REFUSED_ACTIVATIONS:
            self.refuse(f"fused activation {_REFUSED_ACTIVATIONS[code]}", "use a separate operator for it")
        if code not in _ACTIVATIONS:
            raise ModelError(f"unknown fused activation {code}")
        return _ACTIVATIONS[code]

    def axis(self, value: int, rank: int) -> int:
        """Returns the axis as a number from 0. A negative `value` counts from the last axis."""
        if not -rank <= value < rank:
            raise ModelError(f"axis {value} does not exist in {rank} dimensions")
        return value % rank

    def read_axis(self, position: int, rank: int) -> int:
        """Returns the axis in input `position`, which must have one element."""
        axes = self.ints(position)
        if len(axes) != 1:
            raise ModelError(f"{len(axes)} axes, expected 1")
        return self.axis(axes[0], rank)

    def refuse(self, text: str, hint: str = "") -> NoReturn:
        """Raises UnsupportedError with this text and hint."""
        raise UnsupportedError(text, hint=hint)

    # ---- adding --------------------------------------------------------------------------------------

    def operand(self, position: int) -> int:
        """Returns the graph's tensor for input `position`, -1 if the operator does not have it."""
        raw = self.optional(position)
        return -1 if raw is None else self.network.place(raw.index)

    def outputs(self) -> tuple[int, ...]:
        """Returns the graph's tensors for the outputs."""
        return tuple(self.network.place(t) for t in self.op.outputs)

    def emit(
        self, kind: OpKind, inputs: Iterable[int], attrs: Attrs | None = None, outputs: Iterable[int] = ()
    ) -> None:
        """Adds an operator. Without `outputs` it writes the outputs of the file's operator."""
        results = tuple(outputs) or self.outputs()
        self.network.ops.append(Op(kind, tuple(inputs), results, attrs or Attrs(), self.op.index))

    def emit_like_file(self, kind: OpKind, attrs: Attrs | None = None, operands: int = 1) -> None:
        """Adds an operator whose inputs are the first `operands` inputs of the file's operator."""
        self.emit(kind, [self.operand(i) for i in range(operands)], attrs)

    def emit_new(
        self, kind: OpKind, source: int, shape: tuple[int, ...], attrs: Attrs | None = None, like: int = -1
    ) -> int:
        """Adds an operator from tensor `source` to a new tensor of shape `shape`. Returns the new tensor.

        The new tensor's type and quantisation are those of the tensor `like`, by default those of `source`.
        """
        model = self.network.tensors[like if like >= 0 else source]
        name = f"{model.name}/{self.op.index}.{self._added}"
        self._added += 1
        result = self.network.add(replace(model, name=name, shape=shape, source=None, data=None))
        self.emit(kind, (source,), attrs, (result,))
        return result


def decode_plain(view: OpView) -> None:
    """Decodes an operator whose kind has its name, and whose attributes are fields of its option table."""
    definition = DEFS[view.kind]
    form, attrs = definition.written, Attrs()
    if isinstance(form, Plain) and form.fields:
        table = getattr(tflite, form.table(view.kind))
        options = view.options(table) if form.needed else view.op.options(table)
        if options is None:
            attrs = form.attrs()
        else:
            attrs = form.attrs(**{name: getattr(options, field)() for field, name in form.fields.items()})
    view.emit_like_file(view.kind, attrs, definition.operands or 1)
