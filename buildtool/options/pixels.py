"""How pixels become real values: `bytes`, `unit`, `signed`, or means and deviations."""

from __future__ import annotations

from dataclasses import dataclass

from buildtool.base.errors import UsageError
from buildtool.options.parsers import refuse, text

WANTED = "auto, bytes, unit, signed, or MEANS/DEVIATIONS such as 0.485,0.456,0.406/0.229,0.224,0.225"
MOST_CHANNELS = 4


@dataclass(frozen=True)
class Normalise:
    """The real value of a pixel p from 0 to 255: (p / `divisor` - mean) / deviation, channel by channel.

    One mean and deviation are those of every channel. `name` as it is spelt.
    """

    name: str
    divisor: float
    means: tuple[float, ...] = (0.0,)
    deviations: tuple[float, ...] = (1.0,)

    @property
    def ends(self) -> tuple[float, float]:
        """The real values of the pixels 0 and 255, of the first channel."""
        mean, deviation = self.means[0], self.deviations[0]
        return (0 - mean) / deviation, (255 / self.divisor - mean) / deviation


NAMED = {
    "bytes": Normalise("bytes", 1.0),  # 0 to 255
    "unit": Normalise("unit", 255.0),  # 0 to 1
    "signed": Normalise("signed", 127.5, (1.0,)),  # -1 to 1
}


def normalise(name: str, value: object) -> Normalise | None:
    """The rule that a text says; None for `auto`."""
    words = text(name, value)
    if words == "auto":
        return None
    if words in NAMED:
        return NAMED[words]
    halves = [_numbers(half) for half in words.split("/")]
    if len(halves) != 2 or not all(halves) or len(halves[0]) != len(halves[1]):
        raise refuse(name, value, WANTED)
    means, deviations = halves
    if len(means) > MOST_CHANNELS or min(deviations) <= 0:
        text_ = "a deviation is above 0, and there is one for each mean, at most one a channel"
        raise UsageError(text_, option=name, hint=WANTED)
    return Normalise(words, 255.0, means, deviations)


def _numbers(words: str) -> tuple[float, ...]:
    """Numbers with commas between them; () where one of them is none."""
    try:
        found = tuple(float(word) for word in words.split(","))
    except ValueError:
        return ()
    return found if all(abs(number) < 1e6 for number in found) else ()  # nor is NaN
