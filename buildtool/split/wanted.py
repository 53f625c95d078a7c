"""What a split is asked for: a request's plain values, checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from buildtool.api.requests.parts import Values
from buildtool.api.requests.split import Split
from buildtool.base.errors import UsageError, suggest
from buildtool.base.modes import Compared, Flip, Reads
from buildtool.options.pixels import Normalise
from buildtool.options.splitting import NETWORKS
from buildtool.split.pricing import Goals
from buildtool.split.search import FACTORS, MAX_DROP
from buildtool.split.settings import Settings
from buildtool.split.types import First

OUT = "split"
ORIGINAL, KERAS = WRITTEN = ("original.keras", "split.keras")  # networks below the output folder
IMAGES = 1000  # test images that go through the int8 network and the firmware
_NAMED_ALONE = ("width", "image_size", "epochs", "rate")  # options of networks that are trained first
_FIRSTS: dict[Reads, tuple[First, ...]] = {
    Reads.FULL: ("full",),
    Reads.SLICE: ("slice",),
    Reads.BOTH: ("slice", "full"),
}
# The settings of training by their options, where these have other names.
_SETTINGS = {
    "epochs": "epochs",
    "fine_tune": "fine_epochs",
    "train_batch": "batch",
    "rate": "rate",
    "fine_rate": "fine_rate",
    "warm_up": "warm_up",
    "weight_decay": "weight_decay",
    "shift": "shift",
    "held_out": "validation",
    "seed": "seed",
}


@dataclass(frozen=True)
class Wanted:
    """What to split, for which board, within which limits, and how it is trained.

    `network`: a .keras file, or a name of NETWORKS, to which `width` and `size` (rows, columns) belong.
    `firsts`: what a branch's first convolution reads; each is searched. `images`: test images that go through
    the int8 network and the firmware. `max_drop` is in points. `compares`: whether networks are trained for
    comparison.
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
    compares: bool = True
    out: Path = field(default_factory=lambda: Path(OUT))

    @property
    def is_named(self) -> bool:
        """Whether the network is one that is known by its name, and is trained here."""
        return self.network in NETWORKS


def wanted(request: Mapping[str, object], out: str | Path = OUT) -> Wanted:
    """What a request of kind `split` says; UsageError for values that cannot be or have no effect."""
    if request.get("kind") != Split.kind:
        raise UsageError(f"a request of kind {request.get('kind')!r} is no split", hint=f"'{Split.kind}'")
    values = Values(Split, request)
    network, folder = str(values.need("network")), Path(out)
    if network not in NETWORKS:
        _refuse_training(values)
        if Path(network).resolve() in {(folder / name).resolve() for name in WRITTEN}:
            text = "the network lies where a result will be written"
            raise UsageError(text, path=network, option="out", hint="name another folder")
    options = values.options
    return Wanted(
        network,
        Path(_named(values, "train_data")),
        _named(values, "board"),
        Goals(options.get("ram"), values.get("flash", None), options.get("max_ms")),
        values.get("max_drop", MAX_DROP),
        values.get("factors", FACTORS),
        _FIRSTS[values.get("first", Reads.SLICE)],
        values.get("width", 1.0),
        values.get("image_size", 32),
        _settings(values),
        values.get("images", IMAGES),
        values.get("comparisons", Compared.ALL) is Compared.ALL,
        folder,
    )


def _refuse_training(values: Values) -> None:
    """UsageError for an option of a first training, where the network is trained already."""
    for name in _NAMED_ALONE:
        if name in values.given:
            text = "it has no effect on a network that is given as a file"
            raise UsageError(text, option=name, hint=suggest(**{name: None}))


def _named(values: Values, name: str) -> str:
    """A file or folder of this machine, or a known name."""
    found = values.need(name)
    if not isinstance(found, str):
        raise UsageError("a split reads files of this machine", option=name, hint="give it a path")
    return found


def _settings(values: Values) -> Settings:
    given: dict[str, Any] = {
        setting: values.given[name] for name, setting in _SETTINGS.items() if name in values.given
    }
    if "optimiser" in values.given:
        given["optimiser"] = values.given["optimiser"].value
    if "flip" in values.given:
        given["flip"] = values.given["flip"] is Flip.HALF
    if "normalise" in values.given:
        rule: Normalise | None = values.given["normalise"]
        given["normalise"] = "auto" if rule is None else rule.name
    return Settings(**given)
