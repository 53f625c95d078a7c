"""Trains a network and saves its state after each epoch, so that a kill costs one epoch at most."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import MachineError, UsageError, suggest
from buildtool.base.plain import duration
from buildtool.options.parsers import Normalise
from buildtool.split import backend
from buildtool.split.data import Data, Labels, Pixels, check, share_of_each
from buildtool.split.records import keep_arrays, read_arrays
from buildtool.split.settings import Settings

Progress = Callable[[str], None]
Reals = npt.NDArray[np.float32]
_JUDGE_BATCH = 256  # images in a batch that is only evaluated
_UNTRACED_STEPS = 16  # steps that take less time than to trace the network for more
_SECONDS_BETWEEN = 1.0  # reports of progress
_SCHEMA = 1  # of checkpoints
_ORDER, _HELD_OUT = 1, 2  # the uses of random streams


@dataclass(frozen=True)
class Trained:
    """The result of a training. `accuracy` is the share of held-out images with the right class."""

    accuracy: float
    seconds: float
    epochs: int


def train(
    model: Any, data: Data, settings: Settings, checkpoint: Path, progress: Progress = lambda text: None
) -> Trained:
    """Trains a Keras network in place for `settings.epochs` epochs, from the checkpoint if there is one.

    The checkpoint is used if it comes from the same network, weights, data and settings. It stays after the
    training. On one machine the same call gives the same bits, even if it is killed and resumed. Raises
    UsageError for data that does not fit the network and for a loss that is not finite, and MachineError if
    memory is used up.
    """
    keras = backend.prepare()
    check(data, model.input_shape, model.output_shape)
    settings_digest = hashlib.sha256(json.dumps(settings.data(), sort_keys=True).encode()).hexdigest()
    key = "/".join((backend.digest(model), settings_digest, data.digest()))
    steps = len(Batches(data, settings, 0))
    keras.utils.set_random_seed(settings.seed)
    # The network's files do not contain the random states inside it (of dropout).
    weights = {id(one) for one in model.weights}
    states = [one for one in model.variables if id(one) not in weights and tuple(one.shape) == (2,)]
    for index, state in enumerate(states):
        state.assign(np.array([settings.seed, index], np.uint32))
    _compile(keras, model, settings, steps)
    first, before = restore(model, checkpoint, key)
    clock = _Clock(settings, steps, before, progress)
    try:
        for epoch in range(first, settings.epochs):
            _train_epoch(keras, model, Batches(data, settings, epoch), epoch, clock)
            keep(model, checkpoint, key, epoch + 1, clock.seconds())
        share = judge(model, data, settings)
    except Exception as error:
        if not backend.is_out_of_memory(error):
            raise
        smaller, text = max(1, settings.batch // 2), f"training with batches of {settings.batch} images"
        hint = [
            suggest("smaller batches give other results, so all networks are trained again", batch=smaller),
            suggest("or free memory and run the same again: it resumes after the last complete epoch"),
        ]
        raise MachineError(f"{text} takes more memory than there is", hint=hint) from error
    return Trained(share, clock.seconds(), settings.epochs)


def accuracy(model: Any, x: Pixels, y: Labels, settings: Settings) -> float:
    """Returns the share of images whose class has the largest output. Of equal outputs, the first counts."""
    correct = 0
    for start in range(0, len(x), _JUDGE_BATCH):
        batch = slice(start, start + _JUDGE_BATCH)
        outputs = np.asarray(model.predict_on_batch(inputs(x[batch], settings.pixels())))
        correct += int(np.sum(np.argmax(outputs, axis=1) == y[batch]))
    return correct / len(x)


# ---- an epoch --------------------------------------------------------------------------------------


class _Clock:
    """Measures the time of a training, and estimates the time that is left."""

    def __init__(self, settings: Settings, steps: int, before: float, progress: Progress) -> None:
        self._epochs, self._steps, self._progress = settings.epochs, steps, progress
        self._before = before  # seconds of former processes
        self._began = time.monotonic()
        self._reported = -math.inf  # when
        self._warm = (0, 0.0)  # the first step of this process, and when it ended

    def seconds(self) -> float:
        """Returns the seconds of training so far, without the time between a kill and its resumption."""
        return self._before + time.monotonic() - self._began

    def step(self, epoch: int, step: int, correct: float) -> None:
        """Reports the progress, at most once a second."""
        now, at = time.monotonic(), epoch * self._steps + step + 1
        if not self._warm[0]:  # this step also compiled the network: its time is no estimate
            self._warm = (at, now)
        if now - self._reported < _SECONDS_BETWEEN:
            return
        self._reported = now
        first, since = self._warm
        text = f"epoch {epoch + 1} of {self._epochs}: {correct:.1%} right"
        if at > first:
            each = (now - since) / (at - first)
            text += f", {duration(each * (self._epochs * self._steps - at))} left"
        self._progress(text)


def _train_epoch(keras: Any, model: Any, batches: Batches, epoch: int, clock: _Clock) -> None:
    """Trains one epoch. Raises UsageError if the loss is not finite."""

    class Steps(keras.utils.PyDataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return len(batches)

        def __getitem__(self, step: int) -> tuple[Any, Any]:
            return batches[step]

    callback = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda step, logs: clock.step(
            epoch, step, float((logs or {}).get("accuracy", 0.0))
        )
    )
    history = model.fit(
        Steps(), epochs=epoch + 1, initial_epoch=epoch, shuffle=False, verbose=0, callbacks=[callback]
    )
    loss = float(history.history["loss"][-1])
    if not math.isfinite(loss):
        text = f"the loss is {loss} after epoch {epoch + 1}: the training does not converge"
        raise UsageError(text, option="rate", hint="choose a smaller learning rate")


def _compile(keras: Any, model: Any, settings: Settings, steps: int) -> None:
    """Sets the network's loss, and a new optimiser with the schedule of the learning rate."""
    total = settings.epochs * steps
    warm = round(total * settings.warm_up)
    rate = keras.optimizers.schedules.CosineDecay(
        0.0 if warm else settings.rate,
        max(1, total - warm),
        warmup_target=settings.rate if warm else None,
        warmup_steps=warm,
    )
    decay = settings.weight_decay
    if settings.optimiser == "sgd":
        optimiser = keras.optimizers.SGD(rate, momentum=0.9, nesterov=True, weight_decay=decay)
    else:
        optimiser = keras.optimizers.AdamW(rate, weight_decay=decay)
    optimiser.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    last, softmax = model.layers[-1], keras.activations.softmax
    has_softmax = isinstance(last, keras.layers.Softmax) or getattr(last, "activation", None) is softmax
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=not has_softmax)
    model.compile(optimiser, loss, metrics=["accuracy"], run_eagerly=total <= _UNTRACED_STEPS)
    optimiser.build(model.trainable_variables)


# ---- state -----------------------------------------------------------------------------------------


def keep(model: Any, checkpoint: Path, key: str, epochs: int, seconds: float) -> None:
    """Saves a training's state after `epochs` epochs. `key` identifies all that the training depends on."""
    about = {"schema": _SCHEMA, "key": key, "epochs": epochs, "seconds": seconds}
    arrays = {
        f"v{index}": backend.array(one)
        for index, one in enumerate([*model.variables, *model.optimizer.variables])
    }
    keep_arrays(checkpoint, about, arrays)


def restore(model: Any, checkpoint: Path, key: str) -> tuple[int, float]:
    """Restores the saved state of the training with this key. Returns its epochs and seconds.

    If there is no such state, nothing changes, and both are 0.
    """
    state = read_arrays(checkpoint)
    if state is None or (state[0].get("schema"), state[0].get("key")) != (_SCHEMA, key):
        return 0, 0.0
    about, arrays = state
    for index, variable in enumerate([*model.variables, *model.optimizer.variables]):
        variable.assign(arrays[f"v{index}"])
    return int(about["epochs"]), float(about["seconds"])


# ---- batches ---------------------------------------------------------------------------------------


def inputs(x: Pixels, rule: Normalise) -> Reals:
    """Turns pixels into the network's real values, float32 of the same shape."""
    means, deviations = (np.array(one, np.float32) for one in (rule.means, rule.deviations))
    values: Reals = (x.astype(np.float32) / np.float32(rule.divisor) - means) / deviations
    return values


def is_held_out(data: Data, settings: Settings) -> npt.NDArray[np.bool_]:
    """Returns a mask of the training images that only judge candidates and are not used for training.

    They are a share of each class, at least one image each.
    """
    random = np.random.default_rng((settings.seed, _HELD_OUT))
    return share_of_each(data.train_y, settings.validation, random)


def judge(model: Any, data: Data, settings: Settings) -> float:
    """Returns the share of the held-out images whose class has the largest output."""
    mask = is_held_out(data, settings)
    return accuracy(model, data.train_x[mask], data.train_y[mask], settings)


class Batches:
    """The batches of one epoch. A batch depends only on the data, the settings, the epoch and its number."""

    def __init__(self, data: Data, settings: Settings, epoch: int) -> None:
        self._data, self._settings, self._epoch = data, settings, epoch
        order = np.random.default_rng((settings.seed, _ORDER, epoch))
        self._order = order.permutation(np.flatnonzero(~is_held_out(data, settings)))

    def __len__(self) -> int:
        """Returns the number of batches in an epoch, at least 1.

        Images that do not fill a last batch are left out. Which ones these are differs from epoch to epoch.
        """
        return max(1, len(self._order) // self._settings.batch)

    def __getitem__(self, step: int) -> tuple[Reals, Labels]:
        """Returns images, float32 [batch, height, width, channels], and their classes, int64 [batch]."""
        size = self._settings.batch
        chosen = self._order[step * size : (step + 1) * size]
        random = np.random.default_rng((self._settings.seed, _ORDER, self._epoch, step))
        x = augment(self._data.train_x[chosen], self._settings, random)
        return inputs(x, self._settings.pixels()), self._data.train_y[chosen]


def augment(x: Pixels, settings: Settings, random: np.random.Generator) -> Pixels:
    """Mirrors and moves each image at random. New pixels are 0."""
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
    moved: Any = padded[np.arange(count)[:, None, None], top[:, :, None], left[:, None, :]]
    return np.asarray(moved, np.uint8)
