"""The options of `split` alone: its network and data, the search, and how networks are trained."""

from __future__ import annotations

from typing import Any

from buildtool.base.errors import UsageError
from buildtool.base.modes import Compared, Flip, Optimiser, Reads
from buildtool.options.parsers import (
    MOST_BATCH,
    chosen,
    limit,
    location,
    real,
    refuse,
    size,
    text,
    whole,
)
from buildtool.options.types import Group, Option, Parser

NETWORKS = ("vgg16", "resnet18")  # that are known by name, and trained first
MOST_FACTOR = 64
MOST_WIDTH = 16.0
_MOST_SIZE = 4096  # rows and columns
_MOST_EPOCHS = 100_000
_MOST_IMAGES = 10_000_000


def network(name: str, value: object) -> str:
    """A .keras file, or a network's name."""
    words = text(name, value)
    if words not in NETWORKS and not words.lower().endswith(".keras"):
        hint = f"a .keras file, which Keras 3 saves, or one of {', '.join(NETWORKS)}"
        raise UsageError(f"'{words}' is no network that can be split", option=name, hint=hint)
    return words


def points(name: str, value: object) -> float:
    """Points of accuracy, 0 or more."""
    found = real(value)
    if not 0 <= found <= 100:
        raise refuse(name, value, "a number of points from 0 to 100, such as 0.5")
    return found


def factors(name: str, value: object) -> tuple[int, ...]:
    """Rising whole numbers above 1: as a list, or as text with commas between them."""
    words: Any = value.split(",") if isinstance(value, str) else value
    found: tuple[int, ...] = ()
    if isinstance(words, list | tuple) and 0 < len(words) <= MOST_FACTOR:
        found = tuple(_number(word) for word in words)
    if not found or min(found) < 2 or max(found) > MOST_FACTOR or list(found) != sorted(set(found)):
        raise refuse(name, value, f"a list of rising numbers from 2 to {MOST_FACTOR}, such as 2,4,6,8")
    return found


def _number(word: object) -> int:
    """A whole number, or text that is a short one; 0 for anything else."""
    if isinstance(word, int) and not isinstance(word, bool):
        return word
    good = isinstance(word, str) and word.isascii() and word.isdecimal() and len(word) < 4
    return int(str(word)) if good else 0


def width(name: str, value: object) -> float:
    """A multiple of published channels."""
    found = limit(name, value)
    if found > MOST_WIDTH:
        raise refuse(name, value, f"a multiple of the published channels up to {MOST_WIDTH:g}")
    return found


def share(name: str, value: object) -> float:
    """A share, from 0 to below 1."""
    found = real(value)
    if not 0 <= found < 1:
        raise refuse(name, value, "a share from 0 to below 1, such as 0.1")
    return found


def some(name: str, value: object) -> float:
    """A share above 0 and below 1."""
    found = share(name, value)
    if not found:
        raise refuse(name, value, "a share above 0 and below 1, such as 0.1")
    return found


def _own(name: str, metavar: str, sentence: str, parse: Parser, default: str = "", **more: Any) -> Option:
    return Option(name, metavar, sentence, parse, Group.SPLIT, default, **more)


SPLITTING: tuple[Option, ...] = (
    _own(
        "network",
        "NETWORK",
        "A .keras file of Keras 3, or a network to train first: vgg16, resnet18.",
        network,
        suffixes=(".keras",),
    ),
    _own(
        "train_data",
        "DIR|FILE",
        "What to train on: a folder or a .tar archive with a folder for each class, a folder with such an "
        "archive for training and one for the test, or a .npz file.",
        location,
        suffixes=("",),
        spelt="data",
    ),
    _own(
        "flash",
        "BYTES",
        "Upper limit for what goes to flash, in bytes: the weight image, and code and constants of the "
        "firmware where its compiler's sizes are recorded.",
        size,
        "the board's memory",
    ),
    _own(
        "max_drop",
        "POINTS",
        "Points of accuracy that a block's split may lose against its own baseline.",
        points,
        "0.5",
    ),
    _own("factors", "LIST", "Numbers of branches to try for each block.", factors, "2,4,6,8"),
    chosen(
        "first",
        "MODE",
        "What a branch's first convolution reads: slice (its slice of the channels), full (the full map), or "
        "both (both are searched).",
        Reads,
        Group.SPLIT,
        "slice",
    ),
    _own(
        "width",
        "W",
        "Channels of vgg16 or resnet18, as a multiple of the published ones.",
        width,
        "1",
    ),
    _own(
        "image_size",
        "PIXELS",
        "Rows and columns of the images of vgg16 or resnet18.",
        whole(1, _MOST_SIZE),
        "32",
        number=True,
        spelt="size",
    ),
    _own(
        "epochs",
        "N",
        "Epochs that vgg16 or resnet18 is trained first.",
        whole(1, _MOST_EPOCHS),
        "30",
        number=True,
    ),
    _own(
        "fine_tune",
        "N",
        "Epochs that each candidate is trained.",
        whole(1, _MOST_EPOCHS),
        "5",
        number=True,
    ),
    _own(
        "train_batch",
        "N",
        "Images of a training step.",
        whole(1, MOST_BATCH),
        "128",
        number=True,
        spelt="batch",
    ),
    _own("rate", "RATE", "The largest learning rate of the first training.", limit, "0.1"),
    _own("fine_rate", "RATE", "The largest learning rate of candidates and baselines.", limit, "0.02"),
    chosen(
        "optimiser",
        "NAME",
        "What changes the weights: sgd (momentum of 0.9, Nesterov) or adam.",
        Optimiser,
        Group.SPLIT,
        "sgd",
    ),
    _own(
        "weight_decay",
        "DECAY",
        "Weights fall by this times the learning rate each step; biases and batch norms do not.",
        share,
        "0.005",
    ),
    _own("warm_up", "SHARE", "Share of the steps in which the learning rate rises.", share, "0.1"),
    chosen(
        "flip",
        "WHICH",
        "Images that are mirrored left to right: half of them, or none.",
        Flip,
        Group.SPLIT,
        "half",
    ),
    _own("shift", "SHARE", "Images are moved by up to this share of their sides.", share, "0.125"),
    _own(
        "held_out",
        "SHARE",
        "Share of the training images that candidates are judged by, and not trained with.",
        some,
        "0.1",
    ),
    chosen(
        "comparisons",
        "WHICH",
        "Networks that are trained for comparison: all (the original, a smaller split, one without fusion, a "
        "shared one), or none.",
        Compared,
        Group.SPLIT,
        "all",
    ),
    _own(
        "images",
        "N",
        "Test images that go through the int8 network and its firmware.",
        whole(1, _MOST_IMAGES),
        "1000",
        number=True,
    ),
)
