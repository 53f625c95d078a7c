"""Builds the Keras model of a choice, with the weights of the original network or of one trained later.

A branch has the slices of its own channels from every layer. Kernels are sliced by output channels and, where
the branch reads a part of the input, by input channels too. Other weights with one number per channel, such
as biases and batch normalisation, are sliced by output channels.

Inside a block, a layer's channels may have any order: the layer's kernel and its readers are reordered with
them, and the 1x1 convolution at the block's end restores the outputs' order. So channels with large weights
between them are put into the same branch (`orders`), which keeps the largest weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buildtool.base.errors import UnsupportedError
from buildtool.split.branches import Channels, split_steps
from buildtool.split.graphs import calls_of, steps_of
from buildtool.split.types import DEPTHWISE, Block, Choice, Step, partition

if TYPE_CHECKING:
    import keras

Weights = list[NDArray[Any]]
Kernel = Callable[[str], NDArray[Any]]
Floats = NDArray[np.float64]
Groups = NDArray[np.int64]  # the branch of each channel
STARTS = 3  # the order as it is, and random ones
SWEEPS = 8
GAIN = 1e-9  # the smallest gain that counts, above rounding errors


def build(
    model: keras.Model,
    blocks: Sequence[Block],
    choice: Choice,
    *,
    weights: keras.Model | None = None,
    grouped: bool = True,
) -> keras.Model:
    """Builds the Keras model of a choice. Its layers have the same names in every process.

    `model` is the original network, with `blocks`. `weights` is a network trained later, whole or split. A
    layer gets the weights of the same layer of `weights`. If that has no such layer, it gets a slice of the
    whole layer of `weights` or, if that is missing, too, of `model`. A fusion's 1x1 convolution begins as the
    identity. With `grouped`, each channel is put into the branch where it keeps the most weight, and the
    fusion restores the order. `model` is not changed, and the result shares no layer with it.
    """
    import keras

    original = steps_of(model)
    steps = split_steps(original, blocks, choice)
    outputs = _connect(model, steps)
    result = keras.Model(outputs[steps[0].name][0], outputs[steps[-1].name][0], name=model.name)
    loader = _WeightLoader(steps, original, [weights, model] if weights is not None else [model], grouped)
    layers = {layer.name: layer for layer in result.layers}
    for step in steps:
        layer = layers.get(step.name)  # operations without weights are no layers
        if layer is not None and layer.weights:
            layer.set_weights(loader.weights(step, [tuple(weight.shape) for weight in layer.weights]))
    return result


def _connect(model: keras.Model, steps: Sequence[Step]) -> dict[str, list[Any]]:
    """Makes a new Keras layer, like the model's, for each of `steps`.

    Returns the output tensors of each step, by its name.
    """
    import keras

    calls = {call.name: call for call in calls_of(model)}
    policies: dict[str, Any] = {}  # the dtype policy of the layer that made a step's output
    outputs: dict[str, list[Any]] = {}
    for step in steps:
        inputs = [outputs[name] for name in step.inputs]
        policies[step.name] = policies.get(step.inputs[0]) if step.inputs else None
        if step.kind == "InputLayer":
            tensor = calls[step.name].node.output_tensors[0]
            output: Any = keras.Input(tensor.shape[1:], dtype=tensor.dtype, name=step.name)
        elif step.kind == "Slice":
            output = inputs[0][0][..., step.writes[0] : step.writes[-1] + 1]
            output._keras_history.operation.name = step.name  # the default name differs between processes
        elif step.part is not None and not step.part.source:
            settings: dict[str, Any] = {"dtype": policies[step.name], "name": step.name}
            if step.kind == "Concatenate":
                output = keras.layers.Concatenate(axis=-1, **settings)([one[0] for one in inputs])
            else:  # the fusion's 1x1 convolution, which is dense on a vector
                kernel = () if step.kind == "Dense" else (step.kernel,)
                layer = getattr(keras.layers, step.kind)(step.channels, *kernel, **settings)
                output = layer(inputs[0][0])
        else:  # a copy of the original layer, called as the original was
            call = calls[step.part.source if step.part else step.name]
            policies[step.name] = getattr(call.operation, "dtype_policy", policies[step.name])
            places = (
                index if len(one) > 1 else 0 for one, (_, index) in zip(inputs, call.sources, strict=True)
            )
            tensors = [one[place] for one, place in zip(inputs, places, strict=True)]
            config = {**call.operation.get_config(), "name": step.name}
            if step.part is not None:
                own = {"filters": step.channels, "units": step.channels, "groups": step.groups}
                config |= {name: number for name, number in own.items() if config.get(name)}
                if "target_shape" in config:
                    config["target_shape"] = (*config["target_shape"][:-1], step.channels)
            output = call.again(type(call.operation).from_config(config), tensors)
        outputs[step.name] = list(output) if isinstance(output, list | tuple) else [output]
    return outputs


# ---- weights ---------------------------------------------------------------------------------------


class _WeightLoader:
    """Gives each layer of a split network the weights of the first network in `sources` that has them."""

    def __init__(
        self, steps: Sequence[Step], original: Sequence[Step], sources: Sequence[keras.Model], grouped: bool
    ) -> None:
        self._steps = {step.name: step for step in steps}
        self._original = {step.name: step for step in original}
        self._stores = [{call.name: call.operation for call in calls_of(source)} for source in sources]
        self._orders: dict[str, NDArray[np.int64]] = {}
        if grouped:
            trained = {name for store in self._stores for name in store}
            self._orders = orders(steps, self._original, self._read_kernel, trained)

    def _read_kernel(self, name: str) -> NDArray[Any]:
        """Returns the kernel of a convolution or dense layer, as (..., in, out)."""
        kind = self._original[name].kind
        weights = next(store for store in self._stores if name in store)[name].get_weights()
        kernel = weights[1 if kind == "SeparableConv2D" else 0]
        return np.swapaxes(kernel, -1, -2) if kind.endswith("Transpose") else kernel

    def weights(self, step: Step, shapes: list[tuple[int, ...]]) -> Weights:
        """Returns the weights for the layer of a step. `shapes`: the shapes that they must have.

        Raises UnsupportedError if no network has such weights, and the step is not a fusion's convolution.
        That begins as the identity.
        """
        for store in self._stores:
            weights: Weights = list(store[step.name].get_weights()) if step.name in store else []
            if [one.shape for one in weights] != shapes and step.part and step.part.source in store:
                original, reads = self._original[step.part.source], step.part.reads
                if is_part(self._steps[step.inputs[0]]):  # a whole tensor's channels keep their order
                    reads = self._order_channels(original.inputs[0], reads)
                writes = self._order_channels(original.name, step.part.writes) or ()
                weights = slice_weights(original, store[original.name].get_weights(), reads, writes)
            if weights and [one.shape for one in weights] == shapes:
                return weights
        if step.part is None or not step.is_fusion:
            raise UnsupportedError("none of the networks has weights that fit it", operator=step.name)
        # A fusion begins as the identity: its outputs are the original's channels in their order.
        end = self._steps[step.inputs[0]]
        while end.part is not None and not end.part.source:
            end = self._steps[end.inputs[0]]
        assert end.part is not None
        count, order = step.channels, self._order_channels(end.part.source, step.part.reads)
        kernel = np.zeros((count, count), np.float32)
        kernel[np.arange(count), list(order or ())] = 1.0
        return [kernel.reshape(*step.kernel, count, count), np.zeros(count, np.float32)]

    def _order_channels(self, name: str, channels: Channels | None) -> Channels | None:
        """Returns the original numbers of channels that are numbered in the branches' order.

        `name`: the original step whose channels they are.
        """
        order = self._orders.get(name)
        if order is None or channels is None:
            return channels
        return tuple(int(channel) for channel in order[list(channels)])


def slice_weights(original: Step, weights: Weights, reads: Channels | None, writes: Channels) -> Weights:
    """Returns the weights of a branch's layer as slices of those of the whole layer.

    `original`: the whole layer. `reads`: the input channels of the branch's layer (None: all). `writes`: its
    output channels.

    Kernels are (..., in, out), or (..., out, in) where transposed; in grouped convolutions, `in` counts the
    channels of one group. A separable convolution has (rows, columns, in, multiplier) and
    (1, 1, in * multiplier, out).
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


# ---- the order of channels -------------------------------------------------------------------------


def orders(
    split: Sequence[Step], original: Mapping[str, Step], kernel_of: Kernel, settled: Iterable[str]
) -> dict[str, NDArray[np.int64]]:
    """Returns the order in which the branches have the channels of each split original step, by its name.

    The order keeps large weights inside branches. The weight between an input and an output channel is the
    sum of squares over the kernel's window, divided by the output channel's sum, since batch normalisation
    makes all outputs alike. One layer after the other is reordered, by a greedy assignment and swaps, until
    the weight inside branches no longer grows. The order does not change where channels are concatenated,
    grouped, or joined with channels that are not split.

    `split`: the steps of the split network. `original`: the steps of the original network, by name.
    `kernel_of`: returns the kernel (..., in, out) of an original convolution or dense layer.
    `settled`: the names of split steps that have weights already, whose order does not change either.
    """
    spaces = _Spaces(split, original, set(settled))
    links, natural = _find_links(split, original, kernel_of, spaces)
    linked = {name for link in links for name in (link.source, link.target)}
    free = [name for name in dict.fromkeys(map(spaces.of, spaces.sizes)) if name in linked - spaces.settled]
    best = natural
    for start in range(STARTS if free else 0):
        random = np.random.default_rng(start)
        initial = {**natural, **{name: random.permutation(natural[name]) for name in free if start}}
        groups = _raise_weight(initial, free, links, spaces.sizes)
        if _sum_weight(links, groups) > _sum_weight(links, best) + GAIN:
            best = groups
    return {name: np.argsort(best[spaces.of(name)], kind="stable") for name in spaces.sizes}


def is_part(step: Step) -> bool:
    """Whether a step of a split network is a branch's part of a layer, whose channels may change order."""
    return step.part is not None and step.part.source != "" and step.kind != "Slice"


class _Spaces:
    """Sets of original steps whose channels must have the same order.

    Such a set is a convolution and the steps after it that compute each channel separately. It has the name
    of one of its steps. `sizes`: for each step, the number of channels in each branch. `settled`: the sets
    whose order must not change.
    """

    def __init__(self, split: Sequence[Step], original: Mapping[str, Step], settled: set[str]) -> None:
        self.sizes: dict[str, tuple[int, ...]] = {}
        self.settled: set[str] = set()
        self._above: dict[str, str] = {}
        steps = {step.name: step for step in split}
        joins = [step for step in split if step.part is not None and not step.part.source]
        ends = {name for step in joins for name in step.inputs}
        fused = any(step.is_mixing for step in joins)
        parts = [(step, step.part.source) for step in split if step.part is not None and is_part(step)]
        for step, source in parts:
            self.sizes[source] = (*self.sizes.get(source, ()), step.channels)
        for step, source in parts:
            self._relate(original[source], [is_part(steps[name]) for name in step.inputs], original)
            if (step.name in ends and not fused) or step.name in settled:
                self.settled.add(self.of(source))

    def of(self, name: str) -> str:
        """Returns the name of the set that contains an original step."""
        while name in self._above:
            name = self._above[name]
        return name

    def _relate(self, step: Step, inner: Sequence[bool], original: Mapping[str, Step]) -> None:
        """Unites a step's set with the sets of its inputs.

        If the order of the step's channels must not change, its set is added to `settled` instead. `inner`:
        for each input, whether it is a branch's part. `original`: the original steps by name.
        """
        fixed = step.kind == "Concatenate" or step.multiplier > 1 or step.groups > 1
        for name, is_inner in zip(step.inputs, inner, strict=True):
            if fixed:
                self.settled |= {self.of(step.name), *([self.of(name)] if is_inner else [])}
            elif step.is_mixing:
                continue
            elif is_inner:
                one, other = self.of(step.name), self.of(name)
                if one != other:
                    self._above[one] = other
                    if one in self.settled:
                        self.settled.add(other)
            elif original[name].channels == step.channels:  # of a whole tensor, whose order stays
                self.settled.add(self.of(step.name))


class _Link(NamedTuple):
    """The weight between the channels of two sets, which are given by their names."""

    source: str
    target: str
    weight: Floats  # (in, out)


def _find_links(
    split: Sequence[Step], original: Mapping[str, Step], kernel_of: Kernel, spaces: _Spaces
) -> tuple[list[_Link], dict[str, Groups]]:
    """Returns the links, and for each set of steps the branch of each channel, in the original order.

    `split`, `original` and `kernel_of`: as in `orders`. A tensor that step STEP reads whole counts as a set
    with the name " STEP".
    """
    steps = {step.name: step for step in split}
    first = {step.part.source: step for step in reversed(split) if step.part is not None and is_part(step)}
    links = []
    sizes_of = {spaces.of(name): sizes for name, sizes in spaces.sizes.items()}
    for name, sizes in spaces.sizes.items():
        step, branch = original[name], first[name]
        assert branch.part is not None
        if not step.is_mixing or step.groups > 1 or step.multiplier > 1 or branch.part.reads is None:
            continue
        kernel = np.asarray(kernel_of(name), np.float64)
        weight = (kernel**2).sum(tuple(range(kernel.ndim - 2)))
        weight /= np.maximum(weight.sum(0), 1e-30)
        source = spaces.of(step.inputs[0])
        if not is_part(steps[branch.inputs[0]]):
            source = f" {name}"
            sizes_of[source] = tuple(len(part) for part in partition(len(weight), len(sizes)))
        links.append(_Link(source, spaces.of(name), weight))
    return links, {name: np.repeat(np.arange(len(sizes)), sizes) for name, sizes in sizes_of.items()}


def _sum_weight(links: Sequence[_Link], groups: Mapping[str, Groups]) -> float:
    """Returns how much weight lies inside branches: between channels of the same branch, over all links."""
    return sum(
        float(weight[groups[source][:, None] == groups[target][None, :]].sum())
        for source, target, weight in links
    )


def _raise_weight(
    groups: dict[str, Groups], free: Sequence[str], links: Sequence[_Link], sizes: Mapping[str, Channels]
) -> dict[str, Groups]:
    """Returns better branches for the channels of the sets `free`, one set at a time.

    It goes over all sets SWEEPS times, or until nothing improves. `groups`: the branch of each channel, by
    set.
    """
    total = _sum_weight(links, groups)
    for _ in range(SWEEPS):
        before = total
        for name in free:
            branches = len(sizes[name])
            worth: Floats = np.zeros((len(groups[name]), branches))  # of each channel in each branch
            for source, target, weight in links:
                if target == name:
                    worth += weight.T @ np.eye(branches)[groups[source]]
                if source == name:
                    worth += weight @ np.eye(branches)[groups[target]]
            candidate = {**groups, name: _assign(worth, sizes[name])}
            if (now := _sum_weight(links, candidate)) > total + GAIN:
                groups, total = candidate, now
        if total <= before + GAIN:
            break
    return groups


def _assign(worth: Floats, sizes: Sequence[int]) -> Groups:
    """Assigns channels to branches of these sizes; returns the branch of each channel.

    `worth`: the weight that each channel has in each branch. Channels that lose most in another branch are
    assigned first. Then pairs of channels are swapped.
    """
    ranked = np.sort(worth, axis=1)
    room = list(sizes)
    groups = np.zeros(len(worth), np.int64)
    for channel in np.argsort(ranked[:, -2] - ranked[:, -1], kind="stable"):
        group = next(int(k) for k in np.argsort(-worth[channel], kind="stable") if room[k])
        groups[channel] = group
        room[group] -= 1
    rows = np.arange(len(worth))
    for _ in range(len(worth)):
        exchanged = worth[:, groups]  # of each channel in the group of each other
        own = worth[rows, groups]
        gain = exchanged + exchanged.T - own[:, None] - own[None, :]
        one, other = np.unravel_index(int(gain.argmax()), gain.shape)
        if gain[one, other] <= GAIN:
            break
        groups[one], groups[other] = groups[other], groups[one]
    return groups
