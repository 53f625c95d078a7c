"""What a decoder sees of one operator: its tensors, options and constant parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.ops import DEFS
from buildtool.graph.ops.types import Plain
from buildtool.graph.tflite.fileops import ACTIVATIONS
from buildtool.graph.tflite.flat import Accessor, FlatFile, RawOperator, RawTensor
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import Activation, Attrs, OpKind

_ACTIVATIONS = {code: activation for activation, code in ACTIVATIONS.items()}
_REFUSED_ACTIVATIONS = {
    tflite.ActivationFunctionType.TANH: "TANH",
    tflite.ActivationFunctionType.SIGN_BIT: "SIGN_BIT",
}
MAX_PARAMETERS = 4096  # elements of a constant that becomes an attribute


@dataclass(frozen=True)
class Decoded:
    """An operator in the graph's terms; tensors by the file's indices, -1 for an absent one."""

    kind: OpKind
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attrs: Attrs


@dataclass(frozen=True)
class Made:
    """A tensor between the operators of a `Chain`: as tensor `like` of the file, but of `shape`."""

    like: int
    shape: tuple[int, ...]


class Chain:
    """The operators that one of the file stands for, in order.

    Tensors that the file does not have count down from -2 (-1 is an absent operand): `made[n]` is -2 - n.
    """

    def __init__(self) -> None:
        self.steps: list[Decoded] = []
        self.made: list[Made] = []

    def then(self, kind: OpKind, source: int, made: Made, attrs: Attrs | None = None) -> int:
        """An operator of one input that makes a new tensor; its number."""
        self.made.append(made)
        number = -1 - len(self.made)
        self.last(kind, (source,), (number,), attrs if attrs is not None else Attrs())
        return number

    def last(self, kind: OpKind, inputs: tuple[int, ...], outputs: tuple[int, ...], attrs: Attrs) -> None:
        """An operator that makes tensors of the file."""
        self.steps.append(Decoded(kind, inputs, outputs, attrs))


@dataclass(frozen=True, eq=False)
class Folded:
    """An operator whose output, tensor `output` of the file, is known already."""

    output: int
    value: npt.NDArray[np.generic]


class OpView:
    """One operator of the file, with checked access to everything around it."""

    def __init__(
        self, file: FlatFile, op: RawOperator, known: Callable[[int], tuple[int, ...] | None]
    ) -> None:
        """`known` gives the values of an int tensor that is computed from shapes alone, if it is."""
        self.file = file
        self.op = op
        self.known = known

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
        n, h, w, c = tensor.shape
        if min(tensor.shape) < 1:
            raise ModelError(f"a tensor without elements: shape {list(tensor.shape)}", tensor=tensor.name)
        return n, h, w, c

    @property
    def output(self) -> RawTensor:
        """The first output."""
        if not self.op.outputs:
            raise ModelError("the operator has no output")
        return self.file.tensor(self.op.outputs[0])

    def options(self, cls: type[Accessor]) -> Accessor:
        """The options table of class `cls`; ModelError if the file has none."""
        options = self.op.options(cls)
        if options is None:
            raise ModelError(f"the operator has no {cls.__name__}")
        return options

    def optional_options(self, cls: type[Accessor]) -> Accessor:
        """The options table of class `cls`, None if the file has none (all fields at their default)."""
        return self.op.options(cls)

    def ints(self, position: int) -> tuple[int, ...]:
        """The values of the integer constant at input `position`, flattened."""
        return self.ints_of(self.input(position))

    def ints_of(self, tensor: RawTensor) -> tuple[int, ...]:
        """The values of an integer parameter, flattened; refuses one that depends on the input's data."""
        if tensor.dtype not in ("int32", "int64"):
            raise ModelError(f"a parameter of type {tensor.dtype}", tensor=tensor.name)
        if tensor.elements > MAX_PARAMETERS:
            raise ModelError(f"a parameter of {tensor.elements} elements", tensor=tensor.name)
        if not tensor.is_constant:
            values = self.known(tensor.index) if tensor.elements else ()
            if values is None:
                self.refuse(f"parameter '{tensor.name}' is not constant", "re-export with fixed shapes")
            return values
        return tuple(int(v) for v in np.asarray(tensor.array()).reshape(-1))

    def activation(self, code: int) -> Activation:
        """The fused activation."""
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

    def data(self, count: int) -> tuple[int, ...]:
        """The file's indices of the first `count` inputs, -1 for an absent one."""
        given = tuple(max(i, -1) for i in self.op.inputs[:count])
        return given + (-1,) * (count - len(given))

    def refuse(self, text: str, hint: str = "") -> NoReturn:
        """Raises UnsupportedError."""
        raise UnsupportedError(text, hint=hint)

    def decoded(self, kind: OpKind, attrs: Attrs | None = None, operands: int = 1) -> Decoded:
        """The operator with its first `operands` inputs as the graph's inputs."""
        return Decoded(kind, self.data(operands), self.op.outputs, attrs if attrs is not None else Attrs())


def plain(view: OpView) -> Decoded:
    """An operator whose kind has its name, and whose parameters, if it has any, are fields of its options."""
    found = DEFS[OpKind(view.op.name)]
    form = found.written
    attrs = Attrs()
    if isinstance(form, Plain) and form.fields:
        table = getattr(tflite, form.options)
        options = view.options(table) if form.needed else view.optional_options(table)
        if options is None:
            attrs = form.attrs()
        else:
            attrs = form.attrs(**{name: getattr(options, field)() for field, name in form.fields.items()})
    return view.decoded(found.kind, attrs, found.operands or 1)
