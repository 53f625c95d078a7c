"""Odd shapes: operators of shapes that no kernel was tuned for, drawn by a seed.

    entries = drawn()[::2]          # for tuning
    entries = drawn()[1::2]         # for showing
    entries = named()               # one of each family that was slow

An entry has a name and a call of single.py, like those of library_counts.toml. kernels.py prints them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Entry = dict[str, Any]
SEED, COUNT = 41, 200
MOST_PRODUCTS = 250_000  # of a layer: an emulator counts each in a second or less

NAMED: list[tuple[str, list[Any]]] = [
    ("multiplied", [16, 16, 3, 4]),
    ("multiplied", [32, 32, 3, 8, 3, 2]),
    ("multiplied", [12, 12, 12, 2]),
    ("multiplied", [10, 10, 20, 3]),
    ("depthwise", [24, 24, 2]),
    ("depthwise", [24, 24, 3]),
    ("depthwise", [20, 10, 30, [3, 1]]),
    ("depthwise", [40, 1, 32, [5, 1]]),
    ("depthwise", [49, 1, 40, [9, 1]]),
    ("depthwise", [12, 12, 16, [9, 9]]),
    ("depthwise", [1, 49, 32, [1, 9]]),
    ("transpose", [12, 12, 16, 8, 2]),
    ("transpose", [12, 12, 8, 16, 3]),
    ("transpose", [10, 10, 16, 16, 4]),
    ("transpose", [6, 6, 32, 16, 3]),
    ("conv", [2, 2, 128, 32, 4]),
    ("conv", [12, 12, 6, 10, 3]),
    ("dense", [37, 13]),
    ("pool", ["AVERAGE_POOL_2D", 24, 24, 3, 2, 2]),
    ("pool", ["MAX_POOL_2D", 24, 24, 3, 2, 2]),
    ("concat", [16, 16, 3, 5]),
    ("padded", [24, 24, 3, 1, 1, 1, 1]),
    ("padded", [12, 12, 16, 0, 1, 0, 1]),
    ("binary", ["MAXIMUM", 12, 12, 17]),
    ("wide", ["binary", "ADD", 12, 12, 17]),
    ("wide", ["binary", "MUL", 12, 12, 17]),
    ("wide", ["pool", "AVERAGE_POOL_2D", 12, 12, 16, 2, 2]),
    ("wide", ["pool", "AVERAGE_POOL_2D", 6, 6, 24, 6, 1]),
    ("wide", ["dense", 37, 13]),
    ("wide", ["conv", 10, 10, 12, 16, 3]),
    ("wide", ["depthwise", 12, 12, 16]),
]


def drawn(seed: int = SEED, count: int = COUNT) -> list[Entry]:
    """Returns `count` different entries. The weight of a family says how many of them are of this family."""
    rng, found = np.random.default_rng(seed), dict[str, Entry]()
    makers = [maker for maker, weight in _FAMILIES for _ in range(weight)]
    while len(found) < count:
        maker, given = makers[int(rng.integers(len(makers)))](rng)
        entry = _entry(maker, given)
        found.setdefault(entry["name"], entry)
    return list(found.values())


def named() -> list[Entry]:
    """Returns the entries of NAMED."""
    return [_entry(maker, given) for maker, given in NAMED]


def _entry(maker: str, given: list[Any]) -> Entry:
    words = ["int16", *given] if maker == "wide" else [maker, *given]
    shown = ["x".join(map(str, word)) if isinstance(word, list) else str(word) for word in words]
    return {"name": " ".join(shown).lower(), "call": {maker: given}}


Rng = np.random.Generator
Drawn = tuple[str, list[Any]]


def _among(rng: Rng, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _image(rng: Rng, channels: int, products: int) -> tuple[int, int]:
    """Returns random rows and columns for an image. A fifth of the images are signals, with 1 of either.

    The more channels and products per pixel there are, the smaller the image is.
    """
    most = max(1, min(32, int((MOST_PRODUCTS / max(1, products * channels)) ** 0.5)))
    sides = [int(rng.integers(max(1, most // 3), most + 1)) for _ in range(2)]
    if rng.integers(5) == 0:
        sides[int(rng.integers(2))] = 1
    return sides[0], sides[1]


def _window(rng: Rng, most: int = 7) -> list[int]:
    """Returns random rows and columns of a window; half of the windows are squares."""
    side = int(rng.integers(1, most + 1))
    return [side, side] if rng.integers(2) else [int(n) for n in rng.integers(1, most + 1, 2)]


def _conv(rng: Rng) -> Drawn:
    cin, cout, window = int(rng.integers(1, 65)), int(rng.integers(1, 49)), _window(rng, 4)
    sides = _image(rng, cin * cout, window[0] * window[1])
    return "conv", [*sides, cin, cout, window, _among(rng, 1, 1, 2)]


def _depthwise(rng: Rng) -> Drawn:
    channels, window = int(_among(rng, *range(2, 9), 12, 20, 30, 48, 72)), _window(rng, 9)
    sides = _image(rng, channels, window[0] * window[1])
    return "depthwise", [*sides, channels, window, _among(rng, 1, 1, 2)]


def _multiplied(rng: Rng) -> Drawn:
    channels, multiplier = int(_among(rng, 2, 3, 4, 6, 12, 20, 33)), int(_among(rng, 2, 3, 4, 5, 8))
    window = _window(rng, 5)
    sides = _image(rng, channels * multiplier, window[0] * window[1])
    return "multiplied", [*sides, channels, multiplier, window, _among(rng, 1, 2)]


def _transpose(rng: Rng) -> Drawn:
    cin, cout, side = int(_among(rng, 3, 8, 16, 24, 40)), int(rng.integers(1, 33)), int(rng.integers(2, 6))
    height, width = _image(rng, cin * cout, side * side)
    return "transpose", [min(height, 12), min(width, 12), cin, cout, side, _among(rng, 2, 2, 3)]


def _dense(rng: Rng) -> Drawn:
    return "dense", [int(n) for n in rng.integers(2, 200, 2)]


def _pool(rng: Rng) -> Drawn:
    kind, side = _among(rng, "AVERAGE_POOL_2D", "MAX_POOL_2D"), int(rng.integers(2, 6))
    channels = int(_among(rng, 1, 2, 3, 5, 8, 18, 33, 64))
    sides = [max(n, side) for n in _image(rng, channels, side * side)]
    return "pool", [kind, *sides, channels, side, int(rng.integers(1, side + 1))]


def _binary(rng: Rng) -> Drawn:
    channels = int(rng.integers(1, 65))
    return "binary", [_among(rng, "ADD", "MUL", "MAXIMUM"), *_image(rng, channels, 20), channels]


def _concat(rng: Rng) -> Drawn:
    parts = [int(n) for n in rng.integers(1, 40, 2)]
    return "concat", [*_image(rng, sum(parts), 20), *parts]


def _pad(rng: Rng) -> Drawn:
    channels = int(rng.integers(1, 65))
    return "padded", [*_image(rng, channels, 20), channels, *(int(n) for n in rng.integers(0, 3, 4))]


def _wide(rng: Rng) -> Drawn:
    maker, given = _among(rng, _conv, _depthwise, _dense, _pool, _binary)(rng)
    if maker == "binary":
        given[0] = "MUL" if given[0] == "MAXIMUM" else given[0]
    return "wide", [maker, *given]


_FAMILIES: list[tuple[Callable[[Rng], Drawn], int]] = [
    *[(_conv, 4), (_depthwise, 5), (_multiplied, 4), (_transpose, 4), (_dense, 1), (_pool, 3)],
    *[(_binary, 2), (_concat, 1), (_pad, 1), (_wide, 5)],
]
