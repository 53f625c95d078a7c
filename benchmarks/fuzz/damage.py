"""Changes bytes of a file, whatever the file is: the mutations that need no schema."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable

INTEGERS = (
    *(0, 1, 2, 3, 4, 7, 8, 16, 127, 128, 129, 255, 256, 1000, 46341, 65535, 65536, 1 << 20, (1 << 31) - 1),
    *(1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, -1, -2, -4, -128, -129, -(1 << 31), -(1 << 63)),
)
FLOATS = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1.17e-38, 1e-30, 1e-10, 3.4e38, 1e30, 2.0**31, 2.0**-31),
    *(math.nan, math.inf, -math.inf),
)
Mutation = Callable[[bytes, random.Random], bytes]


def bit_flips(data: bytes, rng: random.Random) -> bytes:
    """Flips one to four random bits."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def random_bytes(data: bytes, rng: random.Random) -> bytes:
    """Replaces up to 64 adjacent bytes by random ones."""
    start = rng.randrange(len(data) + 1)
    count = min(rng.randint(1, 64), len(data) - start)
    return data[:start] + rng.randbytes(count) + data[start + count :]


def truncated(data: bytes, rng: random.Random) -> bytes:
    """Cuts the file at a random place."""
    return data[: rng.randrange(len(data) + 1)]


def strange_words(data: bytes, rng: random.Random) -> bytes:
    """Replaces aligned words (offsets, lengths, dimensions, indices) by extreme values or by other words."""
    changed = bytearray(data)
    words = len(data) // 4
    for _ in range(rng.randint(1, 4) if words else 0):
        place = 4 * rng.randrange(words)
        (old,) = struct.unpack_from("<I", changed, place)
        (other,) = struct.unpack_from("<I", changed, 4 * rng.randrange(words))
        value = rng.choice((rng.choice(INTEGERS), old + rng.randint(-8, 8), other, len(data)))
        struct.pack_into("<I", changed, place, value & 0xFFFFFFFF)
    return bytes(changed)


def spliced_floats(data: bytes, rng: random.Random) -> bytes:
    """Replaces an aligned word by a float such as NaN, 0 or 1e30."""
    changed = bytearray(data)
    if len(data) >= 4:
        struct.pack_into("<f", changed, 4 * rng.randrange(len(data) // 4), rng.choice(FLOATS))
    return bytes(changed)


def cut_and_pasted(data: bytes, rng: random.Random) -> bytes:
    """Copies a part of the file to another place, where it overwrites bytes or is inserted."""
    count = rng.randint(1, 200)
    source, target = rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)
    part = data[source : source + count]
    return data[:target] + part + data[target + (len(part) if rng.random() < 0.7 else 0) :]


BYTES: tuple[Mutation, ...] = (
    bit_flips,
    random_bytes,
    truncated,
    strange_words,
    spliced_floats,
    cut_and_pasted,
)


def any_bytes(data: bytes, rng: random.Random) -> bytes:
    """Applies one of this file's mutations."""
    return rng.choice(BYTES)(data, rng)


_TOKENS = (
    *("0", "-1", "1", "2147483648", "4294967296", "99999999999999999999", "0x7fffffffffffffff", "1e999"),
    *("nan", "inf", "-inf", "true", "[]", "{}", '""', '"\\u0000"', '"\\n"', "''", "[[[[]]]]", "1979-05-27"),
    *('"64K"', '"999999999999G"', '"-1K"', '"../x.toml"', '"host"', '"a;id"', '"$(id)"', '"\\u202e"'),
    *("not a value", "[x]", "x = ", '"' + "x" * 3000 + '"', "[" * 300, '["--version"]', '"ram"', '"rom"'),
)


def text_values(data: bytes, rng: random.Random) -> bytes:
    """Changes values after "=" or ","; or removes, copies or swaps lines."""
    lines = data.decode("utf-8", "replace").splitlines()
    for _ in range(rng.randint(1, 3)):
        if not lines:
            break
        place = rng.randrange(len(lines))
        match rng.randrange(6):
            case 0:
                del lines[place]
            case 1:
                lines.insert(rng.randrange(len(lines)), lines[place])
            case 2:
                other = rng.randrange(len(lines))
                lines[place], lines[other] = lines[other], lines[place]
            case _:
                lines[place] = _with_value(lines[place], rng)
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _with_value(line: str, rng: random.Random) -> str:
    """Returns the line with a different value: one of those above, or a number close to the old one."""
    for mark in ("=", ","):
        if mark in line:
            parts = line.split(mark)
            parts[rng.randrange(1, len(parts))] = rng.choice(("", " ")) + rng.choice(_TOKENS)
            return mark.join(parts)
    return rng.choice(_TOKENS)
