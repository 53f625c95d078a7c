"""Operator definitions: every kind has one, the functions that they name exist, and few files name a kind."""

import re
from collections import Counter

import pytest
from paths import ROOT

from buildtool.api.checking.cases import ADDING
from buildtool.emit import calls
from buildtool.graph.ops import (
    DEFS,
    moving,
)
from buildtool.graph.ops.detection import CUSTOM
from buildtool.graph.ops.signal import CUSTOM as SIGNALS
from buildtool.graph.ops.types import OpDef, Plain, load
from buildtool.graph.tflite.flat import BUILTIN_NAMES
from buildtool.graph.types import OpKind

# TFLite has no such operators.
MADE_HERE = {OpKind.LOOKUP, OpKind.VIEW, OpKind.JOINED, OpKind.SHIFT, OpKind.ERF}
MADE_HERE |= {definition.kind for definition in moving.DEFS}


def named(definition: OpDef) -> list[tuple[str, str]]:
    """Returns (package, name) of every function that a definition names."""
    rules = (definition.reference, definition.wide, definition.byte, definition.floats, definition.unscaled)
    names = [("graph.reference", name) for name in rules if name]
    names += [("graph.tflite", spelling.decode) for spelling in definition.read]
    names += [("graph.onnx", rule) for rule in definition.onnx.values()]
    names += [("graph", name) for name in (definition.whole, definition.copies) if name]
    return names + ([("graph.tflite", definition.written)] if isinstance(definition.written, str) else [])


def test_every_kind_has_one_definition():
    assert list(OpKind) == sorted(DEFS, key=list(OpKind).index)
    assert all(kind is definition.kind for kind, definition in DEFS.items())


@pytest.mark.parametrize("kind", list(DEFS))
def test_functions_named_by_a_definition_exist(kind):
    definition = DEFS[kind]
    assert all(callable(load(package, name)) for package, name in named(definition))
    known = set(BUILTIN_NAMES.values())
    assert kind in MADE_HERE | known | {OpKind.DETECTION_POSTPROCESS} | set(SIGNALS)
    assert {spelling.name for spelling in definition.read} <= known | {CUSTOM, *SIGNALS.values()}
    assert isinstance(definition.written, Plain | str | None)
    assert definition.call is None or definition.call in calls._WRITERS
    assert bool(definition.case) == (kind in ADDING)


def test_an_operator_of_a_file_is_read_by_one_definition():
    names = Counter(spelling.name for definition in DEFS.values() for spelling in definition.read)
    assert set(names.values()) == {1}
    onnx = Counter(name for definition in DEFS.values() for name in definition.onnx)
    assert set(onnx.values()) == {1}


@pytest.mark.parametrize(("kind", "of_kernels"), [("GREATER", False), ("MAXIMUM", True)])
def test_few_files_name_an_operator(kind, of_kernels):
    word = re.compile(rf"\b{kind}\b")
    python = [p for p in (ROOT / "buildtool").rglob("*.py") if word.search(p.read_text(encoding="utf-8"))]
    catalogues = [p for p in ROOT.glob("kernels/*/catalogue.toml") if word.search(p.read_text("utf-8"))]
    assert len(python) <= 4, python
    assert of_kernels or not catalogues
