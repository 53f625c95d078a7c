"""Changes fields of an .onnx file through its schema."""

from __future__ import annotations

import random
import struct
from typing import Any

import onnx

from benchmarks.fuzz.damage import FLOATS, INTEGERS, any_bytes

_KINDS = ("Conv", "Relu", "MatMul", "Gemm", "Add", "Concat", "Reshape", "QuantizeLinear", "Softmax", "Nope")


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Returns the model with one to three random fields changed, removed, duplicated or moved."""
    model = onnx.ModelProto.FromString(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _change(model, rng)
    try:
        return bytes(model.SerializeToString())
    except (ValueError, UnicodeError):
        return any_bytes(data, rng)


def _change(message: Any, rng: random.Random) -> None:
    """Follows a random path from the root, and changes the field at its end."""
    while True:
        fields = message.ListFields()
        if not fields:
            return
        field, value = rng.choice(fields)
        repeated = hasattr(value, "append") or hasattr(value, "add")
        if field.message_type is not None:
            if not repeated:
                message = value
            elif rng.random() < 0.15:
                _rearrange(value, rng)
                return
            else:
                message = rng.choice(value)
            continue
        try:
            _set(message, field.name, value, repeated, rng)
        except (ValueError, TypeError):  # what the field's type cannot hold
            message.ClearField(field.name)
        return


def _rearrange(values: Any, rng: random.Random) -> None:
    """Removes an element, duplicates it, or replaces it by a copy of another one."""
    made = [type(one).FromString(one.SerializeToString()) for one in values]
    match rng.randrange(3):
        case 0:
            del made[rng.randrange(len(made))]
        case 1:
            made.insert(rng.randrange(len(made) + 1), rng.choice(made))
        case _:
            made[rng.randrange(len(made))] = rng.choice(made)
    del values[:]
    values.extend(made)


def _set(message: Any, name: str, value: Any, repeated: bool, rng: random.Random) -> None:
    if repeated:
        made = list(value)
        match rng.randrange(4):
            case 0:
                made = made[: rng.randrange(len(made) + 1)]
            case 1:
                made.append(made[0])
            case _:
                place = rng.randrange(len(made))
                made[place] = _other(made[place], rng, message)
        del value[:]
        value.extend(made)
    else:
        setattr(message, name, _other(value, rng, message))


def _other(value: Any, rng: random.Random, message: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((rng.choice(INTEGERS), value + rng.choice((-1, 1)), rng.randint(0, 16)))
    if isinstance(value, float):
        return rng.choice(FLOATS)
    if isinstance(value, bytes):
        return _other_data(value, rng)
    names = [*getattr(message, "input", ()), *getattr(message, "output", ())]
    return rng.choice(("", "x" * 300, "a;b", "ü", "a\nb", *_KINDS, *names))


def _other_data(value: bytes, rng: random.Random) -> bytes:
    """Returns a tensor's data with one extreme number, or cut short."""
    changed = bytearray(value)
    draw = rng.random()
    if draw < 0.2 or len(value) < 4:
        return value[: rng.randrange(len(value) + 1)]
    if draw < 0.6:
        struct.pack_into("<f", changed, 4 * rng.randrange(len(value) // 4), rng.choice(FLOATS))
    else:
        word = rng.choice(INTEGERS) & 0xFFFFFFFF
        struct.pack_into("<I", changed, 4 * rng.randrange(len(value) // 4), word)
    return bytes(changed)
