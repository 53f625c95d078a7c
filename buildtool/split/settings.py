"""Reads the settings of a split from a request's plain values, and checks them before anything is loaded."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from buildtool.api.requests.kinds import Split
from buildtool.api.requests.parts import Values
from buildtool.base.errors import UsageError, suggest
from buildtool.base.modes import Compared, Flip, Optimiser, Reads
from buildtool.options.parsers import NETWORKS, Normalise, normalise
from buildtool.split.types import First

OUT = "split"
ORIGINAL, KERAS = WRITTEN = ("original.keras", "split.keras")  # networks below the output folder
_TRAINING_OPTIONS = ("width", "image_size", "epochs", "rate")  # options of networks that are trained first
_FIRSTS: dict[Reads, tuple[First, ...]] = {
    Reads.FULL: ("full",),
    Reads.SLICE: ("slice",),
    Reads.BOTH: ("slice", "full"),
}
# Fields of SplitSettings and Settings whose options have other names.
_OPTION_NAMES = {"size": "image_size", "fine_epochs": "fine_tune"}
_OPTION_NAMES |= {"batch": "train_batch", "validation": "held_out"}


@dataclass(frozen=True)
class Goals:
    """Upper limits. None: the board's whole memory, or no limit for the time."""

    ram: int | None = None  # bytes of the arena
    flash: int | None = None  # bytes of weights and code
    max_ms: float | None = None  # of one inference


@dataclass(frozen=True)
class Settings:
    """All settings that determine a training's result, besides the network and the data.

    The learning rate rises from 0 during the share `warm_up` of all steps. Then it falls to 0 as half a
    cosine. `sgd` has a Nesterov momentum of 0.9. In each step weights decay by `weight_decay` times the
    learning rate, except those of biases and batch normalisations (Loshchilov and Hutter, "Decoupled Weight
    Decay Regularization").
    """

    epochs: int = 30  # of a network that is not trained yet
    fine_epochs: int = 5  # of a candidate, and of the baseline that it is compared with
    batch: int = 128  # images in a step
    optimiser: Literal["sgd", "adam"] = "sgd"
    rate: float = 0.1  # the largest learning rate
    fine_rate: float = 0.02  # the largest learning rate of candidates and baselines
    warm_up: float = 0.1  # share of the steps
    weight_decay: float = 5e-3
    flip: bool = True  # half of the images are mirrored left to right
    shift: float = 0.125  # images are moved by up to this share of their sides; new pixels are black
    validation: float = 0.1  # share of the training images that candidates are judged by
    seed: int = 0  # of weights, order and augmentation
    normalise: str = "unit"  # pixels as real values: bytes, unit, signed, or MEANS/DEVIATIONS

    def pixels(self) -> Normalise:
        """Returns the rule that turns pixels into real values."""
        rule = normalise("normalise", self.normalise)
        if rule is None:
            hint = "bytes, unit, signed, or MEANS/DEVIATIONS"
            text = "the rule of a network that will be trained cannot be found in its file"
            raise UsageError(text, option="normalise", hint=hint)
        return rule

    def data(self) -> dict[str, Any]:
        """Returns all settings as plain values."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class SplitSettings:
    """What to split, for which board, within which limits, and how to train it."""

    network: str  # a .keras file, or a name of NETWORKS, to which `width` and `size` belong
    data: Path
    board: str
    goals: Goals = field(default_factory=Goals)
    max_drop: float = 0.5  # percentage points of accuracy
    factors: tuple[int, ...] = (2, 4, 6, 8)
    firsts: tuple[First, ...] = ("slice",)  # what a branch's first convolution reads; each is searched
    width: float = 1.0
    size: int = 32  # rows and columns
    settings: Settings = field(default_factory=Settings)
    images: int = 1000  # test images that go through the int8 network and the firmware
    compares: bool = True  # whether networks are trained for comparison
    out: Path = field(default_factory=lambda: Path(OUT))

    @property
    def is_named(self) -> bool:
        """Whether the network is one of NETWORKS. Such a network is trained before the search."""
        return self.network in NETWORKS


def read_settings(request: Mapping[str, object], out: str | Path = OUT) -> SplitSettings:
    """Reads a request of kind `split`. Raises UsageError for wrong values and values without effect."""
    if request.get("kind") != Split.kind:
        raise UsageError(f"a request of kind {request.get('kind')!r} is not a split", hint=f"'{Split.kind}'")
    values = Values(Split, request)
    network, folder, explicit = str(values.need("network")), Path(out), values.given
    if network not in NETWORKS:
        for name in _TRAINING_OPTIONS:
            if name in explicit:
                text = "it has no effect on a network that is given as a file"
                raise UsageError(text, option=name, hint=suggest(**{name: None}))
        if Path(network).resolve() in {(folder / name).resolve() for name in WRITTEN}:
            text = "a result would overwrite the network's file"
            raise UsageError(text, path=network, option="out", hint="name another folder")
    paths: list[str] = []
    for name in ("train_data", "board"):
        if not isinstance(path := values.need(name), str):
            raise UsageError("a split reads files of this machine", option=name, hint="give it a path")
        paths.append(path)
    result = SplitSettings(
        network,
        Path(paths[0]),
        paths[1],
        Goals(values.options.get("ram"), explicit.get("flash"), values.options.get("max_ms")),
        firsts=_FIRSTS[explicit.get("first", Reads.SLICE)],
        settings=Settings(**_read_fields(explicit, [one.name for one in dataclasses.fields(Settings)])),
        compares=explicit.get("comparisons", Compared.ALL) is Compared.ALL,
        out=folder,
        **_read_fields(explicit, ("max_drop", "factors", "width", "size", "images")),
    )
    result.settings.pixels()
    return result


def _read_fields(options: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Returns the named fields whose options are given, as plain values by field name."""
    fields: dict[str, Any] = {}
    for name in names:
        option = _OPTION_NAMES.get(name, name)
        if option not in options:
            continue
        value = options[option]
        if isinstance(value, Flip):
            value = value is Flip.HALF
        elif isinstance(value, Optimiser):
            value = value.value
        elif isinstance(value, Normalise):
            value = value.name
        fields[name] = "auto" if value is None else value  # only `normalise` can be None
    return fields
