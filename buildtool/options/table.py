"""The table of the options: a group stands above the options that belong to it."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any

from buildtool.base import modes
from buildtool.options import parsers
from buildtool.options.types import BOARD_SUFFIXES, MODEL_SUFFIXES, Group, Option, Parser

# Strategies that may repeat work.
LIMITED = (modes.Strategy.BEST, modes.Strategy.MSF_CNN, modes.Strategy.XCORE_STRIPS)
MOST_INPUTS = 1000
MOST_SEED = (1 << 31) - 1


def row(usage: str, sentence: str, parse: Parser, default: str = "", **more: Any) -> Option:
    """An option; `usage`: its name and its metavar."""
    name, _, metavar = usage.partition(" ")
    return Option(name, metavar, sentence, parse, default, **more)


def number(usage: str, sentence: str, parse: Parser, default: str, **more: Any) -> Option:
    """An option that is a whole number."""
    return row(usage, sentence, parse, default, number=True, **more)


def file(
    usage: str, sentence: str, default: str = "", suffixes: tuple[str, ...] = ("",), **more: Any
) -> Option:
    """An option that names a file."""
    return row(usage, sentence, parsers.location, default, suffixes=suffixes, **more)


def chosen(usage: str, sentence: str, words: type[enum.StrEnum], default: str) -> Option:
    """An option that is one of an enumeration's values."""
    return row(usage, sentence, parsers.mode(words), default, values=tuple(map(str, words)))


def switch(name: str, sentence: str) -> Option:
    """An option that takes no value."""
    return row(name, sentence, parsers.flag, flag=True)


# Of data sets: which, how it becomes inputs, and how much of it goes through the firmware.
_DATA: tuple[Option, ...] = (
    file(
        "data FILE.npz|DIR",
        "A data set to run on: arrays (.npz), or a folder of images or .npy files, with a folder for "
        "each class where they have classes.",
        "random values",
    ),
    file(
        "labels FILE",
        "The data set's labels (.npy, .npz, .txt or .csv); with a folder for each class, a .txt file of "
        "the classes' names in the order of the network's output.",
        "those in the .npz file; the folders of classes, by their names",
    ),
    number(
        "limit N",
        "At most so many inputs of the data set, chosen at random by the seed.",
        parsers.whole(1, parsers.MOST_SAMPLES),
        "all",
    ),
    number(
        "through_firmware N|all",
        "How many inputs of the data set go through the firmware; all of them go through the reference.",
        parsers.samples,
        "all, where an hour is enough by an estimate; else what takes ten minutes",
    ),
    number(
        "sequence N|all",
        "Of a network with state: how many inputs follow one another before the state is reset.",
        parsers.samples,
        "half of the random inputs; each input of a data set stands by itself",
    ),
    switch(
        "reference_only", "The data set goes through the reference alone: nothing is planned, built or run."
    ),
    chosen(
        "resize HOW",
        "How an image of another size comes to the input's: crop (covers it, cut on both sides), pad "
        "(lies within it, black beside), stretch, or exact (is refused).",
        modes.Resize,
        "crop",
    ),
    row(
        "normalise RULE",
        "The real values of pixels: bytes (0 to 255), unit (0 to 1), signed (-1 to 1), or "
        "MEANS/DEVIATIONS of the values from 0 to 1, such as 0.485,0.456,0.406/0.229,0.224,0.225.",
        parsers.normalise,
        "auto: the one of the three that the input's range is; for a split unit",
    ),
    row(
        "scores OUTPUT",
        "The output whose largest value is the class, of a network with several.",
        parsers.text,
        "the only one that has a value for each class",
    ),
)
_TABLE: tuple[Group | Option, ...] = (
    Group.PLANNING,
    chosen(
        "strategy MODE",
        "Who decides how the network runs: best (the best plan within the limits), layerwise (one "
        "operator after the other), msf-cnn or xcore-strips (as these systems plan).",
        modes.Strategy,
        "best",
    ),
    chosen(
        "objective MODE",
        "What to minimise: cost (the target's estimate) or ram (bytes of the arena).",
        modes.Objective,
        "cost",
    ),
    row("ram BYTES", "Upper limit for the arena, in bytes: 65536, 64K.", parsers.size, "the board's memory"),
    row(
        "max_f F",
        "Upper limit for the work, as a multiple of the network's own: 1.1 allows a tenth more.",
        parsers.work,
        "none; 2 for the front and for objective ram",
        strategies=LIMITED,
    ),
    row(
        "max_cost COST",
        "Upper limit for the estimated cost, in the unit of the board's costs (cycles or instructions).",
        parsers.limit,
        "none",
    ),
    row(
        "max_ms MS",
        "Upper limit for the estimated time, in milliseconds: of a cost in cycles, at the board's clock.",
        parsers.limit,
        "none",
    ),
    row("max_flash BYTES", "Upper limit for the weight image, in bytes.", parsers.size, "the board's memory"),
    chosen(
        "in_place MODE",
        "Which operators may write over their dying input: rows (those that work row by row), "
        "elementwise (those that work element by element) or none.",
        modes.InPlace,
        "rows",
    ),
    chosen(
        "image MODE",
        "What happens to the network's input: overwritable (its memory is used again), resident (it is "
        "still there after the invoke) or stream (it is delivered row by row and is never whole in RAM).",
        modes.Image,
        "overwritable",
    ),
    row(
        "segments LIST",
        "The segments of xcore-strips: operators of the file and numbers of strips, such as 0-6x20,7-14x10.",
        parsers.text,
        "the best ones that are found",
        strategies=(modes.Strategy.XCORE_STRIPS,),
    ),
    chosen(
        "order MODE",
        "The order of the operators: given (as the file has them), better (another one that a short "
        "search finds, in which less is alive, where that makes the better plan) or best (after a long "
        "search).",
        modes.Order,
        "better; given where a network is only counted",
    ),
    row(
        "hand_off PIXELS",
        "The least number of pixels that go from operator to operator inside a group (more are tried, "
        "too), or row for whole rows only.",
        parsers.pixels,
        "1",
        strategies=(modes.Strategy.BEST,),
    ),
    Group.COUNTING,
    chosen(
        "weights MODE",
        "Where the weights are: flash (they are not counted as memory) or load (they are in memory from "
        "their first to their last reader).",
        modes.WeightsIn,
        "flash",
    ),
    chosen(
        "operators MODE",
        "Which operators are counted: separate (all that the file has) or fused (batch normalisation and "
        "activation are part of the operator before them).",
        modes.Counted,
        "separate",
    ),
    number(
        "batch N",
        "The number of images that are computed at a time.",
        parsers.whole(1, parsers.MOST_BATCH),
        "the file's; 1 for Darknet",
    ),
    row("size HxW", "Rows and columns of the image.", parsers.sides, "the file's"),
    Group.TARGET,
    row("toolchain NAME", "The compiler: clang or gcc.", parsers.text, "the board's first"),
    switch(
        "debug",
        "Compiles for a debugger: -g and -Og in place of -O3, the arena and every region with a name.",
    ),
    row(
        "cmsis_nn PATH",
        "Cortex-M: a checkout of CMSIS-NN, whose kernels are used where they give the reference's bytes.",
        parsers.text,
        "none",
        folder=True,
    ),
    row(
        "formats FORMAT",
        "A format of the files for flash, beside .elf and .map: bin, hex (Intel) or uf2; it may be given "
        "several times.",
        parsers.listed(parsers.mode(modes.Format)),
        "bin",
        spelt="format",
        values=tuple(map(str, modes.Format)),
        many=True,
    ),
    file(
        "sign KEY.pem",
        "Also writes the firmware signed for MCUboot, with this private key; imgtool has to be installed.",
    ),
    row(
        "image_version VERSION",
        "The version in MCUboot's header: numbers such as 1.2.3 or 1.2.3+4.",
        parsers.version,
        "0.0.0",
    ),
    chosen(
        "requantise NAME",
        "XS3: how sums become outputs of eight bits: exact (equal to the reference) or vpu16 (by 16-bit "
        "multipliers, within a bound that is told).",
        modes.Requantise,
        "exact",
    ),
    number(
        "threads N",
        "The threads that share the work of each kernel's call, at most as many as the board has.",
        parsers.whole(1, modes.MOST_THREADS),
        "all that the board has",
    ),
    row(
        "weights_in MEMORY",
        "The board's memory that the weights are in; from one with a bandwidth they come into the arena.",
        parsers.text,
        "as the board's file says",
    ),
    row(
        "arena_in MEMORY[,MEMORY]",
        "The board's memory that the arena is in; of two, buffers are spread over both.",
        parsers.text,
        "as the board's file says",
    ),
    Group.INPUT,
    file("input FILE.npy", "One input to run on: quantised values, or floats.", "random values"),
    number("inputs N", "The number of random inputs.", parsers.whole(1, MOST_INPUTS), "1"),
    number(
        "seed S",
        "The seed of the random inputs, of random networks, and of what --limit chooses; of a split's "
        "weights, order, augmentation, calibration and chosen test images.",
        parsers.whole(0, MOST_SEED),
        "0",
    ),
    *_DATA,
    Group.OTHER,
    row(
        "plugin PLUGIN",
        "The name of a target plugin, which the boards that it serves have as their family.",
        parsers.text,
    ),
    Group.INPUT,
    number("cases N", "The number of random networks for each kernel.", parsers.whole(1, MOST_INPUTS), "4"),
    Group.DESK,
    chosen(
        "on WHERE",
        "Where test firmware runs: emulator (or this machine, as the board's file says) or board (on the "
        "desk: it is flashed, and answers over a wire).",
        modes.On,
        "emulator",
    ),
    row(
        "wire WIRE[:PORT]",
        "How a board on the desk answers: serial or rtt, and the port (serial:/dev/ttyACM0, "
        "rtt:127.0.0.1:9090), or semihosting, by files of its debugger's. In an emulator serial is its "
        "UART.",
        parsers.wire,
        "serial where the board's file has [uart], else rtt; the only port that is there",
    ),
    switch("flashed", "The board holds the image already: it is not flashed."),
    row(
        "tool NAME",
        "The program that flashes the board: openocd, pyocd, esptool or xflash.",
        parsers.text,
        "the first of the board's file that is installed",
    ),
    Group.OTHER,
    number(
        "port PORT",
        "The port of this machine at which the debugger finds the server.",
        parsers.whole(1024, 65535),
        "3333",
    ),
    Group.REPORT,
    switch("tensors", "Compares every tensor, not the outputs alone."),
    chosen(
        "reference NAME",
        "What to compare with: litert (LiteRT's reference kernels), numpy (buildtool's own executor), or "
        "auto: LiteRT where it is installed and computes the network.",
        modes.Reference,
        "auto",
    ),
    switch("sanitize", "Builds with checks of addresses and of undefined behaviour (host)."),
    switch("compare", "Shows what msf-cnn and xcore-strips reach on the same network."),
    switch("peers", "Shows what msf-cnn and xcore-strips reach on the same network."),
    Group.OTHER,
    row("name NAME", "The prefix of the network's C interface.", parsers.identifier, "the model's own name"),
    number(
        "capacity BYTES",
        "Stops at any placement within so many bytes.",
        parsers.whole(1, 1 << 50),
        "the lowest placement",
    ),
    number(
        "budget NODES",
        "Upper limit for the nodes that the search visits.",
        parsers.whole(1, 1 << 40),
        "some seconds' worth",
    ),
    Group.TARGET,
    file(
        "board BOARD",
        "A board of `buildtool boards`, or a .toml file that extends one.",
        suffixes=BOARD_SUFFIXES,
    ),
    row(
        "boards BOARD",
        "A board of `buildtool boards`, or a .toml file; it may be given several times.",
        parsers.listed(parsers.location),
        "every board",
        suffixes=BOARD_SUFFIXES,
        spelt="board",
        many=True,
    ),
    Group.OTHER,
    file("model MODEL", "A .tflite or .onnx file, or a network of `buildtool zoo`.", suffixes=MODEL_SUFFIXES),
    Group.BUILT,
    file("elf ELF", "A linked image: the one to look at, or to run in place of one that is built for it."),
    file(
        "map FILE",
        "The map that the linker wrote with the image: it says which file and library each byte is of.",
        "NAME.map beside the image, if it is this image's",
    ),
    file(
        "plan FILE",
        "The plan to run by, which `buildtool plan --out` wrote; with an image, the emitted NAME.plan.",
        "a plan is made",
    ),
    Group.OTHER,
    file(
        "file FILE.csv",
        "An arena problem: a table of buffers with the columns id, lower, upper and size, and where they "
        "are needed alignment and offset.",
    ),
    Group.SPLIT,
    row(
        "network NETWORK",
        "A .keras file of Keras 3, or a network to train first: vgg16, resnet18.",
        parsers.network,
        suffixes=(".keras",),
    ),
    file(
        "train_data DIR|FILE",
        "What to train on: a folder or a .tar archive with a folder for each class, a folder with such "
        "an archive for training and one for the test, or a .npz file.",
        spelt="data",
    ),
    row(
        "flash BYTES",
        "Upper limit for what goes to flash, in bytes: the weight image, and code and constants of the "
        "firmware where its compiler's sizes are recorded.",
        parsers.size,
        "the board's memory",
    ),
    row(
        "max_drop POINTS",
        "Points of accuracy that a block's split may lose against its own baseline.",
        parsers.points,
        "0.5",
    ),
    row("factors LIST", "Numbers of branches to try for each block.", parsers.factors, "2,4,6,8"),
    chosen(
        "first MODE",
        "What a branch's first convolution reads: slice (its slice of the channels), full (the full "
        "map), or both (both are searched).",
        modes.Reads,
        "slice",
    ),
    row("width W", "Channels of vgg16 or resnet18, as a multiple of the published ones.", parsers.width, "1"),
    number(
        "image_size PIXELS",
        "Rows and columns of the images of vgg16 or resnet18.",
        parsers.whole(1, 4096),
        "32",
        spelt="size",
    ),
    number("epochs N", "Epochs that vgg16 or resnet18 is trained first.", parsers.whole(1, 100_000), "30"),
    number("fine_tune N", "Epochs that each candidate is trained.", parsers.whole(1, 100_000), "5"),
    number(
        "train_batch N",
        "Images of a training step.",
        parsers.whole(1, parsers.MOST_BATCH),
        "128",
        spelt="batch",
    ),
    row("rate RATE", "The largest learning rate of the first training.", parsers.limit, "0.1"),
    row("fine_rate RATE", "The largest learning rate of candidates and baselines.", parsers.limit, "0.02"),
    chosen(
        "optimiser NAME",
        "What changes the weights: sgd (momentum of 0.9, Nesterov) or adam.",
        modes.Optimiser,
        "sgd",
    ),
    row(
        "weight_decay DECAY",
        "Weights fall by this times the learning rate each step; biases and batch norms do not.",
        parsers.share,
        "0.005",
    ),
    row("warm_up SHARE", "Share of the steps in which the learning rate rises.", parsers.share, "0.1"),
    chosen(
        "flip WHICH", "Images that are mirrored left to right: half of them, or none.", modes.Flip, "half"
    ),
    row("shift SHARE", "Images are moved by up to this share of their sides.", parsers.share, "0.125"),
    row(
        "held_out SHARE",
        "Share of the training images that candidates are judged by, and not trained with.",
        parsers.some,
        "0.1",
    ),
    chosen(
        "comparisons WHICH",
        "Networks that are trained for comparison: all (the original, a smaller split, one without "
        "fusion, a shared one), or none.",
        modes.Compared,
        "all",
    ),
    number(
        "images N",
        "Test images that go through the int8 network and its firmware.",
        parsers.whole(1, 10_000_000),
        "1000",
    ),
)


def _grouped() -> Iterator[Option]:
    """The options, each with its group."""
    group = Group.OTHER
    for one in _TABLE:
        if isinstance(one, Group):
            group = one
        else:
            yield one._replace(group=group)


OPTIONS = tuple(_grouped())
BY_NAME = {option.name: option for option in OPTIONS}
DATA = tuple(option.name for option in _DATA)
