"""Plans for TensorFlow Lite Micro: unmodified TFLM accepts them, needs less memory, and computes the same."""

import os
import re
import struct
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import tflite
from drawnnets import small_networks
from hypothesis import given, settings
from litert import run
from needs import needs_package, needs_shared

from buildtool import zoo
from buildtool.api import handle
from buildtool.base.errors import BuildtoolError, ModelError
from buildtool.fronts.cli import main as cli
from buildtool.graph.tflite.flat import FlatFile
from buildtool.graph.tflite.offline import with_offsets
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.plan.others import tflm
from buildtool.plan.others.tflm import write_plan_into_file

RUN_TFLM = """
import sys
import numpy as np
from tflite_micro.python.tflite_micro import runtime
from buildtool.plan.others import tflm

interpreter = runtime.Interpreter.from_file(sys.argv[1], arena_size=3_000_000)
details = interpreter.get_input_details(0)
values = np.random.default_rng(1).integers(-128, 128, details["shape"]).astype(details["dtype"])
interpreter.set_input(values, 0)
interpreter.invoke()
interpreter.print_allocations()
print("OUTPUT", interpreter.get_output(0).tobytes().hex())
"""


def metadata(data):
    """Every (name, int32 values) of the file's metadata, read by the schema's accessors."""
    model = tflite.Model.GetRootAs(data, 0)
    buffers = []
    for i in range(model.MetadataLength()):
        entry = model.Metadata(i)
        raw = model.Buffers(entry.Buffer()).DataAsNumpy()
        buffers.append((entry.Name().decode(), raw))
    return buffers


def offsets_of(data):
    ((_, raw),) = [m for m in metadata(data) if m[0] == "OfflineMemoryAllocation"]
    values = struct.unpack(f"<{len(raw) // 4}i", raw.tobytes())
    assert values[1:3] == (1, len(values) - 3)
    return values[3:]


@settings(derandomize=True, deadline=None, max_examples=20)
@given(small_networks(max_blocks=4))
def test_no_two_tensors_that_are_live_together_share_a_byte(graph):
    data = write_model(graph)
    written, allocation = write_plan_into_file(data)
    file = FlatFile(written)
    offsets = offsets_of(written)
    assert offsets == allocation.offsets and len(offsets) == file.tensor_count
    for position, op in enumerate(file.operators):
        later = {t for o in file.operators[position:] for t in o.inputs}
        made = {t for o in file.operators[: position + 1] for t in o.outputs} | set(file.inputs)
        live = {t for t in made & (later | set(file.outputs) | set(op.outputs)) if t >= 0}
        spans = []
        for t in live:
            size = (
                file.tensor(t).elements
                * {"int8": 1, "uint8": 1, "int32": 4, "float32": 4}[file.tensor(t).dtype]
            )
            assert offsets[t] >= 0 and offsets[t] % 16 == 0 and offsets[t] + size <= allocation.height
            spans.append((offsets[t], offsets[t] + size))
        spans.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
    constants = [t for t in range(file.tensor_count) if file.tensor(t).is_constant]
    assert all(offsets[t] == -1 for t in constants)


@settings(derandomize=True, deadline=None, max_examples=10)
@given(small_networks(max_blocks=3))
def test_the_network_in_the_file_stays_the_same(graph):
    data = write_model(graph)
    written, _ = write_plan_into_file(data)
    assert written.endswith(data) and (len(written) - len(data)) % 16 == 0
    before, after = read_model(data), read_model(written)
    assert [t.name for t in before.tensors] == [t.name for t in after.tensors]
    draw = np.random.default_rng(3)
    values = [
        draw.integers(-100, 100, graph.tensors[t].shape).astype(graph.tensors[t].dtype.value)
        for t in graph.inputs
    ]
    one, other = run(data, values), run(written, values)
    assert all(one[t].tobytes() == other[t].tobytes() for t in one)


def test_a_plan_that_is_there_already_is_replaced():
    once, _ = write_plan_into_file(zoo.build("ds_cnn"))
    twice, _ = write_plan_into_file(once)
    assert offsets_of(twice) == offsets_of(once)
    assert len(metadata(twice)) == 1


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0xFFFFFFFF, "4294967295 metadata entries does not fit in the file"),  # -1 as an unsigned number
        (0x80000000, "2147483648 metadata entries does not fit in the file"),
        (257, "257 metadata entries, more than 256"),
    ],
)
def test_a_metadata_vector_of_a_wrong_length_is_refused(count, words):
    data = bytearray(with_offsets(zoo.build("ds_cnn"), []))
    table = tflite.Model.GetRootAs(data, 0)._tab
    struct.pack_into("<I", data, table.Vector(table.Offset(16)) - 4, count)  # 16: Model.metadata
    with pytest.raises(ModelError, match=words):
        with_offsets(bytes(data), [])


def test_damaged_bytes_give_a_file_or_an_error():
    data = write_plan_into_file(zoo.build("ds_cnn"))[0]
    draw = np.random.default_rng(7)
    refused = 0
    for _ in range(150):
        broken = bytearray(data)
        for _ in range(4):
            broken[draw.integers(0, 900)] = draw.integers(0, 256)
        try:
            write_plan_into_file(bytes(broken))
        except BuildtoolError:
            refused += 1
    assert refused > 30


def test_the_command_writes_the_file_and_says_what_it_needs(tmp_path, capsys):
    file = tmp_path / "out" / "planned.tflite"
    assert cli.run(["plan", "ds_cnn", "--emit", "tflm", "--out", str(file)]) == 0
    assert "16,000 bytes (no placement needs less)" in capsys.readouterr().out
    assert file.read_bytes() == write_plan_into_file(zoo.build("ds_cnn"))[0]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--emit", "tflm"], "--emit needs --out"),
        (
            ["--emit", "tflm", "-o", "x", "-b", "host"],
            "--board has no effect with --emit",
        ),
        (["--emit", "tflite", "-o", "x"], "unknown emit 'tflite'"),
        (["--emit", "tflm", "-o", "x", "--buffers"], "--buffers has no effect with --emit"),
        ([], "the following arguments are required: -b/--board"),
    ],
)
def test_the_command_refuses_what_does_not_go_together(arguments, says, capsys):
    assert cli.run(["plan", "ds_cnn", *arguments]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "stock", "planned"),
    [("mlperf_vww96", 73_728, 55_296), ("mcunet_320k_imagenet", 416_832, 397_920)],
)
def test_stock_tflm_needs_less_memory_and_computes_the_same(name, stock, planned, tmp_path):
    needs_package("tflite_micro")
    model = needs_shared(f"models/{name}.tflite")
    file = tmp_path / "planned.tflite"
    answer = handle({"kind": "tflm", "model": str(model)})
    file.write_bytes(answer["files"][f"{name}.tflite"])
    before, after = run_tflm(model), run_tflm(file)
    assert (before[0], after[0]) == (stock, planned)
    assert answer["arena_bytes"] == planned
    assert before[1] == after[1]


def run_tflm(model):
    """(bytes of the arena's head, output) of TFLM's own interpreter, run in a separate process."""
    command = [sys.executable, "-c", RUN_TFLM, str(model)]
    process = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    head = re.search(r"Arena allocation head (\d+) bytes", process.stdout + process.stderr)
    output = re.search(r"OUTPUT ([0-9a-f]+)", process.stdout)
    return int(head[1]), output[1]


def test_a_fault_of_the_program_is_not_reported_as_a_damaged_file(monkeypatch):
    def fail(*_given):
        raise AttributeError("a fault of the program")

    monkeypatch.setattr(tflm, "validate", fail)
    with pytest.raises(AttributeError, match="a fault of the program"):
        write_plan_into_file(zoo.build("ds_cnn"))
