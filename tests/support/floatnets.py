"""Float networks as .tflite files, like the sine of TFLM's hello_world: dense layers 1-16-16-1 with RELU."""

import itertools

import numpy as np
from flatfiles import FileOperator, FileTensor, write

SIZES = (1, 16, 16, 1)


def layers(seed=0, sizes=SIZES):
    """Returns (weights [out, in], bias) of each layer, float32."""
    random = np.random.default_rng(seed)
    pairs = itertools.pairwise(sizes)
    return [
        (random.normal(0, 0.7, (out, n)).astype(np.float32), random.normal(0, 0.3, out).astype(np.float32))
        for n, out in pairs
    ]


def narrow(weights, kind):
    """Returns a hybrid network's weights: (values, scales, axis). float16 has no scales."""
    if kind == "float16":
        return weights.astype(np.float16), None, 0
    axes = None if kind == "int8" else 1  # "channels": a scale for each output
    scale = np.abs(weights).max(axis=axes, keepdims=True).astype(np.float32) / np.float32(127)
    return np.round(weights / scale).astype(np.int8), scale.reshape(-1), 0


def file(kind="float32", seed=0, sizes=SIZES):
    """Returns the network's file. `kind` says how it has its weights: float32, int8, channels or float16."""
    tensors = [FileTensor((1, 1), "float32", scale=None, name="x")]
    operators = []

    def add(tensor):
        tensors.append(tensor)
        return len(tensors) - 1

    value = 0
    for number, (weights, bias) in enumerate(layers(seed, sizes)):
        name = f"dense{number}"
        data, scales, axis = (weights, None, 0) if kind == "float32" else narrow(weights, kind)
        scale = None if scales is None else scales.tolist()
        zero = 0 if scales is None else [0] * len(scales)
        w = add(FileTensor(data.shape, data.dtype.name, data, scale, zero, axis, name=f"{name}/w"))
        if kind == "float16":
            wide = add(FileTensor(data.shape, "float32", scale=None, name=f"{name}/wide"))
            operators.append(FileOperator("DEQUANTIZE", [w], [wide]))
            w = wide
        b = add(FileTensor(bias.shape, "float32", bias, None, name=f"{name}/b"))
        out = add(FileTensor((1, len(bias)), "float32", scale=None, name=name))
        options = {"FusedActivationFunction": int(number < len(sizes) - 2)}
        operators.append(
            FileOperator("FULLY_CONNECTED", [value, w, b], [out], "FullyConnectedOptions", options)
        )
        value = out
    return write(tensors, operators, [0], [value])
