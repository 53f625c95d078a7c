"""The keys of a kernel catalogue, and the words that its values are made of, with their meaning."""

from __future__ import annotations

from buildtool.target.keys import NEEDED, Key
from buildtool.target.types import Argument, Contract, Role, Windows

TOP = (
    Key(
        "headers",
        "list of files",
        "none",
        "Headers of the folder, or of kernels/include, that declare the symbols.",
    ),
    Key("uses", "list of families", "none", "Other families whose sources and packings this one needs."),
    Key("costs", "table", "those of the core's next family", "What calls cost beside their kernels."),
    Key(
        "portable",
        "formulas by the names of kernels",
        "none",
        "What kernels of portable families cost in this core's code, in the place of their own formulas.",
    ),
    Key("packing", "tables by name", "none", "Layouts of constants, which the folder's packing.py makes."),
    Key("kernel", "array of tables", "none", "The kernels. Earlier ones are preferred to later ones."),
    Key("routine", "array of tables", "none", "What emitted code calls beside kernels."),
)
PACKING = (
    Key(
        "bytes",
        "formula",
        NEEDED,
        "The length of a packed block; every block that is packed is compared with it.",
    ),
    Key(
        "channel_factors",
        "formula",
        "a block cannot be cut",
        "Bytes of an output channel's factors, behind a head of 16 bytes.",
    ),
    Key(
        "channel_weights",
        "formula",
        "a block cannot be cut",
        "Bytes of an output channel's weights, behind the factors. It comes together with `channel_factors`.",
    ),
    Key(
        "channel_step",
        "formula",
        "1",
        "Where a block can be cut: before channels whose number is a multiple of this.",
    ),
    Key(
        "channel_unit",
        "formula",
        "1",
        "Of how many channels a block has the bytes of a multiple; the last ones are filled up.",
    ),
    Key(
        "channel_group",
        "formula",
        "`channel_unit`",
        "Of how many channels the factors belong together, a multiple of `channel_unit`. A slice of fewer "
        "lies within them and comes with the factors of all; the argument `channel` says where it begins.",
    ),
    Key(
        "channel_tail",
        "formula",
        "0",
        "Bytes behind a block's weights that the kernel reads and that say nothing.",
    ),
)
KERNEL = (
    Key(
        "op",
        "operator kind, or a list",
        NEEDED,
        "What it computes, as `buildtool ops` names it; or a class: `@lookup`, all functions of one element; "
        "`@comparison`; `@pair`, all functions of the elements at one place but sums and products.",
    ),
    Key("name", "text", NEEDED, "The kernel's name in plans; no two families share one."),
    Key("symbol", "text", NEEDED, "The C function."),
    Key("call", "arguments", NEEDED, "The function's arguments in their order, with commas between them."),
    Key("sources", "list of files", NEEDED, 'Of the folder, or "family/file" of a family that is used.'),
    Key("headers", "list of files", "the family's", "The headers that declare the symbol."),
    Key(
        "packing",
        "name of a packing",
        "no constants",
        "Its own one, of a family that is used, or of a portable one.",
    ),
    Key("windows", "`any` or `whole`", "`any`", "What it computes in a call."),
    Key("overlap", "a contract", "`none`", "How far its output may lie on its dying input."),
    Key(
        "asks",
        "text",
        "`scratch` is a formula",
        "For a library's kernel: the question about scratch that the library answers.",
    ),
    Key(
        "types",
        "element types",
        "`int8`",
        "The element type of its first input, and of its output where that is another one: `int16`, or "
        "`int8 -> int16`. `int8` stands for uint8, too.",
    ),
    Key(
        "form",
        "`uint8`",
        "as int8",
        "Which arithmetic it computes, where LiteRT's uint8 kernel has another one than its int8 kernel: "
        "filters with a zero point, averages whose halves are rounded up.",
    ),
    Key("when", "formula", "True", "The shapes that it serves."),
    Key("scratch", "formula", "0", "Bytes of scratch for a call of `ow` columns."),
    Key(
        "slices",
        "formula",
        "False",
        "Whether it computes some output channels from a block of theirs. Such a kernel computes windows; "
        "its formula of scratch holds for each of the parts.",
    ),
    Key(
        "passes",
        "formula",
        "1",
        "How often a call reads all of its constants, for memories that let the core wait.",
    ),
    Key(
        "cost", "formula", "macs", "What a call costs in the unit of the target; it also sees `vector_bits`."
    ),
)
ROUTINE = (
    Key("role", "a role", NEEDED, "What it does."),
    Key("op", "operator kind, or a list", "every kind", "The operators that it does it for."),
    Key("symbol", "text", NEEDED, "The C function."),
    Key("call", "arguments", NEEDED, "The function's arguments in their order."),
    Key("types", "element types", "`int8`", "As those of the kernels that it stands beside."),
    Key("form", "`uint8`", "as int8", "As that of the kernel whose constants it reads."),
    Key("sources", "list of files", NEEDED, "As those of a kernel."),
    Key("headers", "list of files", "the family's", "The headers that declare the symbol."),
    Key(
        "packing",
        "name of a packing",
        "no constants",
        "Of the constants that it reads: they are the kernel's.",
    ),
)
COSTS = (
    Key("call", "formula", "the next family's", "The emitted loops around one kernel call."),
    Key(
        "row",
        "formula of `bytes`",
        "the next family's",
        "A row of a streamed image that the application delivers.",
    ),
    Key("move", "formula of `bytes`", "the next family's", "A tensor that is copied within the arena."),
    Key("load", "formula of `bytes`", "the next family's", "Constants that are brought into the arena."),
    Key(
        "sums",
        "formula of `oh`, `ow`, `cin`",
        "the next family's",
        "A part of a global pooling's input that is added to its sums.",
    ),
    Key(
        "sums_end",
        "formula of `oh`, `ow`, `cin`",
        "the next family's",
        "The output of such a pooling, made of its sums.",
    ),
)
CYCLES = (
    Key(
        "cycles_per_instruction",
        "number above 0",
        NEEDED,
        "What has no formula here: its formula in instructions, times this.",
    ),
    Key(
        "taken_branch_cycles",
        "whole number",
        "0",
        "That of the boards whose cycles were fitted ([pipeline]); boards that say another are not served.",
    ),
    Key("words_per_cycle", "whole number", "0", "Likewise."),
    Key("costs", "table", "the catalogue's, times the ratio", "As the catalogue's table, in cycles."),
    Key(
        "kernels",
        "formulas by the names of kernels",
        "the catalogue's, times the ratio",
        "What calls of the family's kernels cost, in cycles.",
    ),
)
TABLES = (
    ("", "The file's own keys", TOP),
    ("[packing.NAME]", "A layout of constants", PACKING),
    ("[[kernel]]", "A kernel", KERNEL),
    ("[[routine]]", "What is called beside kernels", ROUTINE),
    ("[costs]", "What calls cost beside their kernels", COSTS),
)

# What formulas see, in the order of the reference page.
VARIABLES = {
    "ih": "rows of the first input",
    "iw": "its columns; of a dense layer how many vectors it is applied to",
    "cin": "its channels; of a dense layer the inputs of a vector",
    "oh": "rows of the first output; in the cost of a call, of the part that it makes",
    "ow": "columns of the first output, likewise; in `scratch` the most columns that a call makes",
    "cout": "channels of the first output",
    "batch": "images",
    "kh": "rows of the window",
    "kw": "columns of the window",
    "sh": "rows from window to window",
    "sw": "columns from window to window",
    "dh": "rows from tap to tap",
    "dw": "columns from tap to tap",
    "pt": "rows of padding above",
    "pl": "columns of padding on the left",
    "groups": "groups of input channels; all channels of a depthwise convolution",
    "multiplier": "outputs of a depthwise convolution for each of its inputs",
    "memory": "steps that an SVDF keeps; else 0",
    "rank": "features of an SVDF for each of its units",
    "cells": "cells of an LSTM; else 0",
    "gates": "its gates: 4, or 3 without an input gate",
    "peepholes": "whether its gates see the cell: 1 or 0",
    "normed": "whether it has layer normalisation",
    "projected": "whether it has a projection",
    "operands": "how many activations go in",
    "narrow": "channels of the second operand of an ADD, where it lacks some of the output's; else 0",
    "below": "channels of the output below those, of such an ADD; else 0",
    "varying": "1 where one tensor decides each byte of the output: others are constants of one element",
    "lines": "lines of bytes one behind the other that an operator which copies moves; else 0",
    "scattered": "bytes that it moves one by one: those of lines with gaps; else 0",
    "inputs": "elements of the first input",
    "outputs": "elements of all outputs",
    "macs": "multiply-accumulates, padded taps included",
    "rows_met": "rows of windows that lie in the input, those of all output rows taken together",
    "rows_inside": "output rows whose whole window lies in the input",
    "columns_met": "columns of windows that lie in the input, those of all output columns taken together",
    "columns_inside": "output columns whose whole window lies in the input, in memory one after the other",
}
VECTOR_BITS = "vector_bits"  # a variable of costs alone
THREADS = "threads"  # of the core, for kernels

ARGUMENTS = {
    Argument.GEOMETRY: "the struct of the operator kind, see nn.h",
    Argument.CONSTANTS: "its block of the weight image",
    Argument.IN: "a view of the operand",
    Argument.IN1: "a view of the first operand",
    Argument.IN2: "a view of the second operand",
    Argument.IN3: "a view of the third operand",
    Argument.OUT: "a view of the output",
    Argument.IN_DATA: "the address of the whole operand",
    Argument.OUT_DATA: "the address of the whole output",
    Argument.WINDOW: "the rows and columns of the output that the call makes",
    Argument.SCRATCH: "memory that is the kernel's while it runs; NULL without any",
    Argument.SCRATCH_BYTES: "how much of it there is",
    Argument.SUMS: "an int32 for each channel",
    Argument.CHANNELS: "channels of the input",
    Argument.PIXELS: "pixels of the input",
    Argument.CHANNEL: "the first channel of a part of the output; 0 where it is not a part",
    Argument.BYTES: "bytes of the output",
    Argument.STATE: "the address of the operator's state, of an LSTM's last output",
    Argument.STATE2: "the address of an LSTM's cells",
}
CONTRACTS = {
    Contract.NONE: "Input and output share no byte.",
    Contract.ROW: "Output row q is written after every input row that it needs was read. Rows are made in "
    "ascending order, and rows below the window of row q are never read again.",
    Contract.PIXEL: "Output element i is written after input element i was read, which is never read again.",
    Contract.PARTS: "Of concatenations: the inputs are copied one after the other, each in ascending order.",
}
WINDOWS = {
    Windows.ANY: "Any window of its output, from views that may be parts of a wider tensor's channels.",
    Windows.WHOLE: "The whole output from whole inputs; such a kernel is in no streamed region.",
}
ROLES = {
    Role.FILL: "Fills a tensor with one value, before a PAD's input is copied into it.",
    Role.JOIN: "Copies a window of one part of a CONCATENATION to its place.",
    Role.ACCUMULATE: "Adds a window to the sums of a global pooling.",
    Role.FINISH: "Turns such sums into the pooling's output.",
}
