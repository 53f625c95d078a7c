"""Measures how far the outputs of a quantised network are from those of the float network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ToolError
from buildtool.firmware.run.accuracy import prediction
from buildtool.graph.types import Tensor
from buildtool.schema.datasets import Top1
from buildtool.schema.quantized import LostAccuracy, OutputError

Array = npt.NDArray[np.generic]


@dataclass
class _Sums:
    """Sums over all elements of one output, and over all inputs for which the networks have run.

    `elements`: the number of these elements.
    `largest`: the largest magnitude of the float network's output.
    `max_abs`: the largest magnitude of an error.
    `total_abs`: the sum of the magnitudes of all errors.
    `signal`: the sum of squares of the float network's output.
    `noise`: the sum of squares of the errors.
    """

    elements: int = 0
    largest: float = 0.0
    max_abs: float = 0.0
    total_abs: float = 0.0
    signal: float = 0.0
    noise: float = 0.0

    def add(self, exact: npt.NDArray[np.float64], near: npt.NDArray[np.float64]) -> None:
        """Adds the output for one input: `exact` of the float network, `near` of the quantised one."""
        errors = np.abs(near - exact)
        self.elements += exact.size
        self.largest = max(self.largest, float(np.abs(exact).max()))
        self.max_abs = max(self.max_abs, float(errors.max()))
        self.total_abs += float(errors.sum())
        self.signal += float(np.square(exact).sum())
        self.noise += float(np.square(errors).sum())

    def answer(self, name: str) -> OutputError:
        """Returns the figures of the output `name` as a part of the answer."""
        has_ratio = self.signal > 0 and self.noise > 0
        return {
            "name": name,
            "max_abs": self.max_abs,
            "mean_abs": self.total_abs / self.elements,
            "largest": self.largest,
            "sqnr_db": 10 * math.log10(self.signal / self.noise) if has_ratio else None,
        }


@dataclass
class Losses:
    """Compares both networks, input by input.

    `outputs`: the quantised network's outputs.
    `scores`: the position of the output with the scores of classes; None if there is none, and `why` says
    why.
    `labels`: the class of each input, or empty.
    """

    outputs: tuple[Tensor, ...]
    scores: int | None
    why: str
    labels: Sequence[int]
    _sums: list[_Sums] = field(default_factory=list)
    _guesses: list[tuple[int, int]] = field(default_factory=list)  # of the float and of the quantised network

    def add(self, exact: Sequence[Array], near: Sequence[Array]) -> None:
        """Adds the outputs of both networks for one input. Those of the quantised network are integers."""
        self._sums = self._sums or [_Sums() for _ in self.outputs]
        if len(exact) != len(near):
            raise ToolError(f"the quantised network has {len(near)} outputs, the float one {len(exact)}")
        for tensor, sums, expected, actual in zip(self.outputs, self._sums, exact, near, strict=True):
            if expected.size != actual.size:
                text = (
                    f"the output has the shape {expected.shape}, and {actual.shape} in the quantised network"
                )
                raise ToolError(text, tensor=tensor.name)
            if not np.isfinite(expected).all():
                raise ToolError("the float network's output is not finite", tensor=tensor.name)
            sums.add(expected.astype(np.float64).reshape(-1), real_values(actual, tensor).reshape(-1))
        if self.scores is not None:
            self._guesses.append((prediction(exact[self.scores]), prediction(near[self.scores])))

    def answer(self) -> LostAccuracy:
        """Returns the figures as a part of the answer."""
        floats, quantised = ([pair[side] for pair in self._guesses] for side in (0, 1))
        return {
            "float": self._top1(floats) if self._guesses else None,
            "quantised": self._top1(quantised) if self._guesses else None,
            "agree": sum(a == b for a, b in self._guesses) if self._guesses else None,
            "no_top1": "" if self._guesses else self.why,
            "outputs": [
                sums.answer(tensor.name) for tensor, sums in zip(self.outputs, self._sums, strict=True)
            ],
        }

    def _top1(self, guesses: Sequence[int]) -> Top1:
        correct = sum(label == guess for label, guess in zip(self.labels, guesses, strict=True))
        return {"inputs": len(guesses), "correct": correct, "top1": correct / len(guesses)}


def real_values(array: Array, tensor: Tensor) -> npt.NDArray[np.float64]:
    """Returns the real values of an output: it dequantises integers, and keeps other values."""
    if tensor.quant is None:
        return array.astype(np.float64)
    return (array.astype(np.float64) - tensor.quant.zero_point) * tensor.quant.scale
