"""The table of options. In `_TABLE` a group stands before the options that belong to it."""

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
    FIELD = "checks in the field"
    INPUT = "input"
    BUILT = "existing files"
    DESK = "attached board"
    REPORT = "report"
    SPLIT = "split"
    QUANTISING = "quantising"
    OTHER = "other"


# In a request the options of these groups are under "options". All others are keys of the request.
NESTED = (Group.PLANNING, Group.COUNTING)


class Option(NamedTuple):
    """One option.

    - `name`: its key in a request.
    - `metavar`: what stands for its value in help texts, such as BYTES.
    - `sentence`: what it does.
    - `parse`: the function that parses and checks its value.
    - `default`: the default value in words ("": there is nothing to say).
    - `group`: the subject under which pages list it.
    - `values`: the words that it takes, if it takes only some words.
    - `strategies`: the strategies with which it has an effect.
    - `flag`: whether it takes no value.
    - `number`: whether it is a whole number.
    - `many`: whether it may be given several times.
    - `suffixes`: the suffixes of the files that it names (None: it names no file).
    - `folder`: whether it names a folder.
    - `spelt`: its name on the command line ("": `name`).
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
        """The option's help text: the sentence, then the default."""
        return f"{self.sentence} (default: {self.default})" if self.default else self.sentence

    @property
    def flagged(self) -> str:
        """The option's name on the command line, such as --max-f."""
        return "--" + (self.spelt or self.name).replace("_", "-")


# Strategies that may repeat work.
LIMITED = (modes.Strategy.BEST, modes.Strategy.MSF_CNN, modes.Strategy.XCORE_STRIPS)
MOST_INPUTS = 1000
MOST_SEED = (1 << 31) - 1


Row = Callable[[str], Option]  # takes the option's sentence


def row(usage: str, parse: Parser, default: str = "", **more: Any) -> Row:
    """Returns a function that makes an option from its sentence, so that the sentence comes last in `_TABLE`.

    `usage` is the option's name and its metavar, with a space between. `more` are further fields of Option.
    """
    name, _, metavar = usage.partition(" ")
    return lambda sentence: Option(name, metavar, sentence, parse, default, **more)


def number(usage: str, parse: Parser, default: str, **more: Any) -> Row:
    """Returns the same as `row`, for an option that is a whole number."""
    return row(usage, parse, default, number=True, **more)


def file(usage: str, default: str = "", suffixes: tuple[str, ...] = ("",), **more: Any) -> Row:
    """Returns the same as `row`, for an option that names a file."""
    return row(usage, parsers.location, default, suffixes=suffixes, **more)


def choice(usage: str, words: type[enum.StrEnum], default: str) -> Row:
    """Returns the same as `row`, for an option whose values are those of the enumeration `words`."""
    return row(usage, parsers.mode(words), default, values=tuple(map(str, words)))


def switch(name: str) -> Row:
    """Returns the same as `row`, for an option that takes no value."""
    return row(name, parsers.flag, flag=True)


# Data sets: which one, how it becomes inputs, and how much of it goes through the firmware.
_DATA: tuple[Option, ...] = (
    file("data FILE.npz|DIR", "random values; none for quantize")(
        "A data set to run on: a .npz file, or a folder of images or .npy files, with a subfolder for each "
        "class if there are classes."
    ),
    file("labels FILE", "those in the .npz file; the subfolders of classes, sorted by name")(
        "The data set's labels (.npy, .npz, .txt or .csv). With a subfolder for each class: a .txt file with "
        "the class names in the order of the network's output."
    ),
    number("limit N", parsers.whole(1, parsers.MOST_SAMPLES), "all")(
        "Upper limit for the number of inputs from the data set. The seed chooses them at random."
    ),
    number(
        "through_firmware N|all",
        parsers.samples,
        "all, if that takes at most an hour by an estimate; otherwise as many as take ten minutes",
    )("How many inputs of the data set go through the firmware. All of them go through the reference."),
    number(
        "sequence N|all",
        parsers.samples,
        "half of the random inputs; 1 for a data set",
    )("For a network with state: how many inputs follow one another before the state is reset."),
    switch("reference_only")(
        "Runs the data set through the reference only. Nothing is planned or built, and no firmware runs."
    ),
    choice("resize HOW", modes.Resize, "crop")(
        "How an image of another size gets the input's size: crop (scaled to cover the input, then cut on "
        "both sides), pad (scaled to fit into the input, with black borders), stretch, or exact (it is "
        "refused)."
    ),
    row(
        "normalise RULE",
        parsers.normalise,
        "auto: bytes, unit or signed, whichever matches the input's range; split: unit; quantize: none",
    )(
        "The real values of pixels: bytes (0 to 255), unit (0 to 1), signed (-1 to 1), or MEANS/DEVIATIONS "
        "for values from 0 to 1, such as 0.485,0.456,0.406/0.229,0.224,0.225."
    ),
    row("scores OUTPUT", parsers.text, "the only one with a value for each class")(
        "For a network with several outputs: the one whose largest value gives the class."
    ),
)
_TABLE: tuple[Group | Option, ...] = (
    Group.PLANNING,
    choice("strategy MODE", modes.Strategy, "best")(
        "How to plan the network: best (the best plan within the limits), layerwise (one operator after the "
        "other), msf-cnn or xcore-strips (as these systems plan)."
    ),
    choice("objective MODE", modes.Objective, "cost")(
        "What to minimise: cost (the target's estimate), ram (bytes of the arena) or flash (bytes of the "
        "weight image: weights that fit into four bits are stored in four bits)."
    ),
    row("ram BYTES", parsers.size, "the board's memory")(
        "Upper limit for the arena, in bytes, such as 65536 or 64K."
    ),
    row("max_f F", parsers.work, "none; 2 for the front and for objective ram", strategies=LIMITED)(
        "Upper limit for the work, as a multiple of the network's own work: 1.1 allows a tenth more."
    ),
    row("max_cost COST", parsers.limit, "none")(
        "Upper limit for the estimated cost, in the unit of the board's costs (cycles or instructions)."
    ),
    row("max_ms MS", parsers.limit, "none")(
        "Upper limit for the estimated time, in milliseconds: the cost in cycles at the board's clock."
    ),
    row("max_flash BYTES", parsers.size, "the board's memory")("Upper limit for the weight image, in bytes."),
    choice("in_place MODE", modes.InPlace, "rows")(
        "Which operators may overwrite an input that nothing reads later: rows (those that work row by row), "
        "elementwise (those that work element by element) or none."
    ),
    choice("image MODE", modes.Image, "overwritable")(
        "What happens to the network's input: overwritable (its memory is used again), resident (it is still "
        "there after the invoke) or stream (it arrives row by row and is never whole in RAM)."
    ),
    row(
        "segments LIST",
        parsers.text,
        "the planner searches for them",
        strategies=(modes.Strategy.XCORE_STRIPS,),
    )("The segments of xcore-strips: operators of the file and numbers of strips, such as 0-6x20,7-14x10."),
    choice("order MODE", modes.Order, "better; given if memory is counted without a board")(
        "The order of the operators: given (as in the file), better (a short search looks for an order with "
        "less live memory, which is used if it gives the better plan) or best (a long search)."
    ),
    row("hand_off PIXELS", parsers.pixels, "1", strategies=(modes.Strategy.BEST,))(
        "The smallest number of pixels that pass from operator to operator inside a group (the planner also "
        "tries more), or row for whole rows only."
    ),
    choice("simplify MODE", modes.Simplify, "weights; structure on a board with slots for weight images")(
        "What may simplify the network (its outputs stay equal for every input): weights (channels that are "
        "constant or unused are removed) or structure (all channels stay; the plan serves all weights)."
    ),
    number("hop ROWS", parsers.whole(1, parsers.MOST_SAMPLES), "the whole input")(
        "The rows of the input that are new in each invoke: the input is a window that moves by them. What "
        "was computed before and does not change is kept. Limits on memory then include what is kept."
    ),
    row("outputs NAME[,NAME...]", parsers.names, "those of the file")(
        "The network's outputs: tensors of the file, or layers as `plan` names them. The network ends there. "
        "Operators and weights that these outputs do not need are left out."
    ),
    Group.COUNTING,
    choice("weights MODE", modes.WeightsIn, "flash")(
        "Where the weights are: flash (not counted as memory) or load (in memory from their first to their "
        "last reader)."
    ),
    choice("operators MODE", modes.Counted, "separate")(
        "Which operators are counted: separate (all operators of the file) or fused (batch normalisation and "
        "activation are part of the operator before them)."
    ),
    number("batch N", parsers.whole(1, parsers.MOST_BATCH), "the file's; 1 for Darknet")(
        "The number of input images that are computed at a time."
    ),
    row("size HxW", parsers.sides, "the file's")("Rows and columns of the input image."),
    Group.TARGET,
    row("toolchain NAME", parsers.text, "the board's first")(
        "The compiler: clang or gcc; on xcore also xs3, whose code a simulator runs."
    ),
    switch("debug")(
        "Compiles for a debugger: -g and -Og instead of -O3, and names for the arena and every region."
    ),
    row("cmsis_nn PATH", parsers.text, "none", folder=True)(
        "For Cortex-M: a checkout of CMSIS-NN. Its kernels are used where they give the same bytes as the "
        "reference."
    ),
    row(
        "formats FORMAT",
        parsers.list_of(parsers.mode(modes.Format)),
        "bin",
        spelt="format",
        values=tuple(map(str, modes.Format)),
        many=True,
    )(
        "A format of the files for flash, in addition to .elf and .map: bin, hex (Intel) or uf2. It may be "
        "given several times."
    ),
    file("sign KEY.pem")(
        "Also writes the firmware signed for MCUboot with this private key. imgtool must be installed."
    ),
    row("image_version VERSION", parsers.version, "0.0.0")(
        "The version in MCUboot's header, such as 1.2.3 or 1.2.3+4."
    ),
    choice("requantise NAME", modes.Requantise, "exact")(
        "For XS3: how sums become 8-bit outputs: exact (equal to the reference) or vpu16 (with 16-bit "
        "multipliers, within a proven error bound)."
    ),
    number("threads N", parsers.whole(1, modes.MOST_THREADS), "all that the board has")(
        "The number of threads that share the work of each kernel call, at most as many as the board has."
    ),
    row("weights_in MEMORY", parsers.text, "as the board's file says")(
        "The board's memory that holds the weights. If it has a bandwidth, weights are loaded into the arena."
    ),
    row("arena_in MEMORY[,MEMORY]", parsers.text, "as the board's file says")(
        "The board's memory that holds the arena. With two memories, buffers are spread over both."
    ),
    row("kernels_in MEMORY", parsers.text, "as the board's file says")(
        "The board's RAM from which kernels run, where flash is slow. Start-up code copies them there."
    ),
    Group.FIELD,
    number("self_test SEED", parsers.whole(0, MOST_SEED), "none")(
        "Emits NAME_self_test, which runs the network on an input made from this seed, and compares the "
        "output with the reference's."
    ),
    file("golden FILE.npy", "none")(
        "Emits NAME_self_test for the input in this file, which is linked into the firmware: quantised "
        "values, or floats."
    ),
    choice("guards MODE", modes.Guards, "none")(
        "Guard words before and after the arena, which are checked by NAME_check_guards (call) and after "
        "each invoke, too (invoke)."
    ),
    Group.INPUT,
    file("input FILE.npy", "random values")("One input to run on: quantised values, or floats."),
    number("inputs N", parsers.whole(1, MOST_INPUTS), "1")("The number of random inputs."),
    number("seed S", parsers.whole(0, MOST_SEED), "0")(
        "The seed of random inputs, random networks and the inputs that --limit chooses. For a split: the "
        "seed of weights, order, augmentation, calibration and the chosen test images."
    ),
    *_DATA,
    Group.OTHER,
    row("plugin PLUGIN", parsers.text)(
        "The name of a target plugin, which is the family of the boards that it serves."
    ),
    Group.INPUT,
    number("cases N", parsers.whole(1, MOST_INPUTS), "4")("The number of random networks for each kernel."),
    Group.DESK,
    choice("on WHERE", modes.On, "emulator")(
        "Where test firmware runs: emulator (or this machine, as the board's file says) or board (an "
        "attached board, which is flashed and answers over a link)."
    ),
    row(
        "wire WIRE[:PORT]",
        parsers.wire,
        "serial if the board's file has [uart], else rtt; the only port that exists",
    )(
        "How an attached board answers: serial or rtt, and the port (serial:/dev/ttyACM0, "
        "rtt:127.0.0.1:9090), or semihosting, through its debugger's files. In an emulator, serial is the "
        "UART."
    ),
    switch("flashed")("The board has the firmware image already, so it is not flashed."),
    row("tool NAME", parsers.text, "the first in the board's file that is installed")(
        "The program that flashes the board: openocd, pyocd, esptool or xflash."
    ),
    Group.OTHER,
    number("port PORT", parsers.whole(1024, 65535), "3333")(
        "The port of this machine on which the debugger reaches the server."
    ),
    Group.REPORT,
    switch("tensors")("Compares every tensor, not only the outputs."),
    choice("reference NAME", modes.Reference, "auto")(
        "What to compare with: litert (LiteRT's reference kernels), numpy (buildtool's own executor), or "
        "auto (LiteRT if it is installed and can run the network; TensorFlow Lite Micro for operators of its "
        "signal library)."
    ),
    switch("sanitize")("Builds with checks for invalid addresses and undefined behaviour (host)."),
    switch("compare")("Shows what msf-cnn and xcore-strips reach on the same network."),
    switch("peers")("Shows what msf-cnn and xcore-strips reach on the same network."),
    row("period TIME", parsers.period, "not known")(
        "The time from hop to hop of a moving window, such as 20ms: shows the share that an invoke takes."
    ),
    Group.OTHER,
    row("name NAME", parsers.identifier, "the model's own name")("The prefix of the network's C interface."),
    row(
        "system SYSTEM",
        parsers.mode(modes.System),
        "plain",
        values=tuple(map(str, modes.System)),
        spelt="bundle",
    )(
        "The build system that a bundle is for: plain (CMake, make, an IDE), riot (RIOT), pico (Raspberry "
        "Pi's pico-sdk), idf (ESP-IDF), zephyr or cmsis-pack. All but plain have an example, which "
        "compares an output with the reference."
    ),
    row("capacity BYTES", parsers.size, "the lowest placement")(
        "Stops at the first placement that fits into this many bytes."
    ),
    number("budget NODES", parsers.whole(1, 1 << 40), "enough for some seconds")(
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
    )("A board of `buildtool boards`, or a .toml file. It may be given several times."),
    Group.OTHER,
    file("model MODEL", suffixes=MODEL_SUFFIXES)("A .tflite or .onnx file, or a network of `buildtool zoo`."),
    Group.BUILT,
    file("elf ELF")("A linked firmware image: the one to look at, or to run instead of building one."),
    file("map FILE", "NAME.map beside the firmware image, if it belongs to it")(
        "The map that the linker wrote with the firmware image. It says which file and library each byte "
        "comes from."
    ),
    file("plan FILE", "a new plan")(
        "The plan to use, which `buildtool plan --out` wrote. With a firmware image: the emitted NAME.plan."
    ),
    Group.OTHER,
    file("file FILE.csv")(
        "An arena problem: a table of buffers with the columns id, lower, upper and size, and, where needed, "
        "alignment and offset."
    ),
    Group.QUANTISING,
    choice("activations TYPE", modes.Activations, "int8")(
        "The type of the quantised network's activations: int8, or int16 (nearer to the float network; takes "
        "twice the memory; only .tflite). Weights are int8, with a scale for each channel."
    ),
    switch("sizes_only")(
        "Takes random values in place of a data set. Sizes, plans and times are then those of the network. "
        "Its outputs are not."
    ),
    Group.SPLIT,
    row("network NETWORK", parsers.network, suffixes=(".keras",))(
        "A .keras file of Keras 3, or a network to train first: vgg16 or resnet18."
    ),
    file("train_data DIR|FILE", spelt="data")(
        "What to train on: a folder or a .tar archive with a folder for each class, a folder with one such "
        "archive for training and one for the test, or a .npz file."
    ),
    row("flash BYTES", parsers.size, "the board's memory")(
        "Upper limit for the flash, in bytes: the weight image, and the firmware's code and constants if "
        "sizes for its compiler are recorded."
    ),
    row("max_drop POINTS", parsers.points, "0.5")(
        "Upper limit for the accuracy that a block's split loses against its own baseline, in percentage "
        "points."
    ),
    row("factors LIST", parsers.factors, "2,4,6,8")("Numbers of branches to try for each block."),
    choice("first MODE", modes.Reads, "slice")(
        "What a branch's first convolution reads: slice (its slice of the channels), full (the full map) or "
        "both (the search tries both)."
    ),
    row("width W", parsers.width, "1")("Channels of vgg16 or resnet18, as a multiple of the published ones."),
    number("image_size PIXELS", parsers.whole(1, 4096), "32", spelt="size")(
        "Rows and columns of the images of vgg16 or resnet18."
    ),
    number("epochs N", parsers.whole(1, 100_000), "30")("Epochs of the first training of vgg16 or resnet18."),
    number("fine_tune N", parsers.whole(1, 100_000), "5")("Epochs of each candidate's training."),
    number("train_batch N", parsers.whole(1, parsers.MOST_BATCH), "128", spelt="batch")(
        "The number of images in a training step."
    ),
    row("rate RATE", parsers.limit, "0.1")("The largest learning rate of the first training."),
    row("fine_rate RATE", parsers.limit, "0.02")("The largest learning rate of candidates and baselines."),
    choice("optimiser NAME", modes.Optimiser, "sgd")(
        "The optimiser of the training: sgd (momentum of 0.9, Nesterov) or adam."
    ),
    row("weight_decay DECAY", parsers.share, "0.005")(
        "Each step shrinks the weights by this times the learning rate, but not biases and batch norms."
    ),
    row("warm_up SHARE", parsers.share, "0.1")("Share of the steps in which the learning rate rises."),
    choice("flip WHICH", modes.Flip, "half")(
        "Which training images are mirrored left to right: half of them, or none."
    ),
    row("shift SHARE", parsers.share, "0.125")("Training images move by up to this share of their sides."),
    row("held_out SHARE", parsers.positive_share, "0.1")(
        "Share of the training images that judge candidates and do not train them."
    ),
    choice("comparisons WHICH", modes.Compared, "all")(
        "Networks that are trained for comparison: all (the original, a smaller split, one without fusion, a "
        "shared one), or none."
    ),
    number("images N", parsers.whole(1, 10_000_000), "1000")(
        "The number of test images that go through the int8 network and its firmware."
    ),
)


def _group_options() -> Iterator[Option]:
    """Yields the options of `_TABLE`, each with the group that stands before it in the table."""
    group = Group.OTHER
    for one in _TABLE:
        if isinstance(one, Group):
            group = one
        else:
            yield one._replace(group=group)


OPTIONS = tuple(_group_options())
BY_NAME = {option.name: option for option in OPTIONS}
DATA = tuple(option.name for option in _DATA)
