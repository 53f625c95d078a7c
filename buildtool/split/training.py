"""Trains a network: epoch by epoch, each one kept, so that a kill at any time costs one epoch at most."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from buildtool.base.durations import duration
from buildtool.base.errors import UsageError
from buildtool.split import backend, checkpoints, keeping
from buildtool.split.batches import Batches, held_out, inputs
from buildtool.split.data import Data, Labels, Pixels
from buildtool.split.data import check as check_data
from buildtool.split.settings import Settings

Progress = Callable[[str], None]
_JUDGED = 256  # images of a batch that is not learnt
_SECONDS_BETWEEN = 1.0  # words on progress


@dataclass(frozen=True)
class Trained:
    """What came of a training: the share of held-out images with the right class, and what it took."""

    accuracy: float
    seconds: float
    epochs: int


def train(
    model: Any, data: Data, settings: Settings, checkpoint: Path, progress: Progress = lambda text: None
) -> Trained:
    """Trains a Keras network in place for `settings.epochs`, on from the checkpoint where there is one.

    The checkpoint is used if it comes from the same network, weights, data and settings; it stays when the
    training is done. The same call gives the same bits on one machine, killed and resumed or not.

    Raises UsageError for data that does not fit the network, or where the loss is no number any more, and
    MachineError where memory is used up.
    """
    keras = backend.prepare()
    check_data(data, model.input_shape, model.output_shape)
    key = "/".join((digest(model), settings.digest(), data.digest()))
    steps = Batches.steps(data, settings)
    keras.utils.set_random_seed(settings.seed)
    _seed(model, settings.seed)
    _compile(keras, model, settings, steps)
    done, before = _restored(model, checkpoint, key)
    clock = _Clock(settings, steps, before, progress)
    try:
        for epoch in range(done, settings.epochs):
            _epoch(keras, model, Batches(data, settings, epoch), epoch, clock)
            network, optimiser = (tuple(map(_array, one)) for one in _variables(model))
            checkpoints.write(
                checkpoint, key, checkpoints.State(epoch + 1, clock.seconds(), network, optimiser)
            )
        found = accuracy(model, *held_out(data, settings), settings)
    except Exception as error:
        if backend.is_out_of_memory(error):
            raise backend.out_of_memory(settings.batch) from error
        raise
    return Trained(found, clock.seconds(), settings.epochs)


def accuracy(model: Any, x: Pixels, y: Labels, settings: Settings) -> float:
    """The share of images whose class has the largest output; of several that are equal, the first."""
    right = 0
    for start in range(0, len(x), _JUDGED):
        outputs = np.asarray(model.predict_on_batch(inputs(x[start : start + _JUDGED], settings.pixels())))
        right += int(np.sum(np.argmax(outputs, axis=1) == y[start : start + _JUDGED]))
    return right / len(x)


def digest(model: Any) -> str:
    """SHA-256 (hex) of a network's structure and weights."""
    total = hashlib.sha256(keeping.structure_of(model).encode())
    for variable in model.weights:
        array = _array(variable)
        total.update(repr((array.shape, str(array.dtype))).encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


# ---- an epoch --------------------------------------------------------------------------------------


class _Clock:
    """How long a training has taken, and what is left of it by that."""

    def __init__(self, settings: Settings, steps: int, before: float, progress: Progress) -> None:
        self._epochs = settings.epochs
        self._steps = steps
        self._before = before  # seconds of former processes
        self._progress = progress
        self._began = time.monotonic()
        self._told = -math.inf
        self._warm = (0, 0.0)  # the first step of this process, and when it ended

    def seconds(self) -> float:
        """Since the training began, without the time between a kill and its resumption."""
        return self._before + time.monotonic() - self._began

    def step(self, epoch: int, step: int, right: float) -> None:
        """Says how far the training is, once a second at most.

        The first step compiles the network, and says nothing of how long the others take.
        """
        now, at = time.monotonic(), epoch * self._steps + step + 1
        if not self._warm[0]:
            self._warm = (at, now)
        if now - self._told < _SECONDS_BETWEEN:
            return
        self._told = now
        first, since = self._warm
        text = f"epoch {epoch + 1} of {self._epochs}: {right:.1%} right"
        if at > first:
            each = (now - since) / (at - first)
            text += f", {duration(each * (self._epochs * self._steps - at))} left"
        self._progress(text)


def _epoch(keras: Any, model: Any, batches: Batches, epoch: int, clock: _Clock) -> None:
    """One epoch; UsageError where the loss is no number any more."""

    class Steps(keras.utils.PyDataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return len(batches)

        def __getitem__(self, step: int) -> tuple[Any, Any]:
            return batches[step]

    class Told(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, step: int, logs: Any = None) -> None:
            clock.step(epoch, step, float((logs or {}).get("accuracy", 0.0)))

    history = model.fit(
        Steps(), epochs=epoch + 1, initial_epoch=epoch, shuffle=False, verbose=0, callbacks=[Told()]
    )
    loss = float(history.history["loss"][-1])
    if not math.isfinite(loss):
        text = f"the loss is {loss} after epoch {epoch + 1}: the training does not converge"
        raise UsageError(text, option="rate", hint="a smaller learning rate")


def _compile(keras: Any, model: Any, settings: Settings, steps: int) -> None:
    """Gives the network its loss and a new optimiser with the schedule of the learning rate."""
    total = settings.epochs * steps
    warm = round(total * settings.warm_up)
    rate = keras.optimizers.schedules.CosineDecay(
        0.0 if warm else settings.rate,
        max(1, total - warm),
        warmup_target=settings.rate if warm else None,
        warmup_steps=warm,
    )
    if settings.optimiser == "sgd":
        optimiser = keras.optimizers.SGD(
            rate, momentum=0.9, nesterov=True, weight_decay=settings.weight_decay
        )
    else:
        optimiser = keras.optimizers.AdamW(rate, weight_decay=settings.weight_decay)
    optimiser.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=not _has_softmax(keras, model))
    model.compile(optimiser, loss, metrics=["accuracy"])
    optimiser.build(model.trainable_variables)


def _has_softmax(keras: Any, model: Any) -> bool:
    """Whether the network's last layer gives probabilities; else it gives logits."""
    last = model.layers[-1]
    return isinstance(last, keras.layers.Softmax) or (
        getattr(last, "activation", None) is keras.activations.softmax
    )


# ---- state -----------------------------------------------------------------------------------------


def _array(variable: Any) -> Any:
    """A variable's value as a NumPy array, whatever the backend."""
    import keras

    return np.asarray(keras.ops.convert_to_numpy(variable.value))


def _seed(model: Any, seed: int) -> None:
    """Sets the random states within a network (of dropout), which its files do not have."""
    weights = {id(one) for one in model.weights}
    states = [one for one in model.variables if id(one) not in weights and tuple(one.shape) == (2,)]
    for index, state in enumerate(states):
        state.assign(np.array([seed, index], np.uint32))


def _variables(model: Any) -> tuple[list[Any], list[Any]]:
    """All variables of the network, seeds of dropout included, and of its optimiser, in their order."""
    return list(model.variables), list(model.optimizer.variables)


def _restored(model: Any, checkpoint: Path, key: str) -> tuple[int, float]:
    """Takes over a checkpoint's state, where it is one of this training: epochs done and seconds taken."""
    state = checkpoints.read(checkpoint, key)
    if state is None:
        return 0, 0.0
    for variables, values in zip(_variables(model), (state.network, state.optimiser), strict=True):
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
    return state.epochs, state.seconds
