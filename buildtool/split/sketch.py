"""An int8 network with the structure of a Keras model and random weights: all that a plan depends on.

RAM, flash, work and cost depend on shapes and operators, never on the values of weights. TensorFlow's
converter takes up to half a minute for a network; this takes a tenth of a second. What it does not know is
left to the converter (see `pricing`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.types import Activation, DType, Graph, OpKind, Quantization
from buildtool.split.graphs import Call, activation_of, calls_of
from buildtool.zoo.drawn import NetBuilder, quant

if TYPE_CHECKING:
    import keras

_QUANT = quant(0.0625, -128)  # as of what a ReLU makes
_FUSED = {"relu": Activation.RELU, "relu6": Activation.RELU6}


class Unknown(Exception):
    """A layer that is not sketched; the text says which."""


def sketch(model: keras.Model, name: str = "net") -> Graph:
    """The network of a Keras 3 functional or Sequential model, layer by layer in the model's order.

    Batch normalisations and activations are part of the convolution before them, as in a converted file.
    Raises Unknown for a layer that it does not know, and for one that it knows in another use.
    """
    net = _Sketch(0, name)
    made: dict[str, int] = {}
    for call in calls_of(model):
        want = tuple(1 if n is None else int(n) for n in call.node.output_tensors[0].shape)
        if call.kind == "InputLayer":
            made[call.name] = net.input(want)
            continue
        tensor = net.layer(call, [made[source] for source, _ in call.sources])
        if net.shape(tensor) != want:
            raise Unknown(f"layer '{call.name}' ({call.kind}) makes {want}, not {net.shape(tensor)}")
        made[call.name] = tensor
    return net.graph([tensor])


class _Sketch(NetBuilder):
    """A builder that gives all activations one quantisation, so that what is joined agrees."""

    def random_quant(self, scale: float | None = None, dtype: DType = DType.INT8) -> Quantization:
        return _QUANT

    def _out_quant(self, spread: float) -> Quantization:
        return _QUANT

    def layer(self, call: Call, inputs: list[int]) -> int:
        """What a layer makes of tensors; layers that leave no operator behind give their input back."""
        layer, x = call.operation, inputs[0]
        match call.kind:
            case (
                "BatchNormalization" | "Dropout" | "SpatialDropout2D" | "ActivityRegularization" | "Identity"
            ):
                return x
            case "Conv2D" | "DepthwiseConv2D":
                return self._activated(self._convolution(call.kind, layer, x), activation_of(layer))
            case "Dense":
                return self._activated(self.dense(x, int(layer.units)), activation_of(layer))
            case "Activation":
                return self._activated(x, activation_of(layer))
            case "ReLU":
                limit = layer.max_value
                if limit in (None, 6) and not layer.negative_slope:
                    return self._activated(x, "relu" if limit is None else "relu6")
            case "Softmax":
                return self.softmax(x)
            case "MaxPooling2D" | "AveragePooling2D":
                kind = OpKind.MAX_POOL_2D if call.kind[0] == "M" else OpKind.AVERAGE_POOL_2D
                same = layer.padding == "same"
                return self.pool(kind, x, _pair(layer.pool_size), _pair(layer.strides), same)
            case "GlobalAveragePooling2D":
                return self.mean(x, keep_dims=bool(layer.keepdims))
            case "Flatten":
                return self.flatten(x)
            case "Add":
                for other in inputs[1:]:
                    x = self.elementwise(OpKind.ADD, x, other)
                return x
            case "Concatenate":
                last = len(self.shape(x)) - 1
                if layer.axis in (-1, last):
                    return self.concat(inputs, last)
            case "ZeroPadding2D":
                rows, columns = (tuple(map(int, pair)) for pair in layer.padding)
                return self.pad(x, ((0, 0), rows, columns, (0, 0)))  # type: ignore[arg-type]
            case "GetItem":
                return self._share(call, x)
        raise Unknown(f"layer '{call.name}' is a {call.kind}, or one of another form")

    def _convolution(self, kind: str, layer: Any, x: int) -> int:
        is_depthwise = kind == "DepthwiseConv2D"
        return self.conv(
            x,
            0 if is_depthwise else int(layer.filters),
            kernel=_pair(layer.kernel_size),
            stride=_pair(layer.strides),
            dilation=_pair(layer.dilation_rate),
            same=layer.padding == "same",
            groups=1 if is_depthwise else int(layer.groups),
            depth_multiplier=int(layer.depth_multiplier) if is_depthwise else 0,
        )

    def _activated(self, made: int, name: str) -> int:
        """The activation as part of the operator before it, or as one of its own where it takes none."""
        if name in ("", "linear"):
            return made
        if name == "softmax":
            return self.softmax(made)
        if name not in _FUSED:
            raise Unknown(f"activation {name}")
        for at, op in enumerate(self.ops):
            if op.outputs == (made,) and getattr(op.attrs, "activation", None) is Activation.NONE:
                own: Any = {"activation": _FUSED[name]}
                self.ops[at] = replace(op, attrs=replace(op.attrs, **own))
                return made
        return self.unary(OpKind.RELU if name == "relu" else OpKind.RELU6, made)

    def _share(self, call: Call, x: int) -> int:
        """Some of the channels: x[..., begin:end]."""
        given = call.node.arguments
        key = given.args[1] if len(given.args) > 1 else given.kwargs["key"]
        keys = key if isinstance(key, tuple) else (key,)
        shape = self.shape(x)
        if not isinstance(keys[-1], slice) or any(one not in (slice(None), ...) for one in keys[:-1]):
            raise Unknown(f"'{call.name}' takes other parts than channels")
        begin, end, step = keys[-1].indices(shape[-1])
        if step != 1:
            raise Unknown(f"'{call.name}' takes every {step}th channel")
        extent, before = (*shape[:-1], end - begin), (0,) * (len(shape) - 1)
        attrs = g.SliceAttrs((*before, begin), (1,) * len(extent), extent)
        return self.move(OpKind.SLICE, x, attrs=attrs)


def _pair(value: Any) -> tuple[int, int]:
    rows, columns = (value, value) if isinstance(value, int) else (np.ravel(value)[0], np.ravel(value)[-1])
    return int(rows), int(columns)
