"""A training's state in one file: variables, epoch and time, of one key, replaced whole or not at all."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from buildtool.base import outfiles

_SCHEMA = 1


@dataclass(frozen=True)
class State:
    """After `epochs` whole epochs, which took `seconds`: all variables of the network and the optimiser."""

    epochs: int
    seconds: float
    network: tuple[npt.NDArray[Any], ...]
    optimiser: tuple[npt.NDArray[Any], ...]


def write(path: Path, key: str, state: State) -> None:
    """Replaces the file, or leaves the former one where that fails. `key`: what the training depends on."""
    about = {
        "schema": _SCHEMA,
        "key": key,
        "epochs": state.epochs,
        "seconds": state.seconds,
        "counts": [len(state.network), len(state.optimiser)],
    }
    arrays = {f"v{index}": one for index, one in enumerate((*state.network, *state.optimiser))}
    stream = io.BytesIO()
    np.savez(stream, about=np.array(json.dumps(about, sort_keys=True)), **arrays)  # type: ignore[arg-type]
    path.parent.mkdir(parents=True, exist_ok=True)
    outfiles.write({path.name: stream.getvalue()}, path.parent)


def read(path: Path, key: str) -> State | None:
    """The state of a training with this key; None where there is none, or a damaged one."""
    try:
        with np.load(path, allow_pickle=False) as kept:
            about = json.loads(str(kept["about"]))
            if about["schema"] != _SCHEMA or about["key"] != key:
                return None
            first, second = about["counts"]
            arrays = [kept[f"v{index}"] for index in range(first + second)]  # each with its CRC checked
            return State(
                int(about["epochs"]), float(about["seconds"]), tuple(arrays[:first]), tuple(arrays[first:])
            )
    except Exception:  # whatever damaged bytes bring about: the training begins anew
        return None
