"""Emitted files: no compiler warns about them, they do not depend on this machine, they are reproducible."""

import functools
import os
import re
import subprocess
import sys

import pytest
from cbuilds import BUILDS, WARNINGS
from everyop import every_operator
from namednets import channel_moves
from needs import needs_tool
from paths import ROOT
from yolonets import yolo_v5

from buildtool.base.modes import Guards
from buildtool.emit.golden import NO_CHECKS, Checks, Golden
from buildtool.emit.sources import emit
from buildtool.firmware.firmware import write_files
from buildtool.graph.rewrite import rewrite
from buildtool.graph.tflite.reader import read_model
from buildtool.graph.tflite.writer import write_model
from buildtool.options.values import PlanOptions
from buildtool.plan.assemble.layerwise import plan
from buildtool.plan.choose.choose import make_plan
from buildtool.plan.search.front import Settings, front
from buildtool.target.kernels import kernel_includes
from buildtool.target.registry import load_target
from buildtool.zoo import build
from buildtool.zoo.drawn import NetBuilder

TARGET = load_target("cortex-m4")
INCLUDES = [f"-I{folder}" for folder in kernel_includes(TARGET)]
NETWORKS = ("ds_cnn", "resnet8", "mobilenetv2:size=32,alpha=0.35,classes=10")


def compiled(compiler, folder, *words):
    """Runs a compiler that only checks the syntax."""
    command = [needs_tool(compiler), *words, "-fsyntax-only", *INCLUDES, f"-I{folder}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def emitted(graph, name="net", checks=NO_CHECKS, **options):
    graph = rewrite(graph)
    return emit(graph, plan(graph, TARGET, **options), TARGET, name, checks=checks)


def checked(name="net"):
    """Returns a network with all checks, and a golden input of its own."""
    golden = Golden(0, bytes(range(18)), 7)
    return emitted(one_operator(), name, Checks(Guards.INVOKE, golden))


@functools.cache
def zoo(spec):
    return emitted(read_model(build(spec)))


def one_operator():
    net = NetBuilder(0)
    return net.graph([net.conv(net.input((2, 3, 3, 1)), 1)])


@functools.cache
def three_networks():
    """Returns the C files of three networks by name, and an application's C file for each."""
    every = {"every": every_operator(), "batched": every_operator(1, 2)}
    networks = {name: emitted(graph, name) for name, graph in every.items()} | {"one": checked("one")}
    files = {}
    for name, sources in networks.items():
        files |= sources.files
        user = USER.replace("NAME", name.upper()).replace("name", name)
        files[f"{name}_user.c"] = user.encode()
    return files


@pytest.mark.parametrize("build_name", BUILDS)
def test_emitted_c_compiles_without_a_warning(build_name, tmp_path):
    compiler, *flags = BUILDS[build_name]
    write_files(three_networks(), tmp_path)
    sources = sorted(str(path) for path in tmp_path.glob("*.c"))
    assert len(sources) == 6
    for extra in ((), ("-DNN_TRACE",)):
        process = compiled(compiler, tmp_path, *flags, *WARNINGS, *extra, "-O1", *sources)
        assert process.returncode == 0, process.stderr


USER = """\
/* What an application may write. */
#include "name.h"
#include "name_quantization.h"

NAME_DEFINE_ARENA(plain);
NAME_DEFINE_ARENA_IN(placed, ".bss.nn_arena.name");
NAME_CHECK_ARENA(plain);
NAME_CHECK_ARENA(placed);

static const int32_t shape[] = NAME_INPUT0_SHAPE;

nn_status run(int again);
nn_status run(int again) {
    NAME_CHECK_ARENA(plain);
    const float scale = NAME_INPUT0_SCALE;
    const int32_t zero_point = NAME_OUTPUT0_ZERO_POINT;
    const nn_status status =
        again ? name_init(placed, sizeof placed, name_weights) : name_init(plain, sizeof plain, name_weights);
    name_input(0)[NAME_INPUT0_BYTES - 1] = (int8_t)(shape[0] + (int32_t)scale + zero_point);
    return status == NN_OK ? name_invoke() : status;
}
"""


def test_an_arena_that_is_too_small_does_not_compile(tmp_path):
    sources = emitted(one_operator())
    write_files(sources.files, tmp_path)
    text = '#include "net.h"\nstatic char arena[NET_ARENA_BYTES - 1];\nNET_CHECK_ARENA(arena);\n'
    for number, standard in enumerate(("-std=c99", "-std=c11")):
        for compiler in ("gcc", "clang"):
            bad, good = (tmp_path / f"{word}{number}{compiler}.c" for word in ("bad", "good"))
            bad.write_text(text)
            good.write_text(text.replace(" - 1", ""))
            assert compiled(compiler, tmp_path, standard, str(bad)).returncode != 0
            assert compiled(compiler, tmp_path, standard, str(good)).returncode == 0


def streamed(spec):
    graph = rewrite(read_model(build(spec)))
    new_plan = make_plan(graph, TARGET, PlanOptions(objective="ram", image="stream"))
    assert any(region.is_streamed for region in new_plan.regions)
    return emit(graph, new_plan, TARGET, "net")


STREAMED_USER = """\
#include "net.h"

NET_DEFINE_ARENA(arena);
static int8_t camera[NET_ROWS][NET_ROW_BYTES];

static int deliver(void *context, int32_t row, int8_t *data) {
    (void)context;
    for (int i = 0; i < NET_ROW_BYTES; i++) {
        data[i] = camera[row][i];
    }
    return 0;
}

int main(void) {
    NN_STATIC_ASSERT(NET_ROWS * NET_ROW_BYTES == NET_INPUT0_BYTES, "an image is its rows");
    net_set_row_source(deliver, NULL);
    WRITE
    return net_init(arena, sizeof arena, net_weights) == NN_OK ? (int)net_invoke() : 1;
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_streamed_image_has_no_place_to_write_to(compiler, tmp_path):
    """The function would return NULL, so it is not declared: a program that calls it does not compile."""
    write_files(streamed("ds_cnn").files, tmp_path)
    processes = {}
    for name, line in (("rows", ""), ("whole", "net_input(0)[0] = 1;")):
        source = tmp_path / f"{name}.c"
        source.write_text(STREAMED_USER.replace("WRITE", line))
        processes[name] = compiled(compiler, tmp_path, *WARNINGS, str(source))
    assert processes["rows"].returncode == 0, processes["rows"].stderr
    assert processes["whole"].returncode != 0
    assert "net_input" in processes["whole"].stderr
    assert "net_input(" not in (tmp_path / "net.c").read_text()


@pytest.mark.slow
def test_clang_format_has_nothing_to_change(tmp_path):
    (tmp_path / ".clang-format").write_bytes((ROOT / ".clang-format").read_bytes())
    networks = [
        emitted(every_operator(1, 2), "every"),
        *map(zoo, NETWORKS),
        *map(streamed, NETWORKS),
        checked(),
    ]
    for number, sources in enumerate(networks):
        write_files(sources.files, tmp_path / str(number))
    words = (needs_tool("clang-format"), "--dry-run", "--Werror")
    files = [str(path) for path in tmp_path.rglob("*.[ch]")]
    process = subprocess.run([*words, *files], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr


PRINTED = """\
import hashlib, sys
sys.path.insert(0, "tests/support")
from everyop import every_operator
from buildtool.emit.sources import emit
from buildtool.graph.rewrite import rewrite
from buildtool.plan.codec import to_bytes
from buildtool.plan.assemble.layerwise import plan
from buildtool.target import digest
from buildtool.target.registry import load_target
graph, target = rewrite(every_operator()), load_target("cortex-m55")
made = plan(graph, target)
files = {**emit(graph, made, target, "net").files, "plan": to_bytes(made)}
print([(name, hashlib.sha256(data).hexdigest()) for name, data in files.items()])
print(digest.planning_digest(target), digest.emitting_digest(target), digest.packing_digest(target))
"""


@pytest.mark.slow
def test_no_set_or_hash_order_gets_into_a_file_or_a_digest():
    outputs = set()
    for seed in ("0", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", PRINTED]
        outputs.add(subprocess.check_output(command, cwd=ROOT, env=environment, text=True))
    assert len(outputs) == 1


def test_parts_that_lie_in_their_places_are_not_copied(tmp_path):
    graph = rewrite(yolo_v5(64, 8, 5))
    made = make_plan(graph, TARGET, PlanOptions(objective="ram"))
    write_files(emit(graph, made, TARGET, "net").files, tmp_path)
    *_, join = re.findall(
        r"NN_MARK_BEGIN\((\d+)\);(.*?)NN_MARK_END", (tmp_path / "net.c").read_text(), re.DOTALL
    )
    assert join == (
        str(len(graph.ops) - 1),
        "\n    (void)(arena + 0); /* all parts lie in their places */\n    ",
    )
    compiler, *flags = BUILDS["clang host"]
    process = compiled(compiler, tmp_path, *flags, *WARNINGS, "-O1", str(tmp_path / "net.c"))
    assert process.returncode == 0, process.stderr


def test_the_header_says_in_which_order_an_input_is_wanted():
    graph = rewrite(read_model(write_model(channel_moves())))
    streamed_plan = front(graph, TARGET, Settings(image="stream")).plan(0)
    header = emit(graph, streamed_plan, TARGET, "moves").files["moves.h"]
    assert b"#define MOVES_INPUT0_SHAPE {1, 19, 17, 3}" in header
    assert b"#define MOVES_INPUT0_ORDER {0, 2, 3, 1}" in header
    assert b"1x3x19x17" in header
    assert b"#define MOVES_ROWS 19\n#define MOVES_ROW_BYTES 51\n" in header
