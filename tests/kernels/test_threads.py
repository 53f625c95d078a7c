"""Calls and networks on several threads are exact and have no races; an application may use its own hook."""

import shutil
import subprocess
from pathlib import Path

import pytest
from ckernels import KERNELS
from needs import needs_tool

from buildtool.api import handle
from buildtool.firmware.run import validation
from buildtool.graph.tflite.writer import write_model
from buildtool.graph.types import Activation, OpKind
from buildtool.zoo.drawn import NetBuilder

slow = pytest.mark.slow
FAMILY = "reference_threads"
DRIVER = Path(__file__).with_name("threads_driver.c")
# Even the smallest piece gets a thread of its own.
WATCHED = ("-fsanitize=thread", "-g1", "-O1", "-DNN_FORK_ISSUES=1")
PARTS = ("conv2d", "depthwise_conv2d", "add")


@pytest.fixture
def driver(tmp_path):
    """A function that builds and runs the driver with ThreadSanitizer: returns exit status and output."""

    def run(*flags):
        sources = [DRIVER, KERNELS / "runtime/nn_parallel.c"]
        sources += [KERNELS / FAMILY / f"nn_{part}_s8_threads.c" for part in PARTS]
        sources += [KERNELS / "reference" / f"nn_{part}_s8.c" for part in PARTS]
        folders = (f"-I{KERNELS / 'include'}", f"-I{KERNELS / FAMILY}")
        program = tmp_path / "driver"
        words = (*WATCHED, "-std=gnu99", *flags, *folders, *sources)
        command = [needs_tool("clang"), *words, "-o", program]
        subprocess.run(command, check=True, capture_output=True)
        process = subprocess.run([program], capture_output=True, text=True, timeout=120)
        return process.returncode, process.stdout + process.stderr

    return run


@slow
def test_kernels_over_their_input_have_no_races(driver):
    status, output = driver("-DNN_THREADS=5")
    assert status == 0, output


@slow
def test_a_race_would_be_found(driver, tmp_path):
    """Pieces are cut as if the output did not overlap an input."""
    text = (KERNELS / "include/nn_split.h").read_text()
    blind = text.replace("nn_clear(call, call->in) && nn_clear(call, call->in2)", "1")
    assert blind != text
    (tmp_path / "nn_split.h").write_text(blind)
    status, output = driver("-DNN_THREADS=5", f"-I{tmp_path}")
    assert status == 66 and "data race" in output


HOOK = """
#include "nn_parallel.h"
int forks;
void nn_parallel(nn_job *job, const void *context, int32_t pieces) {
    forks++;
    for (int32_t piece = pieces; piece-- > 0;) {
        job(context, piece);
    }
}
"""


@pytest.mark.parametrize("library", [True, False], ids=["archive", "objects"])
def test_an_application_s_own_hook_is_taken(tmp_path, library):
    """It may compute the pieces in any order; buildtool's own hook may be linked as an object, too."""
    main = "int32_t sum; void add(const void *c, int32_t p) { (void)c; sum += p; } extern int forks;\n"
    main += "int main(void) { nn_parallel(add, 0, 4); return forks == 1 && sum == 6 ? 0 : 1; }\n"
    (tmp_path / "own.c").write_text(HOOK)
    (tmp_path / "main.c").write_text('#include "nn_parallel.h"\n' + main)
    shutil.copy(KERNELS / "runtime/nn_parallel.c", tmp_path)
    flags = ("-DNN_THREADS=4", f"-I{KERNELS / 'include'}")
    for name in ("main", "own", "nn_parallel"):
        subprocess.run(["gcc", *flags, "-c", f"{name}.c"], cwd=tmp_path, check=True)
    ours = "nn_parallel.o"
    if library:
        subprocess.run(["ar", "rcs", "libours.a", ours], cwd=tmp_path, check=True)
        ours = "libours.a"
    subprocess.run(["gcc", "main.o", "own.o", ours, "-o", "program"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "program"]).returncode == 0


@pytest.fixture(scope="module")
def residual(tmp_path_factory):
    """A network with depthwise layers and sums that overwrite their input, poolings, mean and dense layer."""
    net = NetBuilder(4)
    x = net.conv(net.input((1, 22, 18, 3)), 16, kernel=(3, 3), stride=(2, 2), same=True)
    for _ in range(2):
        y = net.conv(x, 48, activation=Activation.RELU6)
        y = net.conv(y, 48, kernel=(3, 3), same=True, depth_multiplier=1, activation=Activation.RELU6)
        x = net.elementwise(OpKind.ADD, x, net.conv(y, 16))
    x = net.pool(OpKind.AVERAGE_POOL_2D, net.conv(x, 32), (2, 2), (2, 2))
    path = tmp_path_factory.mktemp("residual") / "residual.tflite"
    path.write_bytes(write_model(net.graph([net.softmax(net.dense(net.mean(x), 10))])))
    return path


@slow
def test_a_network_is_exact_and_has_no_races(residual, monkeypatch):
    options = {"image": "stream", "objective": "ram"}
    monkeypatch.setattr(validation, "SANITIZERS", WATCHED)
    request = {"kind": "validate", "model": str(residual), "board": "xcore", "toolchain": "clang"}
    answer = handle({**request, "sanitize": True, "inputs": 2, "options": options})
    assert answer["exact"] and answer["inputs_equal"] == 2


def test_the_plan_counts_each_thread_s_scratch(residual):
    """So each piece has scratch of its own."""
    sizes = {}
    for threads in (1, 2, 5):
        request = {"kind": "plan", "model": str(residual), "board": "xcore", "threads": threads}
        buffers = handle({**request, "options": {"strategy": "layerwise"}})["buffers"]
        sizes[threads] = [buffer["size"] for buffer in buffers if buffer["kind"] == "scratch"]
    assert sizes[1] and sizes[2] == [2 * size for size in sizes[1]]
    assert sizes[5] == [5 * size for size in sizes[1]]
