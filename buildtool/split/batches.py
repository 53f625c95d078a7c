"""The batches of an epoch: which images, in which order, augmented how, as seed and epoch say."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from buildtool.options.pixels import Normalise
from buildtool.split.data import Data, Labels, Pixels
from buildtool.split.settings import Settings

Reals = npt.NDArray[np.float32]
_ORDER, _HELD_OUT = 1, 2  # what a random stream is for


def inputs(x: Pixels, rule: Normalise) -> Reals:
    """Pixels as the network's real values, float32 of the same shape."""
    means, deviations = (np.array(one, np.float32) for one in (rule.means, rule.deviations))
    found: Reals = (x.astype(np.float32) / np.float32(rule.divisor) - means) / deviations
    return found


def parts(data: Data, settings: Settings) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The training images' indices in two parts: those to learn, and those that candidates are judged by.

    Every class gives the same share of its images to judge by, at least one.
    """
    order = np.random.default_rng((settings.seed, _HELD_OUT))
    is_held = np.zeros(len(data.train_y), bool)
    for label in range(len(data.classes)):
        members = order.permutation(np.flatnonzero(data.train_y == label))
        is_held[members[: max(1, round(len(members) * settings.validation))]] = True
    return np.flatnonzero(~is_held), np.flatnonzero(is_held)


def held_out(data: Data, settings: Settings) -> tuple[Pixels, Labels]:
    """The images that candidates are judged by, and their classes."""
    _, held = parts(data, settings)
    return data.train_x[held], data.train_y[held]


class Batches:
    """The steps of one epoch, each one a function of the settings' seed, the epoch and its number."""

    def __init__(self, data: Data, settings: Settings, epoch: int) -> None:
        self._data = data
        self._settings = settings
        self._epoch = epoch
        learnt, _ = parts(data, settings)
        order = np.random.default_rng((settings.seed, _ORDER, epoch))
        self._order = order.permutation(learnt)

    @staticmethod
    def steps(data: Data, settings: Settings) -> int:
        """Steps of an epoch. Images that do not fill a last batch are left out; it is others each epoch."""
        learnt, _ = parts(data, settings)
        return max(1, len(learnt) // settings.batch)

    def __len__(self) -> int:
        return max(1, len(self._order) // self._settings.batch)

    def __getitem__(self, step: int) -> tuple[Reals, Labels]:
        """Images, float32 [batch, height, width, channels], and their classes, int64 [batch]."""
        size = self._settings.batch
        chosen = self._order[step * size : (step + 1) * size]
        random = np.random.default_rng((self._settings.seed, _ORDER, self._epoch, step))
        x = augmented(self._data.train_x[chosen], self._settings, random)
        return inputs(x, self._settings.pixels()), self._data.train_y[chosen]


def augmented(x: Pixels, settings: Settings, random: np.random.Generator) -> Pixels:
    """Images mirrored and moved at random, each by itself; pixels that come in are 0."""
    count, height, width = x.shape[:3]
    if settings.flip:
        is_mirrored = np.asarray(random.random(count) < 0.5)
        x = np.where(is_mirrored[:, None, None, None], x[:, :, ::-1], x)
    rows, columns = round(height * settings.shift), round(width * settings.shift)
    if rows == 0 and columns == 0:
        return x
    padded = np.pad(x, ((0, 0), (rows, rows), (columns, columns), (0, 0)))
    top = random.integers(0, 2 * rows + 1, count)[:, None] + np.arange(height)
    left = random.integers(0, 2 * columns + 1, count)[:, None] + np.arange(width)
    found: Any = padded[np.arange(count)[:, None, None], top[:, :, None], left[:, None, :]]
    return np.asarray(found, np.uint8)
