"""Packs, cuts, gathers, tiles and blocks equal LiteRT, before and after rewriting."""

import tracemalloc

import numpy as np
import pytest
from flatfiles import FileOperator, FileTensor, constant
from graphs import inputs_for
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from litert import rewritten, run
from samplefiles import Sheet

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.reference import execute
from buildtool.graph.tflite.flat import FlatFile
from buildtool.graph.tflite.network import Network
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.shapevalues import follow_shapes

SETTINGS = settings(derandomize=True, deadline=None, max_examples=20, suppress_health_check=list(HealthCheck))
SCALE = {"scale": 0.25, "zero": -3}
QUANTS = {"int8": SCALE, "int16": {"dtype": "int16", "scale": 0.25}}


class Typed(Sheet):
    """A sheet whose activations have one of two types."""

    def __init__(self, dtype: str = "int8", seed: int = 7) -> None:
        super().__init__(seed)
        self.dtype, self.quant = dtype, QUANTS[dtype]


def shapes(most: int = 5, least: int = 1) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(1, 4), min_size=least, max_size=most)


def axis_of(draw: st.DrawFn, rank: int) -> tuple[int, int]:
    """Returns an axis from 0 and the same axis as a file may give it, which may be negative."""
    axis = draw(st.integers(0, rank - 1))
    return axis, draw(st.sampled_from([axis, axis - rank]))


def add_operator(sheet, kind, shape, out, *parameters, version=1, **options):
    """Adds an operator on a tensor of `shape` and constants; returns its (inputs, outputs)."""
    x = sheet.add(FileTensor(shape, **sheet.quant))
    inputs = [x, *(p if isinstance(p, FileTensor) else constant(p) for p in parameters)]
    inputs[1:] = map(sheet.add, inputs[1:])
    table = "".join(word.title() for word in kind.split("_")) + "Options"
    y = sheet.apply(kind, inputs, out, table, options, **sheet.quant)
    sheet.operators[-1].version = version
    return [x], [y]


def add_pack(sheet, draw):
    shape, count = draw(shapes(5, 0)), draw(st.integers(1, 4))
    axis, file_axis = axis_of(draw, len(shape) + 1)
    parts = [sheet.add(FileTensor(shape, **sheet.quant)) for _ in range(count)]
    out = [*shape[:axis], count, *shape[axis:]]
    options = {"ValuesCount": count, "Axis": file_axis}
    return parts, [sheet.apply("PACK", parts, out, "PackOptions", options, **sheet.quant)]


def add_parts(sheet, draw, kind):
    shape = draw(shapes())
    axis, file_axis = axis_of(draw, len(shape))
    x = sheet.add(FileTensor(shape, **sheet.quant))
    if kind == "UNPACK":
        outs = [
            sheet.add(FileTensor([*shape[:axis], *shape[axis + 1 :]], **sheet.quant))
            for _ in range(shape[axis])
        ]
        options = {"Num": shape[axis], "Axis": file_axis}
        sheet.operators.append(FileOperator(kind, [x], outs, "UnpackOptions", options))
        return [x], outs
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    sheet.tensors[x].shape = shape = [*shape[:axis], sum(sizes), *shape[axis + 1 :]]
    outs = [sheet.add(FileTensor([*shape[:axis], n, *shape[axis + 1 :]], **sheet.quant)) for n in sizes]
    if draw(st.booleans()):
        sizes[draw(st.integers(0, len(sizes) - 1))] = -1
    inputs = [x, sheet.ints(*sizes), sheet.add(constant(file_axis))]
    sheet.operators.append(FileOperator(kind, inputs, outs, "SplitVOptions", {"NumSplits": len(sizes)}))
    return [x], outs


def add_reverse(sheet, draw):
    shape = draw(shapes())
    first, file_axis = axis_of(draw, len(shape))
    axes = [file_axis, *range(first + 1, draw(st.integers(first + 1, len(shape))))]
    return add_operator(sheet, "REVERSE_V2", shape, shape, axes)


def add_gather(sheet, draw):
    shape = draw(shapes())
    axis, file_axis = axis_of(draw, len(shape))
    common = draw(st.integers(0, axis))
    sizes = draw(st.lists(st.integers(1, 3), max_size=2))
    form = (*shape[:common], *sizes)
    indices = sheet.rng.integers(0, shape[axis], form)
    if draw(st.booleans()) and sizes:  # with equal distances
        indices = np.broadcast_to(np.arange(sizes[-1]) % shape[axis], form)
    places = constant(indices, draw(st.sampled_from(["int32", "int64"])))
    options = {"Axis": file_axis, "BatchDims": common}
    if common and form and draw(st.booleans()):
        options["BatchDims"] = common - len(form) if common < len(form) else common
    out = [*shape[:axis], *sizes, *shape[axis + 1 :]]
    return add_operator(sheet, "GATHER", shape, out, places, **options)


def add_gather_nd(sheet, draw):
    shape = draw(shapes())
    depth, sizes = draw(st.integers(1, len(shape))), draw(st.lists(st.integers(1, 3), max_size=2))
    indices = np.stack([sheet.rng.integers(0, n, sizes) for n in shape[:depth]], -1)
    return add_operator(sheet, "GATHER_ND", shape, [*sizes, *shape[depth:]], indices)


def add_broadcast(sheet, draw):
    shape = draw(shapes(4))
    target = [*draw(shapes(2, 0)), *(draw(st.integers(1, 3)) if n == 1 else n for n in shape)]
    return add_operator(sheet, "BROADCAST_TO", shape, target, target, version=3)


def add_fill(sheet, draw):
    """Adds FILL with the shape of an input (from SHAPE), and an ADD of both."""
    shape = draw(shapes(4))
    x = sheet.add(FileTensor(shape, **sheet.quant))
    sizes = sheet.apply("SHAPE", [x], [len(shape)], "ShapeOptions", {"OutType": 2}, dtype="int32", scale=None)
    value = sheet.add(FileTensor((), data=np.array(draw(st.integers(-128, 127)), sheet.dtype), **sheet.quant))
    y = sheet.apply("FILL", [sizes, value], shape, "FillOptions", **sheet.quant)
    return [x], [sheet.apply("ADD", [x, y], shape, "AddOptions", **sheet.quant | {"scale": 0.6})]


CASES = {
    "PACK": add_pack,
    "UNPACK": lambda sheet, draw: add_parts(sheet, draw, "UNPACK"),
    "SPLIT_V": lambda sheet, draw: add_parts(sheet, draw, "SPLIT_V"),
    "REVERSE_V2": add_reverse,
    "GATHER": add_gather,
    "GATHER_ND": add_gather_nd,
    "BROADCAST_TO": add_broadcast,
    "FILL": add_fill,
}


def check(sheet: Sheet, inputs: list[int], outputs: list[int], seed: int) -> None:
    """Checks that the read graph and the rewritten graph equal LiteRT."""
    data = sheet.bytes(inputs, outputs)
    graph = read_model(data)
    values = inputs_for(graph, seed)
    read, simplified = execute(graph, values), rewritten(data, values)
    expected = run(data, values)
    for ours, theirs in zip(graph.outputs, outputs, strict=True):
        np.testing.assert_array_equal(read[ours], expected[theirs], strict=True)
    assert len(simplified.outputs) == len(outputs)


@pytest.mark.parametrize("kind", CASES)
def test_an_arrangement_equals_litert(kind):
    @settings(SETTINGS)
    @given(draw=st.data(), dtype=st.sampled_from(sorted(QUANTS)), seed=st.integers(0, 999))
    def compare(draw, dtype, seed):
        sheet = Typed(dtype, seed)
        check(sheet, *CASES[kind](sheet, draw.draw), seed)

    compare()


@pytest.mark.parametrize("kind", ["DEPTH_TO_SPACE", "REVERSE_V2", "SPACE_TO_BATCH_ND", "TILE"])
def test_bytes_of_uint8_are_moved_as_well(kind):
    sheet, quant = Sheet(), {"dtype": "uint8", "scale": 0.5, "zero": 100}
    forms = {
        "DEPTH_TO_SPACE": ((1, 4, 8, 1), (), {"BlockSize": 2}),
        "REVERSE_V2": ((1, 2, 4, 4), ([1],), {}),
        "SPACE_TO_BATCH_ND": ((4, 2, 2, 4), ([2, 2], [[1, 1], [0, 0]]), {}),
        "TILE": ((1, 2, 8, 4), ([1, 1, 2, 1],), {}),
    }
    names = {"DEPTH_TO_SPACE": "DepthToSpaceOptions", "SPACE_TO_BATCH_ND": "SpaceToBatchNDOptions"}
    shape, parameters, options = forms[kind]
    x = sheet.add(FileTensor((1, 2, 4, 4), **quant))
    inputs = [x, *(sheet.add(constant(p)) for p in parameters)]
    check(sheet, [x], [sheet.apply(kind, inputs, shape, names.get(kind, ""), options, **quant)], 3)


@pytest.mark.parametrize(
    ("kind", "options", "indices", "wrong"),
    [
        ("GATHER", {}, [[[0], [3], [1]]], (5, 3, 1)),
        ("GATHER", {}, [[1, 0, 3]], (5, 3)),
        ("GATHER_ND", {}, [[[0], [3], [1]]], (5, 3)),
        ("PACK", {"ValuesCount": 1, "Axis": 2}, [], (4, 5)),
    ],
)
def test_a_shape_in_another_order_is_refused(kind, options, indices, wrong):
    """The number of elements is right, but LiteRT has another order of dimensions."""
    sheet = Typed()
    ends = add_operator(sheet, kind, (4, 5), wrong, *indices, **options)
    with pytest.raises(ModelError, match="shape") as caught:
        read_model(sheet.bytes(*ends))
    assert kind in caught.value.operator or kind == "PACK"


def test_gathering_from_a_long_row_does_not_need_memory_of_its_length():
    sheet = Typed()
    ends = add_operator(sheet, "GATHER", (1, 1 << 30), (1, 3), [[5, 9, 2]], Axis=1, BatchDims=1)
    data = sheet.bytes(*ends)
    tracemalloc.start()
    try:
        read_model(data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


def add_integers(sheet, kind, inputs, shape, name="", **options):
    """Adds an operator on integers."""
    return sheet.apply(kind, inputs, shape, name, options, dtype="int32", scale=None)


REDUCTIONS = ("SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")
OF_TWO = {"DIV": "Div", "FLOOR_DIV": "FloorDiv", "FLOOR_MOD": "FloorMod"}
OF_TWO |= dict.fromkeys(("MAXIMUM", "MINIMUM"), "MaximumMinimum")


def test_integers_from_shapes_are_folded_as_litert_computes_them():
    """SHAPE and operators on its output, tensor by tensor."""
    sheet = Sheet()
    x = sheet.add(FileTensor((1, 4, 6, 2), **SCALE))
    shape = add_integers(sheet, "SHAPE", [x], [4], "ShapeOptions", OutType=2)
    one = sheet.add(constant(1))
    two, zero, minus = (sheet.add(constant(n)) for n in (2, 0, -7))
    axis = [shape, sheet.ints(0)]
    numbers = add_integers(sheet, "RANGE", [zero, two, one], [2], "RangeOptions")  # 0 1
    results = [
        add_integers(sheet, "RANK", [x], [], "RankOptions"),
        *(add_integers(sheet, kind, axis, [], "ReducerOptions") for kind in REDUCTIONS),
        add_integers(sheet, "GATHER", [shape, two], [], "GatherOptions"),
        *(add_integers(sheet, kind, [minus, two], [], f"{table}Options") for kind, table in OF_TWO.items()),
        add_integers(sheet, "SLICE", [shape, sheet.ints(1), sheet.ints(2)], [2], "SliceOptions"),
        add_integers(sheet, "FILL", [sheet.ints(2), two], [2], "FillOptions"),
        add_integers(sheet, "ZEROS_LIKE", [numbers], [2], "ZerosLikeOptions"),
        add_integers(sheet, "REVERSE_V2", [numbers, sheet.ints(0)], [2], "ReverseV2Options"),
        add_integers(sheet, "TILE", [sheet.ints(3), sheet.ints(2)], [2], "TileOptions"),
        add_integers(sheet, "BROADCAST_ARGS", [sheet.ints(1, 5), sheet.ints(4, 1)], [2]),
    ]
    for kind, inputs, outs, table, options in [
        ("UNPACK", [shape], [()] * 4, "UnpackOptions", {"Num": 4}),
        ("SPLIT", [zero, shape], [(2,)] * 2, "SplitOptions", {"NumSplits": 2}),
        ("SPLIT_V", [shape, sheet.ints(1, -1), zero], [(1,), (3,)], "SplitVOptions", {"NumSplits": 2}),
    ]:
        parts = [sheet.add(FileTensor(out, "int32", scale=None)) for out in outs]
        sheet.operators.append(FileOperator(kind, inputs, parts, table, options))
        results += parts
    data = sheet.bytes([x], [x])
    network, computed = Network(FlatFile(data)), run(data, [np.zeros((1, 4, 6, 2), np.int8)])
    follow_shapes(network)
    for index in results:
        assert np.array_equal(network.known[index], computed[index]), sheet.operators[index - 8]


def test_an_operator_in_a_chain_of_shapes_is_refused_by_name_with_all_others() -> None:
    s = Sheet()
    x, begin = s.add(FileTensor((1, 4, 4, 2))), s.add(FileTensor((1,), "int32", scale=None))
    shape = s.apply("SHAPE", [x], (4,), "ShapeOptions", dtype="int32", scale=None)
    inputs = [shape, begin, s.ints(2), s.ints(1)]
    part = s.apply("STRIDED_SLICE", inputs, (1,), "StridedSliceOptions", dtype="int32", scale=None)
    other = s.apply("RFFT2D", [x, s.ints(4, 4)], (1, 4, 4, 2), "Rfft2dOptions")
    with pytest.raises(UnsupportedError, match=r"2 operators .*") as caught:
        read_model(s.bytes([x, begin], [part, other]))
    assert "1 STRIDED_SLICE (#1)" in caught.value.text and "1 RFFT2D (#2)" in caught.value.text
