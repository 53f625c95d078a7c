"""Builds of a model that are killed, and what a build of another model makes of what they left.

    python tests/support/killedbuilds.py --kills 50

Each round begins with the finished build of model A. Model B takes its place, and its build is killed (-9,
with all that it started) at a point: before the n-th target is made, when half of it is written, when it is
whole, or somewhere in the writing of SCons's record, or at some time. Then A comes back and is built:
every file must be the one that a build of A in an empty folder makes. The project has a program of its
user's beside the test firmware, with an object that includes the network's header and a command after the
linker, which no method of the tool makes.
"""

import argparse
import functools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from paths import ROOT

from buildtool.graph.tflite.writer import write_model
from buildtool.zoo.drawn import NetBuilder

SCONSTRUCT = """
env = Environment(tools=["cc", "link", "ar", "as", "buildtool_network", "compile_commands"])
env.UseBoard("host", verbose=False)
network = env.NeuralNetwork("net.tflite")
env.NetworkFirmware(network)
app = env.Clone()
app.Append(CPPPATH=network.include)
elf = app.Program("app.elf", ["main.c", *env["BOARD_STARTUP"], network.library])
app.Command("app.bin", elf, Copy("$TARGET", "$SOURCE"))
env.CompileCommands("compile_commands.json")
"""
MAIN = """
#include "net.h"

NET_DEFINE_ARENA(arena);

int main(void) {
    return net_init(arena, sizeof(arena), net_weights) != NN_OK || net_invoke() != NN_OK;
}
"""
# SCons that kills its process group when it makes its n-th target, or writes its record.
KILLED = """
import os, signal
import SCons.Node, SCons.Script, SCons.SConsign, SCons.dblite

moment, number = os.environ["MOMENT"], int(os.environ["NUMBER"])
count = 0

def die(*given):
    os.killpg(0, signal.SIGKILL)

def build(node, **given):
    global count
    count += 1
    here = count == number
    if here and moment == "before":
        die()
    made(node, **given)
    if here and moment == "half":
        for target in node.executor.get_all_targets():
            os.truncate(target.path, os.path.getsize(target.path) // 2)
    if here and moment in ("half", "after"):
        die()

def write():
    written()
    die()

made, SCons.Node.Node.build = SCons.Node.Node.build, build
written = SCons.SConsign.write
if moment == "record begins":
    SCons.SConsign.write = die
if moment == "record is whole":
    SCons.dblite._Dblite._os_replace = staticmethod(die)
if moment == "record is there":
    SCons.SConsign.write = write
SCons.Script.main()
"""
# Notes of SCons and of the tool; what clang writes to before an object gets its name.
IGNORED = re.compile(r"\.sconsign\.(dblite|tmp)|\.buildtool\.lock|.*-[0-9a-f]{8}\.o\.tmp")


def model(seed: int, filters: int = 6, classes: int = 4) -> bytes:
    """A network of two layers; `seed` for its weights."""
    net = NetBuilder(seed)
    x = net.conv(net.input((1, 6, 6, 2)), filters, kernel=(3, 3))
    return write_model(net.graph([net.dense(net.flatten(x), classes)]))


# Retrained, of another topology with the same interface, and of another interface.
OTHERS = {"weights": model(2), "topology": model(3, filters=9), "interface": model(4, classes=7)}


@dataclass(frozen=True)
class Kill:
    """When the build of model `other` is killed: at target `number`, or after `number` milliseconds."""

    other: str
    moment: str
    number: int
    jobs: int = 1

    def __str__(self) -> str:
        return f"{self.other}, {self.moment} {self.number}, -j{self.jobs}"


class Project:
    """A folder with the build; `compilers` are variables that name the compilers to use."""

    def __init__(self, folder: Path, compilers: Mapping[str, str]) -> None:
        self.folder, self.compilers = folder / "project", compilers
        self.kept = folder / "kept"
        self.folder.mkdir()
        shutil.copytree(
            ROOT / "site_scons", self.folder / "site_scons", ignore=shutil.ignore_patterns("__pycache__")
        )
        (self.folder / "SConstruct").write_text(SCONSTRUCT)
        (self.folder / "main.c").write_text(MAIN)
        self.put(model(1))
        said = self.build()
        assert not said, said
        self.expected = self.files()
        shutil.copytree(self.folder, self.kept)  # times are kept too

    def put(self, data: bytes) -> None:
        """Replaces the model."""
        (self.folder / "net.tflite").write_bytes(data)

    def files(self) -> dict[str, bytes]:
        """All that is there but SCons's and the tool's own notes."""
        found = (path for path in self.folder.rglob("*") if path.is_file() and "site_scons" not in path.parts)
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in found
            if not IGNORED.fullmatch(path.name)
        }

    def build(self, *words: str) -> str:
        """The first error of a build that nobody kills; "" if it has none."""
        done = self._start([sys.executable, "-m", "SCons", "-Q", *words])
        said, _ = done.communicate(timeout=600)
        errors = [line for line in said.splitlines() if "error" in line.lower()]
        return "" if done.returncode == 0 else f"the build failed: {[*errors, said][0]}"

    def restore(self) -> None:
        """Puts the finished build of A back."""
        shutil.rmtree(self.folder)
        shutil.copytree(self.kept, self.folder)

    def is_current(self) -> bool:
        """What `scons -q` says, which builds nothing."""
        return not self.build("-q")

    def killed(self, kill: Kill) -> bool:
        """Builds model B on top of A's build; whether it was killed."""
        self.restore()
        self.put(OTHERS[kill.other])
        words = ["-Q", f"-j{kill.jobs}"]
        if kill.moment != "milliseconds":
            started = self._start([sys.executable, "-c", KILLED, *words], kill)
        else:
            started = self._start([sys.executable, "-m", "SCons", *words])
            time.sleep(kill.number / 1000)
            if started.poll() is None:
                os.killpg(started.pid, signal.SIGKILL)
        started.communicate(timeout=600)
        return started.returncode == -signal.SIGKILL

    def differences(self) -> list[str]:
        """Builds A again; its error, or the files that are not those of a build in an empty folder."""
        self.put(model(1))
        failed = self.build()
        if failed:
            return [failed]
        got = self.files()
        found = [name for name in sorted({*got, *self.expected}) if got.get(name) != self.expected.get(name)]
        if subprocess.run([self.folder / "app.elf"], check=False).returncode:
            found.append("app.elf does not run")
        return found

    def _start(self, command: list[str], kill: Kill | None = None) -> subprocess.Popen[str]:
        variables = {"MOMENT": kill.moment, "NUMBER": str(kill.number)} if kill else {}
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | dict(self.compilers) | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


def kills(seed: int = 0) -> Iterator[Kill]:
    """Every moment of every target first, then moments that are drawn, without an end."""
    draw = random.Random(seed)
    others = functools.partial(draw.choice, sorted(OTHERS))
    planned = [Kill("topology", f"record {end}", 0) for end in ("begins", "is whole", "is there")]
    planned += [
        Kill(others(), moment, number) for number in range(1, 11) for moment in ("before", "half", "after")
    ]
    yield from planned
    while True:
        yield Kill(others(), "milliseconds", draw.randrange(300, 4000), draw.choice((1, 2)))


def main() -> int:
    """Prints a line a kill, and how many of them left something false."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    killed = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder), {})
        moments = kills(args.seed)
        while killed < args.kills:
            kill = next(moments)
            died = project.killed(kill)
            found = project.differences()
            killed += died
            wrong += bool(found)
            what = f"FALSE: {', '.join(found)}" if found else "right"
            print(f"{kill}: {'' if died else 'had ended; '}{what}", flush=True)
    print(f"{killed} builds killed, {wrong} left something false")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
