"""The definition of an operator: one `OpDef` a kind, from which everything else derives.

Rules that need nothing heavy (shapes, types, quantisation) are functions. Functions that compute with numpy
or read files are named, "module:function" of their package, and imported by `load` at their first use: a
command that plans neither executes a network nor writes one.
"""

import enum
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from buildtool.graph.quantrules import int8_activations
from buildtool.graph.types import Attrs, Graph, Op, OpKind, Quantization

Shape: TypeAlias = tuple[int, ...]
# The first output's shape from the attributes and the inputs' shapes; what these leave open is as in the
# outputs' own shapes, the last argument, [] where these are not known yet. Raises GeometryError.
ShapeRule: TypeAlias = Callable[[Op, list[Shape], list[Shape]], Shape]
# Raises QuantError unless the tensors' types, or scales, are usable.
QuantRule: TypeAlias = Callable[[Graph, Op], None]

NO_UINT8 = "LiteRT's kernel does not support uint8"


class Trait(enum.Flag):
    """Classes of operators; a table and a pair are functions of one pixel, too."""

    NONE = 0
    ALIAS = enum.auto()
    PIXEL = enum.auto()
    SLIDING = enum.auto()
    UNEVEN = enum.auto()
    _BYTE = enum.auto()
    _SEVERAL = enum.auto()
    _ORDER = enum.auto()
    _SUMS = enum.auto()
    TABLE = _BYTE | PIXEL
    PAIR = _SEVERAL | PIXEL
    COMPARISON = _ORDER | PAIR
    ARITHMETIC = _SUMS | PAIR


class Int16(enum.Enum):
    """Whether a TFLite operator is read with int16 activations; if not, whether LiteRT could run it."""

    READ = enum.auto()
    NOT_HERE = enum.auto()
    NOT_IN_LITERT = enum.auto()


class CallForm(enum.StrEnum):
    """How the emitted code calls a kernel."""

    ONE_TO_ONE = "one to one"  # a view in, a view out, a window
    ROWS = "rows"  # a dense layer: one row of pixels
    SEVERAL = "several"  # views of operands that broadcast
    COPIES = "copies"  # strided copies, one a part
    FILLED = "filled"  # a filling, then copies
    MIRRORED = "mirrored"
    REDUCED = "reduced"  # a walk over the kept dimensions, and one over the reduced ones
    GATHERED = "gathered"
    ARG = "arg"
    MATRICES = "matrices"
    RECURRENT = "recurrent"  # whole tensors, and state in place


@dataclass(frozen=True)
class Spelling:
    """A TFLite operator that is read as the kind: its name; its decoder, of `tflite`, (OpView) -> None."""

    name: str
    decode: str
    int16: Int16 = Int16.NOT_HERE


def option_table(kind: str) -> str:
    """The name that the option table of an operator mostly has: LeakyReluOptions of LEAKY_RELU."""
    return "".join(word.capitalize() for word in kind.split("_")) + "Options"


@dataclass(frozen=True)
class Plain:
    """How a file has an operator whose parameters, if it has any, are fields of its option table.

    Its version, its table's name ("": none; None: as the kind's), and the fields: field -> attribute of
    `attrs`. A file without the table has the attributes' defaults, or is malformed where it is `needed`.
    `parameters`: int32 constants behind the operands, role -> attribute; a function of their own reads them.
    """

    version: int
    options: str | None = None
    attrs: type[Attrs] = Attrs
    fields: Mapping[str, str] = field(default_factory=dict)
    needed: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)

    def table(self, kind: OpKind) -> str:
        """The name of the option table, "" for none."""
        return option_table(kind) if self.options is None else self.options


@dataclass(frozen=True)
class OpDef:
    """One kind of operator; functions are named as "module:function" of a package of `graph`."""

    kind: OpKind
    # The rule of its shapes; None for kinds that only planning makes, and where `whole` checks everything.
    shape: ShapeRule | None
    # Its arithmetic, of `reference`, (Graph, Op, values) -> values.
    reference: str
    # The decoder of the TFLite operator of its name, of `tflite` (see `Spelling`); "": one that is written as
    # `Plain` is read as that, and any other not at all. Whether with int16; other operators that become it.
    decode: str = ""
    int16: Int16 = Int16.NOT_HERE
    also: tuple[Spelling, ...] = ()
    # How it is written: `Plain`, or of `tflite`, (Lowering, Op) -> FileOp; None: it has no form in .tflite,
    # or one that is made with the state that it is part of.
    written: Plain | str | None = None
    # The ONNX operators that are read as it (and as other kinds) -> the rule, of `onnx`,
    # (Context, Node) -> list[Value].
    onnx: Mapping[str, str] = field(default_factory=dict)
    # The types that it takes.
    types: QuantRule = int8_activations
    # The quantisation that its int8 output always has.
    output: Quantization | None = None
    # Which scales it takes, where there is more to say.
    quant: QuantRule | None = None
    # The one check of shapes, types and scales, of `graph`, (Graph, Op) -> None; "": the three above.
    whole: str = ""
    # Why a network of uint8 must not have it; "": it computes the same as in int8.
    no_uint8: str = ""
    # The arithmetic of int16 and int32, of `reference`, where it is another.
    wide: str = ""
    # Of a table: the function of one byte, of `reference`.
    byte: str = ""
    # The function of two integers, of numpy, by which shapes are computed.
    numpy: str = ""
    # The form of its kernel's call; None: no kernel.
    call: CallForm | None = None
    # The strided copies that it is made of, of `graph`, (Graph, Op) -> list[Copy]; of elements.
    copies: str = ""
    # The function of `api.checking.cases` that puts it into a random network; "": none is drawn.
    case: str = ""
    # Of an operator from one type of integers to another: the bits before and after it in random networks.
    conversions: tuple[tuple[int, int], ...] = ()
    traits: Trait = Trait.NONE
    # How many operands it has, None for any number, and those that may be absent.
    operands: int | None = 1
    optional: frozenset[int] = frozenset()
    # Operands that are brought up to date in place -> the outputs that are their new values.
    state: Mapping[int, int] = field(default_factory=dict)

    @property
    def read(self) -> tuple[Spelling, ...]:
        """The TFLite operators that become it."""
        decode = self.decode or ("opview:plain" if isinstance(self.written, Plain) else "")
        own = (Spelling(self.kind, decode, self.int16),) if decode else ()
        return (*own, *self.also)


def load(package: str, name: str) -> Any:  # a function: its type is the field's that names it
    """The function `name`, "module:function", of the package buildtool.`package`."""
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(f"buildtool.{package}.{module}"), function)
