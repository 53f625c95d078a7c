"""What the definition of an operator says: one `OpDef` a kind, from which everything else derives.

Rules that need nothing heavy (shapes, types, quantisation) are functions. What computes with numpy or reads
files is named, "module:function" of its package, and loaded by `load` when it is first asked for: a command
that plans neither executes a network nor writes one.
"""

from __future__ import annotations

import enum
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from buildtool.graph.quantrules import int8_activations
from buildtool.graph.types import Graph, Op, OpKind

Shape: TypeAlias = tuple[int, ...]
# Raises GeometryError unless the outputs' shapes follow from those of the inputs and the attributes.
ShapeRule: TypeAlias = Callable[[Op, list[Shape], list[Shape]], None]
# Raises QuantError unless the tensors' types, or scales, are usable.
QuantRule: TypeAlias = Callable[[Graph, Op], None]


class Trait(enum.Flag):
    """What is true of all operators of a class; a table and a pair are functions of one pixel, too."""

    NONE = 0
    ALIAS = enum.auto()
    PIXEL = enum.auto()
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
    """How a kernel is called: what the emitted code tells it of its tensors."""

    ONE_TO_ONE = "one to one"  # a view in, a view out, a window
    ROWS = "rows"  # a dense layer: one row of pixels
    SEVERAL = "several"  # views of operands that broadcast
    COPIES = "copies"  # strided copies, one a part
    FILLED = "filled"  # a filling, then copies
    MIRRORED = "mirrored"
    REDUCED = "reduced"  # a walk over what remains, and one over what goes
    GATHERED = "gathered"
    ARG = "arg"
    MATRICES = "matrices"
    RECURRENT = "recurrent"  # whole tensors, and state in place


class Case(enum.StrEnum):
    """How a random network around one operator of a kind is drawn."""

    CONVOLUTION = "convolution"
    TRANSPOSED = "transposed convolution"
    DENSE = "dense layer"
    ELEMENTWISE = "sum or product"
    QUOTIENT = "quotient"
    PAIR = "pair"
    SELECT = "select"
    UNARY = "unary"
    DENIED = "denied"
    REQUANTISED = "requantised"
    LOOKED_UP = "looked up"
    PRELU = "prelu"
    SOFTMAX = "softmax"
    NORMALISED = "normalised"
    POOL = "pool"
    MEAN = "mean"
    EXTREME = "extreme"
    ARG = "arg"
    PAD = "pad"
    CONCATENATION = "concatenation"
    SPLIT = "split"
    TRANSPOSE = "transpose"
    SLICE = "slice"
    TILE = "tile"
    GATHER = "gather"
    SQUARES = "squares"
    MATMUL = "matmul"
    RESIZE = "resize"
    SVDF = "svdf"
    LSTM = "lstm"


@dataclass(frozen=True)
class Spelling:
    """An operator of TFLite that is read as the kind: its name, and what decodes it.

    `decode`: "module:function" of `graph.tflite`, (OpView) -> Decoded | Chain | Folded.
    """

    name: str
    decode: str = "opview:plain"
    int16: Int16 = Int16.NOT_HERE


@dataclass(frozen=True)
class Plain:
    """How an operator without parameters is written: its version, and the name of its empty option table."""

    version: int
    options: str = ""


@dataclass(frozen=True)
class OpDef:
    """One kind of operator.

    `read`: the TFLite operators that become it. `written`: `Plain`, or "module:function" of
    `graph.tflite`, (Lowering, Op) -> FileOp; None: it has no form in .tflite, or one that is made with the
    state it is part of. `shape`: None for what only planning makes, and for what `graph.recurrent` checks
    as a whole. `types`, then `quant`: the types that it takes, and the scales. `reference`:
    "module:function" of `graph.reference`, its arithmetic; `wide`: that of int16 and int32, where it is
    another; `byte`: the function of one byte of a table. `call`: the form of its kernel's call; None: no
    kernel. `case`: None where no random network is drawn. `operands`: how many, None for any number;
    `optional`: those that may be absent. `state`: operands that are brought up to date in place -> the
    outputs that are their new values. `onnx`: the ONNX operator that is the same function, if its operands
    need no more than those of others of the same `case`; `numpy`: the function of it, of two integers, by
    which shapes are computed.
    """

    kind: OpKind
    shape: ShapeRule | None
    reference: str
    read: tuple[Spelling, ...] = ()
    written: Plain | str | None = None
    types: QuantRule = int8_activations
    quant: QuantRule | None = None
    wide: str = ""
    byte: str = ""
    call: CallForm | None = None
    case: Case | None = None
    traits: Trait = Trait.NONE
    operands: int | None = 1
    optional: frozenset[int] = frozenset()
    state: Mapping[int, int] = field(default_factory=dict)
    onnx: str = ""
    numpy: str = ""


def load(package: str, name: str) -> Any:  # a function: its type is the field's that names it
    """What `name`, "module:function", is in a package of `buildtool.graph`."""
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(f"buildtool.graph.{package}.{module}"), function)
