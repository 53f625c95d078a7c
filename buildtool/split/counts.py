"""Parameters and multiply-accumulates of networks, whole and split; exact."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from buildtool.split.graphs import steps_of
from buildtool.split.steps import CONVOLUTIONS, DEPTHWISE, Step

if TYPE_CHECKING:
    import keras

Group = Literal["convolutions", "fusion", "dense", "other"]


@dataclass(frozen=True)
class Row:
    """The counts of one layer.

    `parameters`: numbers in its kernels. `others`: biases, and the weights of layers without a kernel (four
    a channel of batch normalisation, its moving averages included). `macs`: multiply-accumulates of one
    inference.
    """

    name: str
    group: Group
    parameters: int
    others: int
    macs: int


@dataclass(frozen=True)
class Counts:
    """The counts of a network's layers, in their order, and in all."""

    rows: tuple[Row, ...]

    def parameters_of(self, group: Group) -> int:
        """Numbers in the kernels of a group's layers."""
        return sum(row.parameters for row in self.rows if row.group == group)

    @property
    def convolutions(self) -> int:
        """Parameters of convolutions, biases and fusion left out."""
        return self.parameters_of("convolutions")

    @property
    def fusion(self) -> int:
        """Parameters of the 1x1 convolutions of fusion blocks, biases left out."""
        return self.parameters_of("fusion")

    @property
    def dense(self) -> int:
        """Parameters of dense layers, biases left out."""
        return self.parameters_of("dense")

    @property
    def macs(self) -> int:
        """Multiply-accumulates of convolutions, fusion and dense layers."""
        return sum(row.macs for row in self.rows)

    @property
    def everything(self) -> int:
        """All numbers in all weights, as Keras counts them."""
        return sum(row.parameters + row.others for row in self.rows)


def counts_of(model: keras.Model) -> Counts:
    """The counts of a Keras model, whole or split."""
    return counts_in(steps_of(model))


def counts_in(steps: Sequence[Step]) -> Counts:
    """The counts of a network's records."""
    known = {step.name: step for step in steps}
    rows = (_row(step, known[step.inputs[0]]) for step in steps if step.inputs)
    return Counts(tuple(row for row in rows if row.parameters or row.others))


def _row(step: Step, source: Step) -> Row:
    kernels = _kernels(step, source)
    parameters = sum(kernels)
    # A kernel is used once at each place of the output; a transposed one, of the input.
    used = source if step.kind.endswith("Transpose") else step
    places = math.prod(size or 0 for size in used.shape[:-1])
    bias = step.channels if step.has_bias else 0
    return Row(step.name, _group(step), parameters, step.weights + bias, parameters * places)


def _kernels(step: Step, source: Step) -> list[int]:
    """Numbers in each kernel of a layer."""
    area, wide = math.prod(step.kernel), source.channels
    if step.kind in DEPTHWISE:
        return [area * wide * step.multiplier]
    if step.kind == "SeparableConv2D":
        return [area * wide * step.multiplier, wide * step.multiplier * step.channels]
    if step.is_mixing:
        return [area * (wide // step.groups) * step.channels]
    return []


def _group(step: Step) -> Group:
    if step.is_fusion:
        return "fusion"
    if step.kind in CONVOLUTIONS | DEPTHWISE:
        return "convolutions"
    return "dense" if step.kind == "Dense" else "other"
