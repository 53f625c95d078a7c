"""CMSIS-NN in place of our kernels: adapters, packing and build, against a stand-in with its interface.

The stand-in (tests/support/cmsis_nn) computes in plain C what the library documents, wants as much
scratch, and spoils it. With CMSIS_NN_PATH set to a checkout, the real library takes the same tests.
"""

import dataclasses
import itertools
import os
import subprocess
from pathlib import Path

import pytest
from buildtool_plugins.cortex_m.cmsis_nn import FAMILIES, HEADERS, cmsis_nn
from cbuilds import BUILDS, WARNINGS
from everyop import every_operator
from kernelboard import Call, Firmware, Memory
from needs import needs_tool
from netbuilder import NetBuilder
from paths import TESTS

from buildtool.errors import PlanError, UsageError
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import OpKind
from buildtool.plan.check.check import check
from buildtool.plan.codec import from_bytes
from buildtool.plan.search.choose import Limits, best_plan
from buildtool.plan.search.front import Settings
from buildtool.service import handle
from buildtool.target.catalogue import select_all
from buildtool.target.digest import planning_digest
from buildtool.target.expression import evaluate
from buildtool.target.family import load_family
from buildtool.target.kernels import kernels_root
from buildtool.target.registry import load_board, load_target, make_target, toolchain
from buildtool.zoo import build

STAND_IN = str(TESTS / "support/cmsis_nn")
REAL = os.environ.get("CMSIS_NN_PATH")
LIBRARIES = [pytest.param(STAND_IN, id="stand-in"), *([pytest.param(REAL, id="real")] if REAL else [])]
KINDS = {"conv2d", "depthwise_conv2d", "add", "mul", "avg_pool", "max_pool", "softmax"}
BOARDS = ["cortex-m4", "cortex-m55"]
ADAPTERS = sorted((kernels_root() / "cortex_m_cmsis_nn").glob("*.c"))


def validate(model, board, library, options=(), **fields):
    request = {"kind": "validate", "model": str(model), "board": board, "reference": "litert", **fields}
    return handle({**request, "cmsis_nn": library, "tensors": True, "options": dict(options)})


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("board", BOARDS)
def test_every_operator_equals_the_reference(library, board, tmp_path):
    model = tmp_path / "every.tflite"
    model.write_bytes(write_model(every_operator()))
    answer = validate(model, board, library, inputs=2)
    assert answer["exact"], answer["first_difference"]
    request = {"kind": "emit", "model": str(model), "board": board, "cmsis_nn": library}
    used = {Path(source).name for source in handle(request)["kernel_sources"] if "cmsis_nn" in source}
    assert used == {f"nn_{kind}_s8_cmsis_nn.c" for kind in KINDS}


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("board", "toolchain", "model"),
    [("cortex-m4", "gcc", "resnet8"), ("cortex-m4", "clang", "ds_cnn"), ("cortex-m55", "gcc", "ds_cnn")],
)
def test_networks_equal_the_reference(library, board, toolchain, model):
    answer = validate(model, board, library, toolchain=toolchain)
    assert answer["exact"], answer["first_difference"]


@pytest.mark.parametrize("build", ["gcc cortex-m4", "clang cortex-m4", "gcc cortex-m55", "clang cortex-m55"])
def test_the_adapters_compile_without_a_warning(build):
    compiler, *flags = BUILDS[build]
    includes = [f"-I{kernels_root() / 'include'}", "-isystem", f"{STAND_IN}/Include"]
    command = [needs_tool(compiler), *flags, *WARNINGS, "-fsyntax-only", *includes]
    subprocess.run([*command, *map(str, ADAPTERS)], check=True)


def test_the_c_is_formatted():
    files = [*ADAPTERS, *kernels_root().glob("cortex_m_cmsis_nn/*.h"), *Path(STAND_IN).glob("*/*.[ch]")]
    subprocess.run([needs_tool("clang-format"), "--dry-run", "--Werror", *map(str, files)], check=True)


# ---- scratch -------------------------------------------------------------------------------------

CONV = "arm_convolve_wrapper_s8_get_buffer_size"
DEPTHWISE = "arm_depthwise_conv_wrapper_s8_get_buffer_size"
POOL = "arm_avgpool_s8_get_buffer_size"
# kernel rows and columns, stride, pad above and left, dilation, input rows, channels, multiplier
VALUES = ((1, 3), (1, 3, 4), (1, 2), (0, 1), (0, 2), (1, 2), (1, 8), (2, 3, 8), (1, 2))
# Every fifth of all combinations: four values of any four dimensions come together.
SHAPES = [shape for shape in list(itertools.product(*VALUES))[::5] if shape[0] <= shape[6] + shape[3]]


def firmware(board, library):
    found = cmsis_nn(load_board(board), library)
    return Firmware(board, "clang", tuple(map(Path, found.sources)), (CONV, DEPTHWISE, POOL), found.cflags)


def size_calls(shape):
    """The three questions about one shape."""
    kh, kw, stride, top, left, dilation, rows, channels, multiplier = shape
    memory = Memory()
    tiles = (stride, stride, left, top, dilation, dilation, -128, 127)  # width before height
    source = memory.words(1, rows, 9, channels)
    made = memory.words(1, 7, 5, channels * multiplier)
    conv, filters = memory.words(128, 0, *tiles), memory.words(channels * multiplier, kh, kw, channels)
    dense, depth = memory.words(128, 0, multiplier, *tiles), memory.words(1, kh, kw, channels * multiplier)
    yield Call(CONV, (conv, source, filters, made), memory)
    yield Call(DEPTHWISE, (dense, source, depth, made), memory)
    yield Call(POOL, (5, channels), memory)


def formulas(board):
    """Scratch of the three operators, as the board's adapters have it in their catalogue."""
    (family,) = {FAMILIES[f] for f in load_board(board).core.families if f in FAMILIES}
    catalogue = load_family(kernels_root() / family).kernels
    found = {variant.op: variant.scratch for variant in catalogue}
    return [found[op] for op in ("CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D")]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("board", [BOARDS[0], pytest.param(BOARDS[1], marks=pytest.mark.slow)])
def test_the_catalogues_scratch_is_what_the_library_asks_for(library, board):
    names = ("kh", "kw", "sw", "pt", "pl", "dh", "ih", "cin", "multiplier")
    calls, wanted = [], []
    for shape in SHAPES:
        known = dict(zip(names, shape, strict=True))
        known |= {"dw": known["dh"], "sh": known["sw"]}
        calls += size_calls(shape)
        wanted += [evaluate(formula, known) for formula in formulas(board)]
    done = firmware(board, library).run(calls)
    assert [one.result for one in done] == wanted
    assert len(set(wanted)) > 10


# ---- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("board", ["host", "qemu-virt-rv32v", "xcore"])
def test_only_cortex_m_boards_take_it(board):
    with pytest.raises(UsageError, match=f"board '{board}' can use no library 'cmsis_nn'"):
        load_target(board, {"cmsis_nn": STAND_IN})


def test_a_core_without_adapters_does_not_take_it():
    board = load_board("cortex-m4")
    bare = dataclasses.replace(board, core=dataclasses.replace(board.core, families=("reference",)))
    with pytest.raises(UsageError, match="CMSIS-NN has no kernels for the core of 'cortex-m4'"):
        make_target(bare, {"cmsis_nn": STAND_IN})


def test_an_unknown_library_is_an_error_that_names_the_known_one():
    with pytest.raises(UsageError, match="can use no library 'cmsis'") as caught:
        load_target("cortex-m4", {"cmsis": STAND_IN})
    assert caught.value.hint == "did you mean 'cmsis_nn'?"


@pytest.mark.parametrize("missing", ["Include/arm_nnfunctions.h", "Source"])
def test_a_folder_without_the_library_is_an_error(missing, tmp_path):
    for name in ("Include/arm_nnfunctions.h", "Include/arm_nn_types.h", "Source/x_s8.c"):
        if not name.startswith(missing):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).touch()
    with pytest.raises(UsageError, match=f"no checkout of CMSIS-NN: it has no .*{missing}"):
        load_target("cortex-m4", {"cmsis_nn": str(tmp_path)})


def test_sources_of_other_types_are_left_alone(tmp_path):
    names = {
        "ConvolutionFunctions/arm_convolve_s8.c": True,
        "ConvolutionFunctions/arm_convolve_f16.c": False,
        "ConvolutionFunctions/arm_convolve_s16.c": False,
        "NNSupportFunctions/arm_q7_to_q15_with_offset.c": True,
        "NNSupportFunctions/arm_nn_conv1d_k3_f32.c": False,
        "LSTMFunctions/arm_lstm_unidirectional_s8.c": False,
    }
    for name in (*(f"Source/{name}" for name in names), *HEADERS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    target = load_target("cortex-m4", {"cmsis_nn": str(tmp_path)})
    tools = toolchain(target, "")
    taken = {name for name in names if str(tmp_path / "Source" / name) in tools.objects}
    assert taken == {name for name, wanted in names.items() if wanted}
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
    """The others may be: here a depthwise convolution of one channel, a table and a mean."""
    net = NetBuilder(3)
    x = net.pool(OpKind.MAX_POOL_2D, net.input((1, 32, 32, 1)), (2, 2), (2, 2))
    x = net.conv(x, 0, kernel=(3, 3), same=True, depth_multiplier=16)
    x = net.mean(net.unary(OpKind.TANH, x), keep_dims=True)
    x = net.conv(x, 6)
    model = tmp_path / "mixed.tflite"
    model.write_bytes(write_model(net.graph([net.dense(net.flatten(x), 4)])))
    answer = validate(model, "cortex-m4", STAND_IN, options={"objective": "ram"})
    assert answer["exact"], answer["first_difference"]
    request = {"kind": "plan", "model": str(model), "board": "cortex-m4", "cmsis_nn": STAND_IN}
    plan = from_bytes(handle({**request, "options": {"objective": "ram"}})["plan"])
    streamed = {plan.kernels[op] for region in plan.regions if region.is_streamed for op in region.ops}
    assert streamed and not any("cmsis" in name for name in streamed)
    assert any("cmsis" in name for name in plan.kernels)


def test_a_plan_that_runs_them_row_by_row_is_refused():
    graph = rewrite(read_model(build("ds_cnn")))
    plain, target = load_target("cortex-m4"), load_target("cortex-m4", {"cmsis_nn": STAND_IN})
    streamed = best_plan(graph, plain, Settings(), Limits(1 << 30, None, None, "ram"))
    assert any(region.is_streamed for region in streamed.regions)
    names = tuple(k.name if k else "" for k in select_all(target, graph))
    changed = dataclasses.replace(streamed, kernels=names, target=planning_digest(target))
    with pytest.raises(PlanError, match="computes whole tensors only") as caught:
        check(changed, graph, target)
    assert "CONV_2D" in caught.value.operator
