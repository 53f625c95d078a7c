"""Reads Keras models as lists of calls and as steps (see types.py). Models inside a model are expanded."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from buildtool.base.errors import UnsupportedError
from buildtool.split.types import CONVOLUTIONS, DEPTHWISE, MIXING, SPLITTABLE, Step

if TYPE_CHECKING:
    import keras

T = TypeVar("T", bound=Hashable)
# Layers without weights that may be the activation of another layer.
_PLAIN_ACTIVATIONS = frozenset(("ReLU", "LeakyReLU", "ELU"))
Source = tuple[str, int]  # a call's name, and the index of its output


def each_after(ends: Iterable[T], reads: Callable[[T], Iterable[T]]) -> list[T]:
    """Returns `ends` and all items that they depend on. Each item comes after those that it reads.

    `reads` returns what an item reads. Branches come one after the other.
    """
    order: list[T] = []
    seen: set[T] = set()
    waiting = [(one, False) for one in reversed(list(ends))]
    while waiting:
        one, is_ready = waiting.pop()
        if is_ready:
            order.append(one)
        elif one not in seen:
            seen.add(one)
            waiting.append((one, True))
            waiting += [(other, False) for other in reversed(list(reads(one)))]
    return order


@dataclass(frozen=True)
class Call:
    """One use of a layer or operation.

    `name` consists of the names of the models that contain the layer, and of its own name.
    """

    name: str
    operation: Any
    node: Any
    sources: tuple[Source, ...]

    @property
    def kind(self) -> str:
        """The name of the class of the layer or operation."""
        return type(self.operation).__name__

    def again(self, operation: Any, inputs: list[Any]) -> Any:
        """Calls `operation`, another layer, on `inputs`, with the other arguments that this call has."""
        own = self.node.input_tensors
        tensors = {id(tensor): other for tensor, other in zip(own, inputs, strict=True)}
        args, kwargs = self.node.arguments.fill_in(tensors)
        return operation(*args, **kwargs)


def steps_of(model: keras.Model) -> tuple[Step, ...]:
    """Returns the steps of a Keras 3 model, in an order in which they can run."""
    steps = []
    for call in calls_of(model):
        operation, kind = call.operation, call.kind
        fields: dict[str, Any] = {}
        if kind != "InputLayer":
            fields["refused"] = _explain_refusal(call)
            kernel = "kernel_size" if kind in CONVOLUTIONS | DEPTHWISE else "pool_size"
            for field, name in (("kernel", kernel), ("strides", "strides")):
                value = getattr(operation, name, ())
                fields[field] = (value,) if isinstance(value, int) else tuple(value)
            if kind in DEPTHWISE | {"SeparableConv2D"}:
                fields["multiplier"] = operation.depth_multiplier
            if kind in MIXING | DEPTHWISE:
                fields["groups"] = getattr(operation, "groups", None) or 1
        sources = tuple(name for name, _ in call.sources)
        shape = tuple(call.node.output_tensors[0].shape[1:])
        steps.append(Step(call.name, kind, sources, shape, **fields))
    return tuple(steps)


def calls_of(model: keras.Model) -> tuple[Call, ...]:
    """Returns the calls of a model of one input and one output. Each comes after those that it reads."""
    graph = _open_graph(model)
    for count, what in ((len(graph.inputs), "inputs"), (len(graph.outputs), "outputs")):
        if count != 1:
            raise UnsupportedError(f"the model has {count} {what}; only networks with one can be split")
    if None in (shape := tuple(graph.inputs[0].shape[1:])):
        hint = "give keras.Input the rows and columns of the images on the board"
        raise UnsupportedError(f"the size of the model's input {shape} is not fixed", hint=hint)
    calls: dict[str, Call] = {}
    _collect(graph, "", {}, calls)
    return tuple(calls.values())


def _open_graph(model: Any) -> Any:
    """Returns the functional model: `model` itself, or the one that Keras keeps inside a Sequential model.

    Raises UnsupportedError for other models.
    """
    import keras

    if not isinstance(model, keras.Model):
        raise UnsupportedError(f"a {type(model).__name__} is not a Keras model")
    if isinstance(model, keras.Sequential):
        if not model.built:
            hint = "put keras.Input(shape=...) first"
            raise UnsupportedError(f"the Sequential model '{model.name}' has no input shape", hint=hint)
        return model._functional
    if not hasattr(model, "operations"):
        text = f"a {type(model).__name__} ('{model.name}') has no graph of its layers"
        raise UnsupportedError(text, hint="use a functional or Sequential model")
    return model


def _collect(graph: Any, prefix: str, origins: dict[int, Source], calls: dict[str, Call]) -> None:
    """Adds a graph's calls to `calls`, by name, and the sources of their outputs to `origins`, by tensor id.

    `prefix` is put before the calls' names. For the graph of an inner model, `origins` begins with the
    sources of its inputs.
    """
    import keras

    input_ids = {id(tensor) for tensor in graph.inputs}

    def reads(node: Any) -> list[Any]:
        is_input = id(node.output_tensors[0]) in input_ids
        return [] if is_input else [_find_node(tensor) for tensor in node.input_tensors]

    for node in each_after(map(_find_node, (*graph.inputs, *graph.outputs)), reads):
        operation = node.operation
        name = prefix + operation.name
        sources = tuple(origins[id(tensor)] for tensor in node.input_tensors)
        if isinstance(operation, keras.Model):
            inner = _open_graph(operation)
            inner_origins = dict(zip(map(id, inner.inputs), sources, strict=True))
            _collect(inner, f"{name}_", inner_origins, calls)
            outputs = [inner_origins[id(tensor)] for tensor in inner.outputs]
            origins.update(zip(map(id, node.output_tensors), outputs, strict=True))
        elif id(node.output_tensors[0]) not in origins:  # else it is an input of an inner model
            text = hint = ""
            if getattr(operation, "data_format", None) == "channels_first":
                text = "its channels come first"
                hint = 'use data_format="channels_last"; the weights stay the same'
            elif mode := getattr(operation, "quantization_mode", None):
                text = f"its weights are quantised ({mode})"
                hint = "split the float model: the converter quantises the result"
            elif name in calls:
                text = "the layer is used in two places, and shared layers cannot be split"
                hint = "use one layer for each place"
            if text:
                raise UnsupportedError(text, operator=name, hint=hint)
            calls[name] = Call(name, operation, node, sources)
            origins.update((id(tensor), (name, i)) for i, tensor in enumerate(node.output_tensors))


def _find_node(tensor: Any) -> Any:
    history = tensor._keras_history
    return history.operation._inbound_nodes[history.node_index]


def _explain_refusal(call: Call) -> str:
    """Returns a text that says why a layer cannot be part of a split block; "" if it can."""
    operation, node, kind = call.operation, call.node, call.kind
    shape, source = node.output_tensors[0].shape, node.input_tensors[0].shape
    if kind not in SPLITTABLE:
        return f"layers of the kind {kind} are not split"
    if not shape or not shape[-1]:
        return "its number of channels is unknown"
    activation = activation_of(operation)
    if activation in ("softmax", "log_softmax"):
        return f"{activation} reads all channels"
    if activation.startswith("layer ") and activation[6:] not in _PLAIN_ACTIVATIONS:
        return f"its activation is a layer of the kind {activation[6:]}"
    axis = getattr(operation, "axis", -1)
    if isinstance(axis, int) and axis % len(shape) != len(shape) - 1:
        return f"it works on axis {axis}, not on the channels"
    if kind == "Reshape" and source[-1] != shape[-1]:
        return "it reshapes the channels"
    if kind == "Rescaling" and not isinstance(operation.scale, int | float):
        return "it scales each channel by its own number"
    if kind in ("Multiply", "Add", "Subtract", "Maximum", "Minimum"):
        values = [one for one in node.arguments.args if hasattr(one, "shape")]
        if any(math.prod(one.shape) > 1 for one in values if not hasattr(one, "_keras_history")):
            return "one of its operands is an array"
    return ""


def activation_of(operation: Any) -> str:
    """Returns the name of a layer's activation, "layer KIND" if it is itself a layer, "" if there is none."""
    import keras

    activation = getattr(operation, "activation", None)
    if activation is None:
        return ""
    if isinstance(activation, keras.layers.Layer):
        return f"layer {type(activation).__name__}"
    return str(getattr(activation, "__name__", type(activation).__name__))
