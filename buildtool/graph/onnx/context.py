"""The file as the function that reads an operator sees it: the operands and their quantisations."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.onnx import scales
from buildtool.graph.onnx.build import Builder
from buildtool.graph.onnx.clamps import emit_clamp
from buildtool.graph.onnx.file import DTYPES, Array, Node, OnnxFile, printable_name
from buildtool.graph.onnx.layout import Layout
from buildtool.graph.onnx.values import (
    ActivationValue,
    Constant,
    IndexOutput,
    Operand,
    Pending,
    Quantized,
    Value,
)
from buildtool.graph.ops import DEFS
from buildtool.graph.quantrules import same_quantization
from buildtool.graph.types import Activation, Attrs, ElementwiseAttrs, OpKind, Quantization

_MOVES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "MaxPool", "Slice", "Split", "Concat")
_SHIFT = {"int8": 0, "uint8": 128}  # subtracted from the integers to get int8
MOST_AHEAD = 256  # upper limit for the tensor names that one search visits
QUANTISE = (
    "quantise it too: put a QuantizeLinear and a DequantizeLinear behind the operator that makes it "
    "(onnxruntime.quantization.quantize_static does so for the operator types that you give it)"
)
# These operators commute with quantisation: they move, pick or clamp values.
COMMUTES = frozenset(
    """Reshape Flatten Squeeze Unsqueeze Transpose Identity Dropout MaxPool GlobalMaxPool Slice Split Concat
    Relu Clip Cast DepthToSpace SpaceToDepth Gather Tile Expand ReduceMax ReduceMin""".split()
)
_NEAR = 0.001  # relative difference that TFLite allows between an output's scale and the kernel's own


class FloatOperand(Exception):
    """The operator cannot be read as one of integers: an operand is float32, or it has no integer form."""


class Context:
    """The network while it is read: the values known so far, by tensor name, and the graph built so far.

    While `floats` is true, the operator that is being read computes in float32: its operands are dequantised,
    and its result has no quantisation. `read_in_floats(tensor name)` reads a pending operator again in this
    way.
    """

    def __init__(
        self, file: OnnxFile, read_in_floats: Callable[[str], ActivationValue] | None = None
    ) -> None:
        self.file = file
        self.floats = False
        self.read_in_floats = read_in_floats or self.refuse_float
        self.build = Builder(file.name)
        self.values: dict[str, Value] = {}
        self.makers: dict[str, Node] = {}
        self.readers: dict[str, list[Node]] = {}
        self.outputs = frozenset(file.outputs)
        self.cast_inputs: set[str] = set()  # network inputs whose stored integers a Cast makes floats

    def link(self, nodes: tuple[Node, ...]) -> None:
        """Notes which operators write and read each tensor."""
        for node in nodes:
            for name in dict.fromkeys(node.inputs):
                self.readers.setdefault(name, []).append(node)
            self.makers.update(dict.fromkeys(node.outputs, node))

    def value(self, name: str) -> Value:
        """Returns the value of the tensor `name`. Raises ModelError if no earlier operator writes it."""
        if not name:
            raise ModelError("an operand is missing")
        if name not in self.values:
            if name not in self.file.initializers:
                raise ModelError("reads a tensor that no earlier operator makes", tensor=printable_name(name))
            self.values[name] = Constant(self.file.constant(name))
        return self.values[name]

    def has_one_reader(self, name: str) -> bool:
        """Whether exactly one operator reads the tensor, and the tensor is not a network output."""
        return len(self.readers.get(name, ())) == 1 and name not in self.outputs

    def origin(self, name: str, through: Collection[str]) -> Node | None:
        """Returns the operator that writes a tensor. Operators of the kinds `through` are skipped.

        Returns None for a network input, and where the operator is more than MOST_AHEAD steps back.
        """
        maker = self.makers.get(name)
        for _ in range(MOST_AHEAD):
            if maker is None or maker.kind not in through:
                return maker
            maker = self.makers.get(maker.input(0))
        return None

    def array(self, node: Node, position: int, what: str) -> Array:
        """Returns the numbers of a constant operand that is not quantised. `what` names it in errors."""
        value = self.value(node.input(position))
        if not isinstance(value, Constant):
            hint = "export with fixed shapes, or simplify the model (onnxsim)"
            raise UnsupportedError(
                f"{what} is not constant", tensor=printable_name(node.input(position)), hint=hint
            )
        return value.data

    def ints(
        self, node: Node, position: int, what: str, default: tuple[int, ...] | None = None
    ) -> tuple[int, ...]:
        """Returns the integers of a constant operand. An operand with a `default` may be absent."""
        if default is not None and not node.input(position):
            return default
        data = self.array(node, position, what)
        if data.dtype.kind not in "iu" or data.size > 4096:
            raise ModelError(f"{what} is not a list of integers", tensor=printable_name(node.input(position)))
        return tuple(int(v) for v in data.reshape(-1))

    def scalar(self, node: Node, position: int, what: str) -> float:
        """Returns a constant operand of one number, quantised or not, as a float."""
        value = self.value(node.input(position))
        if isinstance(value, Quantized) and value.data.size == 1:
            return float(value.real.reshape(-1)[0])
        data = self.array(node, position, what)
        if data.size != 1 or data.dtype.kind not in "fiu":
            raise ModelError(f"{what} is not a number", tensor=printable_name(node.input(position)))
        return float(data.reshape(-1)[0])

    # ---- operands: activations, weights, or either ---------------------------------------------------

    def held(self, node: Node, position: int = 0, *, integers: bool = False) -> ActivationValue:
        """Returns an operand that is an activation. Emits the operator that writes it if that is pending.

        `integers`: whether `node` also accepts quantised integers that the file does not dequantise. Raises
        FloatOperand if the operand is not quantised, unless `node` computes in float32.
        """
        name = node.input(position)
        value = self.value(name)
        if isinstance(value, Pending):
            quant = self.later_quantization(name)
            value = self.read_in_floats(name) if quant is None else self.settle(name, value, quant)
        if isinstance(value, IndexOutput):
            text = "an operator reads the result of an ArgMax or ArgMin"
            raise UnsupportedError(text, tensor=printable_name(name), hint="make it a network output")
        if not isinstance(value, ActivationValue):
            text = "a constant where the operator needs an activation"
            raise UnsupportedError(text, tensor=printable_name(name), hint="fold constants before exporting")
        if value.integers and (self.floats or not integers):
            text = "computes on quantised integers without a DequantizeLinear before it"
            raise UnsupportedError(text, tensor=printable_name(name), hint="export in QDQ format")
        if self.floats:
            return self.build.dequantize(value)
        if value.is_float:
            raise FloatOperand
        return value

    def operand(self, node: Node, position: int) -> Operand:
        """Returns an operand that is an activation or an int8 constant. A float scalar becomes int8.

        Where `node` computes in float32, the operand is float32.
        """
        name = node.input(position)
        value = self.value(name)
        if self.floats and isinstance(value, (Constant, Quantized)):
            return scales.to_floats(value, name)
        if isinstance(value, Quantized):
            if value.data.dtype != np.int8 or len(value.quant.scales) != 1:
                text = "a constant operand that is not int8 with one scale"
                hint = "quantise it as an activation, with one scale"
                raise UnsupportedError(text, tensor=printable_name(name), hint=hint)
            return value
        if isinstance(value, Constant):
            return scales.exact_scalar(value.data, name)
        return self.held(node, position)

    def number(self, value: float) -> Quantized | Constant:
        """Returns a number as an operand: an exact int8 constant; while `floats` is true, a float32 one."""
        return (
            Constant(np.full((), value, np.float32))
            if self.floats
            else scales.exact_scalar(np.float32(value))
        )

    def weights(self, node: Node, position: int) -> Quantized | Constant:
        """Returns a filter: an int8 constant with at most one zero point, or floats.

        Refuses an int8 filter where the operator's result or input is not quantised.
        """
        name = node.input(position)
        value = self.value(name)
        if self.floats and isinstance(value, Constant):
            return scales.to_floats(value, name)
        if self.floats and isinstance(value, Quantized):
            before = self.value(node.input(0))
            is_float = isinstance(before, ActivationValue) and before.is_float
            self.refuse_float(node.input(0) if is_float else node.outputs[0])
        if isinstance(value, Constant):
            text = "weights that are not quantised"
            hint = "quantise weights to int8: put a DequantizeLinear between them and the operator"
            raise UnsupportedError(text, tensor=printable_name(name), hint=hint)
        if not isinstance(value, Quantized):
            hint = "store the weights as constants in the model"
            raise UnsupportedError("weights that are not constant", tensor=printable_name(name), hint=hint)
        return scales.centre(value, name)

    def parameters(self, node: Node) -> tuple[Quantization, str]:
        """Returns (quantisation, integer type) of a QuantizeLinear or DequantizeLinear, as in the file.

        The type is "" for a DequantizeLinear without a zero point.
        """
        scale = self.array(node, 1, "the scale")
        if node.integer("block_size", 0):
            hint = "quantise per tensor, or per output channel"
            raise UnsupportedError("blockwise quantisation", hint=hint)
        dtype = DTYPES.get(node.integer("output_dtype", 0), "") or "uint8"
        points = np.zeros(scale.shape, np.int64)
        if node.input(2):
            points = self.array(node, 2, "the zero point")
            dtype = points.dtype.name
        elif node.kind == "DequantizeLinear":
            dtype = ""
        if scale.dtype.kind != "f" or scale.ndim > 1 or scale.size != points.size or not scale.size:
            sizes = f"scales of shape {list(scale.shape)} and zero points of shape {list(points.shape)}"
            raise ModelError(f"{sizes} do not fit together")
        with np.errstate(over="ignore"):  # a double beyond float32 becomes infinite, which is refused
            reals = scale.reshape(-1).astype(np.float32)
        if not np.isfinite(reals).all():
            raise ModelError("a scale is not finite", tensor=printable_name(node.input(1)))
        if points.dtype.kind not in "iu":
            text = f"a zero point of {points.dtype}: it must be an integer"
            raise ModelError(text, tensor=printable_name(node.input(2)))
        zeros = tuple(int(z) for z in points.reshape(-1))
        return Quantization(tuple(float(s) for s in reals), zeros, node.integer("axis", 1)), dtype

    def quantization(self, node: Node) -> Quantization:
        """Returns the int8 quantisation that a node gives an activation. A uint8 one becomes int8."""
        quant, dtype = self.parameters(node)
        if not dtype:  # a DequantizeLinear without a zero point has the type of its input
            types = {interface.name: interface.dtype for interface in self.file.inputs}
            maker = self.origin(node.input(0), _MOVES)
            if node.input(0) in types:
                dtype = types[node.input(0)]
            elif maker is not None and maker.kind == "QuantizeLinear":
                dtype = self.parameters(maker)[1]
            else:
                dtype = "uint8"
        if len(quant.scales) != 1:
            text = "an activation quantised per channel"
            hint = "quantise activations per tensor (weights may be per channel)"
            raise UnsupportedError(text, tensor=printable_name(node.input(0)), hint=hint)
        if quant.scale <= 0:
            raise ModelError("a scale is not positive", tensor=printable_name(node.input(1)))
        if dtype not in _SHIFT:
            hint = "quantise activations to int8 or uint8"
            raise UnsupportedError(
                f"activations of type {dtype}", tensor=printable_name(node.input(0)), hint=hint
            )
        return Quantization(quant.scales, (quant.zero_point - _SHIFT[dtype],))

    # ---- quantisation by later operators -------------------------------------------------------------

    def following(self, name: str, through: Collection[str]) -> Iterator[tuple[str, Node]]:
        """Yields (tensor, operator) for each operator that reads the tensor `name`.

        For each reader of the kinds `through`, it also yields the readers of its results, and so on.
        """
        seen, queue = {name}, [name]
        for current in queue:
            if len(seen) > MOST_AHEAD:
                return
            for node in self.readers.get(current, ()):
                yield current, node
                if node.kind in through:
                    names = [n for n in node.outputs if n not in seen]
                    seen.update(names)
                    queue += names

    def later_quantization(self, name: str) -> Quantization | None:
        """Returns the quantisation that a later QuantizeLinear or DequantizeLinear gives a tensor, or None.

        Only operators that commute with quantisation may lie in between.
        """
        for current, node in self.following(name, COMMUTES):
            if node.kind in ("QuantizeLinear", "DequantizeLinear") and node.input(0) == current:
                return self.quantization(node)
        return None

    def stored_quantization(self, name: str, dtype: str) -> Quantization | None:
        """Returns the quantisation of an integer network input that only Casts read; None for other inputs.

        The network computes with the stored numbers, so the scale is 1. `dtype`: the input's type in the
        file.
        """
        if any(node.kind != "Cast" for node in self.readers.get(name, ())) or name not in self.readers:
            return None
        self.cast_inputs.add(name)
        return Quantization((1.0,), (-_SHIFT[dtype],))

    def demand_floats(self) -> None:
        """Raises FloatOperand unless the operator that is being read computes in float32."""
        if not self.floats:
            raise FloatOperand

    def is_only_quantized(self, name: str) -> bool:
        """Whether no operator does more with the tensor's floats than to quantise them.

        Operators that commute with quantisation may lie between the tensor and each QuantizeLinear.
        """
        allowed = COMMUTES | {"QuantizeLinear", "DequantizeLinear", "Shape", "Size"}
        return all(node.kind in allowed for _, node in self.following(name, COMMUTES))

    def refuse_float(self, name: str) -> NoReturn:
        """Refuses a float value that is not quantised."""
        maker = self.makers.get(name)
        reader = next(iter(self.readers.get(name, ())), None)
        tensor = f"the float result of {maker.place}" if maker else "the float network input"
        clause = f", which {reader.place} reads," if reader else ""
        text = f"{tensor}{clause} is not quantised"
        at = reader or maker
        place = at.place if at else ""
        raise UnsupportedError(text, tensor=printable_name(name), operator=place, hint=QUANTISE)

    # ---- operators whose result is not quantised yet -------------------------------------------------

    def pending(
        self,
        kind: OpKind,
        tensors: Sequence[int],
        shape: Sequence[int],
        memory: Sequence[int],
        layout: Layout,
        attrs: Attrs | None = None,
        own: Quantization | None = None,
    ) -> Pending:
        """Returns an operator whose output quantisation is not known yet.

        `tensors`: the operands.
        `shape`: the result's shape in the file.
        `memory` and `layout`: the result's shape, and the order of its elements, in memory.
        `attrs`: the attributes. If they are ElementwiseAttrs, the operator can fuse an activation.
        `own`: the output quantisation of a kernel whose output has its input's quantisation; None for others.

        Some other kernels demand a fixed output quantisation. If the result needs another quantisation than
        the kernel's, a QUANTIZE follows. After a kernel with a fixed quantisation, `Builder.before_rounding`
        returns the result before this QUANTIZE.
        """
        demanded = DEFS[kind].output

        def make(out: Quantization | None, activation: Activation, name: str) -> ActivationValue:
            fused = replace(attrs, activation=activation) if isinstance(attrs, ElementwiseAttrs) else attrs
            quant = own or out
            if out is not None and own is None and demanded is not None:
                is_near = abs(out.scale - demanded.scale) <= _NEAR * demanded.scale
                quant = out if is_near and out.zero_point == demanded.zero_point else demanded
            inner = name if same_quantization(quant, out) else f"{name}/kernel"
            tensor = self.build.make(kind, tensors, inner, memory, quant, fused)
            held = ActivationValue(tensor, tuple(shape), layout, quant)
            return self.build.requantize(held, out, name, remember=demanded is not None)

        return Pending(tuple(shape), make, fuses=isinstance(attrs, ElementwiseAttrs), demanded_quant=demanded)

    # ---- emitting pending operators -----------------------------------------------------------------

    def settle(self, name: str, pending: Pending, quant: Quantization | None) -> ActivationValue:
        """Emits a pending operator and returns its result, which becomes the value of `name`."""
        with self.in_floats(quant is None):
            activation = scales.activation(pending.clamp, quant)
            if activation is not None and (pending.fuses or activation is Activation.NONE):
                held = pending.make(quant, activation, name)
            else:
                before = pending.make(quant, Activation.NONE, f"{name}/unclamped")
                held = emit_clamp(self.build, before, pending.clamp, quant, name)
        self.values[name] = held
        return held

    @contextlib.contextmanager
    def in_floats(self, floats: bool = True) -> Iterator[None]:
        """Sets `floats` while an operator is read or emitted."""
        before, self.floats = self.floats, floats
        try:
            yield
        finally:
            self.floats = before
