"""Small QDQ networks written node by node, in the forms of exporters and quantisers.

net = Qdq((1, 3, 8, 8))
y = net.q(net.node("Relu", [net.conv(net.x, 3, 4)]))
graph, steps = compared(net.model([y]))      # as read and rewritten; outputs against onnx.reference
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnxexport import NHWC, from_file, stored

from buildtool.graph.onnx.reader import read_qdq
from buildtool.graph.reference import execute
from buildtool.graph.rewrite import rewrite

TYPES = {
    "float32": TensorProto.FLOAT,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "int64": TensorProto.INT64,
}


class Qdq:
    """A growing network. `x`: its quantised input, as floats. Methods return tensors' names."""

    def __init__(self, shape, *, seed=1, scale=0.05, zero=3, dtype="float32", opset=19):
        self.rng = np.random.default_rng(seed)
        self.opset = opset
        self.nodes = []
        self.constants = []
        self.inputs = [helper.make_tensor_value_info("image", TYPES[dtype], shape)]
        self.fresh = 0
        if dtype == "float32":
            self.x = self.q("image", scale, zero)
        else:
            self.x = self.dq("image", scale, zero, dtype)

    def name(self, role):
        self.fresh += 1
        return f"{role}{self.fresh}"

    def const(self, array, dtype=None):
        name = self.name("c")
        self.constants.append(numpy_helper.from_array(np.array(array, dtype), name))
        return name

    def node(self, kind, inputs, outputs=1, domain="", **attributes):
        """Adds an operator and returns its output's name, or names. Numbers become constants."""
        names = [self.name(kind.lower()) for _ in range(outputs)]
        operands = [i if isinstance(i, str) else self._numbers(np.asarray(i)) for i in inputs]
        self.nodes.append(
            helper.make_node(kind, operands, names, name=f"/{names[0]}", domain=domain, **attributes)
        )
        return names[0] if outputs == 1 else names

    def _numbers(self, array):
        return self.const(array, np.float32 if array.dtype == np.float64 else array.dtype)

    def _params(self, scale, zero, dtype):
        return [self.const(scale, np.float32), self.const(zero, dtype)]

    def quantize(self, name, scale=0.1, zero=0, dtype="int8", **attributes):
        return self.node("QuantizeLinear", [name, *self._params(scale, zero, dtype)], **attributes)

    def dq(self, name, scale=0.1, zero=0, dtype="int8", **attributes):
        return self.node("DequantizeLinear", [name, *self._params(scale, zero, dtype)], **attributes)

    def q(self, name, scale=0.1, zero=0, dtype="int8"):
        """Quantises and dequantises."""
        return self.dq(self.quantize(name, scale, zero, dtype), scale, zero, dtype)

    def weights(self, shape, axis=None, scale=0.02):
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        if axis is None:
            return self.dq(self.const(data), scale, 0)
        scales = scale * np.exp(self.rng.uniform(-1, 1, shape[axis]))
        return self.dq(self.const(data), scales, np.zeros(shape[axis]), axis=axis)

    def conv(self, x, cin, cout, kernel=3, group=1, bias=True, **attributes):
        """A convolution with weights quantised along axis 0 and a float bias."""
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        inputs = [x, self.weights((cout, cin // group, *kernel), 0, 0.2 / (cin // group * kernel[0]))]
        if bias:
            inputs.append(self.const(self.rng.normal(size=cout), np.float32))
        attributes.setdefault("pads", [k // 2 for k in kernel] * 2)
        if attributes.get("auto_pad", "NOTSET") != "NOTSET":
            del attributes["pads"]
        return self.node("Conv", inputs, group=group, **attributes)

    def model(self, outputs, dtype="float32"):
        infos = [helper.make_tensor_value_info(name, TYPES[dtype], None) for name in outputs]
        graph = helper.make_graph(self.nodes, "net", self.inputs, infos, self.constants)
        domains = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=domains)
        model.ir_version = 10
        return model


def many_operators():
    """Returns a small network of most kinds of operators."""
    net = Qdq((1, 2, 4, 4))
    y = net.q(net.node("Relu", [net.conv(net.x, 2, 2)]))
    y = net.node("MaxPool", [y], kernel_shape=[2, 2], strides=[1, 1])
    y = net.node("Pad", [y, [0, 0, 1, 0, 0, 0, 0, 1]])
    y = net.node("Slice", [y, [0], [2], [2]])
    y = net.node("Concat", [y, y], axis=1)
    y = net.node("Resize", [y, "", [1.0, 1.0, 2.0, 2.0]])
    a, b = net.node("Split", [y, [1, 3]], 2, axis=1)
    y = net.q(net.node("Mul", [a, b]))
    y = net.node("Transpose", [net.node("Reshape", [y, [1, 3, -1]])], perm=[0, 2, 1])
    y = net.node("LayerNormalization", [net.node("Pow", [y, 2.0]), [0.5, 1.0, 2.0]])
    y = net.q(net.node("Erf", [net.node("Div", [y, net.node("ReduceL2", [y, [-1]])])]))
    return net.model([net.q(net.node("MatMul", [y, net.weights((3, 2))]))])


def read(model):
    """Returns the graph as it is planned."""
    return rewrite(read_qdq(model.SerializeToString(), path="net.onnx"), lookups=False)


def kinds(graph):
    return [str(op.kind) for op in graph.ops]


def compared(model, *, seed=0, channels_last=True):
    """Returns the graph, and the steps by which its outputs differ from onnx.reference's, in one array."""
    from onnx.reference import ReferenceEvaluator

    graph = read(model)
    (info,) = model.graph.input
    tensor = graph.tensors[graph.inputs[0]]
    value = np.random.default_rng(seed).integers(-128, 128, tensor.shape).astype(np.int8)
    feed = value
    if value.ndim == 4 and channels_last:
        feed = value.transpose(0, 3, 1, 2)
    elif value.ndim == 3 and list(tensor.shape) != [d.dim_value for d in info.type.tensor_type.shape.dim]:
        feed = value.transpose(0, 2, 1)
    feed = stored(tensor, feed, info.type.tensor_type.elem_type)
    theirs = ReferenceEvaluator(model).run(None, {info.name: feed})
    ours = execute(graph, [value])
    steps = []
    for t, array in zip(graph.outputs, theirs, strict=True):
        out = graph.tensors[t]
        last = array.ndim == 4 and not channels_last  # channels are not last in the file
        expected = from_file(out, array.transpose(np.argsort(NHWC)) if last else array)
        assert expected.shape == out.shape
        assert np.unique(ours[t]).size >= min(8, ours[t].size // 2)
        steps.append(np.abs(ours[t].astype(int) - expected.astype(int)).reshape(-1))
    return graph, np.concatenate(steps)
