"""nn_boxes.h has the bits of the numpy model in tests/oracles/boxes_twin.py, on this machine and on cores."""

from __future__ import annotations

import re
import struct
import subprocess
from ctypes import POINTER, Structure, byref, c_float, c_int32, c_void_p
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from ckernels import runtime
from needs import needs_tool
from paths import KERNELS, TESTS
from paths import ROOT as ROOT_OF_ALL
from probe import ROOT, link, load_board, one_set, run

PAGE = (ROOT_OF_ALL / "docs/guides/detection.md").read_text(encoding="utf-8")
TWIN = (TESTS / "oracles/boxes_twin.py").read_text(encoding="utf-8")
KINDS = ("decoded", "objectness", "yolov8", "yolov5", "blazeface")


def model(exp=None, real=None):
    """Returns the twin; `exp` and `real` replace its exponential and its type of reals."""
    names: dict[str, object] = {}
    exec(TWIN, names)
    names |= {"exp": exp, "f": real} if exp else {}
    return SimpleNamespace(**names)


MODEL = model()


class Box(Structure):
    """nn_box."""

    _fields_ = [(n, c_float) for n in ("x", "y", "w", "h", "score")] + [
        (n, c_int32) for n in ("which", "place")
    ]


class Boxes(Structure):
    """nn_boxes."""

    _fields_ = [
        ("boxes", POINTER(Box)),
        ("capacity", c_int32),
        ("count", c_int32),
        ("least_score", c_float),
        ("places", c_int32),
    ]


class Map(Structure):
    """nn_map."""

    _fields_ = [
        *(("data", c_void_p), ("scale", c_float), ("zero_point", c_int32)),
        *((name, c_int32) for name in ("rows", "columns", "cell_step", "step")),
    ]


@dataclass
class Part:
    """One output: numbers (rows, columns, numbers of a cell), which lie in memory channels first or last."""

    q: np.ndarray
    unit: tuple[float, int]
    first: bool = False
    stored: np.ndarray = field(init=False)

    def __post_init__(self):
        self.stored = np.ascontiguousarray(np.moveaxis(self.q, -1, 0) if self.first else self.q)

    @property
    def sizes(self):
        rows, columns, numbers = self.q.shape
        return (rows, columns, *((1, rows * columns) if self.first else (numbers, 1)))

    def map(self):
        return Map(self.stored.ctypes.data, *self.unit, *self.sizes)


@dataclass
class Case:
    """Calls of one kind for several scales, and the thresholds."""

    kind: str
    scales: list[tuple[list[Part], float]]  # parts and stride
    least: float
    overlap: float
    each_class: bool
    capacity: int
    anchors = ((10.0, 13.0), (16.0, 30.5), (33.0, 23.25))

    def expected(self, of=MODEL):
        """Returns the model's boxes and places, sorted, and the positions of those that stay."""
        found = of.best(
            np.concatenate([self._found(of, *one) for one in self.scales]), self.capacity, self.least
        )
        return (*found, of.suppress(found[0], self.overlap, self.each_class))

    def _found(self, of, parts, stride):
        first, *rest = [value for part in parts for value in (part.q, part.unit)]
        if self.kind in ("decoded", "objectness"):
            cells = first.reshape(-1, first.shape[2])
            return of.decoded(cells, rest[0], int(self.kind == "objectness"), 96.0, 64.0)
        if self.kind == "yolov8":
            return of.yolov8(first, *rest, 16, stride)
        if self.kind == "yolov5":
            return of.yolov5(first, rest[0], self.anchors, stride)
        return of.blazeface(first, *rest, stride)

    def arguments(self, parts, stride):
        """Returns the words of a call in C behind the maps."""
        numbers = parts[0].q.shape[2]
        return {
            "decoded": (0, numbers - 4, 96.0, 64.0),
            "objectness": (1, numbers - 5, 96.0, 64.0),
            "yolov8": (16, parts[-1].q.shape[2], stride),
            "yolov5": (3, numbers // 3 - 5, stride),
            "blazeface": (parts[-1].q.shape[2], 16, stride),
        }[self.kind]

    @property
    def function(self):
        return f"nn_boxes_{'decoded' if self.kind == 'objectness' else self.kind}"


def draw(kind: str, seed: int) -> Case:
    """Returns a case. Many numbers are equal, or at the ends of int8, so scores tie and saturate."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    pool = np.array([-128, -127, -20, 0, 3, 90, 126, 127]) if seed % 3 else np.arange(-128, 128)
    classes = int(rng.integers(1, 6))
    numbers = {
        "decoded": [4 + classes],
        "objectness": [5 + classes],
        "yolov8": [64, classes],
        "yolov5": [3 * (5 + classes)],
        "blazeface": [2 * 16, 2],
    }[kind]
    scales = []
    for stride in (8.0, 16.0):
        shape, parts = rng.integers(1, 7, 2), []
        for count in numbers:
            spread = 1 / 255 if kind in ("decoded", "objectness") else rng.choice([0.05, 0.9, 4.0])
            zero = -128 if spread < 0.01 else int(rng.integers(-40, 41))
            q = rng.choice(pool, (*shape, count)).astype(np.int8)
            parts.append(Part(q, (float(np.float32(spread)), zero), bool(rng.integers(2))))
        scales.append((parts, stride))
    least = float(np.float32(rng.choice([0.0, 0.25, 0.5, 0.999])))
    return Case(
        kind,
        scales,
        least,
        float(np.float32(rng.choice([0.1, 0.45, 0.9]))),
        bool(seed % 2),
        int(rng.choice([1, 7, 200])),
    )


def computed(library, case: Case):
    """Returns the list before and after the suppression, as the C functions make it."""
    memory, boxes = (Box * case.capacity)(), Boxes()
    library.nn_boxes_begin(byref(boxes), memory, c_int32(case.capacity), c_float(case.least))
    for parts, stride in case.scales:
        words = [c_float(n) if isinstance(n, float) else c_int32(n) for n in case.arguments(parts, stride)]
        if case.kind == "yolov5":
            words.insert(0, ((c_float * 2) * 3)(*((c_float * 2)(*pair) for pair in case.anchors)))
        maps = [part.map() for part in parts]
        getattr(library, case.function)(byref(boxes), *map(byref, maps), *words)
    before = memory[: boxes.count]
    before = bytes(memory)[: 28 * len(before)]
    count = library.nn_boxes_suppress(byref(boxes), c_float(case.overlap), c_int32(case.each_class))
    assert count == boxes.count
    return before, bytes(memory)[: 28 * count]


def packed(found, places) -> bytes:
    return b"".join(
        row[:5].astype("<f4").tobytes() + struct.pack("<2i", int(row[5]), place)
        for row, place in zip(found, places.tolist(), strict=True)
    )


@pytest.mark.parametrize("tool", ["gcc", pytest.param("clang", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_boxes_have_the_bits_of_the_twin(kind, tool):
    library, counts = runtime(tool), set()
    for seed in range(60):
        case = draw(kind, seed)
        found, places, stay = case.expected()
        before, after = computed(library, case)
        assert before == packed(found, places), seed
        assert after == packed(found[stay], places[stay]), seed
        counts.add((len(found), len(stay)))
    assert len(counts) > 15 and any(a > b for a, b in counts)
    assert computed(library, replace(draw(kind, 0), capacity=0)) == (b"", b"")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_the_model_is_near_the_formulas_in_double_precision(kind):
    """The same formulas with numpy's exponential and 64 bits: no step of float32 loses much."""
    exact = model(lambda x: np.exp(np.asarray(x, np.float64)), np.float64)
    for seed in range(20):
        case = draw(kind, seed)
        for scale in case.scales:
            ours, theirs = (case._found(of, *scale) for of in (MODEL, exact))
            assert theirs.dtype == np.float64
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-4)


def test_the_model_gives_what_the_definitions_say():
    """By hand: a cell in the second column of a scale of stride 8 whose logits are all 0, or at one end."""
    zeros = np.zeros((1, 2, 64), np.int8)
    zeros[0, 1, 15::16] = 127  # the distances of the second cell are 15 strides
    (first, second) = MODEL.yolov8(zeros, (1.0, 0), np.zeros((1, 2, 3), np.int8), (1.0, 0), 16, 8.0)
    np.testing.assert_array_equal(first, [4, 4, 2 * 7.5 * 8, 2 * 7.5 * 8, 0.5, 0])
    np.testing.assert_array_equal(second, [12, 4, 2 * 15 * 8, 2 * 15 * 8, 0.5, 0])
    (box,) = MODEL.yolov5(np.zeros((1, 1, 7), np.int8), (1.0, 0), [(10, 20)], 16.0)
    np.testing.assert_array_equal(box, [8, 8, 10, 20, 0.25, 0])
    face = MODEL.blazeface(
        np.full((1, 1, 16), 5, np.int8), (2.0, 1), np.zeros((1, 1, 1), np.int8), (1.0, 0), 8.0
    )
    np.testing.assert_array_equal(face, [[12, 12, 8, 8, 0.5, 0]])
    pair = np.array([[5, 5, 10, 10, 0.9, 0], [10, 5, 10, 10, 0.8, 1]], np.float32)  # a third overlaps
    assert [MODEL.suppress(pair, most, each) for most, each in ((0.33, 0), (0.34, 0), (0.1, 1))] == [
        [0],
        [0, 1],
        [0, 1],
    ]


def test_the_page_s_program_compiles(tmp_path):
    (block,) = re.findall(r"(?ms)^```c\n(.*?)^```$", PAGE)
    (tmp_path / "yolo.h").write_text("""\
#include "nn_image.h"
#define YOLO_DEFINE_ARENA(name) static int8_t name[16]
#define YOLO_INPUT0_ELEMENTS 12
extern const uint8_t yolo_weights[];
nn_status yolo_init(void *, size_t, const void *), yolo_invoke(void);
void *yolo_input(int), *yolo_output(int);
nn_quantization yolo_output_quantization(int);
""")
    (tmp_path / "app.h").write_text("""\
#include <stdint.h>
int read_sensor(void *, int);
void show(const void *, int);
int app(void);
""")
    (tmp_path / "own.c").write_text(block)
    words = (
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Werror",
        f"-I{KERNELS / 'include'}",
        "-I.",
        "-c",
        "own.c",
    )
    subprocess.run([needs_tool("gcc"), *words], cwd=tmp_path, check=True)


# ---- on a core ---------------------------------------------------------------------------------------


def _numbers(values) -> str:
    return ", ".join(map(str, values))


def _source(number: int, case: Case) -> str:
    """Returns the C function that makes a case's list."""
    data, calls = "", ""
    for s, (parts, stride) in enumerate(case.scales):
        names = [f"data_{number}_{s}_{i}" for i in range(len(parts))]
        for name, part in zip(names, parts, strict=True):
            data += f"static const int8_t {name}[] = {{{_numbers(part.stored.reshape(-1).tolist())}}};\n"
            unit = f"{{{part.unit[0]!r}F, {part.unit[1]}}}"
            calls += f"    const nn_map {name}_map = {{{name}, {unit}, {_numbers(part.sizes)}}};\n"
        words = [f"{n!r}F" if isinstance(n, float) else str(n) for n in case.arguments(parts, stride)]
        words = ["ANCHORS", *words] if case.kind == "yolov5" else words
        maps = ", ".join(f"&{name}_map" for name in names)
        calls += f"    {case.function}(&list, {maps}, {', '.join(words)});\n"
    return f"""{data}static int32_t case_{number}(nn_box *memory) {{
    nn_boxes list;
    nn_boxes_begin(&list, memory, {case.capacity}, {case.least!r}F);
{calls}    return nn_boxes_suppress(&list, {case.overlap!r}F, {int(case.each_class)});
}}
"""


def _write_cases(cases: list[Case], path: Path) -> int:
    """Writes cases.h; returns the number of boxes that stay."""
    expected, total = [], 0
    for case in cases:
        found, places, stay = case.expected()
        expected += [len(stay), *np.frombuffer(packed(found[stay], places[stay]), "<u4").tolist()]
        total += len(stay)
    pairs = ", ".join(f"{{{w!r}F, {h!r}F}}" for w, h in Case.anchors)
    text = f'#include "nn_boxes.h"\n#define MOST 200\n#define CASES {len(cases)}U\n'
    text += f"static const float ANCHORS[3][2] = {{{pairs}}};\n"
    text += "".join(_source(i, case) for i, case in enumerate(cases))
    text += f"static const uint32_t EXPECTED[] = {{{', '.join(f'{n}U' for n in expected)}}};\n"
    functions = ", ".join(f"case_{i}" for i in range(len(cases)))
    text += f"""static int32_t run_case(uint32_t i, nn_box *memory) {{
    static int32_t (*const all[])(nn_box *) = {{{functions}}};
    return all[i](memory);
}}
"""
    path.write_text(text)
    return total


@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "tool"), [("cortex-m4", "gcc"), ("cortex-m55", "clang"), ("qemu-virt-rv32", "clang")]
)
def test_a_core_gives_the_same_bits(board, tool, tmp_path):
    total = _write_cases([draw(kind, seed) for kind in KINDS for seed in range(6)], tmp_path / "cases.h")
    sources = [
        TESTS / "kernels/boxes_board/boxes_on_board.c",
        ROOT / "probe_weights.S",
        KERNELS / "runtime/nn_boxes.c",
    ]
    (tmp_path / "objects").mkdir()
    flags = (f"-I{tmp_path}", "-Wno-double-promotion")
    elf = link(load_board(board), tool, sources, flags, tmp_path / "objects")
    found = run(board, elf, one_set("echo")).files["output.bin"]
    assert struct.unpack_from("<4I", found) == (30, total, 0, 0) and total > 50
