"""The values of options that choose a mode. This module imports the standard library only."""

from __future__ import annotations

import enum

MOST_THREADS = 16  # upper limit for the threads of a core


class Strategy(enum.StrEnum):
    """The method that decides how the network runs."""

    BEST = "best"  # the best plan within the limits
    LAYERWISE = "layerwise"  # one operator after the other
    MSF_CNN = "msf-cnn"  # blocks, chosen as msf-CNN does
    XCORE_STRIPS = "xcore-strips"  # strips of rows, as xcore-opt uses them


class Objective(enum.StrEnum):
    """What the plan minimises."""

    COST = "cost"  # the cost that the target estimates
    RAM = "ram"  # the size of the arena
    FLASH = "flash"  # the size of the weight image, then the cost


class CostUnit(enum.StrEnum):
    """The unit of a cost. Costs of two units are never compared or added."""

    INSTRUCTIONS = "instructions"  # executed instructions, not a time
    ISSUES = "issues"  # issue slots of one thread, on a core with a vector unit
    CYCLES = "cycles"  # cycles in a published model of the core's pipeline


class Image(enum.StrEnum):
    """What happens to the network's input while it runs."""

    OVERWRITABLE = "overwritable"  # its memory is reused once it has been read
    RESIDENT = "resident"  # it is unchanged after the invoke
    STREAM = "stream"  # a call-back delivers it row by row; RAM never holds all of it


class InPlace(enum.StrEnum):
    """Which operators may write their output over an input that nothing reads later."""

    ROWS = "rows"  # those whose kernel works row by row, or element by element
    ELEMENTWISE = "elementwise"  # those whose kernel works element by element
    NONE = "none"


class Order(enum.StrEnum):
    """The order in which operators run."""

    GIVEN = "given"  # the order in the file
    BETTER = "better"  # an order with less live memory, if a short search finds one and the plan is better
    BEST = "best"  # the order with the least live memory that a long search finds, if the plan is better


class Simplify(enum.StrEnum):
    """The extent to which a network may be simplified before it is planned. Its outputs stay the same for
    every input.
    """

    WEIGHTS = "weights"  # also its weights: channels with a constant value, and channels that nothing reads
    STRUCTURE = "structure"  # its operators only, so that networks of one structure have one plan


class WeightsIn(enum.StrEnum):
    """The memory that is assumed to hold the weights, for networks without a board."""

    FLASH = "flash"  # not in RAM
    LOAD = "load"  # in RAM, from the first operator that reads them to the last


class Counted(enum.StrEnum):
    """Which operators count as operators of their own, for networks without a board."""

    SEPARATE = "separate"  # all operators in the file
    FUSED = "fused"  # batch normalisation and activation count as part of the operator before them


class Guards(enum.StrEnum):
    """When a network checks the guard words beside its arena."""

    NONE = "none"  # it has no guards
    CALL = "call"  # when the application calls NAME_check_guards
    INVOKE = "invoke"  # also after each invoke


class Requantise(enum.StrEnum):
    """How sums become 8-bit outputs."""

    EXACT = "exact"  # bit for bit as the reference does
    VPU16 = "vpu16"  # with a vector unit's 16-bit multipliers; the answer gives a bound on the error


class Reference(enum.StrEnum):
    """The implementation that a run is compared with."""

    AUTO = "auto"  # LiteRT (TFLM for its signal library) where it can be, else buildtool's own executor
    LITERT = "litert"  # LiteRT's reference kernels
    NUMPY = "numpy"  # buildtool's own executor


class Format(enum.StrEnum):
    """The formats of files for flash. A build also writes .elf and .map files."""

    BIN = "bin"  # bytes without addresses
    HEX = "hex"  # Intel HEX
    UF2 = "uf2"  # blocks for boot loaders that appear as a disk


class FlashPart(enum.StrEnum):
    """The part that a file for flash contains. It ends the file's name, as in NET_weights.hex."""

    ALL = ""
    SIGNED = "_signed"  # the signed code, for a boot loader
    WEIGHTS = "_weights"
    CODE = "_code"


class System(enum.StrEnum):
    """The build system that the folder of a bundle is written for."""

    PLAIN = "plain"  # CMake, make, an IDE
    RIOT = "riot"
    PICO = "pico"
    IDF = "idf"
    ZEPHYR = "zephyr"
    CMSIS_PACK = "cmsis-pack"


class Level(enum.StrEnum):
    """What computed a result. The members are in order of likeness to the real board, which is the last
    one.
    """

    HOST = "host"  # the same C, compiled for this machine
    MODEL = "model"  # a model of the chip's operations, on this machine
    COMPILED = "compiled"  # the chip's compiler built the code, which was not run
    EMULATOR = "emulator"  # the chip's code ran in an emulator of the instruction set, which counts no cycles
    SIMULATOR = "simulator"  # the chip's code ran in a simulator, the manufacturer's or ours
    BOARD = "board"  # the board itself


class On(enum.StrEnum):
    """Where test firmware runs."""

    EMULATOR = "emulator"  # in an emulator or on this machine: the board's file says which
    BOARD = "board"  # on the attached board


class Activations(enum.StrEnum):
    """The type of a quantised network's activations. Weights are int8."""

    INT8 = "int8"
    INT16 = "int16"  # 16x8: nearer to the float network, twice the memory


class Resize(enum.StrEnum):
    """How a picture whose size differs from the network's input is made to fit."""

    CROP = "crop"  # it is scaled until it covers the input; the rest is cut off on both sides
    PAD = "pad"  # it is scaled until it lies within the input; both sides become black
    STRETCH = "stretch"  # width and height are scaled separately
    EXACT = "exact"  # it is not scaled; pictures of other sizes are refused


class Reads(enum.StrEnum):
    """What the first convolution of a branch reads, in a split network."""

    SLICE = "slice"  # its slice of the channels
    FULL = "full"  # all channels
    BOTH = "both"  # the search tries both


class Compared(enum.StrEnum):
    """Which networks are trained for comparison with a split network."""

    ALL = "all"  # the original, trained as long, and the splits "one factor smaller", "naive" and "shared"
    NONE = "none"


class Optimiser(enum.StrEnum):
    """The optimiser that trains a network."""

    SGD = "sgd"  # with Nesterov momentum of 0.9
    ADAM = "adam"


class Flip(enum.StrEnum):
    """Which training images are mirrored left to right."""

    HALF = "half"
    NONE = "none"


class Use(enum.StrEnum):
    """How a request uses the cache. With `renew` it writes entries, but reads only those that it wrote
    itself.
    """

    ON = "on"
    OFF = "off"
    RENEW = "renew"
