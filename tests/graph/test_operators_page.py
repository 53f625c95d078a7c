"""The page of TFLite's operators agrees with the reader's tables and with LiteRT."""

import numpy as np
import pytest
from litert import run
from paths import ROOT
from samplefiles import Sheet, Tensor, constant

from buildtool.base.errors import UnsupportedError
from buildtool.fronts.texts import boards as lists
from buildtool.graph.ops.types import NO_INT16
from buildtool.graph.tflite import support
from buildtool.graph.tflite.flat import BUILTIN_NAMES
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.support import page, table


def test_the_page_is_current():
    hint = "run: python -m buildtool.graph.tflite.support > docs/reference/operators.md"
    assert (ROOT / "docs/reference/operators.md").read_text(encoding="utf-8") == page(), hint


def test_the_command_prints_the_pages_contents():
    rows = [{"operator": name, "refused": refused} for name, refused in table().items()]
    printed = lists.ops({"boards": [], "operators": [], "tflite": rows})
    assert all(name[:7] in printed for name in BUILTIN_NAMES.values())
    for types in zip(*(refused.values() for refused in table().values()), strict=True):
        assert {reason.split()[0] for reason in types if reason} <= set(printed.split())
    assert lists.ops({"boards": [], "operators": [], "tflite": []}) not in ("", printed)


def test_every_operator_of_the_schema_has_one_row():
    rows = [line.split(" | ")[0][2:] for line in page().splitlines() if line.startswith("| ")][2:]
    assert sorted(rows) == sorted(BUILTIN_NAMES.values())


@pytest.mark.parametrize("code", support.NO_INT8)
def test_a_refusal_gives_the_reason_of_the_page(code):
    sheet = Sheet()
    x = sheet.add(Tensor((8,)))
    y = sheet.apply(BUILTIN_NAMES[code], [x], (8,))
    with pytest.raises(UnsupportedError) as refused:
        read_model(sheet.bytes([x], [y]))
    assert support.NO_INT8[code] in str(refused.value)
    assert f"| {BUILTIN_NAMES[code]} | refused: {support.NO_INT8[code]} |" in page()


_WIDE_FORMS = {  # constant operands, options, the output's shape and type
    **dict.fromkeys(("ABS", "NEG", "SQRT", "RSQRT", "EXP", "LOG", "GELU"), ((), "", {}, (1, 2, 2, 4))),
    **dict.fromkeys(("LOG_SOFTMAX", "L2_NORMALIZATION", "HARD_SWISH"), ((), "", {}, (1, 2, 2, 4))),
    **dict.fromkeys(("RELU_0_TO_1", "RELU_N1_TO_1"), ((), "", {}, (1, 2, 2, 4))),
    "REVERSE_V2": (([1],), "", {}, (1, 2, 2, 4)),
    "TILE": (([1, 2, 1, 1],), "", {}, (1, 4, 2, 4)),
    "REDUCE_MAX": (([1, 2],), "ReducerOptions", {}, (1, 4)),
    "GATHER": (([1, 0, 1],), "GatherOptions", {"Axis": 1}, (1, 3, 2, 4)),
    "DEPTH_TO_SPACE": ((), "DepthToSpaceOptions", {"BlockSize": 2}, (1, 4, 4, 1)),
    "SPACE_TO_DEPTH": ((), "SpaceToDepthOptions", {"BlockSize": 2}, (1, 1, 1, 16)),
    "SPACE_TO_BATCH_ND": (([2, 2], [[0, 0], [0, 0]]), "", {}, (4, 1, 1, 4)),
    "ARG_MAX": ((3,), "ArgMaxOptions", {"OutputType": 2}, (1, 2, 2)),
    "ARG_MIN": ((3,), "ArgMinOptions", {"OutputType": 2}, (1, 2, 2)),
    **dict.fromkeys(("MAXIMUM", "MINIMUM", "DIV", "SQUARED_DIFFERENCE"), (None, "", {}, (1, 2, 2, 4))),
}


@pytest.mark.parametrize("kind", _WIDE_FORMS)
def test_the_page_is_right_about_litert_and_int16(kind):
    """An operator is read in int16 if LiteRT's reference kernel runs it, otherwise the page gives the reason.

    SQUARED_DIFFERENCE is read, too: TensorFlow Lite Micro has a kernel.
    """
    constants, options_class, options, shape = _WIDE_FORMS[kind]
    sheet = Sheet()
    x = sheet.add(Tensor((1, 2, 2, 4), "int16", scale=0.01))
    others = [x] if constants is None else [sheet.add(constant(c)) for c in constants]
    places = kind.startswith("ARG")
    kwargs = {"dtype": "int32", "scale": None} if places else {"dtype": "int16", "scale": 0.01}
    y = sheet.apply(kind, [x, *others], shape, options_class, options, **kwargs)
    try:
        run(sheet.bytes([x], [y]), [np.full((1, 2, 2, 4), 9, np.int16)])
        reason = ""
    except (RuntimeError, ValueError):
        reason = "" if kind == "SQUARED_DIFFERENCE" else NO_INT16
    assert table()[kind]["int16"] == reason
