"""The options of data sets: which, how it becomes inputs, and how much of it goes through the firmware."""

from __future__ import annotations

from buildtool.base.modes import Resize
from buildtool.options.parsers import chosen, location, refuse, switch, text, whole
from buildtool.options.pixels import normalise
from buildtool.options.types import Group, Option

MOST_SAMPLES = 100_000_000  # inputs of a data set


def samples(name: str, value: object) -> int:
    """A number of inputs, or "all"."""
    if value == "all":
        return MOST_SAMPLES
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_SAMPLES:
        raise refuse(name, value, "a number of inputs above 0, or all")
    return value


DATA: tuple[Option, ...] = (
    Option(
        "data",
        "FILE.npz|DIR",
        "A data set to run on: arrays (.npz), or a folder of images or .npy files, with a folder for each "
        "class where they have classes.",
        location,
        Group.INPUT,
        default="random values",
        suffixes=("",),
    ),
    Option(
        "labels",
        "FILE",
        "The data set's labels (.npy, .npz, .txt or .csv); with a folder for each class, a .txt file of the "
        "classes' names in the order of the network's output.",
        location,
        Group.INPUT,
        default="those in the .npz file; the folders of classes, by their names",
        suffixes=("",),
    ),
    Option(
        "limit",
        "N",
        "At most so many inputs of the data set, chosen at random by the seed.",
        whole(1, MOST_SAMPLES),
        Group.INPUT,
        default="all",
        number=True,
    ),
    Option(
        "through_firmware",
        "N|all",
        "How many inputs of the data set go through the firmware; all of them go through the reference.",
        samples,
        Group.INPUT,
        default="all, where an hour is enough by an estimate; else what takes ten minutes",
        number=True,
    ),
    Option(
        "sequence",
        "N|all",
        "Of a network with state: how many inputs follow one another before the state is reset.",
        samples,
        Group.INPUT,
        default="half of the random inputs; each input of a data set stands by itself",
        number=True,
    ),
    switch(
        "reference_only",
        "The data set goes through the reference alone: nothing is planned, built or run.",
        Group.INPUT,
    ),
    chosen(
        "resize",
        "HOW",
        "How an image of another size comes to the input's: crop (covers it, cut on both sides), pad (lies "
        "within it, black beside), stretch, or exact (is refused).",
        Resize,
        Group.INPUT,
        "crop",
    ),
    Option(
        "normalise",
        "RULE",
        "The real values of pixels: bytes (0 to 255), unit (0 to 1), signed (-1 to 1), or "
        "MEANS/DEVIATIONS of the values from 0 to 1, such as 0.485,0.456,0.406/0.229,0.224,0.225.",
        normalise,
        Group.INPUT,
        default="auto: the one of the three that the input's range is; for a split unit",
    ),
    Option(
        "scores",
        "OUTPUT",
        "The output whose largest value is the class, of a network with several.",
        text,
        Group.INPUT,
        default="the only one that has a value for each class",
    ),
)
