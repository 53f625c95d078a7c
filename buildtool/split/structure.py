"""The Keras model of a choice, with the weights of the original where they fit.

Of every layer a branch has the slices of its own channels. `Block`, `Choice` and `Fusion` are in types.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from buildtool.split.branches import split_steps
from buildtool.split.graphs import calls_of, steps_of
from buildtool.split.steps import Step
from buildtool.split.taking import take_over
from buildtool.split.types import Block, Choice, First, Fusion

if TYPE_CHECKING:
    import keras

__all__ = ["Block", "Choice", "First", "Fusion", "build"]


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
    made = _Making(model)
    for step in steps:
        made.add(step)
    first, last = steps[0].name, steps[-1].name
    result = keras.Model(made.outputs[first][0], made.outputs[last][0], name=model.name)
    take_over(result, steps, original, [weights, model] if weights is not None else [model], grouped=grouped)
    return result


class _Making:
    """A Keras graph while it is made: `outputs` are the tensors of each step."""

    def __init__(self, model: keras.Model) -> None:
        self._calls = {call.name: call for call in calls_of(model)}
        self._policies: dict[str, Any] = {}  # of the layers that a step's output went through
        self.outputs: dict[str, list[Any]] = {}

    def add(self, step: Step) -> None:
        """Makes a step's layer, and calls it on the tensors of its inputs."""
        import keras

        inputs = [self.outputs[name] for name in step.inputs]
        if step.inputs:
            self._policies[step.name] = self._policies.get(step.inputs[0])
        if step.kind == "InputLayer":
            tensor = self._calls[step.name].node.output_tensors[0]
            made: Any = keras.Input(tensor.shape[1:], dtype=tensor.dtype, name=step.name)
        elif step.kind == "Slice":
            made = _slice(step, inputs[0][0])
        elif step.part is not None and not step.part.source:
            tensors = [one[0] for one in inputs]
            made = _joining(step, self._policies[step.name])(tensors if len(tensors) > 1 else tensors[0])
        else:
            made = self._called(step, inputs)
        self.outputs[step.name] = list(made) if isinstance(made, list | tuple) else [made]

    def _called(self, step: Step, inputs: Sequence[list[Any]]) -> Any:
        """A layer like its original one, called as that one was."""
        call = self._calls[step.part.source if step.part else step.name]
        self._policies[step.name] = getattr(call.operation, "dtype_policy", self._policies.get(step.name))
        given = [
            tensors[index if len(tensors) > 1 else 0]
            for tensors, (_, index) in zip(inputs, call.sources, strict=True)
        ]
        return call.again(_like(call.operation, step), given)


def _slice(step: Step, tensor: Any) -> Any:
    assert step.part is not None
    channels = step.part.writes
    made = tensor[..., channels[0] : channels[-1] + 1]
    made._keras_history.operation.name = step.name  # else it counts the slices of this process
    return made


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
    config = dict(operation.get_config())
    config["name"] = step.name
    if step.part is not None:
        if "filters" in config:
            config["filters"] = step.channels
        if "units" in config:
            config["units"] = step.channels
        if config.get("groups"):
            config["groups"] = step.groups
        if "target_shape" in config:
            config["target_shape"] = (*config["target_shape"][:-1], step.channels)
    return type(operation).from_config(config)
