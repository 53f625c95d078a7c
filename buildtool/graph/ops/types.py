"""The definition of an operator: one `OpDef` per kind, from which everything else derives.

Rules that are quick to import (shapes, types, quantisation) are functions. Functions that compute with numpy
or read files are given by name, "module:function" of their package. `load` imports them at their first use,
because most commands need few of them: a command that plans neither executes a network nor writes one.
"""

import enum
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from buildtool.graph.quantrules import check_int8_or_int16
from buildtool.graph.types import Attrs, Graph, Op, OpKind, Quantization

Shape: TypeAlias = tuple[int, ...]
# (operator, the inputs' shapes, the outputs' shapes) -> the first output's shape. The outputs' shapes decide
# what attributes and inputs leave open; they are [] where they are not known yet. Raises GeometryError.
ShapeRule: TypeAlias = Callable[[Op, list[Shape], list[Shape]], Shape]
# Raises QuantError unless the tensors' types or scales are usable.
QuantRule: TypeAlias = Callable[[Graph, Op], None]

NO_UINT8 = "LiteRT's kernel does not support uint8"
NO_INT16 = "LiteRT's kernel does not support int16"


class Trait(enum.Flag):
    """Properties of a kind of operators, from which its classes in `ops` follow (TABLE_KINDS, ...).

    TABLE and PAIR include ELEMENT, and ELEMENT includes PIXEL and CHANNEL.
    """

    NONE = 0
    ALIAS = enum.auto()  # it runs no code: input and output share one buffer
    PIXEL = enum.auto()  # an output pixel depends only on the inputs' pixels at its place
    SLIDING = enum.auto()  # an output pixel depends on a window, which moves by a whole stride
    UNEVEN = enum.auto()  # an output pixel depends on a window, which moves by any ratio
    CHANNEL = enum.auto()  # an output channel depends only on the inputs' same channels (see CHANNEL_KINDS)
    _BYTE = enum.auto()
    _SEVERAL = enum.auto()
    _ORDER = enum.auto()
    _SUMS = enum.auto()
    _ELEMENT = enum.auto()
    ELEMENT = (
        _ELEMENT | PIXEL | CHANNEL
    )  # an output element depends only on the inputs' elements at its place
    TABLE = _BYTE | ELEMENT  # of int8, it is a function of one byte
    PAIR = _SEVERAL | ELEMENT  # a function of several operands, which broadcast
    COMPARISON = _ORDER | PAIR  # its results are truth values
    ARITHMETIC = _SUMS | PAIR  # ADD, SUB, MUL and DIV


class CallForm(enum.StrEnum):
    """How the emitted code calls a kernel."""

    ONE_TO_ONE = "one to one"  # an input view, an output view, a window
    ROWS = "rows"  # a dense layer: one row of pixels
    SEVERAL = "several"  # views of operands that broadcast
    COPIES = "copies"  # strided copies, one per part
    FILLED = "filled"  # fills the output, then copies
    MIRRORED = "mirrored"  # copies of a MIRROR_PAD
    REDUCED = "reduced"  # a walk over the kept dimensions, and one over the reduced ones
    GATHERED = "gathered"  # elements at constant or computed indices
    ARG = "arg"  # positions of extremes along one axis
    MATRICES = "matrices"  # products of matrices, in batches
    DETECTIONS = "detections"  # whole tensors, several outputs
    RECURRENT = "recurrent"  # whole tensors, and state in place
    MOVING = "moving"  # rows, rings and sums of a sliding window
    SIGNAL = "signal"  # whole tensors, several outputs, and state in place


@dataclass(frozen=True)
class Spelling:
    """A TFLite operator that is read as the kind whose definition lists it.

    `name` is its name in TFLite. `decode` is a function in `tflite`, (OpView) -> None.
    """

    name: str
    decode: str


def option_table(kind: str) -> str:
    """Returns the usual name of an operator's option table, such as LeakyReluOptions for LEAKY_RELU."""
    return "".join(word.capitalize() for word in kind.split("_")) + "Options"


@dataclass(frozen=True)
class Plain:
    """How a file stores an operator whose parameters, if any, are fields of its option table.

    `options`: the table's name; "" if there is no table, None for the usual name.
    `fields`: maps the table's fields to attributes of `attrs`. If a file lacks the table, the attributes have
    their defaults.
    `needed`: whether a file that lacks the table is malformed.
    `parameters`: int32 constants that follow the operands; maps their roles to attributes. The operator's own
    decoder reads them.
    """

    version: int
    options: str | None = None
    attrs: type[Attrs] = Attrs
    fields: Mapping[str, str] = field(default_factory=dict)
    needed: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)

    def table(self, kind: OpKind) -> str:
        """Returns the name of the option table, or "" if there is none."""
        return option_table(kind) if self.options is None else self.options


@dataclass(frozen=True)
class OpDef:
    """One kind of operator. Functions in a package of `graph` are given by name, "module:function"."""

    kind: OpKind
    # Computes its shapes. None for kinds that only planning makes, and where `whole` checks everything.
    shape: ShapeRule | None
    # Its arithmetic, in `reference`: (Graph, Op, values) -> values. "": it has a float32 form only.
    reference: str
    # The decoder in `tflite` of the TFLite operator with its name (see `Spelling`). With "" the operator is
    # read as `written` says where that is a `Plain`, and otherwise not at all.
    decode: str = ""
    # Other TFLite operators that are read as it.
    also: tuple[Spelling, ...] = ()
    # How it is written: a `Plain`, or a function in `tflite`, (Lowering, Op) -> FileOp. None where it has no
    # form in .tflite, or is written with the state that it belongs to.
    written: Plain | str | None = None
    # ONNX operators that are read as it (and as other kinds) -> the function in `onnx` that reads them,
    # (Context, Node) -> list[Value].
    onnx: Mapping[str, str] = field(default_factory=dict)
    # Checks the types that it takes. int16 is refused before where `no_int16` says so.
    types: QuantRule = check_int8_or_int16
    # The quantisation that its int8 output always has.
    output: Quantization | None = None
    # Checks the scales, where there is more to check.
    quant: QuantRule | None = None
    # A function in `graph`, (Graph, Op) -> None, that checks shapes, types and scales in place of the above.
    whole: str = ""
    # Why it has no form for integers, where it has none.
    no_integers: str = ""
    # Why it must not occur in a uint8 network. "": it computes the same as in int8.
    no_uint8: str = ""
    # Why it takes no int16 activations. "": it takes them.
    no_int16: str = ""
    # Whether its filter may have 4 bits, where its activations are int8.
    int4_weights: bool = False
    # The arithmetic of int16 and int32, in `reference`, where it differs.
    wide: str = ""
    # The arithmetic of float32, in `reference`. "": it has no float32 form.
    floats: str = ""
    # The arithmetic of int32 numbers without scales, in `reference`. "": it has no such form.
    unscaled: str = ""
    # A function in `graph` that bounds its outputs' channels (see `bounds`). "": nothing is known, unless it
    # is a table.
    bounds: str = ""
    # For a table: the function of one byte, in `reference`.
    byte: str = ""
    # numpy's function of two integers, which computes shapes.
    numpy: str = ""
    # How its kernel is called. None: it has no kernel.
    call: CallForm | None = None
    # A function in `graph`, (Graph, Op) -> list[Copy]: its strided copies, in elements.
    copies: str = ""
    # The function in `api.checking.cases` that adds it to a random network. "": random networks lack it.
    case: str = ""
    # For a conversion of integer types: (bits before, bits after) in random networks.
    conversions: tuple[tuple[int, int], ...] = ()
    traits: Trait = Trait.NONE
    # The number of operands (None: any number), and the operands that may be absent.
    operands: int | None = 1
    optional: frozenset[int] = frozenset()
    # The number of outputs (None: any number). A new value of a state is one more output.
    results: int | None = 1
    # Operands that it updates in place -> the outputs that are their new values.
    state: Mapping[int, int] = field(default_factory=dict)

    @property
    def read(self) -> tuple[Spelling, ...]:
        """The TFLite operators that are read as this kind."""
        decode = self.decode or ("opview:decode_plain" if isinstance(self.written, Plain) else "")
        own = (Spelling(self.kind, decode),) if decode else ()
        return (*own, *self.also)


def load(package: str, name: str) -> Any:  # a function: its type is the field's that names it
    """Imports a function from the package buildtool.`package`. `name` is "module:function"."""
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(f"buildtool.{package}.{module}"), function)
