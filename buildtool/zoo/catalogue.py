"""The names, descriptions and options of the zoo's networks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from buildtool.base.errors import UsageError, did_you_mean

Value = int | Fraction


@dataclass(frozen=True)
class Option:
    """A number with which a network of the zoo can be built, from `low` to `high`, both inclusive."""

    name: str
    default: Value
    low: Value
    high: Value
    about: str

    def read(self, network: str, number: object) -> Value:
        """Parses a number or its decimal text. Raises UsageError unless it is from `low` to `high`."""
        text = str(number).strip()
        whole = isinstance(self.default, int)
        if not re.fullmatch(r"\d{1,9}" if whole else r"\d{1,4}(\.\d{1,6})?", text):
            kind = "a whole number" if whole else "a decimal number"
            raise UsageError(f"{network}: {self.name}={text}: expected {kind}", hint=self.help)
        value: Value = int(text) if whole else Fraction(text)
        if not self.low <= value <= self.high:
            raise UsageError(f"{network}: {self.name}={text} is out of range", hint=self.help)
        return value

    @property
    def help(self) -> str:
        """One line with the option's meaning, range and default."""
        low, high, default = (plain(v) for v in (self.low, self.high, self.default))
        return f"{self.name}: {self.about}, {low} to {high}, default {default}"


@dataclass(frozen=True)
class Network:
    """An entry of the zoo: what the network is, and its options."""

    about: str
    options: tuple[Option, ...] = ()


@dataclass(frozen=True)
class Choice:
    """A network with the values of all its options, including the seed.

    `spelling` is its canonical text, which leaves out options with default values.
    """

    name: str
    values: dict[str, Value]
    spelling: str

    @property
    def slug(self) -> str:
        """The spelling as an identifier: letters, digits and underscores only."""
        return re.sub(r"\W", "_", self.spelling.replace("=", ""))


def plain(value: Value) -> str:
    """Returns a number as decimal text without needless digits: "96", "0.35", "1.0"."""
    return str(value) if isinstance(value, int) else repr(float(value))


_SEED = Option("seed", 0, 0, 999_999_999, "another set of weights")
_ALPHA = Option("alpha", Fraction(1), Fraction(1, 20), Fraction(2), "width multiplier")
_CLASSES = Option("classes", 1000, 2, 10_000, "outputs")


def _size(default: int) -> Option:
    return Option("size", default, 32, 320, "rows and columns of the image")


_NETWORKS = {
    "autoencoder": Network("dense autoencoder, 640 features, ten layers (MLPerf Tiny anomaly detection)"),
    "densenet": Network("DenseNet-BC, 40 layers of growth 12, 32x32x3, 10 classes"),
    "ds_cnn": Network("DS-CNN, 49x10x1, 12 classes (MLPerf Tiny keyword spotting)"),
    "magic_wand": Network("gestures, 128x3x1 accelerations, 4 classes (TensorFlow Lite Micro's magic wand)"),
    "mbv2_w035_144": Network("MobileNet V2 0.35, 144x144x3, 1000 classes (as released with MCUNet)"),
    "mcunet_320k": Network("MCUNet for 320 KB of RAM and 1 MB of flash, 176x176x3, 1000 classes"),
    "mcunet_vww5": Network("MCUNet for visual wake words at 5 frames a second, 80x80x3, 2 classes"),
    "mobilenetv1_025_96": Network("MobileNet V1 0.25, 96x96x3, 2 classes (MLPerf Tiny visual wake words)"),
    "mobilenetv2": Network(
        "MobileNet V2 as in Keras, by default 160x160x3 and 1000 classes",
        (_size(160), _ALPHA, _CLASSES),
    ),
    "mobilenetv3_small": Network(
        "MobileNet V3 small, by default 224x224x3 and 1000 classes", (_size(224), _CLASSES)
    ),
    "resnet8": Network("ResNet8, 32x32x3, 10 classes (MLPerf Tiny image classification)"),
    "squeezenet": Network("SqueezeNet v1.1, by default 224x224x3 and 1000 classes", (_size(224), _CLASSES)),
}


def names() -> list[str]:
    """Returns the networks' names, sorted."""
    return sorted(_NETWORKS)


def options(name: str) -> tuple[Option, ...]:
    """Returns the options of a network. Every network has a `seed`."""
    return (*_entry(name).options, _SEED)


def describe(name: str) -> str:
    """Returns a line that describes the network, then a line for each of its options."""
    base = choose(name).name
    lines = (f"  {option.help}" for option in options(base))
    return "\n".join((f"{base}: {_NETWORKS[base].about}", *lines))


def choose(name: str, **given: object) -> Choice:
    """Returns the network that `name` ("network:option=value,...") and the options in `given` describe.

    Raises UsageError for unknown names and options, values out of range, and options that are given twice.
    """
    base, _, text = name.partition(":")
    base = base.strip()
    by_name = {option.name: option for option in options(base)}
    if ":" in name:
        pairs = _parse_pairs(base, text)
        for word in pairs.keys() & given.keys():
            raise UsageError(
                f"{base}: option '{word}' is given twice, in the name and separately",
                hint="leave one of them out",
            )
        given = pairs | given
    for word in given:
        if word not in by_name:
            raise UsageError(f"{base} has no option '{word}'", hint=did_you_mean(word, by_name))
    values = {key: option.default for key, option in by_name.items()}
    values |= {key: by_name[key].read(base, value) for key, value in given.items()}
    changed = [f"{key}={plain(v)}" for key, v in values.items() if v != by_name[key].default]
    spelling = f"{base}:{','.join(changed)}" if changed else base
    return Choice(base, values, spelling)


def _entry(name: str) -> Network:
    if name not in _NETWORKS:
        raise UsageError(f"no network '{name}' in the zoo", hint=did_you_mean(name, _NETWORKS))
    return _NETWORKS[name]


def _parse_pairs(base: str, text: str) -> dict[str, object]:
    """Parses options such as "a=1,b=2"."""
    pairs: dict[str, object] = {}
    for part in text.split(","):
        word, equals, value = (piece.strip() for piece in part.partition("="))
        if not (word and equals and value):
            hint = f"write options as {base}:seed=1, several with commas between them"
            raise UsageError(f"{base}: '{part}' is not option=value", hint=hint)
        if word in pairs:
            raise UsageError(f"{base}: option '{word}' is given twice", hint="leave one of them out")
        pairs[word] = value
    return pairs
