"""The table of the options: a group stands above the options that belong to it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from buildtool.base import modes
from buildtool.options import parsers
from buildtool.options.parsers import Parser

MODEL_SUFFIXES = (".tflite", ".onnx", ".cfg")
BOARD_SUFFIXES = (".toml",)


class Group(enum.StrEnum):
    """What an option is about."""

    PLANNING = "planning"
    COUNTING = "ONNX and Darknet files"
    TARGET = "target"
    INPUT = "input"
    BUILT = "made earlier"
    DESK = "board on the desk"
    REPORT = "report"
    SPLIT = "split"
    OTHER = "other"


# In a request the options of these groups are under "options", all others are keys of the request.
NESTED = (Group.PLANNING, Group.COUNTING)


class Option(NamedTuple):
    """One option: `name` as in a request; `sentence`: what it does; `default` in words ("": there is none).

    `values`: of a mode; `strategies`: those that heed it; `flag`: it takes no value; `number`: it is a whole
    number; `many`: it may be given several times; `suffixes`: of files that it names (None: it names none);
    `folder`: it names a folder; `spelt`: its name on the command line, if that is another one.
    """

    name: str
    metavar: str
    sentence: str
    parse: Parser
    default: str = ""
    group: Group = Group.OTHER
    values: tuple[str, ...] = ()
    strategies: tuple[modes.Strategy, ...] = tuple(modes.Strategy)
    flag: bool = False
    number: bool = False
    many: bool = False
    suffixes: tuple[str, ...] | None = None
    folder: bool = False
    spelt: str = ""

    @property
    def help(self) -> str:
        """The sentence and the default."""
        return f"{self.sentence} (default: {self.default})" if self.default else self.sentence

    @property
    def flagged(self) -> str:
        """The name on the command line: --max-f."""
        return "--" + (self.spelt or self.name).replace("_", "-")


# Strategies that may repeat work.
LIMITED = (modes.Strategy.BEST, modes.Strategy.MSF_CNN, modes.Strategy.XCORE_STRIPS)
MOST_INPUTS = 1000
MOST_SEED = (1 << 31) - 1


Row = Callable[[str], Option]  # it is called with the sentence that says what the option does


def row(usage: str, parse: Parser, default: str = "", **more: Any) -> Row:
    """An option; `usage`: its name and its metavar."""
    name, _, metavar = usage.partition(" ")
    return lambda sentence: Option(name, metavar, sentence, parse, default, **more)


def number(usage: str, parse: Parser, default: str, **more: Any) -> Row:
    """An option that is a whole number."""
    return row(usage, parse, default, number=True, **more)


def file(usage: str, default: str = "", suffixes: tuple[str, ...] = ("",), **more: Any) -> Row:
    """An option that names a file."""
    return row(usage, parsers.location, default, suffixes=suffixes, **more)


def choice(usage: str, words: type[enum.StrEnum], default: str) -> Row:
    """An option that is one of an enumeration's values."""
    return row(usage, parsers.mode(words), default, values=tuple(map(str, words)))


def switch(name: str) -> Row:
    """An option that takes no value."""
    return row(name, parsers.flag, flag=True)


# Of data sets: which, how it becomes inputs, and how much of it goes through the firmware.
_DATA: tuple[Option, ...] = (
    file("data FILE.npz|DIR", "random values")(
        "A data set to run on: arrays (.npz), or a folder of images or .npy files, with a folder for each "
        "class where they have classes."
    ),
    file("labels FILE", "those in the .npz file; the folders of classes, by their names")(
        "The data set's labels (.npy, .npz, .txt or .csv); with a folder for each class, a .txt file of the "
        "classes' names in the order of the network's output."
    ),
    number("limit N", parsers.whole(1, parsers.MOST_SAMPLES), "all")(
        "At most so many inputs of the data set, chosen at random by the seed."
    ),
    number(
        "through_firmware N|all",
        parsers.samples,
        "all, where an hour is enough by an estimate; else what takes ten minutes",
    )("How many inputs of the data set go through the firmware; all of them go through the reference."),
    number(
        "sequence N|all",
        parsers.samples,
        "half of the random inputs; each input of a data set stands by itself",
    )("Of a network with state: how many inputs follow one another before the state is reset."),
    switch("reference_only")(
        "The data set goes through the reference alone: nothing is planned, built or run."
    ),
    choice("resize HOW", modes.Resize, "crop")(
        "How an image of another size comes to the input's: crop (covers it, cut on both sides), pad (lies "
        "within it, black beside), stretch, or exact (is refused)."
    ),
    row(
        "normalise RULE",
        parsers.normalise,
        "auto: the one of the three that the input's range is; for a split unit",
    )(
        "The real values of pixels: bytes (0 to 255), unit (0 to 1), signed (-1 to 1), or MEANS/DEVIATIONS "
        "of the values from 0 to 1, such as 0.485,0.456,0.406/0.229,0.224,0.225."
    ),
    row("scores OUTPUT", parsers.text, "the only one that has a value for each class")(
        "The output whose largest value is the class, of a network with several."
    ),
)
_TABLE: tuple[Group | Option, ...] = (
    Group.PLANNING,
    choice("strategy MODE", modes.Strategy, "best")(
        "Who decides how the network runs: best (the best plan within the limits), layerwise (one operator "
        "after the other), msf-cnn or xcore-strips (as these systems plan)."
    ),
    choice("objective MODE", modes.Objective, "cost")(
        "What to minimise: cost (the target's estimate) or ram (bytes of the arena)."
    ),
    row("ram BYTES", parsers.size, "the board's memory")("Upper limit for the arena, in bytes: 65536, 64K."),
    row("max_f F", parsers.work, "none; 2 for the front and for objective ram", strategies=LIMITED)(
        "Upper limit for the work, as a multiple of the network's own: 1.1 allows a tenth more."
    ),
    row("max_cost COST", parsers.limit, "none")(
        "Upper limit for the estimated cost, in the unit of the board's costs (cycles or instructions)."
    ),
    row("max_ms MS", parsers.limit, "none")(
        "Upper limit for the estimated time, in milliseconds: of a cost in cycles, at the board's clock."
    ),
    row("max_flash BYTES", parsers.size, "the board's memory")("Upper limit for the weight image, in bytes."),
    choice("in_place MODE", modes.InPlace, "rows")(
        "Which operators may write over their dying input: rows (those that work row by row), elementwise "
        "(those that work element by element) or none."
    ),
    choice("image MODE", modes.Image, "overwritable")(
        "What happens to the network's input: overwritable (its memory is used again), resident (it is still "
        "there after the invoke) or stream (it is delivered row by row and is never whole in RAM)."
    ),
    row(
        "segments LIST",
        parsers.text,
        "the best ones that are found",
        strategies=(modes.Strategy.XCORE_STRIPS,),
    )("The segments of xcore-strips: operators of the file and numbers of strips, such as 0-6x20,7-14x10."),
    choice("order MODE", modes.Order, "better; given where a network is only counted")(
        "The order of the operators: given (as the file has them), better (another one that a short search "
        "finds, in which less is alive, where that makes the better plan) or best (after a long search)."
    ),
    row("hand_off PIXELS", parsers.pixels, "1", strategies=(modes.Strategy.BEST,))(
        "The least number of pixels that go from operator to operator inside a group (more are tried, too), "
        "or row for whole rows only."
    ),
    Group.COUNTING,
    choice("weights MODE", modes.WeightsIn, "flash")(
        "Where the weights are: flash (they are not counted as memory) or load (they are in memory from "
        "their first to their last reader)."
    ),
    choice("operators MODE", modes.Counted, "separate")(
        "Which operators are counted: separate (all that the file has) or fused (batch normalisation and "
        "activation are part of the operator before them)."
    ),
    number("batch N", parsers.whole(1, parsers.MOST_BATCH), "the file's; 1 for Darknet")(
        "The number of images that are computed at a time."
    ),
    row("size HxW", parsers.sides, "the file's")("Rows and columns of the image."),
    Group.TARGET,
    row("toolchain NAME", parsers.text, "the board's first")("The compiler: clang or gcc."),
    switch("debug")(
        "Compiles for a debugger: -g and -Og in place of -O3, the arena and every region with a name."
    ),
    row("cmsis_nn PATH", parsers.text, "none", folder=True)(
        "Cortex-M: a checkout of CMSIS-NN, whose kernels are used where they give the reference's bytes."
    ),
    row(
        "formats FORMAT",
        parsers.list_of(parsers.mode(modes.Format)),
        "bin",
        spelt="format",
        values=tuple(map(str, modes.Format)),
        many=True,
    )(
        "A format of the files for flash, beside .elf and .map: bin, hex (Intel) or uf2; it may be given "
        "several times."
    ),
    file("sign KEY.pem")(
        "Also writes the firmware signed for MCUboot, with this private key; imgtool has to be installed."
    ),
    row("image_version VERSION", parsers.version, "0.0.0")(
        "The version in MCUboot's header: numbers such as 1.2.3 or 1.2.3+4."
    ),
    choice("requantise NAME", modes.Requantise, "exact")(
        "XS3: how sums become outputs of eight bits: exact (equal to the reference) or vpu16 (by 16-bit "
        "multipliers, within a bound that is told)."
    ),
    number("threads N", parsers.whole(1, modes.MOST_THREADS), "all that the board has")(
        "The threads that share the work of each kernel's call, at most as many as the board has."
    ),
    row("weights_in MEMORY", parsers.text, "as the board's file says")(
        "The board's memory that the weights are in; from one with a bandwidth they come into the arena."
    ),
    row("arena_in MEMORY[,MEMORY]", parsers.text, "as the board's file says")(
        "The board's memory that the arena is in; of two, buffers are spread over both."
    ),
    Group.INPUT,
    file("input FILE.npy", "random values")("One input to run on: quantised values, or floats."),
    number("inputs N", parsers.whole(1, MOST_INPUTS), "1")("The number of random inputs."),
    number("seed S", parsers.whole(0, MOST_SEED), "0")(
        "The seed of the random inputs, of random networks, and of what --limit chooses; of a split's "
        "weights, order, augmentation, calibration and chosen test images."
    ),
    *_DATA,
    Group.OTHER,
    row("plugin PLUGIN", parsers.text)(
        "The name of a target plugin, which the boards that it serves have as their family."
    ),
    Group.INPUT,
    number("cases N", parsers.whole(1, MOST_INPUTS), "4")("The number of random networks for each kernel."),
    Group.DESK,
    choice("on WHERE", modes.On, "emulator")(
        "Where test firmware runs: emulator (or this machine, as the board's file says) or board (on the "
        "desk: it is flashed, and answers over a wire)."
    ),
    row(
        "wire WIRE[:PORT]",
        parsers.wire,
        "serial where the board's file has [uart], else rtt; the only port that is there",
    )(
        "How a board on the desk answers: serial or rtt, and the port (serial:/dev/ttyACM0, "
        "rtt:127.0.0.1:9090), or semihosting, by files of its debugger's. In an emulator serial is its UART."
    ),
    switch("flashed")("The board holds the image already: it is not flashed."),
    row("tool NAME", parsers.text, "the first of the board's file that is installed")(
        "The program that flashes the board: openocd, pyocd, esptool or xflash."
    ),
    Group.OTHER,
    number("port PORT", parsers.whole(1024, 65535), "3333")(
        "The port of this machine at which the debugger finds the server."
    ),
    Group.REPORT,
    switch("tensors")("Compares every tensor, not the outputs alone."),
    choice("reference NAME", modes.Reference, "auto")(
        "What to compare with: litert (LiteRT's reference kernels), numpy (buildtool's own executor), or "
        "auto: LiteRT where it is installed and computes the network."
    ),
    switch("sanitize")("Builds with checks of addresses and of undefined behaviour (host)."),
    switch("compare")("Shows what msf-cnn and xcore-strips reach on the same network."),
    switch("peers")("Shows what msf-cnn and xcore-strips reach on the same network."),
    Group.OTHER,
    row("name NAME", parsers.identifier, "the model's own name")("The prefix of the network's C interface."),
    number("capacity BYTES", parsers.whole(1, 1 << 50), "the lowest placement")(
        "Stops at any placement within so many bytes."
    ),
    number("budget NODES", parsers.whole(1, 1 << 40), "some seconds' worth")(
        "Upper limit for the nodes that the search visits."
    ),
    Group.TARGET,
    file("board BOARD", suffixes=BOARD_SUFFIXES)(
        "A board of `buildtool boards`, or a .toml file that extends one."
    ),
    row(
        "boards BOARD",
        parsers.list_of(parsers.location),
        "every board",
        suffixes=BOARD_SUFFIXES,
        spelt="board",
        many=True,
    )("A board of `buildtool boards`, or a .toml file; it may be given several times."),
    Group.OTHER,
    file("model MODEL", suffixes=MODEL_SUFFIXES)("A .tflite or .onnx file, or a network of `buildtool zoo`."),
    Group.BUILT,
    file("elf ELF")("A linked image: the one to look at, or to run in place of one that is built for it."),
    file("map FILE", "NAME.map beside the image, if it is this image's")(
        "The map that the linker wrote with the image: it says which file and library each byte is of."
    ),
    file("plan FILE", "a plan is made")(
        "The plan to run by, which `buildtool plan --out` wrote; with an image, the emitted NAME.plan."
    ),
    Group.OTHER,
    file("file FILE.csv")(
        "An arena problem: a table of buffers with the columns id, lower, upper and size, and where they are "
        "needed alignment and offset."
    ),
    Group.SPLIT,
    row("network NETWORK", parsers.network, suffixes=(".keras",))(
        "A .keras file of Keras 3, or a network to train first: vgg16, resnet18."
    ),
    file("train_data DIR|FILE", spelt="data")(
        "What to train on: a folder or a .tar archive with a folder for each class, a folder with such an "
        "archive for training and one for the test, or a .npz file."
    ),
    row("flash BYTES", parsers.size, "the board's memory")(
        "Upper limit for what goes to flash, in bytes: the weight image, and code and constants of the "
        "firmware where its compiler's sizes are recorded."
    ),
    row("max_drop POINTS", parsers.points, "0.5")(
        "Points of accuracy that a block's split may lose against its own baseline."
    ),
    row("factors LIST", parsers.factors, "2,4,6,8")("Numbers of branches to try for each block."),
    choice("first MODE", modes.Reads, "slice")(
        "What a branch's first convolution reads: slice (its slice of the channels), full (the full map), or "
        "both (both are searched)."
    ),
    row("width W", parsers.width, "1")("Channels of vgg16 or resnet18, as a multiple of the published ones."),
    number("image_size PIXELS", parsers.whole(1, 4096), "32", spelt="size")(
        "Rows and columns of the images of vgg16 or resnet18."
    ),
    number("epochs N", parsers.whole(1, 100_000), "30")("Epochs that vgg16 or resnet18 is trained first."),
    number("fine_tune N", parsers.whole(1, 100_000), "5")("Epochs that each candidate is trained."),
    number("train_batch N", parsers.whole(1, parsers.MOST_BATCH), "128", spelt="batch")(
        "Images of a training step."
    ),
    row("rate RATE", parsers.limit, "0.1")("The largest learning rate of the first training."),
    row("fine_rate RATE", parsers.limit, "0.02")("The largest learning rate of candidates and baselines."),
    choice("optimiser NAME", modes.Optimiser, "sgd")(
        "What changes the weights: sgd (momentum of 0.9, Nesterov) or adam."
    ),
    row("weight_decay DECAY", parsers.share, "0.005")(
        "Weights fall by this times the learning rate each step; biases and batch norms do not."
    ),
    row("warm_up SHARE", parsers.share, "0.1")("Share of the steps in which the learning rate rises."),
    choice("flip WHICH", modes.Flip, "half")(
        "Images that are mirrored left to right: half of them, or none."
    ),
    row("shift SHARE", parsers.share, "0.125")("Images are moved by up to this share of their sides."),
    row("held_out SHARE", parsers.some, "0.1")(
        "Share of the training images that candidates are judged by, and not trained with."
    ),
    choice("comparisons WHICH", modes.Compared, "all")(
        "Networks that are trained for comparison: all (the original, a smaller split, one without fusion, a "
        "shared one), or none."
    ),
    number("images N", parsers.whole(1, 10_000_000), "1000")(
        "Test images that go through the int8 network and its firmware."
    ),
)


def _group_options() -> Iterator[Option]:
    """The options, each with its group."""
    group = Group.OTHER
    for one in _TABLE:
        if isinstance(one, Group):
            group = one
        else:
            yield one._replace(group=group)


OPTIONS = tuple(_group_options())
BY_NAME = {option.name: option for option in OPTIONS}
DATA = tuple(option.name for option in _DATA)
