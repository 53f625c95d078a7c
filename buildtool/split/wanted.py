"""What a split is asked for: the command line's words, checked before anything is loaded."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from buildtool.errors import UsageError
from buildtool.options import parse
from buildtool.options.parsers import limit, refuse, size, whole
from buildtool.split.pricing import Goals
from buildtool.split.search import FACTORS, MAX_DROP
from buildtool.split.settings import Settings
from buildtool.split.types import First

NAMES = ("vgg16", "resnet18")
OUT = "split"
ORIGINAL, KERAS = WRITTEN = ("original.keras", "split.keras")  # networks below the output folder
IMAGES = 1000  # test images that go through the int8 network and the firmware
MOST_FACTOR = 64
_MOST_EPOCHS = 100_000
_FIRSTS: dict[str, tuple[First, ...]] = {"full": ("full",), "slice": ("slice",), "both": ("slice", "full")}


@dataclass(frozen=True)
class Wanted:
    """What to split, for which board, within which limits, and how it is trained.

    `network`: a .keras file, or a name of NAMES, to which `width` and `size` (rows, columns) belong.
    `firsts`: what a branch's first convolution reads; each is searched. `images`: test images that go through
    the int8 network and the firmware. `max_drop` is in points.
    """

    network: str
    data: Path
    board: str
    goals: Goals = field(default_factory=Goals)
    max_drop: float = MAX_DROP
    factors: tuple[int, ...] = FACTORS
    firsts: tuple[First, ...] = ("slice",)
    width: float = 1.0
    size: int = 32
    settings: Settings = field(default_factory=Settings)
    images: int = IMAGES
    out: Path = field(default_factory=lambda: Path(OUT))

    @property
    def is_named(self) -> bool:
        """Whether the network is one that is known by its name, and is trained here."""
        return self.network in NAMES


def wanted(args: argparse.Namespace) -> Wanted:
    """The command line's values; UsageError for one that cannot be, and for those that have no effect."""
    network = str(args.network)
    if network not in NAMES and not network.lower().endswith(".keras"):
        hint = f"a .keras file, which Keras 3 saves, or one of {', '.join(NAMES)}"
        raise UsageError(f"'{network}' is no network that can be split", hint=hint)
    for name in ("width", "size", "epochs", "rate"):
        if network not in NAMES and getattr(args, name) is not None:
            text = "it has no effect on a network that is given as a file"
            raise UsageError(text, option=name, hint=f"leave --{name} out")
    out = Path(args.out or OUT)
    if Path(network).resolve() in {(out / name).resolve() for name in WRITTEN}:
        text = "the network lies where a result will be written"
        raise UsageError(text, path=network, option="out", hint="name another folder")
    return Wanted(
        network,
        Path(args.data),
        str(args.board),
        _goals(args),
        _given(args.max_drop, MAX_DROP, _points, "max_drop"),
        _given(args.factors, FACTORS, _factors, "factors"),
        _FIRSTS[args.first or "slice"],
        _given(args.width, 1.0, limit, "width"),
        _given(args.size, 32, _whole(1, 4096), "size"),
        _settings(args),
        _given(args.images, IMAGES, _whole(1, 10_000_000), "images"),
        out,
    )


def _goals(args: argparse.Namespace) -> Goals:
    return Goals(
        _given(args.ram, None, parse, "ram"),
        _given(args.flash, None, size, "flash"),
        _given(args.max_ms, None, parse, "max_ms"),
    )


def _settings(args: argparse.Namespace) -> Settings:
    default = Settings()
    return Settings(
        epochs=_given(args.epochs, default.epochs, _whole(1, _MOST_EPOCHS), "epochs"),
        fine_epochs=_given(args.fine_tune, default.fine_epochs, _whole(1, _MOST_EPOCHS), "fine_tune"),
        batch=_given(args.batch, default.batch, _whole(1, 65536), "batch"),
        rate=_given(args.rate, default.rate, limit, "rate"),
        fine_rate=_given(args.fine_rate, default.fine_rate, limit, "fine_rate"),
        seed=_given(args.seed, default.seed, _whole(0, (1 << 31) - 1), "seed"),
        normalise=args.normalise or default.normalise,
    )


def _given(text: str | None, default: Any, parser: Any, name: str) -> Any:
    """The value of an option, or its default where it is not given."""
    return default if text is None else parser(name, text)


def _whole(least: int, most: int) -> Any:
    """Text that is a whole number from `least` to `most`."""
    check = whole(least, most)

    def parsed(name: str, text: str) -> Any:
        return check(name, int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else text)

    return parsed


def _points(name: str, text: str) -> float:
    """Points of accuracy, 0 or more."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 100:
        raise refuse(name, text, "a number of points from 0 to 100, such as 0.5")
    return found


def _factors(name: str, text: str) -> tuple[int, ...]:
    """Rising whole numbers above 1, with commas between them."""
    words = text.split(",")
    good = all(word.isascii() and word.isdecimal() and len(word) < 4 for word in words)
    found = tuple(int(word) for word in words) if good else ()
    if not found or min(found) < 2 or max(found) > MOST_FACTOR or list(found) != sorted(set(found)):
        raise refuse(name, text, f"a list of rising numbers from 2 to {MOST_FACTOR}, such as 2,4,6,8")
    return found
