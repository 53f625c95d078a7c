"""A program that gives weight images to a network's C code, one after another, with sanitizers.

It reads (length, bytes) from standard input, puts them where the network's flash would be, and answers with
the status of `net_init`, or with 100 where that was NN_OK and an invoke ran to its end. An image whose
checksum is right may hold multipliers and shifts that no training makes: its results mean nothing, and shifts
and sums beyond a word's width are let pass, but no byte outside arena and image may be touched.
"""

from __future__ import annotations

import functools
import resource
import signal
import struct
import subprocess
import tempfile
from pathlib import Path

from benchmarks.fuzz.seeds import tflite
from buildtool.base.files import File
from buildtool.base.session import Session
from buildtool.emit.sources import Sources, emit, kernel_sources
from buildtool.firmware.firmware import write_files
from buildtool.firmware.planned import Planned, plan_model
from buildtool.firmware.tools import toolchain
from buildtool.options.values import PlanOptions, TargetChoice
from buildtool.target.kernels import kernel_includes

CPU_SECONDS = 100  # of the program, which serves up to 500 images in some milliseconds each
_MAIN = """
#include "net.h"
#include <stdio.h>
#include <string.h>
static _Alignas(16) unsigned char flash[NET_WEIGHTS_BYTES];
static _Alignas(NET_ARENA_ALIGNMENT) signed char arena[NET_ARENA_BYTES];
static unsigned char given[1 << 20];
int main(void) {
    unsigned int bytes;
    while (fread(&bytes, 4, 1, stdin) == 1 && fread(given, 1, bytes, stdin) == bytes) {
        memset(flash, 0xFF, sizeof flash);
        memcpy(flash, given, bytes < sizeof flash ? bytes : sizeof flash);
        int status = net_init(arena, sizeof arena, flash);
        if (status == NN_OK) {
            memset(net_input(0), 1, 8 * 9 * 3);
            status = net_invoke() == NN_OK ? 100 : 200;
        }
        printf("%d\\n", status);
        fflush(stdout);
    }
    return 0;
}
"""


@functools.cache
def _planned() -> Planned:
    choice = TargetChoice("host")
    return plan_model(File("net.tflite", data=tflite()[0]), choice, PlanOptions(), Session())


@functools.cache
def emitted() -> Sources:
    """Returns the network's sources."""
    made = _planned()
    return emit(made.graph, made.plan, made.target, "net", made.session)


@functools.cache
def program() -> Path:
    """Compiles the program once, and returns its path."""
    made, folder = _planned(), Path(tempfile.mkdtemp(prefix="buildtool-fuzz-"))
    sources, tools = emitted(), toolchain(made.choice, made.target)
    write_files({**sources.files, "main.c": _MAIN.encode()}, folder)
    flags = [
        "-O1",
        "-g1",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        "-fno-sanitize=shift,signed-integer-overflow",
    ]
    includes = [f"-I{path}" for path in (folder, *kernel_includes(made.target))]
    files = [folder / "main.c", *(folder / name for name in sources.c_files)]
    files += kernel_sources(made.plan, made.target)
    command = [
        tools.cc,
        *tools.cflags,
        *flags,
        *includes,
        *map(str, files),
        "-o",
        str(folder / "check"),
        "-lm",
    ]
    subprocess.run(command, check=True)
    return folder / "check"


def _limits() -> None:
    """Limits the CPU time, but not the address space, of which AddressSanitizer needs terabytes."""
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


class Checker:
    """Runs the program that checks images, and starts it again after it has crashed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def status(self, image: bytes) -> str:
        """Returns the program's status for an image, or the sanitizer's message if the program crashed."""
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                [program()],
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                preexec_fn=_limits,  # noqa: PLW1509
            )
        process = self._process
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(struct.pack("<I", len(image)) + image)
        process.stdin.flush()
        line = process.stdout.readline()
        if line:
            return line.decode().strip()
        said = process.stderr.read().decode("utf-8", "replace")
        self._process = None
        process.wait()
        lines = [line for line in said.splitlines() if "ERROR" in line or "runtime error" in line]
        if process.returncode == -signal.SIGXCPU:
            return f"hangs: over {CPU_SECONDS} s for this image and those before it"
        return lines[0] if lines else f"ended with status {process.returncode}"
