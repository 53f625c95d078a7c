"""Whatever the bytes are, the reader ends soon, with little memory, with a Graph or a BuildtoolError."""

import struct
import time
import tracemalloc

import numpy as np
import pytest
from flatfiles import FileOperator, FileTensor, constant, write
from needs import needs_shared
from samplefiles import mixed

from buildtool.base.errors import BuildtoolError, ModelError, UnsupportedError
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.types import Graph

MEMORY_PER_BYTE = 40  # bytes per byte of the file, for the Python objects of a vector's elements
MEMORY_BASE = 4 << 20  # bytes; a rewrite may compute small constants
SECONDS = 3.0  # limit of processor time; the fuzzed files take about 0.05 s


def attempt(data: bytes) -> str:
    """Reads and rewrites `data`; returns GRAPH or the error's code. Any other exception fails the test."""
    try:
        graph = read_model(data, path="x.tflite")
        assert isinstance(graph, Graph)
        rewrite(graph)
    except BuildtoolError as error:
        assert error.text
        return error.code
    return "GRAPH"


def survive(data: bytes, traced: bool = True) -> str:
    """Runs `attempt` and checks its time, and its memory if `traced`, which is three times as slow."""
    start = time.process_time()
    if traced:
        tracemalloc.start()
    try:
        result = attempt(data)
        peak = tracemalloc.get_traced_memory()[1]  # 0 if it is not traced
    finally:
        tracemalloc.stop()
    assert time.process_time() - start < SECONDS
    assert peak < MEMORY_PER_BYTE * len(data) + MEMORY_BASE, f"{peak} bytes for a file of {len(data)}"
    return result


def bit_flips(data: bytes, rng: np.random.Generator) -> bytes:
    array = np.frombuffer(data, np.uint8).copy()
    where = rng.integers(0, len(array), rng.integers(1, 4))
    array[where] ^= (1 << rng.integers(0, 8, len(where))).astype(np.uint8)
    return array.tobytes()


def random_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    array = np.frombuffer(data, np.uint8).copy()
    start = int(rng.integers(0, len(array) - 1))
    count = int(rng.integers(1, min(64, len(array) - start) + 1))
    array[start : start + count] = rng.integers(0, 256, count)
    return array.tobytes()


def truncated(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: rng.integers(0, len(data))]


def strange_words(data: bytes, rng: np.random.Generator) -> bytes:
    """Changes aligned words (offsets, lengths, dimensions, indices) to extreme values or to other words."""
    words = np.frombuffer(data[: len(data) // 4 * 4], np.uint32).copy()
    for place in rng.integers(0, len(words), rng.integers(1, 5)):
        extremes = [0, 1, 2, 3, 127, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x10000, len(data), len(data) - 4]
        near = int(words[place]) + int(rng.integers(-8, 9)) & 0xFFFFFFFF
        other = words[rng.integers(0, len(words))]
        words[place] = (extremes[rng.integers(0, len(extremes))], near, other)[rng.integers(0, 3)]
    return words.tobytes() + data[len(data) // 4 * 4 :]


def cut_and_pasted(data: bytes, rng: np.random.Generator) -> bytes:
    array = np.frombuffer(data, np.uint8).copy()
    count = int(rng.integers(1, 200))
    source, target = rng.integers(0, len(array) - count, 2)
    array[target : target + count] = array[source : source + count]
    return array.tobytes()


MUTATIONS = (bit_flips, random_bytes, truncated, strange_words, cut_and_pasted)


def fuzz(seed: bytes, rounds: int, rng_seed: int) -> dict[str, int]:
    rng = np.random.default_rng(rng_seed)
    counts: dict[str, int] = {}
    for i in range(rounds):
        # 3 and the 5 kinds of damage have no common factor, so files of every kind are traced
        result = survive(MUTATIONS[i % len(MUTATIONS)](seed, rng), traced=i % 3 == 0)
        counts[result] = counts.get(result, 0) + 1
    return counts


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rounds"), [("", 140), ("mlperf_kws", 20)])
def test_mutated_files_end_in_a_graph_or_an_error(name: str, rounds: int) -> None:
    data = needs_shared(f"models/{name}.tflite").read_bytes() if name else mixed()
    counts = fuzz(data, rounds, rng_seed=3)
    # all three results occur: some mutations are harmless, and not all break the root table
    assert name or min(counts["GRAPH"], counts["MODEL"], counts["UNSUPPORTED"]) > 4


@pytest.mark.slow
def test_mutations_pile_up() -> None:
    rng = np.random.default_rng(4)
    data = mixed()
    for i in range(60):
        mutated = MUTATIONS[rng.integers(0, len(MUTATIONS))](data, rng)
        # a file that can still be read is damaged further, so damage accumulates behind the first checks
        data = mutated if survive(mutated, traced=i % 3 == 0) == "GRAPH" else data
        data = mixed() if i % 50 == 0 else data


NO_MODELS = (b"", b"TFL3", b"\0\0\0\0TFL3", b"\xff" * 64, b"\x1c\0\0\0TFL3" + b"\xff" * 60)
NO_MODELS += (b"\0\0\0\0TFL2" * 9,)
HUGE_SHAPES = ((1 << 30, 1 << 30, 1 << 30, 1), (1, 1 << 16, 1 << 16, 1), (1, 46341, 46341, 1))


@pytest.mark.parametrize("data", NO_MODELS)
def test_other_bytes_are_a_model_error(data: bytes) -> None:
    with pytest.raises(ModelError):
        read_model(data)


@pytest.mark.parametrize("shape", HUGE_SHAPES)
def test_a_huge_activation_is_refused_without_allocating(shape: tuple[int, ...]) -> None:
    data = write([FileTensor(shape), FileTensor(shape)], [FileOperator("RELU", [0], [1])], [0], [1])
    with pytest.raises(UnsupportedError, match="more than"):
        read_model(data)
    assert survive(data) == "UNSUPPORTED"


def test_a_constant_must_have_as_many_bytes_as_its_shape_says() -> None:
    x, y = FileTensor((1, 1 << 20)), FileTensor((1, 1 << 20))
    short = FileTensor((1, 1 << 20), data=np.zeros(100, np.int8))
    data = write([x, short, y], [FileOperator("ADD", [0, 1], [2], "AddOptions")], [0], [2])
    with pytest.raises(ModelError, match="has 100 bytes"):
        read_model(data)


def test_a_vector_longer_than_the_file_is_refused_at_its_length() -> None:
    data = bytearray(mixed())
    marker = struct.pack("<iiiii", 4, 1, 8, 9, 3)  # the first tensor's shape vector
    place = data.find(marker)
    assert place > 0
    data[place : place + 4] = struct.pack("<I", 0x3FFFFFFF)
    with pytest.raises(ModelError, match="does not fit in the file"):
        read_model(bytes(data))
    assert survive(bytes(data)) == "MODEL"


def overlapping_vectors(tensors: int, channels: int) -> bytes:
    """Returns a file of many operators with long operand lists. The work is the product of both numbers."""
    outputs = [FileTensor((1, 2 * channels)) for _ in range(tensors)]
    joins = [
        FileOperator("CONCATENATION", [0] * channels, [1 + i], "ConcatenationOptions", {"Axis": 1})
        for i in range(tensors)
    ]
    return write([FileTensor((1, 2)), *outputs], joins, [0], [1])


def test_one_vector_shared_by_every_table_is_refused() -> None:
    """The offsets of all operators' input vectors point to one long vector."""
    data = overlapping_vectors(300, 4)
    array = bytearray(data)
    long = struct.pack("<I", 4) + struct.pack("<4i", 0, 0, 0, 0)
    places = [i for i in range(0, len(data) - 20, 4) if data[i : i + 20] == long]
    assert len(places) >= 300
    first = places[0]
    count = (len(data) - first - 4) // 4
    array[first : first + 4] = struct.pack("<I", count)  # to the end of the file
    for i in range(0, len(data) - 4, 4):
        offset = struct.unpack_from("<I", data, i)[0]
        if i + offset in places and i < first:
            array[i : i + 4] = struct.pack("<I", first - i)
    assert survive(bytes(array)) in ("MODEL", "UNSUPPORTED")


def test_a_folded_constant_is_never_much_larger_than_the_file() -> None:
    tensors = [FileTensor((1, 8, 8, 1), data=np.ones((1, 8, 8, 1), np.int8)), constant([30000, 30000])]
    tensors += [FileTensor((1, 30000, 30000, 1)), FileTensor((1, 1, 1, 1)), FileTensor((1, 30000, 30000, 1))]
    operators = [
        FileOperator("RESIZE_NEAREST_NEIGHBOR", [0, 1], [2], "ResizeNearestNeighborOptions"),
        FileOperator("ADD", [2, 3], [4], "AddOptions"),
    ]
    data = write(tensors, operators, [3], [4])
    with pytest.raises(UnsupportedError, match="too large to fold"):
        rewrite(read_model(data))
    assert survive(data) == "UNSUPPORTED"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["RELU", "TRANSPOSE", "MEAN"])
def test_a_chain_of_thousands_of_operators_takes_linear_time(kind: str) -> None:
    count = 1000
    tensors = [constant([0, 2, 1]), constant([1])] + [FileTensor((1, 3, 3)) for _ in range(count + 1)]
    options = {"MEAN": ("ReducerOptions", {"KeepDims": True})}.get(kind, ("", {}))
    operators = []
    for i in range(count):
        if kind == "MEAN":
            tensors[i + 2] = FileTensor((1, 3, 3) if i == 0 else (1, 1, 3))
            tensors[i + 3] = FileTensor((1, 1, 3))
        inputs = [i + 2, *{"TRANSPOSE": [0], "MEAN": [1]}.get(kind, [])]
        operators.append(FileOperator(kind, inputs, [i + 3], *options))
    data = write(tensors, operators, [2], [count + 2])
    start = time.process_time()
    assert attempt(data) == "GRAPH"
    assert time.process_time() - start < 2 * SECONDS
