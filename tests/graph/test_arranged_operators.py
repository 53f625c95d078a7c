"""Packs, cuts, gathered elements, tiles and blocks equal LiteRT, rewritten or not."""

import tracemalloc

import numpy as np
import pytest
from flatfiles import FileOperator, FileTensor, constant
from graphs import inputs_for
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from litert import rewritten, run
from samplefiles import Sheet

from buildtool.base.errors import ModelError
from buildtool.graph.reference import execute
from buildtool.graph.tflite.reader import read_model

SETTINGS = settings(derandomize=True, deadline=None, max_examples=14, suppress_health_check=list(HealthCheck))
SCALE = {"scale": 0.25, "zero": -3}


def shapes(most: int = 5, least: int = 1) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(1, 4), min_size=least, max_size=most)


def axis_of(draw: st.DrawFn, rank: int) -> tuple[int, int]:
    """An axis, and the same as a file may say it."""
    axis = draw(st.integers(0, rank - 1))
    return axis, draw(st.sampled_from([axis, axis - rank]))


def packed(sheet: Sheet, draw: st.DrawFn) -> tuple[list[int], list[int]]:
    shape, count = draw(shapes(5, 0)), draw(st.integers(1, 4))
    axis, said = axis_of(draw, len(shape) + 1)
    parts = [sheet.add(FileTensor(shape, **SCALE)) for _ in range(count)]
    out = [*shape[:axis], count, *shape[axis:]]
    options = {"ValuesCount": count, "Axis": said}
    return parts, [sheet.apply("PACK", parts, out, "PackOptions", options, **SCALE)]


def parted(sheet: Sheet, draw: st.DrawFn, kind: str) -> tuple[list[int], list[int]]:
    shape = draw(shapes())
    axis, said = axis_of(draw, len(shape))
    x = sheet.add(FileTensor(shape, **SCALE))
    if kind == "UNPACK":
        outs = [
            sheet.add(FileTensor([*shape[:axis], *shape[axis + 1 :]], **SCALE)) for _ in range(shape[axis])
        ]
        options = {"Num": shape[axis], "Axis": said}
        sheet.operators.append(FileOperator(kind, [x], outs, "UnpackOptions", options))
        return [x], outs
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    sheet.tensors[x].shape = shape = [*shape[:axis], sum(sizes), *shape[axis + 1 :]]
    outs = [sheet.add(FileTensor([*shape[:axis], n, *shape[axis + 1 :]], **SCALE)) for n in sizes]
    if draw(st.booleans()):
        sizes[draw(st.integers(0, len(sizes) - 1))] = -1
    inputs = [x, sheet.ints(*sizes), sheet.add(constant(said))]
    sheet.operators.append(FileOperator(kind, inputs, outs, "SplitVOptions", {"NumSplits": len(sizes)}))
    return [x], outs


def reversed_(sheet: Sheet, draw: st.DrawFn) -> tuple[list[int], list[int]]:
    shape = draw(shapes())
    first, said = axis_of(draw, len(shape))
    axes = [said, *range(first + 1, draw(st.integers(first + 1, len(shape))))]
    x = sheet.add(FileTensor(shape, **SCALE))
    return [x], [sheet.apply("REVERSE_V2", [x, sheet.ints(*axes)], shape, "ReverseV2Options", **SCALE)]


def gathered(sheet: Sheet, draw: st.DrawFn) -> tuple[list[int], list[int]]:
    shape = draw(shapes())
    axis, said = axis_of(draw, len(shape))
    common = draw(st.integers(0, axis))
    own = draw(st.lists(st.integers(1, 3), max_size=2))
    form = (*shape[:common], *own)
    indices = sheet.rng.integers(0, shape[axis], form)
    if draw(st.booleans()) and own:  # equally far apart
        indices = np.broadcast_to(np.arange(own[-1]) % shape[axis], form)
    x = sheet.add(FileTensor(shape, **SCALE))
    places = sheet.add(constant(indices, draw(st.sampled_from(["int32", "int64"]))))
    options = {"Axis": said, "BatchDims": common}
    if common and form and draw(st.booleans()):
        options["BatchDims"] = common - len(form) if common < len(form) else common
    out = [*shape[:axis], *own, *shape[axis + 1 :]]
    return [x], [sheet.apply("GATHER", [x, places], out, "GatherOptions", options, **SCALE)]


def gathered_nd(sheet: Sheet, draw: st.DrawFn) -> tuple[list[int], list[int]]:
    shape = draw(shapes())
    depth, own = draw(st.integers(1, len(shape))), draw(st.lists(st.integers(1, 3), max_size=2))
    indices = np.stack([sheet.rng.integers(0, n, own) for n in shape[:depth]], -1)
    x = sheet.add(FileTensor(shape, **SCALE))
    out = [*own, *shape[depth:]]
    inputs = [x, sheet.add(constant(indices))]
    return [x], [sheet.apply("GATHER_ND", inputs, out, "GatherNdOptions", **SCALE)]


def broadcast(sheet: Sheet, draw: st.DrawFn) -> tuple[list[int], list[int]]:
    shape = draw(shapes(4))
    wanted = [*draw(shapes(2, 0)), *(draw(st.integers(1, 3)) if n == 1 else n for n in shape)]
    x = sheet.add(FileTensor(shape, **SCALE))
    y = sheet.apply("BROADCAST_TO", [x, sheet.ints(*wanted)], wanted, "BroadcastToOptions", **SCALE)
    sheet.operators[-1].version = 3
    return [x], [y]


def filled(sheet: Sheet, draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """FILL with the shape of an input that SHAPE tells, added to it."""
    shape = draw(shapes(4))
    x = sheet.add(FileTensor(shape, **SCALE))
    told = sheet.apply("SHAPE", [x], [len(shape)], "ShapeOptions", {"OutType": 2}, dtype="int32", scale=None)
    value = sheet.add(FileTensor((), data=np.array(draw(st.integers(-128, 127)), np.int8), **SCALE))
    y = sheet.apply("FILL", [told, value], shape, "FillOptions", **SCALE)
    return [x], [sheet.apply("ADD", [x, y], shape, "AddOptions", scale=0.5, zero=7)]


CASES = {
    "PACK": packed,
    "UNPACK": lambda sheet, draw: parted(sheet, draw, "UNPACK"),
    "SPLIT_V": lambda sheet, draw: parted(sheet, draw, "SPLIT_V"),
    "REVERSE_V2": reversed_,
    "GATHER": gathered,
    "GATHER_ND": gathered_nd,
    "BROADCAST_TO": broadcast,
    "FILL": filled,
}


def check(sheet: Sheet, inputs: list[int], outputs: list[int], seed: int) -> None:
    """The graph as read and the rewritten one equal LiteRT."""
    data = sheet.bytes(inputs, outputs)
    graph = read_model(data)
    values = inputs_for(graph, seed)
    made, turned = execute(graph, values), rewritten(data, values)
    expected = run(data, values)
    for ours, theirs in zip(graph.outputs, outputs, strict=True):
        np.testing.assert_array_equal(made[ours], expected[theirs], strict=True)
    assert len(turned.outputs) == len(outputs)


@pytest.mark.parametrize("kind", CASES)
def test_an_arrangement_equals_litert(kind):
    @settings(SETTINGS)
    @given(draw=st.data(), seed=st.integers(0, 999))
    def compare(draw, seed):
        sheet = Sheet()
        sheet.rng = np.random.default_rng(seed)
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
        ("GATHER", "", [[0], [3], [1]], (5, 3, 1)),
        ("GATHER", "GatherOptions", [1, 0, 3], (5, 3)),
        ("GATHER_ND", "GatherNdOptions", [[0], [3], [1]], (5, 3)),
        ("PACK", "PackOptions", None, (4, 5)),
    ],
)
def test_a_shape_in_another_order_is_refused(kind, options, indices, wrong):
    """The number of elements alone would let them pass, in an order that LiteRT does not give."""
    sheet = Sheet()
    x = sheet.add(FileTensor((4, 5), **SCALE))
    inputs = [x] if indices is None else [x, sheet.add(constant(indices))]
    counted = {"ValuesCount": 1, "Axis": 2} if kind == "PACK" else {}
    y = sheet.apply(kind, inputs, wrong, options, counted, **SCALE)
    with pytest.raises(ModelError, match="shape") as caught:
        read_model(sheet.bytes([x], [y]))
    assert kind in caught.value.operator or kind == "PACK"


def test_gathering_from_a_long_row_takes_no_memory_of_its_length():
    sheet = Sheet()
    x = sheet.add(FileTensor((1, 1 << 30), **SCALE))
    places = sheet.add(constant([[5, 9, 2]]))
    y = sheet.apply("GATHER", [x, places], (1, 3), "GatherOptions", {"Axis": 1, "BatchDims": 1}, **SCALE)
    data = sheet.bytes([x], [y])
    tracemalloc.start()
    try:
        read_model(data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


def told(sheet: Sheet, kind: str, inputs: list[int], shape: list[int], name: str = "", **options) -> int:
    """An operator on integers."""
    return sheet.apply(kind, inputs, shape, name, options, dtype="int32", scale=None)


def test_integers_from_shapes_are_folded_as_litert_computes_them():
    """Each result is added to the number of elements and taken off again: a wrong one refuses the shape."""
    sheet = Sheet()
    x = sheet.add(FileTensor((1, 4, 6, 2), **SCALE))
    shape = told(sheet, "SHAPE", [x], [4], "ShapeOptions", OutType=2)
    one = sheet.add(constant(1))
    two, zero, minus = (sheet.add(constant(n)) for n in (2, 0, -7))
    found = {
        "rank": told(sheet, "RANK", [x], [], "RankOptions"),
        "sum": told(sheet, "SUM", [shape, sheet.ints(0)], [], "ReducerOptions"),
        "max": told(sheet, "REDUCE_MAX", [shape, sheet.ints(0)], [], "ReducerOptions"),
        "min": told(sheet, "REDUCE_MIN", [shape, sheet.ints(0)], [], "ReducerOptions"),
        "product": told(sheet, "REDUCE_PROD", [shape, sheet.ints(0)], [], "ReducerOptions"),
        "gather": told(sheet, "GATHER", [shape, two], [], "GatherOptions"),
        "quotient": told(sheet, "DIV", [minus, two], [], "DivOptions"),
        "floor": told(sheet, "FLOOR_DIV", [minus, two], [], "FloorDivOptions"),
        "rest": told(sheet, "FLOOR_MOD", [minus, two], [], "FloorModOptions"),
        "larger": told(sheet, "MAXIMUM", [minus, two], [], "MaximumMinimumOptions"),
        "smaller": told(sheet, "MINIMUM", [minus, two], [], "MaximumMinimumOptions"),
    }
    counted = told(sheet, "RANGE", [zero, two, one], [2], "RangeOptions")  # 0 1
    vectors = {
        "slice": told(sheet, "SLICE", [shape, sheet.ints(1), sheet.ints(2)], [2], "SliceOptions"),
        "filled": told(sheet, "FILL", [sheet.ints(2), two], [2], "FillOptions"),
        "zeros": told(sheet, "ZEROS_LIKE", [counted], [2], "ZerosLikeOptions"),
        "turned": told(sheet, "REVERSE_V2", [counted, sheet.ints(0)], [2], "ReverseV2Options"),
        "tiled": told(sheet, "TILE", [sheet.ints(3), sheet.ints(2)], [2], "TileOptions"),
        "shape": told(sheet, "BROADCAST_ARGS", [sheet.ints(1, 5), sheet.ints(4, 1)], [2]),
    }
    parts = [sheet.add(FileTensor((), "int32", scale=None)) for _ in range(4)]
    sheet.operators.append(FileOperator("UNPACK", [shape], parts, "UnpackOptions", {"Num": 4}))
    halves = [sheet.add(FileTensor((2,), "int32", scale=None)) for _ in range(2)]
    sheet.operators.append(FileOperator("SPLIT", [zero, shape], halves, "SplitOptions", {"NumSplits": 2}))
    odd = [sheet.add(FileTensor((n,), "int32", scale=None)) for n in (1, 3)]
    inputs = [shape, sheet.ints(1, -1), zero]
    sheet.operators.append(FileOperator("SPLIT_V", inputs, odd, "SplitVOptions", {"NumSplits": 2}))
    wanted = [*found.values(), *vectors.values(), *parts, *halves, *odd]
    data = sheet.bytes([x], [x])
    from buildtool.graph.tflite.flat import FlatFile
    from buildtool.graph.tflite.network import Network
    from buildtool.graph.tflite.shapevalues import follow_shapes

    network, computed = Network(FlatFile(data)), run(data, [np.zeros((1, 4, 6, 2), np.int8)])
    follow_shapes(network)
    for index in wanted:
        assert np.array_equal(network.known[index], computed[index]), sheet.operators[index - 8]
