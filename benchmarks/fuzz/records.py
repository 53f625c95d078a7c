"""Changes fields of plans (msgpack), .npy headers and weight images through their own formats."""

from __future__ import annotations

import random
import struct
import zlib
from typing import Any

import msgpack

from benchmarks.fuzz.damage import FLOATS, INTEGERS, any_bytes

_HEADER_BYTES = 64  # of a weight image (kernels/include/nn_image.h)
_SEAL_AT = 60
_CRC_AT = 16
_SHAPES = (
    "()",
    "(1,)",
    "(0,)",
    "(20000000000,)",
    "(-1, 4)",
    "(1, 4, 4, 3)",
    "(4, 4, 3)",
    "(3, 4, 4)",
    "None",
)
_TYPES = ("'|i1'", "'<f4'", "'<f8'", "'|u1'", "'|O'", "'<i8'", "'|S9'", "'<M8[s]'", "'|V4'", "'|b1'", "'<c8'")


def plan(data: bytes, rng: random.Random) -> bytes:
    """Changes numbers, texts and lists of a plan's msgpack data; the result is still valid msgpack."""
    content = msgpack.unpackb(data, raw=False)
    for _ in range(rng.choice((1, 1, 2, 3))):
        _change(content, rng)
    try:
        return bytes(msgpack.packb(content, use_bin_type=True))
    except (OverflowError, ValueError):
        return any_bytes(data, rng)


def _change(owner: Any, rng: random.Random) -> None:
    """Follows a random path through nested lists, and changes the element at its end."""
    while owner:
        place = rng.randrange(len(owner))
        value = owner[place]
        if isinstance(value, list) and value and rng.random() < 0.95:
            owner = value
            continue
        match rng.randrange(12):
            case 0:
                del owner[place]
            case 1:
                owner.insert(rng.randrange(len(owner) + 1), value)
            case _:
                owner[place] = _other(value, rng)
        return


def _other(value: Any, rng: random.Random) -> Any:
    if isinstance(value, bool):
        return rng.choice((not value, 2))
    if isinstance(value, int):
        near = value + rng.choice((-16, -1, 1, 16, value))
        return rng.choice((rng.choice(INTEGERS), near, near, rng.randint(0, 8)))
    if isinstance(value, float):
        return rng.choice((*FLOATS, 1, value * 2))
    if isinstance(value, str):
        return rng.choice(("", "x" * 300, "none", "row", "pixel", "layerwise", "best", "ü", value + "x"))
    return rng.choice((None, 0, "", []))


def npy(data: bytes, rng: random.Random) -> bytes:
    """Returns a .npy file whose header has a shape, type or order that the data does not have."""
    descr, shape = rng.choice(_TYPES), rng.choice(_SHAPES)
    words = f"{{'descr': {descr}, 'fortran_order': {rng.choice(('False', 'True', '3'))}, 'shape': {shape}}}"
    if rng.random() < 0.2:
        words = any_bytes(words.encode(), rng).decode("latin-1")
    header = words.encode("latin-1").ljust(117) + b"\n"
    body = data[128 : 128 + rng.choice((len(data), 0, 1, 48))]
    version = rng.choice((b"\x01\x00", b"\x01\x00", b"\x01\x00", b"\x02\x00", b"\x09\x00"))
    return b"\x93NUMPY" + version + struct.pack("<H", rng.choice((118, 118, 118, 0, 65535))) + header + body


def image(data: bytes, rng: random.Random) -> bytes:
    """Changes a header field of a weight image, or its payload; checksums may be corrected."""
    changed = bytearray(data)
    if rng.random() < 0.5:
        place = 4 * rng.randrange(_HEADER_BYTES // 4)
        struct.pack_into("<I", changed, place, rng.choice(INTEGERS) & 0xFFFFFFFF)
        return _sealed(changed) if rng.random() < 0.5 else bytes(changed)
    payload = any_bytes(bytes(changed[_HEADER_BYTES:]), rng)
    struct.pack_into("<I", changed, _CRC_AT, zlib.crc32(payload))
    return _sealed(changed[:_HEADER_BYTES]) + payload


def _sealed(data: bytearray) -> bytes:
    """Returns an image, or only its header, with the correct checksum of the header."""
    struct.pack_into("<I", data, _SEAL_AT, zlib.crc32(data[:_SEAL_AT]))
    return bytes(data)
