"""What a user may feed: a .npy file, quantised or real; and what is refused, with which words."""

import re

import numpy as np
import pytest

from buildtool.api import handle
from buildtool.base.errors import UsageError
from buildtool.base.files import File
from buildtool.firmware.datasets import arrays
from buildtool.firmware.datasets.arrays import draw_inputs
from buildtool.plan.models import load_model, read_graph

MODEL = "ds_cnn"
SHAPE = (1, 49, 10, 1)


@pytest.fixture(scope="module")
def graph():
    return read_graph(load_model(MODEL))[1]


@pytest.fixture
def save(tmp_path):
    def saved(array, name="input.npy"):
        np.save(tmp_path / name, array)
        return str(tmp_path / name)

    return saved


def from_file(graph, path):
    return arrays.from_file(graph, File(path))


def _validate(path):
    return handle({"kind": "validate", "model": MODEL, "board": "host", "input": path, "tensors": True})


def _int8(shape=SHAPE, seed=4):
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


@pytest.mark.slow
def test_quantised_values_are_taken_as_they_are(save, graph):
    values = _int8()
    ((taken,),) = from_file(graph, save(values))
    np.testing.assert_array_equal(taken, values)
    answer = _validate(save(values))
    assert answer["exact"] and answer["inputs"] == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_real_values_are_quantised(save, graph, dtype):
    quant = graph.tensors[graph.inputs[0]].quant
    values = _int8()
    real = ((values.astype(np.float64) - quant.zero_point) * quant.scale).astype(dtype)
    ((taken,),) = from_file(graph, save(real))
    assert taken.dtype == np.int8
    assert np.abs(taken.astype(int) - values).max() <= (1 if dtype is np.float16 else 0)


def test_real_values_out_of_range_saturate(save, graph):
    values = np.full(SHAPE, 1e30, np.float32)
    values[0, 0, 0, 0] = -1e30
    ((taken,),) = from_file(graph, save(values))
    assert taken.reshape(-1)[0] == -128
    assert set(taken.reshape(-1)[1:]) == {127}


@pytest.mark.parametrize("shape", [(49, 10, 1), (49, 10), (1, 49, 10)])
def test_dimensions_of_one_may_be_left_out(save, graph, shape):
    values = _int8(shape)
    ((taken,),) = from_file(graph, save(values))
    assert taken.shape == SHAPE
    np.testing.assert_array_equal(taken.reshape(-1), values.reshape(-1))


def not_finite(value):
    values = np.zeros(SHAPE, np.float32)
    values[0, 3, 3, 0] = value
    return values


SHAPES = ((1, 10, 49, 1), (1, 49, 10, 2), (490,), (2, 49, 10, 1), (0,), ())
TYPES = (np.uint8, np.int16, np.int64, np.bool_, np.complex64, "U3")
DAMAGED = r"not a \.npy file of numbers, or a damaged one"


@pytest.mark.parametrize(
    ("array", "says"),
    [
        *((_int8(shape), rf"shape.*{re.escape(str(SHAPE))}") for shape in SHAPES),
        *((np.zeros(SHAPE, dtype), "elements are.*int8") for dtype in TYPES),
        *((not_finite(value), "not finite") for value in (np.nan, np.inf, -np.inf)),
        (np.array([{"a": 1}], object), DAMAGED),  # which is not unpickled
    ],
)
def test_another_array_is_refused(save, graph, array, says):
    with pytest.raises(UsageError, match=says) as caught:
        from_file(graph, save(array))
    assert caught.value.path.endswith("input.npy")


@pytest.mark.slow
def test_a_file_that_is_no_array_is_refused(tmp_path):
    for name, data in (("empty.npy", b""), ("text.npy", b"1 2 3"), ("cut.npy", b"\x93NUMPY\x01\x00")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(UsageError, match=DAMAGED):
            _validate(str(tmp_path / name))
    with pytest.raises(UsageError, match="cannot read"):
        _validate(str(tmp_path / "none.npy"))
    np.savez(tmp_path / "many.npz", a=_int8())
    with pytest.raises(UsageError, match="archive"):
        _validate(str(tmp_path / "many.npz"))


def test_seeds_repeat_and_differ(graph):
    one, again, other = (draw_inputs(graph, 2, seed) for seed in (1, 1, 2))
    for a, b, c in zip(one, again, other, strict=True):
        np.testing.assert_array_equal(a[0], b[0])
        assert (a[0] != c[0]).any()
    assert (one[0][0] != one[1][0]).any()
    assert {-128, 127} <= set(np.concatenate([s[0].reshape(-1) for s in draw_inputs(graph, 8, 0)]))


@pytest.mark.parametrize(
    "request_", [{"inputs": 0}, {"inputs": 10**9}, {"inputs": "3"}, {"seed": -1}, {"seed": 1.5}]
)
def test_counts_and_seeds_that_make_no_sense_are_refused(request_):
    with pytest.raises(UsageError, match="whole number"):
        handle({"kind": "validate", "model": MODEL, "board": "host", **request_})


def header(descr, shape, version=1):
    """A .npy file of this header, and a hundred bytes."""
    words = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}"
    text = words.encode("latin-1").ljust(117) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2, "little") + text + bytes(100)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("data", "says"),
    [
        (header("|i1", "(80000000000,)}"), "80,000,000,000 elements"),
        (header("<f8", "(1, 49, 10, 1)}"), "490 elements of float64"),
        (header("|i1", "(-1, 4)}"), "damaged one"),
        (header("|O", "(100,)}"), "damaged one"),
        (header("|S100", "()}"), "the input has shape"),
        (header("<f8", "(((((("), "damaged one"),
        (header("<f8", "(100L,)}"), "100 elements of float64"),
        (header("|i1", "(9,)}", 9), "damaged one"),
        (b"PK\x03\x04 an archive", "an archive of arrays"),
        (b"", "damaged one"),
    ],
    ids=range(10),
)
def test_a_header_that_lies_is_refused_before_anything_is_allocated(graph, data, says):
    with pytest.raises(UsageError, match=says):
        arrays.from_file(graph, File("x.npy", data=data))
