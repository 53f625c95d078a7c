"""An int8 network with the structure of a Keras model and random weights: all that a plan depends on.

RAM, flash, work and cost depend on shapes and operators, never on the values of weights. TensorFlow's
converter takes up to half a minute for a network; this takes a tenth of a second. What it does not know is
left to the converter (see `pricing`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.types import Activation, DType, Graph, OpKind, Quantization
from buildtool.zoo.drawn import NetBuilder, quant

# Layers of one input that leave no operator behind: the one beside them takes them over.
_SILENT = frozenset(
    {"BatchNormalization", "Dropout", "SpatialDropout2D", "ActivityRegularization", "Identity"}
)


_QUANT = quant(0.0625, -128)  # as of what a ReLU makes


class Unknown(Exception):
    """A layer that is not sketched; the text says which."""


def sketch(model: Any, name: str = "net") -> Graph:
    """The network of a Keras 3 functional or Sequential model, layer by layer in the model's order.

    Batch normalisations and activations are part of the convolution before them, as in a converted file.
    Raises Unknown for a layer that it does not know, and for one that it knows in another use.
    """
    return _Sketch(model, name).graph()


class _Builder(NetBuilder):
    """A builder that gives all activations one quantisation, so that what is joined agrees."""

    def random_quant(self, scale: float | None = None, dtype: DType = DType.INT8) -> Quantization:
        return _QUANT

    def _out_quant(self, spread: float) -> Quantization:
        return _QUANT


class _Sketch:
    """Keras tensors by their identity, as tensors of the builder."""

    def __init__(self, model: Any, name: str) -> None:
        self.model, self.net = model, _Builder(0, name)
        self.made: dict[int, int] = {}

    def graph(self) -> Graph:
        for tensor in self.model.inputs:
            self.made[id(tensor)] = self.net.input([1 if n is None else int(n) for n in tensor.shape])
        for node in _in_order(self.model):
            self._node(node.operation, node)
        return self.net.graph([self.made[id(t)] for t in self.model.outputs])

    def _node(self, operation: Any, node: Any) -> None:
        kind, outputs = type(operation).__name__, node.output_tensors
        inputs = [self.made[id(t)] for t in node.input_tensors]
        if kind in _SILENT:
            made = inputs[0]
        elif kind in _MAKERS:
            made = _MAKERS[kind](self, operation, inputs, node)
        else:
            raise Unknown(f"layer '{operation.name}' is a {kind}")
        want = tuple(1 if n is None else int(n) for n in outputs[0].shape)
        if self.net.shape(made) != want:
            raise Unknown(f"layer '{operation.name}' ({kind}) makes {want}, not {self.net.shape(made)}")
        self.made[id(outputs[0])] = made

    def _activated(self, layer: Any, made: int) -> int:
        """A layer's own activation."""
        name = getattr(getattr(layer, "activation", None), "__name__", "linear")
        return self._activation(name, made)

    def _activation(self, name: str, made: int) -> int:
        fused = {"relu": Activation.RELU, "relu6": Activation.RELU6}.get(name)
        if name == "linear":
            return made
        if name == "softmax":
            return self.net.softmax(made)
        if fused is None:
            raise Unknown(f"activation {name}")
        return self._fused(made, fused)

    def _fused(self, made: int, activation: Activation) -> int:
        """The activation as part of the operator before it, which has to be one that can take it."""
        op = next((op for op in self.net.ops if op.outputs == (made,)), None)
        attrs = op.attrs if op is not None else None
        if op is None or attrs is None or getattr(attrs, "activation", None) is not Activation.NONE:
            return self.net.unary(OpKind.RELU if activation is Activation.RELU else OpKind.RELU6, made)
        from dataclasses import replace

        at = self.net.ops.index(op)
        self.net.ops[at] = replace(op, attrs=replace(attrs, activation=activation))  # type: ignore[call-arg]
        return made

    # ---- layers ------------------------------------------------------------------------------------

    def convolution(self, layer: Any, inputs: list[int], _node: Any) -> int:
        if layer.data_format not in (None, "channels_last"):
            raise Unknown(f"layer '{layer.name}' has its channels first")
        made = self.net.conv(
            inputs[0],
            int(layer.filters),
            kernel=_pair(layer.kernel_size),
            stride=_pair(layer.strides),
            dilation=_pair(layer.dilation_rate),
            same=layer.padding == "same",
            groups=int(layer.groups),
        )
        return self._activated(layer, made)

    def depthwise(self, layer: Any, inputs: list[int], _node: Any) -> int:
        made = self.net.conv(
            inputs[0],
            0,
            kernel=_pair(layer.kernel_size),
            stride=_pair(layer.strides),
            dilation=_pair(layer.dilation_rate),
            same=layer.padding == "same",
            depth_multiplier=int(layer.depth_multiplier),
        )
        return self._activated(layer, made)

    def pooling(self, layer: Any, inputs: list[int], _node: Any) -> int:
        kind = OpKind.MAX_POOL_2D if type(layer).__name__.startswith("Max") else OpKind.AVERAGE_POOL_2D
        same = layer.padding == "same"
        return self.net.pool(kind, inputs[0], _pair(layer.pool_size), _pair(layer.strides), same)

    def global_average(self, layer: Any, inputs: list[int], _node: Any) -> int:
        return self.net.mean(inputs[0], keep_dims=bool(layer.keepdims))

    def flat(self, _layer: Any, inputs: list[int], _node: Any) -> int:
        return self.net.flatten(inputs[0])

    def dense(self, layer: Any, inputs: list[int], _node: Any) -> int:
        return self._activated(layer, self.net.dense(inputs[0], int(layer.units)))

    def addition(self, _layer: Any, inputs: list[int], _node: Any) -> int:
        made = inputs[0]
        for other in inputs[1:]:
            made = self.net.elementwise(OpKind.ADD, made, other)
        return made

    def concatenation(self, layer: Any, inputs: list[int], _node: Any) -> int:
        last = len(self.net.shape(inputs[0])) - 1
        if layer.axis not in (-1, last):
            raise Unknown(f"layer '{layer.name}' joins along axis {layer.axis}")
        return self.net.concat(inputs, last)

    def relu(self, layer: Any, inputs: list[int], _node: Any) -> int:
        limit = getattr(layer, "max_value", None)
        if limit not in (None, 6) or float(layer.negative_slope or 0):
            raise Unknown(f"layer '{layer.name}' is a ReLU of another form")
        return self._activation("relu" if limit is None else "relu6", inputs[0])

    def activation(self, layer: Any, inputs: list[int], _node: Any) -> int:
        return self._activated(layer, inputs[0])

    def softmax(self, _layer: Any, inputs: list[int], _node: Any) -> int:
        return self.net.softmax(inputs[0])

    def padding(self, layer: Any, inputs: list[int], _node: Any) -> int:
        rows, columns = (tuple(map(int, pair)) for pair in layer.padding)
        return self.net.pad(inputs[0], ((0, 0), rows, columns, (0, 0)))  # type: ignore[arg-type]

    def share(self, operation: Any, inputs: list[int], node: Any) -> int:
        """Some of the channels: x[..., begin:end]."""
        key = node.arguments.args[1] if len(node.arguments.args) > 1 else node.arguments.kwargs["key"]
        shape = self.net.shape(inputs[0])
        keys = key if isinstance(key, tuple) else (key,)
        part = keys[-1]
        whole = slice(None)
        if not isinstance(part, slice) or any(k not in (whole, ...) for k in keys[:-1]):
            raise Unknown(f"'{operation.name}' takes other parts than channels")
        begin, end, step = part.indices(shape[-1])
        if step != 1:
            raise Unknown(f"'{operation.name}' takes every {step}th channel")
        return self._channels(inputs[0], begin, end)

    def _channels(self, x: int, begin: int, end: int) -> int:
        extent = (*self.net.shape(x)[:-1], end - begin)
        before = (0,) * (len(extent) - 1)
        return self.net.move(
            OpKind.SLICE, x, extent, g.SliceAttrs((*before, begin), (1,) * len(extent), extent)
        )


def _in_order(model: Any) -> list[Any]:
    """The nodes of a model, each after what it reads: branch after branch, as a converted file has them."""
    found: list[Any] = []
    seen = {id(tensor) for tensor in model.inputs}
    waiting = [(tensor, False) for tensor in reversed(model.outputs)]
    while waiting:
        tensor, is_read = waiting.pop()
        node = tensor._keras_history.operation._inbound_nodes[tensor._keras_history.node_index]
        if is_read:
            found.append(node)
        elif id(tensor) not in seen:
            seen.update(map(id, node.output_tensors))
            waiting.append((tensor, True))
            waiting += [(one, False) for one in reversed(node.input_tensors)]
    return found


def _pair(value: Any) -> tuple[int, int]:
    rows, columns = (value, value) if isinstance(value, int) else (np.ravel(value)[0], np.ravel(value)[-1])
    return int(rows), int(columns)


_MAKERS: dict[str, Callable[[_Sketch, Any, list[int], Any], int]] = {
    "Conv2D": _Sketch.convolution,
    "DepthwiseConv2D": _Sketch.depthwise,
    "MaxPooling2D": _Sketch.pooling,
    "AveragePooling2D": _Sketch.pooling,
    "GlobalAveragePooling2D": _Sketch.global_average,
    "Flatten": _Sketch.flat,
    "Dense": _Sketch.dense,
    "Add": _Sketch.addition,
    "Concatenate": _Sketch.concatenation,
    "ReLU": _Sketch.relu,
    "Activation": _Sketch.activation,
    "Softmax": _Sketch.softmax,
    "ZeroPadding2D": _Sketch.padding,
    "GetItem": _Sketch.share,
}
