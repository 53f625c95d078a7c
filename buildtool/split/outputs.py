"""What a search ends in: the split network in int8, its accuracy in every form, and a plan to build it by."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import BuildtoolError
from buildtool.base.scratch import scratch
from buildtool.split import convert, keeping, training
from buildtool.split.batches import inputs
from buildtool.split.code import code_bytes

if TYPE_CHECKING:
    from buildtool.split.data import Data
    from buildtool.split.pricing import Goals
    from buildtool.split.settings import Settings

CALIBRATION = 200  # training images whose activations give the scales
ON_BOARD = 16  # test images that go through the board's own firmware in its emulator
HOST = "host"  # the board that is this machine


@dataclass(frozen=True)
class Accuracies:
    """Shares of the same test images that get the right class, in every form of a network.

    `images`: how many; `floats`: of the Keras model; `int8`: of the .tflite file by `reference`; `firmware`:
    of the emitted C on this machine; `guessing`: of the most frequent class. `equal`: images whose output
    bytes are all the reference's there.
    """

    images: int
    floats: float
    int8: float
    firmware: float | None
    equal: int
    reference: str
    guessing: float


@dataclass(frozen=True)
class OnBoard:
    """The firmware for the board itself: images that went through it, and those whose outputs are equal.

    `why`: why none went, "" where some did.
    """

    images: int
    equal: int
    why: str = ""


def calibration(data: Data, settings: Settings) -> npt.NDArray[np.float32]:
    """Training images as a network sees them, chosen at random by the seed."""
    order = np.random.default_rng((settings.seed, 3)).permutation(len(data.train_x))[:CALIBRATION]
    return inputs(data.train_x[np.sort(order)], settings.pixels())


def tested(
    data: Data, settings: Settings, images: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """At most so many test images, chosen at random by the seed, and their classes."""
    if images >= len(data.test_x):
        return data.test_x, data.test_y
    order = np.sort(np.random.default_rng((settings.seed, 4)).permutation(len(data.test_x))[:images])
    return data.test_x[order], data.test_y[order]


def int8_file(network: Path, data: Data, settings: Settings) -> bytes:
    """The .tflite file of a .keras file, calibrated on the data: equal inputs give equal bytes."""
    return convert.int8_model(keeping.load(network), calibration(data, settings))


def accuracies(
    network: Path, tflite: Path, data: Data, settings: Settings, images: int, *, firmware: bool = True
) -> Accuracies:
    """The accuracies of a network in all its forms on the same test images."""
    x, y = tested(data, settings, images)
    floats = training.accuracy(keeping.load(network), x, y, settings)
    found = _validated(tflite, HOST, x, y, settings, len(x) if firmware else 0)
    of, run = found["accuracy"], found["firmware"]
    return Accuracies(
        len(x),
        floats,
        of["reference"]["top1"],
        of["firmware"]["top1"] if of["firmware"] else None,
        run["inputs_equal"] if run else 0,
        found["reference"]["text"],
        float(np.bincount(y).max()) / len(y),
    )


def on_board(tflite: Path, board: str | Path, data: Data, settings: Settings, plan: Path | None) -> OnBoard:
    """A few test images through the firmware for the board, in its emulator, by the plan that is written."""
    x, y = tested(data, settings, ON_BOARD)
    try:
        found = _validated(tflite, str(board), x, y, settings, len(x), plan=plan)
    except BuildtoolError as error:
        return OnBoard(0, 0, error.text)
    run = found["firmware"]
    return OnBoard(run["inputs"], run["inputs_equal"])


def plan(tflite: Path, board: str | Path, goals: Goals) -> dict[str, Any]:
    """The answer to `plan` for the board within the goals; its `locked` is a file to build by.

    Beside it `code_bytes`: of flash, at most, by what is recorded (None: nothing is). Raises PlanError where
    nothing fits.
    """
    given = {"ram": goals.ram, "max_flash": goals.flash, "max_ms": goals.max_ms}
    options = {name: value for name, value in given.items() if value is not None}
    request: dict[str, Any] = {"kind": "plan", "model": str(tflite), "board": str(board)}
    request |= {"options": options} if options else {}
    found = _asked(request)
    return {**found, "code_bytes": _code_bytes(request)}


def _code_bytes(request: Mapping[str, Any]) -> int | None:
    """What the code of a request's plan takes of flash at most; None where that is not known."""
    from buildtool.api import kept_session
    from buildtool.api.requests import Plan, parse
    from buildtool.client.files import Located
    from buildtool.plan.choose.choose import chosen
    from buildtool.plan.choose.prepare import load_network, prepare
    from buildtool.target.choice import load_target

    asked, session = parse(Located(request).request), kept_session()
    assert isinstance(asked, Plan)
    target = load_target(asked.target, session)
    graph, made = chosen(prepare(load_network(asked.model, session), target, asked.options, session))
    return code_bytes(graph, made, target, session)


def _validated(
    tflite: Path,
    board: str,
    x: npt.NDArray[np.uint8],
    y: npt.NDArray[np.int64],
    settings: Settings,
    through: int,
    plan: Path | None = None,
) -> dict[str, Any]:
    """The answer to `validate` on images and their classes."""
    stream = io.BytesIO()
    np.savez(stream, x=x, labels=y)
    with scratch() as folder:
        path = Path(folder) / "images.npz"
        path.write_bytes(stream.getvalue())
        request: dict[str, Any] = {
            "kind": "validate",
            "model": str(tflite),
            "board": board,
            "data": str(path),
            "normalise": settings.normalise,
        }
        if plan is not None:
            request["plan"] = str(plan)
        how = {"through_firmware": through} if through else {"reference_only": True}
        return _asked(request | how)


def _asked(request: Mapping[str, Any]) -> dict[str, Any]:
    """The service's answer to a request, in this process."""
    from buildtool.api import answered, kept_session
    from buildtool.client.files import Located

    located = Located(request)
    try:
        return answered(located.request, kept_session())
    except BuildtoolError as error:
        raise located.restored(error) from None
