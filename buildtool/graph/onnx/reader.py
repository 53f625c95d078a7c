"""Reads a QDQ or QOperator network as a Graph with channels-last inputs and outputs.

Operators are read in the file's order. An operator between a DequantizeLinear and a QuantizeLinear becomes
one int8 operator with the output quantisation of the QuantizeLinear. Operators that move or pick values work
on quantised values, even where the file has the QuantizeLinear after them. An operator whose result is never
quantised becomes a float32 operator, and so do those that read such a result.
"""

import contextlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from buildtool.base.errors import BuildtoolError, ModelError, UnsupportedError, did_you_mean
from buildtool.graph.consistency import check_graph
from buildtool.graph.floats import MOST_WEIGHTS
from buildtool.graph.onnx import scales
from buildtool.graph.onnx.context import COMMUTES, QUANTISE, Context, FloatOperand
from buildtool.graph.onnx.file import Array, Interface, Node, OnnxFile, printable_name, read_file
from buildtool.graph.onnx.folding import KINDS, fold, move_quantized
from buildtool.graph.onnx.interface import order_input, order_output
from buildtool.graph.onnx.layout import canonical
from buildtool.graph.onnx.values import ActivationValue, Constant, IndexOutput, Pending, Quantized, Value
from buildtool.graph.ops import ONNX
from buildtool.graph.ops.types import load
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.refusals import QUANTISE as LINE
from buildtool.graph.refusals import join_errors, name_files
from buildtool.graph.types import Graph

_STATIC = (
    "quantise statically the float network that the file was made from: "
    "buildtool quantize FLOAT.onnx --data DATA -o INT8.onnx"
)
_DYNAMIC = frozenset({"DynamicQuantizeLinear", "ConvInteger", "MatMulInteger"})


def read_qdq(data: bytes, *, path: str = "") -> Graph:
    """Returns the network of the .onnx file with the bytes `data`. `path` only names the file in errors.

    Raises ModelError if the bytes are not a well-formed model, UnsupportedError if it is not a static int8
    network of known operators, and ToolError if the package onnx is missing.
    """
    try:
        graph = _Reader(read_file(data)).graph()
        check_graph(graph)
        return graph
    except BuildtoolError as error:
        raise name_files(error.at(path=path), path) from error.__cause__
    except (RecursionError, MemoryError) as error:
        text = "the model's structure is damaged"
        raise ModelError(text, path=path, hint="export the model again") from error


def open_file(data: bytes, *, path: str) -> tuple[OnnxFile, Context]:
    """Returns the file with the bytes `data`, and a context that knows its operators and their tensors."""
    try:
        reader = _Reader(read_file(data))
    except BuildtoolError as error:
        raise error.at(path=path) from error.__cause__
    return reader.file, reader.ctx


@dataclass(frozen=True)
class _Form:
    """Where an operator in QOperator format has its operands and quantisations.

    `kind`: its kind in QDQ format.
    `operands`: the positions of the operands' values. Each is followed by its scale and its zero point.
    `output`: the position of the output's scale. The output's zero point follows.
    `axis`: the dimension that the scales of the weights belong to.
    `bias`: the position of an int32 bias, -1 if there is none.
    """

    kind: str
    operands: Sequence[int]
    output: int
    axis: int = 0
    bias: int = -1


_FORMS: dict[str, _Form] = {
    "QLinearConv": _Form("Conv", (0, 3), 6, 0, 8),
    "QLinearMatMul": _Form("MatMul", (0, 3), 6, -1),
    "QGemm": _Form("Gemm", (0, 3), 7, 0, 6),
    "QLinearAdd": _Form("Add", (0, 3), 6),
    "QLinearMul": _Form("Mul", (0, 3), 6),
    "QLinearAveragePool": _Form("AveragePool", (0,), 3),
    "QLinearGlobalAveragePool": _Form("GlobalAveragePool", (0,), 3),
    "QLinearReduceMean": _Form("ReduceMean", (0,), 3),
    "QLinearSigmoid": _Form("Sigmoid", (0,), 3),
    "QLinearLeakyRelu": _Form("LeakyRelu", (0,), 3),
    "QLinearSoftmax": _Form("Softmax", (0,), 3),
}


def _expand(node: Node) -> list[Node]:
    """Turns an operator in QOperator format into DequantizeLinear, operator and QuantizeLinear.

    Returns any other operator as it is. The new tensors in between have names that no file can have.
    """
    form = _FORMS.get(node.kind)
    if node.kind == "QLinearConcat":  # the output's scale comes first, then three inputs for each part
        form = _Form("Concat", range(2, len(node.inputs), 3), 0)
    if form is None:
        return [node]
    nodes: list[Node] = []
    axis = 1 if node.kind == "QGemm" and not node.attributes.get("transB", 0) else form.axis
    for first in form.operands:
        names = tuple(node.input(first + i) for i in range(3))
        if not names[0] or not names[1]:
            raise ModelError("an operand or its scale is missing", operator=node.place)
        output = f"{names[0]}\0{node.index}.{first}"
        nodes.append(Node("DequantizeLinear", names, (output,), {"axis": axis}, node.index, node.name))
    operands = [operand.outputs[0] for operand in nodes]
    if form.bias >= 0 and node.input(form.bias):
        operands.append(node.input(form.bias))
    attributes = dict(node.attributes)
    if attributes.pop("channels_last", 0):
        raise ModelError("an operator with channels_last", operator=node.place)
    middle = f"{node.outputs[0] if node.outputs else ''}\0{node.index}"
    nodes.append(Node(form.kind, tuple(operands), (middle,), attributes, node.index, node.name))
    inputs = (middle, *(node.input(form.output + i) for i in range(2)))
    nodes.append(Node("QuantizeLinear", inputs, node.outputs[:1], {}, node.index, node.name))
    return nodes


_FLOAT = 1  # TensorProto.DataType


def _is_float(value: Value) -> bool:
    return isinstance(value, ActivationValue) and value.is_float


class _Reader:
    """Reads the operators in the file's order."""

    def __init__(self, file: OnnxFile) -> None:
        self.file = file
        self.nodes = tuple(part for node in file.nodes for part in _expand(node))
        self.ctx = Context(file, self._read_in_floats)
        self.ctx.link(self.nodes)
        self.inputs = frozenset(interface.name for interface in file.inputs)
        self.quantised = any(node.kind in ("QuantizeLinear", "DequantizeLinear") for node in self.nodes)
        self.kernels_by_name: set[int] = set()  # network inputs and outputs, which keep their names

    def graph(self) -> Graph:
        """Reads and returns the whole network."""
        self._refuse_unknown()
        constant, varying = self._part_constants()
        self._read_all(constant)  # the scales of the inputs, too
        inputs = [self._add_input(interface) for interface in self.file.inputs]
        self._read_all(varying)
        outputs = [self._find_output(name) for name in self.file.outputs]
        return self.ctx.build.graph(inputs, outputs)

    def _refuse_unknown(self) -> None:
        """Refuses all unknown operators in one message."""
        constant = {"Constant", "QuantizeLinear", "DequantizeLinear", "Shape", "Size", *KINDS}
        unknown = [node for node in self.nodes if node.kind not in ONNX and node.kind not in constant]
        if not self.quantised:
            sizes = [math.prod(t.dims) for t in self.file.initializers.values() if t.data_type == _FLOAT]
            if (count := sum(sizes)) >= MOST_WEIGHTS:
                self._refuse_weights(count, sorted({node.kind for node in unknown}))
        if not unknown:
            return
        errors = []
        for node in unknown:
            text, hint = "the operator is not supported", "use one of " + ", ".join(sorted(ONNX))
            if node.kind in _DYNAMIC:
                text, hint = "it quantises at run time", _STATIC
            elif len(unknown) == 1:  # the name may be misspelt
                hint = did_you_mean(node.kind, ONNX)
            errors.append(UnsupportedError(text, operator=node.place, hint=hint))
        raise join_errors(errors)

    # ---- one operator --------------------------------------------------------------------------------

    def _part_constants(self) -> tuple[list[Node], list[Node]]:
        """Returns (the operators that read only constants, all other operators), both in the file's order."""
        known, constant, varying = {"", *self.file.initializers}, list[Node](), list[Node]()
        for node in self.nodes:
            is_constant = known.issuperset(node.inputs)
            (constant if is_constant else varying).append(node)
            known.update(node.outputs if is_constant else ())
        return constant, varying

    def _read_all(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self.ctx.build.index = node.index
            try:
                self._read(node)
            except BuildtoolError as error:
                raise error.at(operator=node.place) from error.__cause__
        self.ctx.build.index = -1

    def _read(self, node: Node) -> None:
        if not node.outputs:
            raise ModelError("has no output")
        for name in node.outputs:
            if name in self.ctx.values or name in self.file.initializers:
                raise ModelError("makes a tensor that exists already", tensor=printable_name(name))
        results = self._compute(node)
        for value in results:
            if isinstance(value, (Constant, Quantized)) and value.data.base is None:
                self.ctx.build.spend(value.data.nbytes)
        self.ctx.values.update((n, v) for n, v in zip(node.outputs, results, strict=False) if n)

    def _compute(self, node: Node) -> list[Value]:
        ctx = self.ctx
        if node.kind == "Constant":
            for name, attribute in node.attributes.items():
                if isinstance(attribute, np.ndarray):
                    return [Constant(attribute)]
                if name in ("value_int", "value_ints", "value_float", "value_floats"):
                    dtype = np.int64 if "int" in name else np.float32
                    return [Constant(np.array(attribute, dtype))]
            raise UnsupportedError("a Constant that is neither a tensor nor numbers")
        if node.kind == "QuantizeLinear":
            return [self._quantize(node)]
        if node.kind == "DequantizeLinear":
            return [self._dequantize(node)]
        if node.kind in ("Shape", "Size"):
            value = ctx.value(node.input(0))
            shape = value.data.shape if isinstance(value, (Constant, Quantized)) else value.shape
            start, end = node.integer("start", 0), node.integer("end", len(shape))
            data: Array = np.array(shape[start:end], np.int64)
            return [Constant(data if node.kind == "Shape" else np.array(math.prod(shape), np.int64))]
        operands = [ctx.value(name) for name in node.inputs if name]
        if operands and isinstance(operands[0], Quantized):
            rest = [v.data for v in operands[1:] if isinstance(v, Constant)]
            constant = move_quantized(node, operands[0], rest) if len(rest) == len(operands) - 1 else None
            if constant is not None:
                return [constant]
        constants = [v.data for v in operands if isinstance(v, Constant)]
        if len(constants) == len(operands):
            return [fold(node, constants)]
        if node.kind not in ONNX:
            raise UnsupportedError("an operator that is supported on constants only", hint=QUANTISE)
        if ONNX[node.kind].reference and not any(_is_float(v) for v in operands):
            with contextlib.suppress(FloatOperand), ctx.in_floats(False):
                return self._apply(node)
        return self._compute_in_floats(node)

    def _apply(self, node: Node) -> list[Value]:
        results: list[Value] = load("graph.onnx", ONNX[node.kind].onnx[node.kind])(self.ctx, node)
        return results

    def _compute_in_floats(self, node: Node) -> list[Value]:
        """Reads an operator that computes in float32."""
        ctx = self.ctx
        if not ONNX[node.kind].floats and node.kind not in COMMUTES:
            ctx.refuse_float(next((n for n in node.inputs if n and _is_float(ctx.value(n))), node.outputs[0]))
        with ctx.in_floats():
            pairs = zip(node.outputs, self._apply(node), strict=False)
            results: list[Value] = [ctx.settle(n, v, None) if isinstance(v, Pending) else v for n, v in pairs]
        if ctx.build.float_weights >= MOST_WEIGHTS:
            self._refuse_weights(ctx.build.float_weights)
        return results

    def _read_in_floats(self, name: str) -> ActivationValue:
        """Reads the pending operator that writes the tensor `name` again, in float32. Returns its result."""
        ctx, node = self.ctx, self.ctx.makers[name]
        index, ctx.build.index = ctx.build.index, node.index
        try:
            results = self._compute_in_floats(node)
        except BuildtoolError as error:
            raise error.at(operator=node.place) from error.__cause__
        ctx.build.index = index
        ctx.values.update(zip(node.outputs, results, strict=False))
        value = ctx.value(name)
        assert isinstance(value, ActivationValue)
        return value

    def _refuse_weights(self, count: int, unknown: Sequence[str] = ()) -> NoReturn:
        """Refuses a network with `count` float32 weights, because it has to be quantised.

        `unknown`: kinds of operators that are not supported in a quantised network either.
        """
        text = f"float32 activations in a network of {count:,} float32 weights"
        if not self.quantised:
            text = f"a float network: it has no QuantizeLinear, no DequantizeLinear, and {count:,} weights"
        hint = QUANTISE if self.quantised else f"quantise it: {LINE}"
        text += f": at most {MOST_WEIGHTS - 1:,} run as they are"
        if unknown:
            text += f"; and these operators are not supported: {', '.join(unknown)}"
            hint = f"replace them by operators like {', '.join(sorted(ONNX))}; then quantise the network"
        raise UnsupportedError(text, hint=hint)

    def _quantize(self, node: Node) -> Value:
        ctx, name = self.ctx, node.input(0)
        value = ctx.value(name)
        if isinstance(value, Constant):
            return scales.quantize_constant(*ctx.parameters(node), value.data)
        if isinstance(value, Quantized):
            text = "a constant that is quantised twice"
            raise UnsupportedError(text, hint="fold constants before exporting")
        quant = ctx.quantization(node)
        if isinstance(value, Pending):
            value = ctx.settle(name, value, quant)
        if isinstance(value, IndexOutput) or value.integers:
            raise ModelError("quantises a tensor that is already quantised", tensor=printable_name(name))
        if name in self.inputs and not value.is_float and not same_quantization(value.quant, quant):
            text, hint = "a network input that is quantised in two ways", "quantise it only once"
            raise UnsupportedError(text, tensor=printable_name(name), hint=hint)
        return replace(ctx.build.requantize(value, quant, node.outputs[0]), quant=quant, integers=True)

    def _dequantize(self, node: Node) -> Value:
        ctx, name = self.ctx, node.input(0)
        value = ctx.value(name)
        if isinstance(value, Constant):
            return scales.dequantize_constant(ctx.parameters(node)[0], value.data, name)
        if not isinstance(value, ActivationValue) or not value.integers:
            raise ModelError("dequantises a tensor that is not quantised", tensor=printable_name(name))
        quant = ctx.quantization(node)
        if not same_quantization(value.quant, quant):
            text = "dequantised with another scale or zero point than it was quantised with"
            raise UnsupportedError(text, tensor=printable_name(name), hint="use the same ones on both sides")
        return replace(value, quant=quant, integers=False)

    # ---- the interface -------------------------------------------------------------------------------

    def _add_input(self, interface: Interface) -> int:
        """Adds a network input and returns its number. Images are channels last.

        The input is int8, or float32 if an operator other than QuantizeLinear reads its floats.
        """
        ctx, name, shape = self.ctx, interface.name, interface.shape
        if name in ctx.values:
            raise ModelError("a network input has the name of another tensor", tensor=printable_name(name))
        is_float = interface.dtype == "float32"
        if is_float:
            quant = ctx.later_quantization(name) if ctx.is_only_quantized(name) else None
        else:
            quant = ctx.stored_quantization(name, interface.dtype) or ctx.later_quantization(name)
        if quant is None and not is_float:
            ctx.refuse_float(name)
        order = order_input(ctx, name, len(shape))
        tensor = ctx.build.activation(name, [shape[d] for d in order], quant)
        self.kernels_by_name.add(tensor)
        ctx.values[name] = ActivationValue(tensor, shape, canonical(shape, order), quant, not is_float)
        return tensor

    def _find_output(self, name: str) -> int:
        """Returns the number of a network output. Images are channels last, others in the file's order."""
        ctx = self.ctx
        value = ctx.value(name)
        if isinstance(value, Pending):
            quant = ctx.later_quantization(name) or value.demanded_quant
            value = ctx.settle(name, value, quant) if quant else self._read_in_floats(name)
        if isinstance(value, IndexOutput):
            return value.tensor
        if not isinstance(value, ActivationValue):
            hint = "remove the output from the network"
            text = "a network output that does not depend on the input"
            raise UnsupportedError(text, tensor=printable_name(name), hint=hint)
        tensor = ctx.build.in_file_order(value, order_output(ctx, name, len(value.shape)))
        if tensor not in self.kernels_by_name:  # a network output gets its name in the file
            self.kernels_by_name.add(tensor)
            ctx.build.rename(tensor, name)
        return tensor
