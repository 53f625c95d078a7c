"""Files of networks of uint8, the quantisation before int8."""

import numpy as np
import samplefiles
from flatfiles import FileTensor, constant


class Sheet(samplefiles.Sheet):
    def tensor(self, shape, scale=0.5, zero=131, data=None) -> int:
        return self.add(FileTensor(shape, "uint8", data, scale, zero))

    def weights(self, shape, zero=128, low=1, high=256, scale=0.0071) -> int:
        return self.tensor(shape, scale, zero, self.rng.integers(low, high, shape).astype(np.uint8))

    def bias(self, count, x, weights) -> int:
        scale = float(np.float32(self.tensors[x].scale) * np.float32(self.tensors[weights].scale))
        values = self.rng.integers(-900, 900, count).astype(np.int32)
        return self.add(constant(values, scale=scale, zero=0))

    def apply(self, kind, inputs, shape, cls="", options=None, version=1, **quant) -> int:
        out = super().apply(
            kind, inputs, shape, cls, options, **{"dtype": "uint8", "scale": 0.5, "zero": 131, **quant}
        )
        self.operators[-1].version = version
        return out


def small_classifier() -> bytes:
    """A classifier: filters whose zero point fits int8 or not, even averages, joined scales."""
    s = Sheet(3)

    def convolution(x, channels, kernel, stride, zero, depthwise=False):
        rows, columns, inputs = s.tensors[x].shape[1:]
        shape = (1, kernel, kernel, inputs) if depthwise else (channels, kernel, kernel, inputs)
        w = s.weights(shape, zero)
        kind = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
        options = {"Padding": 0, "StrideH": stride, "StrideW": stride, "FusedActivationFunction": 3}
        options |= {"DepthMultiplier": 1} if depthwise else {}
        out = (1, -(-rows // stride), -(-columns // stride), channels)
        name = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
        return s.apply(name, [x, w, s.bias(channels, x, w)], out, kind, options, scale=0.0235, zero=0)

    def pool(kind, x, kernel, stride, scale, zero):
        _, rows, columns, channels = s.tensors[x].shape
        options = {"Padding": 1, "StrideH": stride, "StrideW": stride}
        options |= {"FilterHeight": kernel, "FilterWidth": kernel}
        out = (1, (rows - kernel) // stride + 1, (columns - kernel) // stride + 1, channels)
        return s.apply(kind, [x], out, "Pool2DOptions", options, scale=scale, zero=zero)

    x = s.tensor((1, 16, 18, 3), 0.0078, 128)
    trunk = convolution(convolution(x, 8, 3, 2, 151), 8, 3, 1, 110, depthwise=True)
    left = pool("AVERAGE_POOL_2D", convolution(trunk, 16, 1, 1, 122), 2, 2, 0.0235, 0)
    right = pool("MAX_POOL_2D", convolution(trunk, 8, 1, 1, 128), 2, 4, 0.0235, 0)
    size, move = s.ints(4, 4), {"scale": 0.0235, "zero": 0}
    options = {"HalfPixelCenters": True}
    right = s.apply(
        "RESIZE_BILINEAR", [right, size], (1, 4, 4, 8), "ResizeBilinearOptions", options, 3, **move
    )
    right = s.apply("ADD", [right, right], (1, 4, 4, 8), "AddOptions", {}, scale=0.03, zero=9)
    quant = {"scale": 0.031, "zero": 3}
    both = s.apply(
        "CONCATENATION", [left, right], (1, 4, 4, 24), "ConcatenationOptions", {"Axis": 3}, **quant
    )
    mean = pool("AVERAGE_POOL_2D", both, 4, 4, **quant)
    flat = s.apply("RESHAPE", [mean, s.ints(1, 24)], (1, 24), "ReshapeOptions", **quant)
    w = s.weights((10, 24), 131)
    dense = s.apply("FULLY_CONNECTED", [flat, w, s.bias(10, flat, w)], (1, 10), "FullyConnectedOptions",
                    scale=0.011, zero=120)  # fmt: skip
    return s.bytes(
        [x], [s.apply("SOFTMAX", [dense], (1, 10), "SoftmaxOptions", {"Beta": 1.0}, scale=1 / 256, zero=0)]
    )
