"""Makes the files beside it: networks as onnxruntime quantises them, and what it computes in them.

    python make.py [NAME ...]   # needs onnxruntime (made with 1.31.1, later ones with 1.32.0)

The tests need the files only.

NAME.onnx is quantised by onnxruntime's static quantiser from a float network with random weights.
NAME.npz has an input, `image`, and every quantised tensor under its name in the file.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

HERE = Path(__file__).parent
SHAPE = (1, 3, 16, 16)
CALIBRATION = 16  # images
FLOATS = ("LayerNormalization", "Div", "Erf")  # operators that the quantiser leaves in float32


class Net:
    """A float network in the making."""

    def __init__(self, name, seed):
        self.name, self.rng = name, np.random.default_rng(seed)
        self.nodes, self.constants, self.fresh = [], [], 0

    def const(self, array, dtype=np.float32):
        self.fresh += 1
        self.constants.append(numpy_helper.from_array(np.asarray(array, dtype), f"c{self.fresh}"))
        return f"c{self.fresh}"

    def op(self, kind, *inputs, **attributes):
        self.fresh += 1
        out = f"{kind.lower()}{self.fresh}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=f"/{out}", **attributes))
        return out

    def conv(self, x, cin, cout, kernel=3, stride=1, group=1, then="Relu"):
        """Channels of different sizes, as trained ones have."""
        taps = cin // group * kernel * kernel
        weights = self.rng.normal(size=(cout, cin // group, kernel, kernel)) * np.sqrt(1.5 / taps)
        weights *= np.exp(self.rng.uniform(-1, 1, (cout, 1, 1, 1)))
        bias = self.const(self.rng.normal(size=cout) * 0.2)
        how = {"strides": [stride] * 2, "pads": [kernel // 2] * 4, "kernel_shape": [kernel] * 2}
        y = self.op("Conv", x, self.const(weights), bias, group=group, **how)
        if then == "Relu6":
            return self.op("Clip", y, self.const(0), self.const(6))
        return self.op(then, y) if then else y

    def dense(self, x, inputs, outputs):
        weights = self.const(self.rng.normal(size=(outputs, inputs)) / np.sqrt(inputs))
        return self.op("Gemm", x, weights, self.const(self.rng.normal(size=outputs)), transB=1)

    def model(self, output):
        values = [
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
            for name, shape in (("image", SHAPE), (output, None))
        ]
        graph = helper.make_graph(self.nodes, self.name, *values, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 9
        return model


def classifier():
    """Inverted residual, branches, squeeze and excite, softmax."""
    net = Net("classifier", 1)
    x = net.conv("image", 3, 16, 3, 2, then="Relu6")
    y = net.conv(x, 16, 32, 1, then="Relu6")
    y = net.conv(y, 32, 32, 3, 1, 32, then="Relu6")
    x = net.op("Add", x, net.conv(y, 32, 16, 1, then=None))
    parts = [net.conv(x, 16, 8, 1), net.op("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])]
    x = net.op("Concat", *parts, axis=1)
    gate = net.conv(net.op("GlobalAveragePool", x), 24, 8, 1)
    x = net.op("Mul", x, net.op("Sigmoid", net.conv(gate, 8, 24, 1, then=None)))
    x = net.op("Flatten", net.op("GlobalAveragePool", net.conv(x, 24, 32, 3, 2)))
    return net.model(net.op("Softmax", net.dense(x, 32, 10), axis=1))


def plain():
    """Convolutions, pools, a flattened image before dense layers."""
    net = Net("plain", 2)
    x = net.op("MaxPool", net.conv("image", 3, 8, 5), kernel_shape=[2, 2], strides=[2, 2])
    x = net.op("AveragePool", net.conv(x, 8, 16), kernel_shape=[2, 2], strides=[2, 2])
    x = net.op("Reshape", x, net.const([1, -1], np.int64))
    x = net.op("MatMul", x, net.const(net.rng.normal(size=(256, 32)) * 0.06))
    x = net.op("Relu", net.op("Add", x, net.const(net.rng.normal(size=32))))
    return net.model(net.dense(x, 32, 10))


def shuffle():
    """Grouped convolutions with their channels shuffled, HardSwish, an enlarged branch."""
    net = Net("shuffle", 3)
    x = net.conv("image", 3, 16, 3, 2)
    y = net.op("Reshape", net.conv(x, 16, 16, 1, group=2), net.const([1, 2, 8, 8, 8], np.int64))
    y = net.op("Transpose", y, perm=[0, 2, 1, 3, 4])
    y = net.op("Reshape", y, net.const([1, 16, 8, 8], np.int64))
    y = net.op("HardSwish", net.conv(y, 16, 16, 3, group=16, then=None))
    x = net.op("Relu", net.op("Add", x, y))
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor", "mode": "nearest"}
    y = net.op("Resize", x, "", net.const([1, 1, 2, 2]), **how)
    x = net.op("LeakyRelu", net.op("Concat", x, net.conv(y, 16, 8, 3, 2), axis=1), alpha=0.1)
    x = net.op("Pad", x, net.const([0, 0, 1, 1, 0, 0, 1, 1], np.int64))
    x = net.op("GlobalAveragePool", net.conv(x, 24, 12, 3, then=None))
    return net.model(net.op("Flatten", x))


def transformer():
    """A block of a vision transformer: layer norms and GELU in single operators, as PyTorch exports them."""
    net, width, heads = Net("transformer", 4), 16, 2
    patches = net.op(
        "Reshape", net.conv("image", 3, width, 4, 4, then=None), net.const([1, width, -1], np.int64)
    )
    x = net.op("Transpose", patches, perm=[0, 2, 1])
    x = net.op("Add", x, net.const(net.rng.normal(size=(1, 25, width)) * 0.3))

    def norm(x):
        centred = net.op("Sub", x, net.op("ReduceMean", x, axes=[-1]))
        variance = net.op("ReduceMean", net.op("Pow", centred, net.const(2)), axes=[-1])
        y = net.op("Div", centred, net.op("Sqrt", net.op("Add", variance, net.const(1e-5))))
        y = net.op("Mul", y, net.const(1 + net.rng.normal(size=width) * 0.2))
        return net.op("Add", y, net.const(net.rng.normal(size=width) * 0.2))

    def product(x, inputs, outputs):
        y = net.op("MatMul", x, net.const(net.rng.normal(size=(inputs, outputs)) / np.sqrt(inputs)))
        return net.op("Add", y, net.const(net.rng.normal(size=outputs) * 0.1))

    def split(x, perm):
        shape = net.const([1, 25, heads, width // heads], np.int64)
        return net.op("Transpose", net.op("Reshape", x, shape), perm=perm)

    y = norm(x)
    q, v = (split(product(y, width, width), [0, 2, 1, 3]) for _ in range(2))
    k = split(product(y, width, width), [0, 2, 3, 1])
    scores = net.op("Mul", net.op("MatMul", q, k), net.const((width // heads) ** -0.5))
    y = net.op("Transpose", net.op("MatMul", net.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    y = net.op("Reshape", y, net.const([1, 25, width], np.int64))
    x = net.op("Add", x, product(y, width, width))
    y = product(norm(x), width, 2 * width)
    erf = net.op("Add", net.op("Erf", net.op("Div", y, net.const(np.sqrt(2)))), net.const(1))
    y = net.op("Mul", net.op("Mul", y, erf), net.const(0.5))
    x = net.op("Add", x, product(y, 2 * width, width))
    return net.model(net.dense(net.op("ReduceMean", norm(x), axes=[1], keepdims=0), width, 10))


S8, U8 = QuantType.QInt8, QuantType.QUInt8
VARIANTS = {
    "classifier_int8": (classifier, {"activation_type": S8, "per_channel": True}),
    "classifier_qoperator": (classifier, {"activation_type": U8, "quant_format": QuantFormat.QOperator}),
    "transformer_islands": (transformer, {"activation_type": S8, "per_channel": True}),
    "plain_asymmetric": (plain, {"activation_type": U8, "weight_type": U8, "reduce_range": False}),
    "plain_uint8": (plain, {"activation_type": U8}),
    "shuffle_symmetric": (
        shuffle,
        {
            "activation_type": S8,
            "per_channel": True,
            "extra_options": {"ActivationSymmetric": True, "QuantizeBias": False, "DedicatedQDQPair": True},
        },
    ),
}


def image(seed):
    return np.random.default_rng(seed).normal(size=SHAPE).astype(np.float32)


class Images(CalibrationDataReader):
    def __init__(self):
        self.images = iter([{"image": image(i)} for i in range(CALIBRATION)])

    def get_next(self):
        return next(self.images, None)


def computed(model):
    """Every quantised tensor for one image, and the results of FLOATS, without optimisation."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    types = {t.name: t.data_type for t in model.graph.initializer}
    wanted = {}
    for node in model.graph.node:
        for name in node.output:
            if node.op_type == "QuantizeLinear":
                wanted[name] = types[node.input[2]]
            elif name.endswith("_quantized"):  # in QOperator format
                wanted[name] = TensorProto.UINT8
            elif node.op_type in FLOATS:
                wanted[name] = TensorProto.FLOAT
    del model.graph.output[:]
    for name, kind in wanted.items():
        model.graph.output.append(helper.make_tensor_value_info(name, kind, None))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    feed = {"image": image(1000)}
    return feed | dict(zip(wanted, session.run(list(wanted), feed), strict=True))


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name, (build, options) in VARIANTS.items():
            if sys.argv[1:] and name not in sys.argv[1:]:
                continue
            whole, prepared = (str(Path(folder, f"{name}_{step}.onnx")) for step in ("float", "prepared"))
            onnx.save(build(), whole)
            quant_pre_process(whole, prepared, skip_symbolic_shape=True)
            how = {"quant_format": QuantFormat.QDQ, "weight_type": S8, **options}
            quantize_static(prepared, str(HERE / f"{name}.onnx"), Images(), **how)
            np.savez_compressed(HERE / f"{name}.npz", **computed(onnx.load(HERE / f"{name}.onnx")))


if __name__ == "__main__":
    main()
