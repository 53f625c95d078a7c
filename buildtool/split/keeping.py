"""Networks as .keras files: written whole or not at all, the same bytes for the same network."""

from __future__ import annotations

import contextlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

from buildtool.base import outfiles
from buildtool.base.errors import MachineError, ModelError, UsageError
from buildtool.base.scratch import scratch
from buildtool.split import backend

_SAVE = "save it with Keras 3: model.save('network.keras')"
_TIME = (1980, 1, 1, 0, 0, 0)  # the first one that a .zip file can say


def packed(model: Any) -> bytes:
    """A network as the bytes of a .keras file, without the time it was written at and without optimiser."""
    with scratch() as folder:
        path = Path(folder) / "network.keras"
        _saved(model, path)
        stream = io.BytesIO()
        with zipfile.ZipFile(path) as given, zipfile.ZipFile(stream, "w") as made:
            for name in sorted(given.namelist()):
                made.writestr(zipfile.ZipInfo(name, _TIME), _undated(name, given.read(name)))
    return stream.getvalue()


def _saved(model: Any, path: Path) -> None:
    """Saves a network to a temporary file; MachineError where it finds no room."""
    try:
        model.save(path, include_optimizer=False)
    except OSError as error:  # of h5py, with its own words for what the system said
        text = f"the network cannot be written to a temporary file: {str(error).splitlines()[0]}"
        hint = "free space there, or name another folder for temporary files (TMPDIR)"
        raise MachineError(text, path=str(path.parent), hint=hint) from None


def save(model: Any, path: Path) -> None:
    """Writes a network to a .keras file; MachineError or UsageError where that fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    outfiles.write({path.name: packed(model)}, path.parent)


def load(path: Path) -> Any:
    """The network of a .keras file, not compiled; ModelError for a file that is none.

    Code in the file (Lambda layers) is not run: such networks are refused.
    """
    keras = backend.prepare()
    if not path.is_file():
        raise UsageError("there is no such file", path=str(path), option="network")
    if not zipfile.is_zipfile(path):
        text = "this is no .keras file, or a damaged one"
        raise ModelError(text, path=str(path), hint=_SAVE)
    try:
        return keras.saving.load_model(path, compile=False, safe_mode=True)
    except Exception as error:  # Keras raises a dozen kinds
        if backend.is_out_of_memory(error):
            raise
        first = str(error).strip().splitlines() or [type(error).__name__]
        if "Lambda" in first[0]:
            text = "the network has a Lambda layer, whose code is not run"
            hint = "put a layer of Keras in its place, such as Rescaling, and save the network again"
            raise ModelError(text, path=str(path), hint=hint) from None
        text = f"Keras cannot read this network: {first[0][:200]}"
        raise ModelError(text, path=str(path), hint=_SAVE) from None


def structure_of(model: Any) -> str:
    """A network's structure as JSON: the same text for the same structure, in every process."""
    config = {**json.loads(model.to_json()), "compile_config": None}
    return json.dumps(_renumbered(config, {}), sort_keys=True)


def sweep(folder: Path) -> None:
    """Removes what killed processes have left half written in a folder."""
    for path in folder.glob(".buildtool-*-*-*"):
        number = path.name.split("-")[1]
        if path.suffix in (".part", ".old") and number.isdigit() and not _is_running(int(number)):
            with contextlib.suppress(OSError):
                path.unlink()


def _is_running(number: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True


def _undated(name: str, data: bytes) -> bytes:
    """A member of the file without the date it was saved at, and without the settings of a training."""
    if name == "metadata.json":
        return json.dumps({**json.loads(data), "date_saved": ""}, sort_keys=True).encode()
    if name == "config.json":
        config = {**json.loads(data), "compile_config": None}
        return json.dumps(_renumbered(config, {}), sort_keys=True).encode()
    return _without_optimiser(data) if name == "model.weights.h5" else data


def _without_optimiser(data: bytes) -> bytes:
    """The weights' file without the optimiser's variables, which Keras writes even when told not to."""
    import h5py

    stream = io.BytesIO()
    with h5py.File(io.BytesIO(data)) as given, h5py.File(stream, "w") as made:
        for name in sorted(given):
            if name != "optimizer":
                given.copy(name, made)
        made.attrs.update(given.attrs)
    return stream.getvalue()


def _renumbered(value: Any, numbers: dict[int, int]) -> Any:
    """Plain values with shared objects counted from 1; Keras calls them by their address in memory."""
    if isinstance(value, list):
        return [_renumbered(one, numbers) for one in value]
    if not isinstance(value, dict):
        return value
    found = {key: _renumbered(value[key], numbers) for key in sorted(value) if key != "shared_object_id"}
    # A type of numbers is written as shared or not by how the network was made, and means the same.
    if (address := value.get("shared_object_id")) is not None and value.get("class_name") != "DTypePolicy":
        found["shared_object_id"] = numbers.setdefault(address, len(numbers) + 1)
    return found
