"""How networks are trained: the settings and their defaults."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Any, Literal

from buildtool.base.errors import UsageError
from buildtool.options.pixels import Normalise, normalise

Optimiser = Literal["sgd", "adam"]


@dataclass(frozen=True)
class Settings:
    """What decides a training's result besides the network and the data; all of it is in its digest.

    The learning rate rises from 0 for `warm_up` of all steps, then falls as half a cosine to 0. `sgd` has a
    momentum of 0.9 (Nesterov); weights decay by `weight_decay` times the learning rate each step, biases
    and batch norms do not (Loshchilov and Hutter, "Decoupled Weight Decay Regularization").
    """

    epochs: int = 30  # of a network that is not trained yet
    fine_epochs: int = 5  # of a candidate, and of the baseline that it is compared with
    batch: int = 128  # images a step
    optimiser: Optimiser = "sgd"
    rate: float = 0.1  # the largest learning rate
    fine_rate: float = 0.02  # the same of candidates and baselines
    warm_up: float = 0.1  # share of the steps
    weight_decay: float = 5e-3
    flip: bool = True  # half of the images are mirrored left to right
    shift: float = 0.125  # images are moved by up to this share of their sides, black comes in
    validation: float = 0.1  # share of the training images that candidates are judged by
    seed: int = 0  # of weights, order and augmentation
    normalise: str = "unit"  # pixels as real values: bytes, unit, signed, or MEANS/DEVIATIONS

    def __post_init__(self) -> None:
        for name in ("epochs", "fine_epochs", "batch"):
            if getattr(self, name) < 1:
                raise UsageError(f"{getattr(self, name)} is not a whole number above 0", option=name)
        for name in ("rate", "fine_rate"):
            if not 0 < getattr(self, name) < float("inf"):
                raise UsageError(f"{getattr(self, name)} is not a number above 0", option=name)
        for name in ("warm_up", "validation", "shift"):
            if not 0 <= getattr(self, name) < 1:
                raise UsageError(f"{getattr(self, name)} is not a share, from 0 to below 1", option=name)
        if self.validation == 0:
            hint = "without images to judge by, candidates would be chosen by those that they learnt"
            raise UsageError("the share of images to judge by is 0", option="validation", hint=hint)
        if self.optimiser not in ("sgd", "adam"):
            raise UsageError(f"'{self.optimiser}' is no optimiser", option="optimiser", hint="sgd, adam")
        self.pixels()

    def pixels(self) -> Normalise:
        """How pixels become real values."""
        found = normalise("normalise", self.normalise)
        if found is None:
            hint = "bytes, unit, signed, or MEANS/DEVIATIONS"
            raise UsageError("a network to train has no rule to be found", option="normalise", hint=hint)
        return found

    def fine_tuning(self, times: int = 1) -> Settings:
        """The same for a network that is trained already, `times` as long as one candidate."""
        return dataclasses.replace(self, epochs=times * self.fine_epochs, rate=self.fine_rate)

    def data(self) -> dict[str, Any]:
        """All settings as plain values."""
        return dataclasses.asdict(self)

    def digest(self) -> str:
        """SHA-256 (hex) of all settings."""
        return hashlib.sha256(json.dumps(self.data(), sort_keys=True).encode()).hexdigest()
