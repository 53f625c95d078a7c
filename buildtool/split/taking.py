"""The weights of a split network, taken from networks that have its layers, or whole ones to slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from buildtool.base.errors import UnsupportedError
from buildtool.split.graphs import layers_of
from buildtool.split.grouping import is_part, orders
from buildtool.split.steps import Step
from buildtool.split.weights import Weights, identity, kernel, sliced

if TYPE_CHECKING:
    import keras

Order = NDArray[np.int64]


def take_over(
    result: keras.Model,
    steps: Sequence[Step],
    original: Sequence[Step],
    sources: Sequence[keras.Model],
    *,
    grouped: bool,
) -> None:
    """Sets the weights of a split network's layers from the first of `sources` that has them.

    `steps`: of `result`; `original`: of the network that was split. With `grouped`, channels come into the
    branches in which they keep most of their weights.
    """
    taking = _Taking(steps, original, [layers_of(source) for source in sources], grouped)
    layers = {layer.name: layer for layer in result.layers}
    for step in steps:
        layer = layers.get(step.name)  # operations without weights are no layers
        if layer is not None and layer.weights:
            layer.set_weights(taking.weights(step, [tuple(weight.shape) for weight in layer.weights]))


class _Taking:
    """What each layer gets; `stores` are the layers of the sources by their names."""

    def __init__(
        self,
        steps: Sequence[Step],
        original: Sequence[Step],
        stores: Sequence[Mapping[str, Any]],
        grouped: bool,
    ) -> None:
        self._made = {step.name: step for step in steps}
        self._original = {step.name: step for step in original}
        self._stores = stores
        self._orders: Mapping[str, Order] = {}
        if grouped:
            self._orders = orders(steps, self._original, self._kernel, self._is_there)

    def _is_there(self, name: str) -> bool:
        """Whether a source has a layer of the split network."""
        return any(name in store for store in self._stores)

    def _kernel(self, name: str) -> NDArray[np.float32]:
        store = next(store for store in self._stores if name in store)
        return kernel(self._original[name], store[name].get_weights())

    def weights(self, step: Step, shapes: list[tuple[int, ...]]) -> Weights:
        """A layer's weights, of these shapes."""
        for store in self._stores:
            if step.name in store and _shapes(same := store[step.name].get_weights()) == shapes:
                return list(same)
            if step.part is not None and step.part.source in store:
                part = self._part(step, store[step.part.source].get_weights())
                if _shapes(part) == shapes:
                    return part
        if step.part is not None and step.is_fusion:
            return self._identity(step)
        raise UnsupportedError("none of the networks has weights that fit it", operator=step.name)

    def _part(self, step: Step, whole: Weights) -> Weights:
        assert step.part is not None
        original = self._original[step.part.source]
        reads = step.part.reads
        if is_part(self._made[step.inputs[0]]):  # else the channels are of a whole tensor
            reads = self._ordered(original.inputs[0], reads)
        writes = self._ordered(original.name, step.part.writes)
        assert writes is not None
        return sliced(original, whole, replace(step.part, reads=reads, writes=writes))

    def _ordered(self, name: str, channels: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """Channels of the branches' order as those of the original's."""
        order = self._orders.get(name)
        if order is None or channels is None:
            return channels
        return tuple(int(channel) for channel in order[list(channels)])

    def _identity(self, fusion: Step) -> Weights:
        """A fusion's first weights: they put out the channels in the original's order."""
        assert fusion.part is not None
        end = self._made[fusion.inputs[0]]
        while end.part is not None and not end.part.source:
            end = self._made[end.inputs[0]]
        assert end.part is not None
        reads = self._ordered(end.part.source, fusion.part.reads)
        return identity(replace(fusion, part=replace(fusion.part, reads=reads)))


def _shapes(weights: Sequence[NDArray[Any]]) -> list[tuple[int, ...]]:
    return [one.shape for one in weights]
