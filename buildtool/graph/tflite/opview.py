"""One operator of a file as its decoder sees it, and the network that the decoder adds to.

A decoder takes an `OpView` and adds operators to `OpView.network`: mostly one.
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

MAX_PARAMETERS = 4096  # elements of a constant that becomes an attribute
_ACTIVATIONS = {code: activation for activation, code in ACTIVATIONS.items()}
_REFUSED_ACTIVATIONS = {
    tflite.ActivationFunctionType.TANH: "TANH",
    tflite.ActivationFunctionType.SIGN_BIT: "SIGN_BIT",
}


class OpView:
    """One operator of the file, with checked access to everything around it."""

    def __init__(self, network: Network, op: RawOperator) -> None:
        self.network = network
        self.file = network.file
        self.op = op
        self._made = 0

    # ---- reading -------------------------------------------------------------------------------------

    @property
    def kind(self) -> OpKind:
        """The kind of the operator's own name."""
        return OpKind(self.op.name)

    def optional(self, position: int) -> RawTensor | None:
        """Input `position`, None if absent."""
        if position >= len(self.op.inputs) or self.op.inputs[position] < 0:
            return None
        return self.file.tensor(self.op.inputs[position])

    def input(self, position: int) -> RawTensor:
        """Input `position`; ModelError if absent."""
        tensor = self.optional(position)
        if tensor is None:
            raise ModelError(f"input {position} is missing")
        return tensor

    def image(self, position: int) -> tuple[int, int, int, int]:
        """The 4 dimensions of input `position`."""
        tensor = self.input(position)
        if len(tensor.shape) != 4:
            raise ModelError(f"shape {list(tensor.shape)} must have 4 dimensions", tensor=tensor.name)
        if min(tensor.shape) < 1:
            raise ModelError(f"a tensor without elements: shape {list(tensor.shape)}", tensor=tensor.name)
        n, h, w, c = tensor.shape
        return n, h, w, c

    @property
    def output(self) -> RawTensor:
        """The first output."""
        if not self.op.outputs:
            raise ModelError("the operator has no output")
        return self.file.tensor(self.op.outputs[0])

    def demand_output(self, shape: tuple[int, ...], says: str = "expected") -> None:
        """ModelError unless the first output has `shape`."""
        if self.output.shape != shape:
            raise ModelError(f"output shape {list(self.output.shape)}, {says} {list(shape)}")

    def options(self, cls: type[Accessor]) -> Accessor:
        """The options table of class `cls`; ModelError if the file has none."""
        options = self.op.options(cls)
        if options is None:
            raise ModelError(f"the operator has no {cls.__name__}")
        return options

    def ints(self, position: int) -> tuple[int, ...]:
        """The values of an integer parameter, flattened; refuses one that depends on the input's data."""
        tensor = self.input(position)
        if tensor.dtype not in ("int32", "int64"):
            raise ModelError(f"a parameter of type {tensor.dtype}", tensor=tensor.name)
        if tensor.elements > MAX_PARAMETERS:
            raise ModelError(f"a parameter of {tensor.elements} elements", tensor=tensor.name)
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
        """The fused activation; NONE without options."""
        code = options.FusedActivationFunction() if options is not None else 0
        if code in _REFUSED_ACTIVATIONS:
            self.refuse(f"fused activation {_REFUSED_ACTIVATIONS[code]}", "use it as an operator of its own")
        if code not in _ACTIVATIONS:
            raise ModelError(f"fused activation {code} does not exist")
        return _ACTIVATIONS[code]

    def axis(self, value: int, rank: int) -> int:
        """`value` counted from the front; negative ones count from the back."""
        if not -rank <= value < rank:
            raise ModelError(f"axis {value} of {rank} dimensions")
        return value % rank

    def axis_at(self, position: int, rank: int) -> int:
        """The axis that input `position`, of one element, gives."""
        axes = self.ints(position)
        if len(axes) != 1:
            raise ModelError(f"{len(axes)} axes, expected 1")
        return self.axis(axes[0], rank)

    def refuse(self, text: str, hint: str = "") -> NoReturn:
        """Raises UnsupportedError."""
        raise UnsupportedError(text, hint=hint)

    # ---- adding --------------------------------------------------------------------------------------

    def operand(self, position: int) -> int:
        """Our tensor for input `position`, -1 if absent."""
        raw = self.optional(position)
        return -1 if raw is None else self.network.place(raw.index)

    def outputs(self) -> tuple[int, ...]:
        """Our tensors for the outputs."""
        return tuple(self.network.place(t) for t in self.op.outputs)

    def emit(
        self, kind: OpKind, inputs: Iterable[int], attrs: Attrs | None = None, outputs: Iterable[int] = ()
    ) -> None:
        """Adds an operator, whose outputs are those of the file's operator unless `outputs` says which."""
        results = tuple(outputs) or self.outputs()
        self.network.ops.append(Op(kind, tuple(inputs), results, attrs or Attrs(), self.op.index))

    def same(self, kind: OpKind, attrs: Attrs | None = None, operands: int = 1) -> None:
        """Adds an operator whose inputs are the first `operands` ones of the file's operator."""
        self.emit(kind, [self.operand(i) for i in range(operands)], attrs)

    def then(
        self, kind: OpKind, source: int, shape: tuple[int, ...], attrs: Attrs | None = None, like: int = -1
    ) -> int:
        """Adds an operator that makes a new tensor of `shape`, else like our tensor `like` (or `source`)."""
        model = self.network.tensors[like if like >= 0 else source]
        name = f"{model.name}/{self.op.index}.{self._made}"
        self._made += 1
        result = self.network.add(replace(model, name=name, shape=shape, source=None, data=None))
        self.emit(kind, (source,), attrs, (result,))
        return result


def plain(view: OpView) -> None:
    """An operator under its kind's name, whose parameters, if it has any, are fields of its option table."""
    definition = DEFS[view.kind]
    form, attrs = definition.written, Attrs()
    if isinstance(form, Plain) and form.fields:
        table = getattr(tflite, form.table(view.kind))
        options = view.options(table) if form.needed else view.op.options(table)
        if options is None:
            attrs = form.attrs()
        else:
            attrs = form.attrs(**{name: getattr(options, field)() for field, name in form.fields.items()})
    view.same(view.kind, attrs, definition.operands or 1)
