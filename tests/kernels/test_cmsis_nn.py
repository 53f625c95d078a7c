"""CMSIS-NN in place of our kernels: adapters, packing and build, with a stand-in that has its interface.

The stand-in (tests/support/cmsis_nn) computes in plain C what the library documents. It needs as much scratch
as the library, and overwrites all of it. With CMSIS_NN_PATH set to a checkout, the tests also run with the
real library.
"""

import dataclasses
import itertools
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from buildtool_plugins.cortex_m.cmsis_nn import HEADERS, cmsis_nn, sizes
from cbuilds import BUILDS, WARNINGS
from everyop import every_operator
from kernelboard import Call, Firmware, Memory
from needs import needs_tool
from paths import TESTS

from buildtool.api import handle
from buildtool.base.errors import PlanError, ToolError, UsageError
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import OpKind
from buildtool.plan.check.check import check
from buildtool.plan.choose.limits import Limits
from buildtool.plan.choose.selection import best_plan
from buildtool.plan.codec import from_bytes
from buildtool.plan.search.front import Settings, front
from buildtool.target.catalogue import scratch_bytes, select, select_all
from buildtool.target.digest import planning_digest
from buildtool.target.kernels import kernels_root
from buildtool.target.registry import load_board, load_target, make_target, toolchain
from buildtool.zoo import build
from buildtool.zoo.drawn import NetBuilder

STAND_IN = str(TESTS / "support/cmsis_nn")
REAL = os.environ.get("CMSIS_NN_PATH")
LIBRARIES = [pytest.param(STAND_IN, id="stand-in"), *([pytest.param(REAL, id="real")] if REAL else [])]
KINDS = {"conv2d", "depthwise_conv2d", "add", "mul", "avg_pool", "max_pool", "softmax"}
BOARDS = ["cortex-m4", "cortex-m55"]
ADAPTERS = sorted((kernels_root() / "cortex_m_cmsis_nn").glob("*.c"))


def validate(model, board, library, options=(), **fields):
    request = {"kind": "validate", "model": str(model), "board": board, "reference": "litert", **fields}
    return handle({**request, "cmsis_nn": library, "tensors": True, "options": dict(options)})


def exact(*words, **fields):
    answer = validate(*words, **fields)
    assert answer["exact"], answer["first_difference"]


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_operator_equals_the_reference(library, tmp_path):
    """On the core with the most code paths; `test_what_computes_whole_tensors_only...` runs on the other."""
    board = "cortex-m55"
    model = tmp_path / "every.tflite"
    model.write_bytes(write_model(every_operator()))
    exact(model, board, library, inputs=2)
    request = {"kind": "emit", "model": str(model), "board": board, "cmsis_nn": library}
    adapters = {Path(source).name for source in handle(request)["kernel_sources"] if "cmsis_nn" in source}
    assert adapters == {f"nn_{kind}_s8_cmsis_nn.c" for kind in KINDS}


@pytest.mark.parametrize("build", ["gcc cortex-m4", "clang cortex-m4", "gcc cortex-m55", "clang cortex-m55"])
def test_the_adapters_compile_without_a_warning(build):
    compiler, *flags = BUILDS[build]
    includes = [f"-I{kernels_root() / 'include'}", "-isystem", f"{STAND_IN}/Include"]
    command = [needs_tool(compiler), *flags, *WARNINGS, "-fsyntax-only", *includes]
    subprocess.run([*command, *map(str, ADAPTERS)], check=True)


# ---- scratch -------------------------------------------------------------------------------------

TWINS = {
    "conv": "nn_conv2d_s8_cmsis_nn_scratch_bytes",
    "depthwise": "nn_depthwise_conv2d_s8_cmsis_nn_scratch_bytes",
    "avg_pool": "nn_avg_pool_s8_cmsis_nn_scratch_bytes",
}
# kernel rows and columns, stride, pad above and left, dilation, input rows, channels, multiplier
VALUES = ((1, 3), (1, 3, 4), (1, 2), (0, 1), (0, 2), (1, 2), (1, 8), (2, 3, 8), (1, 2))
# Every eleventh of all combinations, so that any values of any four dimensions are combined.
SHAPES = [shape for shape in list(itertools.product(*VALUES))[::11] if shape[0] <= shape[6] + shape[3]]


def firmware(board, library):
    """Compiles the adapters and the library for a board."""
    used_library = cmsis_nn(load_board(board), library)
    needed = [kernels_root() / "reference" / f"nn_{kind}_s8.c" for kind in ("add", "mul")]
    files = (*ADAPTERS, *needed, *map(Path, used_library.sources))
    return Firmware(board, "clang", files, tuple(TWINS.values()), used_library.cflags)


def geometry(shape):
    """Returns the values that a plan has for one shape."""
    kh, kw, stride, top, left, dilation, rows, channels, multiplier = shape
    return {
        **{"kh": kh, "kw": kw, "sh": stride, "sw": stride, "dh": dilation, "dw": dilation},
        **{"pt": top, "pl": left, "ih": rows, "iw": 9, "cin": channels},
        **{"oh": 7, "ow": 5, "cout": channels * multiplier, "multiplier": multiplier},
    }


def size_calls(values):
    """Yields the calls of the adapters' three size functions for one shape."""
    memory = Memory()
    conv = [values[name] for name in ("kh", "kw", "sh", "sw", "dh", "dw", "pt", "pl", "multiplier")]
    pool = [values[name] for name in ("kh", "kw", "sh", "sw", "pt", "pl")]
    no_data = (0, 0, 0, 0, 0, 0)
    source = memory.words(*no_data, values["ih"], values["iw"], values["cin"])
    result = memory.words(*no_data, values["oh"], values["ow"], values["cout"])
    for question, words in (("conv", conv), ("depthwise", conv), ("avg_pool", pool)):
        yield Call(TWINS[question], (memory.words(*words), source, result), memory)


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("board", [BOARDS[0], pytest.param(BOARDS[1], marks=pytest.mark.slow)])
def test_the_planner_gets_the_answer_that_the_board_gets(library, board):
    """The library's functions give the same sizes on this machine and in the firmware."""
    planned = cmsis_nn(load_board(board), library)
    calls, answers = [], []
    for values in map(geometry, SHAPES):
        calls += size_calls(values)
        answers += [planned.ask(question, values) for question in TWINS]
    expected = [one.result for one in firmware(board, library).run(calls)]
    # A size that depends on the board's compiler may be smaller on the board.
    assert all(answer >= want for answer, want in zip(answers, expected, strict=True))
    assert library != STAND_IN or answers == expected
    assert len(set(answers)) > 10


def changed_copy(folder, old, new):
    """Makes a changed copy of the stand-in."""
    shutil.copytree(STAND_IN, folder)
    (path,) = folder.rglob("*get_buffer_sizes_s8.c")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return str(folder)


def conv_scratch(library, board="cortex-m55"):
    """Returns the planner's scratch for a convolution of 3x3x5 taps, and the target's digest."""
    target = load_target(board, {"cmsis_nn": library})
    net = NetBuilder(1)
    graph = net.graph([net.conv(net.input((1, 8, 8, 5)), 4, kernel=(3, 3))])
    return scratch_bytes(select(target, graph, graph.ops[0]), graph, graph.ops[0]), planning_digest(target)


@pytest.mark.slow
def test_a_version_that_wants_more_gets_more_and_is_another_target(tmp_path):
    """Version 6 of the library rounds the taps up to a multiple of 16, version 5 to one of 8."""
    unchanged = conv_scratch(STAND_IN)
    older = conv_scratch(changed_copy(tmp_path / "older", "((taps + 15) / 16) * 16", "((taps + 7) / 8) * 8"))
    newer = conv_scratch(changed_copy(tmp_path / "newer", "((taps + 15) / 16) * 16", "taps + 1000"))
    assert (older[0], unchanged[0], newer[0]) == (4 * 48, 4 * 48, 4 * 45 + 1000)
    assert len({unchanged[1], older[1], newer[1]}) == 3
    copy = shutil.copytree(STAND_IN, tmp_path / "moved")
    assert conv_scratch(str(copy)) == unchanged


def test_what_the_library_reads_is_a_dependency_of_what_is_emitted(tmp_path):
    copy = shutil.copytree(STAND_IN, tmp_path / "copy")
    request = {"kind": "describe", "board": "cortex-m55", "model": "ds_cnn", "cmsis_nn": str(copy)}
    answer = handle(request)
    roots = answer["roots"]
    depends = {Path(roots.get(place["root"], ""), place["path"]) for place in answer["depends"]}
    (sizes,) = copy.rglob("*get_buffer_sizes_s8.c")
    assert {sizes, *(copy / name for name in HEADERS)} <= depends


def rows_of_one(count, seed):
    """A network of convolutions on images of one row, for which a library may have its own kernels."""
    rng, net = random.Random(seed), NetBuilder(seed)
    outputs = []
    for _ in range(count):
        width, channels = rng.choice((5, 9, 12)), rng.choice((1, 2, 4, 5))
        kernel, stride = rng.choice((1, 2, 3, 5)), rng.choice((1, 2, 3, 4))
        x = net.input((1, 1, width, channels))
        left, right = rng.choice(((0, 0), (0, 0), (0, 2), (2, 0), (1, 3)))
        if left or right:
            x = net.pad(x, ((0, 0), (0, 0), (left, right), (0, 0)))
        same = not (left or right) and rng.random() < 0.5
        outputs.append(net.conv(x, rng.choice((1, 4, 6)), kernel=(1, kernel), stride=(1, stride), same=same))
    return net.graph(outputs)


def padded_row():
    net = NetBuilder(2)
    x = net.pad(net.input((1, 1, 9, 4)), ((0, 0), (1, 1), (0, 0), (0, 0)))
    return net.graph([net.conv(x, 4, kernel=(1, 3))])


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
def test_images_of_one_row_are_exact(library, tmp_path):
    """The library's kernel for them always computes one row, and does not support every padding."""
    for graph in (rows_of_one(24, 5), padded_row()):
        model = tmp_path / "rows.tflite"
        model.write_bytes(write_model(graph))
        exact(model, "cortex-m55", library, inputs=1)


def test_a_library_that_cannot_be_asked_is_an_error(tmp_path):
    copy = Path(changed_copy(tmp_path / "broken", "static int is_1x1", "static int is_1x1 nonsense"))
    with pytest.raises(ToolError, match="CMSIS-NN's code for scratch sizes does not compile") as caught:
        conv_scratch(str(copy))
    assert caught.value.path == str(copy)
    (path,) = copy.rglob("*get_buffer_sizes_s8.c")
    path.unlink()
    with pytest.raises(UsageError, match="has no functions for scratch sizes") as caught:
        conv_scratch(str(copy))
    assert "5.0.0" in caught.value.hint


@pytest.mark.slow
def test_a_library_that_changes_behind_a_plan_stops_with_what_was_wanted(tmp_path, monkeypatch):
    """Code emitted for one version and compiled with another never stores beyond the scratch."""
    copy = shutil.copytree(STAND_IN, tmp_path / "copy")
    model = tmp_path / "conv.tflite"
    net = NetBuilder(1)
    model.write_bytes(write_model(net.graph([net.conv(net.input((1, 8, 8, 5)), 4, kernel=(3, 3))])))
    functions = sizes(copy, (copy / "Include",), mve=True)
    (path,) = copy.rglob("*get_buffer_sizes_s8.c")
    path.write_text(path.read_text().replace("((taps + 15) / 16) * 16", "taps + 1000"))
    monkeypatch.setattr("buildtool_plugins.cortex_m.cmsis_nn.sizes", lambda *_, **__: functions)
    monkeypatch.setattr("buildtool_plugins.cortex_m.cmsis_nn._run_size_function", lambda *_: 192)
    with pytest.raises(ToolError) as caught:
        validate(model, "cortex-m55", str(copy))
    assert "bytes of scratch of CMSIS-NN: 1180 wanted, 192 given" in caught.value.text
    assert "CONV_2D" in caught.value.operator
    assert "conv2d_cmsis_nn" in caught.value.text


# ---- mistakes ------------------------------------------------------------------------------------


def test_only_cores_with_adapters_take_it():
    for name in ("host", "qemu-virt-rv32v", "xcore"):
        with pytest.raises(UsageError, match=f"board '{name}' cannot use a library 'cmsis_nn'"):
            load_target(name, {"cmsis_nn": STAND_IN})
    board = load_board("cortex-m4")
    bare = dataclasses.replace(board, core=dataclasses.replace(board.core, families=("reference",)))
    with pytest.raises(UsageError, match="CMSIS-NN has no kernels for the core of 'cortex-m4'"):
        make_target(bare, {"cmsis_nn": STAND_IN})
    with pytest.raises(UsageError, match="cannot use a library 'cmsis'") as caught:
        load_target("cortex-m4", {"cmsis": STAND_IN})
    assert caught.value.hint == "did you mean 'cmsis_nn'?"


@pytest.mark.parametrize("missing", ["Include/arm_nnfunctions.h", "Source"])
def test_a_folder_without_the_library_is_an_error(missing, tmp_path):
    for name in ("Include/arm_nnfunctions.h", "Include/arm_nn_types.h", "Source/x_s8.c"):
        if not name.startswith(missing):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).touch()
    with pytest.raises(UsageError, match=f"not a checkout of CMSIS-NN: it has no .*{missing}"):
        load_target("cortex-m4", {"cmsis_nn": str(tmp_path)})


def test_sources_of_other_types_are_left_alone(tmp_path):
    names = {
        "ConvolutionFunctions/arm_convolve_s8.c": True,
        "ConvolutionFunctions/arm_convolve_f16.c": False,
        "ConvolutionFunctions/arm_convolve_s16.c": False,
        "NNSupportFunctions/arm_q7_to_q15_with_offset.c": True,
        "NNSupportFunctions/arm_nn_conv1d_k3_f32.c": False,
        "LSTMFunctions/arm_lstm_unidirectional_s8.c": False,
        "ConvolutionFunctions/arm_convolve_get_buffer_sizes_s8.c": True,
    }
    for name in (*(f"Source/{name}" for name in names), *HEADERS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    target = load_target("cortex-m4", {"cmsis_nn": str(tmp_path)})
    tools = toolchain(target, "")
    compiled = {name for name in names if str(tmp_path / "Source" / name) in tools.objects}
    assert compiled == {name for name, wanted in names.items() if wanted}
    plain = toolchain(load_target("cortex-m4"), "")
    assert tools.objects[: len(plain.objects)] == plain.objects
    assert str(tmp_path / "Include") in tools.cflags and str(tmp_path / "Include") not in plain.cflags


# ---- a variant of the target ---------------------------------------------------------------------


def test_the_target_s_kernels_come_before_all_others_and_its_digest_tells_it_apart():
    plain, target = load_target("cortex-m4"), load_target("cortex-m4", {"cmsis_nn": STAND_IN})
    assert target.kernels[-len(plain.kernels) :] == plain.kernels
    assert {k.name.rpartition("_cmsis")[2] for k in target.kernels[: -len(plain.kernels)]} == {"_nn"}
    assert planning_digest(target) != planning_digest(plain)


@pytest.mark.slow
def test_what_computes_whole_tensors_only_is_in_no_streamed_region(tmp_path):
    """The others may be in one: here a convolution with groups, a table and a mean."""
    net = NetBuilder(3)
    x = net.pool(OpKind.MAX_POOL_2D, net.input((1, 32, 32, 2)), (2, 2), (2, 2))
    x = net.conv(x, 32, kernel=(3, 3), same=True, groups=2)
    x = net.mean(net.unary(OpKind.TANH, x), keep_dims=True)
    x = net.conv(x, 6)
    model = tmp_path / "mixed.tflite"
    model.write_bytes(write_model(net.graph([net.dense(net.flatten(x), 4)])))
    exact(model, "cortex-m4", STAND_IN, options={"objective": "ram"})
    request = {"kind": "plan", "model": str(model), "board": "cortex-m4", "cmsis_nn": STAND_IN}
    plan = from_bytes(handle({**request, "options": {"objective": "ram"}})["plan"])
    streamed = {plan.kernels[op] for region in plan.regions if region.is_streamed for op in region.ops}
    assert streamed and not any("cmsis" in name for name in streamed)
    assert any("cmsis" in name for name in plan.kernels)


def test_a_plan_that_runs_them_row_by_row_is_refused():
    graph = rewrite(read_model(build("ds_cnn")))
    plain, target = load_target("cortex-m4"), load_target("cortex-m4", {"cmsis_nn": STAND_IN})
    streamed = best_plan(front(graph, plain, Settings()), Limits(1 << 30, None, None, "ram"))
    assert any(region.is_streamed for region in streamed.regions)
    names = tuple(k.name if k else "" for k in select_all(target, graph))
    changed = dataclasses.replace(streamed, kernels=names, target=planning_digest(target))
    with pytest.raises(PlanError, match="computes whole tensors only") as caught:
        check(changed, graph, target)
    assert "CONV_2D" in caught.value.operator
