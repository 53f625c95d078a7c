"""Writes a graph as a QDQ ONNX model (NCHW), from the same integers.

    model = export(graph, unsigned=True, opset=17)      # ModelProto; names are the tensors'
    outputs = evaluate(model, graph, inputs)            # onnx's own float reference, as int8, channels last

Every activation goes through QuantizeLinear and DequantizeLinear. Raises NotExpressible where ONNX has no
such operator. `style` chooses between equivalent forms.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from buildtool.graph import types as g
from buildtool.graph.types import Activation, DType, OpKind

NCHW, NHWC = (0, 3, 1, 2), (0, 2, 3, 1)
_DIMS = {0: 0, 1: 2, 2: 3, 3: 1}  # our dimension -> the file's


class NotExpressible(Exception):
    """ONNX has no such operator."""


@dataclass(frozen=True)
class Style:
    """The form of a file.

    `unsigned`: uint8 activations. `quantised_edges`: integers at the network's inputs and outputs.
    `float_bias`, `float_weights`: constants as floats (weights with their own QuantizeLinear).
    `matmul`: dense layers as MatMul and Add. `flat`: a reshape to a matrix is a Flatten of NCHW; the next
    weights are permuted.
    """

    opset: int = 17
    unsigned: bool = False
    quantised_edges: bool = False
    float_bias: bool = False
    float_weights: bool = False
    matmul: bool = False
    flat: bool = False


def export(graph, style=None):
    return _Exporter(graph, style or Style()).model()


def evaluate(model, graph, inputs):
    """Returns the outputs of onnx.reference in the graph's form: int8 (or float), channels last.

    Needs an opset from 19 on: onnx.reference has no older QuantizeLinear.
    """
    from onnx.reference import ReferenceEvaluator

    feeds = {}
    for value, t, array in zip(model.graph.input, graph.inputs, inputs, strict=True):
        feeds[value.name] = _to_file(graph.tensors[t], array, value.type.tensor_type.elem_type)
    outputs = ReferenceEvaluator(model).run(None, feeds)
    return [from_file(graph.tensors[t], a) for t, a in zip(graph.outputs, outputs, strict=True)]


def _to_file(tensor, array, kind):
    return stored(tensor, array.transpose(NCHW) if array.ndim == 4 else array, kind)


def stored(tensor, array, kind):
    """Converts our values of a tensor to the file's type."""
    if kind == TensorProto.FLOAT and tensor.quant is not None:
        return (array.astype(np.float32) - tensor.quant.zero_point) * np.float32(tensor.quant.scale)
    return (array.view(np.uint8) ^ 128) if kind == TensorProto.UINT8 and array.dtype == np.int8 else array


def from_file(tensor, array):
    """Converts a value of the file's network to int8, channels last."""
    if array.dtype == np.float32 and tensor.quant is not None:
        steps = np.rint(array.astype(np.float64) / tensor.quant.scale) + tensor.quant.zero_point
        array = np.clip(steps, -128, 127).astype(np.int8)
    elif array.dtype == np.uint8:
        array = (array ^ 128).view(np.int8)
    return array.transpose(NHWC) if array.ndim == 4 else array


class _Exporter:
    def __init__(self, graph, style):
        self.graph, self.style = graph, style
        self.nodes = []
        self.constants = {}
        self.floats = {}  # tensor -> its name as floats
        self.stored = {}  # tensor -> its name as integers
        self.flat = set()  # matrices whose rows are in the file's order
        self.fresh = 0

    def model(self):
        inputs = [self._input(t) for t in self.graph.inputs]
        for op in self.graph.ops:
            _RULES[op.kind](self, op)
        outputs = [self._output(t) for t in self.graph.outputs]
        graph = helper.make_graph(self.nodes, "net", inputs, outputs, list(self.constants.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.style.opset)])
        model.ir_version = 9
        return model

    # ---- names -------------------------------------------------------------------------------------

    def name(self, role):
        self.fresh += 1
        return f"{role}_{self.fresh}"

    def tensor(self, t):
        return self.graph.tensors[t]

    def const(self, array, role="c"):
        name = self.name(role)
        self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def ints(self, values):
        return self.const(np.array(values, np.int64))

    def node(self, kind, inputs, out=None, **attributes):
        out = out or self.name(kind.lower())
        self.nodes.append(helper.make_node(kind, list(inputs), [out], **attributes))
        return out

    # ---- quantisation --------------------------------------------------------------------------------

    def _params(self, t):
        quant = self.tensor(t).quant
        zero = quant.zero_point + (128 if self.style.unsigned else 0)
        dtype = np.uint8 if self.style.unsigned else np.int8
        return self.const(np.float32(quant.scale), "scale"), self.const(np.array(zero, dtype), "zero")

    def quantized(self, t, name):
        """Quantises and dequantises tensor t. `name`: its float value."""
        params = self._params(t)
        self.stored[t] = self.node("QuantizeLinear", [name, *params], f"q{t}")
        self.floats[t] = self.node("DequantizeLinear", [self.stored[t], *params], f"f{t}")

    def _info(self, t, name, kind):
        shape = self.tensor(t).shape
        shape = [shape[i] for i in NCHW] if len(shape) == 4 else list(shape)
        return helper.make_tensor_value_info(name, kind, shape)

    def _input(self, t):
        if self.tensor(t).dtype is DType.FLOAT32:
            self.floats[t] = f"x{t}"
            return self._info(t, f"x{t}", TensorProto.FLOAT)
        if not self.style.quantised_edges:
            self.quantized(t, f"x{t}")
            return self._info(t, f"x{t}", TensorProto.FLOAT)
        self.stored[t] = f"x{t}"
        self.floats[t] = self.node("DequantizeLinear", [f"x{t}", *self._params(t)], f"f{t}")
        return self._info(t, f"x{t}", TensorProto.UINT8 if self.style.unsigned else TensorProto.INT8)

    def _output(self, t):
        if self.style.quantised_edges and t in self.stored:
            kind = TensorProto.UINT8 if self.style.unsigned else TensorProto.INT8
            return self._info(t, self.node("Identity", [self.stored[t]]), kind)
        return self._info(t, self.node("Identity", [self.floats[t]]), TensorProto.FLOAT)

    # ---- orders --------------------------------------------------------------------------------------

    def value(self, t, rank=0):
        """Returns tensor t as floats. `rank` 4: as an image, with dimensions of 1 in front."""
        tensor = self.tensor(t)
        shape = (1,) * (rank - len(tensor.shape)) + tensor.shape
        if tensor.data is not None:
            data = tensor.data.reshape(shape)
            data = data.transpose(NCHW) if len(shape) == 4 else data
            params = (np.float32(tensor.quant.scale), np.array(tensor.quant.zero_point, np.int8))
            return self.node("DequantizeLinear", [self.const(data), *map(self.const, params)])
        if len(shape) == len(tensor.shape):
            return self.floats[t]
        wide = self.node("Reshape", [self.floats[t], self.ints(shape)])
        return self.node("Transpose", [wide], perm=NCHW) if len(shape) == 4 else wide

    def logical(self, t):
        """Returns tensor t as floats, with its dimensions in our order."""
        last = len(self.tensor(t).shape) == 4
        return self.node("Transpose", [self.floats[t]], perm=NHWC) if last else self.floats[t]

    def from_logical(self, t, name):
        if len(self.tensor(t).shape) == 4:
            name = self.node("Transpose", [name], perm=NCHW)
        self.quantized(t, name)

    def dim(self, t, d):
        """Returns the number in the file of our dimension d."""
        return _DIMS[d] if len(self.tensor(t).shape) == 4 else d

    def activated(self, name, activation):
        if activation is Activation.RELU:
            return self.node("Relu", [name])
        limits = {Activation.RELU6: (0, 6), Activation.RELU_N1_TO_1: (-1, 1)}.get(activation)
        if limits is None:
            return name
        return self.node("Clip", [name, *(self.const(np.float32(v)) for v in limits)])

    # ---- constants of operators with weights -----------------------------------------------------------

    def weights(self, t, data, axis):
        quant = self.tensor(t).quant
        several = len(quant.scales) > 1
        scales = np.array(quant.scales, np.float32) if several else np.float32(quant.scale)
        scale = self.const(np.asarray(scales))
        zero = self.const(np.zeros(np.shape(scales), np.int8))
        if self.style.float_weights:
            broad = np.array(scales)
            if several:
                broad = broad.reshape([-1 if d == axis else 1 for d in range(data.ndim)])
            real = self.const(data.astype(np.float32) * broad)
            stored = self.node("QuantizeLinear", [real, scale, zero], axis=axis)
        else:
            stored = self.const(data)
        return self.node("DequantizeLinear", [stored, scale, zero], axis=axis)

    def bias(self, op):
        if op.inputs[2] < 0:
            return []
        source, weights = self.tensor(op.inputs[0]).quant, self.tensor(op.inputs[1]).quant
        scales = np.float32(source.scale) * np.array(weights.scales, np.float32)
        data = self.tensor(op.inputs[2]).data
        if self.style.float_bias:
            return [self.const((data * scales.astype(np.float64)).astype(np.float32), "bias")]
        scale = scales if scales.size > 1 else scales.reshape(())
        zero = self.const(np.zeros(scale.shape, np.int32))
        return [self.node("DequantizeLinear", [self.const(data), self.const(scale), zero], axis=0)]


# ---- operators ---------------------------------------------------------------------------------------


def _window(attrs):
    pad = attrs.pad
    return {"strides": attrs.stride, "pads": [pad.top, pad.left, pad.bottom, pad.right]}


def _conv(e, op):
    attrs, w = op.attrs, e.tensor(op.inputs[1])
    depthwise = op.kind is OpKind.DEPTHWISE_CONV_2D
    channels = e.tensor(op.inputs[0]).shape[3]
    data = w.data.transpose(3, 0, 1, 2) if depthwise else w.data.transpose(0, 3, 1, 2)
    groups = channels if depthwise else channels // w.shape[3]
    more = {} if attrs.dilation == (1, 1) else {"dilations": attrs.dilation}
    inputs = [e.floats[op.inputs[0]], e.weights(op.inputs[1], data, 0), *e.bias(op)]
    name = e.node("Conv", inputs, group=groups, **_window(attrs), **more)
    e.quantized(op.outputs[0], e.activated(name, attrs.activation))


def _transpose_conv(e, op):
    attrs, w = op.attrs, e.tensor(op.inputs[1])
    x, out = e.tensor(op.inputs[0]).shape, e.tensor(op.outputs[0]).shape
    begin, end, more = (attrs.pad.top, attrs.pad.left), [], []
    for i in range(2):
        total = attrs.stride[i] * (x[i + 1] - 1) + w.shape[i + 1] - out[i + 1]
        end.append(max(total - begin[i], 0))
        more.append(max(begin[i] - total, 0))
    if any(m >= s for m, s in zip(more, attrs.stride, strict=True)):
        raise NotExpressible
    inputs = [e.floats[op.inputs[0]], e.weights(op.inputs[1], w.data.transpose(3, 0, 1, 2), 1), *e.bias(op)]
    extra = {"output_padding": more} if any(more) else {}
    name = e.node("ConvTranspose", inputs, strides=attrs.stride, pads=[*begin, *end], **extra)
    e.quantized(op.outputs[0], e.activated(name, attrs.activation))


def _dense(e, op):
    x, w = op.inputs[0], e.tensor(op.inputs[1])
    data = w.data
    if x in e.flat:
        source = next(o.inputs[0] for o in e.graph.ops if x in o.outputs)
        _, h, wide, c = e.tensor(source).shape
        data = data.reshape(-1, h, wide, c).transpose(0, 3, 1, 2).reshape(data.shape)
    shape, out = e.tensor(x).shape, e.tensor(op.outputs[0]).shape
    name = e.logical(x)
    if len(shape) != 2 or e.style.matmul:
        name = e.node("MatMul", [name, e.weights(op.inputs[1], data.T, 1)])
        if op.inputs[2] >= 0:
            name = e.node("Add", [name, *e.bias(op)])
        if len(shape) != len(out):
            name = e.node("Reshape", [name, e.ints(out)])
    else:
        name = e.node("Gemm", [name, e.weights(op.inputs[1], data, 0), *e.bias(op)], transB=1)
    e.from_logical(op.outputs[0], e.activated(name, op.attrs.activation))


def _elementwise(e, op):
    rank = len(e.tensor(op.outputs[0]).shape)
    kind = {OpKind.ADD: "Add", OpKind.SUB: "Sub", OpKind.MUL: "Mul"}[op.kind]
    name = e.node(kind, [e.value(t, rank if rank == 4 else 0) for t in op.inputs])
    e.quantized(op.outputs[0], e.activated(name, op.attrs.activation))


def _prelu(e, op):
    rank = len(e.tensor(op.inputs[0]).shape)
    e.quantized(op.outputs[0], e.node("PRelu", [e.floats[op.inputs[0]], e.value(op.inputs[1], rank)]))


def _direct(kind, attributes=lambda e, op: {}):
    """Makes a rule for an operator on the first input in the file's order."""

    def rule(e, op):
        name = e.node(kind, [e.floats[op.inputs[0]]], **attributes(e, op))
        e.quantized(op.outputs[0], e.activated(name, getattr(op.attrs, "activation", Activation.NONE)))

    return rule


def _gelu(e, op):
    if e.style.opset < 20:
        raise NotExpressible("Gelu is an operator from opset 20 on")
    return {"approximate": "tanh" if op.attrs.approximate else "none"}


def _relu6(e, op):
    e.quantized(op.outputs[0], e.activated(e.floats[op.inputs[0]], Activation.RELU6))


def _softmax(e, op):
    if op.attrs.beta != 1:
        raise NotExpressible
    return {"axis": e.dim(op.inputs[0], len(e.tensor(op.inputs[0]).shape) - 1)}


def _mean(e, op):
    x, attrs = op.inputs[0], op.attrs
    image = len(e.tensor(x).shape) == 4
    direct = image and (attrs.keep_dims or attrs.axes == (1, 2))
    axes = sorted(e.dim(x, a) for a in attrs.axes) if direct else list(attrs.axes)
    inputs, more = [e.floats[x] if direct else e.logical(x)], {"axes": axes}
    if e.style.opset >= 18:
        inputs, more = [*inputs, e.ints(axes)], {}
    name = e.node("ReduceMean", inputs, keepdims=int(attrs.keep_dims), **more)
    (e.quantized if direct else e.from_logical)(op.outputs[0], name)


def _pad(e, op):
    x, attrs = op.inputs[0], op.attrs
    rank = len(attrs.paddings)
    pairs = [(0, 0)] * rank
    for d, p in enumerate(attrs.paddings):
        pairs[e.dim(x, d)] = p
    modes = {g.PadMode.CONSTANT: "constant", g.PadMode.REFLECT: "reflect", g.PadMode.SYMMETRIC: "edge"}
    mode = modes[attrs.mode]
    if mode == "edge" and max(map(max, pairs)) > 1:
        raise NotExpressible
    inputs = [e.floats[x], e.ints([p[i] for i in range(2) for p in pairs])]
    quant = e.tensor(x).quant
    if mode == "constant" and attrs.value != quant.zero_point:
        inputs.append(e.const(np.float32((attrs.value - quant.zero_point) * quant.scale)))
    e.quantized(op.outputs[0], e.node("Pad", inputs, mode=mode))


def _reshape(e, op):
    (x,), (out,) = op.inputs, op.outputs
    before, after = e.tensor(x).shape, e.tensor(out).shape
    readers = [o for o in e.graph.ops if out in o.inputs]
    dense = len(readers) == 1 and readers[0].kind is OpKind.FULLY_CONNECTED and out not in e.graph.outputs
    if e.style.flat and dense and len(before) == 4 and after == (before[0], math.prod(before[1:])):
        e.flat.add(out)
        e.quantized(out, e.node("Flatten", [e.floats[x]]))
        return
    e.from_logical(out, e.node("Reshape", [e.logical(x), e.ints(after)]))


def _concat(e, op):
    axis = e.dim(op.outputs[0], op.attrs.axis)
    e.quantized(op.outputs[0], e.node("Concat", [e.value(t) for t in op.inputs], axis=axis))


def _split(e, op):
    outs = [e.name("part") for _ in op.outputs]
    axis = e.dim(op.inputs[0], op.attrs.axis)
    more = {"num_outputs": len(outs)} if e.style.opset >= 18 else {}
    e.nodes.append(helper.make_node("Split", [e.floats[op.inputs[0]]], outs, axis=axis, **more))
    for t, name in zip(op.outputs, outs, strict=True):
        e.quantized(t, name)


def _slice(e, op):
    x, attrs, out = op.inputs[0], op.attrs, e.tensor(op.outputs[0]).shape
    ends = [
        b + s * (n - 1) + (1 if s > 0 else -1)
        for b, s, n in zip(attrs.begin, attrs.stride, attrs.extent, strict=True)
    ]
    ends = [end if end >= 0 else -(1 << 31) for end in ends]
    lists = (attrs.begin, ends, range(len(attrs.begin)), attrs.stride)
    name = e.node("Slice", [e.logical(x), *map(e.ints, map(list, lists))])
    if len(out) != len(attrs.begin):
        name = e.node("Reshape", [name, e.ints(out)])
    e.from_logical(op.outputs[0], name)


def _resize(e, op):
    attrs, out = op.attrs, e.tensor(op.outputs[0]).shape
    how = "half_pixel" if attrs.half_pixel_centers else "asymmetric"
    how = "align_corners" if attrs.align_corners else how
    more = {"mode": "linear"}
    if op.kind is OpKind.RESIZE_NEAREST_NEIGHBOR:
        more = {"mode": "nearest", "nearest_mode": "floor" if how == "asymmetric" else "round_prefer_ceil"}
    inputs = [e.floats[op.inputs[0]], "", "", e.ints([out[i] for i in NCHW])]
    e.quantized(op.outputs[0], e.node("Resize", inputs, coordinate_transformation_mode=how, **more))


def _quantize(e, op):
    if DType.UINT8 in (e.tensor(op.inputs[0]).dtype, e.tensor(op.outputs[0]).dtype):
        raise NotExpressible
    e.quantized(op.outputs[0], e.floats[op.inputs[0]])


def _dequantize(e, op):
    if e.tensor(op.inputs[0]).dtype is DType.UINT8:
        raise NotExpressible
    e.floats[op.outputs[0]] = e.floats[op.inputs[0]]


def _logical(kind, parameters):
    """Makes a rule for an operator in our order. `parameters` returns lists of integers, and attributes."""

    def rule(e, op):
        lists, attributes = parameters(e, op)
        inputs = [e.logical(op.inputs[0]), *(e.ints(list(values)) for values in lists)]
        e.from_logical(op.outputs[0], e.node(kind, inputs, **attributes))

    return rule


def _reduced(e, op):
    keep = {"keepdims": int(op.attrs.keep_dims)}
    return ([op.attrs.axes], keep) if e.style.opset >= 18 else ([], {"axes": op.attrs.axes, **keep})


def _matmul(e, op):
    sides = []
    for t, turned in zip(op.inputs, (op.attrs.adj_x, op.attrs.adj_y), strict=True):
        tensor = e.tensor(t)
        if tensor.data is not None:
            raise NotExpressible("a dense layer: its arithmetic differs")
        name = e.logical(t)
        rank = len(tensor.shape)
        swap = (*range(rank - 2), rank - 1, rank - 2)
        sides.append(e.node("Transpose", [name], perm=swap) if turned else name)
    e.from_logical(op.outputs[0], e.node("MatMul", sides))


_pool = partial(_direct, attributes=lambda e, op: {"kernel_shape": op.attrs.kernel, **_window(op.attrs)})
_blocks = partial(_direct, attributes=lambda e, op: {"blocksize": op.attrs.block})
_RULES = {
    OpKind.TILE: _logical("Tile", lambda e, op: ([op.attrs.multiples], {})),
    OpKind.GATHER: _logical("Gather", lambda e, op: ([op.attrs.indices], {"axis": op.attrs.axis})),
    OpKind.REDUCE_MAX: _logical("ReduceMax", _reduced),
    OpKind.REDUCE_MIN: _logical("ReduceMin", _reduced),
    OpKind.DEPTH_TO_SPACE: _blocks("DepthToSpace"),
    OpKind.SPACE_TO_DEPTH: _blocks("SpaceToDepth"),
    OpKind.BATCH_MATMUL: _matmul,
    **dict.fromkeys((OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D), _conv),
    OpKind.TRANSPOSE_CONV: _transpose_conv,
    OpKind.FULLY_CONNECTED: _dense,
    **dict.fromkeys((OpKind.ADD, OpKind.SUB, OpKind.MUL), _elementwise),
    OpKind.PRELU: _prelu,
    **dict.fromkeys((OpKind.PAD, OpKind.MIRROR_PAD), _pad),
    OpKind.AVERAGE_POOL_2D: _pool("AveragePool"),
    OpKind.MAX_POOL_2D: _pool("MaxPool"),
    OpKind.MEAN: _mean,
    OpKind.SOFTMAX: _direct("Softmax", _softmax),
    OpKind.LOGISTIC: _direct("Sigmoid"),
    OpKind.HARD_SWISH: _direct("HardSwish"),
    **{OpKind[name.upper()]: _direct(name) for name in ("Tanh", "Relu", "Abs", "Exp", "Log")},
    OpKind.RELU6: _relu6,
    OpKind.LEAKY_RELU: _direct("LeakyRelu", lambda e, op: {"alpha": op.attrs.alpha}),
    OpKind.GELU: _direct("Gelu", _gelu),
    **dict.fromkeys((OpKind.RESHAPE, OpKind.SQUEEZE, OpKind.EXPAND_DIMS), _reshape),
    OpKind.TRANSPOSE: _logical("Transpose", lambda e, op: ([], {"perm": op.attrs.perm})),
    OpKind.CONCATENATION: _concat,
    OpKind.SPLIT: _split,
    **dict.fromkeys((OpKind.STRIDED_SLICE, OpKind.SLICE), _slice),
    **dict.fromkeys((OpKind.RESIZE_NEAREST_NEIGHBOR, OpKind.RESIZE_BILINEAR), _resize),
    OpKind.QUANTIZE: _quantize,
    OpKind.DEQUANTIZE: _dequantize,
}
WRITTEN = frozenset(_RULES)
