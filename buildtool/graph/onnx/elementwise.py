"""Reads elementwise operators: sums, products, Max and Min, whose operands broadcast, and activations."""

import math
from dataclasses import replace

import numpy as np

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.onnx import scales
from buildtool.graph.onnx.clamps import emit_clamp, join_clamps
from buildtool.graph.onnx.context import Context
from buildtool.graph.onnx.file import Array, Node
from buildtool.graph.onnx.folding import axis_of, broadcast_of, clip_attributes
from buildtool.graph.onnx.layout import place_in_memory
from buildtool.graph.onnx.pairs import combine, in_order, sum_or_product
from buildtool.graph.onnx.values import (
    NO_CLAMP,
    ActivationValue,
    Constant,
    Operand,
    Pending,
    Quantized,
    Value,
)
from buildtool.graph.onnx.weighted import scale_elements
from buildtool.graph.ops import ONNX
from buildtool.graph.types import (
    Activation,
    Attrs,
    GeluAttrs,
    LeakyReluAttrs,
    OpKind,
    Quantization,
    SoftmaxAttrs,
)


def elementwise(ctx: Context, node: Node) -> list[Value]:
    """Reads Add, Sub, Mul or Div. After an operator with weights, an Add of a constant becomes a bias."""
    kind = ONNX[node.kind].kind
    if kind is OpKind.ADD and not ctx.floats:
        biased = _add_bias(ctx, node)
        if biased is not None:
            return [biased]
    scaled = None if ctx.floats else _scale_by_floats(ctx, node, kind)
    if scaled is not None:
        return [scaled]
    return [sum_or_product(ctx, kind, ctx.operand(node, 0), ctx.operand(node, 1))]


def divide(ctx: Context, node: Node) -> list[Value]:
    """Reads Div. A Div by a constant number becomes a product with the number's reciprocal."""
    divisor = ctx.value(node.input(1))
    if ctx.floats or not isinstance(divisor, (Constant, Quantized)) or divisor.data.size != 1:
        return elementwise(ctx, node)
    value = float(divisor.real.reshape(-1)[0])
    if value == 0 or not math.isfinite(1 / value):
        raise ModelError("a Div by zero")
    sign = np.full((1,), int(math.copysign(1, value)), np.int8)
    factor = Quantized(sign, Quantization((float(np.float32(abs(1 / value))),), (0,)))
    return [sum_or_product(ctx, OpKind.MUL, ctx.operand(node, 0), factor)]


def _scale_by_floats(ctx: Context, node: Node, kind: OpKind) -> Pending | None:
    """Returns an operator that multiplies a tensor by unquantised float factors, or adds float offsets.

    It is nearly as exact as floats (see `scale_elements`). Returns None for other operands.
    """
    values = [ctx.value(name) for name in node.inputs]
    floats = [
        v.data for v in values if isinstance(v, Constant) and v.data.dtype.kind == "f" and v.data.size > 1
    ]
    if len(values) != 2 or len(floats) != 1 or any(isinstance(v, Quantized) for v in values):
        return None
    ((data,), first) = floats, isinstance(values[0], Constant)
    x = ctx.held(node, int(first))
    if kind is OpKind.DIV and first:
        raise UnsupportedError(
            "floats that are not quantised, divided by a tensor", hint=scales.QUANTISE_CONSTANT
        )
    if broadcast_of(x.shape, data.shape) != x.shape:
        text = f"floats of shape {list(data.shape)} and a tensor of shape {list(x.shape)}"
        raise UnsupportedError(text, hint=scales.QUANTISE_CONSTANT)
    numbers = data.astype(np.float64).reshape((1,) * (len(x.shape) - data.ndim) + data.shape)
    if not np.isfinite(numbers).all() or (kind is OpKind.DIV and not numbers.all()):
        raise ModelError("a constant operand that is not finite, or a Div by zero")
    ones, zeros = np.ones_like(numbers), np.zeros_like(numbers)
    factor, shift = {
        OpKind.ADD: (ones, numbers),
        OpKind.SUB: (-ones, numbers) if first else (ones, -numbers),
        OpKind.MUL: (numbers, zeros),
        OpKind.DIV: (1 / np.where(numbers == 0, 1, numbers), zeros),
    }[kind]
    return scale_elements(ctx, x, factor, shift)


def _add_bias(ctx: Context, node: Node) -> Pending | None:
    """Returns the layer before an Add with the Add's constant as its bias, or None if it cannot be a bias.

    A bias is a constant per output channel that is added to a pending convolution or dense layer.
    """
    if len(node.inputs) != 2:
        return None
    for name, other in (node.inputs, node.inputs[::-1]):
        before, constant = ctx.values.get(name), ctx.value(other)
        if not isinstance(before, Pending) or not isinstance(constant, (Constant, Quantized)):
            continue
        if before.add_bias is None:
            continue
        rank, shape = len(before.shape), constant.data.shape
        allowed = [1] * rank
        allowed[before.channel] = before.shape[before.channel]
        sizes = [1] * (rank - len(shape)) + [*shape]
        fits = len(sizes) == rank and all(n in (1, m) for n, m in zip(sizes, allowed, strict=True))
        if fits and ctx.has_one_reader(name) and before.clamp == NO_CLAMP:
            flat = constant.data.reshape(-1)
            if isinstance(constant, Constant):
                return before.add_bias(Constant(flat))
            return before.add_bias(Quantized(flat, replace(constant.quant, axis=0)))
    return None


def extreme(ctx: Context, node: Node) -> list[Value]:
    """Reads Max or Min. All operands get the result's quantisation, so the kernel can compare their bytes."""
    kind = ONNX[node.kind].kind
    operands: list[ActivationValue | Array] = []
    for position, name in enumerate(node.inputs):
        value = ctx.value(name)
        if isinstance(value, Quantized) and len(value.quant.scales) > 1:
            raise UnsupportedError(f"an operand of {node.kind} with one scale per channel")
        operands.append(value.real if isinstance(value, (Constant, Quantized)) else ctx.held(node, position))
    held = [x for x in operands if isinstance(x, ActivationValue)]
    if not held:
        raise UnsupportedError(f"a {node.kind} of constants", hint="fold constants before exporting")
    if len(operands) == 1:
        return [held[0]]
    constants = [x for x in operands if not isinstance(x, ActivationValue)]
    shape = broadcast_of(*(x.shape for x in operands))

    def quantise(numbers: Array, out: Quantization | None) -> Quantized | Constant:
        if out is None:
            return Constant(numbers.astype(np.float32))
        # Rounds and saturates as QuantizeLinear does. Infinite numbers become the ends of the range.
        steps = np.clip(np.nan_to_num(numbers / out.scale, posinf=512, neginf=-512), -512, 512)
        data = np.clip(np.round(steps) + out.zero_point, -128, 127).astype(np.int8)
        return Quantized(data.reshape(numbers.shape), out)

    def make(out: Quantization | None, _activation: Activation, name: str) -> ActivationValue:
        result, *rest = (ctx.build.requantize(x, out, f"{name}/operand{i}") for i, x in enumerate(held))
        others: list[Operand] = [*rest, *(quantise(x, out) for x in constants)]
        for i, other in enumerate(others):
            last = i == len(others) - 1
            pending = combine(ctx, kind, result, other)
            result = pending.make(out, Activation.NONE, name if last else f"{name}/part{i}")
        return result

    return [Pending(shape, make)]


def sum_operands(ctx: Context, node: Node) -> list[Value]:
    """Reads a Sum of one or two operands. In float32 it may have any number, added from left to right."""
    if len(node.inputs) == 1:
        return [ctx.held(node)]
    if ctx.floats:
        total = sum_or_product(ctx, OpKind.ADD, ctx.operand(node, 0), ctx.operand(node, 1))
        for i in range(2, len(node.inputs)):
            part = total.make(None, Activation.NONE, f"{node.outputs[0]}/part{i}")
            total = sum_or_product(ctx, OpKind.ADD, part, ctx.operand(node, i))
        return [total]
    if len(node.inputs) > 2:
        hint = "use Adds of two tensors, and quantise the result of each"
        raise UnsupportedError("a Sum of more than two tensors", hint=hint)
    return elementwise(ctx, node)


def negate(ctx: Context, node: Node) -> list[Value]:
    """Reads Neg as the product with -1."""
    return [sum_or_product(ctx, OpKind.MUL, ctx.held(node), ctx.number(-1))]


def reciprocal(ctx: Context, node: Node) -> list[Value]:
    """Reads Reciprocal as 1 divided by the operand."""
    return [sum_or_product(ctx, OpKind.DIV, ctx.number(1), ctx.held(node))]


# ---- activations -------------------------------------------------------------------------------------


def clamp(ctx: Context, node: Node) -> list[Value]:
    """Reads Relu or Clip. The operator before it clamps instead, if no other operator reads its result."""
    name, limits = node.input(0), (0.0, math.inf)
    if node.kind == "Clip":
        low, high = clip_attributes(node)
        low = ctx.scalar(node, 1, "the clip's limit") if node.input(1) else low
        high = ctx.scalar(node, 2, "the clip's limit") if node.input(2) else high
        if math.isnan(low) or math.isnan(high) or low > high:
            raise ModelError(f"a Clip to {low:g}..{high:g}")
        limits = (low, high)
    before = ctx.value(name)
    if isinstance(before, Pending) and ctx.has_one_reader(name) and not ctx.floats:
        return [replace(before, clamp=join_clamps(before.clamp, limits), add_bias=None, scale_channels=None)]
    x = ctx.held(node, integers=True)
    if x.integers:  # only a Clip to the whole range of the type is allowed
        types = {ctx.array(node, i, "the clip's limit").dtype for i in (1, 2) if node.input(i)}
        if node.kind == "Clip" and len(types) == 1:
            bounds = np.iinfo(types.pop())
            if limits[0] <= bounds.min and limits[1] >= bounds.max:
                return [x]
        text = f"a {node.kind} of quantised integers"
        raise UnsupportedError(text, hint="clip before QuantizeLinear (Brevitas: no narrow_range)")

    def make(out: Quantization | None, _activation: Activation, result: str) -> ActivationValue:
        return emit_clamp(ctx.build, x, limits, out, result)

    return [Pending(x.shape, make)]


def unary(ctx: Context, node: Node) -> list[Value]:
    """Reads an operator with one operand that keeps the shape, such as Sigmoid, LeakyRelu or Gelu."""
    attrs: Attrs | None = None
    if node.kind == "LeakyRelu":
        attrs = LeakyReluAttrs(float(np.float32(node.number("alpha", 0.01))))
    elif node.kind == "Gelu":
        approximation = node.text("approximate", "none")
        if approximation not in ("none", "tanh"):
            raise ModelError(f"a Gelu with the approximation '{approximation}'")
        attrs = GeluAttrs(approximation == "tanh")
    elif node.kind == "Elu" and (alpha := node.number("alpha", 1.0)) != 1:  # LiteRT's ELU has no alpha
        raise UnsupportedError(f"an Elu with alpha {alpha:g}", hint="alpha must be 1")
    return [look_up(ctx, ONNX[node.kind].kind, ctx.held(node), attrs)]


def hard_sigmoid(ctx: Context, node: Node) -> list[Value]:
    """Reads HardSigmoid, min(max(alpha * x + beta, 0), 1), as alpha * (x + beta / alpha).

    The quantised sum has exactly the range 0 to 1 / alpha, so it saturates where the function is 0 or 1.
    In float32 it is computed as ONNX defines it.
    """
    x, alpha, beta = ctx.held(node), node.number("alpha", 0.2), node.number("beta", 0.5)
    if ctx.floats:
        product = sum_or_product(ctx, OpKind.MUL, x, ctx.number(alpha))
        x = product.make(None, Activation.NONE, f"{node.outputs[0]}/product")
        return [replace(sum_or_product(ctx, OpKind.ADD, x, ctx.number(beta)), clamp=(0.0, 1.0), fuses=False)]
    if not (alpha > 0 and math.isfinite(1 / alpha) and math.isfinite(beta / alpha)):
        raise UnsupportedError(f"a HardSigmoid with alpha {alpha:g}", hint="alpha must be positive")
    middle = Quantization((float(np.float32(1 / (255 * alpha))),), (-128,))
    offset, factor = (scales.exact_scalar(np.float32(v)) for v in (beta / alpha, alpha))

    def make(out: Quantization | None, _activation: Activation, name: str) -> ActivationValue:
        total = sum_or_product(ctx, OpKind.ADD, x, offset).make(middle, Activation.NONE, f"{name}/sum")
        return sum_or_product(ctx, OpKind.MUL, total, factor).make(out, Activation.NONE, name)

    return [Pending(x.shape, make)]


def multiply(ctx: Context, node: Node) -> list[Value]:
    """Reads Mul. x * HardSigmoid(x) becomes HARD_SWISH, even where the file quantises the second factor."""
    pairs = (node.inputs, node.inputs[::-1]) if len(node.inputs) == 2 and not ctx.floats else ()
    for name, other in pairs:
        gate = ctx.origin(other, ("QuantizeLinear", "DequantizeLinear"))
        x = ctx.values.get(name)
        if gate is None or gate.kind != "HardSigmoid" or not isinstance(x, ActivationValue) or x.integers:
            continue
        source = ctx.values.get(gate.input(0))
        same = isinstance(source, ActivationValue) and source.tensor == x.tensor and source.shape == x.shape
        usual = abs(gate.number("alpha", 0.2) * 6 - 1) < 1e-6 and gate.number("beta", 0.5) == 0.5
        if same and usual:
            return [look_up(ctx, OpKind.HARD_SWISH, x)]
    return elementwise(ctx, node)


def prelu(ctx: Context, node: Node) -> list[Value]:
    """Reads PRelu. Float slopes are rounded to int8; if they are all equal, the operator is a LEAKY_RELU."""
    x, slope = ctx.held(node), ctx.value(node.input(1))
    if isinstance(slope, Constant) and slope.data.dtype.kind == "f" and slope.data.size:
        if np.unique(slope.data).size == 1:
            alpha = float(np.float32(slope.data.reshape(-1)[0]))
            return [look_up(ctx, OpKind.LEAKY_RELU, x, LeakyReluAttrs(alpha))]
        operand: Operand = (
            ctx.operand(node, 1) if ctx.floats else scales.round_constants(slope.data, node.input(1))
        )
    else:
        operand = ctx.operand(node, 1)
    if isinstance(operand, ActivationValue):
        text, hint = "a PRelu whose slopes are not constant", "slopes must be constant"
        raise UnsupportedError(text, hint=hint)
    if operand.data.ndim > len(x.shape):
        shape = list(operand.data.shape)
        raise ModelError(f"slopes of shape {shape} for an input of shape {list(x.shape)}")
    tensor, order = ctx.build.without_move(x)
    tensors = [tensor, in_order(ctx, operand, order)]
    return [ctx.pending(OpKind.PRELU, tensors, x.shape, *place_in_memory(x.shape, order))]


def look_up(ctx: Context, kind: OpKind, x: ActivationValue, attrs: Attrs | None = None) -> Pending:
    """Returns an operator of kind `kind` on each element of `x`. The result has the layout of `x`."""
    return ctx.pending(kind, [x.tensor], x.shape, ctx.build.tensors[x.tensor].shape, x.layout, attrs)


def softmax(ctx: Context, node: Node) -> list[Value]:
    """Reads Softmax or LogSoftmax over any dimension. In memory, that dimension is the result's last one."""
    kind = ONNX[node.kind].kind
    attrs = SoftmaxAttrs() if kind is OpKind.SOFTMAX else Attrs()
    x = ctx.held(node)
    old = node.integer("opset", ctx.file.opset) < 13
    axis = axis_of(node, len(x.shape), 1 if old else -1)
    if old and math.prod(x.shape[axis + 1 :]) != 1:  # before opset 13 it runs over these dimensions too
        text = f"a {node.kind} over several dimensions (opset below 13)"
        hint = "convert the model: onnx.version_converter.convert_version(model, 17)"
        raise UnsupportedError(text, hint=hint)
    _, order = ctx.build.without_move(x)
    order = (*(d for d in order if d != axis), axis)
    tensor = ctx.build.in_file_order(x, order)
    return [ctx.pending(kind, [tensor], x.shape, *place_in_memory(x.shape, order), attrs)]
