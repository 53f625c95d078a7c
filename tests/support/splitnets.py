"""A tiny network to split, data made in a moment, and a process that is killed while it searches.

`python splitnets.py FOLDER` runs one search after the other, each in a child process: the first in
FOLDER/whole without disturbance, the others in FOLDER/killed, each but the last killed by SIGKILL.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

from buildtool.split.data import Data

SIZE = 8


def data(images: int = 96, classes: int = 2) -> Data:
    """Images whose class says which side is bright; the same ones in every process."""
    random = np.random.default_rng(7)
    y = np.arange(images) % classes
    x = random.integers(0, 120, (images, SIZE, SIZE, 3))
    for index, label in enumerate(y):
        x[index, :, label * SIZE // classes : (label + 1) * SIZE // classes] += 100
    half = images * 2 // 3
    pixels = x.astype(np.uint8)
    return Data(
        pixels[:half], y[:half], pixels[half:], y[half:], tuple(f"class {index}" for index in range(classes))
    )


def network(classes: int = 2, channels: int = 4, dropout: bool = False) -> Any:
    """Two blocks of a convolution with batch normalisation, which forgets fast, and one dense layer."""
    import keras
    from keras import layers

    tensor = first = keras.Input((SIZE, SIZE, 3), name="image")
    for block in (1, 2):
        start = keras.initializers.HeNormal(block)
        tensor = layers.Conv2D(
            channels, 3, padding="same", use_bias=False, kernel_initializer=start, name=f"block{block}_conv"
        )(tensor)
        tensor = layers.BatchNormalization(momentum=0.5, name=f"block{block}_bn")(tensor)
        tensor = layers.ReLU(name=f"block{block}_relu")(tensor)
        tensor = layers.MaxPooling2D(2, name=f"block{block}_pool")(tensor)
    tensor = layers.Flatten(name="flatten")(tensor)
    if dropout:
        tensor = layers.Dropout(0.3, seed=5, name="dropout")(tensor)
    start = keras.initializers.GlorotUniform(3)
    tensor = layers.Dense(classes, "softmax", kernel_initializer=start, name="classes")(tensor)
    return keras.Model(first, tensor, name="tiny")


class Everything:
    """Prices by which every choice meets the goals."""

    def missed(self, _choice: Any) -> str:
        return ""

    def figures(self, _choice: Any) -> dict[str, float]:
        return {}


def run_search(folder: Path) -> Any:
    """The search on the tiny network, with records and networks in a folder."""
    from buildtool.split.blocks import find_blocks
    from buildtool.split.records import Records
    from buildtool.split.search import Work, search
    from buildtool.split.wanted import Settings, Wanted

    base, records = network(dropout=True), Records(folder / "records.json")
    records.prepare()
    settings = Settings(fine_epochs=2, batch=16)
    wanted = Wanted("", folder, "", max_drop=100.0, factors=(2,), settings=settings, compares=False)
    prices: Any = Everything()
    blocks = find_blocks(base)[:1]
    return search(Work(wanted, base, blocks, data(), prices, records, lambda text: None), "slice")


# ---- kills -----------------------------------------------------------------------------------------


def kill() -> None:
    """Ends this process as the system does where memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


def killed_at_step(count: int) -> None:
    """From now on, this process is killed in a step of a training, counted over all of them."""
    from buildtool.split.training import Batches

    plain, steps = Batches.__getitem__, [0]

    def get(self: Batches, step: int) -> Any:
        steps[0] += 1
        return kill() if steps[0] == count else plain(self, step)

    Batches.__getitem__ = get  # type: ignore[method-assign]


def killed_at_write(count: int, name: str) -> None:
    """From now on, this process is killed when so many files with `name` in theirs are half written."""
    plain, writes = os.replace, [0]

    def replace(source: Any, target: Any, *args: Any, **options: Any) -> Any:
        if name in Path(target).name:
            writes[0] += 1
            if writes[0] == count:
                kill()
        return plain(source, target, *args, **options)

    os.replace = replace  # what Path.replace calls


def told_epochs(path: Path) -> None:
    """From now on, each epoch that ends adds its number to a file."""
    from buildtool.split import training

    plain = training.keep

    def keep(model: Any, where: Path, key: str, epochs: int, seconds: float) -> None:
        with path.open("a") as file:
            file.write(f" {epochs}")
        plain(model, where, key, epochs, seconds)

    training.keep = keep


KILLS = (
    lambda: killed_at_step(6),  # in the second epoch of the first training
    lambda: killed_at_write(1, "records.json"),  # its network is there, its record is not
    lambda: killed_at_write(2, ".checkpoint.npz"),  # at the end of the second training's last epoch
)


def main() -> None:
    """Runs the searches, and prints how each of them ended, 0 or -9, and which epochs it trained."""
    from buildtool.split import backend

    backend.prepare()
    root = Path(sys.argv[1])
    epochs = root / "epochs.txt"
    for folder, disturbance in (("whole", None), *(("killed", one) for one in KILLS), ("killed", None)):
        epochs.write_text("")
        child = os.fork()  # TensorFlow has begun no thread yet
        if child == 0:
            told_epochs(epochs)
            if disturbance is not None:
                disturbance()
            run_search(root / folder)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(f"{folder} {os.waitstatus_to_exitcode(status)}:{epochs.read_text()}", flush=True)


if __name__ == "__main__":
    main()
