"""The Keras model of a choice, with the weights of the original or of a network trained since.

Of every layer a branch has the slices of its own channels. Kernels are sliced by output channels and, where
the branch reads a part of the input, by input channels too. Biases, batch normalisation and whatever else has
one number a channel are sliced by output channels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from buildtool.base.errors import UnsupportedError
from buildtool.split.branches import Channels, split_steps
from buildtool.split.graphs import calls_of, steps_of
from buildtool.split.grouping import is_part, orders
from buildtool.split.types import DEPTHWISE, Block, Choice, Part, Step

if TYPE_CHECKING:
    import keras

Weights = list[NDArray[Any]]


def build(
    model: keras.Model,
    blocks: Sequence[Block],
    choice: Choice,
    *,
    weights: keras.Model | None = None,
    grouped: bool = True,
) -> keras.Model:
    """The Keras model of a choice; layers' names are the same in every process.

    `model` is the original, whose blocks `blocks` are. Each layer's weights are taken from `weights` (a
    network trained since, whole or split) where it has the same layer, else sliced from the whole layer of
    `weights`, else from that of `model`. A fusion's 1x1 convolution begins as the identity. With `grouped`,
    channels of a layer come into the branches in which they keep most of their weights (grouping.py), and the
    fusion puts them back in order. `model` stays as it is, and the result shares no layer with it.
    """
    import keras

    original = steps_of(model)
    steps = split_steps(original, blocks, choice)
    made = _outputs(model, steps)
    result = keras.Model(made[steps[0].name][0], made[steps[-1].name][0], name=model.name)
    taking = _Taking(steps, original, [weights, model] if weights is not None else [model], grouped)
    layers = {layer.name: layer for layer in result.layers}
    for step in steps:
        layer = layers.get(step.name)  # operations without weights are no layers
        if layer is not None and layer.weights:
            layer.set_weights(taking.weights(step, [tuple(weight.shape) for weight in layer.weights]))
    return result


def _outputs(model: keras.Model, steps: Sequence[Step]) -> dict[str, list[Any]]:
    """The Keras graph of steps, in layers like the model's: the tensors that each step makes."""
    import keras

    calls = {call.name: call for call in calls_of(model)}
    policies: dict[str, Any] = {}  # of the layers that a step's output went through
    outputs: dict[str, list[Any]] = {}
    for step in steps:
        inputs = [outputs[name] for name in step.inputs]
        policies[step.name] = policies.get(step.inputs[0]) if step.inputs else None
        if step.kind == "InputLayer":
            tensor = calls[step.name].node.output_tensors[0]
            made: Any = keras.Input(tensor.shape[1:], dtype=tensor.dtype, name=step.name)
        elif step.kind == "Slice":
            made = inputs[0][0][..., step.writes[0] : step.writes[-1] + 1]
            made._keras_history.operation.name = step.name  # else it counts the slices of this process
        elif step.part is not None and not step.part.source:
            tensors = [one[0] for one in inputs]
            made = _joining(step, policies[step.name])(tensors if len(tensors) > 1 else tensors[0])
        else:  # a layer like its original one, called as that one was
            call = calls[step.part.source if step.part else step.name]
            policies[step.name] = getattr(call.operation, "dtype_policy", policies[step.name])
            places = (
                index if len(one) > 1 else 0 for one, (_, index) in zip(inputs, call.sources, strict=True)
            )
            given = [one[place] for one, place in zip(inputs, places, strict=True)]
            made = call.again(_like(call.operation, step), given)
        outputs[step.name] = list(made) if isinstance(made, list | tuple) else [made]
    return outputs


def _joining(step: Step, policy: Any) -> Any:
    """The concatenation of a fusion block, or its 1x1 convolution, which is dense on a vector."""
    from keras import layers

    if step.kind == "Concatenate":
        return layers.Concatenate(axis=-1, dtype=policy, name=step.name)
    if step.kind == "Dense":
        return layers.Dense(step.channels, dtype=policy, name=step.name)
    return getattr(layers, step.kind)(step.channels, step.kernel, dtype=policy, name=step.name)


def _like(operation: Any, step: Step) -> Any:
    """A layer of the operation's settings with the step's name and channels."""
    config = {**operation.get_config(), "name": step.name}
    if step.part is not None:
        own = {"filters": step.channels, "units": step.channels, "groups": step.groups}
        config |= {name: number for name, number in own.items() if config.get(name)}
        if "target_shape" in config:
            config["target_shape"] = (*config["target_shape"][:-1], step.channels)
    return type(operation).from_config(config)


# ---- weights ---------------------------------------------------------------------------------------


class _Taking:
    """What each layer of a split network gets: of the first of `sources` that has it, or the whole layer."""

    def __init__(
        self,
        steps: Sequence[Step],
        original: Sequence[Step],
        sources: Sequence[keras.Model],
        grouped: bool,
    ) -> None:
        self._made = {step.name: step for step in steps}
        self._original = {step.name: step for step in original}
        self._stores = [{call.name: call.operation for call in calls_of(source)} for source in sources]
        self._orders: Mapping[str, NDArray[np.int64]] = {}
        if grouped:
            self._orders = orders(steps, self._original, self._kernel, self._is_there)

    def _is_there(self, name: str) -> bool:
        """Whether a source has a layer of the split network."""
        return any(name in store for store in self._stores)

    def _kernel(self, name: str) -> NDArray[Any]:
        """The kernel of a convolution or dense layer that joins channels, as (..., in, out)."""
        kind = self._original[name].kind
        weights = next(store for store in self._stores if name in store)[name].get_weights()
        joining = weights[1 if kind == "SeparableConv2D" else 0]
        return np.swapaxes(joining, -1, -2) if kind.endswith("Transpose") else joining

    def weights(self, step: Step, shapes: list[tuple[int, ...]]) -> Weights:
        """A layer's weights, of these shapes."""
        for store in self._stores:
            if step.name in store and _shapes(same := store[step.name].get_weights()) == shapes:
                return list(same)
            if step.part is not None and step.part.source in store:
                part = self._part(step, step.part, store[step.part.source].get_weights())
                if _shapes(part) == shapes:
                    return part
        if step.part is not None and step.is_fusion:
            return self._identity(step, step.part)
        raise UnsupportedError("none of the networks has weights that fit it", operator=step.name)

    def _part(self, step: Step, part: Part, whole: Weights) -> Weights:
        original, reads = self._original[part.source], part.reads
        if is_part(self._made[step.inputs[0]]):  # else the channels are of a whole tensor
            reads = self._ordered(original.inputs[0], reads)
        return sliced(original, whole, reads, self._ordered(original.name, part.writes) or ())

    def _ordered(self, name: str, channels: Channels | None) -> Channels | None:
        """Channels of the branches' order as those of the original's."""
        order = self._orders.get(name)
        if order is None or channels is None:
            return channels
        return tuple(int(channel) for channel in order[list(channels)])

    def _identity(self, fusion: Step, part: Part) -> Weights:
        """A fusion's first kernel and bias: they put out the original's channels in their order."""
        end = self._made[fusion.inputs[0]]
        while end.part is not None and not end.part.source:
            end = self._made[end.inputs[0]]
        assert end.part is not None
        count, reads = fusion.channels, self._ordered(end.part.source, part.reads)
        kernel = np.zeros((count, count), np.float32)
        kernel[np.arange(count), list(reads or ())] = 1.0
        return [kernel.reshape(*fusion.kernel, count, count), np.zeros(count, np.float32)]


def sliced(original: Step, weights: Weights, reads: Channels | None, writes: Channels) -> Weights:
    """The weights of a branch's layer, in the layer's own order, from those of the whole layer.

    Kernels are (..., in, out), or (..., out, in) where transposed; of grouped convolutions, `in` is of one
    group. A separable convolution has (rows, columns, in, multiplier) and (1, 1, in * multiplier, out).
    """
    kernel, *others = weights
    if original.kind == "SeparableConv2D":
        channels = np.arange(kernel.shape[-2]) if reads is None else np.asarray(reads, int)
        between = (channels[:, None] * original.multiplier + np.arange(original.multiplier)).ravel()
        point = others[0].take(between, -2).take(writes, -1)
        return [kernel.take(channels, -2), point, *(bias.take(writes) for bias in others[1:])]
    if original.kind in DEPTHWISE:
        kernel = kernel if reads is None else kernel.take(reads, -2)
    elif original.is_mixing:
        inside, outside = (-1, -2) if original.kind.endswith("Transpose") else (-2, -1)
        kernel = kernel.take(writes, outside)
        if reads is not None and original.groups == 1:
            kernel = kernel.take(reads, inside)
    else:
        return [one.take(writes, -1) if one.shape[-1] == original.channels else one.copy() for one in weights]
    return [kernel, *(bias.take(writes) for bias in others)]


def _shapes(weights: Sequence[NDArray[Any]]) -> list[tuple[int, ...]]:
    return [one.shape for one in weights]
