"""The modes of planning: what an option that names one may say. A leaf: the standard library only."""

from __future__ import annotations

import enum

MOST_THREADS = 16  # of a core


class Strategy(enum.StrEnum):
    """Who decides how the network runs."""

    BEST = "best"  # the best plan within the limits
    LAYERWISE = "layerwise"  # one operator after the other
    MSF_CNN = "msf-cnn"  # blocks as msf-CNN chooses them
    XCORE_STRIPS = "xcore-strips"  # strips of rows as xcore-opt has them


class Objective(enum.StrEnum):
    """What the plan is chosen to minimise."""

    COST = "cost"  # the target's estimate
    RAM = "ram"  # bytes of the arena


class CostUnit(enum.StrEnum):
    """The unit of a cost. Costs of two units are never compared or added."""

    INSTRUCTIONS = "instructions"  # executed ones: no time
    ISSUES = "issues"  # of one thread of a core with a vector unit
    CYCLES = "cycles"  # by a published model of the core's pipeline


class Image(enum.StrEnum):
    """What happens to the network's input while it runs."""

    OVERWRITABLE = "overwritable"  # its memory is used again once it is read
    RESIDENT = "resident"  # it is still there after the invoke
    STREAM = "stream"  # a call-back delivers it row by row, it is never whole in RAM


class InPlace(enum.StrEnum):
    """Which operators may write over their dying input."""

    ROWS = "rows"  # all whose kernel works row by row, or element by element
    ELEMENTWISE = "elementwise"  # the latter only
    NONE = "none"


class Order(enum.StrEnum):
    """In which order operators run."""

    GIVEN = "given"  # as the file has them
    BETTER = "better"  # so that less is alive, if a short search finds that and it makes the better plan
    BEST = "best"  # so that the least is alive that a long search finds, where that makes the better plan


class WeightsIn(enum.StrEnum):
    """Where the weights are while memory is counted (networks without a board)."""

    FLASH = "flash"  # not in RAM
    LOAD = "load"  # in RAM from their first to their last reader


class Counted(enum.StrEnum):
    """Which operators are counted (networks without a board)."""

    SEPARATE = "separate"  # all that the file has
    FUSED = "fused"  # batch normalisation and activation are part of what is before them


class Requantise(enum.StrEnum):
    """How sums become outputs of eight bits."""

    EXACT = "exact"  # as the reference does, to the bit
    VPU16 = "vpu16"  # with a vector unit's multipliers of 16 bits, within a bound that is told


class Reference(enum.StrEnum):
    """What a run is compared with."""

    AUTO = "auto"  # LiteRT where it is installed and computes the network, else buildtool's own executor
    LITERT = "litert"  # LiteRT's reference kernels
    NUMPY = "numpy"  # buildtool's own executor


class Format(enum.StrEnum):
    """What the files for flash are written as, beside .elf and .map."""

    BIN = "bin"  # bytes without addresses
    HEX = "hex"  # Intel HEX
    UF2 = "uf2"  # blocks for boot loaders that show themselves as a disk


class FlashPart(enum.StrEnum):
    """The part that a file for flash holds: the end of its name before the format, NET_weights.hex."""

    ALL = ""
    SIGNED = "_signed"  # the code, for a boot loader
    WEIGHTS = "_weights"
    CODE = "_code"


class Level(enum.StrEnum):
    """How real a result is: what computed it, the least real first."""

    HOST = "host"  # the same C, compiled for this machine
    MODEL = "model"  # the chip's own operations in a model of them, on this machine
    COMPILED = "compiled"  # made by the chip's own compiler, and not run
    EMULATOR = "emulator"  # the chip's own code in an emulator of the instruction set: no cycles
    SIMULATOR = "simulator"  # the chip's own code in the maker's simulator of the chip
    BOARD = "board"  # on the board itself


class On(enum.StrEnum):
    """Where test firmware runs."""

    EMULATOR = "emulator"  # or this machine, as the board's file says
    BOARD = "board"  # on the desk


class Resize(enum.StrEnum):
    """How an image of another size comes to the size of a network's input."""

    CROP = "crop"  # scaled until it covers the input, and what stands over is cut off on both sides
    PAD = "pad"  # scaled until it lies within the input, black on both sides
    STRETCH = "stretch"  # each side scaled by itself
    EXACT = "exact"  # not at all: other sizes are refused


class Reads(enum.StrEnum):
    """What the first convolution of a branch reads, where a network is split."""

    SLICE = "slice"  # its slice of the channels
    FULL = "full"  # the full map
    BOTH = "both"  # both are searched


class Compared(enum.StrEnum):
    """Which networks are trained for comparison with a split one."""

    ALL = "all"  # the original trained as long, one factor smaller, naive, shared
    NONE = "none"


class Optimiser(enum.StrEnum):
    """What changes a network's weights, where one is trained."""

    SGD = "sgd"  # momentum of 0.9, Nesterov
    ADAM = "adam"


class Flip(enum.StrEnum):
    """Which images are mirrored left to right, where a network is trained."""

    HALF = "half"
    NONE = "none"
