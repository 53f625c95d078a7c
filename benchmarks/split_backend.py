"""Checks that a split on a backend of Keras continues to the bit: python benchmarks/split_backend.py BACKEND

BACKEND is tensorflow, torch or jax, installed in this Python beside TensorFlow, which converts to int8. A
tiny network is split by the command, once without disturbance and once killed at four stages and started
again. Every file of the two runs must be the same. It prints the stages, and ends with status 1 if a file
differs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

SIZE = 8
WORDS = "--data data.npz --board cortex-m4 --factors 2 --max-drop 100 --fine-tune 2 --batch 16 --images 8"
FILES = ("split.keras", "split.tflite", "split.plan", "split.json", "tables.txt", "tables.md")


def main() -> int:
    """Runs the check; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("backend", choices=("tensorflow", "torch", "jax"))
    backend = parser.parse_args().backend
    os.environ["KERAS_BACKEND"] = backend  # of this process, and of the commands
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder)
        if run(folder, "whole") != 0:
            return 1
        for stage, is_there in STAGES.items():
            how = "killed" if run(folder, "killed", is_there) < 0 else "it ended by itself"
            print(f"{backend}: {how} while {stage}", flush=True)
        if run(folder, "killed") != 0:
            return 1
        different = [one for one in FILES if data(folder, "whole", one) != data(folder, "killed", one)]
        print(f"{backend}: {'different: ' + ', '.join(different) if different else 'all files are equal'}")
        return 1 if different else 0


def make(folder: Path) -> None:
    """Writes a network of two blocks, and images. An image's class says which half of the image is bright."""
    from buildtool.split import backend

    keras: Any = backend.prepare()
    layers = keras.layers
    tensor = first = keras.Input((SIZE, SIZE, 3), name="image")
    for block in (1, 2):
        start = keras.initializers.HeNormal(block)
        conv = layers.Conv2D(
            4, 3, padding="same", use_bias=False, kernel_initializer=start, name=f"block{block}_conv"
        )
        tensor = layers.BatchNormalization(name=f"block{block}_bn")(conv(tensor))
        tensor = layers.ReLU(name=f"block{block}_relu")(tensor)
        tensor = layers.MaxPooling2D(2, name=f"block{block}_pool")(tensor)
    start = keras.initializers.GlorotUniform(3)
    tensor = layers.Flatten(name="flatten")(tensor)
    tensor = layers.Dense(2, "softmax", kernel_initializer=start, name="classes")(tensor)
    backend.save(keras.Model(first, tensor, name="tiny"), folder / "net.keras")
    random = np.random.default_rng(7)
    y = np.arange(96) % 2
    x = random.integers(0, 120, (96, SIZE, SIZE, 3))
    for index, label in enumerate(y):
        x[index, :, label * SIZE // 2 : (label + 1) * SIZE // 2] += 100
    pixels = x.astype(np.uint8)
    np.savez(folder / "data.npz", x_train=pixels[:64], y_train=y[:64], x_test=pixels[64:], y_test=y[64:])


def run(folder: Path, out: str, is_there: Callable[[Path], Sequence[Path]] | None = None) -> int:
    """Runs the command; kills it as soon as `is_there` finds something in its output folder."""
    command = [sys.executable, "-m", "buildtool", "split", "net.keras", *WORDS.split(), "--out", out]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    if is_there is not None:
        while process.poll() is None and not is_there(folder / out):
            time.sleep(0.02)
        process.kill()
    return process.wait()


def data(folder: Path, out: str, name: str) -> bytes:
    """Returns the content of an output file."""
    return (folder / out / name).read_bytes()


STAGES: dict[str, Callable[[Path], Sequence[Path]]] = {
    "a network is trained": lambda out: list(out.glob("networks/*.checkpoint.npz")),
    "the third network is there": lambda out: list(out.glob("networks/*.keras"))[2:],
    "it is converted": lambda out: list(out.glob("split.keras")),
    "it is planned and run": lambda out: list(out.glob("split.tflite")),
}


if __name__ == "__main__":
    sys.exit(main())
