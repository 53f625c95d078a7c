"""Calls that several threads share have no races, and an application's own hook may share them."""

import shutil
import subprocess
from pathlib import Path

import pytest
from ckernels import KERNELS
from needs import needs_tool

slow = pytest.mark.slow
FAMILY = "reference_threads"
DRIVER = Path(__file__).with_name("threads_driver.c")
PARTS = ("conv2d", "depthwise_conv2d", "add")


@pytest.fixture
def driver(tmp_path):
    """A function that builds the driver with ThreadSanitizer, and runs it: (exit status, what it said)."""

    def run(*flags):
        sources = [DRIVER, KERNELS / "runtime/nn_parallel.c"]
        sources += [KERNELS / FAMILY / f"nn_{part}_s8_threads.c" for part in PARTS]
        sources += [KERNELS / "reference" / f"nn_{part}_s8.c" for part in PARTS]
        folders = (f"-I{KERNELS / 'include'}", f"-I{KERNELS / FAMILY}")
        watched = ("-fsanitize=thread", "-g1", "-O1", "-std=gnu99", "-DNN_FORK_ISSUES=1")
        program = tmp_path / "driver"
        command = [needs_tool("clang"), *watched, *flags, *folders, *map(str, sources), "-o", str(program)]
        subprocess.run(command, check=True, capture_output=True)
        done = subprocess.run([program], capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    return run


@slow
def test_kernels_over_their_input_have_no_races(driver):
    status, said = driver("-DNN_THREADS=5")
    assert status == 0, said


@slow
def test_a_race_would_be_found(driver, tmp_path):
    """With pieces that are cut as if the output lay over no input."""
    text = (KERNELS / "include/nn_split.h").read_text()
    blind = text.replace("nn_clear(call, call->in) && nn_clear(call, call->in2)", "1")
    assert blind != text
    (tmp_path / "nn_split.h").write_text(blind)
    status, said = driver("-DNN_THREADS=5", f"-I{tmp_path}")
    assert status == 66 and "data race" in said


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
    """In whatever order it computes the pieces; ours may be an object beside it."""
    main = "int32_t sum; void add(const void *c, int32_t p) { (void)c; sum += p; } extern int forks;\n"
    main += "int main(void) { nn_parallel(add, 0, 4); return forks == 1 && sum == 6 ? 0 : 1; }\n"
    (tmp_path / "own.c").write_text(HOOK)
    (tmp_path / "main.c").write_text('#include "nn_parallel.h"\n' + main)
    shutil.copy(KERNELS / "runtime/nn_parallel.c", tmp_path)
    flags = ("-DNN_THREADS=4", f"-I{KERNELS / 'include'}")
    names = ("main", "own", "nn_parallel")
    for name in names:
        subprocess.run(["gcc", *flags, "-c", f"{name}.c"], cwd=tmp_path, check=True)
    ours = "nn_parallel.o"
    if library:
        subprocess.run(["ar", "rcs", "libours.a", ours], cwd=tmp_path, check=True)
        ours = "libours.a"
    subprocess.run(["gcc", "main.o", "own.o", ours, "-o", "program"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "program"]).returncode == 0
