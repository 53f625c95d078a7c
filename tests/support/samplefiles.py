"""Small .tflite files with many operators, for tests of readers."""

import numpy as np
from flatfiles import FileOperator as Operator
from flatfiles import FileTensor as Tensor
from flatfiles import constant, write


class Sheet:
    """Collects tensors and operators. Each method adds one line of the network."""

    def __init__(self, seed: int = 7) -> None:
        self.tensors: list[Tensor] = []
        self.operators: list[Operator] = []
        self.rng = np.random.default_rng(seed)

    def add(self, tensor: Tensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def ints(self, *values: int) -> int:
        return self.add(constant(list(values)))

    def weights(self, *shape: int, axis: int = 0, per_channel: bool = True) -> int:
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        count = shape[axis] if per_channel else 1
        scales = self.rng.uniform(0.002, 0.01, count).astype(np.float32).tolist()
        return self.add(Tensor(shape, "int8", data, scales, [0] * count, axis))

    def bias(self, count: int) -> int:
        data = self.rng.integers(-500, 500, count).astype(np.int32)
        return self.add(constant(data, scale=[0.01] * count, zero=[0] * count))

    def apply(self, kind, inputs, shape, options_class="", options=None, **kwargs) -> int:
        out = self.add(Tensor(shape, **kwargs))
        self.operators.append(Operator(kind, inputs, [out], options_class, options or {}))
        return out

    def bytes(self, inputs, outputs, **kwargs) -> bytes:
        return write(self.tensors, self.operators, inputs, outputs, **kwargs)


def mixed() -> bytes:
    """A file with two inputs and two outputs (one of each float) and some thirty operators of most kinds."""
    s = Sheet()
    x = s.add(Tensor((1, 8, 9, 3), "float32", scale=None, signature=(-1, 8, 9, 3)))
    side = s.add(Tensor((1, 4, 5, 4), zero=3))
    q = s.apply("QUANTIZE", [x], (1, 8, 9, 3), scale=0.05, zero=-4)
    p = s.apply(
        "PAD", [q, s.add(constant([[0, 0], [1, 0], [0, 2], [0, 0]]))], (1, 9, 11, 3), scale=0.05, zero=-4
    )
    c = s.apply("CONV_2D", [p, s.weights(4, 3, 3, 3), s.bias(4)], (1, 4, 5, 4), "Conv2DOptions",
                {"Padding": 1, "StrideH": 2, "StrideW": 2, "FusedActivationFunction": 3})  # fmt: skip
    d = s.apply("DEPTHWISE_CONV_2D", [c, s.weights(1, 3, 3, 8, axis=3), s.bias(8)], (1, 4, 5, 8),
                "DepthwiseConv2DOptions",
                {"StrideH": 1, "StrideW": 1, "DepthMultiplier": 2, "DilationHFactor": 2})  # fmt: skip
    split = [s.add(Tensor((1, 4, 5, 4))) for _ in range(2)]
    s.operators.append(Operator("SPLIT", [s.add(constant(3)), d], split, "SplitOptions", {"NumSplits": 2}))
    a = s.apply("ADD", [split[0], side], (1, 4, 5, 4), "AddOptions", {"FusedActivationFunction": 1})
    m = s.apply("MUL", [a, s.weights(4, per_channel=False)], (1, 4, 5, 4), "MulOptions")
    b = s.apply("SUB", [m, split[1]], (1, 4, 5, 4), "SubOptions")
    h = s.apply("HARD_SWISH", [b], (1, 4, 5, 4))
    e = s.apply("PRELU", [h, s.weights(1, 1, 4, per_channel=False)], (1, 4, 5, 4))
    lr = s.apply("LEAKY_RELU", [e], (1, 4, 5, 4), "LeakyReluOptions", {"Alpha": 0.25})
    ca = s.apply("CONCATENATION", [lr, a, lr], (1, 4, 5, 12), "ConcatenationOptions", {"Axis": -1})
    sl = s.apply("STRIDED_SLICE", [ca, s.ints(0, 1, 0, 0), s.ints(0, 3, -1, 0), s.ints(1, 1, 2, 1)],
                 (1, 2, 2, 12), "StridedSliceOptions", {"BeginMask": 9, "EndMask": 9})  # fmt: skip
    r = s.apply("RESIZE_NEAREST_NEIGHBOR", [sl, s.ints(4, 4)], (1, 4, 4, 12), "ResizeNearestNeighborOptions")
    rb = s.apply("RESIZE_BILINEAR", [r, s.ints(6, 5)], (1, 6, 5, 12), "ResizeBilinearOptions",
                 {"HalfPixelCenters": True})  # fmt: skip
    mp = s.apply("MAX_POOL_2D", [rb], (1, 3, 3, 12), "Pool2DOptions",
                 {"Padding": 0, "StrideH": 2, "StrideW": 2, "FilterHeight": 3, "FilterWidth": 2})  # fmt: skip
    si = s.apply("SLICE", [mp, s.ints(0, 1, 0, 2), s.ints(1, -1, 2, 8)], (1, 2, 2, 8))
    mi = s.apply("MIRROR_PAD", [si, s.add(constant([[0, 0], [1, 1], [0, 1], [0, 0]]))], (1, 4, 3, 8),
                 "MirrorPadOptions", {"Mode": 1})  # fmt: skip
    t = s.apply("TRANSPOSE_CONV", [s.ints(1, 8, 6, 5), s.weights(5, 3, 3, 8), mi, s.bias(5)], (1, 8, 6, 5),
                "TransposeConvOptions", {"Padding": 0, "StrideH": 2, "StrideW": 2})  # fmt: skip
    av = s.apply("AVERAGE_POOL_2D", [t], (1, 4, 3, 5), "Pool2DOptions",
                 {"Padding": 1, "StrideH": 2, "StrideW": 2, "FilterHeight": 2, "FilterWidth": 2})  # fmt: skip
    tr = s.apply("TRANSPOSE", [av, s.ints(0, 3, 1, 2)], (1, 5, 4, 3))
    me = s.apply("MEAN", [tr, s.ints(-1)], (1, 5, 4), "ReducerOptions", {})
    m2 = s.apply("MEAN", [me, s.ints(2)], (1, 5), "ReducerOptions", {})
    lo = s.apply("LOGISTIC", [lr], (1, 4, 5, 4), scale=1 / 256, zero=-128)
    sq = s.apply("EXPAND_DIMS", [m2, s.ints(1)], (1, 1, 5))
    ss = s.apply("SQUEEZE", [sq], (1, 5), "SqueezeOptions", {"SqueezeDims": [1]})
    shape = s.apply("SHAPE", [c], (4,), "ShapeOptions", {"OutType": 2}, dtype="int32", scale=None)
    batch = s.apply("STRIDED_SLICE", [shape, s.ints(0), s.ints(1), s.ints(1)], (), "StridedSliceOptions",
                    {"ShrinkAxisMask": 1}, dtype="int32", scale=None)  # fmt: skip
    pack = s.apply("PACK", [batch, s.add(constant(80))], (2,), "PackOptions", {"ValuesCount": 2},
                   dtype="int32", scale=None)  # fmt: skip
    fl = s.apply("RESHAPE", [lo, pack], (1, 80), scale=1 / 256, zero=-128)
    fc = s.apply("FULLY_CONNECTED", [fl, s.weights(5, 80), s.bias(5)], (1, 5), "FullyConnectedOptions", {})
    su = s.apply("ADD", [fc, ss], (1, 5), "AddOptions", {})
    so = s.apply("SOFTMAX", [su], (1, 5), "SoftmaxOptions", {"Beta": 1.0}, scale=1 / 256, zero=-128)
    de = s.apply("DEQUANTIZE", [so], (1, 5), dtype="float32", scale=None)
    th = s.apply("TANH", [t], (1, 8, 6, 5), scale=1 / 128)
    return s.bytes([x, side], [de, th])
