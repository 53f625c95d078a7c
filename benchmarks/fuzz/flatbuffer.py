"""Changes fields of a .tflite file through its schema: the file is well formed, what it says is not."""

from __future__ import annotations

import copy
import functools
import random
import struct
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from benchmarks.fuzz.damage import FLOATS, INTEGERS, any_bytes

_TRIES = 6  # values that the schema's types cannot hold are drawn again


@functools.lru_cache(maxsize=32)
def _model(data: bytes) -> Any:
    return schema.ModelT.InitFromPackedBuf(data)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Returns the model with one to three random fields changed, removed, duplicated or swapped."""
    for _ in range(_TRIES):
        model = copy.deepcopy(_model(data))
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            _change(model, rng)
        try:
            builder = flatbuffers.Builder(len(data) + 1024)
            builder.Finish(model.Pack(builder), b"TFL3")
            return bytes(builder.Output())
        except (TypeError, ValueError, AttributeError, struct.error, OverflowError):
            continue
    return any_bytes(data, rng)


def _change(model: Any, rng: random.Random) -> None:
    """Follows a random path from the root, and changes the field, list element or table at its end."""
    owner = model
    while True:
        fields = [name for name, value in vars(owner).items() if value is not None]
        if not fields:
            return
        name = rng.choice(fields)
        value = getattr(owner, name)
        if isinstance(value, list) and value and hasattr(value[0], "__dict__"):
            if rng.random() < 0.1:
                setattr(owner, name, _other_list(value, rng))
                return
            owner = rng.choice(value)
        elif hasattr(value, "__dict__") and not isinstance(value, np.ndarray):
            if rng.random() < 0.05:
                setattr(owner, name, None)
                return
            owner = value
        else:
            setattr(owner, name, _other(value, rng))
            return


def _other(value: Any, rng: random.Random) -> Any:
    """Returns a different value for a field that is not a table."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((rng.choice(INTEGERS), value + rng.choice((-1, 1, 2)), rng.randint(0, 8)))
    if isinstance(value, float):
        return rng.choice((*FLOATS, value * 2, -value))
    if isinstance(value, (str, bytes)):
        return rng.choice(
            (b"", b"x" * 400, b"a/b;c", b"\xc3\x28", "ü".encode(), b"a\nb", b"%s%n", b"\x1b[2J")
        )
    if isinstance(value, np.ndarray):
        return _other_array(value, rng)
    if isinstance(value, list):
        return _other_list(value, rng)
    return None


def _other_array(value: Any, rng: random.Random) -> Any:
    array = value.copy()
    draw = rng.random()
    if draw < 0.15 or not array.size:
        return array[: rng.randrange(array.size + 1)] if draw < 0.1 else np.concatenate([array, array[:1]])
    place = rng.randrange(array.size)
    if array.dtype.kind == "f":
        array[place] = rng.choice(FLOATS)
    else:
        limits = np.iinfo(array.dtype)
        wanted = rng.choice((rng.choice(INTEGERS), int(array[place]) + rng.choice((-1, 1))))
        array[place] = min(max(wanted, limits.min), limits.max)
    return array


def _other_list(value: list[Any], rng: random.Random) -> list[Any]:
    """Returns the list with elements removed, duplicated, reordered or changed."""
    made = list(value)
    match rng.randrange(4):
        case 0 if made:
            del made[rng.randrange(len(made))]
        case 1 if made:
            made.insert(rng.randrange(len(made) + 1), rng.choice(made))
        case 2:
            rng.shuffle(made)
        case _ if made and isinstance(made[0], (int, float)):
            made[rng.randrange(len(made))] = _other(made[0], rng)
        case _:
            made = []
    return made
