"""Keras models read as records, and what of Keras cannot be split."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from buildtool.errors import UnsupportedError
from buildtool.split.steps import CONVOLUTIONS, DEPTHWISE, MIXING, SPLITTABLE, Step

if TYPE_CHECKING:
    import keras

# Activations given as layers that have no weights.
_PLAIN_ACTIVATIONS = frozenset(("ReLU", "LeakyReLU", "ELU"))


def node_of(operation: Any) -> Any:
    """The one call of a layer or operation in a model that `steps_of` has read."""
    return operation._inbound_nodes[-1]


def steps_of(model: keras.Model) -> tuple[Step, ...]:
    """The records of a Keras 3 model, in an order in which they can run."""
    operations = _operations(model)
    names = {id(operation) for operation in operations}
    for operation in operations:
        _check(operation, names)
    return tuple(_step(operation) for operation in operations)


def _operations(model: keras.Model) -> list[Any]:
    """The layers and operations of a model, which is a graph with one input and one output."""
    import keras

    if not isinstance(model, keras.Model):
        raise UnsupportedError(f"a {type(model).__name__} is not a Keras model")
    if isinstance(model, keras.Sequential):
        if not model.built:
            hint = "put keras.Input(shape=...) first"
            raise UnsupportedError(f"the Sequential model '{model.name}' has no input shape", hint=hint)
        model = model._functional
    if not hasattr(model, "operations"):
        raise UnsupportedError(
            f"the layers' graph of a {type(model).__name__} ('{model.name}') is not known",
            hint="a functional or Sequential model",
        )
    for count, what in ((len(model.inputs), "inputs"), (len(model.outputs), "outputs")):
        if count != 1:
            raise UnsupportedError(f"the model has {count} {what}; a network with one can be split")
    if None in (shape := tuple(model.inputs[0].shape[1:])):
        hint = "keras.Input with rows and columns as on the board"
        raise UnsupportedError(f"the size of the model's input {shape} is not fixed", hint=hint)
    return list(model.operations)


def _check(operation: Any, known: set[int]) -> None:
    """Raises what no part of a network may be, split or whole."""
    import keras

    name = operation.name
    if isinstance(operation, keras.Model):
        hint = "call its layers in the outer model, or split it alone"
        raise UnsupportedError("a model inside a model cannot be split", operator=name, hint=hint)
    if getattr(operation, "data_format", None) == "channels_first":
        hint = 'data_format="channels_last", with weights as they are'
        raise UnsupportedError("it has its channels first", operator=name, hint=hint)
    if getattr(operation, "quantization_mode", None):
        hint = "split the float model; the converter quantises the result"
        raise UnsupportedError(
            f"its weights are quantised ({operation.quantization_mode})", operator=name, hint=hint
        )
    if len(operation._inbound_nodes) != 1:
        hint = "a layer of its own for each place; keras.models.clone_model frees layers of other models"
        text = (
            f"the layer is used in {len(operation._inbound_nodes)} places, and shared layers cannot be split"
        )
        raise UnsupportedError(text, operator=name, hint=hint)
    for tensor in node_of(operation).input_tensors:
        if id(tensor._keras_history.operation) not in known:
            raise UnsupportedError("it reads a tensor of another model", operator=name)


def _step(operation: Any) -> Step:
    node = node_of(operation)
    kind = type(operation).__name__
    shape = tuple(node.output_tensors[0].shape[1:])
    inputs = tuple(tensor._keras_history.operation.name for tensor in node.input_tensors)
    if kind == "InputLayer":
        return Step(operation.name, kind, (), shape)
    fields: dict[str, Any] = {"refused": _refused(operation, node)}
    if kind in CONVOLUTIONS | DEPTHWISE:
        fields["kernel"] = tuple(operation.kernel_size)
    strides = getattr(operation, "strides", ())
    fields["strides"] = (strides,) if isinstance(strides, int) else tuple(strides)
    if hasattr(operation, "pool_size"):
        pool = operation.pool_size
        fields["kernel"] = (pool,) if isinstance(pool, int) else tuple(pool)
    if kind in DEPTHWISE | {"SeparableConv2D"}:
        fields["multiplier"] = operation.depth_multiplier
    if kind in MIXING | DEPTHWISE:
        fields["has_bias"] = bool(operation.use_bias)
        fields["groups"] = getattr(operation, "groups", None) or 1
    elif getattr(operation, "weights", None):
        fields["weights"] = sum(math.prod(weight.shape) for weight in operation.weights)
    return Step(operation.name, kind, inputs, shape, **fields)


def _refused(operation: Any, node: Any) -> str:
    """Why a layer cannot be part of a split block; "" where it can."""
    kind, shape = type(operation).__name__, node.output_tensors[0].shape
    if kind not in SPLITTABLE:
        return f"layers of the kind {kind} are not split"
    if not shape or not shape[-1]:
        return "its number of channels is not known"
    activation = _activation(operation)
    if activation in ("softmax", "log_softmax"):
        return f"{activation} reads all channels"
    if activation.startswith("layer ") and activation[6:] not in _PLAIN_ACTIVATIONS:
        return f"its activation is a layer of the kind {activation[6:]}"
    axis = getattr(operation, "axis", -1)
    if isinstance(axis, int) and axis % len(shape) != len(shape) - 1:
        return f"it works on axis {axis}, not on the channels"
    return _other_refusal(operation, kind, node)


def _other_refusal(operation: Any, kind: str, node: Any) -> str:
    wide = node.output_tensors[0].shape[-1]
    if kind == "Reshape" and (node.input_tensors[0].shape[-1] != wide):
        return "it reshapes the channels"
    if kind == "Rescaling" and not isinstance(operation.scale, int | float):
        return "it scales each channel by its own number"
    if kind in ("Multiply", "Add", "Subtract", "Maximum", "Minimum"):
        constants = [
            value for value in node.arguments.args if hasattr(value, "shape") and not _is_tensor(value)
        ]
        if any(math.prod(value.shape) > 1 for value in constants):
            return "one of its operands is an array"
    return ""


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "_keras_history")


def _activation(operation: Any) -> str:
    """The name of a layer's activation; "layer KIND" where it is a layer of its own."""
    import keras

    activation = getattr(operation, "activation", None)
    if activation is None:
        return ""
    if isinstance(activation, keras.layers.Layer):
        return f"layer {type(activation).__name__}"
    return str(getattr(activation, "__name__", type(activation).__name__))
