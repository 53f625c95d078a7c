"""Reads a .tflite file into a Graph. Any bytes may come: the result is a sound Graph or an error.

Only the first subgraph is read; operators that only compute shapes vanish. Memory stays within a
constant times the file's size, constants are read-only views of its bytes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import replace
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import BuildtoolError, ModelError, UnsupportedError
from buildtool.graph.consistency import check_graph
from buildtool.graph.numbering import graph_of
from buildtool.graph.ops import STATEFUL
from buildtool.graph.refusals import together
from buildtool.graph.tflite import operators
from buildtool.graph.tflite.flat import BUILTIN_NAMES, FlatFile, RawOperator, RawTensor
from buildtool.graph.tflite.opview import Chain, Decoded, Folded, OpView
from buildtool.graph.tflite.shapevalues import ShapeValues
from buildtool.graph.tflite.uint8 import ANEW, Shifted, is_of_uint8
from buildtool.graph.tflite.variables import Variables
from buildtool.graph.types import (
    Attrs,
    DType,
    FullyConnectedAttrs,
    Graph,
    Op,
    OpKind,
    Source,
    Tensor,
)

_REEXPORT = (
    "re-export with full-integer int8 quantisation: "
    "converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8] "
    "and a representative dataset"
)
_FLOAT = "quantise the network after training, or train it so: " + _REEXPORT
_HYBRID = "only the weights are quantised: " + _REEXPORT
_INT16 = (
    "convert with OpsSet.TFLITE_BUILTINS_INT8 in place of "
    "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8, or leave this operator out"
)
_INT4 = "quantise the weights to 8 bits"
_EDGES = {OpKind.QUANTIZE, OpKind.DEQUANTIZE}
_MALFORMED = (
    struct.error,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    AttributeError,
    RecursionError,
    MemoryError,
)


def read_model(data: bytes, *, path: str = "") -> Graph:
    """The network in the .tflite file `data`; `path` only names it in errors.

    Raises ModelError if the bytes are not a well-formed model, UnsupportedError for a well-formed one
    that is not a static int8 network of the known operators.
    """
    try:
        graph = _Reader(FlatFile(data)).graph()
        check_graph(graph)
        return graph
    except BuildtoolError as error:
        raise error.at(path=path) from error.__cause__
    except _MALFORMED as error:
        raise ModelError(
            "the file's structure is damaged: an offset or a length points outside of it",
            path=path,
            hint="convert or download the model again",
        ) from error


class _Reader:
    """Collects the graph's tensors and operators."""

    def __init__(self, file: FlatFile) -> None:
        self._file = file
        self._variables = Variables(file, file.subgraph)
        self._shapes = ShapeValues(file)
        self._tensors: list[Tensor] = []
        self._places: dict[int, int] = {}  # the file's tensor index -> ours
        self._ops: list[Op] = []
        self._refused: list[UnsupportedError] = []

    def graph(self) -> Graph:
        """Reads all operators; raises one error for all that are refused."""
        file = self._file
        for op in file.operators:
            if op.outputs and all(t in self._shapes for t in op.outputs):
                continue
            try:
                self._read(op)
            except UnsupportedError as error:
                error.at(operator=op.place)
                self._refused.append(error)
            except BuildtoolError as error:
                raise error.at(operator=op.place) from error.__cause__
        if self._refused:
            self._refuse()
        self._refuse_variable(file.inputs)
        inputs = tuple(self.place(t) for t in file.inputs)
        outputs = tuple(self.place(t) for t in file.outputs)
        states = self._variables.states(self)
        if is_of_uint8(self._tensors, self._ops) and not states:
            shifted = Shifted(self._tensors)
            shifted.convert(self._ops, inputs, outputs)
            return graph_of(file.name, shifted.tensors, shifted.ops, inputs, outputs)
        return graph_of(file.name, self._tensors, self._ops, inputs, outputs, states)

    def _refuse(self) -> NoReturn:
        """One message for all refused operators, by cause, with what to do about each."""
        raise together(self._refused)

    def _read(self, op: RawOperator) -> None:
        if op.code in operators.VARIABLES:
            self._variables.read(op, self)
            return
        decoder = operators.decoder(op.code)
        if decoder is None:
            _refuse_operator(op)
        self._refuse_variable(op.outputs)
        mentioned = [self._file.tensor(t) for t in (*op.inputs, *op.outputs) if t >= 0]
        wide = DType.INT16 if operators.SPELLINGS[op.code][0].whole else ""  # of weights, and of state
        _check_types(op, [t for t in mentioned if t.dtype != wide])
        decoded = decoder(OpView(self._file, op, self._shapes))
        if isinstance(decoded, Chain):
            self._chain(decoded, op.index)
        elif isinstance(decoded, Folded):
            self._fold(decoded)
        elif decoded.kind == OpKind.FULLY_CONNECTED:
            self._dense(decoded, op.index)
        else:
            self._append(decoded, op.index)

    def _chain(self, chain: Chain, index: int) -> None:
        """The operators of a chain, all of which stand where the file's operator stood."""
        numbers: dict[int, int] = {}
        for n, made in enumerate(chain.made):
            like = self._tensors[self.place(made.like)]
            name = f"{like.name}/{index}.{n}"
            self._tensors.append(replace(like, name=name, shape=made.shape, source=None, data=None))
            numbers[-2 - n] = len(self._tensors) - 1
        for step in chain.steps:
            inputs, outputs = (
                tuple(numbers[t] if t < -1 else self.place(t) for t in tensors)
                for tensors in (step.inputs, step.outputs)
            )
            self._ops.append(Op(step.kind, inputs, outputs, step.attrs, index))

    def _fold(self, folded: Folded) -> None:
        """Makes an operator's output a constant."""
        place = self.place(folded.output)
        folded.value.setflags(write=False)
        self._tensors[place] = replace(self._tensors[place], data=folded.value)

    def _refuse_variable(self, written: Iterable[int]) -> None:
        """Refuses tensors marked as variable where they are no operator's state."""
        for t in written:
            raw = self._file.tensor(t)
            if raw.variable:
                hint = "let only an operator that keeps state have it as an operand"
                text = "a variable tensor that is an input, or an operator's output"
                raise UnsupportedError(text, tensor=raw.name, hint=hint)

    def _append(self, decoded: Decoded, index: int) -> None:
        inputs = tuple(self.place(t) if t >= 0 else -1 for t in decoded.inputs)
        if decoded.kind in _CONVOLUTIONS:
            inputs = (*inputs[:2], self._bias(inputs[2], inputs[0]))
        outputs = tuple(self.place(t) for t in decoded.outputs) + self._updated(decoded)
        self._ops.append(Op(decoded.kind, inputs, outputs, decoded.attrs, index))

    def _updated(self, decoded: Decoded) -> tuple[int, ...]:
        """The new values of the state that an operator keeps, one for each, in the order of its outputs."""
        made: list[int] = []
        for operand, output in sorted(STATEFUL.get(decoded.kind, {}).items(), key=lambda pair: pair[1]):
            assert output == len(decoded.outputs) + len(made)
            raw = self._file.tensor(decoded.inputs[operand])
            if not raw.variable:
                raise UnsupportedError("the operator's state is no variable tensor", tensor=raw.name)
            old = self._tensors[self._places[raw.index]]
            self._tensors.append(replace(old, name=f"{old.name}/after"))
            made.append(len(self._tensors) - 1)
            self._variables.update(raw, made[-1])
        return tuple(made)

    def tensor(self, number: int) -> Tensor:
        """One of our tensors."""
        return self._tensors[number]

    def add_op(self, op: Op) -> None:
        """Takes in an operator of ours."""
        self._ops.append(op)

    def stands_for(self, index: int, tensor: int) -> None:
        """From here on the file's tensor `index` is our `tensor`."""
        self._places[index] = tensor

    def _dense(self, decoded: Decoded, index: int) -> None:
        """FULLY_CONNECTED, with the flattening that TFLite does silently written out as RESHAPE.

        Afterwards every pixel of the input is one vector of the filter's width.
        """
        x, weights, bias = (self.place(t) if t >= 0 else -1 for t in decoded.inputs)
        if x < 0 or weights < 0 or len(decoded.outputs) != 1:
            raise ModelError("input, filter or output is missing")
        bias, out = self._bias(bias, x), self.place(decoded.outputs[0])
        source, result, shape = self._tensors[x], self._tensors[out], self._tensors[weights].shape
        if len(shape) != 2 or min(shape) < 1 or source.elements % shape[1]:
            raise ModelError(f"{source.elements} inputs for a filter of {list(shape)}")
        attrs = decoded.attrs
        assert isinstance(attrs, FullyConnectedAttrs)
        if attrs.keep_num_dims and source.shape[-1:] == (shape[1],):
            self._ops.append(Op(OpKind.FULLY_CONNECTED, (x, weights, bias), (out,), attrs, index))
            return
        attrs = replace(attrs, keep_num_dims=False)
        batch = source.elements // shape[1]
        if source.shape[-1:] != (shape[1],) or source.nhwc != (1, 1, batch, shape[1]):
            x = self._reshaped(x, (batch, shape[1]), f"{source.name}/flat")
        if result.shape == (batch, shape[0]):
            self._ops.append(Op(OpKind.FULLY_CONNECTED, (x, weights, bias), (out,), attrs, index))
            return
        if result.elements != batch * shape[0]:
            raise ModelError(f"output shape {list(result.shape)}, expected {[batch, shape[0]]}")
        dense = replace(result, name=f"{result.name}/flat", shape=(batch, shape[0]), source=None)
        self._tensors.append(dense)
        made = len(self._tensors) - 1
        self._ops.append(Op(OpKind.FULLY_CONNECTED, (x, weights, bias), (made,), attrs, index))
        self._ops.append(Op(OpKind.RESHAPE, (made,), (out,), Attrs(), -1))

    def _reshaped(self, index: int, shape: tuple[int, ...], name: str) -> int:
        """A new tensor: `index` under another shape, made by a RESHAPE."""
        self._tensors.append(replace(self._tensors[index], name=name, shape=shape, source=None, data=None))
        made = len(self._tensors) - 1
        self._ops.append(Op(OpKind.RESHAPE, (index,), (made,), Attrs(), -1))
        return made

    def _bias(self, index: int, x: int) -> int:
        """Gives a bias such as (1, 1, 1, C) the shape (C,), and its scales the only axis that there is.

        Files name another axis, such as the filter's, for a bias of one dimension; LiteRT's kernels never
        look at it. It gets 64 bits where activations have 16.
        """
        if index >= 0 and self._tensors[x].dtype is DType.INT16:
            index = self._widened(index)
        tensor = self._tensors[index]
        if index >= 0 and tensor.data is not None:
            quant = tensor.quant
            if quant is not None and len(quant.scales) == tensor.elements:
                quant = replace(quant, axis=0)
            flat = tensor.data.reshape(-1)
            self._tensors[index] = replace(tensor, shape=flat.shape, data=flat, quant=quant)
        return index

    def _widened(self, index: int) -> int:
        """An int32 bias as one of int64."""
        bias = self._tensors[index]
        if bias.dtype is DType.INT32 and bias.data is not None:
            data = bias.data.astype(np.int64)
            data.setflags(write=False)
            self._tensors[index] = replace(bias, dtype=DType.INT64, data=data)
        return index

    def place(self, index: int) -> int:
        """Our index of the file's tensor `index`, which is taken in at its first use."""
        raw = self._file.tensor(index)
        if index not in self._places:
            self._tensors.append(_tensor(raw))
            self._places[index] = len(self._tensors) - 1
        return self._variables.marked(raw, self._places[index]) if raw.variable else self._places[index]


_CONVOLUTIONS = {OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D, OpKind.TRANSPOSE_CONV}


def _tensor(raw: RawTensor) -> Tensor:
    """`raw` as the graph has it; refuses what no static int8 network has."""
    if raw.dtype not in frozenset(DType):
        raise UnsupportedError(f"a tensor of type {raw.dtype}", tensor=raw.name, hint=_REEXPORT)
    if raw.sparse:
        hint = "re-export without sparse storage"
        raise UnsupportedError("a sparse tensor", tensor=raw.name, hint=hint)
    if raw.quant_details:
        raise UnsupportedError("a custom or blockwise quantisation", tensor=raw.name, hint=_REEXPORT)
    if raw.dynamic and not raw.is_constant:
        hint = "re-export with a fixed input shape"
        raise UnsupportedError("its shape is only known at run time", tensor=raw.name, hint=hint)
    data = _constant(raw) if raw.is_constant else None
    if math.prod(raw.shape) == 0:
        raise UnsupportedError(f"no elements: shape {list(raw.shape)}", tensor=raw.name)
    return Tensor(raw.name, raw.shape, DType(raw.dtype), raw.quant, data, Source(raw.index))


def _constant(raw: RawTensor) -> npt.NDArray[np.generic]:
    """A constant's elements; every byte but 0 is the truth value 1."""
    data = raw.array()
    if raw.dtype == "bool":
        data = np.asarray(data.view(np.uint8) != 0)
        data.flags.writeable = False
    return data


def _refuse_operator(op: RawOperator) -> NoReturn:
    """Raises UnsupportedError for an operator that is not read, saying what could be done."""
    if op.name.startswith("CUSTOM(Flex"):
        hint = "re-export without SELECT_TF_OPS: replace the TensorFlow operator in the network"
        raise UnsupportedError("a TensorFlow (flex) operator", hint=hint)
    if op.name.startswith("CUSTOM("):
        raise UnsupportedError("a custom operator", hint="replace it by built-in operators in the network")
    if op.code in operators.CONTROL_FLOW:
        raise UnsupportedError("control flow", hint="unroll loops and fix conditions before exporting")
    if op.code in operators.STATEFUL:
        hint = "unroll the network over time, with its state as inputs and outputs"
        raise UnsupportedError("an operator with state", hint=hint)
    if op.code in operators.NO_INT8:
        raise UnsupportedError("the operator has no int8 form", hint=operators.NO_INT8[op.code])
    known = ", ".join(sorted(BUILTIN_NAMES[code] for code in operators.SPELLINGS))
    raise UnsupportedError("the operator is not supported", hint=f"use one of {known}")


def _check_types(op: RawOperator, tensors: list[RawTensor]) -> None:
    """Refuses types that no operator takes, in the words of who exported the model."""
    types = {t.dtype for t in tensors}
    if types & {"float16", "bfloat16", "float64"}:
        raise UnsupportedError(f"{sorted(types)[0]} values: a float network", hint=_FLOAT)
    if "float32" in types and op.name not in _EDGES:
        weights = {t.dtype for t in tensors if t.is_constant}
        kind = "hybrid: int8 weights, float32 activations" if "int8" in weights else "float32 activations"
        raise UnsupportedError(kind, hint=_HYBRID if "int8" in weights else _FLOAT)
    if "int4" in types:
        raise UnsupportedError("int4 weights", hint=_INT4)
    if "int16" in types and op.code not in operators.INT16:
        raise UnsupportedError("int16 activations (16x8 quantisation)", hint=_INT16)
    if {"uint8", "int8"} <= types and op.name != OpKind.QUANTIZE:
        raise UnsupportedError("uint8 beside int8", hint=ANEW)
    strange = sorted(types - frozenset(DType))
    if strange:
        raise UnsupportedError(f"values of type {strange[0]}", hint=_REEXPORT)
