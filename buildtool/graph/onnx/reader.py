"""Reads a QDQ or QOperator network: a Graph with int8, channels-last inputs and outputs.

Operators are read in the file's order. What stands between a DequantizeLinear and a QuantizeLinear
becomes one int8 operator: its output quantisation is the QuantizeLinear's. Operators that move or
pick values work on the quantised ones, wherever the file has its QuantizeLinear.
"""

from __future__ import annotations

import math

import numpy as np

from buildtool.base.errors import BuildtoolError, ModelError, UnsupportedError, did_you_mean
from buildtool.graph.consistency import check_graph
from buildtool.graph.onnx import scales
from buildtool.graph.onnx.context import QUANTISE, Context
from buildtool.graph.onnx.file import Array, Interface, Node, OnnxFile, read_file, shown
from buildtool.graph.onnx.folding import KINDS, fold, move_quantized
from buildtool.graph.onnx.layout import canonical
from buildtool.graph.onnx.qoperators import expanded
from buildtool.graph.onnx.values import Constant, Held, Pending, Places, Quantized, Value
from buildtool.graph.onnx.windows import NHWC
from buildtool.graph.ops import ONNX
from buildtool.graph.ops.types import load
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.refusals import together
from buildtool.graph.types import Graph

_IMAGE_OPERATORS = frozenset({"Conv", "ConvTranspose", "MaxPool", "AveragePool"})
_TO_NCHW = (0, 3, 1, 2)
_DYNAMIC = frozenset({"DynamicQuantizeLinear", "ConvInteger", "MatMulInteger"})
_FOLLOWED = ("QuantizeLinear", "DequantizeLinear", "Identity")


def read_qdq(data: bytes, *, path: str = "") -> Graph:
    """The network of the .onnx file `data`; `path` only names it in errors.

    Raises ModelError if the bytes are not a well-formed model, UnsupportedError for one that is not a
    static int8 network of the known operators, ToolError without the onnx package.
    """
    try:
        graph = _Reader(read_file(data)).graph()
        check_graph(graph)
        return graph
    except BuildtoolError as error:
        raise error.at(path=path) from error.__cause__
    except (RecursionError, MemoryError) as error:
        text = "the model's structure is damaged"
        raise ModelError(text, path=path, hint="export the model again") from error


class _Reader:
    """Goes through the operators once."""

    def __init__(self, file: OnnxFile) -> None:
        self.file = file
        self.nodes = expanded(file)
        self.ctx = Context(file)
        self.ctx.link(self.nodes)
        self.inputs = frozenset(interface.name for interface in file.inputs)
        self.named: set[int] = set()  # tensors of the network's interface

    def graph(self) -> Graph:
        """The whole network."""
        self._refuse_unknown()
        inputs = [self._input(interface) for interface in self.file.inputs]
        for node in self.nodes:
            self.ctx.build.index = node.index
            try:
                self._read(node)
            except BuildtoolError as error:
                raise error.at(operator=node.place) from error.__cause__
        self.ctx.build.index = -1
        outputs = [self._output(name) for name in self.file.outputs]
        return self.ctx.build.graph(inputs, outputs)

    def _refuse_unknown(self) -> None:
        """One message for all operators that there is no rule for."""
        kinds = {node.kind for node in self.nodes}
        constant = {"Constant", "QuantizeLinear", "DequantizeLinear", "Shape", "Size", *KINDS}
        unknown = [node for node in self.nodes if node.kind not in ONNX and node.kind not in constant]
        if not kinds & {"QuantizeLinear", "DequantizeLinear"}:
            text = "a float network: it has no QuantizeLinear and no DequantizeLinear"
            raise UnsupportedError(text, hint="quantise it to int8: onnxruntime.quantization.quantize_static")
        if not unknown:
            return
        alone = len(unknown) == 1
        raise together([_refusal(node, alone) for node in unknown])

    # ---- one operator --------------------------------------------------------------------------------

    def _read(self, node: Node) -> None:
        if not node.outputs:
            raise ModelError("has no output")
        for name in node.outputs:
            if name in self.ctx.values or name in self.file.initializers:
                raise ModelError("makes a tensor that is there already", tensor=shown(name))
        made = self._results(node)
        for value in made:
            if isinstance(value, (Constant, Quantized)) and value.data.base is None:
                self.ctx.build.spend(value.data.nbytes)
        self.ctx.values.update((n, v) for n, v in zip(node.outputs, made, strict=False) if n)

    def _results(self, node: Node) -> list[Value]:
        ctx = self.ctx
        if node.kind == "Constant":
            return [_constant(node)]
        if node.kind == "QuantizeLinear":
            return [self._quantize(node)]
        if node.kind == "DequantizeLinear":
            return [self._dequantize(node)]
        if node.kind in ("Shape", "Size"):
            return [self._shape(node)]
        read = [ctx.value(name) for name in node.inputs if name]
        if read and isinstance(read[0], Quantized):
            rest = [v.data for v in read[1:] if isinstance(v, Constant)]
            moved = move_quantized(node, read[0], rest) if len(rest) == len(read) - 1 else None
            if moved is not None:
                return [moved]
        constants = [v.data for v in read if isinstance(v, Constant)]
        if len(constants) == len(read):
            return [fold(node, constants)]
        if node.kind not in ONNX:
            raise UnsupportedError("an operator that is known for shapes only", hint=QUANTISE)
        made: list[Value] = load("graph.onnx", ONNX[node.kind].onnx[node.kind])(ctx, node)
        return made

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
        if isinstance(value, Places) or value.integers:
            raise ModelError("quantises what is quantised", tensor=shown(name))
        if name in self.inputs and not same_quantization(value.quant, quant):
            text, hint = "a network input that is quantised in two ways", "quantise it once"
            raise UnsupportedError(text, tensor=shown(name), hint=hint)
        made = ctx.build.requantized(value, quant, node.outputs[0])
        return Held(made.tensor, made.shape, made.layout, quant, integers=True)

    def _dequantize(self, node: Node) -> Value:
        ctx, name = self.ctx, node.input(0)
        value = ctx.value(name)
        if isinstance(value, Constant):
            return scales.dequantize_constant(ctx.parameters(node)[0], value.data, name)
        if not isinstance(value, Held) or not value.integers:
            raise ModelError("dequantises what is not quantised", tensor=shown(name))
        quant = ctx.quantization(node)
        if not same_quantization(value.quant, quant):
            text = "dequantised with another scale or zero point than it was quantised with"
            raise UnsupportedError(text, tensor=shown(name), hint="use the same on both sides")
        return Held(value.tensor, value.shape, value.layout, quant)

    def _shape(self, node: Node) -> Constant:
        value = self.ctx.value(node.input(0))
        shape = value.data.shape if isinstance(value, (Constant, Quantized)) else value.shape
        start, end = node.integer("start", 0), node.integer("end", len(shape))
        data: Array = np.array(shape[start:end], np.int64)
        return Constant(data if node.kind == "Shape" else np.array(math.prod(shape), np.int64))

    # ---- the interface -------------------------------------------------------------------------------

    def _input(self, interface: Interface) -> int:
        """Makes a network input: int8, images channels last."""
        ctx, name, shape = self.ctx, interface.name, interface.shape
        if name in ctx.values:
            raise ModelError("a network input twice", tensor=shown(name))
        quant = ctx.ahead(name)
        if quant is None:
            ctx.island(name)
        order = self._input_order(name, len(shape))
        tensor = ctx.build.activation(name, [shape[d] for d in order], quant)
        self.named.add(tensor)
        integers = interface.dtype != "float32"
        ctx.values[name] = Held(tensor, shape, canonical(shape, order), quant, integers)
        return tensor

    def _input_order(self, name: str, rank: int) -> tuple[int, ...]:
        """Images come channels last: all of 4 dimensions, but for those the file has so itself."""
        followed = self.ctx.following(name, _FOLLOWED)
        first = [node for _, node in followed if node.kind not in _FOLLOWED]  # once it is quantised
        if rank == 4:
            own = first and all(n.kind == "Transpose" and n.integers("perm") == _TO_NCHW for n in first)
            return (0, 1, 2, 3) if own else NHWC
        if rank == 3 and any(n.kind in _IMAGE_OPERATORS for n in first):
            return (0, 2, 1)
        return tuple(range(rank))

    def _output(self, name: str) -> int:
        """A network output: images channels last, anything else as the file has it."""
        ctx = self.ctx
        value = ctx.value(name)
        if isinstance(value, Pending):
            quant = ctx.ahead(name) or value.natural
            if quant is None:
                maker = ctx.makers.get(name)
                text, place = "a network output that is not quantised", maker.place if maker else ""
                raise UnsupportedError(text, tensor=shown(name), operator=place, hint=QUANTISE)
            value = ctx.settle(name, value, quant)
        if isinstance(value, Places):
            return value.tensor
        if not isinstance(value, Held):
            hint = "remove the output from the network"
            text = "a network output that does not depend on the input"
            raise UnsupportedError(text, tensor=shown(name), hint=hint)
        order = tuple(range(len(value.shape)))
        maker = ctx.origin(name, _FOLLOWED)
        ours = maker is not None and maker.kind == "Transpose" and maker.integers("perm") == NHWC
        if len(order) == 4 and not ours:  # unless the file itself ends channels last
            order = NHWC
        tensor = ctx.build.ordered(value, order)
        if tensor not in self.named:  # a network's outputs have the names that the file gives them
            self.named.add(tensor)
            ctx.build.rename(tensor, name)
        return tensor


def _refusal(node: Node, alone: bool) -> UnsupportedError:
    """The error for an operator without a rule; the nearest name is meant where it is the only one."""
    if node.kind in _DYNAMIC:
        hint = "quantise statically, with scales known beforehand"
        return UnsupportedError("it quantises while it runs", operator=node.place, hint=hint)
    hint = did_you_mean(node.kind, ONNX) if alone else "use one of " + ", ".join(sorted(ONNX))
    return UnsupportedError("the operator is not supported", operator=node.place, hint=hint)


def _constant(node: Node) -> Constant:
    """The operator Constant."""
    for name, value in node.attributes.items():
        if isinstance(value, np.ndarray):
            return Constant(value)
        if name in ("value_int", "value_ints"):
            return Constant(np.array(value, np.int64))
        if name in ("value_float", "value_floats"):
            return Constant(np.array(value, np.float32))
    raise UnsupportedError("a constant of that type")
